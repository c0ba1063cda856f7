/** What somebody looks for among traces, as the list takes it. */
import type { QueryValues } from '../../api/client.ts'

export interface TraceFilter {
  /** The beginning of a tag, or an id. */
  tag: string
  /** Ids. */
  execution: string
  rule: string
  trigger_instance: string
}

export function traceFilterOf(query: URLSearchParams): TraceFilter {
  const textOf = (name: string): string => query.get(name)?.trim() ?? ''
  return {
    tag: textOf('tag'),
    execution: textOf('execution'),
    rule: textOf('rule'),
    trigger_instance: textOf('trigger_instance'),
  }
}

export function traceQueryOf({ tag, ...others }: TraceFilter): QueryValues {
  const isId = /^[0-9a-f]{24}$/.test(tag)
  return { ...others, ...(isId ? { id: tag } : { trace_tag_prefix: tag }) }
}

export function isTraceFiltered(filter: TraceFilter): boolean {
  return Object.values(filter).some((value) => value !== '')
}
