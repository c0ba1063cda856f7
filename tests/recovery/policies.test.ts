/**
 * The server is killed at random moments while executions wait because of policies and are run again because of others:
 * afterwards all have run, never more at once than allowed, and whatever has failed was retried exactly as often as it should.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { findDamage, finalStatuses, notFinal, readRows, withDatabase } from '../helpers/audit.ts'
import { makeFolder } from '../helpers/folders.ts'
import { createRandom, seedOfRun, type Random } from '../helpers/random.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

const KILLS = 16
const REQUESTS_PER_LIFE = 12
const LONGEST_LIFE_MS = 500
const THRESHOLD = 2
const MAX_RETRIES = 2
const seed = seedOfRun()

const settings = {
  'actionrunner.actions_pool_size': '6',
  'actionrunner.shutdown_grace_seconds': '0',
  'log.level': 'WARNING',
}

const command = (name: string, more = ''): string =>
  `name: ${name}\nrunner_type: local-shell-cmd\nparameters:\n  host:\n    type: string\n${more}`
const pack: Readonly<Record<string, string>> = {
  'pack.yaml': 'name: crowd\ndescription: d\nversion: 1.0.0\nauthor: a\n',
  'actions/limited.yaml': command('limited'),
  'actions/grouped.yaml': command('grouped'),
  'actions/flaky.yaml': command('flaky'),
}
const policies = [
  { name: 'limited', policy_type: 'action.concurrency', parameters: { threshold: THRESHOLD } },
  { name: 'grouped', policy_type: 'action.concurrency.attr', parameters: { threshold: 1, attributes: ['host'] } },
  {
    name: 'flaky',
    policy_type: 'action.retry',
    parameters: { retry_on: 'failure', max_retry_count: MAX_RETRIES, delay: 0.1 },
  },
]
const actions = policies.map(({ name }) => `crowd.${name}`)

interface Ended {
  id: string
  action_ref: string
  status: string
  liveaction_id: string
  parameters: { host?: string }
  context: { policies?: { retry?: { retry_count: number; retried_liveaction_id: string } } }
  log: { status: string; timestamp: string }[]
}

function readEnded(basePath: string): Ended[] {
  return withDatabase(basePath, (database) =>
    database
      .prepare<[], Record<keyof Ended, string>>(
        'select id, action_ref, status, liveaction_id, parameters, context, log from executions order by id',
      )
      .all()
      .map((row) => ({
        ...row,
        // Columns that the server writes as JSON of these shapes.
        parameters: JSON.parse(row.parameters) as Ended['parameters'],
        context: JSON.parse(row.context) as Ended['context'],
        log: JSON.parse(row.log) as Ended['log'],
      })),
  )
}

/** One execution waits because of a policy, and one was retried, however soon the server is killed. */
async function beginCertainly(server: TestServer): Promise<void> {
  const post = async (action: string, cmd: string): Promise<void> => {
    const answer = await server.call('POST', '/v1/executions', { action, parameters: { cmd } })
    expect([answer.text, answer.status]).toEqual([answer.text, 201])
  }
  for (let n = 0; n < THRESHOLD; n++) await post('crowd.limited', 'sleep 1000')
  await post('crowd.limited', 'true')
  await post('crowd.flaky', 'exit 1')
  await waitFor('a policy to delay and another to retry', () => {
    const rows = readEnded(server.basePath)
    return (
      rows.some(
        ({ action_ref: ref, log }) => ref === 'crowd.limited' && log.some(({ status }) => status === 'delayed'),
      ) && rows.some(({ context }) => context.policies?.retry !== undefined)
    )
  })
}

async function liveAndDie(server: TestServer, random: Random): Promise<number> {
  const timer = setTimeout(() => process.kill(server.pid, 'SIGKILL'), random.below(LONGEST_LIFE_MS))
  let accepted = 0
  let isDead = false
  void server.exited.then(() => (isDead = true))
  const post = async (): Promise<void> => {
    for (let n = 0; n < REQUESTS_PER_LIFE / 3 && !isDead; n++) {
      const action = random.pick(actions as [string, ...string[]])
      const cmd = action === 'crowd.flaky' ? 'exit 1' : `sleep 0.0${1 + random.below(9)}`
      const parameters = { cmd, host: random.pick(['a', 'b']) }
      const answer = await server.call('POST', '/v1/executions', { action, parameters }).catch(() => undefined)
      if (answer?.status === 201) accepted += 1
    }
  }
  await Promise.all([post(), post(), post()])
  await server.exited
  clearTimeout(timer)
  return accepted
}

