/**
 * How much the server takes on at once. What is more is answered with 503 and may come again; it must cost nothing but that
 * answer.
 */
import type { Socket } from 'node:net'
import { queueFull } from '../core/errors.ts'
import { answerUnread } from './errors.ts'
import type { Surface } from './route.ts'

export interface AdmissionLimits {
  /** Of all listeners together; default: any number. */
  connections?: number
  /** Requests under way, of each listener; default: any number. */
  requests?: number
}

export type Admitted = 'request' | 'stream'

export interface Admission {
  /**
   * Takes a connection in, until it is closed. One too many is there for one request, which is answered like any other if it
   * asks for the health of the server or stops an execution, and with 503 else. When there are too many of these, the oldest
   * is refused unheard.
   *
   * @param speaksHttp so that it can be told why; default not
   */
  connected(socket: Socket, speaksHttp?: boolean): void
  isTooMany(socket: Socket): boolean
  /** Whether a request may go on to take memory. @throws QUEUE_FULL */
  check(socket: Socket, surface: Surface, kind: Admitted): void
  /** Takes in a request. @returns takes it out again; any number of times. @throws QUEUE_FULL */
  begin(surface: Surface, kind: Admitted): () => void
}

/** Of the connections: streams last for days, and must leave some for requests. */
const STREAMS_SHARE = 0.75

/** Connections too many that are open at a time, of the limit; the oldest has to go for a new one. */
const SURPLUS_SHARE = 0.1
const MAX_SURPLUS = 64

/** Connections too many that are left open for their answers. */
export function surplusOf(connections: number): number {
  return Math.min(MAX_SURPLUS, Math.max(4, Math.floor(connections * SURPLUS_SHARE)))
}

/** The same for a connection and for the TLS in it. */
const nameOf = ({ remoteAddress, remotePort, localPort }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localPort}`

export function createAdmission(limits: AdmissionLimits = {}): Admission {
  const { connections: maxConnections = Infinity, requests: maxRequests = Infinity } = limits
  const maxSurplus = surplusOf(maxConnections)
  const maxStreams = Math.floor(maxConnections * STREAMS_SHARE)
  let connections = 0
  /** By their names, the oldest first. */
  const surplus = new Map<string, Socket>()
  const underWay = new Map<string, number>()

  const isTooMany = (socket: Socket): boolean => surplus.size > 0 && surplus.has(nameOf(socket))

  const check = (surface: Surface, kind: Admitted): string => {
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
      // Before it is closed it takes what fits into the buffer of its connection.
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

/** Set by the listener that received the request. */
export interface SurfaceTag {
  surface: Surface
  /** Absent: everything is taken on. */
  admission?: Admission
}
