/**
 * `npm run soak [-- --minutes 20] [-- --seed 1]`: mixed load for a long time, with restarts, purges, backups and idle clients.
 *
 * In the first half the server is stopped and killed again and again; in the second it is left alone, and what it takes of the
 * machine is compared: the middle of that time with its end. Purges go on all the time, so that as much goes as comes. At the
 * very end it is killed once more. Nothing that was accepted may be lost, stuck, or other than it should be; exits with 1 else.
 */
import { spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { availableParallelism, totalmem } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { makeFolder } from '../helpers/folders.ts'
import { createRandom, seedOfRun } from '../helpers/random.ts'
import { executable, startServer, type TestServer } from '../helpers/server.ts'
import type { EventClient } from '../helpers/sse.ts'
import { createLedger } from './ledger.ts'
import { look, openIdle, prepare, sendOne } from './load.ts'
import { sampleLine, takeSample, trendsOf, type Sample } from './samples.ts'

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '20' }, seed: { type: 'string' } } })
const minutes = Number(values.minutes)
if (!(minutes > 0)) throw new Error('--minutes must be a number above 0')
const seed = values.seed === undefined ? seedOfRun() : Number(values.seed)
const random = createRandom(seed)

const WORKERS = 6
const IDLE_CLIENTS = 50
const PATIENCE_MS = 120_000
/** So old an execution is purged: long after everybody has looked at it. */
const KEEP_SECONDS = 150
const SAMPLE_MS = 5000
const PURGE_MS = 15_000
const BACKUP_MS = 120_000
const RESTART_MS = Math.min(60_000, (minutes * 60_000) / 12)

const folder = makeFolder()
const ledger = createLedger(PATIENCE_MS)
const settings = {
  'log.level': 'WARNING',
  // A port for each start would be one that another program has taken meanwhile.
  'metrics.driver': 'noop',
}
const startedAt = performance.now()
const endsAt = startedAt + minutes * 60_000
const halfAt = startedAt + minutes * 30_000
const seconds = (): number => (performance.now() - startedAt) / 1000
const counts = { requests: 0, cut: 0, restarts: 0, purges: 0, backups: 0 }
const problems: string[] = []
const samples: Sample[] = []

let server: TestServer
/** While it is away. */
let isDown = true
let idle: EventClient[] = []

async function start(): Promise<void> {
  server = await startServer({ basePath: folder.path, settings })
  idle = await openIdle(server, IDLE_CLIENTS)
  isDown = false
}

async function restart(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  isDown = true
  // Noted before and after: what is accepted meanwhile may be abandoned, too.
  ledger.noteRestart()
  const { code } = await server.stop(signal)
  if (signal === 'SIGTERM' && code !== 0) problems.push(`the server ended with ${code} after TERM`)
  for (const client of idle) client.close()
  await start()
  ledger.noteRestart()
  counts.restarts += 1
}

/** Runs a command of the client for operators. */
function operate(...args: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const command = spawn(process.execPath, [executable, ...args, '--config-file', server.configFile], {
      env: { PATH: process.env['PATH'] ?? '', HOME: folder.path },
    })
    let output = ''
    command.stdout.on('data', (chunk) => (output += String(chunk)))
    command.stderr.on('data', (chunk) => (output += String(chunk)))
    command.once('close', (code) =>
      code === 0 ? resolve(output) : reject(new Error(`svc ${args.join(' ')} ended with ${code}: ${output}`)),
    )
  })
}

/** Work that goes on beside the rest until the end. What fails while the server is away is not its fault. */
async function during(pauseMs: number, work: () => Promise<void>): Promise<void> {
  while (performance.now() < endsAt) {
    const before = counts.restarts
    if (!isDown) {
      try {
        await work()
      } catch (error) {
        counts.cut += 1
        if (!isDown && counts.restarts === before) {
          problems.push(error instanceof Error ? error.message : String(error))
          if (problems.length > 50) throw error
        }
      }
    }
    await delay(Math.max(0, Math.min(pauseMs, endsAt - performance.now())))
  }
}