/** Most that ran at the same time, by what was recorded. */
function mostAtOnce(executions: readonly Ended[]): number {
  const changes = executions.flatMap(({ log }) =>
    log.flatMap(({ status, timestamp }, index) => {
      const next = log[index + 1]
      return status !== 'running' || next === undefined
        ? []
        : [
            { at: timestamp, by: 1 },
            { at: next.timestamp, by: -1 },
          ]
    }),
  )
  // Of two at the same time, the end comes first.
  changes.sort((a, b) => (a.at === b.at ? a.by - b.by : a.at < b.at ? -1 : 1))
  let now = 0
  return Math.max(...changes.map(({ by }) => (now += by)))
}

function problemsOf(executions: readonly Ended[]): string[] {
  const problems: string[] = []
  const of = (action: string): Ended[] => executions.filter(({ action_ref: ref }) => ref === `crowd.${action}`)
  for (const { id, action_ref: action, status, log } of executions) {
    const fits = action === 'crowd.flaky' ? ['failed', 'abandoned'] : ['succeeded', 'abandoned']
    if (!fits.includes(status)) problems.push(`${id} of ${action} has ended as ${status}`)
    // A run that had not begun when the server was killed is queued again.
    const statuses = log.map((entry) => entry.status).join(' ')
    const runs = statuses
      .replaceAll('running requested', '')
      .split(' ')
      .filter((one) => one === 'running').length
    if (runs !== 1) problems.push(`${id} has not run once: ${statuses}`)
  }
  if (mostAtOnce(of('limited')) > THRESHOLD) problems.push(`${mostAtOnce(of('limited'))} of crowd.limited at once`)
  for (const host of ['a', 'b']) {
    const alike = of('grouped').filter(({ parameters }) => parameters.host === host)
    if (mostAtOnce(alike) > 1) problems.push(`${mostAtOnce(alike)} of crowd.grouped with ${host} at once`)
  }
  const flaky = of('flaky')
  for (const { id, liveaction_id: live, status, context } of flaky) {
    const count = context.policies?.retry?.retry_count ?? 0
    const retries = flaky.filter((other) => other.context.policies?.retry?.retried_liveaction_id === live)
    const owed = status === 'failed' && count < MAX_RETRIES ? [count + 1] : []
    const made = retries.map((other) => other.context.policies?.retry?.retry_count)
    if (made.join() !== owed.join())
      problems.push(`${id}, ${status}, was retried as ${made.join()}, not ${owed.join()}`)
  }
  return problems
}

it(`keeps what policies promise over ${KILLS} kills (SVC_TEST_SEED=${seed})`, { timeout: 1_200_000 }, async () => {
  const folder = makeFolder()
  const random = createRandom(seed)
  for (const [file, text] of Object.entries(pack)) {
    const path = join(folder.path, 'packs', 'crowd', file)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }
  let server: TestServer | undefined
  const start = async (): Promise<TestServer> => (server = await startServer({ basePath: folder.path, settings }))
  try {
    const first = await start()
    for (const { name, ...policy } of policies) {
      const body = { name, pack: 'crowd', resource_ref: `crowd.${name}`, ...policy }
      const made = await first.call('POST', '/v1/policies', body)
      expect([made.text, made.status]).toEqual([made.text, 201])
    }
    await beginCertainly(first)
    let accepted = await liveAndDie(first, random)
    for (let n = 1; n < KILLS; n++) accepted += await liveAndDie(await start(), random)
    const delayed = withDatabase(folder.path, (database) =>
      database
        .prepare<[], { n: number }>(
          `select count(*) as n from executions where log like '%delayed%' and action_ref <> 'crowd.flaky'`,
        )
        .get(),
    )
    const last = await start()
    await waitFor('every execution to end', () => readRows(folder.path, notFinal).size === 0, 300_000)
    expect((await last.stop()).code).toBe(0)
    const ended = readEnded(folder.path)
    expect(problemsOf(ended)).toEqual([])
    expect(findDamage(folder.path)).toEqual([])
    // Else nothing of the above was put to the test.
    expect(ended.filter(({ status }) => finalStatuses.has(status)).length).toBeGreaterThanOrEqual(accepted)
    expect(delayed?.n).toBeGreaterThan(0)
    expect(ended.filter(({ context }) => context.policies?.retry !== undefined).length).toBeGreaterThan(0)
  } finally {
    await server?.stop('SIGKILL')
    folder.remove()
  }
})
