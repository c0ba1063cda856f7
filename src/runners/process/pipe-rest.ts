/** Reads what a pipe holds when its writer has ended. */
import { setImmediate } from 'node:timers/promises'

/** Time for a process left behind to flush piped output; after that svc takes only what the pipe holds. */
const LINGER_MS = 100
/** Upper bound of the bytes in a pipe when its writer has ended: the largest pipe of an unprivileged user. */
const MAX_PIPE_BYTES = 1024 * 1024

/** A pipe that is being read. */
export interface ReadPipe {
  /** Whether nobody holds the other end any more, and everything has been read. */
  readonly isEnded: boolean
  /** Resolves then. */
  readonly ended: Promise<void>
  readonly bytesRead: number
  /** While the pipe is paused: resolves when reading goes on. */
  readonly held: Promise<void> | undefined
}

/**
 * Resolves at the end of the pipe, however long that takes. If a process left behind holds the other end: when the pipe is
 * empty, or more has come out than it can have held when its writer ended.
 */
export async function readRest(pipe: ReadPipe): Promise<void> {
  if (pipe.isEnded) return
  let timer: NodeJS.Timeout | undefined
  const lingered = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, LINGER_MS)
  })
  await Promise.race([pipe.ended, lingered])
  clearTimeout(timer)
  const end = pipe.bytesRead + MAX_PIPE_BYTES
  while (!pipe.isEnded && pipe.bytesRead < end) {
    const before = pipe.bytesRead
    if (pipe.held !== undefined) await pipe.held
    // Two turns, so that the event loop has polled the pipe at least once.
    await setImmediate()
    await setImmediate()
    if (pipe.bytesRead === before && pipe.held === undefined) return
  }
}
