/** What the list of trigger instances is narrowed by: from the address to the query of the server. No markup, no state. */
import type { QueryValues } from '../../api/client.ts'
import type { TriggerInstanceStatus } from '../../api/records.ts'

export const statuses = ['pending', 'processed', 'processing_failed'] as const satisfies TriggerInstanceStatus[]

/** Names in the address; empty texts filter nothing. */
export interface InstanceFilter {
  /** Reference of a trigger. */
  trigger: string
  /** Reference of a trigger type. */
  trigger_type: string
  status: string
  /** Wire timestamps, neither of them included. */
  after: string
  before: string
}

export function instanceFilterOf(query: URLSearchParams): InstanceFilter {
  const text = (name: string): string => query.get(name) ?? ''
  return {
    trigger: text('trigger'),
    trigger_type: text('trigger_type'),
    status: text('status'),
    after: text('after'),
    before: text('before'),
  }
}

export function instanceQueryOf({ trigger, trigger_type, status, after, before }: InstanceFilter): QueryValues {
  return { trigger, trigger_type, status, timestamp_gt: after, timestamp_lt: before }
}

export function isInstanceFiltered(filter: InstanceFilter): boolean {
  return Object.values(filter).some((value) => value !== '')
}

/** For a field of date and time, in the local time zone. Empty: not a time. */
export function localOf(timestamp: string): string {
  const date = new Date(timestamp)
  if (timestamp === '' || Number.isNaN(date.getTime())) return ''
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000)
  // Years of more than four digits have a sign, which such a field does not take.
  return /^\d{4}-/.test(local.toISOString()) ? local.toISOString().slice(0, 19) : ''
}

/** From such a field. Empty: nothing, or nothing that is whole. */
export function timestampOf(local: string): string {
  const date = new Date(local)
  return local === '' || Number.isNaN(date.getTime()) ? '' : date.toISOString()
}
