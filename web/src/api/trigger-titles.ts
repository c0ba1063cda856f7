/** Names for triggers whose own say nothing: those with parameters are called by a random number. */
import { useCallback, useEffect, useState } from 'preact/hooks'
import { triggerLine } from '../components/rules/trigger-line.ts'
import { isAbort, list } from './client.ts'
import type { TriggerRecord } from './records.ts'

const RANDOM = /\.[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const REFS_TOGETHER = 50
const MAX_KNOWN = 2000

/** For the whole page; undefined: there is none any more, or it is not to be seen. */
const known = new Map<string, string | undefined>()

/**
 * Of those of the references that need it, once they are known; a request for each fifty that are not known yet.
 *
 * @returns what a reference is called: `core.svc.webhook orders`; undefined where it is not known
 */
export function useTriggerTitles(refs: Iterable<string>): (ref: string) => string | undefined {
  const [version, setVersion] = useState(0)
  const missing = [...new Set(refs)].filter((ref) => RANDOM.test(ref) && !known.has(ref)).slice(0, REFS_TOGETHER)
  useEffect(() => {
    if (missing.length === 0) return
    const controller = new AbortController()
    list<TriggerRecord>('triggers', { ref: missing }, controller.signal)
      .then(({ items }) => {
        const found = new Map(items.map((trigger) => [trigger.ref, triggerLine(trigger)]))
        for (const ref of missing) known.set(ref, found.get(ref))
      })
      .catch((failure: unknown) => {
        // Without the permission to list triggers their references are shown.
        if (!isAbort(failure)) for (const ref of missing) known.set(ref, undefined)
      })
      .finally(() => {
        for (const oldest of known.keys()) {
          if (known.size <= MAX_KNOWN) break
          known.delete(oldest)
        }
        if (!controller.signal.aborted) setVersion((version) => version + 1)
      })
    return () => controller.abort()
  }, [missing.join()])
  // Another function once more is known.
  return useCallback((ref: string) => known.get(ref), [version])
}
