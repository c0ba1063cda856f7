/** Where a request comes from, and which peers are believed when they say so (`auth.trusted_proxies`). */
import { BlockList, isIP } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { IncomingMessage } from 'node:http'

export interface Peers {
  /** The client's address: the nearest one in front of the trusted proxies, for the audit log. */
  addressOf(request: IncomingMessage): string
  /** Whether the client came over TLS, to us or to a trusted proxy. */
  isSecure(request: IncomingMessage): boolean
}

const MAX_HOPS = 32

/** @param trusted addresses and networks such as `127.0.0.0/8` */
export function createPeers(trusted: readonly string[]): Peers {
  const list = new BlockList()
  for (const network of trusted) {
    const [address = '', prefix] = network.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (prefix === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(prefix), family)
  }

  function isTrusted(address: string): boolean {
    const family = isIP(address)
    return family !== 0 && list.check(address, family === 6 ? 'ipv6' : 'ipv4')
  }

  return {
    addressOf(request) {
      let address = plainAddress(request.socket.remoteAddress ?? '')
      const forwarded = headerText(request.headers['x-forwarded-for']).split(',').slice(-MAX_HOPS)
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
      return scheme === 'https' && isTrusted(plainAddress(request.socket.remoteAddress ?? ''))
    },
  }
}

/** An IPv4 address seen through an IPv6 socket is that IPv4 address. */
function plainAddress(address: string): string {
  const inner = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  return inner ?? address
}

function headerText(header: string | string[] | undefined): string {
  return Array.isArray(header) ? header.join(',') : (header ?? '')
}
