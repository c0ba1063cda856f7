/** The API keys that the user may see, in the order in which they were made. */
import type { JSX } from 'preact'
import { ApiError, list } from '../../api/client.ts'
import { useLoaded } from '../../api/load.ts'
import type { ApiKeyRecord } from '../../api/records.ts'
import type { User } from '../../api/session.ts'
import { Failure } from '../../components/failure.tsx'
import { offsetIn, Pager } from '../../components/pager.tsx'
import { Time, useNow } from '../../components/time.tsx'
import { hrefOf, setQuery } from '../../router.ts'
import { cut, nameOf, stateOf, summaryOf } from './key-form.ts'
import { KeyActions } from './key-actions.tsx'

const AT_ONCE = 50

export function Keys({ user, query }: { user: User; query: URLSearchParams }): JSX.Element {
  const owner = query.get('user') ?? ''
  const offset = offsetIn(query)
  const { data, error, isLoading, reload } = useLoaded(
    (signal) => list<ApiKeyRecord>('apikeys', { limit: AT_ONCE, offset, user: owner }, signal),
    [owner, offset],
  )
  const isRefused = error instanceof ApiError && error.status === 403
  return (
    <>
      <div class="page-head">
        <p class="about">
          API keys are for programs: they do not expire unless you say so, and can do a part of what their owner may.
        </p>
        <span class="spacer" />
        <a class="button primary" href={hrefOf(['access', 'keys', 'new'])}>
          New API key
        </a>
      </div>
      {user.method === undefined && (
        <p class="note">
          While authentication is off (<code>auth.enable</code>) nobody needs a key, and none is looked at. Keys that
          you make now count once it is on.
        </p>
      )}
      {user.isAdmin && (
        <form class="toolbar" onSubmit={(event) => event.preventDefault()}>
          <div class="field">
            <label for="owner">Only keys of</label>
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
          You may not list API keys: {error.message} With that permission you see your own; you can make one all the
          same if you have <code>api_key_create</code>.
        </p>
      ) : (
        error !== undefined && <Failure error={error} onRetry={reload} />
      )}
      {data === undefined ? (
        isLoading && <p class="loading">Loading…</p>
      ) : data.items.length === 0 ? (
        <p class="empty">
          {owner !== ''
            ? `There is no key of ${owner} that you may see.`
            : offset > 0
              ? 'There are no keys in this part of the list.'
              : 'No API keys yet. Make one for each program, so that you can take it away from one alone.'}
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
    <div class="table-scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Used by</th>
            <th scope="col">State</th>
            <th scope="col">Owner</th>
            <th scope="col">May</th>
            <th scope="col">Made</th>
            <th scope="col">Last used</th>
            <th scope="col">Expires</th>
            <th scope="col">
              <span class="visually-hidden">Change</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <tr key={key.id}>
              <th scope="row" class="long">
                <a class="cut" href={hrefOf(['access', 'keys', key.id])}>
                  {nameOf(key)}
                </a>
              </th>
              <td>
                <StateBadge apiKey={key} now={now} />
              </td>
              <td class="long">{key.user}</td>
              <td class="long">
                <span class="cut">{cut(summaryOf(key.scopes))}</span>
              </td>
              <td>
                <Time at={key.created_at} />
              </td>
              <td>{key.last_used_at === undefined ? 'not yet' : <Time at={key.last_used_at} />}</td>
              <td>{key.expires_at === undefined ? 'never' : <Time at={key.expires_at} />}</td>
              <td>
                <KeyActions apiKey={key} onChanged={reload} onDeleted={reload} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

export function StateBadge({ apiKey, now }: { apiKey: ApiKeyRecord; now: number }): JSX.Element {
  const state = stateOf(apiKey, now)
  return (
    <span class="badge" data-status={state}>
      {state}
    </span>
  )
}
