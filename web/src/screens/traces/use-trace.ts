/** A trace with its members, while it grows, and with what has become of them. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { get, isAbort, list, request } from '../../api/client.ts'
import { useExecutionEvents } from '../../api/execution-events.ts'
import { executionStates, type ExecutionState } from '../../api/execution-states.ts'
import { isFinalStatus } from '../../api/execution-status.ts'
import { laterOf } from '../../api/execution-summary.ts'
import { usePoll } from '../../api/poll.ts'
import type { TraceMemberRecord, TraceRecord, TriggerInstanceRecord } from '../../api/records.ts'

/** More than anybody looks through; of a longer trace either end is shown. */
export const MAX_MEMBERS = 5000
const MEMBERS_TOGETHER = 1000
const IDS_TOGETHER = 100
const POLL_MS = 5000
const AFTER_EVENT_MS = 200
/** Of a long trace less often: a drawing takes longer. */
const DRAWN_EVERY_MS = 50
const PER_MEMBER_MS = 0.1

export type Part = 'first' | 'last'

export type InstanceState = Pick<TriggerInstanceRecord, 'id' | 'status' | 'trigger_type' | 'trigger'>

export interface TraceHead {
  id: string
  trace_tag: string
  start_timestamp: string
}

export interface LoadedTrace {
  head: TraceHead
  /** In the order in which they were added. */
  members: readonly TraceMemberRecord[]
  /** Members there are; at least so many. */
  total: number
  /** All that there are are loaded, or will be. */
  isWhole: boolean
  isLoading: boolean
  /** Of executions, by id. */
  executions: ReadonlyMap<string, ExecutionState>
  /** Of trigger instances, by id. */
  instances: ReadonlyMap<string, InstanceState>
  /** Ids of what is not there any more, or not to be seen by everybody. */
  missing: ReadonlySet<string>
  /** Why some of this is not shown. */
  problem: unknown
}

export interface WatchedTrace {
  /** Undefined before it is known. */
  trace: LoadedTrace | undefined
  /** Why it cannot be shown. */
  error: unknown
  readonly reload: () => void
}

type State = Omit<LoadedTrace, 'head' | 'members' | 'executions' | 'instances' | 'missing'> & {
  head: TraceHead | undefined
  members: readonly TraceMemberRecord[]
  executions: Map<string, ExecutionState>
  instances: Map<string, InstanceState>
  missing: Set<string>
  /** Ids that have been asked for. */
  asked: Set<string>
  /** Members by what refers to them. */
  known: Set<string>
  isBusy: boolean
  controller: AbortController
}

const emptyState = (): State => ({
  head: undefined,
  members: [],
  total: 0,
  isWhole: true,
  isLoading: true,
  executions: new Map(),
  instances: new Map(),
  missing: new Set(),
  problem: undefined,
  asked: new Set(),
  known: new Set(),
  isBusy: false,
  controller: new AbortController(),
})

