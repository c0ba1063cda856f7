/** The members of a trace in the order of time. */
import type { JSX } from 'preact'
import { StatusBadge } from '../../components/status-badge.tsx'
import { useMedia } from '../../components/media.ts'
import { Elapsed, useNow } from '../../components/time.tsx'
import { VirtualList } from '../../components/virtual-list.tsx'
import { describeCause, describeMember, durationOf, offsetText, type NamedTrace } from './describe.ts'
import { secondsAfter, type Forest, type Member } from './forest.ts'

const WIDE_ROW = 38
const NARROW_ROW = 84
const MAX_INDENT = 8
const INDENT = 14

export const NARROW_TABLE = '(max-width: 800px)'

export function MemberTable({ trace, forest }: { trace: NamedTrace; forest: Forest }): JSX.Element {
  const isNarrow = useMedia(NARROW_TABLE)
  const { members } = forest
  const isRunning = [...trace.executions.values()].some(({ end_timestamp: end }) => end === undefined)
  const now = useNow(isRunning ? 1000 : 60_000)
  const length = durationOf(trace, now)
  return (
    <div class="member-table" role="table" aria-label="Members" aria-rowcount={members.length + 1}>
      <div role="rowgroup">
        <div class="member-row member-head" role="row" aria-rowindex={1}>
          {['Time', 'Member', 'Caused by', 'Status', 'Duration', 'Timeline'].map((title) => (
            <span key={title} role="columnheader">
              {title}
            </span>
          ))}
        </div>
      </div>
      <VirtualList
        isGrid
        count={members.length}
        rowHeight={isNarrow ? NARROW_ROW : WIDE_ROW}
        label="Members"
        row={(index) => {
          const member = members[index]
          return member === undefined ? null : (
            <Row member={member} index={index} trace={trace} forest={forest} length={length} now={now} />
          )
        }}
      />
    </div>
  )
}

function Row({
  member,
  index,
  trace,
  forest,
  length,
  now,
}: {
  member: Member
  index: number
  trace: NamedTrace
  forest: Forest
  /** Of the trace, in seconds. */
  length: number
  now: number
}): JSX.Element {
  const { kind, title, href, status, offset, run, isMissing } = describeMember(member, trace)
  const { cause } = member
  const depth = Math.min(forest.depth.get(member.key) ?? 0, MAX_INDENT)
  const from = run === undefined ? offset : secondsAfter(trace.head.start_timestamp, run.from)
  const seconds = run === undefined ? 0 : (run.seconds ?? (now - new Date(run.from).getTime()) / 1000)
  const share = (part: number): string => `${length === 0 ? 0 : Math.min(100, (part / length) * 100)}%`
  const causeText = cause === undefined ? undefined : describeCause(cause, forest.byKey.get(cause.id), trace)
  return (
    <div class="member-row" role="row" aria-rowindex={index + 2}>
      <span role="cell" class="when number" title={member.at}>
        {offsetText(offset)}
      </span>
      <span role="cell" class="what" style={{ paddingLeft: `${depth * INDENT}px` }}>
        <span class="kind">{kind}</span>{' '}
        <a href={href} title={title}>
          {title}
        </a>
      </span>
      <span role="cell" class="cause">
        {causeText === undefined ? (
          <span class="hint">external</span>
        ) : (
          <a href={causeText.href} title={causeText.title}>
            {causeText.title}
          </a>
        )}
      </span>
      <span role="cell" class="status">
        {isMissing ? (
          <span class="hint" title="deleted, or hidden from you">
            deleted
          </span>
        ) : (
          status !== undefined && <StatusBadge status={status} />
        )}
      </span>
      <span role="cell" class="took number">
        {run !== undefined && <Elapsed from={run.from} seconds={run.seconds} />}
      </span>
      <span role="cell" class="bar">
        <span
          class="bar-part"
          data-kind={member.kind}
          data-status={status}
          style={{ left: share(from), width: share(seconds) }}
        />
      </span>
    </div>
  )
}
