import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { makeExecution } from '../../../../tests/helpers/execution.ts'
import { openDatabase } from '../../../../tests/helpers/database.ts'
import { makeFolder, type TemporaryFolder } from '../../../../tests/helpers/folders.ts'
import { waitFor } from '../../../../tests/helpers/wait.ts'
import { TextSink } from '../../../../tests/helpers/text-sink.ts'
import type { Database, Unit } from '../../../db/database.ts'
import { storageFailed } from '../../../core/errors.ts'
import { createLog, type Log } from '../../../lib/log/log.ts'
import { formatMicros, now, nowMicros } from '../../../core/time.ts'
import { createSlotAdmission } from './admission.ts'
import { createChange, type Change } from '../change.ts'
import { createDispatcher } from './dispatcher.ts'
import { createOutput } from '../output/output.ts'
import { createScheduler, type Scheduler } from './scheduler.ts'
import { createOutputStore } from '../output/store.ts'
import { createStartNotes } from './start-notes.ts'
import { createProcessStore } from './store.ts'
import { createExecutionStore, type ExecutionStore } from '../store.ts'
import type { Execution, ExecutionStatus } from '../types.ts'
import { noMetrics } from '../../../core/metrics.ts'
import type { Limit } from '../ports.ts'

let folder: TemporaryFolder
let database: Database
let store: ExecutionStore
let scheduler: Scheduler
let makeScheduler: (options: { expiresPending: boolean }) => Scheduler
let change: Change
let log: Log
let logged: TextSink
/** Why a unit cannot be written; undefined: it can. */
let refusalOf: (unit: Unit) => Error | undefined
/** Called before each read of one row. */
let onRead: (sql: string) => void
let writeCount: number
let limitsOf: (execution: Execution) => Limit[]
const SLOTS = 4
/** So many attempts does a hot loop make in the turns it is given, and one that pauses not in several seconds. */
const HOT = 200

beforeEach(async () => {
  folder = makeFolder()
  const { bus, database: real } = await openDatabase(folder.path)
  refusalOf = () => undefined
  onRead = () => undefined
  limitsOf = () => []
  writeCount = 0
  database = {
    ...real,
    first(query) {
      onRead(query.compile().sql)
      return real.first(query)
    },
    async write(unit) {
      writeCount += 1
      // A refusal takes as long as an answer.
      await new Promise((resolve) => setImmediate(resolve))
      const refusal = refusalOf(unit)
      if (refusal !== undefined) throw refusal
      return real.write(unit)
    },
  }
  logged = new TextSink()
  log = createLog({ level: 'ERROR', format: 'text', stream: logged })
  store = createExecutionStore(database)
  const stopRetrying = new AbortController().signal
  change = createChange({ metrics: noMetrics, store, database, log, stopRetrying })
  // Polling would hide what this file is about.
  const pollSeconds = 3600
  const dispatcher = createDispatcher({
    notes: createStartNotes(undefined, '', log),
    metrics: noMetrics,
    store,
    processes: createProcessStore(database),
    change,
    output: createOutput({ store: createOutputStore(database), database, bus, log, stopRetrying }),
    // None, so that whatever is started fails at once.
    runners: new Map(),
    prepare: async () => ({
      runnerParameters: {},
      actionParameters: {},
      parameterSchemas: {},
      entryPoint: '',
      packFolder: '',
      config: () => ({ values: {} }),
      env: {},
    }),
    maskResult: (_, result) => ({ result }),
    bus,
    log,
    write: (unit) => database.write(unit),
    slots: SLOTS,
    serviceTokens: { plan: () => undefined },
    outputCheck: { failureOf: () => undefined },
    streamOutput: true,
    maskSecrets: true,
    environment: (own) => ({ ...own }),
    pollSeconds,
    bootId: 'boot',
  })
  const admission = createSlotAdmission({
    store,
    change,
    limitsOf: (execution) => limitsOf(execution),
    bus,
    log,
    maxClaimed: SLOTS,
  })
  makeScheduler = ({ expiresPending }) =>
    createScheduler({
      metrics: noMetrics,
      store,
      change,
      dispatcher,
      admission,
      bus,
      log,
      hasRoom: () => true,
      startWorkflow: () => Promise.resolve(),
      write: (unit) => database.write(unit),
      pollSeconds,
      expiresPending,
    })
  scheduler = makeScheduler({ expiresPending: true })
})

afterEach(async () => {
  scheduler.stop()
  await database.close()
  folder.remove()
})

async function add(status: 'requested' | 'delayed' | 'pending', count: number, dueInMs = 0): Promise<void> {
  const due_timestamp = formatMicros(nowMicros() + dueInMs * 1000)
  const steps = Array.from({ length: count }, () => store.insert(makeExecution({ status, due_timestamp })))
  await database.write({ steps: steps.flat(), facts: [] })
  writeCount = 0
}

const isFull = (): Error => storageFailed(new Error('disk full'))

const count = (status: ExecutionStatus): number => store.countWithStatus(status)

/** Lets the scheduler run for as many turns of the event loop as a hot loop would need to betray itself. */
async function manyTurns(): Promise<void> {
  for (let n = 0; n < 2000; n++) await new Promise((resolve) => setImmediate(resolve))
}

test('a full storage is asked once a second, not without end, and what waits runs afterwards', async () => {
  await add('requested', 500)
  refusalOf = isFull
  await scheduler.start()
  await waitFor('the first attempts', () => writeCount === SLOTS)
  await manyTurns()
  expect(writeCount).toBeLessThan(HOT)
  expect(logged.text.split('\n').length).toBeLessThan(HOT)
  expect(count('requested')).toBe(500)
  refusalOf = () => undefined
  await waitFor('all of them to be tried', () => count('failed') === 500)
})

