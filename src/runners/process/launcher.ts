/**
 * Port: starting processes. `create-launcher.ts` gives the best implementation this machine can load.
 *
 * A server never forks from its own address space: fork costs time in proportion to resident memory and blocks the event
 * loop meanwhile (docs/performance.md, trap A).
 */
import type { Readable, Writable } from 'node:stream'
import type { ProcessIdentity } from '../runner.ts'

export interface SpawnRequest {
  /** Absolute path of the program. */
  file: string
  /** Arguments without argv[0]. */
  args: string[]
  env: Record<string, string>
  /** Absolute; must exist, else the spawn rejects with a `SpawnError`. */
  cwd?: string
  /**
   * Bytes for the child's stdin, then end of file; at most `MAX_STDIN_BYTES`. Absent: `/dev/null`. Never a socket (trap B).
   *
   * `open`: whoever starts it writes to `Child.stdin` later; a program that may start a shell has to put something else
   * there first, because with `child-process` this one is a socket.
   */
  stdin?: Uint8Array | 'open'
  /** Gives the child descriptor 3 to write to, which is `Child.reply` here. */
  hasReply?: boolean
  /**
   * From `markOf`: a number that the child and what it starts carry, whatever becomes of their environment. Not given by
   * `child-process`; in a process with several launchers it comes a millisecond late, and what was started before lacks it.
   */
  mark?: bigint
}

export interface Exit {
  /** Exit code, or 128 + number for a real-time signal, which has no name; null when a named signal ended it. */
  code: number | null
  /** Signal name such as `SIGKILL`; null when it exited by itself. Both null: nobody can tell, the launcher was stopped first. */
  signal: NodeJS.Signals | null
}

/** A running child that leads its own session and process group. */
export interface Child {
  identity: ProcessIdentity
  /** Like `stderr` to be listened to in the turn in which `spawn` resolves; what comes earlier than a listener may be lost. */
  stdout: Readable
  stderr: Readable
  /** With `stdin: 'open'`; its end is the child's end of file. Ends by itself when nobody reads, or this process has ended. */
  stdin?: Writable
  /** With `hasReply`; to be listened to as the two above. */
  reply?: Readable
  /** Resolves when the child itself has ended; its pipes may still be held open by what it left behind. Never rejects. */
  exited: Promise<Exit>
}

export const MAX_STDIN_BYTES = 16 * 1024 * 1024

/** The program could not be started: `errno` such as `ENOENT`, `EACCES`, `E2BIG`. */
export class SpawnError extends Error {
  readonly errno: string
  /** The program, when it is what is wrong; its path is in the message. */
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
  /** Ends the launcher itself, not its children; idempotent. */
  stop(): Promise<void>
}
