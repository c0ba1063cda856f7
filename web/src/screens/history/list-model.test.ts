import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { ExecutionSummary } from '../../api/execution-summary.ts'
import type { ExecutionStatus } from '../../api/records.ts'
import { createListModel, type ListAnswer, type ListModel } from './list-model.ts'
import { nextId, LIST_PAGE_SIZE, type PagePlace } from './list-rows.ts'

const idOf = (n: number): string => n.toString(16).padStart(24, '0')
const numberOf = (execution: ExecutionSummary | undefined): number | undefined =>
  execution === undefined ? undefined : Number.parseInt(execution.id, 16)

function make(n: number, ...statuses: ExecutionStatus[]): ExecutionSummary {
  const all: ExecutionStatus[] = statuses.length === 0 ? ['requested', 'scheduled', 'running', 'succeeded'] : statuses
  return {
    id: idOf(n),
    status: all.at(-1) ?? 'requested',
    start_timestamp: '2030-01-01T00:00:00.000000Z',
    log: all.map((status) => ({ status, timestamp: '2030-01-01T00:00:00.000000Z' })),
    action: { ref: 'core.local', name: 'local', pack: 'core' },
    runner: { name: 'local-shell-cmd' },
    context: { user: 'ada' },
    liveaction: { id: 'l', runner_info: {} },
  }
}

interface Request {
  place: PagePlace
  limit: number
  signal: AbortSignal
  answer: () => void
  fail: (message: string) => void
}

/** What a server has, oldest first; answers when the test says so. */
let stored: ExecutionSummary[]
let requests: Request[]
let matches: (execution: ExecutionSummary) => boolean | undefined
let dependsOnStatus: boolean
let isCostly: boolean
let changes: number
let model: ListModel

function answerOf({ beforeId, afterId, offset }: PagePlace, limit: number): ListAnswer {
  const fitting = stored.filter((one) => matches(one) !== false).toReversed()
  const within = fitting.filter(
    ({ id }) => (beforeId === undefined || id < beforeId) && (afterId === undefined || id > afterId),
  )
  const items =
    afterId === undefined || beforeId === undefined
      ? within.slice(offset, offset + limit)
      : within
          .toReversed()
          .slice(offset, offset + limit)
          .toReversed()
  return { items, total: beforeId === undefined && afterId === undefined ? fitting.length : undefined }
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  requests = []
  matches = () => true
  dependsOnStatus = false
  isCostly = false
  changes = 0
})
afterEach(() => {
  model.stop()
  vi.useRealTimers()
})

/** With so many executions, those with the numbers from 1 on. */
async function start(count: number): Promise<void> {
  stored = Array.from({ length: count }, (_, i) => make(i + 1))
  model = createListModel(
    {
      load: (place, limit, signal) =>
        new Promise((resolve, reject) => {
          // As of when it was asked.
          const answer = answerOf(place, limit)
          requests.push({
            place,
            limit,
            signal,
            answer: () => resolve(answer),
            fail: (message) => reject(new Error(message)),
          })
        }),
      matches: (execution) => matches(execution),
      get dependsOnStatus() {
        return dependsOnStatus
      },
      get isCostly() {
        return isCostly
      },
    },
    () => (changes += 1),
  )
  model.refresh()
  await answerAll()
}

const open = (): Request[] => requests.filter(({ signal }) => !signal.aborted)

async function settle(): Promise<void> {
  await vi.advanceTimersByTimeAsync(0)
}

async function answerAll(): Promise<void> {
  for (let some = requests.splice(0); some.length > 0; some = requests.splice(0)) {
    for (const request of some) if (!request.signal.aborted) request.answer()
    await settle()
  }
}

async function scrollTo(first: number): Promise<void> {
  model.show(first, first + 30)
  await vi.advanceTimersByTimeAsync(150)
}