async function countExecutions(): Promise<number> {
  const answer = await server.call('GET', '/v1/executions?limit=1')
  return Number(answer.headers.get('x-total-count'))
}

process.stdout.write(
  `Node ${process.versions.node}, ${availableParallelism()} cores, ${(totalmem() / 2 ** 30).toFixed(0)} GiB; ` +
    `${minutes} minutes, ${WORKERS} clients, ${IDLE_CLIENTS} idle ones, kept ${KEEP_SECONDS} s, seed ${seed}\n`,
)
await start()
await prepare(server!)
let linesUntil = 0
const settling = during(500, () => ledger.settle((entry) => look(server, entry)))
await Promise.all([
  ...Array.from({ length: WORKERS }, () =>
    during(20, async () => {
      counts.requests += 1
      await sendOne(server, ledger, random)
    }),
  ),
  settling,
  during(PURGE_MS, async () => {
    const before = new Date(Date.now() - KEEP_SECONDS * 1000).toISOString()
    await operate('purge', 'executions', '--before', before, '-j')
    await operate('purge', 'trigger-instances', '--before', before, '-j')
    await operate('purge', 'rule-enforcements', '--before', before, '-j')
    await operate('purge', 'traces', '--before', before, '-j')
    counts.purges += 1
  }),
  during(BACKUP_MS, async () => {
    await operate('backup')
    counts.backups += 1
  }),
  during(SAMPLE_MS, async () => {
    const sample = takeSample(server.pid, folder.path, seconds(), await countExecutions())
    if (performance.now() > halfAt) samples.push(sample)
    if (seconds() < linesUntil) return
    linesUntil = seconds() + 30
    const { open, settled, faults } = ledger
    const bad = faults.lost.length + faults.stuck.length + faults.wrong.length
    process.stdout.write(`${sampleLine(sample, `${settled} settled, ${open} open, ${bad} faults`)}\n`)
  }),
  (async () => {
    for (let next = startedAt + RESTART_MS; next < halfAt; next += RESTART_MS) {
      await delay(next - performance.now())
      await restart(counts.restarts % 2 === 0 ? 'SIGTERM' : 'SIGKILL')
    }
  })(),
])
await restart('SIGKILL')
const patience = performance.now() + PATIENCE_MS + 30_000
while (ledger.open > 0 && performance.now() < patience) {
  await ledger.settle((entry) => look(server, entry))
  await delay(200)
}
for (const client of idle) client.close()
const exit = await server!.stop()
if (exit.code !== 0) problems.push(`the server ended with ${exit.code}`)

const { faults, settled, open } = ledger
const { requests, cut, restarts, purges, backups } = counts
process.stdout.write(
  `\n${requests} requests, ${cut} of them cut by restarts; ${restarts} restarts, ${purges} purges, ${backups} backups\n` +
    `${settled} accepted executions and events settled, ${faults.lost.length} lost, ${faults.stuck.length + open} stuck, ` +
    `${faults.wrong.length} wrong\n`,
)
for (const line of [...faults.lost, ...faults.stuck, ...faults.wrong, ...problems].slice(0, 40)) {
  process.stdout.write(`  ${line}\n`)
}
const trends = trendsOf(samples)
process.stdout.write('\nWithout restarts, the middle of the time against its end:\n')
for (const { name, early, late, isFlat } of trends) {
  const figures = `${early.toFixed(1).padStart(8)} → ${late.toFixed(1).padStart(8)}`
  process.stdout.write(`  ${name.padEnd(12)} ${figures}  ${isFlat ? 'flat' : 'GROWS'}\n`)
}
const isGood =
  open + faults.lost.length + faults.stuck.length + faults.wrong.length + problems.length === 0 &&
  trends.every(({ isFlat }) => isFlat)
process.stdout.write(isGood ? '\nthe soak is passed\n' : '\nthe soak is not passed\n')
if (isGood) rmSync(folder.path, { recursive: true, force: true })
else process.stdout.write(`what is left of it is in ${join(folder.path)}\n`)
process.exitCode = isGood ? 0 : 1
