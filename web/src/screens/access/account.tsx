import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { get, list, messageOf, send } from '../../api/client.ts'
import { useLoaded } from '../../api/load.ts'
import type { RoleAssignmentRecord, UserRecord } from '../../api/records.ts'
import { session, type SessionUser } from '../../api/session.ts'
import { Confirm } from '../../components/dialog.tsx'
import { Failure } from '../../components/failure.tsx'
import { notify } from '../../components/notices.tsx'
import { Table } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { ownRightsOf } from './rights.ts'
import { PasswordForm } from './password-form.tsx'

const MAX_ROLES = 100

export function Account({ user }: { user: SessionUser }): JSX.Element {
  return (
    <div class="access-cards">
      <section class="card" aria-labelledby="who">
        <h2 id="who">User</h2>
        <dl class="facts">
          <dt>Name</dt>
          <dd>{user.name}</dd>
          <dt>Authentication</dt>
          <dd>
            {user.method === undefined ? 'off (auth.enable)' : user.method === 'token' ? 'browser session' : 'API key'}
          </dd>
          {user.endsAt !== undefined && (
            <>
              <dt>Session expires</dt>
              <dd>
                <Time at={new Date(user.endsAt).toISOString()} />
              </dd>
            </>
          )}
          <dt>Administrator</dt>
          <dd>{user.isAdmin ? 'yes' : 'no'}</dd>
          {user.hasAccessControl && (
            <>
              <dt>Roles</dt>
              <dd>{user.roles.length === 0 ? 'none' : user.roles.join(', ')}</dd>
            </>
          )}
        </dl>
      </section>
      <section class="card" aria-labelledby="may">
        <h2 id="may">Permissions</h2>
        {ownRightsOf(user).map((sentence) => (
          <p key={sentence}>{sentence}</p>
        ))}
        {user.hasAccessControl && user.method !== undefined && <Roles user={user} />}
      </section>
      {user.method === 'token' && <Sessions />}
      {user.method === 'token' && <Password user={user} />}
    </div>
  )
}

/** Where the roles come from: what each of them grants is for administrators to see. */
function Roles({ user }: { user: SessionUser }): JSX.Element | null {
  const { data, error, reload } = useLoaded(
    (signal) => list<RoleAssignmentRecord>('rbac/role_assignments', { user: user.name, limit: MAX_ROLES }, signal),
    [user.name],
  )
  if (error !== undefined) return <Failure error={error} onRetry={reload} />
  if (data === undefined || data.items.length === 0) return null
  return (
    <Table>
      <thead>
        <tr>
          <th scope="col">Role</th>
          <th scope="col">Description</th>
          <th scope="col">Source</th>
        </tr>
      </thead>
      <tbody>
        {data.items.map(({ id, role, description, is_remote: isRemote, source }) => (
          <tr key={id}>
            <td>{role}</td>
            <td class="long">{description}</td>
            <td class="long">
              {isRemote ? 'directory group, by ' : ''}
              <code>{source}</code>
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  )
}

function Sessions(): JSX.Element {
  const [isAsking, setIsAsking] = useState(false)

  async function revokeAll(): Promise<void> {
    try {
      await send('DELETE', 'auth/v1/tokens')
      await session.signOut()
    } catch (error) {
      notify(messageOf(error), 'failure')
    }
  }

  return (
    <section class="card" aria-labelledby="sessions">
      <h2 id="sessions">Sessions</h2>
      <p>
        Signing out ends the session of this browser. If you lost a machine or somebody saw a token of yours, revoke all
        tokens. This ends every session: other browsers, the command line and this one. API keys stay valid.
      </p>
      <div class="buttons">
        <button type="button" class="danger" onClick={() => setIsAsking(true)}>
          Revoke all tokens…
        </button>
      </div>
      {isAsking && (
        <Confirm
          title="Revoke all your tokens?"
          text="All your sessions end at once, including this one, and you have to sign in again. Running executions continue."
          action="Revoke all tokens"
          onConfirm={() => void revokeAll()}
          onClose={() => setIsAsking(false)}
        />
      )}
    </section>
  )
}

/** Where the server keeps it. */
function Password({ user }: { user: SessionUser }): JSX.Element | null {
  const { data } = useLoaded(
    (signal) => get<UserRecord>(`users/${encodeURIComponent(user.name)}`, {}, signal),
    [user.name],
  )
  if (data?.has_password !== true) return null
  return (
    <section class="card" aria-labelledby="password">
      <h2 id="password">Password</h2>
      <PasswordForm name={user.name} isOwn />
    </section>
  )
}
