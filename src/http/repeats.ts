/**
 * Requests with an `Idempotency-Key`: the server carries out a change once, and answers every repetition of the request
 * as the first time, for 24 hours and across restarts. So a client can send a request again whose answer it has lost,
 * and a browser, which silently repeats an unanswered request up to six times, causes nothing twice.
 *
 * A key belongs to a user. It names one request: method, path, query, the headers that handlers read, and the bytes of
 * the body. The request is stored in the unit of the change itself. Its answer follows before it is sent. Requests that
 * change nothing and fail are not stored, so that they can be sent again.
 */
import type { IncomingHttpHeaders } from 'node:http'
import {
  headerInvalid,
  httpStatusOf,
  idempotencyAnswerLost,
  idempotencyKeyInUse,
  idempotencyKeyReused,
  isAppError,
} from '../core/errors.ts'
import { writeJson } from '../lib/json/index.ts'
import { errorAnswer } from './errors.ts'
import type { ApiRequest, JsonRoute, Route } from './route.ts'

/** An answer that is ready to be sent. */
export interface ReadyAnswer {
  status: number
  headers: Record<string, string>
  bytes: Buffer | undefined
}

/** A request with a key. */
export interface KeyedRequest {
  user: string
  /** Of caller and key. */
  keyHash: string
  /** Digests of the parts of the request, in the order of `partNames`. */
  parts: readonly string[]
}

/** A stored request. */
export interface StoredRequest {
  parts: readonly string[]
  /** Id of what it created or changed; undefined: unknown. */
  subject: string | undefined
  /** Status of the answer; undefined: the server stopped after the change and before the answer. */
  status: number | undefined
  /** Undefined: not kept. */
  answer: ReadyAnswer | undefined
}

export interface BegunRequest {
  result: Promise<ReadyAnswer>
  /** Whether something was committed: the change, and with it the request. */
  readonly hasCommitted: () => boolean
}

/** Port: stores requests. The module `idempotency` fills it. */
export interface RequestLedger {
  /** In hexadecimal digits; by a key of the server unless encryption is off. @throws CRYPTO_KEY_MISSING */
  digest(text: string): string
  find(keyHash: string): StoredRequest | undefined
  /** Starts the work in this turn; its first unit also stores the request. */
  begin(request: KeyedRequest, work: () => Promise<ReadyAnswer>): BegunRequest
  /** Stores the answer, and the request unless it `isStored`. Never rejects. */
  finish(request: KeyedRequest, answer: ReadyAnswer, isStored: boolean): Promise<void>
}

export interface Repeats {
  /**
   * @param bodyDigest of the bytes as sent
   * @returns undefined: the request has no key
   * @throws HEADER_INVALID, CRYPTO_KEY_MISSING
   */
  keyedRequestOf(route: JsonRoute, request: ApiRequest, bodyDigest: string): KeyedRequest | undefined
  /**
   * @param carryOut called in this turn unless the request was carried out before
   * @param again makes the answer of a request whose own is not stored; undefined: it cannot be made
   * @throws IDEMPOTENCY_KEY_REUSED, IDEMPOTENCY_KEY_IN_USE, IDEMPOTENCY_ANSWER_LOST, and the errors of both
   */
  once(
    request: KeyedRequest,
    carryOut: () => Promise<ReadyAnswer>,
    again?: (subject: string | undefined) => Promise<ReadyAnswer>,
  ): Promise<ReadyAnswer>
}

/** For the OpenAPI document. */
export const repeatHeaders = {
  'Idempotency-Key':
    'Any text of up to 255 characters, new for each request. The same request with the same key within 24 hours changes nothing and gets the first answer; another request with it gets 409.',
} as const

export const repeatAnswerHeaders = { 'Idempotent-Replayed': '`true` for a repeated request.' } as const

const MAX_KEY_CHARS = 255
/** A repetition waits so long for the first request. */
const WAIT_MS = 10_000
const RETRY_AFTER_SECONDS = 1

