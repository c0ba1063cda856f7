/** Events as bytes on the wire, each encoded once however many clients listen (contract 04). */
import { frame } from '../../http/index.ts'
import type { OutputEvent, OutputRecord } from '../executions/types.ts'
import { writeJson } from '../../lib/json/index.ts'

/** What several clients are sent of a record that they all read; made when the first of them needs it. */
interface Shared {
  data?: string
  /** By the name of the event. */
  resumable?: Map<string, string>
}

const shared = new WeakMap<OutputRecord, Shared>()

/**
 * Tells that this very record goes to many: from now on it is encoded once. Records that a client reads from the rows
 * are its own, and remembering their encoding would only keep garbage alive.
 */
export function share(record: OutputRecord): void {
  if (!shared.has(record)) shared.set(record, {})
}

/** The public form of an output record: one line of compact JSON. */
function dataOf(record: OutputRecord, actionRef: string, runnerRef: string): string {
  const known = shared.get(record)
  if (known?.data !== undefined) return known.data
  const data = writeJson({
    id: record.id,
    execution_id: record.execution_id,
    action_ref: actionRef,
    runner_ref: runnerRef,
    output_type: record.output_type,
    data: record.data,
    timestamp: record.timestamp,
    ...(record.host === null ? {} : { host: record.host }),
  } satisfies OutputEvent)
  if (known !== undefined) known.data = data
  return data
}

export const outputEvent = 'svc.execution.output__create'

/** On the general stream: without an id. @param name of the event, as the client calls it */
export function outputFrame(record: OutputRecord, actionRef: string, runnerRef: string, name = outputEvent): string {
  return frame(name, dataOf(record, actionRef, runnerRef))
}

/** On the stream of one execution: with the id that `Last-Event-ID` resumes after. @param name as above */
export function resumableOutputFrame(
  record: OutputRecord,
  actionRef: string,
  runnerRef: string,
  name = outputEvent,
): string {
  const known = shared.get(record)
  const made = known?.resumable?.get(name)
  if (made !== undefined) return made
  const text = frame(name, dataOf(record, actionRef, runnerRef), positionOf(record))
  if (known !== undefined) (known.resumable ??= new Map<string, string>()).set(name, text)
  return text
}

export const endFrame = frame('EOF', '').replace('data: ', 'data:')

function positionOf(record: OutputRecord): string {
  return `${record.execution_id}/${record.seq}`
}

export interface Position {
  execution_id: string
  seq: number
}

/** The value of a `Last-Event-ID` header; undefined when it is not one of ours. */
export function parsePosition(text: string): Position | undefined {
  const match = /^([0-9a-f]{24})\/(\d{1,15})$/.exec(text)
  if (match?.[1] === undefined || match[2] === undefined) return undefined
  return { execution_id: match[1], seq: Number(match[2]) }
}
