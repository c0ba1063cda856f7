/** Rows about deleting nine tenths of a million executions while the server works. */
import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { waitFor } from '../helpers/wait.ts'
import { mb, ms, perSecond, quantile, times, type Row } from './report.ts'
import { connect, runCommand, startBenchServer, type Client } from './server.ts'

const KINDS = ['executions', 'trigger-instances', 'traces', 'rule-enforcements']
const SAMPLE_MS = 100
const RECLAIM_WITHIN_MS = 600_000
const LIMIT = 1.2

interface Served {
  reads: number[]
  runs: number[]
}

/** @param before wire timestamp: nine tenths of the executions are older */
export async function purging(folder: string, before: string): Promise<Row[]> {
  const size = (name: string): number => statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0
  const server = await startBenchServer({ basePath: folder })
  const client = await connect(server.port)
  const quiet = await serve(client, () => size('svc.db') >= 0, 300)
  await server.loopDelay()
  const fileBefore = size('svc.db')
  let largestLog = 0
  const watch = setInterval(() => (largestLog = Math.max(largestLog, size('svc.db-wal'))), SAMPLE_MS)
  let isPurging = true
  const serving = serve(client, () => isPurging)
  const started = performance.now()
  let records = 0
  for (const kind of KINDS) records += await purge(client, kind, before)
  const seconds = (performance.now() - started) / 1000
  isPurging = false
  const busy = await serving
  const delay = await server.loopDelay()

  // It is told when the last of a kind has gone, and goes on by itself.
  let last = -1
  await waitFor(
    'the file to stay as it is',
    async () => {
      await new Promise((resolve) => setTimeout(resolve, 3000))
      const isSame = size('svc.db') === last
      last = size('svc.db')
      return isSame && last < fileBefore
    },
    RECLAIM_WITHIN_MS,
  )
  clearInterval(watch)
  const reclaimed = (performance.now() - started) / 1000 - seconds
  const logAfter = size('svc.db-wal')
  client.close()
  await server.stop()
  expectGone(folder, before)
  const live = compactSize(folder)
  const fileAfter = size('svc.db')
  return [
    {
      work: 'deleting 900,000 of 1,000,000 executions with traces and trigger instances: the file, against what is left in it',
      ours: mb(fileAfter),
      reference: `the same records in a new file: ${mb(live)}`,
      budget: `≤ ${LIMIT} × (is ${times(fileAfter / live)})`,
      isMet: fileAfter <= LIMIT * live,
      note: `It had ${mb(fileBefore)}. The room was given back within ${reclaimed.toFixed(0)} s after the last deletion.`,
    },
    {
      work: 'reads meanwhile, p99',
      ours: ms(quantile(busy.reads, 0.99)),
      reference: `the same before: ${ms(quantile(quiet.reads, 0.99))}`,
      budget: '≤ 50 ms',
      isMet: quantile(busy.reads, 0.99) <= 50,
      note: `${perSecond(records / seconds)} records were deleted; event-loop delay p99 ${ms(delay.p99)}, at most ${ms(delay.max)}.`,
    },
    {
      work: 'core.local echo meanwhile, p99',
      ours: ms(quantile(busy.runs, 0.99)),
      reference: `the same before: ${ms(quantile(quiet.runs, 0.99))}`,
      budget: '≤ 100 ms',
      isMet: quantile(busy.runs, 0.99) <= 100,
    },
    {
      work: 'the write-ahead log, at its longest meanwhile',
      ours: mb(largestLog),
      reference: `afterwards ${mb(logAfter)}`,
      budget: '≤ 100 MB',
      isMet: largestLog <= 100e6,
    },
  ]
}

async function purge(client: Client, kind: string, before: string): Promise<number> {
  let records = 0
  for (let after: string | null = ''; after !== null;) {
    const answer: { records: number; next: string | null } = await client.call('POST', `/v1/purge/${kind}`, {
      before,
      after,
    })
    records += answer.records
    after = answer.next
  }
  return records
}

/** What others get of the server, as long as `goesOn`; at least so many of each. */
async function serve(client: Client, goesOn: () => boolean, most = Infinity): Promise<Served> {
  const served: Served = { reads: [], runs: [] }
  while (goesOn() && served.reads.length < most) {
    const read = performance.now()
    await client.call('GET', '/v1/executions/last')
    served.reads.push(performance.now() - read)
    const run = performance.now()
    await runCommand(client, 'echo hi')
    served.runs.push(performance.now() - run)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return served
}

/** @throws Error when something is still there that was to go, and nothing of what was measured would be true */
function expectGone(folder: string, before: string): void {
  const connection = new Sqlite(join(folder, 'svc.db'), { readonly: true })
  try {
    const left = connection.prepare('select count(*) from executions where end_timestamp < ?').pluck().get(before)
    if (left !== 0) throw new Error(`${String(left)} executions are left that were to be purged`)
  } finally {
    connection.close()
  }
}

/** Bytes of a file that has nothing but what is left. */
function compactSize(folder: string): number {
  const copy = join(folder, 'compact.db')
  const connection = new Sqlite(join(folder, 'svc.db'))
  try {
    connection.prepare('vacuum into ?').run(copy)
    return statSync(copy).size
  } finally {
    connection.close()
    rmSync(copy, { force: true })
  }
}
