/** What the members of a trace are called, where they lead, and how they are. */
import type { CausedBy, TraceMemberRecord } from '../../api/records.ts'
import { formatSeconds } from '../../components/time.tsx'
import { hrefOf } from '../../router.ts'
import { secondsAfter, type Member } from './forest.ts'
import type { LoadedTrace } from './use-trace.ts'

/** What names a trigger whose reference says nothing; undefined: nothing does. */
export type TitleOf = (triggerRef: string) => string | undefined

export interface NamedTrace extends LoadedTrace {
  readonly titleOf: TitleOf
}

export const kindTitles: Record<TraceMemberRecord['kind'], string> = {
  execution: 'Execution',
  rule: 'Rule',
  trigger_instance: 'Trigger instance',
}

export interface MemberDescription {
  kind: string
  title: string
  href: string
  /** A word; of a rule none. Undefined: it is not known. */
  status: string | undefined
  /** Seconds after the start of the trace. */
  offset: number
  /** Of an execution: when it began, and how long it took if it has ended. */
  run: { from: string; seconds: number | undefined } | undefined
  /** It is gone, or not to be seen by everybody. */
  isMissing: boolean
}

/** The status of `describeMember` alone, cheap enough for thousands. */
export function memberStatusOf({ kind, id }: Pick<Member, 'kind' | 'id'>, trace: LoadedTrace): string | undefined {
  switch (kind) {
    case 'execution':
      return trace.executions.get(id)?.status
    case 'rule':
      return 'matched'
    case 'trigger_instance':
      return trace.instances.get(id)?.status
  }
}

export function describeMember(
  { kind, id, ref, at }: Pick<Member, 'kind' | 'id' | 'ref' | 'at'>,
  trace: NamedTrace,
): MemberDescription {
  const described = {
    kind: kindTitles[kind],
    status: memberStatusOf({ kind, id }, trace),
    offset: secondsAfter(trace.head.start_timestamp, at),
    isMissing: trace.missing.has(id),
  }
  switch (kind) {
    case 'execution': {
      const state = trace.executions.get(id)
      return {
        ...described,
        title: ref,
        href: hrefOf(['history', id, 'general']),
        run:
          state === undefined
            ? undefined
            : {
                from: state.start_timestamp,
                seconds: state.end_timestamp === undefined ? undefined : (state.elapsed_seconds ?? 0),
              },
      }
    }
    case 'rule':
      return { ...described, title: ref, href: hrefOf(['rules', ref]), run: undefined }
    case 'trigger_instance':
      return {
        ...described,
        title: trace.titleOf(ref) ?? trace.instances.get(id)?.trigger_type ?? ref,
        href: hrefOf(['triggers', 'instances', id]),
        run: undefined,
      }
  }
}

export interface CauseText {
  title: string
  href: string
}

/** @param known the member that is the cause, where it is loaded */
export function describeCause(cause: CausedBy, known: Member | undefined, trace: NamedTrace): CauseText {
  if (known !== undefined) {
    const { kind, title, href } = describeMember(known, trace)
    return { title: `${kind} ${title}`, href }
  }
  switch (cause.type) {
    case 'action_execution':
      return { title: 'execution of another trace', href: hrefOf(['history', cause.id, 'general']) }
    case 'trigger_instance':
      return { title: 'trigger instance of another trace', href: hrefOf(['triggers', 'instances', cause.id]) }
    case 'rule': {
      const [rule = ''] = cause.id.split(':', 1)
      return { title: 'rule of another trace', href: hrefOf(['rules', rule]) }
    }
  }
}

/** `30 ms`, `1.23 s`, `12 s`, `3 min 5 s`: precise within a second. */
export function formatPrecisely(seconds: number): string {
  if (seconds < 0.9995) return `${Math.round(Math.max(0, seconds) * 1000)} ms`
  return seconds < 9.995 ? `${seconds.toFixed(2)} s` : formatSeconds(seconds)
}

export function offsetText(seconds: number): string {
  return `+${formatPrecisely(seconds)}`
}

export interface StatusCount {
  status: string
  count: number
}

/** Of the executions, the most frequent first. */
export function statusCounts(trace: LoadedTrace): StatusCount[] {
  const counts = new Map<string, number>()
  for (const { kind, object_id: id } of trace.members) {
    const status = kind === 'execution' ? trace.executions.get(id)?.status : undefined
    if (status !== undefined) counts.set(status, (counts.get(status) ?? 0) + 1)
  }
  return [...counts].map(([status, count]) => ({ status, count })).sort((a, b) => b.count - a.count)
}

/** Seconds from the start to the last that is known to have happened, or to now while something runs. */
export function durationOf(trace: LoadedTrace, nowMs: number): number {
  const { start_timestamp: start } = trace.head
  let isRunning = false
  // As text they are in the order of time.
  let last = start
  for (const { updated_at: at } of trace.members) if (at > last) last = at
  for (const { end_timestamp: end } of trace.executions.values()) {
    if (end === undefined) isRunning = true
    else if (end > last) last = end
  }
  return Math.max(secondsAfter(start, last), isRunning ? secondsAfterMs(start, nowMs) : 0)
}

function secondsAfterMs(start: string, ms: number): number {
  return Math.max(0, (ms - new Date(start).getTime()) / 1000)
}
