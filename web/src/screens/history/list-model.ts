/**
 * The rows of the history, of which there may be a million: pages are loaded for those that are seen, and few are kept.
 *
 * Rows are counted from the newest execution at the time of loading, the anchor, so that nothing moves while others begin.
 * Newer ones stand in front of that (`head`), or wait until somebody wants to see them. The server is asked for pages by the
 * id of the nearest row that is known: to skip a hundred thousand rows costs it time, to go on from one does not.
 */
import { isAbort } from '../../api/transport.ts'
import { laterOf, type ExecutionSummary } from '../../api/execution-summary.ts'

export const PAGE_SIZE = 50
/** Pages that are kept, those around what is seen. */
const MAX_PAGES = 40
/** Loaded at once; more would only wait for each other. */
const MAX_REQUESTS = 3
/** Newer ones that are kept while nobody wants to see them. */
const MAX_WAITING = 200
/** Last words of the event stream, against answers that were on their way meanwhile. */
const MAX_RECENT = 1000
/** Somebody who scrolls fast does not want all that they pass. */
const SETTLE_MS = 120
/** A list whose rows come and go with their status is loaded anew at most this often. */
const REFRESH_EVERY_MS = 1000
/** One for which the server looks at every execution: after a pause so many times as long as the last loading. */
const COSTLY_PAUSE = 10

/** Where a page begins. Without anything: at the newest. */
export interface Place {
  beforeId?: string
  /** The page ends before this one, and is counted from there. */
  afterId?: string
  offset: number
}

export interface Answer {
  /** Newest first. */
  items: ExecutionSummary[]
  /** Of all that match; undefined for pages that go on from an id. */
  total: number | undefined
}

export interface ListSource {
  load(place: Place, limit: number, signal: AbortSignal): Promise<Answer>
  /** Whether an execution belongs to the list; undefined when only the server can tell. */
  matches(execution: ExecutionSummary): boolean | undefined
  /** Whether that may change while it runs. */
  dependsOnStatus: boolean
  /** Whether the server looks at every execution for it. */
  isCostly: boolean
}

export interface ListState {
  /** Undefined until something was loaded. */
  count: number | undefined
  /** Newer ones that are not among the rows. */
  waitingCount: number
  /** There are more of them than were kept. */
  hasMoreWaiting: boolean
  /** Some rows may not belong here any more, or be missing: only loading it anew can tell. */
  isStale: boolean
  /** Of the last request that has failed. */
  error: unknown
}

export interface ListModel {
  readonly state: ListState
  row(index: number): ExecutionSummary | undefined
  /** Where an execution is, if its row is loaded. */
  indexOf(id: string): number | undefined
  /** As far as it is known. */
  find(id: string): ExecutionSummary | undefined
  /** Loads what is needed for these rows. */
  show(first: number, end: number): void
  /** Whether newer ones become rows as they come, or wait. */
  setLive(isLive: boolean): void
  /** Lets those that wait become rows. */
  flush(): void
  /** What has happened, in this order. */
  accept(events: Iterable<ListEvent>): void
  /** Begins anew with the newest; what is shown stays until that has come. */
  refresh(): void
  /** What happened for a while is not known: loads what is seen again, where it is, and what is newer. */
  resync(): void
  /** After an error. */
  retry(): void
  /** No request and no timer is left. It can be taken up again by `resync`. */
  stop(): void
}

export interface ListEvent {
  execution: ExecutionSummary
  change: 'create' | 'update' | 'delete'
}

