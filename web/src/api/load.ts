/** Records that a component shows: loaded when it is first drawn, and again on request. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { isAbort } from './client.ts'
import { useContentChanges } from './execution-events.ts'
import type { ContentKind } from './records.ts'

export interface Loaded<T> {
  /** What was loaded last; undefined before that. It stays while something newer is under way. */
  data: T | undefined
  /** Of the last attempt. */
  error: unknown
  isLoading: boolean
  /** Keeps what is shown meanwhile. */
  readonly reload: () => void
  /** Replaces what is shown, such as by the answer to a change. */
  readonly set: (data: T) => void
}

/**
 * @param load is given a signal that aborts when its answer is not needed any more
 * @param keys it is loaded again, from nothing, when one of them changes
 * @param of kinds of records in it: it is loaded again when some of these were created, changed or deleted. Default: none
 */
export function useLoaded<T>(
  load: (signal: AbortSignal) => Promise<T>,
  keys: readonly unknown[],
  of: readonly ContentKind[] = [],
): Loaded<T> {
  const [shown, setShown] = useState<{ keys: readonly unknown[]; data?: T; error?: unknown; isLoading: boolean }>({
    keys,
    isLoading: true,
  })
  const [round, setRound] = useState(0)
  const latest = useRef(load)
  latest.current = load
  useEffect(() => {
    const controller = new AbortController()
    setShown((earlier) => ({ ...(isSame(earlier.keys, keys) ? earlier : { keys }), isLoading: true }))
    latest
      .current(controller.signal)
      .then((data) => {
        if (!controller.signal.aborted) setShown({ keys, data, isLoading: false })
      })
      .catch((error: unknown) => {
        if (controller.signal.aborted || isAbort(error)) return
        setShown((earlier) => ({ ...earlier, error, isLoading: false }))
      })
    return () => controller.abort()
    // The keys stand for what the function depends on.
  }, [...keys, round])
  const reload = useCallback(() => setRound((n) => n + 1), [])
  useContentChanges(of, reload)
  const set = useCallback((data: T) => setShown((earlier) => ({ ...earlier, data, isLoading: false })), [])
  const isCurrent = isSame(shown.keys, keys)
  return {
    data: isCurrent ? shown.data : undefined,
    error: isCurrent ? shown.error : undefined,
    isLoading: !isCurrent || shown.isLoading,
    reload,
    set,
  }
}

function isSame(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((value, i) => Object.is(value, b[i]))
}