const numbers = (first: number, end: number): (number | undefined)[] =>
  Array.from({ length: end - first }, (_, i) => numberOf(model.row(first + i)))
const descending = (from: number, count: number): number[] => Array.from({ length: count }, (_, i) => from - i)

function create(execution: ExecutionSummary): void {
  stored.push(execution)
  model.accept([{ execution, change: 'create' }])
}

describe('pages', () => {
  test('are loaded for what is seen alone', async () => {
    await start(100_000)
    expect(model.state.count).toBe(100_000)
    expect(numbers(0, LIST_PAGE_SIZE + 1)).toEqual([...descending(100_000, LIST_PAGE_SIZE), undefined])
    await scrollTo(40)
    expect(requests.map(({ place }) => place)).toEqual([{ beforeId: idOf(100_000 - LIST_PAGE_SIZE + 1), offset: 0 }])
    await answerAll()
    expect(numbers(40, 70)).toEqual(descending(100_000 - 40, 30))
  })

  test('far away are asked for by the nearest row that is known, from above and from below', async () => {
    await start(10_000)
    await scrollTo(5000)
    expect(requests.map(({ place }) => place)).toEqual([{ beforeId: idOf(9951), offset: 4950 }])
    await answerAll()
    expect(numbers(5000, 5030)).toEqual(descending(5000, 30))
    await scrollTo(4960)
    expect(requests.map(({ place }) => place)).toEqual([{ afterId: idOf(5000), beforeId: idOf(10_001), offset: 0 }])
    await answerAll()
    expect(numbers(4955, 4995)).toEqual(descending(10_000 - 4955, 40))
    await scrollTo(5060)
    expect(requests.map(({ place }) => place)).toEqual([{ beforeId: idOf(4951), offset: 0 }])
    await answerAll()
    await scrollTo(4800)
    expect(requests.map(({ place }) => place)).toEqual([{ afterId: idOf(5050), beforeId: idOf(10_001), offset: 100 }])
    await answerAll()
    expect(numbers(4800, 4830)).toEqual(descending(5200, 30))
  })

  test('that somebody scrolls past are not asked for, and those on their way are given up', async () => {
    await start(100_000)
    for (let first = 1000; first < 50_000; first += 1000) model.show(first, first + 30)
    expect(requests).toEqual([])
    await vi.advanceTimersByTimeAsync(150)
    expect(requests).toHaveLength(1)
    await scrollTo(90_000)
    expect(requests.map(({ signal }) => signal.aborted)).toEqual([true, false])
    await answerAll()
    expect(numbers(90_000, 90_010)).toEqual(descending(10_000, 10))
    expect(model.row(49_000)).toBeUndefined()
  })

  test('are few, however much was seen', async () => {
    await start(10_000)
    for (let first = 0; first < 5000; first += LIST_PAGE_SIZE) {
      await scrollTo(first)
      await answerAll()
    }
    const kept = Array.from({ length: 10_000 }, (_, i) => model.row(i)).filter((row) => row !== undefined)
    expect(kept.length).toBeLessThanOrEqual(40 * LIST_PAGE_SIZE)
    expect(numbers(4950, 4980)).toEqual(descending(10_000 - 4950, 30))
  })

  test('that fail say so, and are loaded when somebody asks again', async () => {
    await start(1000)
    await scrollTo(500)
    requests[0]?.fail('no')
    await settle()
    expect(model.state.error).toEqual(new Error('no'))
    requests.length = 0
    model.retry()
    expect(model.state.error).toBeUndefined()
    await answerAll()
    expect(numbers(500, 501)).toEqual([500])
  })

  test('that have become shorter end the list', async () => {
    await start(1000)
    // The oldest have been purged.
    stored = stored.slice(420)
    await scrollTo(560)
    await answerAll()
    expect(model.state.count).toBe(580)
    expect(numbers(575, 582)).toEqual([425, 424, 423, 422, 421, undefined, undefined])
  })

  test('of nothing are no rows, until something comes', async () => {
    await start(0)
    expect(model.state.count).toBe(0)
    create(make(7))
    expect([model.state.count, numberOf(model.row(0))]).toEqual([1, 7])
  })
})

