/** Says before the session ends that it will, so that nobody is asked for a password in the middle of something. */
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { session } from '../../api/session.ts'
import { useStore } from '../../store.ts'
import { warnAt } from './ending.ts'

const time = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
/** Browsers know no longer timers. */
const MAX_TIMER_MS = 2 ** 31 - 1

export function SessionEnding(): JSX.Element {
  const { user, phase, isRenewing } = useStore(session.state)
  const endsAt = phase === 'signed_in' ? user?.endsAt : undefined
  const stage = useStage(endsAt)
  return (
    <div class="session-ending" role="status">
      {endsAt !== undefined && stage !== 'far' && !isRenewing && (
        <p>
          Your session {stage === 'near' ? 'ends' : 'ended'} at {time.format(endsAt)}.{' '}
          <button type="button" onClick={() => session.startRenewing()}>
            Sign in again
          </button>
        </p>
      )}
    </div>
  )
}

type Stage = 'far' | 'near' | 'over'

function useStage(endsAt: number | undefined): Stage {
  const [known, setKnown] = useState({ endsAt, stage: 'far' as Stage })
  useEffect(() => {
    const startedAt = Date.now()
    let timer: ReturnType<typeof setTimeout> | undefined
    function look(): void {
      if (endsAt === undefined) return
      const now = Date.now()
      const warning = warnAt(startedAt, endsAt)
      const stage = now >= endsAt ? 'over' : now >= warning ? 'near' : 'far'
      setKnown({ endsAt, stage })
      clearTimeout(timer)
      const next = stage === 'far' ? warning : endsAt
      if (stage !== 'over') timer = setTimeout(look, Math.min(Math.max(next - now, 50), MAX_TIMER_MS))
    }
    look()
    // Timers of a page that sleeps are late.
    document.addEventListener('visibilitychange', look)
    return () => {
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', look)
    }
  }, [endsAt])
  return known.endsAt === endsAt ? known.stage : 'far'
}
