/** Password checks that would block the event loop, on a thread of their own. */
import { locateCode } from '../../../core/bundle.ts'
import { createThread } from '../../../core/thread.ts'
import type { CryptQuestion } from './crypt-thread.ts'

export interface CryptWorker {
  /** Runs one check at a time; the caller limits how many wait. */
  verify(hash: string, password: string): Promise<boolean>
  stop(): Promise<void>
}

export function createCryptWorker(): CryptWorker {
  const thread = createThread<CryptQuestion, boolean>({
    name: 'the thread for password checks',
    file: locateCode('./crypt-thread', import.meta.url),
  })
  return { verify: (hash, password) => thread.ask({ hash, password }), stop: () => thread.stop() }
}
