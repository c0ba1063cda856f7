/** How the server is now, and how it has been: `#/status`, `#/status?range=day`. For administrators. */
import type { JSX } from 'preact'
import { get } from '../../api/client.ts'
import type { StatusRecord } from '../../api/records.ts'
import { session } from '../../api/session.ts'
import { Failure } from '../../components/failure.tsx'
import { Table } from '../../components/table.tsx'
import { formatSeconds, Time } from '../../components/time.tsx'
import { hrefOf, type ScreenProps } from '../../router.ts'
import { useStore } from '../../store.ts'
import { CurrentStatus, StatusParts } from './now.tsx'
import { Plots } from './plots.tsx'
import { ranges } from './samples.ts'
import { usePolled } from './use-polled.ts'
import './status.css'

const EVERY_MS = 5000

export default function Screen({ query }: ScreenProps): JSX.Element {
  const { user } = useStore(session.state)
  if (user?.isAdmin === false) return <ForAdministrators />
  return <Status rangeName={query.get('range') ?? ''} />
}

function ForAdministrators(): JSX.Element {
  return (
    <div class="page">
      <h1>Status</h1>
      <p class="note">
        Only administrators see the status of the server. See the <a href={hrefOf(['history'])}>history</a> for your
        executions and <a href={hrefOf(['access'])}>Access</a> for your permissions.
      </p>
    </div>
  )
}

function Status({ rangeName }: { rangeName: string }): JSX.Element {
  const { data, error, at, retry } = usePolled('status', () => get<StatusRecord>('status'), EVERY_MS)
  const range = ranges.find(({ name }) => name === rangeName) ?? ranges[0]
  return (
    <div class="page status">
      <div class="page-head">
        <h1>Status</h1>
        {data !== undefined && error === undefined && (
          <span class="badge" data-status={data.status}>
            {data.status === 'ok' ? 'ok' : 'needs attention'}
          </span>
        )}
        <span class="spacer" />
        {data !== undefined && (
          <span class="hint">
            Version {data.version}, process {data.pid}, up for {formatSeconds(data.uptime_seconds)}, since{' '}
            <Time at={data.started_at} />
          </span>
        )}
      </div>
      {error !== undefined && <Failure error={error} onRetry={retry} />}
      {error !== undefined && at !== undefined && (
        <p class="note">
          Last answer: <Time at={new Date(at).toISOString()} />.
        </p>
      )}
      {data === undefined ? (
        error === undefined && <p class="loading">Loading…</p>
      ) : (
        <>
          <Attention sentences={data.attention} />
          <CurrentStatus status={data} />
        </>
      )}
      <Plots range={range} />
      {data !== undefined && (
        <>
          <Problems problems={data.problems} />
          <StatusParts status={data} />
        </>
      )}
    </div>
  )
}

function Attention({ sentences }: { sentences: readonly string[] }): JSX.Element {
  return (
    <div role="status">
      {sentences.length === 0 ? (
        <p class="all-well">No problems.</p>
      ) : (
        <ul class="attention">
          {sentences.map((sentence) => (
            <li key={sentence}>{sentence}</li>
          ))}
        </ul>
      )}
    </div>
  )
}

/** Newest first. */
function Problems({ problems }: Pick<StatusRecord, 'problems'>): JSX.Element {
  return (
    <section aria-labelledby="problems">
      <h2 id="problems">Recent problems</h2>
      {problems.length === 0 ? (
        <p class="hint">No warnings or errors since the start.</p>
      ) : (
        <Table>
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col">Level</th>
              <th scope="col">Message</th>
            </tr>
          </thead>
          <tbody>
            {problems.toReversed().map(({ timestamp, level, event, message, line }, i) => (
              <tr key={`${timestamp} ${i}`}>
                <td class="nowrap">
                  <Time at={timestamp} isShort />
                </td>
                <td>
                  <span class="badge" data-status={level === 'WARNING' ? 'pending' : 'failed'}>
                    {level.toLowerCase()}
                  </span>
                </td>
                <td class="long">
                  {message} <code class="hint">{event}</code>
                  <details>
                    <summary>Log line</summary>
                    <pre>{line}</pre>
                  </details>
                </td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
    </section>
  )
}
