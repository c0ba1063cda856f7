/**
 * Which executions may have a slot beside those that have one now: what policies allow (contract 02, 2.11), counted in memory.
 * Those that may not wait as rows, `delayed` without a time; here are only their ids, in the order in which they are to run.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Bus } from '../../../bus/index.ts'
import type { Log } from '../../../lib/log/index.ts'
import type { Change } from '../change.ts'
import { isFinal } from '../state.ts'
import type { ExecutionStore } from '../store.ts'
import type { Execution } from '../types.ts'
import type { Limit } from '../ports.ts'

const PAGE = 200
/** Pause after a failure: a storage that is full would be asked without end. */
const RETRY_AFTER_MS = 1000

export type Verdict = { kind: 'run' } | { kind: 'delay' } | { kind: 'cancel'; policy: string }

export interface Admission {
  /** Asked in the moment in which an execution could have a slot; one that may run is counted from then on. */
  enter(execution: Execution): Verdict
  /** It has given its slot back. */
  leave(execution: Execution): void
  /** It has been recorded as waiting for others. */
  wait(execution: Execution): void
  /** It should have been, and nobody knows whether it was. */
  doubt(execution: Execution): void
  /** Reads anew what the policies of an action say, and which executions of it wait. */
  reconsider(actionRef: string): void
  /** Reads what an earlier server has left waiting. */
  start(): Promise<void>
  stop(): void
}

/** Executions that policies do not tell apart, so that the first of them may run if any may. */
interface Lane {
  key: string
  limits: readonly Limit[]
  /** Oldest first. */
  ids: string[]
}

/** Those of one action that wait. */
interface Line {
  lanes: Map<string, Lane>
  laneOf: Map<string, Lane>
  /** Ids of those that were let go and could not have their slot yet. */
  promised: Set<string>
  /** Which reading of the rows is under way. */
  loading: symbol | undefined
}

/** What counts: executions with a slot, and those that one has been promised. */
interface Counted {
  execution: Execution
  limits: readonly Limit[]
}

