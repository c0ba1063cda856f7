/**
 * Decides which executions policies admit to a slot (contract 02, 2.11), and which runs of a rule wait for others of it.
 * Counts are in memory. Executions that have to wait are rows with status `delayed` and no time; this file holds only their
 * ids, in the order in which they run.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Bus } from '../../../bus/index.ts'
import type { Log } from '../../../lib/log/index.ts'
import type { Change } from '../change.ts'
import { isFinal } from '../state.ts'
import type { ExecutionStore } from '../store.ts'
import type { Execution } from '../types.ts'
import type { Limit } from '../ports.ts'
import { waitsForItself, type Wait } from './deadlock.ts'

const PAGE = 200
/** Pause after a failure, so that a full disk causes no busy loop. */
const RETRY_AFTER_MS = 1000

/** Executions that wait for policies, of which a deadlock is looked for. Among more none is found. */
const MAX_LOOKED_AT = 200
/** Levels of workflows in workflows, and one more. */
const MAX_LEVELS = 51

export type Verdict =
  | { kind: 'run' }
  | { kind: 'delay' }
  | { kind: 'cancel'; policy: string }
  /** It would wait for workflows that wait for it. */
  | { kind: 'refuse'; reason: string }

export interface SlotAdmission {
  /** Decides about an execution for which a slot is free. An admitted one counts from then on. */
  enter(execution: Execution): Verdict
  /** An execution that an earlier server has admitted counts from now on. */
  adopt(execution: Execution): void
  /** The execution has released its slot, or the workflow has ended. */
  leave(execution: Execution): void
  /** The execution waits, and its row says so. */
  wait(execution: Execution): void
  /** The write of a waiting execution failed: its row is read again later. */
  recheck(execution: Execution): void
  /** Reads the policies and the waiting executions of an action again. */
  reload(actionRef: string): void
  /** Reads the executions that an earlier server left waiting. */
  start(): Promise<void>
  stop(): void
}

/** Waiting executions with the same limits, and of the same rule with `overlap`: if one can run, the first can. */
interface LimitGroup {
  key: string
  limits: readonly Limit[]
  /** Id of the rule whose runs must not overlap. */
  rule: string | undefined
  /** Of such a rule: whether no run comes before the first. Undefined until it is asked for. */
  isTurn: boolean | undefined
  /** In the order in which they run. */
  waiting: Waiting[]
}

interface Waiting {
  id: string
  /** Texts that sort in the order in which they run. */
  order: string
}

/** Waiting executions of one action. */
interface ActionQueue {
  groups: Map<string, LimitGroup>
  groupOf: Map<string, { group: LimitGroup; order: string }>
  /** Ids of executions with a claim on a slot that they do not have yet. */
  claimed: Set<string>
  /** Identifies the current read of the rows. */
  loading: symbol | undefined
}

/** An execution that counts: it has a slot, or a claim on one. */
interface Counted {
  execution: Execution
  limits: readonly Limit[]
}

