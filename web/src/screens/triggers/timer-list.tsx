import type { JSX } from 'preact'
import { list } from '../../api/client.ts'
import { useLoaded } from '../../api/load.ts'
import type { TimerRecord } from '../../api/records.ts'
import { Failure } from '../../components/failure.tsx'
import { parametersLine } from '../../components/rules/trigger-line.ts'
import { Time } from '../../components/time.tsx'
import { hrefOf } from '../../router.ts'

const MAX_SHOWN = 500

/** When timers have fired, and will fire. */
export function TimerList(): JSX.Element {
  const { data, error, reload } = useLoaded(async (signal) => (await list<TimerRecord>('timers', {}, signal)).items, [])
  if (error !== undefined && data === undefined) return <Failure error={error} onRetry={reload} />
  if (data === undefined) return <p class="loading">Loading…</p>
  if (data.length === 0) {
    return (
      <p class="empty">
        There are no timers. A rule of the trigger type <code>core.svc.IntervalTimer</code> or{' '}
        <code>core.svc.CronTimer</code> makes one:{' '}
        <a href={hrefOf(['rules', 'new'], { trigger: 'core.svc.IntervalTimer' })}>make such a rule</a>.
      </p>
    )
  }
  return (
    <>
      <div class="buttons">
        <button type="button" onClick={reload}>
          Load again
        </button>
      </div>
      <div class="table-scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Timer</th>
              <th scope="col">Fires next</th>
              <th scope="col">Has fired</th>
              <th scope="col">What has happened</th>
            </tr>
          </thead>
          <tbody>
            {data.slice(0, MAX_SHOWN).map((timer) => (
              <tr key={timer.id}>
                <td>
                  {timer.type} <code>{parametersLine(timer.type, timer.parameters)}</code>
                </td>
                <td>{timer.next_timestamp === undefined ? 'never again' : <Time at={timer.next_timestamp} />}</td>
                <td>{timer.fired_timestamp === undefined ? 'not yet' : <Time at={timer.fired_timestamp} />}</td>
                <td>
                  <a href={hrefOf(['triggers', 'instances'], { trigger: timer.ref })}>trigger instances</a>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {data.length > MAX_SHOWN && (
        <p class="hint">
          These are the first {MAX_SHOWN} of {data.length} timers.
        </p>
      )}
    </>
  )
}
