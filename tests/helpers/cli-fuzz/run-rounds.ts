/**
 * Runs random command lines one after the other in this process, which is started for it: `run-rounds.ts <seed> <from> <to>
 * <api url with # for the number>`. Writes what came of each to descriptor 3, a line of JSON before and after it.
 */
import { mkdirSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { runProgram } from '../../../src/cli/program.ts'
import type { Random } from '../random.ts'
import { makeRound, readLeaves, type CommandLine } from './command-lines.ts'

export interface Outcome {
  round: number
  line: CommandLine
  /** Undefined: it did not end, not even when it was asked to. */
  code: number | undefined
  stdout: string
  stderr: string
  /** What nobody caught. */
  crashes: string[]
  /** What would have kept the process alive. */
  left: string[]
}

/** A command that still waits then, for what it was told is under way, gets Ctrl-C. */
const PATIENCE_MS = 1000
/** Less than the one who started this process waits for a word of it. */
const LAST_PATIENCE_MS = 15_000
/** For sockets and files to be closed. */
const CLOSING_MS = 10_000

/** Stands for the end of the process. */
class Exit extends Error {}

const [seed = 0, from = 0, to = 0] = process.argv.slice(2, 5).map(Number)
const [address = ''] = process.argv.slice(5)

const vocabulary = await readLeaves()
const baseline = activeResources().length
let current: Outcome | undefined
let exited: (code: number) => void = () => undefined

process.exit = (code) => {
  exited(Number(code ?? 0))
  throw new Exit('The process has ended')
}
process.on('uncaughtException', (error) => {
  if (!(error instanceof Exit)) current?.crashes.push(error.stack ?? error.message)
})
process.on('unhandledRejection', (error) => {
  if (!(error instanceof Exit)) current?.crashes.push(error instanceof Error ? (error.stack ?? '') : String(error))
})
capture(process.stdout, (text) => {
  if (current !== undefined) current.stdout += text
})
capture(process.stderr, (text) => {
  if (current !== undefined) current.stderr += text
})

for (let round = from; round < to; round += 1) {
  const outcome = await play(round)
  tell(outcome)
  // What has not ended would disturb the others.
  if (outcome.code === undefined || outcome.left.length > 0) process.kill(process.pid, 'SIGKILL')
}

async function play(round: number): Promise<Outcome> {
  const { line, random } = makeRound(seed, round, vocabulary)
  const outcome: Outcome = { round, line, code: undefined, stdout: '', stderr: '', crashes: [], left: [] }
  tell(outcome)
  current = outcome
  prepare(random, round, line)
  const ended = new AbortController()
  const exit = new Promise<number>((resolve) => (exited = resolve))
  outcome.code = await Promise.race([
    exit,
    runProgram([...line.args]).catch((error: unknown) => {
      if (!(error instanceof Exit)) outcome.crashes.push(String(error))
      return new Promise<never>(() => undefined)
    }),
    patience(ended.signal).catch(() => undefined),
  ])
  ended.abort()
  outcome.left = await whatIsLeft()
  return outcome
}

function prepare(random: Random, round: number, line: CommandLine): void {
  const home = join(homedir(), '.svc')
  rmSync(home, { recursive: true, force: true })
  if (random.once(5)) {
    mkdirSync(home, { mode: 0o770 })
    const accounts = [
      'username = alice\npassword = x',
      'username = alice',
      'api_key = x',
      'username = \u0007\nfrob = 1',
      '[',
    ] as const
    writeFileSync(join(home, 'config'), `[credentials]\n${random.pick(accounts)}\n`, { mode: 0o600 })
    const caches = [
      '',
      '{',
      '{"token": "x", "expire_timestamp": 9e9}',
      '{"token": 5}',
      '[]',
      '{"token": "a b", "expire_timestamp": -1}',
    ] as const
    if (random.once(2)) writeFileSync(join(home, 'token-alice'), random.pick(caches), { mode: 0o660 })
  }
  const api = address.replace('#', String(round))
  const { columns, isColored, input } = line
  Object.assign(process.env, { SVC_API_URL: api, SVC_AUTH_URL: api, SVC_STREAM_URL: api })
  process.env['SVC_COLORIZE'] = isColored ? '1' : ''
  // The client asks no more of a terminal than this.
  for (const stream of [process.stdout, process.stderr]) {
    Object.defineProperties(stream, {
      isTTY: { value: columns !== undefined, configurable: true },
      columns: { value: columns, configurable: true },
    })
  }
  Object.defineProperty(process, 'stdin', { value: Readable.from(input === '' ? [] : [input]), configurable: true })
}

/** Resolves when a command that goes on and on has had its Ctrl-C, and time to end because of it. */
async function patience(signal: AbortSignal): Promise<undefined> {
  await delay(PATIENCE_MS, undefined, { signal })
  process.emit('SIGINT')
  await delay(LAST_PATIENCE_MS, undefined, { signal })
}

async function whatIsLeft(): Promise<string[]> {
  const began = performance.now()
  for (;;) {
    const left = activeResources()
    if (left.length <= baseline) return []
    if (performance.now() - began > CLOSING_MS) return left
    await new Promise((resolve) => setImmediate(resolve))
  }
}

function activeResources(): string[] {
  return process.getActiveResourcesInfo().filter((name) => name !== 'Immediate')
}

function capture(stream: NodeJS.WriteStream, keep: (text: string) => void): void {
  stream.write = (chunk: string | Uint8Array, ...rest: unknown[]) => {
    keep(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8'))
    const done = rest.find((each) => typeof each === 'function')
    if (done !== undefined) queueMicrotask(() => void Reflect.apply(done, undefined, []))
    return true
  }
}

function tell(outcome: Outcome): void {
  writeSync(3, `${JSON.stringify(outcome)}\n`)
}
