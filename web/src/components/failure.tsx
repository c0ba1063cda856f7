import type { JSX } from 'preact'
import { messageOf } from '../api/client.ts'
import { useRetry } from '../api/retry.ts'

/** What could not be shown, and why. It retries by itself when the server could not be reached. */
export function Failure({
  error,
  onRetry,
  retryTitle = 'Retry',
}: {
  error: unknown
  onRetry?: () => void
  retryTitle?: string
}): JSX.Element {
  useRetry(error, onRetry)
  return (
    <div class="failure" role="alert">
      <p>{messageOf(error)}</p>
      {onRetry !== undefined && (
        <button type="button" onClick={onRetry}>
          {retryTitle}
        </button>
      )}
    </div>
  )
}
