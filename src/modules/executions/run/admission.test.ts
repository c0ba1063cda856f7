import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeExecution } from '../../../../tests/helpers/execution.ts'
import { openDatabase } from '../../../../tests/helpers/database.ts'
import { makeFolder, type TemporaryFolder } from '../../../../tests/helpers/folders.ts'
import { watchQueries, type QueryPlans } from '../../../../tests/helpers/query-plans.ts'
import { TextSink } from '../../../../tests/helpers/text-sink.ts'
import { waitFor } from '../../../../tests/helpers/wait.ts'
import type { Database } from '../../../db/database.ts'
import { createLog } from '../../../lib/log/log.ts'
import { createSlotAdmission, type SlotAdmission } from './admission.ts'
import { createChange, type Change } from '../change.ts'
import { createExecutionStore, type ExecutionStore } from '../store.ts'
import type { Execution } from '../types.ts'
import { noMetrics } from '../../../core/metrics.ts'
import type { Limit } from '../ports.ts'
import { fullOnly } from '../../../../tests/helpers/tiers.ts'

let folder: TemporaryFolder
let database: Database
let plans: QueryPlans
let store: ExecutionStore
let change: Change
let admission: SlotAdmission
let limitsOf: (execution: Execution) => Limit[]
const CLAIMED = 3

beforeEach(async () => {
  folder = makeFolder()
  const { bus, database: real } = await openDatabase(folder.path)
  plans = watchQueries(real, join(folder.path, 'svc.db'))
  database = plans.database
  const log = createLog({ level: 'CRITICAL', format: 'text', stream: new TextSink() })
  store = createExecutionStore(database)
  change = createChange({ metrics: noMetrics, store, database, log, stopRetrying: new AbortController().signal })
  const options = { store, change, bus, log, maxClaimed: CLAIMED }
  limitsOf = () => []
  admission = createSlotAdmission({ ...options, limitsOf: (execution) => limitsOf(execution) })
})

afterEach(async () => {
  admission.stop()
  await database.close()
  folder.remove()
})

const atMost = (threshold: number, key = 'all'): Limit => ({ key, threshold, beyond: 'delay', policy: `p.${key}` })
const ofHost = ({ parameters }: Execution): Limit[] => [atMost(1, String(parameters['host']))]

/** Executions that wait, oldest first. */
async function addWaiting(count: number, more: (n: number) => Partial<Execution> = () => ({})): Promise<Execution[]> {
  const made = Array.from({ length: count }, (_, n) => makeExecution({ status: 'delayed', ...more(n) }))
  for (let start = 0; start < count; start += 1000) {
    await database.write({ steps: made.slice(start, start + 1000).flatMap((each) => store.insert(each)), facts: [] })
  }
  return made
}

async function addRunning(more: Partial<Execution> = {}): Promise<Execution> {
  const execution = makeExecution(more)
  await database.write({ steps: store.insert(execution), facts: [] })
  expect(admission.enter(execution)).toEqual({ kind: 'run' })
  return execution
}

const requested = (): string[] => store.withStatus('requested', '', 100).map(({ id }) => id)

async function letGo(execution: Execution | undefined): Promise<Execution> {
  const id = execution?.id ?? ''
  await waitFor('it to be let go', () => store.statusOf(id) === 'requested')
  const found = store.find(id)
  if (found === undefined) throw new Error('it is gone')
  return found
}

fullOnly(test)('one of ten thousand that wait is woken by each end, without a look at the others', async () => {
  const waiting = await addWaiting(10_000)
  limitsOf = () => [atMost(1)]
  await admission.start()
  for (let n = 0; n < 5; n++) {
    const next = await letGo(waiting[n])
    expect(requested()).toEqual([next.id])
    expect(admission.enter(next)).toEqual({ kind: 'run' })
    await change.try(next, { kind: 'settle', status: 'succeeded', result: {} })
    plans.take()
    admission.leave(next)
    // One row, by its id.
    expect(plans.take()).toEqual([expect.stringContaining('id=?')])
  }
})