/** @param onChange what is drawn may have changed */
export function createListModel(source: ListSource, onChange: () => void): ListModel {
  let state: ListState = {
    count: undefined,
    waitingCount: 0,
    hasMoreWaiting: false,
    isStale: false,
    error: undefined,
  }
  /** Newer than the anchor, newest first. */
  let head: ExecutionSummary[] = []
  /** Rows that were not loaded are undefined. */
  const pages = new Map<number, (ExecutionSummary | undefined)[]>()
  /** Those that were loaded before something was missed. */
  const oldPages = new Set<number>()
  /** Rows from the anchor on. */
  let baseCount = 0
  /** The least id beyond the anchor. */
  let top = ''
  const waiting = new Map<string, ExecutionSummary>()
  const recent = new Map<string, ExecutionSummary>()
  const requests = new Map<number, AbortController>()
  let whole: AbortController | undefined
  let newer: AbortController | undefined
  let seen: { first: number; end: number } = { first: 0, end: PAGE_SIZE }
  let isLive = true
  let settling: ReturnType<typeof setTimeout> | undefined
  let refreshing: ReturnType<typeof setTimeout> | undefined
  let refreshedAt = -Infinity
  /** By what the last one took. */
  let refreshEveryMs = REFRESH_EVERY_MS
  /** Something was missed while the newest were on their way. */
  let isMissing = false
  /** Newer ones may be missing among those that wait, which become no rows before: rows have no gaps. */
  let isBehind = false
  /** What has made the list stale may be later than what is on its way. */
  let isStaleAgain = false

  function changed(more: Partial<ListState> = {}): void {
    const count = top === '' ? undefined : head.length + baseCount
    state = { ...state, count, waitingCount: waiting.size, ...more }
    onChange()
  }

  function failed(error: unknown): void {
    if (!isAbort(error)) changed({ error })
  }

  /** An answer may be older than what the stream has told: then it has rows that do not belong here any more. */
  function current(execution: ExecutionSummary): ExecutionSummary {
    const told = recent.get(execution.id)
    if (told === undefined) return execution
    const later = laterOf(execution, told)
    if (later.status !== execution.status && source.matches(later) === false) state = { ...state, isStale: true }
    return later
  }

  function refresh(): void {
    beginRequests()
    isMissing = false
    isStaleAgain = false
    refreshedAt = performance.now()
    const controller = (whole = new AbortController())
    source.load({ offset: 0 }, PAGE_SIZE, controller.signal).then(
      ({ items, total = items.length }) => {
        if (controller.signal.aborted) return
        whole = undefined
        if (source.isCostly) {
          refreshEveryMs = Math.max(REFRESH_EVERY_MS, COSTLY_PAUSE * (performance.now() - refreshedAt))
        }
        begin(items, total)
        if (isMissing) resync()
      },
      (error: unknown) => {
        if (controller.signal.aborted) return
        whole = undefined
        failed(error)
      },
    )
  }

  function begin(items: ExecutionSummary[], total: number): void {
    head = []
    pages.clear()
    oldPages.clear()
    waiting.clear()
    isBehind = false
    top = items[0] === undefined ? '0'.repeat(24) : nextId(items[0].id)
    baseCount = Math.max(total, items.length)
    state = { ...state, hasMoreWaiting: false, isStale: isStaleAgain, error: undefined }
    pages.set(0, items.map(current))
    // The stream was faster than the answer.
    const oldest = items[PAGE_SIZE - 1]?.id ?? ''
    for (const execution of recent.values()) {
      if (source.matches(execution) !== true || placeOf(execution.id) !== undefined) continue
      if (execution.id >= top) waiting.set(execution.id, execution)
      else if (execution.id > oldest) state = { ...state, isStale: true }
    }
    if (isLive) takeWaiting()
    changed()
    loadSeen()
    refreshWhenStale()
  }

  function takeWaiting(): void {
    if (waiting.size === 0) return
    head = [...waiting.values(), ...head].toSorted((a, b) => (a.id < b.id ? 1 : -1))
    waiting.clear()
    // Pages stay as they are: a whole one of the newer becomes the first.
    while (head.length >= 2 * PAGE_SIZE) {
      const first = head.splice(-PAGE_SIZE)
      const others = [...pages]
      const old = [...oldPages]
      pages.clear()
      oldPages.clear()
      pages.set(0, first)
      for (const [number, rows] of others) pages.set(number + 1, rows)
      for (const number of old) oldPages.add(number + 1)
      // What is on its way is for another place now.
      abortPages()
      baseCount += PAGE_SIZE
      top = nextId(first[0]?.id ?? top)
    }
    forgetFarPages()
  }

  function flush(): void {
    // They come with what is on its way.
    if (whole !== undefined) return
    if (state.hasMoreWaiting || isBehind) {
      refresh()
      return
    }
    takeWaiting()
    changed()
    loadSeen()
  }

  function accept(events: Iterable<ListEvent>): void {
    let isStale = false
    let isNew = false
    for (const { execution, change } of events) {
      remember(execution)
      if (top === '') {
        isStaleAgain ||= source.dependsOnStatus
        continue
      }
      const isKnown = replace(execution)
      const fits = source.matches(execution)
      if (isKnown) isStale ||= fits === false || change === 'delete'
      else if (fits === false || change === 'delete') continue
      else if (fits === undefined) isStale = true
      else if (execution.id >= top) {
        isNew = true
        wait(execution)
      } else {
        // It has come to belong here; or it was begun before another one, and told of after that.
        isStale ||= source.dependsOnStatus || change === 'create'
      }
    }
    if (isNew && isLive && !isBehind) takeWaiting()
    isStaleAgain ||= isStale
    changed(isStale ? { isStale } : {})
    if (isLive && isNew) loadSeen()
    refreshWhenStale()
  }

  function wait(execution: ExecutionSummary): void {
    waiting.set(execution.id, execution)
    if (isLive || waiting.size <= MAX_WAITING) return
    const oldest = waiting.keys().next()
    if (oldest.done !== true) waiting.delete(oldest.value)
    state = { ...state, hasMoreWaiting: true }
  }

  function remember(execution: ExecutionSummary): void {
    const told = recent.get(execution.id)
    recent.delete(execution.id)
    recent.set(execution.id, told === undefined ? execution : laterOf(told, execution))
    if (recent.size <= MAX_RECENT) return
    const oldest = recent.keys().next()
    if (oldest.done !== true) recent.delete(oldest.value)
  }

  function row(index: number): ExecutionSummary | undefined {
    if (index < head.length) return head[index]
    const inBase = index - head.length
    return pages.get(Math.floor(inBase / PAGE_SIZE))?.[inBase % PAGE_SIZE]
  }

  /** @returns whether it is among the rows, or waits */
  function replace(execution: ExecutionSummary): boolean {
    const { id } = execution
    const before = waiting.get(id)
    if (before !== undefined) waiting.set(id, laterOf(before, execution))
    const place = placeOf(id)
    if (place === undefined) return before !== undefined
    const [rows, index] = place
    const row = rows[index]
    if (row !== undefined) rows[index] = laterOf(row, execution)
    return true
  }

  function placeOf(id: string): [rows: (ExecutionSummary | undefined)[], index: number, from: number] | undefined {
    if (id >= top) {
      const index = head.findIndex((one) => one.id === id)
      return index === -1 ? undefined : [head, index, 0]
    }
    for (const [number, rows] of pages) {
      // Rows are in the order of ids, so that most pages need no look.
      const [first, last] = [rows[0], rows.at(-1)]
      if (first === undefined || last === undefined || id > first.id || id < last.id) continue
      const index = rows.findIndex((one) => one?.id === id)
      if (index !== -1) return [rows, index, head.length + number * PAGE_SIZE]
    }
    return undefined
  }

  function refreshWhenStale(): void {
    if (!state.isStale || !isLive || refreshing !== undefined || whole !== undefined) return
    const inMs = Math.max(0, refreshedAt + refreshEveryMs - performance.now())
    refreshing = setTimeout(() => {
      refreshing = undefined
      if (state.isStale && isLive) refresh()
    }, inMs)
  }

  /** Numbers of the pages that are seen, of those that there are. */
  function seenPages(): number[] {
    const first = Math.max(0, Math.floor((seen.first - head.length) / PAGE_SIZE))
    const end = Math.min(Math.ceil((seen.end - head.length) / PAGE_SIZE), Math.ceil(baseCount / PAGE_SIZE))
    return Array.from({ length: Math.max(0, end - first) }, (_, i) => first + i)
  }

  function loadSeen(): void {
    if (top === '' || whole !== undefined) return
    const wanted = seenPages()
    for (const [number, controller] of requests) {
      if (wanted.includes(number)) continue
      controller.abort()
      requests.delete(number)
    }
    for (const number of wanted) {
      if (requests.size >= MAX_REQUESTS) break
      if ((pages.has(number) && !oldPages.has(number)) || requests.has(number)) continue
      loadPage(number)
    }
  }

  function loadPage(number: number): void {
    const controller = new AbortController()
    requests.set(number, controller)
    const place = wayTo(number)
    source.load(place, PAGE_SIZE, controller.signal).then(
      ({ items }) => {
        if (controller.signal.aborted) return
        requests.delete(number)
        take(number, items, place)
        if (!isBehind) state = { ...state, error: undefined }
        changed()
        loadSeen()
        refreshWhenStale()
      },
      (error: unknown) => {
        if (controller.signal.aborted) return
        requests.delete(number)
        failed(error)
      },
    )
  }

  /** From the nearest row that is known. */
  function wayTo(number: number): Place {
    let best: Place = { beforeId: top, offset: number * PAGE_SIZE }
    for (const [other, rows] of pages) {
      const [first, last] = [rows[0], rows.at(-1)]
      if (first === undefined || last === undefined || oldPages.has(other)) continue
      const pagesBetween = Math.abs(other - number) - 1
      if (pagesBetween < 0 || pagesBetween * PAGE_SIZE >= best.offset) continue
      if (other > number) best = { afterId: first.id, beforeId: top, offset: pagesBetween * PAGE_SIZE }
      else if (rows.length === PAGE_SIZE) best = { beforeId: last.id, offset: pagesBetween * PAGE_SIZE }
    }
    return best
  }

  function take(number: number, items: ExecutionSummary[], { afterId }: Place): void {
    pages.set(number, items.map(current))
    oldPages.delete(number)
    if (items.length < PAGE_SIZE) {
      // Rows have gone since they were counted: at the end the old ones, which is where they are missed.
      if (afterId === undefined) baseCount = Math.min(baseCount, number * PAGE_SIZE + items.length)
      else state = { ...state, isStale: true }
    }
    forgetFarPages()
  }

  function forgetFarPages(): void {
    const middle = ((seen.first + seen.end) / 2 - head.length) / PAGE_SIZE
    while (pages.size > MAX_PAGES) {
      const farthest = [...pages.keys()].reduce((a, b) => (Math.abs(a - middle) >= Math.abs(b - middle) ? a : b))
      pages.delete(farthest)
      oldPages.delete(farthest)
    }
  }

  /** What stands in front of the anchor becomes a part of the pages, to be loaded again as they are. No row moves. */
  function headToPages(): void {
    if (head[0] === undefined) return
    const kept: (ExecutionSummary | undefined)[][] = []
    for (let index = seen.first; index < seen.end; index++) {
      const execution = row(index)
      if (execution !== undefined) (kept[Math.floor(index / PAGE_SIZE)] ??= [])[index % PAGE_SIZE] = execution
    }
    top = nextId(head[0].id)
    baseCount += head.length
    head = []
    pages.clear()
    oldPages.clear()
    kept.forEach((rows, number) => pages.set(number, rows))
  }

  function resync(): void {
    isBehind = true
    if (whole !== undefined) {
      // What somebody waits for comes first.
      isMissing = true
      return
    }
    if (top === '' || isLive) {
      refresh()
      return
    }
    beginRequests()
    headToPages()
    for (const number of pages.keys()) oldPages.add(number)
    // Rows that do not belong here any more are among those that are shown; which ones nobody has told.
    if (source.dependsOnStatus) state = { ...state, isStale: true }
    loadSeen()
    const controller = (newer = new AbortController())
    source.load({ afterId: lastBefore(top), offset: 0 }, PAGE_SIZE, controller.signal).then(
      ({ items }) => {
        if (controller.signal.aborted) return
        for (const execution of items) {
          // It may have become a row meanwhile.
          if (!replace(execution) && execution.id >= top) waiting.set(execution.id, current(execution))
        }
        isBehind = false
        changed(items.length >= PAGE_SIZE ? { hasMoreWaiting: true } : {})
      },
      (error: unknown) => {
        if (!controller.signal.aborted) failed(error)
      },
    )
  }

  function abortPages(): void {
    for (const controller of requests.values()) controller.abort()
    requests.clear()
  }

  /**
   * What was told before a request is in its answer. Afterwards it may be wrong: what has come since, while the stream was cut,
   * nobody has told.
   */
  function beginRequests(): void {
    abortAll()
    recent.clear()
  }

  function abortAll(): void {
    abortPages()
    newer?.abort()
    whole?.abort()
    whole = undefined
    clearTimeout(settling)
    clearTimeout(refreshing)
    refreshing = undefined
  }

  return {
    get state() {
      return state
    },
    row,
    indexOf(id) {
      const place = placeOf(id)
      return place === undefined ? undefined : place[2] + place[1]
    },
    find(id) {
      const place = placeOf(id)
      return place?.[0][place[1]] ?? waiting.get(id) ?? recent.get(id)
    },
    show(first, end) {
      const isNear = Math.abs(first - seen.first) <= PAGE_SIZE
      seen = { first, end }
      clearTimeout(settling)
      if (isNear) loadSeen()
      else settling = setTimeout(loadSeen, SETTLE_MS)
    },
    setLive(live) {
      if (isLive === live) return
      isLive = live
      if (!isLive) return
      if (state.waitingCount > 0 || isBehind) flush()
      refreshWhenStale()
    },
    flush,
    accept,
    refresh,
    resync,
    retry() {
      changed({ error: undefined })
      resync()
    },
    stop: abortAll,
  }
}

/** The id that comes next: ids are numbers of 24 hexadecimal digits. */
export function nextId(id: string): string {
  return hex(BigInt(`0x${id}`) + 1n)
}

function lastBefore(id: string): string {
  const number = BigInt(`0x${id}`)
  return hex(number === 0n ? 0n : number - 1n)
}

function hex(number: bigint): string {
  return number.toString(16).padStart(24, '0')
}
