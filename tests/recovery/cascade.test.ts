/**
 * Webhook → rule → execution → ActionTrigger → rule → execution, with re-runs in between, while the server is killed at
 * random points: every instance is enforced exactly once, and each cascade is one trace with exact causes.
 * Every title shows the seed; `SVC_TEST_SEED=<seed>` makes the same choices again.
 */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findDamage, notFinal, withDatabase } from '../helpers/audit.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { createRandom, seedOfRun, type Random } from '../helpers/random.ts'
import { startServer, type ExecutionAnswer, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { rounds } from '../helpers/tiers.ts'

const KILLS = rounds({ daily: 2, full: 100 })
const LANES = 2
const POSTS_PER_LIFE = 16
/** Answered in every second life before the server may be killed, and then a re-run. */
const CERTAIN_POSTS = 3
/** From the last request that a server gets to see until it is killed, at most. */
const LAST_REQUEST_MS = 50
const seed = seedOfRun()

const settings = { 'scheduler.sleep_interval': '0.2', 'log.level': 'WARNING' }

const FIRST = 'default.first'
const SECOND = 'default.second'
const ACTION_TRIGGER = 'core.svc.generic.actiontrigger'

function rulesFor(folder: string): object[] {
  return [
    {
      name: 'first',
      enabled: true,
      trigger: { type: 'core.svc.webhook', parameters: { url: 'job' } },
      criteria: { 'trigger.body.n': { type: 'gt', pattern: 0 } },
      action: { ref: 'core.local', parameters: { cmd: `echo {{ trigger.body.n }} >> ${join(folder, 'runs')}` } },
    },
    {
      name: 'second',
      enabled: true,
      trigger: { type: ACTION_TRIGGER },
      criteria: { 'trigger.action_ref': { type: 'eq', pattern: 'core.local' } },
      action: { ref: 'core.noop' },
    },
  ]
}

interface Life {
  /** Sent, and sent again by later servers until it was answered. */
  unanswered: Set<number>
  jobs: number
  /** Executions that were answered to be run again: the original's id by the new one's. */
  reruns: Map<string, string>
}

interface Instance {
  id: string
  trigger: string
  trigger_type: string
  status: string
  trace_id: string
  payload: string
}

interface Enforcement {
  rule_ref: string
  rule_id: string
  trigger_instance_id: string
  execution_id: string | null
  status: string
  failure_reason: string | null
}

interface Run {
  id: string
  action_ref: string
  status: string
  trace_id: string
  trigger_instance: string | null
  context: string
}

interface Component {
  trace_id: string
  kind: string
  object_id: string
  caused_by_type: string | null
  caused_by_id: string | null
}

interface Rows {
  instances: Instance[]
  enforcements: Enforcement[]
  runs: Run[]
  traces: { id: string; trace_tag: string }[]
  components: Component[]
}

function readEverything(basePath: string): Rows {
  return withDatabase(basePath, (database) => {
    const all = <T>(sql: string): T[] => database.prepare<[], T>(sql).all()
    return {
      instances: all('select * from trigger_instances order by id'),
      enforcements: all('select * from rule_enforcements order by id'),
      runs: all('select id, action_ref, status, trace_id, trigger_instance, context from executions order by id'),
      traces: all('select id, trace_tag from traces'),
      components: all('select * from trace_components order by n'),
    }
  })
}

/** In one look: between two, the one could bring about what the other has just not seen. */
const isSettled = (basePath: string): boolean =>
  withDatabase(
    basePath,
    (database) =>
      database
        .prepare(
          `select 1 where exists (select 1 from executions where ${notFinal})
             or exists (select 1 from trigger_instances where status = 'pending')`,
        )
        .all().length === 0,
  )

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item])
  return groups
}

/** Payloads of the two kinds there are. */
const payloadOf = (instance: Instance): { body?: { n: number }; execution_id?: string; action_ref?: string } =>
  JSON.parse(instance.payload) as ReturnType<typeof payloadOf>

