/** However answers, events, failures and a cut stream cross: in the end the list is what the server has. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createRandom, seedOfRun, type Random } from '../../../../tests/helpers/random.ts'
import type { ExecutionSummary } from '../../api/execution-summary.ts'
import type { ExecutionStatus } from '../../api/records.ts'
import { createListModel, type ListAnswer, type ListModel } from './list-model.ts'
import { LIST_PAGE_SIZE, type ListEvent, type PagePlace } from './list-rows.ts'

const ROUNDS = 40
const STEPS = 250
/** Rows that are drawn. */
const DRAWN = 40
/** How long an event is on its way, and half of a request and of its answer at most. */
const [EVENT_MS, HALF_MS] = [400, 300]
/** Longer than anything is on its way, with what comes of it. */
const QUIET_MS = 5000
const seed = seedOfRun()

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

const next: Partial<Record<ExecutionStatus, ExecutionStatus>> = { requested: 'running', running: 'succeeded' }

function make(number: number, status: ExecutionStatus): ExecutionSummary {
  const timestamp = '2030-01-01T00:00:00.000000Z'
  return {
    id: number.toString(16).padStart(24, '0'),
    status,
    start_timestamp: timestamp,
    log: [{ status, timestamp }],
    action: { ref: 'core.local', name: 'local', pack: 'core' },
    runner: { name: 'local-shell-cmd' },
    context: { user: 'ada' },
    liveaction: { id: 'l', runner_info: {} },
  }
}

interface World {
  model: ListModel
  /** What the server has that belongs to the list, newest first. */
  readonly truth: () => ExecutionSummary[]
  readonly change: () => void
  readonly cut: () => void
  readonly mend: () => void
  /** From now on nothing fails. */
  readonly calm: () => void
}

function createWorld(random: Random, fits: (execution: ExecutionSummary) => boolean, dependsOnStatus: boolean): World {
  let number = 0
  let canFail = true
  /** Counts the times the stream was cut; undefined while it is. */
  let stream: number | undefined = 0
  let cuts = 0
  const stored: ExecutionSummary[] = []
  const add = (status: ExecutionStatus): ExecutionSummary => {
    const execution = make((number += 10), status)
    stored.push(execution)
    return execution
  }
  for (let count = random.below(400); count > 0; count--) add(random.once(3) ? 'running' : 'succeeded')
  const truth = (): ExecutionSummary[] => stored.filter(fits).toReversed()

  function answerOf({ beforeId, afterId, offset }: PagePlace, limit: number): ListAnswer {
    const within = truth().filter(
      ({ id }) => (beforeId === undefined || id < beforeId) && (afterId === undefined || id > afterId),
    )
    const isAscending = beforeId !== undefined && afterId !== undefined
    const items = (isAscending ? within.toReversed() : within).slice(offset, offset + limit)
    const isFirst = beforeId === undefined && afterId === undefined
    return { items: isAscending ? items.toReversed() : items, total: isFirst ? within.length : undefined }
  }

  async function load(place: PagePlace, limit: number, signal: AbortSignal): Promise<ListAnswer> {
    await pause(random.below(HALF_MS))
    const hasFailed = canFail && random.once(20)
    const answer = structuredClone(answerOf(place, limit))
    await pause(random.below(HALF_MS))
    if (signal.aborted) throw new DOMException('', 'AbortError')
    if (hasFailed) throw new Error('lost')
    return answer
  }

  const model = createListModel({ load, matches: fits, dependsOnStatus, isCostly: false }, () => undefined)

  function tell(execution: ExecutionSummary, change: ListEvent['change']): void {
    const event = { execution: structuredClone(execution), change }
    const of = stream
    setTimeout(() => {
      if (of !== undefined && of === stream) model.accept([event])
    }, EVENT_MS)
  }

  return {
    model,
    truth,
    change() {
      const execution = stored.at(-1 - random.below(30))
      if (execution === undefined || random.once(2)) {
        tell(add('requested'), 'create')
        return
      }
      const status = next[execution.status]
      if (status === undefined) return
      execution.status = status
      execution.log.push({ status, timestamp: execution.start_timestamp })
      tell(execution, 'update')
    },
    cut: () => (stream = undefined),
    mend() {
      if (stream !== undefined) return
      stream = cuts += 1
      model.resync()
    },
    calm: () => (canFail = false),
  }
}

