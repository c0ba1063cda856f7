/** Who may sign in: for administrators. */
import type { JSX } from 'preact'
import { useId, useState } from 'preact/hooks'
import { change, list, messageOf } from '../../api/client.ts'
import { useLoaded } from '../../api/load.ts'
import { usePoll } from '../../api/poll.ts'
import type { NewUserRequest, UserRecord, UserRequest } from '../../api/records.ts'
import { Confirm, Dialog } from '../../components/dialog.tsx'
import { Failure } from '../../components/failure.tsx'
import { RefusalBanner, refusalBy, refusedField, type Refusal } from '../../components/form/refusal.tsx'
import { notify } from '../../components/notices.tsx'
import { offsetIn, Pager } from '../../components/pager.tsx'
import { Table } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { hrefOf } from '../../router.ts'
import { PasswordForm } from './password-form.tsx'

const AT_ONCE = 100
/** Others change users, of which nobody tells. */
const POLL_MS = 10_000

type Asking = { what: 'password' | 'delete'; user: UserRecord } | { what: 'add' }

export function Users({ query, self }: { query: URLSearchParams; self: string }): JSX.Element {
  const offset = offsetIn(query)
  const { data, error, isLoading, reload } = useLoaded(
    (signal) => list<UserRecord>('users', { limit: AT_ONCE, offset }, signal),
    [offset],
  )
  usePoll(async () => reload(), POLL_MS)
  const [asking, setAsking] = useState<Asking>()
  const stopAsking = (): void => setAsking(undefined)
  // The server keeps the passwords of all of them, or of nobody.
  const keepsPasswords = data?.items.some(({ has_password: has }) => has !== null) !== false

  async function update(user: UserRecord, body: UserRequest, done: string): Promise<void> {
    try {
      await change<UserRecord>('PUT', `users/${encodeURIComponent(user.name)}`, body)
      notify(done)
      reload()
    } catch (failure) {
      notify(messageOf(failure), 'failure')
    }
  }
  async function remove({ name }: UserRecord): Promise<void> {
    try {
      await change('DELETE', `users/${encodeURIComponent(name)}`)
      notify(`${name} is deleted.`)
      reload()
    } catch (failure) {
      notify(messageOf(failure), 'failure')
    }
  }

  return (
    <>
      <div class="page-head">
        <p class="about">Users who have signed in, have API keys or have a password in svc.</p>
        <span class="spacer" />
        <button type="button" class="primary" onClick={() => setAsking({ what: 'add' })}>
          Add user
        </button>
      </div>
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {data === undefined ? (
        isLoading && <p class="loading">Loading…</p>
      ) : (
        <Table>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">State</th>
              <th scope="col">Kind</th>
              <th scope="col">Password</th>
              <th scope="col">Created</th>
              <th scope="col">
                <span class="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {data.items.map((user) => (
              <tr key={user.name}>
                <th scope="row" class="long">
                  {user.name}
                  {user.name === self && <span class="hint"> (you)</span>}
                </th>
                <td>
                  <span class="badge" data-status={user.is_disabled ? 'disabled' : 'enabled'}>
                    {user.is_disabled ? 'disabled' : 'enabled'}
                  </span>
                </td>
                <td>{user.is_service ? 'service account' : 'user'}</td>
                <td>{user.has_password === null ? 'external' : user.has_password ? 'stored in svc' : 'none'}</td>
                <td>{user.created_at === null ? 'never signed in' : <Time at={user.created_at} />}</td>
                <td>
                  <div class="buttons nowrap">
                    <a class="button" href={hrefOf(['access', 'keys'], { user: user.name })}>
                      Show keys
                    </a>
                    {user.name !== self && (
                      <>
                        {keepsPasswords && (
                          <button
                            type="button"
                            aria-label={`Set password of ${user.name}`}
                            onClick={() => setAsking({ what: 'password', user })}
                          >
                            Set password
                          </button>
                        )}
                        <button
                          type="button"
                          aria-label={`${user.is_disabled ? 'Enable' : 'Disable'} ${user.name}`}
                          onClick={() =>
                            void update(
                              user,
                              { is_disabled: !user.is_disabled },
                              user.is_disabled
                                ? `${user.name} can sign in again.`
                                : `${user.name} is disabled: svc refuses their sessions and API keys.`,
                            )
                          }
                        >
                          {user.is_disabled ? 'Enable' : 'Disable'}
                        </button>
                        <button
                          type="button"
                          class="danger"
                          aria-label={`Delete ${user.name}`}
                          onClick={() => setAsking({ what: 'delete', user })}
                        >
                          Delete
                        </button>
                      </>
                    )}
                  </div>
                </td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
      {data !== undefined && <Pager total={data.total} offset={offset} limit={AT_ONCE} what="users" />}
      {asking?.what === 'add' && (
        <NewUser
          keepsPasswords={keepsPasswords}
          onClose={stopAsking}
          onMade={() => {
            stopAsking()
            reload()
          }}
        />
      )}
      {asking?.what === 'password' && (
        <Dialog title={`Password of ${asking.user.name}`} onClose={stopAsking}>
          <PasswordForm
            name={asking.user.name}
            onDone={() => {
              stopAsking()
              reload()
            }}
          />
        </Dialog>
      )}
      {asking?.what === 'delete' && (
        <Confirm
          title={`Delete ${asking.user.name}?`}
          text={`svc deletes the account, tokens, API keys and own datastore items of ${asking.user.name}. Executions stay. To block sign-in for a while, disable the user instead.`}
          action={`Delete ${asking.user.name}`}
          onConfirm={() => void remove(asking.user)}
          onClose={stopAsking}
        />
      )}
    </>
  )
}

function NewUser({
  keepsPasswords,
  onClose,
  onMade,
}: {
  keepsPasswords: boolean
  onClose: () => void
  onMade: () => void
}): JSX.Element {
  const id = useId()
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const [hasPassword, setHasPassword] = useState(keepsPasswords)
  const [isService, setIsService] = useState(false)
  const [refusal, setRefusal] = useState<Refusal>()
  const [isBusy, setIsBusy] = useState(false)

  async function make(event: Event): Promise<void> {
    event.preventDefault()
    if (isBusy) return
    const wrong =
      name === ''
        ? { text: 'Enter a name.', field: 'name' }
        : hasPassword && password === ''
          ? { text: 'Enter a password, or clear the check box.', field: 'password' }
          : undefined
    setRefusal(wrong)
    if (wrong !== undefined) return
    setIsBusy(true)
    try {
      const body: NewUserRequest = {
        name,
        ...(hasPassword ? { password } : {}),
        ...(isService ? { is_service: true } : {}),
      }
      await change<UserRecord>('POST', 'users', body)
      notify(`User ${name} added.`)
      onMade()
    } catch (error) {
      setRefusal(refusalBy(error, ['name', 'password']))
    } finally {
      setIsBusy(false)
    }
  }

  return (
    <Dialog title="New user" onClose={onClose}>
      <form class="form" noValidate onSubmit={(event) => void make(event)}>
        <div class="field">
          <label for={`${id}-name`}>Name</label>
          <input
            id={`${id}-name`}
            value={name}
            maxLength={256}
            autocomplete="off"
            spellcheck={false}
            autocapitalize="none"
            {...refusedField(refusal, 'name', `${id}-refusal`)}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </div>
        {keepsPasswords && (
          <>
            <label class="choice-line">
              <input
                type="checkbox"
                checked={hasPassword}
                onChange={(event) => setHasPassword(event.currentTarget.checked)}
              />
              <span>store a password in svc (without one, only API keys work)</span>
            </label>
            {hasPassword && (
              <div class="field">
                <label for={`${id}-password`}>Password</label>
                <input
                  id={`${id}-password`}
                  type="password"
                  autocomplete="new-password"
                  value={password}
                  {...refusedField(refusal, 'password', `${id}-refusal`)}
                  onInput={(event) => setPassword(event.currentTarget.value)}
                />
              </div>
            )}
          </>
        )}
        <label class="choice-line">
          <input type="checkbox" checked={isService} onChange={(event) => setIsService(event.currentTarget.checked)} />
          <span>service account: may request tokens of users other than administrators</span>
        </label>
        <RefusalBanner refusal={refusal} id={`${id}-refusal`} />
        <div class="buttons">
          <button type="submit" class="primary" disabled={isBusy}>
            {isBusy ? 'Adding…' : 'Add user'}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
