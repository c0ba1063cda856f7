/** What the steps of the chain share. */
import type { Request } from 'express'
import type { Log } from '../../lib/log/index.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { AccessControl } from '../authenticate.ts'
import type { Observation } from '../observe.ts'
import type { OriginPolicy } from '../origin.ts'
import type { Peers } from '../peers.ts'
import type { Repeats } from '../repeats.ts'
import type { Route, Surface } from '../route.ts'
import type { SinkOptions } from '../sse.ts'
import type { BodyRoom } from './body-room.ts'

export interface HttpAppOptions {
  routes: Route[]
  access: AccessControl
  origins: OriginPolicy
  peers: Peers
  maxBodyBytes: number
  events: SinkOptions
  /** By the listener that a request came by. */
  logs: Readonly<Record<Surface, Log>>
  /** Default: nobody wants to know. */
  metrics?: Metrics
  /** `auth.use_ssl`: the auth surface is for clients that came over TLS, on whatever listener; default not. */
  authNeedsTls?: boolean
  /** True until the server can answer; default never. */
  isStarting?(): boolean
  /** Why `/readyz` says no, besides starting and stopping, a word for each reason; default: nothing. */
  notReady?(): readonly string[]
  /** True once the server began to stop. */
  isStopping(): boolean
}

/** What the chain knows of a request before its route runs. */
interface RequestState {
  requestId: string
  query: URLSearchParams
  observation: Observation
}

export const states = new WeakMap<Request, RequestState>()

/** What the handlers of all listeners share. */
export interface Shared {
  room: BodyRoom
  repeats: Repeats
}

export function hasBody({ headers }: Request): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}