describe('what happens', () => {
  test('changes rows in place, and never back', async () => {
    await start(100)
    create(make(101, 'requested'))
    const statuses = (...all: ExecutionStatus[]): string | undefined => {
      model.accept([{ execution: make(101, ...all), change: 'update' }])
      return model.row(0)?.status
    }
    expect(statuses('requested', 'scheduled', 'running')).toBe('running')
    expect(statuses('requested', 'scheduled')).toBe('running')
    expect(statuses('requested', 'scheduled', 'running', 'failed')).toBe('failed')
    expect(statuses('requested', 'scheduled', 'running')).toBe('failed')
    expect(model.indexOf(idOf(101))).toBe(0)
    expect(model.indexOf(idOf(99))).toBe(2)
    expect(model.indexOf(idOf(5000))).toBeUndefined()
  })

  test('is right also where an older answer comes later', async () => {
    await start(100)
    stored[39] = make(40, 'requested')
    await scrollTo(60)
    model.accept([{ execution: make(40, 'requested', 'running'), change: 'update' }])
    await answerAll()
    expect(model.row(60)?.status).toBe('running')
  })

  test('before the first answer is not lost', async () => {
    stored = []
    await start(100)
    model.refresh()
    create(make(101, 'requested'))
    model.accept([{ execution: make(101, 'requested', 'running'), change: 'update' }])
    // The answer is of before.
    await answerAll()
    expect([model.state.count, numbers(0, 2), model.row(0)?.status]).toEqual([101, [101, 100], 'running'])
  })

  test('in the same moment is put in the order of ids, each once', async () => {
    await start(3)
    model.accept([5, 4, 7, 6, 5].map((n) => ({ execution: make(n, 'requested'), change: 'create' })))
    expect([model.state.count, numbers(0, 7)]).toEqual([7, [7, 6, 5, 4, 3, 2, 1]])
  })

  test('makes whole pages of many that come, so that rows behind them stay known, and few are kept', async () => {
    await start(1000)
    await scrollTo(100)
    await answerAll()
    for (let n = 1001; n <= 6000; n++) create(make(n, 'requested'))
    expect(model.state.count).toBe(6000)
    expect(numbers(0, 30)).toEqual(descending(6000, 30))
    await scrollTo(4990)
    await answerAll()
    expect(numbers(4990, 5020)).toEqual(descending(6000 - 4990, 30))
    await scrollTo(5980)
    await answerAll()
    expect(numbers(5980, 6001)).toEqual([...descending(20, 20), undefined])
    const kept = Array.from({ length: 6000 }, (_, i) => model.row(i)).filter((row) => row !== undefined)
    expect(kept.length).toBeLessThanOrEqual(42 * LIST_PAGE_SIZE)
  })
})

