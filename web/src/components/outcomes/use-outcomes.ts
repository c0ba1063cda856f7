import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { isAbort, list, type ListPage } from '../../api/client.ts'
import { useExecutionEvents } from '../../api/execution-events.ts'
import { executionStates, type ExecutionState } from '../../api/execution-states.ts'
import { usePoll } from '../../api/poll.ts'
import type { RuleEnforcement, TriggerInstanceRecord } from '../../api/records.ts'
import { mergedOutcome, noOutcome, outcomesOf, withExecution, type Outcome } from './outcomes.ts'

export type OutcomeInstance = Pick<TriggerInstanceRecord, 'id' | 'status'>

export interface Outcomes {
  /** Undefined: it is not known yet. */
  readonly of: (id: string) => Outcome | undefined
  /** Asks for what is not known of these, few requests for all of them. */
  readonly need: (instances: readonly OutcomeInstance[]) => void
  /** Of the last attempt. */
  error: unknown
}

const INSTANCES_TOGETHER = 50
const ENFORCEMENTS_TOGETHER = 100
/** Where there are more, of each instance those of one request are listed. */
const MAX_ENFORCEMENTS = 1000
const MAX_KNOWN = 2000
const MAX_EARLY = 200
const MAX_WANTED = 200
const GATHER_MS = 30
const RETRY_MS = 5000

/** Outcomes of trigger instances, kept up to date. */
export function useOutcomes(): Outcomes {
  const [, setVersion] = useState(0)
  const [error, setError] = useState<unknown>()
  const state = useRef({
    /** Loaded while the instance had this `status`: a pending instance has no outcome. */
    known: new Map<string, { outcome: Outcome; status: string }>(),
    wanted: new Map<string, string>(),
    /** Executions of events that came before the outcome of their instance was loaded. */
    early: new Map<string, ExecutionState[]>(),
    timer: undefined as ReturnType<typeof setTimeout> | undefined,
    /** Being asked for; nothing while none are. */
    underWay: new Map<string, string>(),
    /** After a failure it is asked again after a pause, not with every drawing. */
    hasFailed: false,
    controller: new AbortController(),
  })
  const put = useCallback((id: string, outcome: Outcome, status: string): void => {
    const { known } = state.current
    known.delete(id)
    known.set(id, { outcome, status })
    for (const oldest of known.keys()) {
      if (known.size <= MAX_KNOWN) break
      known.delete(oldest)
    }
    setVersion((version) => version + 1)
  }, [])

  const load = useCallback(async (): Promise<void> => {
    const { wanted, known, early, controller } = state.current
    if (state.current.underWay.size > 0) return
    try {
      while (wanted.size > 0) {
        // Those that are drawn now were wanted last.
        const some = [...wanted].slice(-INSTANCES_TOGETHER)
        state.current.underWay = new Map(some)
        for (const [id] of some) wanted.delete(id)
        const ids = some.map(([id]) => id)
        const { enforcements, unlisted } = await enforcementsOf(ids, controller.signal)
        const started = enforcements.flatMap(({ execution_id: execution }) => execution ?? [])
        const loaded = outcomesOf(ids, enforcements, await executionStates(started, controller.signal), unlisted)
        for (const [id, status] of some) {
          const outcome = mergedOutcome(known.get(id)?.outcome, loaded.get(id) ?? noOutcome)
          put(id, (early.get(id) ?? []).reduce(withExecution, outcome), status)
          early.delete(id)
        }
        state.current.hasFailed = false
        setError(undefined)
      }
    } catch (failure) {
      if (isAbort(failure)) return
      for (const [id, status] of state.current.underWay) wanted.set(id, wanted.get(id) ?? status)
      state.current.hasFailed = true
      setError(failure)
    } finally {
      state.current.underWay = new Map()
    }
  }, [])

  const methods = useMemo(
    () => ({
      of: (id: string) => state.current.known.get(id)?.outcome,
      need(instances: readonly OutcomeInstance[]) {
        const { known, wanted, underWay } = state.current
        for (const { id, status } of instances) {
          // Nothing has come of it so far.
          if (status === 'pending') continue
          if (known.get(id)?.status === status || underWay.get(id) === status) continue
          wanted.delete(id)
          wanted.set(id, status)
        }
        for (const oldest of wanted.keys()) {
          if (wanted.size <= MAX_WANTED) break
          wanted.delete(oldest)
        }
        if (wanted.size === 0 || state.current.hasFailed) return
        clearTimeout(state.current.timer)
        state.current.timer = setTimeout(() => void load(), GATHER_MS)
      },
    }),
    [],
  )
  useEffect(() => {
    const { current } = state
    return () => {
      clearTimeout(current.timer)
      current.controller.abort()
    }
  }, [])

  useExecutionEvents({
    onExecution(execution, change) {
      const id = execution.trigger_instance?.id
      if (id === undefined || change === 'delete') return
      const { known, early } = state.current
      const before = known.get(id)
      if (before !== undefined) put(id, withExecution(before.outcome, execution), before.status)
      else {
        early.set(id, [...(early.get(id) ?? []).filter((one) => one.id !== execution.id), execution])
        for (const oldest of early.keys()) {
          if (early.size <= MAX_EARLY) break
          early.delete(oldest)
        }
      }
    },
    onOpen() {
      // What happened before the stream was open.
      const { known, wanted } = state.current
      for (const [id, { status, outcome }] of known) if (hasOpen(outcome)) wanted.set(id, status)
      void load()
    },
  })
  usePoll(async () => {
    if (state.current.hasFailed) await load()
  }, RETRY_MS)
  return { ...methods, error }
}

function hasOpen({ executions }: Outcome): boolean {
  return executions.some(({ end_timestamp: end }) => end === undefined)
}

interface Listed {
  enforcements: RuleEnforcement[]
  /** How many more there are of each instance. */
  unlisted: Map<string, number>
}

async function enforcementsOf(ids: readonly string[], signal: AbortSignal): Promise<Listed> {
  const page = (of: readonly string[], offset: number): Promise<ListPage<RuleEnforcement>> =>
    list('ruleenforcements', { trigger_instance: of, limit: ENFORCEMENTS_TOGETHER, offset, sort: 'id' }, signal)
  const { items: enforcements, total } = await page(ids, 0)
  const unlisted = new Map<string, number>()
  if (total <= MAX_ENFORCEMENTS) {
    while (enforcements.length < total) {
      const { items } = await page(ids, enforcements.length)
      if (items.length === 0) break
      enforcements.push(...items)
    }
    return { enforcements, unlisted }
  }
  const each: RuleEnforcement[] = []
  for (const id of ids) {
    const { items, total: ofInstance } = await page([id], 0)
    each.push(...items)
    unlisted.set(id, ofInstance - items.length)
  }
  return { enforcements: each, unlisted }
}
