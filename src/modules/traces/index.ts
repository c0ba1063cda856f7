/** Traces: every execution, rule and trigger instance that one event led to, in one group. */
import type { Database } from '../../db/database.ts'
import type { Module } from '../../module.ts'
import { planTrace, type TracePlan } from './plan.ts'
import { createRoutes } from './routes.ts'
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
  /** Undefined when there is no such trace. */
  tagOf(id: string): string | undefined
}

/** @param deps.maxPageSize `api.max_page_size` */
export function createTraces({ database, maxPageSize }: { database: Database; maxPageSize: number }): Traces {
  const store = createTraceStore(database)
  return {
    name: 'traces',
    routes: createRoutes({ store, maxPageSize }),
    tagOf: (id) => store.find(id)?.trace_tag,
    plan: (cause, member, at) => planTrace(store, cause, member, at),
  }
}

export type { TracePlan } from './plan.ts'