test('nor is one that refuses for good, when more waits than the queue remembers', async () => {
  await add('requested', 500)
  refusalOf = () => new Error('damaged')
  await scheduler.start()
  await waitFor('the first attempts', () => writeCount >= SLOTS)
  await manyTurns()
  expect(writeCount).toBeLessThan(HOT)
  refusalOf = () => undefined
  await waitFor('all of them to be tried', () => count('failed') === 500)
})

test('a delayed execution that is due is not tried without end either', async () => {
  await add('delayed', 1)
  refusalOf = isFull
  await scheduler.start()
  await waitFor('the first attempt', () => writeCount === 1)
  await manyTurns()
  expect(writeCount).toBeLessThan(HOT)
  refusalOf = () => undefined
  await waitFor('it to be tried', () => count('failed') === 1)
})

test('a delayed execution does not wait for another that cannot be woken', async () => {
  await add('delayed', 1)
  const [stuck] = store.due('delayed', now(), 1)
  await add('delayed', 1)
  refusalOf = ({ facts }) =>
    facts.some(({ payload }) => 'execution' in payload && payload.execution.id === stuck?.id)
      ? new Error('damaged')
      : undefined
  await scheduler.start()
  await waitFor('the other to be tried', () => count('failed') === 1)
  expect(store.statusOf(stuck?.id ?? '')).toBe('delayed')
})

test('a delayed execution runs also when the rows could not be read just as it was delayed', async () => {
  // Its time comes when the rows could not be read, however busy the machine is.
  await add('requested', 1, 3_600_000)
  let hasFailed = false
  let isReadable = false
  onRead = (sql) => {
    if (isReadable || !sql.includes('order by "due_timestamp"') || count('delayed') === 0) return
    hasFailed = true
    throw storageFailed(new Error('disk I/O error'))
  }
  await scheduler.start()
  await waitFor('the failure', () => hasFailed)
  const [delayed] = store.withDue('delayed')
  expect(delayed).toBeDefined()
  const step = store.putDue({ id: delayed?.id ?? '', due_timestamp: formatMicros(nowMicros()) })
  await database.write({ steps: [step], facts: [] })
  isReadable = true
  await waitFor('it to be tried', () => count('failed') === 1)
})

test('a pending execution ends when its time is over, with the result it has, and one without a time never', async () => {
  const result = { question: 'Go on?' }
  const over = makeExecution({ status: 'pending', due_timestamp: formatMicros(nowMicros() - 1), result })
  const later = makeExecution({ status: 'pending', due_timestamp: formatMicros(nowMicros() + 3_600_000_000), result })
  const never = makeExecution({ status: 'pending', due_timestamp: null, result })
  await database.write({ steps: [over, later, never].flatMap((execution) => store.insert(execution)), facts: [] })
  await scheduler.start()
  await waitFor('the time-out', () => store.statusOf(over.id) === 'timeout')
  expect(store.findWithResult(over.id)).toMatchObject({ result, due_timestamp: null })
  expect([later, never].map(({ id }) => store.statusOf(id))).toEqual(['pending', 'pending'])
})

test('pending executions are left alone when they are not to expire', async () => {
  scheduler.stop()
  scheduler = makeScheduler({ expiresPending: false })
  await add('pending', 1)
  await add('delayed', 1)
  await scheduler.start()
  await waitFor('the delayed one to be tried', () => count('failed') === 1)
  expect(count('pending')).toBe(1)
})

test('one that becomes pending later is waited for as well', async () => {
  await scheduler.start()
  const running = makeExecution({ status: 'running' })
  await database.write({ steps: store.insert(running), facts: [] })
  const exit = { kind: 'exit', status: 'pending', result: { question: 'Now?' }, ttlSeconds: 0.001 } as const
  expect(await change.try(running, exit)).toMatchObject({ status: 'pending' })
  await waitFor('the time-out', () => store.statusOf(running.id) === 'timeout')
})

test('a full storage is asked once a second also when everything is to wait for others', async () => {
  limitsOf = ({ action_ref: ref }) => [{ key: ref, threshold: 0, beyond: 'delay', policy: 'p.none' }]
  await add('requested', 500)
  refusalOf = isFull
  // The seconds pass when the test says so, however slow the machine is.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    await scheduler.start()
    await manyTurns()
    const ofOneRound = writeCount
    expect(ofOneRound).toBeGreaterThan(0)
    await manyTurns()
    expect(writeCount).toBe(ofOneRound)
    vi.advanceTimersByTime(1000)
    await manyTurns()
    expect(writeCount).toBe(2 * ofOneRound)
    expect(count('requested')).toBe(500)
    refusalOf = () => undefined
    vi.advanceTimersByTime(1000)
  } finally {
    vi.useRealTimers()
  }
  await waitFor('all of them to wait', () => count('delayed') === 500)
})

test('those that wait for others are tried again when they could not be woken', async () => {
  await database.write({
    steps: [1, 2, 3].flatMap(() => store.insert(makeExecution({ status: 'delayed', due_timestamp: null }))),
    facts: [],
  })
  writeCount = 0
  limitsOf = ({ action_ref: ref }) => [{ key: ref, threshold: 1, beyond: 'delay', policy: 'p.one' }]
  refusalOf = isFull
  await scheduler.start()
  await waitFor('the first attempt', () => writeCount === 1)
  await manyTurns()
  expect(writeCount).toBeLessThan(HOT)
  expect(count('delayed')).toBe(3)
  refusalOf = () => undefined
  await waitFor('all of them to be tried', () => count('failed') === 3)
})
