import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { isAbort, list } from '../../api/client.ts'
import { useContentChanges } from '../../api/execution-events.ts'
import type { RuleRecord } from '../../api/records.ts'
import { useRetry } from '../../api/retry.ts'

export type HookRule = Pick<RuleRecord, 'id' | 'ref' | 'name' | 'pack' | 'enabled' | 'criteria' | 'action'> & {
  trigger: { ref: string }
}

export interface RulesByTrigger {
  /** Those that listen to a trigger, by its reference; undefined: it is not known yet. */
  readonly of: (triggerRef: string) => readonly HookRule[] | undefined
  /** Asks for what is not known of these, few requests for all of them. What is known is asked for again when rules change. */
  readonly need: (triggerRefs: readonly string[]) => void
  /** Of the last attempt. */
  error: unknown
}

const attributes = ['enabled', 'criteria', 'action', 'trigger.ref']
/** Rows that are drawn together ask together. */
const GATHER_MS = 30
const TRIGGERS_TOGETHER = 20
const RULES_TOGETHER = 100
/** Of so many triggers together no more rules are shown. */
const MAX_RULES = 500

export function useRules(): RulesByTrigger {
  const [, setVersion] = useState(0)
  const [error, setError] = useState<unknown>()
  const state = useRef({
    known: new Map<string, HookRule[]>(),
    /** In which round it was asked for last, also if that is under way: the answers to earlier rounds are out of date. */
    asked: new Map<string, number>(),
    round: 0,
    wanted: new Set<string>(),
    timer: undefined as ReturnType<typeof setTimeout> | undefined,
    controller: new AbortController(),
  })
  useEffect(() => {
    const { current } = state
    return () => {
      clearTimeout(current.timer)
      current.controller.abort()
    }
  }, [])

  const load = useCallback((): void => {
    const { known, asked, wanted, controller } = state.current
    const missing = [...wanted]
    wanted.clear()
    state.current.round += 1
    const { round } = state.current
    for (let from = 0; from < missing.length; from += TRIGGERS_TOGETHER) {
      const some = missing.slice(from, from + TRIGGERS_TOGETHER)
      for (const ref of some) asked.set(ref, round)
      rulesOf(some, controller.signal).then(
        (rules) => {
          const found = Map.groupBy(rules, ({ trigger }) => trigger.ref)
          for (const ref of some) if (asked.get(ref) === round) known.set(ref, found.get(ref) ?? [])
          setError(undefined)
          setVersion((version) => version + 1)
        },
        (failure: unknown) => {
          if (isAbort(failure)) return
          for (const ref of some) {
            if (asked.get(ref) !== round) continue
            asked.delete(ref)
            wanted.add(ref)
          }
          setError(failure)
        },
      )
    }
  }, [])
  const methods = useMemo(
    () => ({
      of: (ref: string) => state.current.known.get(ref),
      need(refs: readonly string[]) {
        const { asked, wanted } = state.current
        for (const ref of refs) if (!asked.has(ref)) wanted.add(ref)
        clearTimeout(state.current.timer)
        if (wanted.size > 0) state.current.timer = setTimeout(load, GATHER_MS)
      },
    }),
    [],
  )
  useContentChanges(['rule'], () => {
    const known = [...state.current.asked.keys()]
    state.current.asked.clear()
    methods.need(known)
  })
  useRetry(error, () => methods.need([]))
  return { ...methods, error }
}

async function rulesOf(triggers: readonly string[], signal: AbortSignal): Promise<HookRule[]> {
  const found: HookRule[] = []
  for (;;) {
    const query = { trigger: triggers, limit: RULES_TOGETHER, offset: found.length, include_attributes: attributes }
    const { items, total } = await list<HookRule>('rules', query, signal)
    found.push(...items)
    if (items.length === 0 || found.length >= Math.min(total, MAX_RULES)) return found
  }
}
