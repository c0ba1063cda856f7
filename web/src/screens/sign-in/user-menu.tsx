import type { JSX } from 'preact'
import { messageOf } from '../../api/client.ts'
import { session } from '../../api/session.ts'
import { notify } from '../../components/notices.tsx'
import { hrefOf } from '../../router.ts'
import { useStore } from '../../store.ts'

export function UserMenu(): JSX.Element | null {
  const { user } = useStore(session.state)
  if (user === undefined) return null
  return (
    <div class="user-menu">
      <a href={hrefOf(['access'])} title="Account and permissions">
        {user.name}
      </a>
      {user.method === 'token' && (
        <button
          type="button"
          class="quiet"
          onClick={() => void session.signOut().catch((error: unknown) => notify(messageOf(error), 'failure'))}
        >
          Sign out
        </button>
      )}
    </div>
  )
}