export function createSlotAdmission(deps: {
  store: Pick<ExecutionStore, 'find' | 'waitingOf' | 'delayedActions' | 'ruleRuns'>
  change: Pick<Change, 'try'>
  readonly limitsOf: (execution: Execution) => readonly Limit[]
  bus: Bus
  log: Log
  /** Most claims of one action, which is the number of slots. */
  maxClaimed: number
}): SlotAdmission {
  const { store, change, limitsOf, bus, log, maxClaimed } = deps
  const counter = createSlotCounter()
  const { count, uncount, decide } = counter
  /** By id: executions that are about to wait. */
  const entering = new Map<string, Wait>()
  /** By action reference; most actions have none. */
  const queues = new Map<string, ActionQueue>()
  /** By action reference: timers that read the rows again after a failure. */
  const retries = new Map<string, NodeJS.Timeout>()
  let active = false

  bus.subscribe('execution.updated', ({ execution }) => {
    const { id, status, action_ref: ref } = execution
    if (!isFinal(status) && status !== 'canceling') return
    const queue = queues.get(ref)
    if (queue !== undefined && (releaseClaim(queue, id) || (remove(queue, id) && queue.groupOf.size === 0))) wake(ref)
    const rule = ruleOf(execution)
    if (rule !== undefined && isFinal(status)) wakeRule(rule)
  })

  /** The next run of a rule may have its turn, also if the rule has another action by now. */
  function wakeRule(rule: string): void {
    for (const [ref, queue] of queues) {
      const groups = [...queue.groups.values()].filter((group) => group.rule === rule)
      for (const group of groups) group.isTurn = undefined
      if (groups.length > 0) wake(ref)
    }
  }

  function queueOf(actionRef: string): ActionQueue {
    let queue = queues.get(actionRef)
    if (queue === undefined) {
      queue = { groups: new Map(), groupOf: new Map(), claimed: new Set(), loading: undefined }
      queues.set(actionRef, queue)
    }
    return queue
  }

  function add(queue: ActionQueue, execution: Execution): LimitGroup | undefined {
    if (queue.groupOf.has(execution.id) || queue.claimed.has(execution.id)) return undefined
    const limits = limitsOf(execution)
    const rule = ruleOf(execution)
    const key = [...(rule === undefined ? [] : [`rule:${rule}`]), ...limits.map((limit) => limit.key)].join(' ')
    const group = queue.groups.get(key) ?? { key, limits, rule, isTurn: undefined, waiting: [] }
    const { id } = execution
    // A retry has the place of the first attempt.
    const order = rule === undefined ? id : String(store.ruleRuns.placeOf(id) ?? 0).padStart(16, '0')
    queue.groups.set(key, group)
    queue.groupOf.set(id, { group, order })
    group.waiting.splice(placeOf(order, group.waiting), 0, { id, order })
    group.isTurn = undefined
    return group
  }

  function remove(queue: ActionQueue, id: string): boolean {
    const place = queue.groupOf.get(id)
    if (place === undefined) return false
    const { group, order } = place
    queue.groupOf.delete(id)
    group.waiting.splice(placeOf(order, group.waiting), 1)
    group.isTurn = undefined
    if (group.waiting.length === 0) queue.groups.delete(group.key)
    return true
  }

  /** Workflows that the execution belongs to. */
  function aboveOf({ parent }: Execution): ReadonlySet<string> {
    const above = new Set<string>()
    for (let id = parent; id !== null && above.size < MAX_LEVELS;) {
      above.add(id)
      id = store.find(id)?.parent ?? null
    }
    return above
  }

  /** Of all actions: the limits of two actions can wait for each other. */
  function* waiting(): Generator<Wait> {
    yield* entering.values()
    for (const queue of queues.values())
      for (const { limits, waiting: those } of queue.groups.values()) {
        const limit = counter.delaying(limits)
        for (const { id } of limit === undefined ? [] : those) {
          const execution = store.find(id)
          if (limit !== undefined && execution !== undefined) yield { key: limit.key, above: aboveOf(execution) }
        }
      }
  }

  /** @returns why the execution would never run; undefined: it may */
  function whyNever(execution: Execution, limit: Limit): string | undefined {
    const wanted = { key: limit.key, above: aboveOf(execution) }
    entering.set(execution.id, wanted)
    // It holds up nobody who counts.
    if (![...wanted.above].some((id) => counter.counts(id))) return undefined
    const others: Wait[] = []
    for (const wait of waiting()) {
      if (wait !== wanted) others.push(wait)
      if (others.length > MAX_LOOKED_AT) return undefined
    }
    if (!waitsForItself(wanted, others, (key) => counter.holdersOf(key))) return undefined
    entering.delete(execution.id)
    return `The policy "${limit.policy}" lets ${limit.threshold} of "${execution.action_ref}" run at once, and this execution would wait for workflows that wait for it. Raise the threshold, or let these workflows not call each other.`
  }

  /** @returns whether it had a claim */
  function releaseClaim(queue: ActionQueue, id: string): boolean {
    if (!queue.claimed.delete(id)) return false
    uncount(id)
    return true
  }

  /** Claims slots for the executions that can run now, oldest first. */
  function wake(actionRef: string): void {
    const queue = queues.get(actionRef)
    if (!active || queue === undefined || queue.loading !== undefined) return
    try {
      while (queue.claimed.size < maxClaimed) {
        const group = firstOf(queue)
        if (group === undefined) break
        claimSlot(actionRef, queue, group)
      }
    } catch (error) {
      retryLater(actionRef, error)
    }
    if (queue.groupOf.size === 0 && queue.claimed.size === 0) queues.delete(actionRef)
  }

  /** Whether the first of a group need not wait any more. */
  function canGo(group: LimitGroup): boolean {
    if (decide(group.limits).kind === 'delay') return false
    return group.rule === undefined || (group.isTurn ??= store.ruleRuns.isFirst(idOf(group)))
  }

  /** The group of the oldest execution that need not wait any more. */
  function firstOf(queue: ActionQueue): LimitGroup | undefined {
    let first: LimitGroup | undefined
    for (const group of queue.groups.values()) {
      if (first !== undefined && idOf(first) < idOf(group)) continue
      if (canGo(group)) first = group
    }
    return first
  }

  /** Counts the execution from now on, so that no younger one takes its slot. */
  function claimSlot(actionRef: string, queue: ActionQueue, group: LimitGroup): void {
    const id = idOf(group)
    const execution = store.find(id)
    remove(queue, id)
    if (execution === undefined || !isWaiting(execution)) return
    queue.claimed.add(id)
    // An execution that a policy cancels takes no slot.
    count(execution, decide(group.limits).kind === 'run' ? group.limits : [])
    void release(actionRef, queue, execution)
  }

  async function release(actionRef: string, queue: ActionQueue, execution: Execution): Promise<void> {
    try {
      if ((await change.try(execution, { kind: 'due' })) !== undefined) return
      releaseClaim(queue, execution.id)
      const seen = store.find(execution.id)
      if (seen !== undefined && isWaiting(seen)) add(queue, seen)
      wake(actionRef)
    } catch (error) {
      releaseClaim(queue, execution.id)
      retryLater(actionRef, error)
    }
  }

  function retryLater(actionRef: string, error: unknown): void {
    log.error('scheduler.failed', 'Could not release executions that wait for a policy: trying again', {
      action: actionRef,
      error,
    })
    reloadLater(actionRef)
  }

  /** Reads the rows again after a pause; until then no other execution of the action passes them. */
  function reloadLater(actionRef: string): void {
    if (!active || retries.has(actionRef)) return
    queueOf(actionRef).loading ??= Symbol('later')
    const timer = setTimeout(() => {
      retries.delete(actionRef)
      void load(actionRef)
    }, RETRY_AFTER_MS)
    retries.set(actionRef, timer)
  }

  /** Replaces the queue by the rows, page by page. */
  async function load(actionRef: string): Promise<void> {
    const queue = queueOf(actionRef)
    queue.groups.clear()
    queue.groupOf.clear()
    const loading = Symbol('load')
    queue.loading = loading
    try {
      for (let afterId = ''; ;) {
        const page = store.waitingOf(actionRef, afterId, PAGE)
        for (const execution of page) add(queue, execution)
        afterId = page.at(-1)?.id ?? ''
        if (page.length < PAGE) break
        await nextTurn()
        // Another read has started, or the server stops.
        if (queue.loading !== loading || !active) return
      }
    } catch (error) {
      retryLater(actionRef, error)
      return
    }
    queue.loading = undefined
    wake(actionRef)
  }

  return {
    enter(execution) {
      const { id, action_ref: ref } = execution
      const queue = queues.get(ref)
      const hadClaim = queue !== undefined && releaseClaim(queue, id)
      const limits = limitsOf(execution)
      // Until the queue is read, no execution may pass the waiting ones.
      const isBehind = !hadClaim && queue?.loading !== undefined && limits.some(({ beyond }) => beyond === 'delay')
      const isEarly = ruleOf(execution) !== undefined && !store.ruleRuns.isFirst(id)
      const verdict: Verdict = isBehind || isEarly ? { kind: 'delay' } : decide(limits)
      const limit = verdict.kind === 'delay' && !isEarly ? counter.delaying(limits) : undefined
      const reason = limit === undefined ? undefined : whyNever(execution, limit)
      if (reason !== undefined) return { kind: 'refuse', reason }
      if (verdict.kind === 'run') count(execution, limits)
      if (hadClaim) wake(ref)
      return verdict
    },
    adopt: (execution) => count(execution, limitsOf(execution)),
    leave({ id, action_ref: ref }) {
      entering.delete(id)
      uncount(id)
      wake(ref)
    },
    wait(execution) {
      const { id, action_ref: ref } = execution
      entering.delete(id)
      const group = add(queueOf(ref), execution)
      if (group !== undefined && canGo(group)) wake(ref)
    },
    recheck({ id, action_ref: ref }) {
      entering.delete(id)
      reloadLater(ref)
    },
    reload(actionRef) {
      if (!active) return
      const concerned = counter.ofAction(actionRef)
      for (const execution of concerned) {
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

interface SlotCounter {
  readonly count: (execution: Execution, limits: readonly Limit[]) => void
  readonly uncount: (id: string) => void
  readonly decide: (limits: readonly Limit[]) => Verdict
  /** The limit for which an execution has to wait; undefined: it need not. */
  readonly delaying: (limits: readonly Limit[]) => Limit | undefined
  /** Whether an execution counts for some limit. */
  readonly counts: (id: string) => boolean
  /** Ids of those that count for a limit. */
  readonly holdersOf: (key: string) => string[]
  /** Executions of an action that count. */
  readonly ofAction: (actionRef: string) => Execution[]
}

/** Counts executions with a slot, or a claim on one, by the keys of their limits. */
function createSlotCounter(): SlotCounter {
  const counted = new Map<string, Counted>()
  /** By the keys of limits. */
  const counts = new Map<string, number>()
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

  const reachedOf = (limits: readonly Limit[]): Limit | undefined =>
    limits.find(({ key, threshold }) => (counts.get(key) ?? 0) >= threshold)

  function decide(limits: readonly Limit[]): Verdict {
    const reached = reachedOf(limits)
    if (reached === undefined) return { kind: 'run' }
    return reached.beyond === 'delay' ? { kind: 'delay' } : { kind: 'cancel', policy: reached.policy }
  }

  return {
    count,
    uncount,
    decide,
    delaying(limits) {
      const reached = reachedOf(limits)
      return reached?.beyond === 'delay' ? reached : undefined
    },
    counts: (id) => (counted.get(id)?.limits.length ?? 0) > 0,
    holdersOf: (key) =>
      [...counted].filter(([, { limits }]) => limits.some((limit) => limit.key === key)).map(([id]) => id),
    ofAction: (actionRef) =>
      [...counted.values()].map(({ execution }) => execution).filter(({ action_ref: ref }) => ref === actionRef),
  }
}

function isWaiting({ status, due_timestamp: due }: Execution): boolean {
  return status === 'delayed' && due === null
}

/** The rule whose runs must not overlap. */
function ruleOf({ origin, liveaction: { running } }: Execution): string | undefined {
  return running?.overlap === undefined ? undefined : origin?.rule.id
}

function idOf({ waiting }: LimitGroup): string {
  return waiting[0]?.id ?? ''
}

/** Index of the first that is not before it. */
function placeOf(order: string, waiting: readonly Waiting[]): number {
  let low = 0
  let high = waiting.length
  // Most are younger than all others.
  if ((waiting.at(-1)?.order ?? '') < order) return high
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((waiting[middle]?.order ?? '') < order) low = middle + 1
    else high = middle
  }
  return low
}
