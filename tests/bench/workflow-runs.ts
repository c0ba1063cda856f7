/** Rows about running workflows, each beside plain executions of the same run. */
import { readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { microsOf } from '../../src/core/time.ts'
import { writeFlowPack } from '../helpers/flow-pack.ts'
import { mb, median, ms, perSecond, times, type Row } from './report.ts'
import {
  connect,
  finalStatuses,
  makeFolder,
  startBenchServer,
  type BenchServer,
  type Client,
  type Started,
} from './server.ts'

const sequence = (tasks: number): string =>
  `version: 1.0\ntasks:\n${Array.from(
    { length: tasks },
    (_, index) =>
      `  t${index}:\n    action: core.noop\n${index + 1 < tasks ? `    next: [{do: t${index + 1}}]\n` : ''}`,
  ).join('')}`

function fork(tasks: number): string {
  const names = Array.from({ length: tasks }, (_, index) => `t${index}`)
  const all = names.map((name) => `  ${name}: {action: core.noop, next: [{do: after}]}\n`).join('')
  return `version: 1.0\ntasks:\n  begin: {next: [{do: [${names.join(', ')}]}]}\n${all}  after: {join: all, action: core.noop}\n`
}

const definitions = {
  s10: sequence(10),
  s1000: sequence(1_000),
  f100: fork(100),
  f1000: fork(1_000),
  echo10: sequence(10).replaceAll('core.noop', 'core.echo message="hi"'),
  items: {
    parameters: { n: { type: 'integer' } },
    definition: `
version: 1.0
input: [n]
tasks:
  each:
    with: {items: "<% range(ctx(n)).toList() %>", concurrency: 16}
    action: core.noop
`,
  },
  cycle: {
    parameters: { n: { type: 'integer' } },
    definition: `
version: 1.0
input: [n]
vars: [{turn: 0}]
tasks:
  begin: {next: [{do: again}]}
  again:
    action: core.noop
    next:
      - when: <% ctx(turn) < ctx(n) %>
        publish: [{turn: "<% ctx(turn) + 1 %>"}]
        do: again
`,
  },
  carry: {
    parameters: { value: { type: 'string' } },
    definition: sequence(100).replace('version: 1.0\n', 'version: 1.0\ninput: [value]\n'),
  },
}

const ITEMS = 10_000
const PLAIN = 300
const LONG = 1024 * 1024

interface Execution extends Started {
  status: string
  start_timestamp: string
  elapsed_seconds: number
  log: { status: string; timestamp: string }[]
}

export async function runningWorkflows(): Promise<Row[]> {
  const folder = makeFolder()
  writeFlowPack(folder, definitions)
  const server = await startBenchServer({ basePath: folder })
  // Who listens gets all events of all tasks: that is measured elsewhere.
  const client = await connect(server.port, false)
  try {
    return await measure(server, client, folder)
  } finally {
    client.close()
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measure(server: BenchServer, client: Client, folder: string): Promise<Row[]> {
  const run = async (action: string, parameters: object = {}): Promise<Execution> => {
    const { id } = await client.call<Started>('POST', '/v1/executions', { action, parameters })
    const execution = await ended(client, id)
    if (execution.status !== 'succeeded') throw new Error(`${action} ${execution.status}`)
    return execution
  }
  /** Milliseconds. */
  const taking = async (name: string, parameters: object = {}): Promise<number> =>
    (await run(`flow.${name}`, parameters)).elapsed_seconds * 1_000
  const startOf = ({ start_timestamp: start, log }: Execution): number =>
    (microsOf(log.find(({ status }) => status === 'running')?.timestamp ?? start) - microsOf(start)) / 1_000

  for (let warm = 0; warm < 100; warm++) await run('core.noop')
  for (let warm = 0; warm < 5; warm++) await taking('s10')

  const plain: number[] = []
  const plainStarts: number[] = []
  const firstStarts: number[] = []
  const perTask: number[] = []
  for (let round = 0; round < 3; round++) {
    for (let n = 0; n < PLAIN / 3; n++) {
      const execution = await run('core.noop')
      plain.push(execution.elapsed_seconds * 1_000)
      plainStarts.push(startOf(execution))
    }
    perTask.push((await taking('s1000')) / 1_000)
    for (let n = 0; n < 20; n++) {
      const workflow = await run('flow.s10')
      const [first] = await client.call<Execution[]>(
        'GET',
        `/v1/executions?parent=${workflow.id}&limit=1&sort_asc=true&include_attributes=start_timestamp,log`,
      )
      if (first !== undefined) firstStarts.push(startOf({ ...first, start_timestamp: workflow.start_timestamp }))
    }
  }
  const [one, each] = [median(plain), median(perTask)]
  const { early, late } = await drift(client, await run('flow.s1000'))

  const forks = { few: (await taking('f100')) / 100, many: (await taking('f1000')) / 1_000 }
  const plainRate = await rateOf(client, 3_000)
  const before = server.rss()
  const itemsRate = ITEMS / ((await taking('items', { n: ITEMS })) / 1_000)
  const grown = server.rss() - before
  const turns = { few: (await taking('cycle', { n: 100 })) / 100, many: (await taking('cycle', { n: 1_000 })) / 1_000 }
  const size = bytesOf(folder)
  const without = (await taking('carry', { value: '' })) / 100
  const sizeWithout = bytesOf(folder) - size
  const carried = (await taking('carry', { value: 'x'.repeat(LONG) })) / 100
  const added = bytesOf(folder) - size - 2 * sizeWithout
  const ten = await taking('echo10')

  return [
    row('a sequence of 1,000 core.noop, per task', ms(each), `plain ${ms(one)}`, 1.5, each / one),
    row('its last 100 tasks, per task', ms(late), `its first 100 ${ms(early)}`, 1.2, late / early),
    row(
      'a fork of 1,000 and its join, per task',
      ms(forks.many),
      `of 100 ${ms(forks.few)}`,
      1.5,
      forks.many / forks.few,
    ),
    {
      work: `${ITEMS} items, 16 at once, core.noop`,
      ours: perSecond(itemsRate),
      reference: `plain, 16 at once ${perSecond(plainRate)}`,
      budget: `≥ 0.7 × (is ${times(itemsRate / plainRate)})`,
      isMet: itemsRate >= 0.7 * plainRate,
    },
    {
      work: 'memory that they add',
      ours: mb(grown),
      reference: '',
      budget: '≤ 50 MB',
      isMet: grown <= 50e6,
    },
    row('a cycle of 1,000 turns, per turn', ms(turns.many), `of 100 ${ms(turns.few)}`, 1.5, turns.many / turns.few),
    row('1 MiB carried through 100 tasks, per task', ms(carried), `nothing ${ms(without)}`, 1.5, carried / without),
    {
      work: 'what it adds to the files',
      ours: `${(added / 1e6).toFixed(1)} MB`,
      reference: '',
      budget: '≤ 3 MB',
      isMet: added <= 3e6,
    },
    row(
      'POST → the first task runs, p50',
      ms(median(firstStarts)),
      `plain ${ms(median(plainStarts))}`,
      1.3,
      median(firstStarts) / median(plainStarts),
    ),
    { work: 'a workflow of 10 core.echo', ours: ms(ten), reference: '', budget: 'reported', isMet: true },
  ]
}

const row = (work: string, ours: string, reference: string, most: number, ratio: number): Row => ({
  work,
  ours,
  reference,
  budget: `≤ ${most} × (is ${times(ratio)})`,
  isMet: ratio <= most,
})

/** Milliseconds per task at the beginning and at the end of a sequence. */
async function drift(client: Client, { id }: Started): Promise<{ early: number; late: number }> {
  const page = async (isAscending: boolean): Promise<number> => {
    const tasks = await client.call<Execution[]>(
      'GET',
      `/v1/executions?parent=${id}&limit=100&sort_asc=${isAscending}&include_attributes=start_timestamp`,
    )
    const at = tasks.map(({ start_timestamp: start }) => Date.parse(start)).sort((a, b) => a - b)
    return ((at.at(-1) ?? 0) - (at[0] ?? 0)) / (at.length - 1)
  }
  return { early: await page(true), late: await page(false) }
}

async function ended(client: Client, id: string): Promise<Execution> {
  const path = `/v1/executions/${id}?include_attributes=status,start_timestamp,elapsed_seconds,log`
  for (let wait = 2; ; wait = Math.min(50, wait * 1.5)) {
    const execution = await client.call<Execution>('GET', path)
    if (finalStatuses.has(execution.status)) return execution
    await delay(wait)
  }
}

/** Plain executions per second, 16 at once. */
async function rateOf(client: Client, count: number): Promise<number> {
  const begun = performance.now()
  let left = count
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      while (left-- > 0) {
        const { id } = await client.call<Started>('POST', '/v1/executions', { action: 'core.noop' })
        await ended(client, id)
      }
    }),
  )
  return count / ((performance.now() - begun) / 1_000)
}

/** Of the database and its write-ahead log. */
const bytesOf = (folder: string): number =>
  readdirSync(folder)
    .filter((name) => name.startsWith('svc.db'))
    .reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
