/**
 * What a client is sent first when an execution ends its stream: that it runs, its stored output, and its end. The client
 * may have started the execution before it opened the stream, and the execution may be over by now.
 *
 * Rows are read until they bring nothing new; the bus brings the rest. Whatever is in the rows carries a number, so that
 * a fact about it that comes later is recognized.
 */
import { setImmediate } from 'node:timers/promises'
import type { EventSink } from '../../http/index.ts'
import { isFinal, type Executions } from '../executions/index.ts'
import type { Execution, OutputRecord } from '../executions/types.ts'

/** Where an event stands in the history of its execution: a change by its revision, output by its number. */
export interface Place {
  executionId: string
  revision?: number
  seq?: number
}

export interface Replay {
  /** Whether the client has been sent this already, or will be sent it from the rows. */
  covers(place: Place): boolean
  /** Resolves when the client has everything that was stored. Sends the final update last, if there is one. */
  run(): Promise<void>
}

export interface ReplayOptions {
  executions: Pick<Executions, 'findWithResult' | 'statusOf' | 'outputCursor'>
  sink: EventSink
  /** Of the execution. */
  id: string
  /** False: the output is not read. */
  wantsOutput: boolean
  readonly isOver: () => boolean
  readonly sendUpdate: (execution: Execution) => void
  /** @returns false: the client is slow */
  readonly sendOutput: (record: OutputRecord, execution: Execution) => boolean
}

export function createReplay(options: ReplayOptions): Replay {
  const { executions, sink, id, wantsOutput, isOver, sendUpdate, sendOutput } = options
  let sentRevision = 0
  let sentSeq = 0
  let isReading = true

  return {
    covers: ({ executionId, revision = 0, seq = 0 }) =>
      executionId === id && (isReading || (revision > 0 && revision <= sentRevision) || (seq > 0 && seq <= sentSeq)),
    async run() {
      const cursor = executions.outputCursor(id)
      let hasBegun = false
      while (!isOver()) {
        // Read before the output: what a final status promises is in the rows by then.
        const state = executions.findWithResult(id)
        if (state === undefined) break
        const begin = hasBegun ? undefined : atItsBegin(state)
        if (begin !== undefined) {
          hasBegun = true
          sendUpdate(begin)
        }
        const records = wantsOutput ? cursor.after(sentSeq, undefined) : []
        if (records.length > 0) {
          for (const record of records) {
            sentSeq = record.seq
            // A slow client gets the rest when it has taken this: it must not keep all of it in memory.
            if (!sendOutput(record, state)) break
          }
          await sink.drained()
          // With a fast client, promises alone would not yield to the event loop before the last record.
          await setImmediate()
          continue
        }
        // No turn of the event loop since the rows were read: every later fact is about something newer. An end whose
        // fact is still to come may be ahead of the facts of its output, so that fact is waited for.
        const isAnnounced = !isFinal(state.status) || isFinal(executions.statusOf(id) ?? state.status)
        sentRevision = isAnnounced ? state.revision : state.revision - 1
        if (isAnnounced && (isFinal(state.status) || (hasBegun && state.status !== 'running'))) sendUpdate(state)
        break
      }
      isReading = false
    },
  }
}

/** The execution when it began to run; undefined: it has not begun. */
function atItsBegin(execution: Execution): Execution | undefined {
  const begin = execution.log.findIndex(({ status }) => status === 'running')
  if (begin === -1) return undefined
  if (execution.status === 'running') return execution
  return {
    ...execution,
    status: 'running',
    log: execution.log.slice(0, begin + 1),
    end_timestamp: null,
    elapsed_seconds: null,
    result: null,
    result_size: null,
  }
}
