/**
 * Contract 09: whatever is on the command line, and whatever answers, the client ends in order.
 *
 * `SVC_TEST_SEED` repeats a run, `SVC_TEST_ROUND` one command line of it.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { spawnCli, startCli } from '../helpers/cli.ts'
import { files, makeRound, makeServerLine, readLeaves, readServerOptions } from '../helpers/cli-fuzz/command-lines.ts'
import { startHostileServer, type HostileServer, type Manner } from '../helpers/cli-fuzz/hostile-server.ts'
import type { Outcome } from '../helpers/cli-fuzz/run-rounds.ts'
import { makeFolder } from '../helpers/folders.ts'
import { markedProcesses } from '../helpers/marked-processes.ts'
import { createRandom, seedOfRun } from '../helpers/random.ts'
import { projectRoot } from '../helpers/server.ts'
import { rounds, tier } from '../helpers/tiers.ts'

const seed = seedOfRun()
const only = process.env['SVC_TEST_ROUND']
/** For each manner of the server. */
const ROUNDS = rounds({ daily: 60, full: 1500 })
const PROCESSES = rounds({ daily: 3, full: 60 })
const SERVERS = rounds({ daily: 1, full: 8 })
/** Nothing that a command line begins may keep this process busy for so long. */
const SILENCE_MS = 30_000

const folder = makeFolder()
const running = new Set<ChildProcess>()

beforeAll(() => {
  const at = (name: string): string => join(folder.path, name)
  writeFileSync(at(files.text), 'some text\n')
  writeFileSync(at(files.json), '{"name": "a", "pack": "default", "value": 1}')
  writeFileSync(at(files.list), '[{"name": "a", "value": "1"}, {"name": 5}, null]')
  writeFileSync(at(files.yaml), 'name: a\nenabled: true\n')
  writeFileSync(at(files.notUtf8), Buffer.from([0x61, 0x3a, 0x20, 0xff, 0xfe]))
  writeFileSync(at(files.deep), `${'['.repeat(50_000)}${']'.repeat(50_000)}`)
  writeFileSync(at(files.config), '[cli]\ntimezone = Asia/Tokyo\n', { mode: 0o600 })
  writeFileSync(at(files.badConfig), '[cli\n\u0000=\ntimezone = Nowhere/At\u001ball\n')
  writeFileSync(at(files.unreadable), '{}')
  chmodSync(at(files.unreadable), 0)
  mkdirSync(at(files.folder))
  execFileSync('mkfifo', [at(files.pipe)])
  symlinkSync(files.loop, at(files.loop))
})
afterAll(() => {
  for (const child of running) child.kill('SIGKILL')
  folder.remove()
})

/** Plays these rounds; a process that cannot go on is followed by another one. */
async function play(from: number, to: number, server: HostileServer): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (let next = from; next < to; next = from + outcomes.length) {
    const { ended, open, errors } = await playInProcess(next, to, server)
    outcomes.push(...ended)
    if (from + outcomes.length < to && open !== undefined) {
      outcomes.push({ ...open, crashes: [...open.crashes, `The process did not survive it. ${errors}`] })
    } else if (ended.length === 0) throw new Error(`The process that plays command lines does not start: ${errors}`)
  }
  return outcomes
}

interface Played {
  ended: Outcome[]
  /** Begun and not ended. */
  open: Outcome | undefined
  errors: string
}