export function useTrace(id: string, part: Part): WatchedTrace {
  const [version, setVersion] = useState(0)
  const [round, setRound] = useState(0)
  const now = useRef<State>(emptyState())
  const drawing = useRef<ReturnType<typeof setTimeout>>(undefined)
  /** What changes at the same time is drawn once. */
  const changed = (): void => {
    drawing.current ??= setTimeout(
      () => {
        drawing.current = undefined
        setVersion((n) => n + 1)
      },
      Math.max(DRAWN_EVERY_MS, now.current.members.length * PER_MEMBER_MS),
    )
  }

  useEffect(() => {
    const state = emptyState()
    now.current = state
    changed()
    void bringUpToDate(state)
    return () => state.controller.abort()
  }, [id, part, round])

  /** The first time, and whenever there may be something new: what could not be loaded is asked for again as well. */
  async function bringUpToDate(state: State): Promise<void> {
    if (state.isBusy) return
    state.isBusy = true
    try {
      await Promise.all([
        state.head === undefined ? loadHead(state) : undefined,
        state.isLoading ? loadMembers(state) : loadNewer(state),
      ])
      state.problem = await loadStates(state)
    } catch (failure) {
      if (!isAbort(failure)) state.problem = failure
    } finally {
      state.isBusy = false
      changed()
    }
  }

  async function membersOf(query: Record<string, string | number>, { controller }: State): Promise<Members> {
    const { signal } = controller
    const path = `traces/${encodeURIComponent(id)}/components`
    const answer = await request('GET', path, { query: { limit: MEMBERS_TOGETHER, ...query }, signal })
    const total = answer.headers.get('X-Total-Count')
    return {
      items: (await answer.json()) as TraceMemberRecord[], // what this path answers
      total: total === null ? undefined : Number(total),
    }
  }

  async function loadHead(state: State): Promise<void> {
    const query = { include_attributes: ['trace_tag', 'start_timestamp'] }
    state.head = await get<TraceRecord>(`traces/${encodeURIComponent(id)}`, query, state.controller.signal)
    changed()
  }

  /** Goes on from where it has come to. */
  async function loadMembers(state: State): Promise<void> {
    const isLast = part === 'last'
    while (state.isLoading) {
      const edge = isLast ? state.members[0] : state.members.at(-1)
      const { items, total } = await membersOf(
        {
          ...(isLast && { sort_desc: 1 }),
          ...(edge !== undefined && { [isLast ? 'before_seq' : 'after_seq']: edge.seq }),
        },
        state,
      )
      state.total = total ?? state.total
      add(state, isLast ? items.toReversed() : items, isLast)
      state.isLoading = items.length === MEMBERS_TOGETHER && state.members.length < MAX_MEMBERS
    }
    state.isWhole = state.members.length >= state.total
  }

  function add(state: State, items: readonly TraceMemberRecord[], inFront: boolean): void {
    if (items.length === 0) return
    state.members = inFront ? [...items, ...state.members] : [...state.members, ...items]
    for (const { object_id: object } of items) state.known.add(object)
    state.total = Math.max(state.total, state.members.length)
    changed()
  }

  /** What has been added since. */
  async function loadNewer(state: State): Promise<void> {
    while (state.isWhole || part === 'last') {
      const { items } = await membersOf({ after_seq: state.members.at(-1)?.seq ?? 0 }, state)
      state.total += items.length
      add(state, items, false)
      cut(state)
      if (items.length < MEMBERS_TOGETHER) return
    }
  }

  /** One that goes on growing is followed at its end, or not any more. */
  function cut(state: State): void {
    if (state.members.length <= MAX_MEMBERS + MEMBERS_TOGETHER) return
    state.members = part === 'last' ? state.members.slice(-MAX_MEMBERS) : state.members.slice(0, MAX_MEMBERS)
    state.isWhole = false
    state.known = new Set(state.members.map(({ object_id: object }) => object))
  }

  /**
   * Of what is new and of what may have changed; a request for each hundred.
   *
   * @returns why some of it could not be loaded
   */
  async function loadStates(state: State): Promise<unknown> {
    const fresh = (kind: TraceMemberRecord['kind']): string[] =>
      state.members.flatMap(({ kind: own, object_id: object }) =>
        own === kind && !state.asked.has(object) ? object : [],
      )
    const waiting = [...state.instances.values()].filter(({ status }) => status === 'pending').map((one) => one.id)
    const parts: [ids: string[], load: (ids: string[]) => Promise<void>][] = [
      [fresh('execution'), (ids) => loadExecutions(state, ids)],
      [[...fresh('trigger_instance'), ...waiting], (ids) => loadInstances(state, ids)],
    ]
    let problem: unknown
    for (const [ids, load] of parts) {
      for (let from = 0; from < ids.length; from += IDS_TOGETHER) {
        const some = ids.slice(from, from + IDS_TOGETHER)
        for (const one of some) state.asked.add(one)
        try {
          await load(some)
        } catch (failure) {
          if (isAbort(failure)) throw failure
          problem = failure
          for (const one of some) state.asked.delete(one)
          break
        }
      }
    }
    return problem
  }

  async function loadExecutions(state: State, ids: readonly string[]): Promise<void> {
    const found = await executionStates(ids, state.controller.signal)
    for (const execution of found) put(state, execution)
    missed(state, ids, found)
  }

  async function loadInstances(state: State, ids: readonly string[]): Promise<void> {
    const { items } = await list<InstanceState>(
      'triggerinstances',
      { id: ids, limit: ids.length, include_attributes: ['status', 'trigger', 'trigger_type'] },
      state.controller.signal,
    )
    for (const instance of items) state.instances.set(instance.id, instance)
    missed(state, ids, items)
  }

  function missed(state: State, ids: readonly string[], found: readonly { id: string }[]): void {
    const seen = new Set(found.map((one) => one.id))
    for (const one of ids) if (!seen.has(one)) state.missing.add(one)
    changed()
  }

  function put(state: State, execution: ExecutionState): void {
    const before = state.executions.get(execution.id)
    state.executions.set(execution.id, before === undefined ? execution : laterOf(before, execution))
    state.missing.delete(execution.id)
  }

  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(
    () => () => {
      clearTimeout(timer.current)
      clearTimeout(drawing.current)
    },
    [],
  )
  /** What cannot be shown at all waits for somebody to try again. */
  const refresh = async (): Promise<void> => {
    if (now.current.head !== undefined) await bringUpToDate(now.current)
  }
  const soon = (): void => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined
      // What is under way may have looked before it happened.
      if (now.current.isBusy) soon()
      else void refresh()
    }, AFTER_EVENT_MS)
  }
  usePoll(refresh, POLL_MS)
  useExecutionEvents({
    onExecution(execution, change) {
      const state = now.current
      if (change === 'delete') return
      if (state.known.has(execution.id)) {
        put(state, execution)
        changed()
        // Its end is an event, which joins the trace as well.
        if (isFinalStatus(execution.status)) soon()
        return
      }
      const { parent, trigger_instance: instance } = execution
      if (
        (parent !== undefined && state.known.has(parent)) ||
        (instance !== undefined && state.known.has(instance.id))
      ) {
        soon()
      }
    },
    onOpen() {
      // What happened before the stream was open.
      const state = now.current
      for (const { id: execution, status } of state.executions.values()) {
        if (!isFinalStatus(status)) state.asked.delete(execution)
      }
      soon()
    },
  })

  const trace = useMemo((): LoadedTrace | undefined => {
    const { head, ...state } = now.current
    return head === undefined ? undefined : { ...state, head }
  }, [version])
  const error = trace === undefined ? now.current.problem : undefined
  return { trace, error, reload: () => setRound((n) => n + 1) }
}

interface Members {
  items: TraceMemberRecord[]
  /** Of the first page. */
  total: number | undefined
}
