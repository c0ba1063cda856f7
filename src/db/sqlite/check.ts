/** Checks a database file for damage, with or without a running server. */
import { access, constants } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { locateCode } from '../../core/bundle.ts'
import { createThread, type Thread } from '../../core/thread.ts'
import type { CopyTask, CopyOutcome } from './copy-thread.ts'

/** A check of a large file cannot be interrupted, but it only reads; the caller waits no longer than this. */
const MAX_ENDING_MS = 2000

export interface CheckOptions {
  /** Also compares every index with its table, which takes about three times as long. Default: no. */
  thorough?: boolean
  /** Cancels the check after its current step. */
  signal?: AbortSignal
}

/**
 * Reads the whole file on its own thread, through a read-only connection. The server may keep using the file. A
 * gigabyte takes a few seconds.
 *
 * @throws errors of the file system, and of SQLite for a file that cannot be opened; damage is returned, not thrown
 */
export async function checkDatabase(
  path: string,
  { thorough = false, signal }: CheckOptions = {},
): Promise<CopyOutcome> {
  await access(path, constants.R_OK)
  return readWhole({ kind: 'check', path, thorough }, signal)
}

/** Runs one task on its own thread. @throws errors of the thread; the reason of the signal */
export async function readWhole(task: CopyTask, signal: AbortSignal | undefined): Promise<CopyOutcome> {
  signal?.throwIfAborted()
  const thread: Thread<CopyTask, CopyOutcome> = createThread({
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
