/** The three listeners, plain or with TLS. Each tags its requests with its surface and passes them to the one app. */
import type { SurfaceTag } from './admission.ts'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Express } from 'express'
import { createRequestAdmission, type RequestAdmission } from './admission.ts'
import { describeHolder } from '../core/port-holder.ts'
import { answerToUnreadable } from './errors.ts'
import type { Surface } from './route.ts'
import { secureContext, type TlsIdentity } from './tls.ts'

// Importing this module reads all its exports, and one of them loads an unused HTTP client of 7 MB.
const { createServer } = process.getBuiltinModule('node:http')

export interface ListenerOptions {
  surface: Surface
  host: string
  /** 0 takes any free port. */
  port: number
  tls?: ListenerTls | undefined
  /** Default: one without limits. */
  admission?: RequestAdmission
}

export interface ListenerTls {
  identity: TlsIdentity
  /** Headers of every answer to a request. */
  headers: Readonly<Record<string, string>>
  /** Milliseconds until a client that has not finished its handshake is cut; default 10 seconds. */
  handshakeMs?: number
  /** Called when a TLS handshake fails. */
  handshakeFailed(error: Error & { code?: string }, peer: string): void
}

export interface Listener {
  surface: Surface
  /** `http://host:port` or `https://host:port`, with the actual port. */
  url: string
  /** New connections get this certificate, open ones keep theirs. @throws for a listener without TLS */
  renew(identity: TlsIdentity): void
  /**
   * Stops accepting and closes idle connections. Resolves when every connection has closed; cuts the others after
   * `graceMs`.
   */
  close(graceMs: number): Promise<void>
}

/** The server cannot listen on the address. */
export class ListenError extends Error {}

/**
 * Requests that a client may pipeline. The server handles them one after another: answers that wait for earlier ones
 * would stay in memory, and a few KiB of requests can ask for gigabytes.
 */
const MAX_WAITING_REQUESTS = 100

interface Connection {
  answering: ServerResponse | undefined
  /** Each starts the answer to a later request. */
  waiting: (() => void)[]
}

/** A connection without traffic for this time is cut. The heartbeats of a stream are at most an hour apart. */
const STALLED_MS = 7_200_000

const HANDSHAKE_MS = 10_000

/** Time for the headers of a request: slower clients hold a place that others wait for. */
const HEADERS_MS = 20_000
/** Interval of the check for late headers. */
const CHECK_MS = 5000