describe('while somebody looks further down', () => {
  beforeEach(async () => {
    await start(1000)
    await scrollTo(300)
    await answerAll()
    model.setLive(false)
  })

  test('nothing moves: newer ones wait, and change meanwhile', () => {
    const before = numbers(300, 330)
    create(make(1001, 'requested'))
    create(make(1002, 'requested'))
    model.accept([{ execution: make(1001, 'requested', 'running'), change: 'update' }])
    expect([numbers(300, 330), model.state.count, model.state.waitingCount]).toEqual([before, 1000, 2])
    model.flush()
    expect([model.state.count, model.state.waitingCount, numbers(302, 332)]).toEqual([1002, 0, before])
    expect([numbers(0, 2), model.row(1)?.status]).toEqual([[1002, 1001], 'running'])
  })

  test('they become rows once somebody looks at the newest again', () => {
    create(make(1001))
    model.setLive(true)
    expect([model.state.waitingCount, numbers(0, 2)]).toEqual([0, [1001, 1000]])
  })

  test('many that wait are counted as more, and loaded when they are wanted', async () => {
    for (let n = 1001; n <= 1500; n++) create(make(n))
    expect([model.state.waitingCount, model.state.hasMoreWaiting]).toEqual([200, true])
    model.flush()
    await answerAll()
    expect([model.state.count, model.state.waitingCount, model.state.hasMoreWaiting]).toEqual([1500, 0, false])
    expect(numbers(0, 3)).toEqual([1500, 1499, 1498])
  })

  test('a gap in what was told is closed: rows are loaded again where they are, newer ones wait', async () => {
    stored[650] = make(651, 'requested', 'running', 'failed', 'failed', 'failed')
    stored.push(make(1001), make(1002))
    const before = numbers(300, 330)
    model.resync()
    expect(numbers(300, 330)).toEqual(before)
    await answerAll()
    await scrollTo(330)
    await answerAll()
    expect([numbers(300, 330), model.state.count, model.state.waitingCount]).toEqual([before, 1000, 2])
    expect(model.row(349)?.status).toBe('failed')
  })

  test('many that came in a gap are counted as more', async () => {
    for (let n = 1001; n <= 1300; n++) stored.push(make(n))
    model.resync()
    await answerAll()
    expect([model.state.waitingCount, model.state.hasMoreWaiting]).toEqual([LIST_PAGE_SIZE, true])
  })
})

test('a gap while the first rows are on their way does not keep anybody waiting for them', async () => {
  await start(100)
  model.refresh()
  const [first] = requests
  stored.push(make(101))
  model.resync()
  expect([requests.length, first?.signal.aborted]).toEqual([1, false])
  first?.answer()
  await settle()
  expect(requests).toHaveLength(2)
  await answerAll()
  expect(numbers(0, 2)).toEqual([101, 100])
})

test('a gap is closed by loading the newest again, where these are shown', async () => {
  await start(100)
  stored.push(make(101))
  model.resync()
  expect(numbers(0, 1)).toEqual([100])
  await answerAll()
  expect([model.state.count, numbers(0, 2)]).toEqual([101, [101, 100]])
})

test('a gap is closed for the newest rows, too, while somebody points at one of them', async () => {
  await start(100)
  model.show(0, 30)
  create(make(101, 'requested', 'running'))
  create(make(102, 'requested', 'running'))
  model.setLive(false)
  stored[100] = make(101)
  stored.push(make(103))
  model.resync()
  expect([numbers(0, 2), model.row(1)?.status]).toEqual([[102, 101], 'running'])
  await answerAll()
  expect([numbers(0, 2), model.row(1)?.status]).toEqual([[102, 101], 'succeeded'])
  expect(model.state).toMatchObject({ count: 102, waitingCount: 1 })
})

test('a gap that could not be closed is closed when somebody tries again', async () => {
  await start(100)
  model.show(0, 30)
  stored.push(make(101))
  model.resync()
  requests.splice(0)[0]?.fail('The server is starting.')
  await settle()
  expect(model.state).toMatchObject({ count: 100, error: new Error('The server is starting.') })
  model.retry()
  await answerAll()
  expect([model.state.count, model.state.error, numbers(0, 2)]).toEqual([101, undefined, [101, 100]])
})

