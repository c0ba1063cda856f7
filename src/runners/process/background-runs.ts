/**
 * Runs whose record has ended while processes of theirs still hold the output pipes.
 *
 * Without a reader such a process would die of SIGPIPE at its next write. Another process reads the pipes to their end
 * and discards the data, so the server holds no descriptor and reads nothing for it, and the reader outlives the server.
 */
import { closeSync, constants, openSync } from 'node:fs'
import { codeOf } from '../../lib/process/index.ts'
import type { ChildOutput } from './child-output.ts'
import { type Child, type Launcher, SpawnError } from './launcher.ts'

/**
 * Opens pipes a second time: the streams close their descriptors when a pipe ends, and the numbers may belong to other
 * files before a reader gets them.
 */
function reopen(fds: readonly number[]): number[] {
  const opened: number[] = []
  try {
    // Non-blocking, as `open` would otherwise wait for a writer.
    for (const fd of fds) opened.push(openSync(`/proc/self/fd/${fd}`, constants.O_RDONLY | constants.O_NONBLOCK))
    return opened
  } catch (error) {
    for (const fd of opened) closeSync(fd)
    throw error
  }
}

/** Each needs one or two small processes. At the limit `take` refuses, and the caller stops the processes of the run. */
const MAX_BACKGROUND_RUNS = 256

export interface BackgroundRuns {
  /** Runs taken, whose processes have not ended. */
  readonly count: number
  /**
   * Keeps the pipes of an ended run readable. Call after `drain`; closes the streams of the child.
   *
   * @returns false when there are `MAX_BACKGROUND_RUNS` already; the streams are still open then
   */
  take(child: Child, outputs: { stdout: ChildOutput; stderr: ChildOutput }): Promise<boolean>
}

export function createBackgroundRuns(deps: {
  launcher: Launcher
  warn(message: string, fields: Record<string, unknown>): void
  /** Default: `MAX_BACKGROUND_RUNS`. */
  maxRuns?: number
}): BackgroundRuns {
  const { launcher, maxRuns = MAX_BACKGROUND_RUNS } = deps
  let count = 0

  /** In this process, where no other can be started: the pipes break when the server ends. */
  function discardHere(child: Child): { ended: Promise<unknown> } {
    const open = [child.stdout, child.stderr].filter((stream) => !stream.destroyed)
    const closing = open.map((stream) => {
      stream.resume()
      return new Promise<void>((resolve) => {
        stream.once('close', resolve)
      })
    })
    return { ended: Promise.all(closing) }
  }

  async function discard(child: Child, fds: number[]): Promise<{ ended: Promise<unknown> }> {
    if (launcher.discard !== undefined && fds.length > 0) {
      let own: number[] = []
      try {
        own = reopen(fds)
        const discarding = await launcher.discard(own)
        child.stdout.destroy()
        child.stderr.destroy()
        return discarding
      } catch (error) {
        if (!(error instanceof SpawnError) && codeOf(error) === undefined) throw error
        deps.warn('Could not start a process that reads the output of a background process; the server reads it.', {
          error: error instanceof Error ? error.message : String(error),
        })
      } finally {
        for (const fd of own) closeSync(fd)
      }
    }
    return discardHere(child)
  }

  return {
    get count() {
      return count
    },
    async take(child, { stdout, stderr }) {
      if (count >= maxRuns) return false
      count += 1
      child.stdout.pause()
      child.stderr.pause()
      // A pipe that has ended is closed: its number may belong to another file by now.
      const { descriptors: all } = child
      const fds =
        all === undefined ? [] : [...(stdout.isEnded ? [] : [all.stdout]), ...(stderr.isEnded ? [] : [all.stderr])]
      try {
        const { ended } = await discard(child, fds)
        void ended.then(() => (count -= 1))
      } catch (error) {
        count -= 1
        throw error
      }
      return true
    },
  }
}