function problemsOf(basePath: string, life: Life): string[] {
  const rows = readEverything(basePath)
  const problems = findDamage(basePath)
  const runById = new Map(rows.runs.map((run) => [run.id, run]))
  const enforcementsOf = groupBy(rows.enforcements, (enforcement) => enforcement.trigger_instance_id)
  const instancesOfRun = groupBy(rows.instances, (instance) => payloadOf(instance).execution_id ?? '')
  const startedBy = groupBy(rows.runs, (run) => run.trigger_instance ?? '')

  const hooks = rows.instances.filter((instance) => instance.trigger_type === 'core.svc.webhook')
  const hooksOfJob = groupBy(hooks, (instance) => String(payloadOf(instance).body?.n))
  for (let n = 1; n <= life.jobs; n++) {
    const count = hooksOfJob.get(String(n))?.length ?? 0
    if (count !== 1) problems.push(`job ${n} has ${count} trigger instances`)
  }
  if (hooks.length !== life.jobs) problems.push(`${hooks.length} webhook instances for ${life.jobs} jobs`)

  for (const instance of rows.instances) {
    const { action_ref: actionRef } = payloadOf(instance)
    const rule = instance.trigger_type === 'core.svc.webhook' ? FIRST : actionRef === 'core.local' ? SECOND : undefined
    const enforced = enforcementsOf.get(instance.id) ?? []
    if (instance.status !== 'processed') problems.push(`${instance.id} is ${instance.status}`)
    if (enforced.map(({ rule_ref }) => rule_ref).join() !== (rule ?? '')) {
      problems.push(
        `${instance.id} was enforced by "${enforced.map(({ rule_ref }) => rule_ref).join()}", not by ${rule}`,
      )
    }
    const started = startedBy.get(instance.id) ?? []
    if (started.map(({ id }) => id).join() !== enforced.map(({ execution_id }) => execution_id).join()) {
      problems.push(`${instance.id} started ${started.length} executions for ${enforced.length} enforcements`)
    }
  }
  for (const { status, failure_reason } of rows.enforcements) {
    if (status !== 'succeeded') problems.push(`an enforcement failed: ${failure_reason}`)
  }
  for (const run of rows.runs) {
    const count = instancesOfRun.get(run.id)?.length ?? 0
    if (count !== 1) problems.push(`execution ${run.id} (${run.action_ref}, ${run.status}) has ${count} ActionTriggers`)
    // Columns that the server writes as JSON of this shape.
    const { 're-run': rerun } = JSON.parse(run.context) as { 're-run'?: { ref: string } }
    if (run.trigger_instance === null && rerun === undefined) problems.push(`nobody asked for execution ${run.id}`)
    if (rerun !== undefined && run.trace_id !== runById.get(rerun.ref)?.trace_id) {
      problems.push(`re-run ${run.id} has left the trace`)
    }
  }
  for (const id of life.reruns.keys()) if (!runById.has(id)) problems.push(`re-run ${id} is not stored`)
  return [...problems, ...problemsOfTraces(rows, life, runById)]
}

function problemsOfTraces(rows: Rows, life: Life, runById: ReadonlyMap<string, Run>): string[] {
  const problems: string[] = []
  const tags = new Set(rows.traces.map(({ trace_tag: tag }) => tag))
  if (rows.traces.length !== life.jobs || tags.size !== life.jobs) {
    problems.push(`${rows.traces.length} traces with ${tags.size} tags for ${life.jobs} jobs`)
  }
  const instanceById = new Map(rows.instances.map((instance) => [instance.id, instance]))
  const show = ({ trace_id, kind, object_id, caused_by_type, caused_by_id }: Component): string =>
    [trace_id, kind, object_id, caused_by_type ?? '', caused_by_id ?? ''].join(' ')
  const expected = [
    ...rows.instances.map((instance) => {
      const cause = payloadOf(instance).execution_id
      const caused = cause === undefined ? ['', ''] : ['action_execution', cause]
      return [instance.trace_id, 'trigger_instance', instance.id, ...caused].join(' ')
    }),
    ...rows.enforcements.map(({ rule_id: rule, trigger_instance_id: instance }) =>
      [instanceById.get(instance)?.trace_id, 'rule', rule, 'trigger_instance', instance].join(' '),
    ),
    ...rows.runs.map((run) => {
      const enforcement = rows.enforcements.find(({ execution_id }) => execution_id === run.id)
      const caused = enforcement ? ['rule', `${enforcement.rule_id}:${enforcement.trigger_instance_id}`] : ['', '']
      return [run.trace_id, 'execution', run.id, ...caused].join(' ')
    }),
  ]
  const found = rows.components.map(show)
  const missing = expected.filter((line) => !found.includes(line))
  const foreign = found.filter((line) => !expected.includes(line))
  if (missing.length + foreign.length > 0)
    problems.push(`components missing: ${missing.join('; ')}; foreign: ${foreign.join('; ')}`)
  if (found.length !== expected.length) problems.push(`${found.length} components instead of ${expected.length}`)

  for (const instance of rows.instances) {
    const cause = payloadOf(instance).execution_id
    if (cause !== undefined && runById.get(cause)?.trace_id !== instance.trace_id) {
      problems.push(`ActionTrigger ${instance.id} is in another trace than its execution`)
    }
  }
  return problems
}