describe('a list of a status', () => {
  beforeEach(async () => {
    dependsOnStatus = true
    matches = ({ status }) => status === 'running'
    await start(0)
    for (let n = 1; n <= 10; n++) stored.push(make(n, 'requested', 'running'))
    model.refresh()
    await answerAll()
  })

  const end = (n: number): void => {
    stored[n - 1] = make(n, 'requested', 'running', 'succeeded')
    model.accept([{ execution: make(n, 'requested', 'running', 'succeeded'), change: 'update' }])
  }

  test('keeps what has another one by now until it is loaded again, which is soon', async () => {
    await vi.advanceTimersByTimeAsync(2000)
    end(4)
    expect([model.row(6)?.status, model.state.isStale]).toEqual(['succeeded', true])
    await settle()
    await answerAll()
    expect([numbers(0, 10), model.state.isStale]).toEqual([[10, 9, 8, 7, 6, 5, 3, 2, 1, undefined], false])
  })

  test('does not remember from before a gap what has ended in it', async () => {
    create(make(11, 'requested', 'running'))
    expect(numbers(0, 2)).toEqual([11, 10])
    stored[10] = make(11, 'requested', 'running', 'succeeded')
    model.resync()
    await answerAll()
    expect([numbers(0, 2), model.state.count]).toEqual([[10, 9], 10])
  })

  test('is loaded once more when something has changed while it was on its way', async () => {
    await vi.advanceTimersByTimeAsync(2000)
    model.refresh()
    end(10)
    requests.splice(0)[0]?.answer()
    await settle()
    expect([model.row(0)?.status, model.state.isStale]).toEqual(['succeeded', true])
    await vi.advanceTimersByTimeAsync(1000)
    await answerAll()
    expect([numbers(0, 2), model.state.isStale]).toEqual([[9, 8], false])
  })

  test('is not loaded as often as something happens', async () => {
    await vi.advanceTimersByTimeAsync(2000)
    let loaded = 0
    for (let n = 1; n <= 10; n++) {
      end(n)
      await vi.advanceTimersByTimeAsync(100)
      loaded += requests.length
      await answerAll()
    }
    expect(loaded).toBeLessThanOrEqual(2)
    await vi.advanceTimersByTimeAsync(1000)
    await answerAll()
    expect(model.state.count).toBe(0)
  })

  test('is left as it is while somebody looks further down', async () => {
    model.setLive(false)
    end(4)
    await vi.advanceTimersByTimeAsync(5000)
    expect([requests.length, model.state.isStale, model.state.count]).toEqual([0, true, 10])
    model.setLive(true)
    await settle()
    await answerAll()
    expect(model.state.count).toBe(9)
  })

  test('is loaded again for one that has begun long ago and has the status now', async () => {
    stored.unshift(make(0, 'requested', 'running'))
    await vi.advanceTimersByTimeAsync(2000)
    model.accept([{ execution: make(0, 'requested', 'running'), change: 'update' }])
    await settle()
    await answerAll()
    expect(numbers(9, 11)).toEqual([1, 0])
  })
})

test('what only the server can tell is asked of it', async () => {
  await start(10)
  matches = () => undefined
  await vi.advanceTimersByTimeAsync(2000)
  create(make(11))
  expect([model.state.count, model.state.isStale]).toEqual([10, true])
  await settle()
  await answerAll()
  expect(model.state.count).toBe(11)
})

test('what the server looks at every execution for is asked the more rarely the longer that takes', async () => {
  isCostly = true
  await start(10)
  matches = () => undefined
  await vi.advanceTimersByTimeAsync(2000)
  model.refresh()
  await vi.advanceTimersByTimeAsync(3000)
  await answerAll()
  create(make(11))
  await vi.advanceTimersByTimeAsync(26_000)
  expect([requests.length, model.state.isStale]).toEqual([0, true])
  await vi.advanceTimersByTimeAsync(1000)
  expect(requests).toHaveLength(1)
})

test('nothing is left running once it is stopped', async () => {
  await start(1000)
  await scrollTo(500)
  model.stop()
  expect(open()).toEqual([])
  expect(vi.getTimerCount()).toBe(0)
})

test.each([
  ['000000000000000000000000', '000000000000000000000001'],
  ['65f0a0b0c0d0e0f0ffffffff', '65f0a0b0c0d0e0f100000000'],
])('the id after %s', (id, next) => {
  expect(nextId(id)).toBe(next)
})
