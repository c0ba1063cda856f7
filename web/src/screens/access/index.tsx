/** Who am I, API keys, and for administrators users: `#/access`, `#/access/keys`, `#/access/users`. */
import type { JSX } from 'preact'
import { session } from '../../api/session.ts'
import { hrefOf, type ScreenProps } from '../../router.ts'
import { useStore } from '../../store.ts'
import { KeyPage, NewKeyPage } from './key-page.tsx'
import { Keys } from './keys.tsx'
import { Users } from './users.tsx'
import { Account } from './account.tsx'
import './access.css'

const tabs = [
  { name: '', title: 'Account' },
  { name: 'keys', title: 'API keys' },
  { name: 'users', title: 'Users' },
] as const

export default function Screen({ path, query }: ScreenProps): JSX.Element {
  const { user } = useStore(session.state)
  const [tab = '', ...rest] = path
  // Users are known where somebody signs in.
  const seesUsers = user?.isAdmin === true && user.method !== undefined
  const shown = tabs.filter(({ name }) => name !== 'users' || seesUsers)
  return (
    <div class="page access">
      <h1>Access</h1>
      <nav class="tabs" aria-label="Access">
        {shown.map(({ name, title }) => (
          <a
            key={name}
            href={hrefOf(name === '' ? ['access'] : ['access', name])}
            aria-current={name === tab ? 'page' : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      {user === undefined ? null : tab === '' ? (
        <Account user={user} />
      ) : tab === 'keys' ? (
        <KeysTab user={user} rest={rest} query={query} />
      ) : tab === 'users' ? (
        seesUsers ? (
          <Users query={query} self={user.name} />
        ) : (
          <p class="empty">
            {user.method === undefined
              ? 'Authentication is off (auth.enable), so svc has no users to manage.'
              : 'Only administrators see users. See “Account” for your own.'}
          </p>
        )
      ) : (
        <p class="empty">
          Page not found. <a href={hrefOf(['access'])}>Open Account</a>
        </p>
      )}
    </div>
  )
}

function KeysTab({ user, rest, query }: Parameters<typeof Keys>[0] & { rest: readonly string[] }): JSX.Element {
  const [id] = rest
  if (id === undefined) return <Keys user={user} query={query} />
  if (id === 'new') return <NewKeyPage user={user} />
  return <KeyPage key={id} id={id} user={user} />
}