export function createAdmission(deps: {
  store: Pick<ExecutionStore, 'find' | 'waitingOf' | 'delayedActions'>
  change: Pick<Change, 'try'>
  readonly limitsOf: (execution: Execution) => readonly Limit[]
  bus: Bus
  log: Log
  /** Of one action: more could not run anyway. */
  maxPromised: number
}): Admission {
  const { store, change, limitsOf, bus, log, maxPromised } = deps
  const counted = new Map<string, Counted>()
  /** By the keys of limits. */
  const counts = new Map<string, number>()
  /** By the references of actions; most have none that wait. */
  const lines = new Map<string, Line>()
  /** Likewise: when what waits is read again after a failure. */
  const retries = new Map<string, NodeJS.Timeout>()
  let active = false

  bus.subscribe('execution.updated', ({ execution: { id, status, action_ref: ref } }) => {
    const line = lines.get(ref)
    if (line === undefined || !(isFinal(status) || status === 'canceling')) return
    if (takeBack(line, id) || (remove(line, id) && line.laneOf.size === 0)) wake(ref)
  })

  function count(execution: Execution, limits: readonly Limit[]): void {
    counted.set(execution.id, { execution, limits })
    for (const { key } of limits) counts.set(key, (counts.get(key) ?? 0) + 1)
  }

  function uncount(id: string): void {
    for (const { key } of counted.get(id)?.limits ?? []) {
      const left = (counts.get(key) ?? 0) - 1
      if (left > 0) counts.set(key, left)
      else counts.delete(key)
    }
    counted.delete(id)
  }

  function decide(limits: readonly Limit[]): Verdict {
    const reached = limits.find(({ key, threshold }) => (counts.get(key) ?? 0) >= threshold)
    if (reached === undefined) return { kind: 'run' }
    return reached.beyond === 'delay' ? { kind: 'delay' } : { kind: 'cancel', policy: reached.policy }
  }

  function lineOf(actionRef: string): Line {
    let line = lines.get(actionRef)
    if (line === undefined) {
      line = { lanes: new Map(), laneOf: new Map(), promised: new Set(), loading: undefined }
      lines.set(actionRef, line)
    }
    return line
  }

  function add(line: Line, execution: Execution): Lane | undefined {
    if (line.laneOf.has(execution.id) || line.promised.has(execution.id)) return undefined
    const limits = limitsOf(execution)
    const key = limits.map((limit) => limit.key).join(' ')
    const lane = line.lanes.get(key) ?? { key, limits, ids: [] }
    line.lanes.set(key, lane)
    line.laneOf.set(execution.id, lane)
    lane.ids.splice(placeOf(execution.id, lane.ids), 0, execution.id)
    return lane
  }

  function remove(line: Line, id: string): boolean {
    const lane = line.laneOf.get(id)
    if (lane === undefined) return false
    line.laneOf.delete(id)
    lane.ids.splice(placeOf(id, lane.ids), 1)
    if (lane.ids.length === 0) line.lanes.delete(lane.key)
    return true
  }

  /** What it has been promised. */
  function takeBack(line: Line, id: string): boolean {
    if (!line.promised.delete(id)) return false
    uncount(id)
    return true
  }

  /** Lets go as many as may run now, oldest first. */
  function wake(actionRef: string): void {
    const line = lines.get(actionRef)
    if (!active || line === undefined || line.loading !== undefined) return
    try {
      while (line.promised.size < maxPromised) {
        const lane = firstOf(line)
        if (lane === undefined) break
        letGo(actionRef, line, lane)
      }
    } catch (error) {
      failed(actionRef, error)
    }
    if (line.laneOf.size === 0 && line.promised.size === 0) lines.delete(actionRef)
  }

  /** The lane of the oldest that need not wait any more. */
  function firstOf(line: Line): Lane | undefined {
    let first: Lane | undefined
    for (const lane of line.lanes.values()) {
      if (first !== undefined && idOf(first) < idOf(lane)) continue
      if (decide(lane.limits).kind !== 'delay') first = lane
    }
    return first
  }

  /** It counts from now on, so that no younger one takes its place. */
  function letGo(actionRef: string, line: Line, lane: Lane): void {
    const id = idOf(lane)
    const execution = store.find(id)
    remove(line, id)
    if (execution === undefined || !isWaiting(execution)) return
    line.promised.add(id)
    // What a policy cancels takes no place.
    count(execution, decide(lane.limits).kind === 'run' ? lane.limits : [])
    void release(actionRef, line, execution)
  }

  async function release(actionRef: string, line: Line, execution: Execution): Promise<void> {
    try {
      if ((await change.try(execution, { kind: 'due' })) !== undefined) return
      takeBack(line, execution.id)
      const seen = store.find(execution.id)
      if (seen !== undefined && isWaiting(seen)) add(line, seen)
      wake(actionRef)
    } catch (error) {
      takeBack(line, execution.id)
      failed(actionRef, error)
    }
  }

  function failed(actionRef: string, error: unknown): void {
    log.error('scheduler.failed', 'Executions that wait for others could not be woken; they will be tried again', {
      action: actionRef,
      error,
    })
    readAgain(actionRef)
  }

  /** After a pause, in which they are neither forgotten nor overtaken. */
  function readAgain(actionRef: string): void {
    if (!active || retries.has(actionRef)) return
    lineOf(actionRef).loading ??= Symbol('later')
    const timer = setTimeout(() => {
      retries.delete(actionRef)
      void load(actionRef)
    }, RETRY_AFTER_MS)
    retries.set(actionRef, timer)
  }

  /** In slices. What was known of those that wait is forgotten. */
  async function load(actionRef: string): Promise<void> {
    const line = lineOf(actionRef)
    line.lanes.clear()
    line.laneOf.clear()
    const loading = Symbol('load')
    line.loading = loading
    try {
      for (let afterId = ''; ;) {
        const page = store.waitingOf(actionRef, afterId, PAGE)
        for (const execution of page) add(line, execution)
        afterId = page.at(-1)?.id ?? ''
        if (page.length < PAGE) break
        await nextTurn()
        // Begun anew by somebody else.
        if (line.loading !== loading || !active) return
      }
    } catch (error) {
      failed(actionRef, error)
      return
    }
    line.loading = undefined
    wake(actionRef)
  }

  return {
    enter(execution) {
      const { id, action_ref: ref } = execution
      const line = lines.get(ref)
      const wasPromised = line !== undefined && takeBack(line, id)
      const limits = limitsOf(execution)
      // While it is not known who waits, nobody is to overtake them.
      const isBehind = !wasPromised && line?.loading !== undefined && limits.some(({ beyond }) => beyond === 'delay')
      const verdict: Verdict = isBehind ? { kind: 'delay' } : decide(limits)
      if (verdict.kind === 'run') count(execution, limits)
      if (wasPromised) wake(ref)
      return verdict
    },
    leave({ id, action_ref: ref }) {
      uncount(id)
      wake(ref)
    },
    wait(execution) {
      const { action_ref: ref } = execution
      const lane = add(lineOf(ref), execution)
      if (lane !== undefined && decide(lane.limits).kind !== 'delay') wake(ref)
    },
    doubt: ({ action_ref: ref }) => readAgain(ref),
    reconsider(actionRef) {
      if (!active) return
      const concerned = [...counted.values()].filter(({ execution }) => execution.action_ref === actionRef)
      for (const { execution } of concerned) {
        uncount(execution.id)
        count(execution, limitsOf(execution))
      }
      void load(actionRef)
    },
    async start() {
      active = true
      for (const actionRef of store.delayedActions()) await load(actionRef)
    },
    stop() {
      active = false
      for (const timer of retries.values()) clearTimeout(timer)
      retries.clear()
    },
  }
}

function isWaiting({ status, due_timestamp: due }: Execution): boolean {
  return status === 'delayed' && due === null
}

function idOf({ ids }: Lane): string {
  return ids[0] ?? ''
}

/** Of the first that is not smaller. */
function placeOf(id: string, ids: readonly string[]): number {
  let low = 0
  let high = ids.length
  // Most are younger than all that wait already.
  if ((ids.at(-1) ?? '') < id) return high
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((ids[middle] ?? '') < id) low = middle + 1
    else high = middle
  }
  return low
}