export async function listen(app: Express, options: ListenerOptions): Promise<Listener> {
  const handler = app as unknown as (request: IncomingMessage, response: unknown) => void // an Express app is one
  const connections = new WeakMap<Duplex, Connection>()
  const { tls, admission = createRequestAdmission() } = options
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const tagged: IncomingMessage & Partial<SurfaceTag> = request
    tagged.surface = options.surface
    tagged.admission = admission
    if (admission.isTooMany(request.socket)) response.shouldKeepAlive = false
    for (const [name, value] of Object.entries(tls?.headers ?? {})) response.setHeader(name, value)
    // Express routes by the original address, so this must come first.
    readAbsoluteTarget(request)
    const { socket } = request
    const connection = connections.get(socket) ?? { answering: undefined, waiting: [] }
    connections.set(socket, connection)
    const begin = (): void => {
      connection.answering = response
      response.once('close', () => {
        connection.answering = undefined
        if (socket.writable) connection.waiting.shift()?.()
      })
      handler(request, response)
    }
    if (connection.answering === undefined) begin()
    else if (connection.waiting.length < MAX_WAITING_REQUESTS) connection.waiting.push(begin)
    else socket.destroy()
  }
  // The app checks Host itself, with an exact message.
  const http = {
    keepAliveTimeout: 65_000,
    headersTimeout: HEADERS_MS,
    connectionsCheckingInterval: CHECK_MS,
    requireHostHeader: false,
  }
  const server =
    tls === undefined
      ? createServer(http, answer)
      : process
          .getBuiltinModule('node:https')
          .createServer(
            { ...http, ...secureContext(tls.identity), handshakeTimeout: tls.handshakeMs ?? HANDSHAKE_MS },
            answer,
          )
  const sockets = keepSockets(server)
  server.on('connection', (socket: Socket) => admission.connected(socket, tls === undefined))
  if (tls !== undefined) {
    // Node's own handler treats the connection as one that speaks HTTP.
    server.removeAllListeners('tlsClientError')
    server.on('tlsClientError', (error: Error, socket: Socket) => {
      tls.handshakeFailed(error, socket.remoteAddress ?? '')
      socket.destroy()
    })
  }
  server.on('clientError', (error: Error, socket: Duplex) => {
    const refuse = (): void => {
      if (socket.writable) socket.write(answerToUnreadable(error))
      socket.destroy()
    }
    const connection = connections.get(socket)
    const answering = connection?.answering
    if (connection === undefined || answering === undefined) refuse()
    // The client would read bytes in the middle of an answer as a part of it.
    else if (answering.headersSent) socket.destroy()
    // The client would read a refusal sent now as the answer to the earlier request, which is carried out.
    else if (answering.req.complete) connection.waiting = [refuse]
    else refuse()
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const { surface, host, port } = options
      const advice = error.code === 'EADDRINUSE' ? adviceOnTaken(surface, port) : ''
      reject(new ListenError(`${surface}.port: cannot listen on ${host}:${port} (${reason(error)})${advice}`))
    })
    server.listen(options.port, options.host, 1024, resolve)
  })
  server.removeAllListeners('error')
  // From now on an error concerns one connection that could not be accepted.
  server.on('error', () => undefined)
  server.timeout = STALLED_MS
  return {
    surface: options.surface,
    // A TCP server has an AddressInfo.
    url: urlOf(tls === undefined ? 'http' : 'https', options.host, (server.address() as AddressInfo).port),
    renew(identity) {
      if (!('setSecureContext' in server)) throw new Error(`The ${options.surface} listener is without TLS.`)
      server.setSecureContext(secureContext(identity))
    },
    close: (graceMs) => closeServer(server, sockets, graceMs),
  }
}

/** `GET http://host/path`, as sent to a proxy: the host of the address replaces `Host` (RFC 9112, 3.2.2). */
function readAbsoluteTarget(request: IncomingMessage): void {
  const { url = '' } = request
  if (url.startsWith('/')) return
  const [, host, path] = /^https?:\/\/([^/?#@]+)((?:[/?#].*)?)$/is.exec(url) ?? []
  if (host === undefined || path === undefined) return
  request.headers.host = host
  request.url = path.startsWith('/') ? path : `/${path}`
}

/** The open connections of the server, with those in their TLS handshake, which `node:https` does not list. */
function keepSockets(server: Server | TlsServer): ReadonlySet<Socket> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  return sockets
}

function urlOf(scheme: 'http' | 'https', host: string, port: number): string {
  const name = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host.includes(':') ? `[${host}]` : host
  return `${scheme}://${name}:${port}`
}

function adviceOnTaken(surface: Surface, port: number): string {
  const places = `--${surface}-port, SVC_${surface.toUpperCase()}__PORT or port in [${surface}] of svc.conf`
  return `: ${describeHolder(port)} has it. End that program, or set another port: ${places}`
}

function reason(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'EADDRINUSE':
      return 'the port is in use'
    case 'EACCES':
      return 'permission denied; ports below 1024 need privileges'
    case 'EADDRNOTAVAIL':
      return 'this machine does not have that address'
    default:
      return error.code ?? error.message
  }
}

function closeServer(server: Server | TlsServer, sockets: ReadonlySet<Socket>, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => {
      server.closeAllConnections()
      for (const socket of sockets) socket.destroy()
    }, graceMs)
    server.close(() => {
      clearTimeout(cut)
      resolve()
    })
    server.closeIdleConnections()
  })
}
