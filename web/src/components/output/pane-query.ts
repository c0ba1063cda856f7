/** What is shown of an output, as the address says it, or the pane itself where the address is about something else. */
import { useState } from 'preact/hooks'
import { setQuery, useLocation } from '../../router.ts'

export type PaneQueryName = 'output_type' | 'line' | 'times' | 'find' | 'find_case' | 'find_pattern'

export interface PaneQuery {
  get(name: PaneQueryName): string | undefined
  /** What is undefined is as usual. @param options.replace as of `navigate` */
  set(values: Partial<Record<PaneQueryName, string | undefined>>, options?: { replace?: boolean }): void
}

export function usePaneQuery(usesAddress: boolean): PaneQuery {
  const { query } = useLocation()
  const [own, setOwn] = useState<Partial<Record<PaneQueryName, string | undefined>>>({})
  if (usesAddress) {
    return { get: (name) => query.get(name) ?? undefined, set: (values, options) => setQuery(values, options) }
  }
  return { get: (name) => own[name], set: (values) => setOwn((before) => ({ ...before, ...values })) }
}
