import type { JSX } from 'preact'
import { messageOf } from '../api/client.ts'

/** What could not be shown, and why. */
export function Failure({
  error,
  onRetry,
  retryTitle = 'Retry',
}: {
  error: unknown
  onRetry?: () => void
  retryTitle?: string
}): JSX.Element {
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
