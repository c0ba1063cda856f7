/** Password checks that would hold up the event loop, on a thread of their own. */
import { locateCode } from '../../../core/bundle.ts'
import { createThread } from '../../../core/thread.ts'
import type { CryptQuestion } from './crypt-thread.ts'

export interface CryptWorker {
  /** One check after another; whoever calls bounds how many wait. */
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