async function playInProcess(from: number, to: number, server: HostileServer): Promise<Played> {
  const program = join(projectRoot, 'tests', 'helpers', 'cli-fuzz', 'run-rounds.ts')
  const address = server.apiUrl(0).replace('/c0/', '/c#/')
  const child = spawn(
    process.execPath,
    // Whoever writes anywhere else, or starts a process, is stopped by an error.
    [
      '--permission',
      '--allow-addons',
      '--allow-fs-read=*',
      `--allow-fs-write=${folder.path}`,
      program,
      ...[seed, from, to, address].map(String),
    ],
    {
      cwd: folder.path,
      env: { PATH: process.env['PATH'] ?? '', HOME: folder.path },
      stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
    },
  )
  running.add(child)
  let errors = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const ended: Outcome[] = []
  let open: Outcome | undefined
  let watchdog = setTimeout(() => child.kill('SIGKILL'), SILENCE_MS)
  const lines = createInterface({ input: child.stdio[3] as Readable })
  lines.on('line', (line) => {
    watchdog = watchdog.refresh()
    const outcome = JSON.parse(line) as Outcome
    if (open === undefined) open = outcome
    else {
      ended.push(outcome)
      open = undefined
    }
  })
  await new Promise((resolve) => child.once('close', resolve))
  clearTimeout(watchdog)
  running.delete(child)
  return { ended, open, errors }
}

