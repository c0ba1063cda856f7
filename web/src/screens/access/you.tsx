import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { get, list, messageOf, send } from '../../api/client.ts'
import { useLoaded } from '../../api/load.ts'
import type { RoleAssignmentRecord, UserRecord } from '../../api/records.ts'
import { session, type User } from '../../api/session.ts'
import { Confirm } from '../../components/dialog.tsx'
import { Failure } from '../../components/failure.tsx'
import { notify } from '../../components/notices.tsx'
import { Time } from '../../components/time.tsx'
import { ownRightsOf } from './rights.ts'
import { PasswordForm } from './password-form.tsx'

const MAX_ROLES = 100

export function You({ user }: { user: User }): JSX.Element {
  return (
    <div class="access-cards">
      <section class="card" aria-labelledby="who">
        <h2 id="who">Who you are</h2>
        <dl class="facts">
          <dt>User</dt>
          <dd>{user.name}</dd>
          <dt>Signed in</dt>
          <dd>
            {user.method === undefined
              ? 'Nobody has to sign in: authentication is off (auth.enable).'
              : user.method === 'token'
                ? 'with a token of this browser'
                : 'with an API key'}
          </dd>
          {user.endsAt !== undefined && (
            <>
              <dt>Until</dt>
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
        <h2 id="may">What you may do</h2>
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
function Roles({ user }: { user: User }): JSX.Element | null {
  const { data, error, reload } = useLoaded(
    (signal) => list<RoleAssignmentRecord>('rbac/role_assignments', { user: user.name, limit: MAX_ROLES }, signal),
    [user.name],
  )
  if (error !== undefined) return <Failure error={error} onRetry={reload} />
  if (data === undefined || data.items.length === 0) return null
  return (
    <div class="table-scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Role</th>
            <th scope="col">What for</th>
            <th scope="col">Comes from</th>
          </tr>
        </thead>
        <tbody>
          {data.items.map(({ id, role, description, is_remote: isRemote, source }) => (
            <tr key={id}>
              <td>{role}</td>
              <td class="long">{description}</td>
              <td class="long">
                {isRemote ? 'a group of yours, by ' : ''}
                <code>{source}</code>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
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
      <h2 id="sessions">Your sessions</h2>
      <p>
        Signing out ends the session of this browser. If a machine you were signed in on is lost, or somebody has seen a
        token of yours, end all of them: of other browsers, of the command line, this one as well. API keys stay as they
        are.
      </p>
      <div class="buttons">
        <button type="button" class="danger" onClick={() => setIsAsking(true)}>
          Revoke all my tokens…
        </button>
      </div>
      {isAsking && (
        <Confirm
          title="Revoke all your tokens?"
          text="Every session of yours ends at once, everywhere, this one as well: you will have to sign in again. What you have started runs on."
          action="Revoke all my tokens"
          onConfirm={() => void revokeAll()}
          onClose={() => setIsAsking(false)}
        />
      )}
    </section>
  )
}

/** Where the server keeps it. */
function Password({ user }: { user: User }): JSX.Element | null {
  const { data } = useLoaded(
    (signal) => get<UserRecord>(`users/${encodeURIComponent(user.name)}`, {}, signal),
    [user.name],
  )
  if (data?.has_password !== true) return null
  return (
    <section class="card" aria-labelledby="password">
      <h2 id="password">Your password</h2>
      <PasswordForm name={user.name} isOwn />
    </section>
  )
}