export function createRepeats(ledger: RequestLedger, waitMs = WAIT_MS): Repeats {
  const underWay = new Map<string, { request: KeyedRequest; answer: Promise<ReadyAnswer> }>()

  async function carryOutOnce(request: KeyedRequest, carryOut: () => Promise<ReadyAnswer>): Promise<ReadyAnswer> {
    const { result, hasCommitted } = ledger.begin(request, carryOut)
    let answer: ReadyAnswer
    try {
      answer = await result
    } catch (error) {
      if (hasCommitted() && isAppError(error) && httpStatusOf[error.kind] < 500) {
        await ledger.finish(request, errorAnswer(error), true)
      }
      throw error
    }
    await ledger.finish(request, answer, hasCommitted())
    return answer
  }

  /** The answer to a request that was carried out, and whose answer is not stored. */
  async function madeAgain(
    request: KeyedRequest,
    { subject, status }: StoredRequest,
    again: (subject: string | undefined) => Promise<ReadyAnswer>,
  ): Promise<ReadyAnswer> {
    try {
      const answer = await again(subject)
      if (status === undefined) await ledger.finish(request, answer, true)
      return answer
    } catch (error) {
      if (isAppError(error) && error.kind === 'not_found') throw idempotencyAnswerLost(subject)
      throw error
    }
  }

  return {
    keyedRequestOf({ method, path }, { headers, principal, params, query }, bodyDigest) {
      const key = keyIn(headers)
      if (key === '') return undefined
      if (key.length > MAX_KEY_CHARS) {
        throw headerInvalid(`The header Idempotency-Key has more than ${MAX_KEY_CHARS} characters. Use a shorter key.`)
      }
      const { user, scopes } = principal
      const used = Object.entries(query).filter(([, value]) => value !== undefined)
      const parts = [
        [method, path, params],
        used.toSorted(([a], [b]) => (a < b ? -1 : 1)),
        partHeaders.map((name) => headers[name] ?? null),
        bodyDigest,
      ]
      // A caller with fewer permissions does not get answers to requests with more.
      const keyHash = ledger.digest(writeJson([user, scopes ?? null, key]))
      // Bodies hold passwords. With both keys, of client and server, nobody finds one by trying.
      return { user, keyHash, parts: parts.map((part) => ledger.digest(writeJson([key, part])).slice(0, PART_DIGITS)) }
    },

    async once(request, carryOut, again) {
      const { keyHash } = request
      const running = underWay.get(keyHash)
      if (running !== undefined) {
        refuseOther(request, running.request.parts, undefined)
        return replayed(await within(waitMs, running.answer))
      }
      const stored = ledger.find(keyHash)
      if (stored !== undefined) {
        refuseOther(request, stored.parts, stored.subject)
        if (stored.answer !== undefined) return replayed(stored.answer)
        if (again === undefined && stored.status !== undefined) throw idempotencyAnswerLost(stored.subject)
      }
      const answer =
        stored === undefined || again === undefined
          ? carryOutOnce(request, carryOut)
          : madeAgain(request, stored, again).then(replayed)
      underWay.set(keyHash, { request, answer })
      try {
        return await answer
      } finally {
        underWay.delete(keyHash)
      }
    },
  }
}

/** @throws IDEMPOTENCY_KEY_REUSED */
function refuseOther({ parts }: KeyedRequest, stored: readonly string[], subject: string | undefined): void {
  const other = partNames.filter((_, i) => parts[i] !== stored[i])
  if (other.length > 0) throw idempotencyKeyReused(other.join(' and '), subject)
}

/** @throws IDEMPOTENCY_KEY_IN_USE */
async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(idempotencyKeyInUse(RETRY_AFTER_SECONDS)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

function replayed(answer: ReadyAnswer): ReadyAnswer {
  return { ...answer, headers: { ...answer.headers, 'Idempotent-Replayed': 'true' } }
}

/**
 * Whether the key is used: not for requests that change nothing or have no user, and not where the handler does it
 * itself.
 */
export function mayBeRepeated(route: Route): route is JsonRoute {
  if (route.kind === 'stream') return false
  const { method, permission, rawBody, mediaType, changesNothing } = route
  return (
    method !== 'get' &&
    changesNothing !== true &&
    permission !== 'public' &&
    permission !== 'login' &&
    rawBody === undefined &&
    mediaType === undefined
  )
}

export function hasRepeatKey(headers: IncomingHttpHeaders): boolean {
  return keyIn(headers) !== ''
}

const keyIn = (headers: IncomingHttpHeaders): string => String(headers['idempotency-key'] ?? '').trim()

/** Headers that change what a handler does. */
const partHeaders = ['svc-context', 'if-match'] as const
const partNames = ['method or path', 'query', 'Svc-Context or If-Match header', 'body'] as const

/** 128 bits. */
const PART_DIGITS = 32
