/**
 * Back-pressure: limits on open connections and on requests under way. The server answers requests above a limit with
 * 503. A refused request must cost no more than that answer.
 */
import type { Socket } from 'node:net'
import { queueFull } from '../core/errors.ts'
import { answerUnread } from './errors.ts'
import type { Surface } from './route.ts'

export interface AdmissionLimits {
  /** Open connections of all listeners together; default: unlimited. */
  connections?: number
  /** Requests under way per listener; default: unlimited. */
  requests?: number
}

export type AdmittedRequest = 'request' | 'stream'

export interface RequestAdmission {
  /**
   * Counts a connection until it closes. A connection above the limit may send one request. The server answers that
   * request if it asks for the health of the server or stops an execution, else with 503. Above `surplusOf` such
   * connections, the server closes the oldest without reading its request.
   *
   * @param speaksHttp whether the oldest can be sent a 503 before it is closed; default false
   */
  connected(socket: Socket, speaksHttp?: boolean): void
  isTooMany(socket: Socket): boolean
  /** Checks the limits before the request takes memory. @throws QUEUE_FULL */
  check(socket: Socket, surface: Surface, kind: AdmittedRequest): void
  /** Counts a request as under way. @returns a function that ends the count; idempotent. @throws QUEUE_FULL */
  begin(surface: Surface, kind: AdmittedRequest): () => void
}

/** The share of the connections that streams may use. Streams stay open for days and must leave some for requests. */
const STREAMS_SHARE = 0.75

/**
 * Surplus connections, as a share of the limit, that stay open to be answered. The oldest closes when a new one comes.
 */
const SURPLUS_SHARE = 0.1
const MAX_SURPLUS = 64

/** How many connections above the limit stay open to be answered. */
export function surplusOf(connections: number): number {
  return Math.min(MAX_SURPLUS, Math.max(4, Math.floor(connections * SURPLUS_SHARE)))
}

/** The same name for a socket and for the TLS socket over it. */
const nameOf = ({ remoteAddress, remotePort, localPort }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localPort}`

export function createRequestAdmission(limits: AdmissionLimits = {}): RequestAdmission {
  const { connections: maxConnections = Infinity, requests: maxRequests = Infinity } = limits
  const maxSurplus = surplusOf(maxConnections)
  const maxStreams = Math.floor(maxConnections * STREAMS_SHARE)
  let connections = 0
  /** By name, the oldest first. */
  const surplus = new Map<string, Socket>()
  const underWay = new Map<string, number>()

  const isTooMany = (socket: Socket): boolean => surplus.size > 0 && surplus.has(nameOf(socket))

  const check = (surface: Surface, kind: AdmittedRequest): string => {
    const key = kind === 'stream' ? kind : `requests of ${surface}`
    const maximum = kind === 'stream' ? maxStreams : maxRequests
    if ((underWay.get(key) ?? 0) >= maximum) throw queueFull(kind === 'stream' ? 'streams' : 'requests', maximum)
    return key
  }

  return {
    connected(socket, speaksHttp = false) {
      const name = nameOf(socket)
      connections += 1
      socket.once('close', () => {
        connections -= 1
        surplus.delete(name)
      })
      if (connections - surplus.size <= maxConnections) return
      surplus.set(name, socket)
      if (surplus.size <= maxSurplus) return
      const [[nameOfOldest, oldest] = [name, socket]] = surplus
      surplus.delete(nameOfOldest)
      // The kernel accepts what fits into the send buffer before the connection closes.
      if (speaksHttp) oldest.write(answerUnread(queueFull('connections', maxConnections)))
      oldest.destroy()
    },
    isTooMany,
    check(socket, surface, kind) {
      if (isTooMany(socket)) throw queueFull('connections', maxConnections)
      check(surface, kind)
    },
    begin(surface, kind) {
      const key = check(surface, kind)
      underWay.set(key, (underWay.get(key) ?? 0) + 1)
      let isOver = false
      return () => {
        if (isOver) return
        isOver = true
        underWay.set(key, (underWay.get(key) ?? 1) - 1)
      }
    },
  }
}

/** The listener that received the request sets it. */
export interface SurfaceTag {
  surface: Surface
  /** Absent: unlimited. */
  admission?: RequestAdmission
}
