import { createHash } from 'node:crypto'
import type { KeyedRequest, ReadyAnswer, RequestLedger, StoredRequest } from '../../src/http/repeats.ts'

export interface MemoryLedger extends RequestLedger {
  readonly rows: Map<string, StoredRequest>
  /** Whether the work under way commits something; default false. */
  commits: boolean
}

/** Requests with an Idempotency-Key, in memory. */
export function createMemoryLedger(): MemoryLedger {
  const rows = new Map<string, StoredRequest>()
  const store = ({ keyHash, parts }: KeyedRequest, answer?: ReadyAnswer): void =>
    void rows.set(keyHash, { parts, subject: undefined, status: answer?.status, answer })
  const ledger: MemoryLedger = {
    rows,
    commits: false,
    digest: (text) => createHash('sha256').update(text).digest('hex'),
    find: (keyHash) => rows.get(keyHash),
    begin(request, work) {
      const { commits } = ledger
      if (commits) store(request)
      return { result: work(), hasCommitted: () => commits }
    },
    finish(request, answer) {
      store(request, answer)
      return Promise.resolve()
    },
  }
  return ledger
}
