/** The invariants of the rows, after every action of random sequences. */
import { expect, test } from 'vitest'
import { createRandom, seedOfRun, type Random } from '../../../../tests/helpers/random.ts'
import type { ExecutionSummary } from '../../api/execution-summary.ts'
import type { ExecutionStatus } from '../../api/records.ts'
import {
  listCount,
  emptyRows,
  listIndexOf,
  MAX_PAGES,
  MAX_RECENT,
  MAX_WAITING,
  LIST_PAGE_SIZE,
  placeOfPage,
  previousId,
  reduceRows,
  listRowAt,
  visiblePages,
  type ListAction,
  type ListRows,
  type ListRules,
  type PagePlace,
} from './list-rows.ts'

const ROUNDS = 10
const STEPS = 300
const seed = seedOfRun()

function make(number: number, status: ExecutionStatus = 'running'): ExecutionSummary {
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

const isDescending = (ids: readonly string[]): boolean => ids.every((id, i) => i === 0 || id < (ids[i - 1] ?? ''))

function brokenInvariants(rows: ListRows): string[] {
  const { head, pages, outdatedPages, waiting, anchor, recent, isLive } = rows
  const newer = [...head, ...waiting.values()].map(({ id }) => id)
  const rules: Record<string, boolean> = {
    'newer executions are beyond the anchor': newer.every((id) => id >= anchor),
    'an execution is a row or waits': new Set(newer).size === newer.length,
    'the head is in order': isDescending(head.map(({ id }) => id)),
    'the head has its indexes': head.every(({ id }, i) => listIndexOf(rows, id) === i),
    'outdated pages exist': [...outdatedPages].every((number) => pages.has(number)),
    'the head is bounded': head.length < 2 * LIST_PAGE_SIZE,
    'pages are bounded': pages.size <= MAX_PAGES,
    'events are bounded': recent.size <= MAX_RECENT,
    'executions that wait are bounded': isLive || waiting.size <= MAX_WAITING,
  }
  for (const [number, page] of pages) {
    const ids = page.flatMap((row) => row?.id ?? [])
    rules[`page ${number} is older than the anchor`] = ids.every((id) => id < anchor)
    rules[`page ${number} is in order`] = outdatedPages.has(number) || isDescending(ids)
    rules[`page ${number} is bounded`] = page.length <= LIST_PAGE_SIZE
    rules[`page ${number} has its rows`] = page.every(
      (row, i) => listRowAt(rows, head.length + number * LIST_PAGE_SIZE + i) === row,
    )
  }
  return Object.keys(rules).filter((rule) => rules[rule] === false)
}

function movedPages(before: ListRows, after: ListRows): number[] {
  return [...after.pages.keys()].filter((number) =>
    after.pages.get(number)?.some((row, i) => row?.id !== before.pages.get(number)?.[i]?.id),
  )
}

/** A server, oldest execution first, and what may happen with it. */
function createActions(
  random: Random,
  dependsOnStatus: boolean,
): { next: (rows: ListRows) => ListAction; rules: ListRules } {
  let number = 0
  const stored: ExecutionSummary[] = []
  const begin = (): ExecutionSummary => {
    number += 1 + random.below(3)
    const execution = make(number)
    stored.push(execution)
    return execution
  }
  for (let i = random.below(4 * LIST_PAGE_SIZE * MAX_PAGES); i > 0; i--) begin()
  const rules: ListRules = {
    matches: ({ status }) => (dependsOnStatus ? status === 'running' : true),
    dependsOnStatus,
  }
  const answer = ({ beforeId, afterId, offset }: PagePlace): ExecutionSummary[] => {
    const within = stored
      .filter((one) => rules.matches(one) === true)
      .filter(({ id }) => (beforeId === undefined || id < beforeId) && (afterId === undefined || id > afterId))
    const isAscending = beforeId !== undefined && afterId !== undefined
    const page = (isAscending ? within : within.toReversed()).slice(offset, offset + LIST_PAGE_SIZE)
    return isAscending ? page.toReversed() : page
  }
  const listLoaded = (): ListAction => ({
    type: 'list loaded',
    items: answer({ offset: 0 }),
    total: stored.filter((one) => rules.matches(one) === true).length,
  })
  const events = (): ListAction => ({
    type: 'events received',
    events: Array.from({ length: 1 + random.below(60) }, () => {
      if (random.below(3) > 0 || stored.length === 0) return { execution: begin(), change: 'create' as const }
      const index = random.below(stored.length)
      const { id } = stored[index] ?? begin()
      const ended = make(Number.parseInt(id, 16), 'succeeded')
      stored[index] = ended
      return { execution: ended, change: 'update' as const }
    }),
  })
  const next = (rows: ListRows): ListAction => {
    switch (random.below(10)) {
      case 0:
        return { type: 'list requested' }
      case 1:
        return listLoaded()
      case 2:
        return { type: 'events missed' }
      case 3:
        return rows.anchor === '' ? listLoaded() : { type: 'update requested' }
      case 4:
        return rows.anchor === ''
          ? listLoaded()
          : { type: 'newest loaded', items: answer({ afterId: previousId(rows.anchor), offset: 0 }) }
      case 5:
        return rows.hasGap || rows.hasMoreWaiting ? listLoaded() : { type: 'waiting taken' }
      case 6:
        return { type: 'live changed', isLive: random.below(2) === 0 }
      case 7: {
        const first = random.below(Math.max(1, listCount(rows) ?? 1))
        return { type: 'scrolled', first, end: first + 40 }
      }
      case 8: {
        const [page] = visiblePages(rows)
        if (page === undefined) return events()
        const place = placeOfPage(rows, page)
        return { type: 'page loaded', number: page, place, items: answer(place) }
      }
      default:
        return events()
    }
  }
  return { next, rules }
}

test.each([false, true])('hold after every action (matches depend on the status: %s)', (dependsOnStatus) => {
  for (let round = 0; round < ROUNDS; round++) {
    const { next, rules } = createActions(createRandom(seed + round), dependsOnStatus)
    let rows = emptyRows
    for (let step = 0; step < STEPS; step++) {
      const before = rows
      const action = next(rows)
      rows = reduceRows(rows, action, rules)
      expect(brokenInvariants(rows), `seed ${seed}, round ${round}, step ${step}: ${action.type}`).toEqual([])
      // A request for a page stays good as long as the anchor is the same.
      const isAnswer = action.type === 'list loaded' || action.type === 'page loaded'
      const moved = isAnswer || rows.anchor !== before.anchor ? [] : movedPages(before, rows)
      expect(moved).toEqual([])
    }
  }
})

test('an action leaves the rows before it as they were', () => {
  const rules: ListRules = { matches: () => true, dependsOnStatus: false }
  const loaded = reduceRows(emptyRows, { type: 'list loaded', items: [make(2), make(1)], total: 2 }, rules)
  const frozen = structuredClone(loaded)
  reduceRows(
    loaded,
    { type: 'events received', events: [{ execution: make(2, 'succeeded'), change: 'update' }] },
    rules,
  )
  reduceRows(loaded, { type: 'events received', events: [{ execution: make(3), change: 'create' }] }, rules)
  reduceRows(loaded, { type: 'update requested' }, rules)
  expect(loaded).toEqual(frozen)
  expect(emptyRows.pages.size).toBe(0)
})
