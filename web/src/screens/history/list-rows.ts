/**
 * The rows of the history as a reducer: pure functions of what was loaded and what the event stream said.
 *
 * Rows count from the newest execution at the time of loading, the anchor, so that no row moves while executions begin.
 * Newer ones stand before the anchor (`head`), or wait until somebody asks for them (`waiting`).
 *
 * Invariants, which `list-rows.test.ts` checks after every action:
 * 1. Row `i` is `head[i]`, and from `head.length` on `pages.get(n)[m]` with `i - head.length = n * PAGE_SIZE + m`.
 * 2. Ids of `head` and `waiting` are at least `anchor`, ids of pages are less than it.
 * 3. `head` and the rows of each page that is not outdated are in descending order of ids; no id is both in `head` and
 *    in `waiting`.
 * 4. `outdatedPages` holds numbers of `pages` only.
 * 5. Bounded: fewer than two pages in `head`, `MAX_PAGES` pages, `MAX_RECENT` events; `MAX_WAITING` unless live.
 * 6. While `hasGap` is set, `waiting` does not move to `head`: rows have no gaps.
 * 7. Numbers of pages change only together with `anchor`: a request for a page is void once the anchor differs.
 */
import { laterOf, type ExecutionSummary } from '../../api/execution-summary.ts'

export const LIST_PAGE_SIZE = 50
/** Pages that are kept: those nearest to the visible rows. */
export const MAX_PAGES = 40
/** Newer executions that are kept while they are not rows. */
export const MAX_WAITING = 200
/** Last events of the stream, which correct answers that were sent before them. */
export const MAX_RECENT = 1000

/** Where a page begins. Without ids: at the newest execution. */
export interface PagePlace {
  beforeId?: string
  /** The page ends before this execution; `offset` counts from there. */
  afterId?: string
  offset: number
}

export interface ListEvent {
  execution: ExecutionSummary
  change: 'create' | 'update' | 'delete'
}

/** Which executions belong to the list. */
export interface ListRules {
  /** Undefined: only the server can tell. */
  matches(execution: ExecutionSummary): boolean | undefined
  /** Whether a match can change while an execution runs. */
  dependsOnStatus: boolean
}

type Page = readonly (ExecutionSummary | undefined)[]

export interface ListRows {
  /** Rows before the anchor, newest first. */
  readonly head: readonly ExecutionSummary[]
  /** By number. Rows that are not loaded are undefined. */
  readonly pages: ReadonlyMap<number, Page>
  /** Pages that were loaded before events were missed. */
  readonly outdatedPages: ReadonlySet<number>
  /** Rows from the anchor on. */
  readonly baseCount: number
  /** The least id that is newer than every page; empty until something was loaded. */
  readonly anchor: string
  /** Newer executions that are not rows, oldest first. */
  readonly waiting: ReadonlyMap<string, ExecutionSummary>
  /** More are waiting than were kept. */
  readonly hasMoreWaiting: boolean
  /** Executions newer than the anchor may be missing among those that wait. */
  readonly hasGap: boolean
  /** Last events, oldest first. */
  readonly recent: ReadonlyMap<string, ExecutionSummary>
  /** Rows may be missing or may not match any more: only loading the list again can tell. */
  readonly isStale: boolean
  /** An event made the list stale after the request that is on its way. */
  readonly isStaleSinceRequest: boolean
  /** Whether newer executions become rows at once. */
  readonly isLive: boolean
  readonly visible: { readonly first: number; readonly end: number }
  /** Of the last request that failed. */
  readonly error: unknown
}

export type ListAction =
  /** The first page is requested: the answer will contain every event up to now. */
  | { type: 'list requested' }
  | { type: 'list loaded'; items: readonly ExecutionSummary[]; total: number }
  | { type: 'page loaded'; number: number; place: PagePlace; items: readonly ExecutionSummary[] }
  /** Events were missed. */
  | { type: 'events missed' }
  /** The visible pages and the newest executions are requested, after events were missed. */
  | { type: 'update requested' }
  | { type: 'newest loaded'; items: readonly ExecutionSummary[] }
  | { type: 'events received'; events: Iterable<ListEvent> }
  /** Executions that wait become rows. */
  | { type: 'waiting taken' }
  | { type: 'live changed'; isLive: boolean }
  | { type: 'scrolled'; first: number; end: number }
  | { type: 'request failed'; error: unknown }
  | { type: 'error cleared' }