describe('a cascade', () => {
  const folders: TemporaryFolder[] = []
  const servers = new Set<TestServer>()

  beforeAll(() => {
    for (let n = 0; n < LANES; n++) folders.push(makeFolder())
  })
  afterAll(async () => {
    for (const server of servers) await server.stop('SIGKILL')
    for (const folder of folders) folder.remove()
  })

  async function post(server: TestServer, n: number): Promise<void> {
    const answer = await server.call(
      'POST',
      '/v1/webhooks/job',
      { n },
      {
        'Svc-Trace-Tag': `job-${n}`,
        'Idempotency-Key': `key-${n}`,
      },
    )
    if (answer.status !== 202) throw new Error(`job ${n} was not accepted (${answer.status}): ${answer.text}`)
  }

  /** @returns whether there was an execution to run again */
  async function rerunSome(server: TestServer, random: Random, life: Life): Promise<boolean> {
    const known = await server.call<ExecutionAnswer[]>('GET', '/v1/executions?action=core.local&limit=20')
    const original = known.body[random.below(known.body.length)]
    if (original === undefined) return false
    const answer = await server.call<ExecutionAnswer>('POST', `/v1/executions/${original.id}/re_run`, {})
    if (answer.status !== 201) throw new Error(`not run again (${answer.status}): ${answer.text}`)
    life.reruns.set(answer.body.id, original.id)
    return true
  }

  /** However soon the server is killed, this much of the cascade was begun. */
  async function beginCertainly(server: TestServer, random: Random, life: Life): Promise<void> {
    for (let count = 0; count < CERTAIN_POSTS; count++) await post(server, (life.jobs += 1))
    await waitFor('an execution to run again', () => rerunSome(server, random, life))
  }

  /** Sends jobs until the server is killed: soon after a random number of requests, however slow the machine is. */
  async function liveAndDie(server: TestServer, random: Random, life: Life): Promise<void> {
    let isDead = false
    const kill = (): void => {
      if (isDead) return
      isDead = true
      process.kill(server.pid, 'SIGKILL')
    }
    let timer: NodeJS.Timeout | undefined
    const again = [...life.unanswered]
    const last = random.below(POSTS_PER_LIFE)
    let left = POSTS_PER_LIFE
    const send = async (): Promise<void> => {
      while (left > 0 && !isDead) {
        left -= 1
        if (left === last) timer = setTimeout(kill, random.below(LAST_REQUEST_MS))
        try {
          if (random.once(6)) {
            await rerunSome(server, random, life)
            continue
          }
          const n = again.pop() ?? (life.jobs += 1)
          life.unanswered.add(n)
          await post(server, n)
          life.unanswered.delete(n)
        } catch (error) {
          if (!isDead) throw error
        }
      }
    }
    try {
      await Promise.all([send(), send(), send(), send()])
      await server.exited
    } finally {
      clearTimeout(timer)
      kill()
      await server.exited
    }
  }

  async function runLane(random: Random, basePath: string): Promise<Life> {
    const life: Life = { unanswered: new Set(), jobs: 0, reruns: new Map() }
    const start = async (): Promise<TestServer> => {
      const server = await startServer({ basePath, settings })
      servers.add(server)
      return server
    }
    const first = await start()
    for (const rule of rulesFor(basePath)) {
      const answer = await first.call('POST', '/v1/rules', rule)
      expect(answer).toMatchObject({ status: 201 })
    }
    await first.stop()
    servers.delete(first)
    for (let n = 0; n < KILLS / LANES; n++) {
      const server = await start()
      // The others may be killed by their first request, while they still do what was left to them.
      if (n % 2 === 0) await beginCertainly(server, random, life)
      await liveAndDie(server, random, life)
      servers.delete(server)
    }
    const last = await start()
    for (const n of life.unanswered) await post(last, n)
    await waitFor('everything to be processed', () => isSettled(basePath), 300_000)
    const { code } = await last.stop()
    servers.delete(last)
    expect(code).toBe(0)
    expect(problemsOf(basePath, life)).toEqual([])
    return life
  }

  it(`is enforced exactly once over ${KILLS} kills (SVC_TEST_SEED=${seed})`, { timeout: 1_200_000 }, async () => {
    const ends = await Promise.allSettled(
      folders.map((folder, index) => runLane(createRandom(seed + index), folder.path)),
    )
    const lives = ends.map((end) => {
      if (end.status === 'rejected') throw end.reason
      return end.value
    })
    // Else nothing of the above was put to the test.
    expect(lives.reduce((sum, { jobs }) => sum + jobs, 0)).toBeGreaterThan(KILLS)
    expect(lives.reduce((sum, { reruns }) => sum + reruns.size, 0)).toBeGreaterThanOrEqual(KILLS / 2)
  })
})
