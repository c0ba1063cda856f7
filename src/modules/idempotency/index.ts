/** Stores requests that were sent with an Idempotency-Key, and their answers. What they mean: `src/http/repeats.ts`. */
import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { Companions, Unit } from '../../db/index.ts'
import type { Encryption } from '../../core/encryption.ts'
import type { Module } from '../../core/module.ts'
import { formatMicros, nowMicros } from '../../core/time.ts'
import type { KeyedRequest, ReadyAnswer, RequestLedger } from '../../http/index.ts'
import { readJson, writeJson } from '../../lib/json/index.ts'
import type { Log } from '../../lib/log/index.ts'
import { createRequestStore, type RequestLimits, type RequestStore } from './store.ts'

export interface Idempotency extends Module {
  ledger: RequestLedger
  /** Deletes the requests of a deleted user, because the name can be reused. */
  planUserDeleted(user: string): Unit
}

const KEPT_MICROS = 24 * 3600 * 1_000_000
const SWEEP_SECONDS = 600
const DELETED_AT_ONCE = 500
/** A longer answer is not stored. */
const MAX_ANSWER_BYTES = 1024 * 1024

const defaultLimits: RequestLimits = { perUser: 50_000, requests: 200_000, answers: 256 * 1024 * 1024 }

export function createIdempotency(
  deps: {
    /** Their database is the one that all other modules write to. */
    companions: Companions
    encryption: Pick<Encryption, 'enabled' | 'encrypt' | 'decrypt' | 'digest'>
    log: Log
  },
  limits = defaultLimits,
): Idempotency {
  const { companions, encryption, log } = deps
  const { database } = companions
  const store = createRequestStore(database, limits)
  const since = (): string => formatMicros(nowMicros() - KEPT_MICROS)

  const planBegin = ({ user, keyHash, parts }: KeyedRequest, subject: string | undefined): Unit => ({
    steps: store.begin({
      key_hash: keyHash,
      user,
      parts: parts.join(' '),
      subject: subject ?? '',
      created_at: formatMicros(nowMicros()),
    }),
    facts: [],
  })

  function planFinish({ user, keyHash }: KeyedRequest, answer: ReadyAnswer): Unit {
    const text = textOf(answer)
    const isKept = encryption.enabled && text !== undefined
    const stored = isKept ? encryption.encrypt(text, contextOf(keyHash), 'an answer') : null
    return { steps: [store.finish(keyHash, answer.status, stored), ...store.tidy(user, since())], facts: [] }
  }

  /** Undefined: the keys that encrypted it are gone. */
  function open(keyHash: string, status: number, stored: string): ReadyAnswer | undefined {
    try {
      return answerOf(status, encryption.decrypt(stored, contextOf(keyHash), 'an answer'))
    } catch (error) {
      log.warning('idempotency.answer_unreadable', 'Could not decrypt the stored answer to a repeated request', {
        error,
      })
      return undefined
    }
  }

  const ledger: RequestLedger = {
    digest: (text) =>
      encryption.enabled
        ? encryption.digest(`idempotent request ${text}`, 'a request with an Idempotency-Key')
        : createHash('sha256').update(text).digest('hex'),
    find(keyHash) {
      const row = store.find(keyHash)
      if (row === undefined || row.created_at < since()) return undefined
      const { status, answer } = row
      return {
        parts: row.parts.split(' '),
        subject: row.subject === '' ? undefined : row.subject,
        status: status ?? undefined,
        answer: status === null || answer === null ? undefined : open(keyHash, status, answer),
      }
    },
    begin(request, work) {
      // On a full disk only deletions and cancellations succeed. Nothing must make those fail.
      if (!database.hasRoom()) return { result: work(), hasCommitted: () => false }
      return companions.accompany((subject) => planBegin(request, subject), work)
    },
    async finish(request, answer, isStored) {
      if (!database.hasRoom()) return
      try {
        const begin = isStored ? [] : planBegin(request, undefined).steps
        const { steps } = planFinish(request, answer)
        await database.write({ steps: [...begin, ...steps], facts: [] })
      } catch (error) {
        log.warning(
          'idempotency.answer_not_stored',
          'Could not store the answer to a request with an Idempotency-Key',
          {
            error,
          },
        )
      }
    },
  }

  return {
    name: 'idempotency',
    ledger,
    planUserDeleted: (user) => ({ steps: [store.deleteOfUser(user)], facts: [] }),
    maintenance: [
      {
        name: 'expired Idempotency-Keys',
        everySeconds: SWEEP_SECONDS,
        run: (signal) => sweep(database, store, since, signal),
      },
    ],
  }
}

async function sweep(
  database: Companions['database'],
  store: RequestStore,
  since: () => string,
  signal: AbortSignal,
): Promise<void> {
  for (let deleted = DELETED_AT_ONCE; deleted === DELETED_AT_ONCE && !signal.aborted;) {
    const [result] = await database.write({ steps: [store.deleteOld(since(), DELETED_AT_ONCE)], facts: [] })
    deleted = result?.changes ?? 0
  }
}

const contextOf = (keyHash: string): string => `idempotent request ${keyHash}`

/** The headers as one line of JSON, then the body. Undefined: too long, or no text. */
function textOf({ headers, bytes }: ReadyAnswer): string | undefined {
  const head = writeJson(headers)
  if (bytes === undefined) return head
  return bytes.length > MAX_ANSWER_BYTES || !isUtf8(bytes) ? undefined : `${head}\n${bytes.toString()}`
}

function answerOf(status: number, text: string): ReadyAnswer {
  const end = text.indexOf('\n')
  const head = end === -1 ? text : text.slice(0, end)
  const headers = readJson(head) as Record<string, string> // written above
  return { status, headers, bytes: end === -1 ? undefined : Buffer.from(text.slice(end + 1)) }
}
