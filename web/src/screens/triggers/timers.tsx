import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { list } from '../../api/client.ts'
import { useLoaded } from '../../api/load.ts'
import { usePoll } from '../../api/poll.ts'
import type { TimerRecord } from '../../api/records.ts'
import { Failure } from '../../components/failure.tsx'
import { Table } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { parametersLine } from '../../components/rules/trigger-line.ts'
import { hrefOf } from '../../router.ts'
import { RuleLinks } from './rule-links.tsx'
import { Tabs } from './tabs.tsx'
import { useCatalogue } from './use-catalogue.ts'

const SHOWN = 100
/** When a timer has fired, nobody tells. */
const LOOK_AGAIN_MS = 10_000

/** When what fires next, the soonest first. */
export function Timers(): JSX.Element {
  const { data, error, reload, set } = useLoaded(loadTimers, [], ['trigger', 'rule'])
  const { data: catalogue } = useCatalogue()
  const [shown, setShown] = useState(SHOWN)
  usePoll(async () => set(await loadTimers()), LOOK_AGAIN_MS)
  const timers = useMemo(() => (data ?? []).toSorted(bySoonest), [data])
  return (
    <div class="page">
      <Tabs part="timers" />
      {error !== undefined && data === undefined && <Failure error={error} onRetry={reload} />}
      {data === undefined && error === undefined && <p class="loading">Loading…</p>}
      {data?.length === 0 && (
        <p class="empty">
          No timers yet. A rule of the trigger type <code>core.svc.IntervalTimer</code>, <code>core.svc.CronTimer</code>{' '}
          or <code>core.svc.DateTimer</code> creates one:{' '}
          <a href={hrefOf(['rules', 'new'], { trigger: 'core.svc.IntervalTimer' })}>create a rule</a>.
        </p>
      )}
      {timers.length > 0 && (
        <Table label="Timers">
          <thead>
            <tr>
              <th scope="col">Schedule</th>
              <th scope="col">Next run</th>
              <th scope="col">Last run</th>
              <th scope="col">Used by</th>
              <th scope="col">
                <span class="visually-hidden">Trigger instances</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {timers.slice(0, shown).map(({ ref, type, parameters, next_run: next, previous_run: previous }) => (
              <tr key={ref}>
                <td>
                  <div class="trigger-words">{parametersLine(type, parameters)}</div>
                  <a class="hint" href={hrefOf(['triggers', 'types', type])}>
                    {type}
                  </a>
                </td>
                <td>
                  {next === undefined ? (
                    <span class="hint">none: no enabled rule or no time left, or timers are off</span>
                  ) : (
                    <Time at={next} />
                  )}
                </td>
                <td>{previous === undefined ? <span class="hint">never</span> : <Time at={previous} />}</td>
                <td>
                  {catalogue !== undefined && (
                    <RuleLinks rules={catalogue.rules === undefined ? undefined : (catalogue.rules.get(ref) ?? [])} />
                  )}
                </td>
                <td>
                  <a href={hrefOf(['triggers', 'instances'], { trigger: ref })}>instances</a>
                </td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
      {timers.length > shown && (
        <p>
          <button type="button" onClick={() => setShown(shown + SHOWN * 10)}>
            {timers.length - shown} more
          </button>
        </p>
      )}
    </div>
  )
}

async function loadTimers(signal?: AbortSignal): Promise<TimerRecord[]> {
  return (await list<TimerRecord>('timers', undefined, signal)).items
}

/** Those that do not fire come last. */
function bySoonest({ next_run: a }: TimerRecord, { next_run: b }: TimerRecord): number {
  if (a === b) return 0
  if (a === undefined || b === undefined) return a === undefined ? 1 : -1
  return a < b ? -1 : 1
}
