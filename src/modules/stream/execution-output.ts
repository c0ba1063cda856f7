/**
 * The output of one execution: what is stored, then what comes, then `EOF` (contract 04, 4.3).
 *
 * A cursor over the rows; the bus only wakes it. So there is no seam between replay and live, and a client that stops
 * reading costs nothing but its place.
 */
import { setImmediate } from 'node:timers/promises'
import type { Bus } from '../../bus/index.ts'
import type { EventSink } from '../../http/index.ts'
import type { OutputType } from '../../runners/index.ts'
import type { Executions } from '../executions/index.ts'
import type { Execution, ExecutionStatus, OutputRecord } from '../executions/types.ts'
import { endFrame, resumableOutputFrame, share } from './frames.ts'

const endsWhen: ReadonlySet<ExecutionStatus> = new Set<ExecutionStatus>([
  'succeeded',
  'failed',
  'timeout',
  'canceled',
  'abandoned',
  'pausing',
  'resuming',
])

/** Frames are joined up to about this many UTF-16 units; that much waits for a client that stops reading, or a frame. */
const LARGE_FRAME_LENGTH = 8192

export interface OutputFollowOptions {
  execution: Execution
  /** Undefined: all. `none`: a type that no record has. */
  type: OutputType | undefined | 'none'
  /** Records up to here are known to the client already. */
  afterSeq: number
  /** The server stops: the stream ends without `EOF`, so that the client comes back. */
  stopping: AbortSignal
  /** Name of the events; default ours. */
  event?: string | undefined
}

/** Wakes the followers of an execution when there is something new. */
export interface Wakeups {
  follow(executionId: string, wake: () => void): () => void
}

export function createWakeups(bus: Bus): Wakeups {
  const followers = new Map<string, Set<() => void>>()
  const wakeAll = (executionId: string): void => {
    for (const wake of followers.get(executionId) ?? []) wake()
  }
  bus.subscribe('execution.output', ({ execution_id, records }) => {
    if (!followers.has(execution_id)) return
    for (const record of records) share(record)
    wakeAll(execution_id)
  })
  bus.subscribe('execution.updated', ({ execution }) => {
    if (endsWhen.has(execution.status)) wakeAll(execution.id)
  })
  return {
    follow(executionId, wake) {
      const set = followers.get(executionId) ?? new Set()
      followers.set(executionId, set.add(wake))
      return () => {
        set.delete(wake)
        if (set.size === 0 && followers.get(executionId) === set) followers.delete(executionId)
      }
    },
  }
}

export async function followOutput(
  sink: EventSink,
  executions: Pick<Executions, 'statusOf' | 'outputCursor'>,
  wakeups: Wakeups,
  options: OutputFollowOptions,
): Promise<void> {
  const { id, action_ref, runner } = options.execution
  const { type } = options
  const cursor = executions.outputCursor(id)
  let seq = options.afterSeq
  let woken = false
  let wake: () => void = () => undefined
  const onWake = (): void => {
    woken = true
    wake()
  }
  const unfollow = wakeups.follow(id, onWake)
  sink.closed.addEventListener('abort', onWake)
  options.stopping.addEventListener('abort', onWake)
  /** Writes as much as the client takes at once. Answers the place of the last record written. */
  function writeRecords(records: readonly OutputRecord[], from: number): number {
    const last = records.at(-1)
    let written = from
    let small = ''
    for (const record of records) {
      const frame = resumableOutputFrame(record, action_ref, runner.name, options.event)
      // Joining copies: a large frame is sent as one text that all clients share.
      const isLarge = frame.length >= LARGE_FRAME_LENGTH
      if (!isLarge) {
        small += frame
        if (small.length < LARGE_FRAME_LENGTH && record !== last) continue
      }
      let isAccepted = small === '' || sink.write(small)
      small = ''
      if (isLarge) isAccepted = sink.write(frame) && isAccepted
      written = record.seq
      if (!isAccepted) break
    }
    return written
  }

  const isOver = (): boolean => sink.closed.aborted || options.stopping.aborted

  try {
    while (!isOver()) {
      woken = false
      // Asked before reading: what a final status promises is already in the rows.
      const status = executions.statusOf(id)
      for (;;) {
        const records = type === 'none' ? [] : cursor.after(seq, type)
        if (records.length === 0) break
        seq = writeRecords(records, seq)
        // What was not written is read again: a client that never comes back must not keep it in memory.
        await sink.drained()
        // With a fast client, promises alone would not yield to the event loop before the last record.
        await setImmediate()
        if (isOver()) return
      }
      if (status === undefined || endsWhen.has(status)) {
        sink.write(endFrame)
        return
      }
      if (!woken) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    }
  } finally {
    unfollow()
    sink.closed.removeEventListener('abort', onWake)
    options.stopping.removeEventListener('abort', onWake)
  }
}