test('its reads grow with what waits, not with what there is', () => {
  store.delayedActions()
  store.waitingOf('core.local', '', 10)
  const [actions, waiting] = plans.take()
  expect(actions).toContain('execution_counts')
  expect(waiting).toMatch(/USING INDEX executions_waiting/)
  expect(waiting).not.toContain('TEMP B-TREE')
})

test('the oldest of a group goes when one of its group has ended, however many of others are before it', async () => {
  limitsOf = ofHost
  const [a, b] = [await addRunning({ parameters: { host: 'a' } }), await addRunning({ parameters: { host: 'b' } })]
  const waiting = await addWaiting(2000, (n) => ({ parameters: { host: n < 1500 ? 'a' : 'b' } }))
  await admission.start()
  expect(requested()).toEqual([a.id, b.id])
  await Promise.all([a, b].map((each) => change.try(each, { kind: 'settle', status: 'succeeded', result: {} })))
  admission.leave(b)
  await letGo(waiting[1500])
  expect(requested()).toHaveLength(1)
  admission.leave(a)
  await letGo(waiting[0])
  expect(requested()).toHaveLength(2)
})

test('a place that was promised is not taken by a younger one, and is passed on when it is not used', async () => {
  limitsOf = () => [atMost(1)]
  const [first, second] = await addWaiting(2)
  await admission.start()
  const promised = await letGo(first)
  expect(admission.enter(makeExecution())).toEqual({ kind: 'delay' })
  await change.try(promised, { kind: 'cancel', user: 'tester' })
  expect(admission.enter(await letGo(second))).toEqual({ kind: 'run' })
  expect(admission.enter(makeExecution())).toEqual({ kind: 'delay' })
})

test('without a policy left no more are let go at once than could run', async () => {
  limitsOf = () => [atMost(0)]
  const waiting = await addWaiting(10)
  await admission.start()
  expect(requested()).toEqual([])
  limitsOf = () => []
  admission.reload('core.local')
  for (let n = 0; n < 10; n++) {
    const next = await letGo(waiting[n])
    expect(requested().length).toBeLessThanOrEqual(CLAIMED)
    expect(admission.enter(next)).toEqual({ kind: 'run' })
    await change.try(next, { kind: 'settle', status: 'succeeded', result: {} })
  }
})

test('those that have a slot count under a policy that comes later, and a changed one', async () => {
  const running = await addRunning({ parameters: { host: 'a' } })
  await admission.start()
  limitsOf = () => [atMost(1)]
  admission.reload('core.local')
  expect(admission.enter(makeExecution({ parameters: { host: 'b' } }))).toEqual({ kind: 'delay' })
  limitsOf = ofHost
  admission.reload('core.local')
  expect(admission.enter(makeExecution({ parameters: { host: 'a' } }))).toEqual({ kind: 'delay' })
  expect(admission.enter(makeExecution({ parameters: { host: 'b' } }))).toEqual({ kind: 'run' })
  expect(admission.enter(makeExecution({ action_ref: 'core.noop', parameters: { host: 'c' } }))).toEqual({
    kind: 'run',
  })
  admission.leave(running)
  expect(admission.enter(makeExecution({ parameters: { host: 'a' } }))).toEqual({ kind: 'run' })
})

test('one that has been cancelled while it waited is not missed', async () => {
  limitsOf = () => [atMost(1)]
  const running = await addRunning()
  const waiting = await addWaiting(3)
  await admission.start()
  for (const each of waiting.slice(0, 2)) await change.try(each, { kind: 'cancel', user: 'tester' })
  admission.leave(running)
  expect(await letGo(waiting[2])).toMatchObject({ status: 'requested' })
})

test('the first limit that is reached decides', async () => {
  const cancel: Limit = { ...atMost(1, 'cancels'), beyond: 'cancel' }
  await admission.start()
  limitsOf = () => [atMost(2), cancel]
  expect(admission.enter(makeExecution())).toEqual({ kind: 'run' })
  expect(admission.enter(makeExecution())).toEqual({ kind: 'cancel', policy: 'p.cancels' })
  limitsOf = () => [atMost(1), cancel]
  expect(admission.enter(makeExecution())).toEqual({ kind: 'delay' })
})