export const emptyRows: ListRows = {
  head: [],
  pages: new Map(),
  outdatedPages: new Set(),
  baseCount: 0,
  anchor: '',
  waiting: new Map(),
  hasMoreWaiting: false,
  hasGap: false,
  recent: new Map(),
  isStale: false,
  isStaleSinceRequest: false,
  isLive: true,
  visible: { first: 0, end: LIST_PAGE_SIZE },
  error: undefined,
}

/** The rows while an action is applied: containers are copies of those before it. */
type Draft = {
  -readonly [K in keyof ListRows]: ListRows[K] extends ReadonlyMap<infer Key, infer Value>
    ? Map<Key, Value>
    : ListRows[K] extends ReadonlySet<infer Item>
      ? Set<Item>
      : ListRows[K]
}

export function reduceRows(rows: ListRows, action: ListAction, rules: ListRules): ListRows {
  switch (action.type) {
    case 'scrolled':
      return { ...rows, visible: { first: action.first, end: action.end } }
    case 'live changed':
      return { ...rows, isLive: action.isLive }
    case 'events missed':
      return { ...rows, hasGap: true }
    case 'request failed':
      return { ...rows, error: action.error }
    case 'error cleared':
      return { ...rows, error: undefined }
    case 'list requested':
      return { ...rows, recent: new Map(), isStaleSinceRequest: false }
    default: {
      const draft: Draft = {
        ...rows,
        pages: new Map(rows.pages),
        outdatedPages: new Set(rows.outdatedPages),
        waiting: new Map(rows.waiting),
        recent: new Map(rows.recent),
      }
      apply(draft, action, rules)
      return draft
    }
  }
}

type LargeAction = Extract<
  ListAction,
  { type: 'list loaded' | 'page loaded' | 'update requested' | 'newest loaded' | 'events received' | 'waiting taken' }
>

function apply(draft: Draft, action: LargeAction, rules: ListRules): void {
  switch (action.type) {
    case 'list loaded':
      takeList(draft, action.items, action.total, rules)
      break
    case 'page loaded':
      takePage(draft, action, rules)
      break
    case 'update requested':
      outdatePages(draft, rules)
      break
    case 'newest loaded':
      takeNewest(draft, action.items, rules)
      break
    case 'events received':
      takeEvents(draft, action.events, rules)
      break
    case 'waiting taken':
      takeWaiting(draft)
  }
}

export function listCount({ anchor, head, baseCount }: ListRows): number | undefined {
  return anchor === '' ? undefined : head.length + baseCount
}

export function listRowAt({ head, pages }: ListRows, index: number): ExecutionSummary | undefined {
  if (index < head.length) return head[index]
  const inBase = index - head.length
  return pages.get(Math.floor(inBase / LIST_PAGE_SIZE))?.[inBase % LIST_PAGE_SIZE]
}

/** Row of an execution; undefined: it is not loaded. */
export function listIndexOf(rows: ListRows, id: string): number | undefined {
  const found = locate(rows, id)
  if (found === undefined) return undefined
  return found.page === undefined ? found.index : rows.head.length + found.page * LIST_PAGE_SIZE + found.index
}

/** Numbers of the existing pages that are visible. */
export function visiblePages({ head, baseCount, visible }: ListRows): number[] {
  const first = Math.max(0, Math.floor((visible.first - head.length) / LIST_PAGE_SIZE))
  const end = Math.min(Math.ceil((visible.end - head.length) / LIST_PAGE_SIZE), Math.ceil(baseCount / LIST_PAGE_SIZE))
  return Array.from({ length: Math.max(0, end - first) }, (_, i) => first + i)
}

/** How to ask for a page: from the nearest loaded row, since skipping many rows costs the server time. */
export function placeOfPage({ anchor, pages, outdatedPages }: ListRows, number: number): PagePlace {
  let best: PagePlace = { beforeId: anchor, offset: number * LIST_PAGE_SIZE }
  for (const [other, page] of pages) {
    const [first, last] = [page[0], page.at(-1)]
    if (first === undefined || last === undefined || outdatedPages.has(other)) continue
    const pagesBetween = Math.abs(other - number) - 1
    if (pagesBetween < 0 || pagesBetween * LIST_PAGE_SIZE >= best.offset) continue
    if (other > number) best = { afterId: first.id, beforeId: anchor, offset: pagesBetween * LIST_PAGE_SIZE }
    else if (page.length === LIST_PAGE_SIZE) best = { beforeId: last.id, offset: pagesBetween * LIST_PAGE_SIZE }
  }
  return best
}

