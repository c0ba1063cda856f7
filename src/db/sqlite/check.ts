/** Looking for damage in a database file, beside its server or without one. */
import { access, constants } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { locateCode } from '../../core/bundle.ts'
import { createThread, type Thread } from '../../core/thread.ts'
import type { CopyTask, Found } from './copy-thread.ts'

/** A check of a large file cannot be ended on its way; by then it only reads. */
const MAX_ENDING_MS = 2000

export interface CheckOptions {
  /** Compares every index with its table too, which takes about three times as long. Default: no. */
  thorough?: boolean
  /** Ends it, as soon as the step that it is at has ended. */
  signal?: AbortSignal
}

/**
 * Reads the whole file, on a thread of its own and by a connection that writes nothing into it. A server may go on with the
 * file meanwhile. A gigabyte takes a few seconds.
 *
 * @throws what the file system says, and what SQLite says of a file that cannot be opened; damage is no error
 */
export async function checkDatabase(path: string, { thorough = false, signal }: CheckOptions = {}): Promise<Found> {
  await access(path, constants.R_OK)
  return readWhole({ kind: 'check', path, thorough }, signal)
}

/** One task on a thread that ends with it. @throws what the thread throws; the reason of the signal */
export async function readWhole(task: CopyTask, signal: AbortSignal | undefined): Promise<Found> {
  signal?.throwIfAborted()
  const thread: Thread<CopyTask, Found> = createThread({
    name: 'the thread that reads a database',
    file: locateCode('./copy-thread', import.meta.url),
  })
  let ended: Promise<void> | undefined
  const end = (): void => void (ended ??= thread.stop())
  signal?.addEventListener('abort', end)
  try {
    return await thread.ask(task)
  } catch (error) {
    signal?.throwIfAborted()
    throw error
  } finally {
    signal?.removeEventListener('abort', end)
    end()
    const late = new AbortController()
    await Promise.race([ended, delay(MAX_ENDING_MS, undefined, late).catch(() => undefined)])
    late.abort()
  }
}
