/** State that the steps of the chain share. */
import type { Request } from 'express'
import type { Log } from '../../lib/log/index.ts'
import type { Compat, Dialect } from '../../core/compat/index.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { NotReady } from '../../core/module.ts'
import type { AnswerLimits, AnswerRoom } from '../answers.ts'
import type { AccessControl } from '../authenticate.ts'
import type { Observation } from '../observe.ts'
import type { OriginPolicy } from '../origin.ts'
import type { Peers } from '../peers.ts'
import type { RequestLedger, Repeats } from '../repeats.ts'
import type { Route, Surface } from '../route.ts'
import type { SinkOptions } from '../sse.ts'
import type { BodyRoom } from './body-room.ts'

export interface HttpAppOptions {
  routes: Route[]
  access: AccessControl
  origins: OriginPolicy
  peers: Peers
  maxBodyBytes: number
  events: Omit<SinkOptions, 'queue'>
  /** Of requests with an `Idempotency-Key`. */
  ledger: RequestLedger
  /** Of answers that clients have not read; default: `defaultAnswerLimits`. */
  answers?: AnswerLimits
  /** By the listener that received the request. */
  logs: Readonly<Record<Surface, Log>>
  /** Default: no metrics. */
  metrics?: Metrics
  /** Default: our names alone. */
  compat?: Compat
  /** `auth.use_ssl`: the auth surface requires TLS on every listener; default false. */
  authNeedsTls?: boolean
  /** True until the server can answer; default always false. */
  isStarting?(): boolean
  /** Why `/readyz` answers 503 apart from starting and stopping; default none. */
  notReady?(): readonly NotReady[]
  /** True once the server has begun to stop. */
  isStopping(): boolean
}

/** What the chain knows about a request before its route runs. */
export interface RequestState {
  requestId: string
  query: URLSearchParams
  dialect: Dialect
  observation: Observation
  /** Whether the path ended in a slash: its last segment is empty. */
  endsInSlash?: boolean
  /** SHA-256 in hex of the body of a request with an `Idempotency-Key`. */
  bodyDigest?: string
  /** What the request names does not exist. A repetition is answered nevertheless. */
  missing?: unknown
}

export const states = new WeakMap<Request, RequestState>()

/** State that the handlers of all listeners share. */
export interface Shared {
  room: BodyRoom
  answers: AnswerRoom
  /** A client that reads nothing of its answer for this time is cut. */
  idleMs: number
  repeats: Repeats
}

export function hasBody({ headers }: Request): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}