const internals =
  /\n {4}at |\b(?:Type|Reference|Range|Syntax)Error|node:internal|\bERR_[A-Z_]+|call stack|Cannot read prop|is not (?:a function|iterable)|\bundefined\b|\[object /
// oxlint-disable-next-line no-control-regex -- this is what is looked for
const obeyed = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/
// oxlint-disable-next-line no-control-regex -- colours, and a line of progress that is drawn anew
const drawn = /\u001b\[\d+m|\r\u001b\[K/g
const saysError = /^(?:ERROR|error): /m

/** Commands that end well without a server. */
const local: ReadonlySet<string> = new Set(['completion', 'generate-crypto-key', 'help', 'logout', 'manual'])
/** Commands that read and write files alone: by the noun, then by the verb; any verb if there is none. */
const offline: readonly (readonly [noun: string, verbs?: readonly string[]])[] = [
  ['workflow', ['graph', 'inspect', 'test']],
  ['init'],
  ['crontab'],
  ['pack', ['create']],
  ['action', ['new']],
  ['rule', ['new']],
]
/** To these any text is an answer. */
const raw: ReadonlySet<string> = new Set(['entry-point', 'file'])
/** Prints a document for each piece of output, so none where the server sent none. */
const streaming: ReadonlySet<string> = new Set(['tail'])
const changesPasswordFile = /^(?:User|The password of) ".*" .* (?:to|in|from) \S+\n$/

/** What is wrong with how a command line ended. */
async function complaints(
  { round, line, code, stdout, stderr, crashes, left }: Outcome,
  manner: Manner,
  server: HostileServer,
): Promise<string[]> {
  const found = crashes.map((crash) => `crashed: ${crash}`)
  if (left.length > 0) found.push(`would not end, because of ${left.join(', ')}`)
  if (code === undefined) return [...found, 'did not end']
  const printed = `${stdout}\n${stderr}`
  const shown = internals.exec(printed)
  if (shown !== null) found.push(`shows its inside: ${shown[0]}`)
  const control = obeyed.exec(printed.replace(drawn, ''))
  if (control !== null) found.push(`prints what a terminal obeys: ${JSON.stringify(control[0])}`)
  if (![0, 1, 2, 3, 130].includes(code)) found.push(`ends with ${code}`)
  if (code === 0 && saysError.test(printed)) found.push('ends with 0 after an error')
  if (code !== 0 && printed.trim() === '') found.push('fails without a word')
  if (code === 2 && stderr.startsWith('error: ') && stdout !== '') found.push('prints a result of wrong usage')
  const isAbout = /^Usage: svc|^svc \d/.test(stdout)
  const isOffline = offline.some(
    ([noun, verbs]) => line.args.includes(noun) && (verbs?.some((verb) => line.args.includes(verb)) ?? true),
  )
  const mayEndWell =
    isAbout ||
    isOffline ||
    line.args.some((word) => local.has(word) || raw.has(word)) ||
    changesPasswordFile.test(stdout)
  const mayBeEmpty =
    stdout === '' && line.args.some((word) => streaming.has(word)) && !(await server.hasSentOutput(round))
  if (line.isJson && code === 0 && !isAbout && !mayBeEmpty && !isJson(stdout))
    found.push('prints something else than JSON')
  if (manner === 'refusing') {
    if (code === 0 && !mayEndWell) found.push(`ends with 0 after ${server.requests(round)} refused requests`)
    // What an inspection finds is its answer.
    const saysWhy = isOffline || /^ERROR: ./m.test(stdout) || /^Not authenticated$/m.test(stdout)
    if (code === 1 && !saysWhy) found.push('fails without saying ERROR:')
  }
  return found
}

/** A document, or one after the other where several things are asked for. */
function isJson(text: string): boolean {
  try {
    for (const document of text.split(/^(?=[[{])/m)) JSON.parse(document)
    return true
  } catch {
    return false
  }
}

/** No system passes on a zero character, nor Linux a word of 128 KiB. */
function passable(word: string): string {
  return word.slice(0, 40_000).replaceAll('\u0000', '\u0001')
}

describe(`random command lines, seed ${seed}`, () => {
  it.each<Manner>(['refusing', 'foreign'])('09.1 end in order when the server is %s', async (manner) => {
    const server = await startHostileServer(seed, manner)
    try {
      const [from, to] = only === undefined ? [0, ROUNDS] : [Number(only), Number(only) + 1]
      const outcomes = await play(from, to, server)
      const odd: unknown[] = []
      for (const outcome of outcomes) {
        const wrong = await complaints(outcome, manner, server)
        if (wrong.length > 0) odd.push({ wrong, ...outcome })
      }
      expect(odd).toEqual([])
      const codes = new Set(outcomes.map(({ code }) => code))
      // What cannot reach every end says little; a few command lines need not reach the rare ones.
      const expected = only !== undefined ? [] : tier === 'full' ? [0, 1, 2, 3] : [1, 2]
      expect([...codes]).toEqual(expect.arrayContaining(expected))
    } finally {
      await server.stop()
    }
  })

  it('09.1 end in order as processes, and leave none behind', async () => {
    const vocabulary = await readLeaves()
    const server = await startHostileServer(seed, 'refusing')
    const waiting = Array.from({ length: PROCESSES }, (_, index) => ROUNDS + index)
    const odd: unknown[] = []
    const playNext = async (): Promise<void> => {
      for (let round = waiting.shift(); round !== undefined; round = waiting.shift()) {
        const { line } = makeRound(seed, round, vocabulary)
        const url = server.apiUrl(round)
        const env = { HOME: folder.path, SVC_API_URL: url, SVC_AUTH_URL: url, SVC_STREAM_URL: url }
        const cli = startCli(line.args.map(passable), env, { input: line.input, cwd: folder.path })
        const watchdog = setTimeout(() => cli.process.kill('SIGKILL'), SILENCE_MS)
        const { code, stdout, stderr } = await cli.exit
        clearTimeout(watchdog)
        const outcome = { round, line, code: code ?? undefined, stdout, stderr, crashes: [], left: [] }
        const wrong = await complaints(outcome, 'refusing', server)
        if (wrong.length > 0) odd.push({ wrong, ...outcome })
      }
    }
    try {
      await Promise.all([playNext(), playNext(), playNext()])
      expect(odd).toEqual([])
      expect(markedProcesses(`HOME=${folder.path}`)).toEqual([])
    } finally {
      await server.stop()
    }
  })

  it('09.1 of the server: 78 for what it cannot use, 2 for what is no option', async () => {
    const random = createRandom(seed)
    const options = await readServerOptions()
    for (let round = 0; round < SERVERS; round += 1) {
      const args = makeServerLine(random, options).map(passable)
      const { code, stdout, stderr } = await spawnCli(args, { HOME: folder.path }, { cwd: folder.path })
      const isHelp = stdout.startsWith('Usage: svc serve')
      const expected = isHelp ? 0 : stderr.startsWith('error: ') ? 2 : 78
      expect({ args, code, stdout: isHelp ? '' : stdout, stderr }).toEqual({
        args,
        code: expected,
        stdout: '',
        stderr: expect.not.stringMatching(internals),
      })
      expect(stderr).not.toMatch(obeyed)
    }
  })
})
