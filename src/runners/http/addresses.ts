/**
 * Which addresses a request may connect to: those of the public internet, and what `http_runner.allowed_private_networks`
 * allows besides (decision 13). Source: the special-purpose address registries of IANA.
 */
import { lookup as systemLookup, type LookupAddress } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'

/** IPv4 networks that are not part of the public internet. */
const PRIVATE_IPV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
]
/** The public part of IPv6 is this, without those below: protocols and tunnels, documentation, 6to4. */
const PUBLIC_IPV6 = '2000::/3'
const PRIVATE_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']
/** Prefixes in front of an IPv4 address, which is what they lead to: mapped, and NAT64. */
const IPV4_PREFIXES = ['::ffff:', '64:ff9b::']
const IPV4_PREFIX_BITS = 96

/** The address that a host has, or stands for, is not one that requests may go to. */
export class AddressRefused extends Error {
  constructor(host: string, address: string) {
    const named = host === address ? `"${host}"` : `"${host}" (${address})`
    super(
      `${named} is not on the public internet; http_runner.allowed_private_networks of the server says which private addresses may be used`,
    )
    this.name = 'AddressRefused'
  }
}

export interface Addresses {
  mayReach(address: string): boolean
  /** @param host as in a URL: addresses of IPv6 with or without brackets; names pass, they are checked when they are looked up @throws AddressRefused */
  checkLiteral(host: string): void
  /** As far as it is known here, for a host that somebody else connects to. @throws AddressRefused */
  checkName(host: string): Promise<void>
  /** For `net.connect`: gives the addresses that may be reached, which are then what is connected to. */
  lookup: LookupFunction
}

/** Asks for all addresses of a name. */
export type LookupAll = (host: string, done: (error: Error | null, addresses: LookupAddress[]) => void) => void

/** @param allowed addresses and networks such as `10.0.0.0/8` */
export function createAddresses(
  allowed: readonly string[],
  lookupAll: LookupAll = (host, done) => systemLookup(host, { all: true }, done),
): Addresses {
  const allowedList = listOf(allowed)
  const isReachable = (address: string): boolean => mayReach(address, allowedList)

  function checkLiteral(host: string): void {
    const address = withoutBrackets(host)
    if (isIP(address) !== 0 && !isReachable(address)) throw new AddressRefused(address, address)
  }

  function find(host: string, done: (error: Error | null, addresses: LookupAddress[]) => void): void {
    lookupAll(host, (error, found) => {
      if (error !== null) return done(error, [])
      const reachable = found.filter(({ address }) => isReachable(address))
      if (reachable.length > 0) done(null, reachable)
      else done(new AddressRefused(host, found[0]?.address ?? 'no address'), [])
    })
  }

  return {
    mayReach: isReachable,
    checkLiteral,
    checkName: (host) =>
      new Promise((resolve, reject) => {
        const address = withoutBrackets(host)
        if (isIP(address) !== 0) {
          checkLiteral(address)
          return resolve()
        }
        // What cannot be looked up here may be known there.
        find(address, (error) => (error instanceof AddressRefused ? reject(error) : resolve()))
      }),
    lookup: (host, options, done) => {
      find(host, (error, addresses) => {
        const [first] = addresses
        if (error !== null || first === undefined) done(error, [])
        else if (options.all === true) done(null, addresses)
        else done(null, first.address, first.family)
      })
    },
  }
}

const privateIpv4 = listOf(PRIVATE_IPV4)
const publicIpv6 = listOf([PUBLIC_IPV6, ...IPV4_PREFIXES.map((prefix) => `${prefix}0.0.0.0/${IPV4_PREFIX_BITS}`)])
const privateIpv6 = listOf([...PRIVATE_IPV6, ...PRIVATE_IPV4.flatMap(behindPrefixes)])

function mayReach(address: string, allowed: BlockList): boolean {
  // A zone says through which interface, not where to.
  const [plain = ''] = address.split('%')
  switch (isIP(plain)) {
    case 4:
      return allowed.check(plain, 'ipv4') || !privateIpv4.check(plain, 'ipv4')
    case 6:
      if (allowed.check(plain, 'ipv6')) return true
      return publicIpv6.check(plain, 'ipv6') && !privateIpv6.check(plain, 'ipv6')
    default:
      return false
  }
}

function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits] = network.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  return list
}

function behindPrefixes(network: string): string[] {
  const [address = '', bits] = network.split('/')
  return IPV4_PREFIXES.map((prefix) => `${prefix}${address}/${IPV4_PREFIX_BITS + Number(bits)}`)
}

function withoutBrackets(host: string): string {
  return host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
}
