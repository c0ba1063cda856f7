/**
 * Idempotency keys of the web client. A browser silently repeats an unanswered request, up to six times, when it used
 * an existing connection: one run would become six. The server carries out a request with an `Idempotency-Key` once and
 * answers every repetition.
 *
 * Kept in memory only: browsers stop retrying before a restarted server is ready.
 */
import { createHash } from 'node:crypto'
import type { ApiRequest, JsonRoute, Route } from './route.ts'
import { writeJson } from '../lib/json/index.ts'

/** A JSON answer that is ready to be sent. */
export interface ReadyAnswer {
  status: number
  headers: Record<string, string>
  bytes: Buffer | undefined
}

export interface Repeats {
  /** @param carryOut not called while it runs, or after it has succeeded, for the same key. Failures are not kept */
  once(key: string, carryOut: () => Promise<ReadyAnswer>): Promise<ReadyAnswer>
}

export interface RepeatLimits {
  answers: number
  /** Of all kept answers together. */
  bytes: number
  keptMs: number
}

const defaults: RepeatLimits = { answers: 1000, bytes: 16 * 1024 * 1024, keptMs: 60_000 }

/** For the OpenAPI document. */
export const repeatHeaders = {
  'Idempotency-Key':
    'The same request with the same key again, within a minute, changes nothing, and is answered as the first time.',
} as const

/** Longer keys are ignored. */
const MAX_KEY_CHARS = 255

/**
 * At the limits the oldest answers are dropped; an answer above the byte limit is not kept. @param now milliseconds of
 * a monotonic clock
 */
export function createRepeats(limits = defaults, now = (): number => performance.now()): Repeats {
  const underWay = new Map<string, Promise<ReadyAnswer>>()
  /** The oldest first. */
  const kept = new Map<string, { answer: ReadyAnswer; until: number }>()
  let bytes = 0

  function forget(key: string): void {
    const known = kept.get(key)
    if (known === undefined) return
    kept.delete(key)
    bytes -= sizeOf(known.answer)
  }

  function keep(key: string, answer: ReadyAnswer): void {
    // An expired entry would keep its old position, and its bytes would count twice.
    forget(key)
    if (sizeOf(answer) > limits.bytes) return
    kept.set(key, { answer, until: now() + limits.keptMs })
    bytes += sizeOf(answer)
    for (const [oldest, { until }] of kept) {
      if (until > now() && kept.size <= limits.answers && bytes <= limits.bytes) break
      forget(oldest)
    }
  }

  return {
    async once(key, carryOut) {
      const known = kept.get(key)
      if (known !== undefined && known.until > now()) return replayed(known.answer)
      const running = underWay.get(key)
      if (running !== undefined) return replayed(await running)
      const answer = carryOut()
      underWay.set(key, answer)
      try {
        keep(key, await answer)
      } finally {
        underWay.delete(key)
      }
      return answer
    },
  }
}

function sizeOf({ bytes }: ReadyAnswer): number {
  return bytes?.length ?? 0
}

function replayed(answer: ReadyAnswer): ReadyAnswer {
  return { ...answer, headers: { ...answer.headers, 'Idempotent-Replayed': 'true' } }
}

/**
 * Whether the key is used: not for requests that change nothing or have no user, and not where the handler does it
 * itself.
 */
export function mayBeRepeated(route: Route): boolean {
  if (route.kind === 'stream') return false
  const { method, permission, rawBody, mediaType } = route
  return (
    method !== 'get' &&
    permission !== 'public' &&
    permission !== 'login' &&
    rawBody === undefined &&
    mediaType === undefined
  )
}

/**
 * Identifies a request and its repetitions: the same key with any other content is another request.
 *
 * @returns undefined: the request has no key
 */
export function repeatKeyOf(route: JsonRoute, request: ApiRequest): string | undefined {
  const key = request.headers['idempotency-key']
  if (typeof key !== 'string' || key === '' || key.length > MAX_KEY_CHARS) return undefined
  const { principal, params, query, body } = request
  const { user, tokenId, apiKeyId } = principal
  const all = [key, route.method, route.path, params, query, user, tokenId, apiKeyId, body]
  return createHash('sha256').update(writeJson(all)).digest('base64')
}
