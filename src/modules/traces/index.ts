/** Traces: every execution, rule and trigger instance that one event led to, in one group. */
import type { Database } from '../../db/index.ts'
import type { Module } from '../../core/module.ts'
import type { Log } from '../../lib/log/index.ts'
import type { TracesPorts } from './ports.ts'
import { createTraceImport } from './import.ts'
import { planTrace, type TracePlan } from './plan.ts'
import { createTraceRetention } from './retention.ts'
import { createTraceRoutes } from './routes.ts'
import { createTraceStore } from './store.ts'
import type { Cause, TraceMember } from './types.ts'

export interface Traces extends Module {
  /**
   * The trace of a new member and the steps that add it. Plan again when they fail with `Conflict`: another request has
   * started a trace with the same tag.
   *
   * @param at the member's creation time
   * @throws TRACE_UNKNOWN
   */
  plan(cause: Cause, member: TraceMember, at: string): TracePlan
  /** How many executions rules have started, or failed to start, in a trace; stops counting at `most`. */
  countRules(id: string, most: number): number
  /** Undefined when there is no such trace. */
  tagOf(id: string): string | undefined
}

export interface TracesDeps extends TracesPorts {
  database: Database
  log: Log
  /** `api.max_page_size` */
  maxPageSize: number
}

export function createTraces({ database, log, maxPageSize, openTraces }: TracesDeps): Traces {
  const store = createTraceStore(database)
  return {
    name: 'traces',
    routes: createTraceRoutes({ store, maxPageSize, importTraces: createTraceImport({ store, database, log }) }),
    retention: [createTraceRetention({ store, database, openTraces })],
    countRules: (id, most) => store.countRules(id, most),
    tagOf: (id) => store.find(id)?.trace_tag,
    plan: (cause, member, at) => planTrace(store, cause, member, at),
  }
}

export type { TracePlan } from './plan.ts'