async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms))
}

/** @returns row that is at the upper edge in the end */
async function live(random: Random, { model, change, cut, mend }: World): Promise<number> {
  let top = 0
  function scrollTo(row: number): void {
    top = row
    model.setLive(row === 0)
    show(model, row)
  }
  const deeds: (() => void)[] = [
    () => scrollTo(random.below(Math.max(1, (model.state.count ?? 0) - 10))),
    () => scrollTo(0),
    () => model.flush(),
    cut,
    mend,
    () => model.state.error !== undefined && model.retry(),
  ]
  model.resync()
  for (let step = 0; step < STEPS; step++) {
    await vi.advanceTimersByTimeAsync(random.below(60))
    if (random.once(3)) deeds[random.below(deeds.length)]?.()
    else change()
  }
  return top
}

function show(model: ListModel, top: number): void {
  model.show(Math.max(0, top - 10), Math.min(model.state.count ?? LIST_PAGE_SIZE, top + DRAWN))
}

const told = (rows: readonly (ExecutionSummary | undefined)[]): string[] =>
  rows.map((row) => (row === undefined ? 'nothing' : `${row.id} ${row.status}`))

const rowsOf = (model: ListModel, from: number, end: number): (ExecutionSummary | undefined)[] =>
  Array.from({ length: Math.max(0, end - from) }, (_, i) => model.row(from + i))

/**
 * Where somebody reads further down: the rows, and what these should be. An execution that waits may be older than the newest
 * row: it may begin to match after that did. So every execution has to be a row, in order, or one of those that wait.
 */
async function awayFromTop({ model, truth }: World, top: number): Promise<[shown: string[], wanted: string[]]> {
  const { count = 0, waitingCount, hasMoreWaiting, isStale } = model.state
  // Then it says so itself.
  if (top === 0 || isStale || hasMoreWaiting) return [[], []]
  show(model, top)
  await vi.advanceTimersByTimeAsync(QUIET_MS)
  const [from, end] = [Math.max(0, top - 10), Math.min(count, top + DRAWN)]
  const visible = told(rowsOf(model, from, end))
  model.show(0, count)
  await vi.advanceTimersByTimeAsync(QUIET_MS)
  const all = rowsOf(model, 0, count)
  const ids = new Set(all.map((row) => row?.id))
  const rows = truth().filter(({ id }) => ids.has(id))
  const waiting = truth().filter(({ id }) => !ids.has(id) && model.find(id) !== undefined)
  return [
    [`${count + waitingCount}, ${waitingCount} wait`, ...visible, ...told(all)],
    [`${truth().length}, ${waiting.length} wait`, ...told(rows.slice(from, end)), ...told(rows)],
  ]
}

describe.each([
  ['of all', () => true, false],
  ['of those that run', ({ status }: ExecutionSummary) => status === 'running', true],
] as const)('a list %s', (_, fits, dependsOnStatus) => {
  test(`is right in the end (SVC_TEST_SEED=${seed})`, { timeout: 120_000 }, async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const random = createRandom(seed + round)
      const world = createWorld(random, fits, dependsOnStatus)
      const { model, truth } = world
      const top = await live(random, world)
      world.calm()
      world.mend()
      await vi.advanceTimersByTimeAsync(QUIET_MS)
      if (model.state.error !== undefined) model.retry()
      await vi.advanceTimersByTimeAsync(QUIET_MS)

      const [shown, wanted] = await awayFromTop(world, top)
      expect(shown).toEqual(wanted)
      model.setLive(true)
      await vi.advanceTimersByTimeAsync(QUIET_MS)
      show(model, 0)
      await vi.advanceTimersByTimeAsync(QUIET_MS)
      const fitting = truth()
      expect(model.state).toEqual({
        count: fitting.length,
        waitingCount: 0,
        hasMoreWaiting: false,
        isStale: false,
        error: undefined,
      })
      expect(told(rowsOf(model, 0, Math.min(fitting.length, DRAWN)))).toEqual(told(fitting.slice(0, DRAWN)))
      model.stop()
    }
  })
})
