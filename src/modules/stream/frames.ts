/** Events as bytes on the wire, each encoded once however many clients listen (contract 04). */
import { frame } from '../../http/sse.ts'
import type { OutputRecord } from '../executions/types.ts'

const outputData = new WeakMap<OutputRecord, string>()
const outputFrames = new WeakMap<OutputRecord, string>()

/** The public form of an output record: one line of compact JSON. */
function dataOf(record: OutputRecord, actionRef: string, runnerRef: string): string {
  let data = outputData.get(record)
  if (data === undefined) {
    data = JSON.stringify({
      id: record.id,
      execution_id: record.execution_id,
      action_ref: actionRef,
      runner_ref: runnerRef,
      output_type: record.output_type,
      data: record.data,
      timestamp: record.timestamp,
    })
    outputData.set(record, data)
  }
  return data
}

export const outputEvent = 'svc.execution.output__create'

/** On the general stream: without an id. */
export function outputFrame(record: OutputRecord, actionRef: string, runnerRef: string): string {
  return frame(outputEvent, dataOf(record, actionRef, runnerRef))
}

/** On the stream of one execution: with the id that `Last-Event-ID` resumes after. */
export function resumableOutputFrame(record: OutputRecord, actionRef: string, runnerRef: string): string {
  let text = outputFrames.get(record)
  if (text === undefined) {
    text = frame(outputEvent, dataOf(record, actionRef, runnerRef), positionOf(record))
    outputFrames.set(record, text)
  }
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
