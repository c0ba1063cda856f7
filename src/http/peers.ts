/** Determines the address of the client, and which peers may state it (`auth.trusted_proxies`). */
import { BlockList, isIP } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { IncomingMessage } from 'node:http'
import type { Config } from '../config/index.ts'
import { forwardedRefused } from '../core/errors.ts'
import { isLoopback } from '../lib/network/index.ts'
import { isOfOperator } from './control-socket.ts'

export interface Peers {
  /**
   * The client's address for the audit log: the nearest one in front of the trusted proxies. `control-socket` for
   * requests over the control socket.
   */
  addressOf(request: IncomingMessage): string
  /** Whether the client connected over TLS, to the server or to a trusted proxy. */
  isSecure(request: IncomingMessage): boolean
  /** Whether the peer of the connection is a trusted proxy. Headers make no difference. */
  isTrustedPeer(request: IncomingMessage): boolean
  /**
   * With `isForThisMachine`: refuses requests that a proxy forwards for another machine. Whoever states it counts: a
   * sender can only shut itself out.
   *
   * @throws FORWARDED_REFUSED
   */
  refuseStranger(request: IncomingMessage): void
}

export interface PeersOptions {
  /**
   * Whether a trusted proxy may also name the client in `Remote-Addr` or `X-Remote-Addr` (proxy mode); default false.
   */
  believeRemoteAddr?: boolean
  /** Whether only clients on this machine may send requests, because nobody has to log in; default false. */
  isForThisMachine?: boolean
}

/** A proxy that authenticates users may also state their addresses. */
export function peersOptions({ auth, system }: Pick<Config, 'auth' | 'system'>): PeersOptions {
  return {
    believeRemoteAddr: auth.enable && auth.mode === 'proxy',
    isForThisMachine: !auth.enable && !system.allow_open_network,
  }
}

const MAX_HOPS = 32

/** Bits in front of the IPv4 address in `::ffff:10.0.0.1`. */
const MAPPED_BITS = 96

/** @param trusted addresses and networks such as `127.0.0.0/8` */
export function createPeers(trusted: readonly string[], options: PeersOptions = {}): Peers {
  const list = new BlockList()
  for (const network of trusted) {
    const [given = '', prefix] = network.split('/')
    const bits = Number(prefix ?? 128)
    const inner = bits < MAPPED_BITS ? given : plainAddress(given)
    const family = isIP(inner) === 6 ? 'ipv6' : 'ipv4'
    if (prefix === undefined) list.addAddress(inner, family)
    else list.addSubnet(inner, inner === given ? bits : bits - MAPPED_BITS, family)
  }

  function isTrusted(address: string): boolean {
    const family = isIP(address)
    return family !== 0 && list.check(address, family === 6 ? 'ipv6' : 'ipv4')
  }

  /** Contract 01, 1.3. */
  function remoteAddr({ headers }: IncomingMessage): string | undefined {
    const named = plainAddress(headerText(headers['remote-addr'] ?? headers['x-remote-addr']).trim())
    return isIP(named) === 0 ? undefined : named
  }

  return {
    isTrustedPeer: (request) => isTrusted(peerOf(request)),
    refuseStranger(request) {
      if (options.isForThisMachine !== true) return
      const stranger = clientsNamedBy(request).find((client) => !isOnThisMachine(client))
      if (stranger !== undefined) throw forwardedRefused(stranger)
    },
    addressOf(request) {
      let address = peerOf(request)
      const header = headerText(request.headers['x-forwarded-for'])
      if (header === '') {
        const isNamed = options.believeRemoteAddr === true && isTrusted(address)
        return (isNamed ? remoteAddr(request) : undefined) ?? address
      }
      const forwarded = header.split(',').slice(-MAX_HOPS)
      for (const hop of forwarded.toReversed()) {
        const named = plainAddress(hop.trim())
        if (!isTrusted(address) || isIP(named) === 0) break
        address = named
      }
      return address
    },
    isSecure(request) {
      if (request.socket instanceof TLSSocket) return true
      const scheme = headerText(request.headers['x-forwarded-proto']).split(',').at(-1)?.trim().toLowerCase()
      return scheme === 'https' && isTrusted(peerOf(request))
    },
  }
}

/** Headers in which proxies name the client, one address each or a list. */
const clientHeaders = ['x-forwarded-for', 'x-real-ip', 'x-client-ip', 'true-client-ip', 'cf-connecting-ip'] as const

/** Every client and proxy that forwarding headers name, as written. */
function clientsNamedBy({ headers }: IncomingMessage): string[] {
  const listed = clientHeaders.flatMap((name) => headerText(headers[name]).split(','))
  const forwarded = headerText(headers['forwarded']).matchAll(/(?:^|[;,])\s*for\s*=\s*("[^"]*"|[^;,]*)/gi)
  return [...listed, ...[...forwarded].map(([, client = '']) => client.replaceAll('"', ''))]
    .map((client) => client.trim())
    .filter((client) => client !== '')
}

/** @param client an address, perhaps with a port: `127.0.0.1:1234`, `[::1]:1234`; other words name a stranger */
function isOnThisMachine(client: string): boolean {
  const address = /^\[([^\]]*)\](?::\d+)?$/.exec(client)?.[1] ?? /^([\d.]+):\d+$/.exec(client)?.[1] ?? client
  return isIP(address) !== 0 && isLoopback(plainAddress(address))
}

function peerOf(request: IncomingMessage): string {
  if (isOfOperator(request)) return 'control-socket'
  return plainAddress(request.socket.remoteAddress ?? '')
}

/** An IPv4 address seen through an IPv6 socket is that IPv4 address. */
function plainAddress(address: string): string {
  const inner = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  return inner ?? address
}

function headerText(header: string | string[] | undefined): string {
  return Array.isArray(header) ? header.join(',') : (header ?? '')
}
