import { useEffect, useRef, useState } from 'preact/hooks'
import { isAbort } from '../../api/client.ts'
import { usePoll } from '../../api/poll.ts'

export interface Polled<T> {
  /** The last that came; undefined before that. */
  data: T | undefined
  /** Of the last attempt; undefined when that went well. */
  error: unknown
  /** When the data came, in milliseconds since the epoch. */
  at: number | undefined
  readonly retry: () => void
}

/**
 * Asked for at once, and again and again while the page is looked at.
 *
 * @param key it starts again, from nothing, when this changes
 * @param load is given what came before, to ask for what is new
 */
export function usePolled<T>(key: string, load: (before: T | undefined) => Promise<T>, everyMs: number): Polled<T> {
  const [state, setState] = useState<{ key: string; data?: T; error?: unknown; at?: number }>({ key })
  const shown = useRef(state)
  const wanted = useRef(key)
  wanted.current = key

  async function ask(): Promise<void> {
    const { key: before, data } = shown.current
    const set = (news: typeof state): void => {
      if (wanted.current !== key) return
      shown.current = news
      setState(news)
    }
    try {
      set({ key, data: await load(before === key ? data : undefined), at: Date.now() })
    } catch (error) {
      if (!isAbort(error)) set({ ...(shown.current.key === key ? shown.current : { key }), error })
    }
  }

  useEffect(() => void ask(), [key])
  usePoll(ask, everyMs)
  const isCurrent = state.key === key
  return {
    data: isCurrent ? state.data : undefined,
    error: isCurrent ? state.error : undefined,
    at: isCurrent ? state.at : undefined,
    retry: () => void ask(),
  }
}