function takeList(draft: Draft, items: readonly ExecutionSummary[], total: number, rules: ListRules): void {
  draft.head = []
  draft.pages.clear()
  draft.outdatedPages.clear()
  draft.waiting.clear()
  draft.hasGap = false
  draft.anchor = items[0] === undefined ? '0'.repeat(24) : nextId(items[0].id)
  draft.baseCount = Math.max(total, items.length)
  draft.hasMoreWaiting = false
  draft.isStale = draft.isStaleSinceRequest
  draft.error = undefined
  draft.pages.set(0, latestOf(draft, items, rules))
  // The stream was faster than the answer.
  const oldest = items[LIST_PAGE_SIZE - 1]?.id ?? ''
  for (const execution of draft.recent.values()) {
    if (rules.matches(execution) !== true || locate(draft, execution.id) !== undefined) continue
    if (execution.id >= draft.anchor) addWaiting(draft, execution)
    else if (execution.id > oldest) draft.isStale = true
  }
  if (draft.isLive) takeWaiting(draft)
}

function takePage(
  draft: Draft,
  { number, items, place }: { number: number; items: readonly ExecutionSummary[]; place: PagePlace },
  rules: ListRules,
): void {
  draft.pages.set(number, latestOf(draft, items, rules))
  draft.outdatedPages.delete(number)
  if (items.length < LIST_PAGE_SIZE) {
    // Rows were deleted after they were counted: old ones at the end, which is where they are missing.
    if (place.afterId === undefined) draft.baseCount = Math.min(draft.baseCount, number * LIST_PAGE_SIZE + items.length)
    else draft.isStale = true
  }
  dropFarPages(draft)
  if (!draft.hasGap) draft.error = undefined
}

function takeNewest(draft: Draft, items: readonly ExecutionSummary[], rules: ListRules): void {
  for (const execution of items.toReversed()) {
    // The stream may have made it a row since.
    if (replace(draft, execution) || execution.id < draft.anchor) continue
    addWaiting(draft, latest(draft, execution, rules))
  }
  draft.hasGap = false
  if (items.length >= LIST_PAGE_SIZE) draft.hasMoreWaiting = true
}

function takeEvents(draft: Draft, events: Iterable<ListEvent>, rules: ListRules): void {
  let isStale = false
  let isNew = false
  for (const { execution, change } of events) {
    remember(draft, execution)
    if (draft.anchor === '') {
      draft.isStaleSinceRequest ||= rules.dependsOnStatus
      continue
    }
    const isKnown = replace(draft, execution)
    const isMatch = rules.matches(execution)
    if (isKnown) isStale ||= isMatch === false || change === 'delete'
    else if (isMatch === false || change === 'delete') continue
    else if (isMatch === undefined) isStale = true
    else if (execution.id >= draft.anchor) {
      isNew = true
      addWaiting(draft, execution)
    } else {
      // It began to match, or its event comes after that of a newer execution.
      isStale ||= rules.dependsOnStatus || change === 'create'
    }
  }
  if (isNew && draft.isLive && !draft.hasGap) takeWaiting(draft)
  draft.isStaleSinceRequest ||= isStale
  draft.isStale ||= isStale
}

function takeWaiting(draft: Draft): void {
  if (draft.waiting.size === 0) return
  const head = [...draft.waiting.values(), ...draft.head].toSorted((a, b) => (a.id < b.id ? 1 : -1))
  draft.waiting.clear()
  // Pages stay as they are: a whole page of newer executions becomes the first.
  while (head.length >= 2 * LIST_PAGE_SIZE) {
    const first = head.splice(-LIST_PAGE_SIZE)
    draft.pages = new Map([[0, first], ...[...draft.pages].map(([number, page]) => [number + 1, page] as const)])
    draft.outdatedPages = new Set([...draft.outdatedPages].map((number) => number + 1))
    draft.baseCount += LIST_PAGE_SIZE
    draft.anchor = nextId(first[0]?.id ?? draft.anchor)
  }
  draft.head = head
  dropFarPages(draft)
}

