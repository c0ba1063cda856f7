import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { messageOf, request } from '../../api/client.ts'
import { notify } from '../../components/notices.tsx'
import { hrefOf, parseLocation } from '../../router.ts'

/** Lets a trigger instance happen again, and leads to the new one. */
export function ReplayButton({
  id,
  onSent,
  isCompact = false,
}: {
  id: string
  onSent: () => void
  isCompact?: boolean
}): JSX.Element {
  const [isBusy, setIsBusy] = useState(false)
  const [again, setAgain] = useState<string>()
  async function emit(): Promise<void> {
    setIsBusy(true)
    try {
      const answer = await request('POST', `triggerinstances/${id}/re_emit`)
      setAgain(answer.headers.get('Svc-Trigger-Instance-Id') ?? '')
      onSent()
    } catch (error) {
      notify(`Could not replay the request: ${messageOf(error)}`, 'failure')
    } finally {
      setIsBusy(false)
    }
  }
  const { path } = parseLocation(location.hash)
  return (
    <span class="re-emit" role="status">
      {again === undefined ? (
        <button
          type="button"
          class={isCompact ? 'compact quiet' : ''}
          disabled={isBusy}
          title="Rules evaluate it again in a new trace"
          onClick={() => void emit()}
        >
          Replay
        </button>
      ) : (
        <a href={hrefOf(path, { request: again })}>Show replay</a>
      )}
    </span>
  )
}
