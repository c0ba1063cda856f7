/**
 * The server is killed at random moments while rules retry, overlap and notify. Afterwards each event has been enforced
 * once per rule, each job has the attempts that its rows owe, runs that must not overlap did not, and each end of a job was
 * told exactly once.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { findDamage, notFinal, readRows, withDatabase } from '../helpers/audit.ts'
import { makeFolder } from '../helpers/folders.ts'
import { createRandom, seedOfRun, type Random } from '../helpers/random.ts'
import { startReceiver, type Receiver } from '../helpers/receiver.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

/** `SVC_TEST_KILLS` for a shorter or longer search. */
const KILLS = Number(process.env['SVC_TEST_KILLS'] ?? 100)
const LONGEST_LIFE_MS = 600
const EVENTS = 8
const ATTEMPTS = 3
const seed = seedOfRun()

const settings = {
  'actionrunner.actions_pool_size': '8',
  'actionrunner.shutdown_grace_seconds': '0',
  'notifications.digest_threshold': '0',
  'rules.max_cascade': '0',
  'log.level': 'ERROR',
}

const retry = { attempts: ATTEMPTS, delay: '50ms' }
const rules: Readonly<Record<string, { retry?: object; overlap?: string }>> = {
  flaky: { retry },
  skips: { retry, overlap: 'skip' },
  queues: { retry, overlap: 'queue' },
  replaces: { retry, overlap: 'replace' },
}

interface Run {
  id: string
  status: string
  /** Its name. */
  rule: string
  instance: string
  retry_of: string | undefined
  attempt: number
  log: { status: string; timestamp: string }[]
}

interface Told {
  id: string
  execution: string
  status: string
  occasion: string
}

interface Enforced {
  id: string
  rule: string
  instance: string
  execution: string | null
  status: string
}

function read(basePath: string): { runs: Run[]; told: Told[]; enforced: Enforced[]; instances: string[] } {
  return withDatabase(basePath, (database) => {
    const all = <T>(query: string): T[] => database.prepare<[], T>(query).all()
    const rows = all<Record<'id' | 'status' | 'rule' | 'instance' | 'liveaction' | 'log', string>>(
      'select id, status, rule, trigger_instance as instance, liveaction, log from executions where rule is not null order by id',
    )
    const runs = rows.map(({ liveaction, log, ...row }) => {
      // Columns that the server writes as JSON of these shapes.
      const { attempt = 1, retry_of } = JSON.parse(liveaction) as { attempt?: number; retry_of?: string }
      return { ...row, attempt, retry_of, log: JSON.parse(log) as Run['log'] }
    })
    return {
      runs,
      told: all<Told>('select id, execution, status, occasion from notifications order by id'),
      enforced: all<Enforced>(
        'select id, rule_ref as rule, trigger_instance_id as instance, execution_id as execution, status from rule_enforcements',
      ),
      instances: all<{ id: string }>(
        "select id from trigger_instances where trigger = 'jobs.event' and status = 'processed'",
      ).map(({ id }) => id),
    }
  })
}

async function makeRules(server: TestServer): Promise<void> {
  await server.call('POST', '/v1/triggertypes', { name: 'event', pack: 'jobs' })
  for (const [name, running] of Object.entries(rules)) {
    const answer = await server.call('POST', '/v1/rules', {
      name,
      pack: 'jobs',
      enabled: true,
      trigger: { type: 'jobs.event' },
      notify: [{ use: 'hook', on: ['all'] }],
      action: {
        ref: 'core.local',
        parameters: { cmd: 'sleep 0.0{{ trigger.wait }}; exit {{ trigger.code }}' },
        ...running,
      },
    })
    expect([answer.text, answer.status]).toEqual([answer.text, 201])
  }
}

async function liveAndDie(server: TestServer, random: Random): Promise<number> {
  const timer = setTimeout(() => process.kill(server.pid, 'SIGKILL'), 20 + random.below(LONGEST_LIFE_MS))
  let isDead = false
  let accepted = 0
  void server.exited.then(() => (isDead = true))
  for (let n = 0; n < EVENTS && !isDead; n++) {
    const payload = { wait: random.below(10), code: random.pick([0, 1, 1]) }
    const body = { trigger: 'jobs.event', payload }
    const answer = await server.call('POST', '/v1/webhooks/svc', body).catch(() => undefined)
    if (answer?.status === 202) accepted += 1
  }
  await server.exited
  clearTimeout(timer)
  return accepted
}

/** Those of a rule that ran at the same time, by what was recorded. */
function overlapsOf(runs: readonly Run[]): string[] {
  const spans = runs.flatMap(({ id, log }) =>
    log.flatMap(({ status, timestamp }, index) => {
      if (status !== 'running') return []
      // A run that is canceled goes on until its processes are gone.
      const end = log.slice(index + 1).find((entry) => entry.status !== 'canceling')
      return end === undefined ? [] : [{ id, from: timestamp, to: end.timestamp }]
    }),
  )
  spans.sort((a, b) => (a.from < b.from ? -1 : 1))
  return spans.flatMap(({ id, to }, index) => {
    const next = spans[index + 1]
    return next !== undefined && next.from < to ? [`${id} still ran when ${next.id} began`] : []
  })
}