/** Visible rows stay where they are until they are loaded again; the anchor moves to the newest of them. */
function outdatePages(draft: Draft, rules: ListRules): void {
  draft.recent.clear()
  const [newest] = draft.head
  if (newest !== undefined) {
    const kept: (ExecutionSummary | undefined)[][] = []
    for (let index = draft.visible.first; index < draft.visible.end; index++) {
      const execution = listRowAt(draft, index)
      if (execution !== undefined) (kept[Math.floor(index / LIST_PAGE_SIZE)] ??= [])[index % LIST_PAGE_SIZE] = execution
    }
    draft.anchor = nextId(newest.id)
    draft.baseCount += draft.head.length
    draft.head = []
    draft.pages.clear()
    kept.forEach((page, number) => draft.pages.set(number, page))
  }
  draft.outdatedPages = new Set(draft.pages.keys())
  // No event says which of the rows do not match any more.
  if (rules.dependsOnStatus) draft.isStale = true
}

function addWaiting(draft: Draft, execution: ExecutionSummary): void {
  draft.waiting.set(execution.id, execution)
  if (draft.isLive || draft.waiting.size <= MAX_WAITING) return
  dropOldest(draft.waiting)
  draft.hasMoreWaiting = true
}

function remember({ recent }: Draft, execution: ExecutionSummary): void {
  const before = recent.get(execution.id)
  recent.delete(execution.id)
  recent.set(execution.id, before === undefined ? execution : laterOf(before, execution))
  if (recent.size > MAX_RECENT) dropOldest(recent)
}

function dropOldest(executions: Map<string, ExecutionSummary>): void {
  const oldest = executions.keys().next()
  if (oldest.done !== true) executions.delete(oldest.value)
}

function dropFarPages({ pages, outdatedPages, visible, head }: Draft): void {
  const middle = ((visible.first + visible.end) / 2 - head.length) / LIST_PAGE_SIZE
  while (pages.size > MAX_PAGES) {
    const farthest = [...pages.keys()].reduce((a, b) => (Math.abs(a - middle) >= Math.abs(b - middle) ? a : b))
    pages.delete(farthest)
    outdatedPages.delete(farthest)
  }
}

function latestOf(draft: Draft, items: readonly ExecutionSummary[], rules: ListRules): ExecutionSummary[] {
  return items.map((execution) => latest(draft, execution, rules))
}

/** An answer may be older than the stream: then it has rows that do not match any more. */
function latest(draft: Draft, execution: ExecutionSummary, rules: ListRules): ExecutionSummary {
  const event = draft.recent.get(execution.id)
  if (event === undefined) return execution
  const later = laterOf(execution, event)
  if (later.status !== execution.status && rules.matches(later) === false) draft.isStale = true
  return later
}

/** @returns whether the execution is a row, or waits */
function replace(draft: Draft, execution: ExecutionSummary): boolean {
  const { id } = execution
  const waiting = draft.waiting.get(id)
  if (waiting !== undefined) draft.waiting.set(id, laterOf(waiting, execution))
  const found = locate(draft, id)
  if (found === undefined) return waiting !== undefined
  const { page, index, row } = found
  const later = laterOf(row, execution)
  if (page === undefined) draft.head = draft.head.with(index, later)
  else draft.pages.set(page, (draft.pages.get(page) ?? []).with(index, later))
  return true
}

interface Found {
  /** Undefined: it is in `head`. */
  page: number | undefined
  index: number
  row: ExecutionSummary
}

function locate({ anchor, head, pages }: ListRows | Draft, id: string): Found | undefined {
  const find = (page: number | undefined, rows: Page): Found | undefined => {
    const index = rows.findIndex((one) => one?.id === id)
    const row = rows[index]
    return row === undefined ? undefined : { page, index, row }
  }
  if (id >= anchor) return find(undefined, head)
  for (const [number, page] of pages) {
    // Rows are in the order of ids, so that most pages need no search.
    const [first, last] = [page[0], page.at(-1)]
    if (first === undefined || last === undefined || id > first.id || id < last.id) continue
    const found = find(number, page)
    if (found !== undefined) return found
  }
  return undefined
}

/** The id that comes next: ids are numbers of 24 hexadecimal digits. */
export function nextId(id: string): string {
  return hex(BigInt(`0x${id}`) + 1n)
}

/** The id that comes before. */
export function previousId(id: string): string {
  const number = BigInt(`0x${id}`)
  return hex(number === 0n ? 0n : number - 1n)
}

function hex(number: bigint): string {
  return number.toString(16).padStart(24, '0')
}
