/**
 * The server is killed at random moments, under load, again and again on the same data: what it promised before is kept.
 * Every title shows the seed; `SVC_TEST_SEED=<seed>` makes the same choices again.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import {
  findDamage,
  findProcesses,
  notFinal,
  readOutput,
  readRecordedProcesses,
  readRows,
  readStartTime,
  type OutputRow,
  type RecordedProcesses,
  type Row,
} from '../helpers/audit.ts'
import { arrows, liveAndDie } from './arrows.ts'
import { createLoad, type Job, type Load } from './load.ts'
import { createRandom, seedOfRun, type Random } from '../helpers/random.ts'
import { rounds } from '../helpers/tiers.ts'

const KILLS = rounds({ daily: 4, full: 200 })
/** Each has data and a server of its own; while one waits for a stubborn child to be killed, the other goes on. */
const LANES = 2
const REQUESTS_PER_LIFE = 24
/** From the last request that a server gets to see until it is killed, at most. */
const LAST_REQUEST_MS = 50
/** The delay may be begun by one server and waited out by another, each with a clock of its own. */
const CLOCK_TOLERANCE_MS = 10
const seed = seedOfRun()
const life = { users: 4, acts: REQUESTS_PER_LIFE, lastActMs: LAST_REQUEST_MS, arrows, events: 8 }

const settings = {
  'actionrunner.actions_pool_size': '12',
  'scheduler.sleep_interval': '0.2',
  'log.level': 'WARNING',
}

function statusesOf(row: Row): string[] {
  return row.log.map(({ status }) => status)
}

/** What a start has failed to do by the time it says that it is ready. */
function problemsOfStart(
  server: TestServer,
  load: Load,
  before: Map<string, Row>,
  recorded: RecordedProcesses,
): string[] {
  const problems: string[] = []
  const born = readStartTime(server.pid) ?? 0
  const after = readRows(server.basePath)
  for (const seen of findProcesses(load.token)) {
    if (seen.startTime >= born) continue
    const n = Number(seen.commandLine.split(load.token)[1]?.slice(0, 6))
    const row = [...after.values()].find(({ job }) => job === n)
    problems.push(
      `process of an earlier server: ${JSON.stringify(seen)} of job ${JSON.stringify(load.jobs[n - 1])}, ` +
        `${row === undefined ? 'not stored' : statusesOf(row).join(' ')}, recorded as ${JSON.stringify(recorded.get(row?.id ?? ''))}`,
    )
  }
  for (const { id, status, serverPid } of after.values()) {
    const isOwned = status === 'running' || status === 'canceling'
    if (isOwned && serverPid !== server.pid) problems.push(`${id} is ${status} in the dead server ${serverPid}`)
  }
  for (const [id, earlier] of before) {
    const row = after.get(id)
    const past = statusesOf(earlier).join(' ')
    const now = row === undefined ? '' : statusesOf(row).join(' ')
    const owed = { running: 'abandoned', canceling: 'canceled' }[earlier.status]
    const isQueuedAgain = earlier.status === 'running' && now.startsWith(`${past} requested`)
    const isRight = owed === undefined ? now === past || now.startsWith(`${past} `) : now === `${past} ${owed}`
    if (!isRight && !isQueuedAgain) {
      problems.push(`${id} was "${past}" when the server was killed and is "${now}" now`)
    }
  }
  return problems
}

/** The histories that the state table allows. */
const history =
  /^requested( delayed requested)?( scheduled running requested)*( scheduled( running( canceling)?)?)? (succeeded|failed|timeout|canceled|abandoned)$|^requested delayed canceled$/

/** What is wrong once everything has ended. */
function problemsOfEnd(basePath: string, load: Load): string[] {
  const problems = findDamage(basePath)
  const byJob = new Map<number, Row>()
  for (const row of readRows(basePath).values()) {
    const n = row.job ?? 0
    if (byJob.has(n)) problems.push(`job ${n} was stored twice`)
    if (load.jobs[n - 1] === undefined) problems.push(`nobody asked for job ${n}`)
    byJob.set(n, row)
  }
  const runs = load.runs()
  for (const job of load.jobs) {
    const row = byJob.get(job.n)
    const began = runs.get(job.n) ?? 0
    if (row === undefined) {
      if (job.id !== undefined) problems.push(`job ${job.n} was answered with 201 and is not stored`)
      if (began > 0) problems.push(`job ${job.n} is not stored, yet it ran`)
    } else {
      const found = problemsOfJob(job, row, began, readOutput(basePath, row.id))
      problems.push(...found.map((problem) => `job ${job.n} (${job.kind}, ${statusesOf(row).join(' ')}): ${problem}`))
    }
  }
  return problems
}