function problemsOf({ runs, told, enforced, instances }: ReturnType<typeof read>): string[] {
  const problems: string[] = []
  for (const instance of instances) {
    for (const name of Object.keys(rules)) {
      const found = enforced.filter((one) => one.instance === instance && one.rule === `jobs.${name}`)
      if (found.length !== 1) problems.push(`${instance} was enforced ${found.length} times by ${name}`)
      const [only] = found
      const firsts = runs.filter((run) => run.instance === instance && run.rule === name && run.retry_of === undefined)
      const owed = only?.status === 'succeeded' ? 1 : 0
      if (firsts.length !== owed) problems.push(`${instance} has ${firsts.length} runs of ${name}, not ${owed}`)
    }
  }
  for (const { id, status, attempt, log, rule } of runs) {
    if (!['succeeded', 'failed', 'canceled', 'abandoned'].includes(status)) problems.push(`${id} is ${status}`)
    const begun = log
      .map((entry) => entry.status)
      .join(' ')
      .replaceAll('running requested', '')
      .split(' ')
    const count = begun.filter((one) => one === 'running').length
    if (count > 1) problems.push(`${id} ran ${count} times`)
    const retries = runs.filter(({ retry_of: of }) => of === id)
    const isRetried = status === 'failed' && attempt < ATTEMPTS
    if (retries.length !== (isRetried ? 1 : 0))
      problems.push(`${id} of ${rule}, ${status}, has ${retries.length} retries`)
    if (retries.some((retry) => retry.attempt !== attempt + 1)) problems.push(`${id}: its retry counts wrong`)
    const of = told.filter(({ execution }) => execution === id)
    const isTold = !isRetried && status !== 'canceled'
    if (of.length !== (isTold ? 1 : 0)) problems.push(`${id} of ${rule}, ${status}, was told ${of.length} times`)
    for (const { occasion } of of) {
      const fits = status === 'succeeded' ? ['succeeded', 'recovered'] : ['failed']
      if (!fits.includes(occasion)) problems.push(`${id}, ${status}, was told as ${occasion}`)
    }
  }
  for (const name of ['skips', 'queues', 'replaces']) {
    problems.push(...overlapsOf(runs.filter(({ rule }) => rule === name)))
  }
  const queued = runs.filter(({ rule }) => rule === 'queues')
  problems.push(...queued.filter(({ status }) => status === 'canceled').map(({ id }) => `${id} of queues was canceled`))
  return problems
}

it(`keeps what rules promise over ${KILLS} kills (SVC_TEST_SEED=${seed})`, { timeout: 1_800_000 }, async () => {
  const random = createRandom(seed)
  const folder = makeFolder()
  const basePath = folder.path
  const receiver = await startReceiver()
  const accepted = new Map<string, number>()
  const count: Receiver['answer'] = ({ headers }) => {
    const id = String(headers['webhook-id'])
    accepted.set(id, (accepted.get(id) ?? 0) + 1)
    return { status: 200 }
  }
  receiver.answer = (request, n) => (random.below(6) === 0 ? { status: 503 } : count(request, n))
  mkdirSync(join(basePath, 'notifications'))
  writeFileSync(
    join(basePath, 'notifications/hook.yaml'),
    `name: hook\nchannel: webhook\nwebhook_url: ${receiver.url}\n`,
  )
  let server: TestServer | undefined
  const start = async (): Promise<TestServer> => (server = await startServer({ basePath, settings }))
  try {
    const first = await start()
    await makeRules(first)
    let events = await liveAndDie(first, random)
    /** By id: how often svc was killed before it knew the answer. */
    const unanswered = new Map<string, number>()
    for (let kill = 1; kill < KILLS; kill++) {
      for (const { id, status } of read(basePath).told)
        if (status === 'sending') unanswered.set(id, (unanswered.get(id) ?? 0) + 1)
      events += await liveAndDie(await start(), random)
    }
    for (const { id, status } of read(basePath).told)
      if (status === 'sending') unanswered.set(id, (unanswered.get(id) ?? 0) + 1)
    receiver.answer = count
    const last = await start()
    await waitFor(
      'every event, execution and notification to be done with',
      () =>
        readRows(basePath, notFinal).size === 0 &&
        read(basePath).told.every(({ status }) => status === 'sent') &&
        withDatabase(basePath, (database) => {
          const left = "select count(*) as n from trigger_instances where status = 'pending'"
          return database.prepare<[], { n: number }>(left).get()?.n === 0
        }),
      300_000,
    )
    expect((await last.stop()).code).toBe(0)
    const found = read(basePath)
    expect(problemsOf(found)).toEqual([])
    for (const { id } of found.told) {
      const times = accepted.get(id) ?? 0
      expect([id, times >= 1 && times <= 1 + (unanswered.get(id) ?? 0)]).toEqual([id, true])
    }
    expect([...accepted.keys()].toSorted()).toEqual(found.told.map(({ id }) => id).toSorted())
    expect(findDamage(basePath)).toEqual([])
    // Else nothing of the above was put to the test.
    expect(found.instances.length).toBeGreaterThanOrEqual(events)
    expect(found.runs.filter(({ retry_of: of }) => of !== undefined).length).toBeGreaterThan(0)
    expect(found.enforced.filter(({ status }) => status === 'skipped').length).toBeGreaterThan(0)
    expect(
      found.runs.filter(({ status, rule }) => status === 'canceled' && rule === 'replaces').length,
    ).toBeGreaterThan(0)
  } finally {
    await server?.stop('SIGKILL')
    await receiver.close()
    folder.remove()
  }
})
