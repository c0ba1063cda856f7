/** The API keys that the user may see, in the order in which they were made. */
import type { JSX } from 'preact'
import { ApiError, list } from '../../api/client.ts'
import { useLoaded } from '../../api/load.ts'
import { usePoll } from '../../api/poll.ts'
import type { ApiKeyRecord } from '../../api/records.ts'
import type { SessionUser } from '../../api/session.ts'
import { Failure } from '../../components/failure.tsx'
import { offsetIn, Pager } from '../../components/pager.tsx'
import { Table } from '../../components/table.tsx'
import { Time, useNow } from '../../components/time.tsx'
import { hrefOf, setQuery } from '../../router.ts'
import { withEllipsis, keyNameOf, keyStateOf, summaryOf } from './key-form.ts'
import { KeyActions } from './key-actions.tsx'

const AT_ONCE = 50
/** Others change keys, of which nobody tells; the last use changes with each request. */
const POLL_MS = 10_000

export function Keys({ user, query }: { user: SessionUser; query: URLSearchParams }): JSX.Element {
  const owner = query.get('user') ?? ''
  const offset = offsetIn(query)
  const { data, error, isLoading, reload } = useLoaded(
    (signal) => list<ApiKeyRecord>('apikeys', { limit: AT_ONCE, offset, user: owner }, signal),
    [owner, offset],
  )
  usePoll(async () => reload(), POLL_MS)
  const isRefused = error instanceof ApiError && error.status === 403
  return (
    <>
      <div class="page-head">
        <p class="about">
          API keys are for programs. A key has some or all permissions of its owner and an optional expiry.
        </p>
        <span class="spacer" />
        <a class="button primary" href={hrefOf(['access', 'keys', 'new'])}>
          Create API key
        </a>
      </div>
      {user.method === undefined && (
        <p class="note">
          Authentication is off (<code>auth.enable</code>), so svc ignores API keys. Keys you create now take effect
          once it is on.
        </p>
      )}
      {user.isAdmin && (
        <form class="toolbar" onSubmit={(event) => event.preventDefault()}>
          <div class="field">
            <label for="owner">Owner</label>
            <input
              id="owner"
              type="search"
              value={owner}
              placeholder="any owner"
              spellcheck={false}
              autocapitalize="none"
              onChange={(event) => setQuery({ user: event.currentTarget.value.trim(), offset: undefined })}
            />
          </div>
        </form>
      )}
      {isRefused ? (
        <p class="note">
          You cannot list API keys: {error.message} Ask an administrator for it. To create a key, you need{' '}
          <code>api_key_create</code>.
        </p>
      ) : (
        error !== undefined && <Failure error={error} onRetry={reload} />
      )}
      {data === undefined ? (
        isLoading && <p class="loading">Loading…</p>
      ) : data.items.length === 0 ? (
        <p class="empty">
          {owner !== ''
            ? `No keys of ${owner}, or none that you may see.`
            : offset > 0
              ? 'No keys on this page.'
              : 'No API keys yet. Create one for each program, so that you can disable it alone.'}
        </p>
      ) : (
        <KeyTable keys={data.items} reload={reload} />
      )}
      {data !== undefined && <Pager total={data.total} offset={offset} limit={AT_ONCE} what="API keys" />}
    </>
  )
}

function KeyTable({ keys, reload }: { keys: readonly ApiKeyRecord[]; reload: () => void }): JSX.Element {
  const now = useNow(30_000)
  return (
    <Table>
      <thead>
        <tr>
          <th scope="col">Used by</th>
          <th scope="col">State</th>
          <th scope="col">Owner</th>
          <th scope="col">Permissions</th>
          <th scope="col">Created</th>
          <th scope="col">Last used</th>
          <th scope="col">Expires</th>
          <th scope="col">
            <span class="visually-hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {keys.map((key) => (
          <tr key={key.id}>
            <th scope="row" class="long">
              <a class="cut" href={hrefOf(['access', 'keys', key.id])}>
                {keyNameOf(key)}
              </a>
            </th>
            <td>
              <StateBadge apiKey={key} now={now} />
            </td>
            <td class="long">{key.user}</td>
            <td class="long">
              <span class="cut">{withEllipsis(summaryOf(key.scopes))}</span>
            </td>
            <td>
              <Time at={key.created_at} />
            </td>
            <td>{key.last_used_at === undefined ? 'never' : <Time at={key.last_used_at} />}</td>
            <td>{key.expires_at === undefined ? 'never' : <Time at={key.expires_at} />}</td>
            <td>
              <KeyActions apiKey={key} onChanged={reload} onDeleted={reload} />
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  )
}

export function StateBadge({ apiKey, now }: { apiKey: ApiKeyRecord; now: number }): JSX.Element {
  const state = keyStateOf(apiKey, now)
  return (
    <span class="badge" data-status={state}>
      {state}
    </span>
  )
}
