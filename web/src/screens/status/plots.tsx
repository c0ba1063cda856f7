import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { get } from '../../api/client.ts'
import type { StatusHistory, StatusSample } from '../../api/records.ts'
import { Chart } from '../../components/chart/chart.tsx'
import { nearest } from '../../components/chart/scale.ts'
import { Failure } from '../../components/failure.tsx'
import { formatBytes } from '../../components/size.ts'
import { formatSeconds } from '../../components/time.tsx'
import { hrefOf } from '../../router.ts'
import {
  formatMilliseconds,
  formatRate,
  mergeSamples,
  plotsOf,
  ranges,
  windowOf,
  type Plot,
  type StatusRange,
} from './samples.ts'
import { usePolled } from './use-polled.ts'

const EVERY_MS = 15_000
/** The server knows how far back it can tell. */
const THE_BEGINNING = '2001-01-01T00:00:00Z'

const formats: Readonly<Record<Plot['unit'], (value: number) => string>> = {
  count: String,
  rate: formatRate,
  seconds: formatSeconds,
  milliseconds: formatMilliseconds,
  bytes: formatBytes,
}

export function Plots({ range }: { range: StatusRange }): JSX.Element {
  const { data, error, retry } = usePolled<StatusSample[]>(range.name, (before) => load(range, before), EVERY_MS)
  // The time, and not which sample it is: they move on.
  const [lookedAt, setLookedAt] = useState<number>()
  const { from, to, times, plots } = useMemo(() => {
    const shown = windowOf(data ?? [], range)
    return { from: shown.from, to: shown.to, ...plotsOf(shown.samples) }
  }, [data, range])
  return (
    <section aria-labelledby="plots">
      <div class="page-head">
        <h2 id="plots">History</h2>
        <nav class="tabs" aria-label="Period">
          {ranges.map(({ name, title }) => (
            <a
              key={name}
              href={hrefOf(['status'], name === ranges[0].name ? {} : { range: name })}
              aria-current={name === range.name ? 'page' : undefined}
            >
              {title}
            </a>
          ))}
        </nav>
      </div>
      {error !== undefined && data === undefined ? (
        <Failure error={error} onRetry={retry} />
      ) : data === undefined ? (
        <p class="loading">Loading…</p>
      ) : (
        <div class="charts">
          {plots.map(({ unit, ...plot }) => (
            <div class="card" key={plot.title}>
              <Chart
                {...plot}
                times={times}
                stepMs={range.step * 60_000}
                from={from}
                to={to}
                format={formats[unit]}
                isWhole={unit === 'count'}
                cursor={lookedAt === undefined ? undefined : nearest(times, lookedAt)}
                onCursor={(index) => setLookedAt(index === undefined ? undefined : times[index])}
              />
            </div>
          ))}
        </div>
      )}
    </section>
  )
}

async function load(
  { name, step, lengthMs }: StatusRange,
  before: StatusSample[] | undefined,
): Promise<StatusSample[]> {
  const since = before?.at(-1)?.timestamp ?? (name === 'hour' ? undefined : THE_BEGINNING)
  const { samples } = await get<StatusHistory>('status/history', { since, step })
  const all = mergeSamples(before ?? [], samples)
  const newest = Date.parse(all.at(-1)?.timestamp ?? '')
  // What nobody will be shown again goes, so that a page that is open for weeks does not grow.
  return all.filter(({ timestamp }) => Date.parse(timestamp) >= newest - lengthMs)
}
