/** What the server could not answer is asked for again, so that no page says "could not reach the server" once it can. */
import { useEffect, useRef } from 'preact/hooks'
import { isUnavailable } from './client.ts'
import { usePoll } from './poll.ts'
import { isServerAnswering } from './transport.ts'

const RETRY_MS = 5000

/**
 * Retries at once when any other request is answered, and every few seconds while the page is looked at.
 *
 * @param error of the last attempt. Other errors than an unreachable server are left to people
 */
export function useRetry(error: unknown, retry: (() => void) | undefined): void {
  const latest = useRef(retry)
  latest.current = retry
  const waits = isUnavailable(error)
  usePoll(async () => {
    if (waits) latest.current?.()
  }, RETRY_MS)
  useEffect(() => {
    if (!waits) return undefined
    return isServerAnswering.subscribe(() => {
      if (isServerAnswering.value) latest.current?.()
    })
  }, [waits])
}