function problemsOfJob(job: Job, row: Row, began: number, output: OutputRow[]): string[] {
  const statuses = statusesOf(row)
  const started = row.log.find(({ status }) => status === 'running')?.timestamp
  const waitedMs = started === undefined ? Infinity : Date.parse(started) - Date.parse(row.start_timestamp)
  const stdout = output.map((record) => (record.output_type === 'stdout' ? record.data : '')).join('')
  const hasSucceeded = row.status === 'succeeded'
  const failed: [boolean, string][] = [
    [job.id !== undefined && row.id !== job.id, `was answered as ${job.id} and stored as ${row.id}`],
    [!history.test(statuses.join(' ')), 'impossible history'],
    [row.end_timestamp === null, 'has no end'],
    [row.status === 'abandoned' && started === undefined, 'is abandoned and never ran'],
    [row.status === 'canceled' && !job.isCancelAsked, 'is canceled, and nobody asked for that'],
    [row.status === 'failed' && job.kind !== 'failure', 'failed'],
    [row.status === 'timeout' && job.kind !== 'late' && job.kind !== 'stubborn', 'timed out'],
    [began > (started === undefined ? 0 : 1), `its command was begun ${began} times`],
    [hasSucceeded && began === 0 && job.kind !== 'noop', 'succeeded, and its command was not begun'],
    [waitedMs < job.delayMs - CLOCK_TOLERANCE_MS, `ran after ${waitedMs} ms instead of ${job.delayMs} ms`],
    [output.some(({ seq }, index) => seq !== index + 1), 'its output records are not numbered 1, 2, 3'],
    [!job.stdout.startsWith(stdout), `its output is no beginning of what it wrote: ${shorten(stdout)}`],
    [hasSucceeded && stdout !== job.stdout, `its output is incomplete: ${stdout.length} of ${job.stdout.length}`],
  ]
  return failed.flatMap(([isSo, problem]) => (isSo ? [problem] : []))
}

function shorten(text: string): string {
  return JSON.stringify(text.length > 200 ? `${text.slice(0, 100)} … ${text.slice(-100)}` : text)
}

describe('a server that is killed', () => {
  const lanes = Array.from({ length: LANES }, (_, index) => ({ random: createRandom(seed + index) }))
  const folders: TemporaryFolder[] = []
  const tokens: string[] = []
  const servers = new Set<TestServer>()

  beforeAll(() => {
    for (let n = 0; n < LANES; n++) folders.push(makeFolder())
  })
  afterAll(async () => {
    for (const server of servers) await server.stop('SIGKILL')
    for (const token of tokens) for (const { pid } of findProcesses(token)) process.kill(pid, 'SIGKILL')
    for (const folder of folders) folder.remove()
  })

  async function runLane(random: Random, basePath: string, kills: number): Promise<Load> {
    const load = createLoad(random, basePath)
    tokens.push(load.token)
    const start = async (): Promise<TestServer> => {
      const server = await startServer({ basePath, settings })
      servers.add(server)
      return server
    }
    let before = new Map<string, Row>()
    let recorded: RecordedProcesses = new Map()
    for (let n = 0; n < kills; n++) {
      const server = await start()
      expect(problemsOfStart(server, load, before, recorded)).toEqual([])
      await liveAndDie(server, random, { ...life, act: () => load.post(server) })
      servers.delete(server)
      before = readRows(basePath, notFinal)
      recorded = readRecordedProcesses(basePath)
    }
    const last = await start()
    expect(problemsOfStart(last, load, before, recorded)).toEqual([])
    await waitFor('every execution to end', () => readRows(basePath, notFinal).size === 0, 300_000)
    const { code } = await last.stop()
    servers.delete(last)
    expect(code).toBe(0)
    expect(findProcesses(load.token)).toEqual([])
    return load
  }

  it(`keeps every promise over ${KILLS} kills under load (SVC_TEST_SEED=${seed})`, { timeout: 1_200_000 }, async () => {
    const ends = await Promise.allSettled(
      lanes.map(async ({ random }, index) => {
        const basePath = folders[index]?.path ?? ''
        return { basePath, load: await runLane(random, basePath, KILLS / LANES) }
      }),
    )
    for (const end of ends) {
      if (end.status === 'rejected') throw end.reason
      const { basePath, load } = end.value
      expect(problemsOfEnd(basePath, load)).toEqual([])
    }
  })
})
