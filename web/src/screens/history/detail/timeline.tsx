import type { JSX } from 'preact'
import { isFinalStatus } from '../../../api/execution-status.ts'
import type { ExecutionRecord } from '../../../api/records.ts'
import { StatusBadge } from '../../../components/status-badge.tsx'
import { Table } from '../../../components/table.tsx'
import { Time, useNow } from '../../../components/time.tsx'
import { formatDuration, timelineOf } from './timeline.ts'

/** How long it was in which status: drawn to scale, and as a table. */
export function Timeline({ record }: { record: ExecutionRecord }): JSX.Element {
  const isOver = isFinalStatus(record.status)
  const now = useNow(isOver ? 60_000 : 1000)
  const { segments, total } = timelineOf(record, now)
  return (
    <section class="card" aria-label="Timeline">
      <h2>
        {formatDuration(total)} {isOver ? 'in total' : 'so far'}
      </h2>
      <div class="timeline" aria-hidden="true">
        {segments
          .filter(({ duration }) => duration !== undefined)
          .map(({ status, share }, i) => (
            <span
              key={i}
              data-status={status}
              title={status}
              style={{ flexGrow: Math.max(share, 0.0001), flexBasis: '2px' }}
            />
          ))}
      </div>
      <Table label="Statuses">
        <thead>
          <tr>
            <th scope="col">Status</th>
            <th scope="col">Start</th>
            <th scope="col">Offset</th>
            <th scope="col">Duration</th>
            <th scope="col">Share</th>
          </tr>
        </thead>
        <tbody>
          {segments.map(({ status, at, offset, duration, share }, i) => (
            <tr key={i}>
              <th scope="row">
                <StatusBadge status={status} />
              </th>
              <td>
                <Time at={at} />
              </td>
              <td class="number">{formatDuration(offset)}</td>
              <td class="number">{duration === undefined ? '' : formatDuration(duration)}</td>
              <td class="number">{duration === undefined ? '' : `${(share * 100).toFixed(1)} %`}</td>
            </tr>
          ))}
        </tbody>
      </Table>
    </section>
  )
}
