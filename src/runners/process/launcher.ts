/**
 * Port: starting processes. `create-launcher.ts` chooses the best implementation for this machine.
 *
 * A server must not fork its own address space: the time of a fork is proportional to resident memory, and it blocks
 * the event loop (docs/performance.md, trap A).
 */
import type { Readable, Writable } from 'node:stream'
import type { ProcessIdentity } from '../runner.ts'
import type { StartNote } from '../start-note.ts'

export interface SpawnRequest {
  /** Absolute path of the program. */
  file: string
  /** Arguments without argv[0]. */
  args: string[]
  env: Record<string, string>
  /** Absolute; must exist, otherwise the spawn rejects with a `SpawnError`. */
  cwd?: string
  /**
   * Bytes for the child's stdin, then end of file; at most `MAX_STDIN_BYTES`. Absent: `/dev/null`. Never a socket (trap
   * B).
   *
   * `open`: the caller writes to `Child.stdin` later. With `child-process` that stdin is a socket, so a program that
   * may start a shell has to replace it first.
   */
  stdin?: Uint8Array | 'open'
  /** Gives the child descriptor 3 for writing; `Child.reply` reads it. */
  hasReply?: boolean
  /**
   * From `markOf`: a number that the child and its descendants carry, whatever their environment. Unsupported by
   * `child-process`. With several launchers in a process it is set a millisecond late; descendants started earlier lack
   * it.
   */
  mark?: bigint
  /** Written right before the process starts. */
  note?: StartNote
}

export interface Exit {
  /** Exit code, or 128 + number for a real-time signal, which has no name; null after a named signal. */
  code: number | null
  /**
   * Signal name such as `SIGKILL`; null after a normal exit. Both null: unknown, because the launcher stopped first.
   */
  signal: NodeJS.Signals | null
}

/** A running child that leads its own session and process group. */
export interface Child {
  identity: ProcessIdentity
  /** Descriptors of `stdout` and `stderr` in this process, for `Launcher.discard`. */
  descriptors?: { stdout: number; stderr: number }
  /** Like `stderr`, attach a listener in the turn in which `spawn` resolves; earlier output may be lost. */
  stdout: Readable
  stderr: Readable
  /**
   * With `stdin: 'open'`; its end is the child's end of file. Closes by itself when the reader or this process ends.
   */
  stdin?: Writable
  /** With `hasReply`; attach a listener as above. */
  reply?: Readable
  /** Resolves when the child itself has ended; processes left behind may still hold its pipes. Never rejects. */
  exited: Promise<Exit>
}

export const MAX_STDIN_BYTES = 16 * 1024 * 1024

/** The program could not start: `errno` such as `ENOENT`, `EACCES`, `E2BIG`. */
export class SpawnError extends Error {
  readonly errno: string
  /** Set when the program itself is the problem; its path is in the message. */
  readonly file: string | undefined
  constructor(errno: string, message: string, file?: string) {
    super(message)
    this.name = 'SpawnError'
    this.errno = errno
    this.file = file
  }
}

export interface Launcher {
  /** `posix-spawn-thread` or `child-process`. */
  readonly name: string
  spawn(request: SpawnRequest): Promise<Child>
  /**
   * Starts a process that reads the pipes to their end and discards what it reads, also after this process has ended.
   * Resolves when it holds the pipes, which the caller can close then. Absent: the launcher cannot do this.
   *
   * @param fds one or two descriptors of this process; nothing else may read them any more
   * @returns resolves when the last writer has ended
   */
  discard?(fds: readonly number[]): Promise<{ ended: Promise<unknown> }>
  /** Stops the launcher, not its children; idempotent. */
  stop(): Promise<void>
}
