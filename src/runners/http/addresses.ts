/**
 * Decides which addresses a request may connect to: those of the public internet, and the networks in
 * `http_runner.allowed_private_networks` (decision 13). Source: the special-purpose address registries of IANA.
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
/** The public part of IPv6, minus the networks below: protocols, tunnels, documentation, 6to4. */
const PUBLIC_IPV6 = '2000::/3'
const PRIVATE_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']
/** IPv6 prefixes that embed the IPv4 address they lead to: mapped addresses and NAT64. */
const IPV4_PREFIXES = ['::ffff:', '64:ff9b::']
const IPV4_PREFIX_BITS = 96

/** Requests may not connect to this address, or to the address of this host. */
export class AddressRefused extends Error {
  constructor(host: string, address: string) {
    const named = host === address ? `"${host}"` : `"${host}" (${address})`
    super(`${named} is not on the public internet; add it to http_runner.allowed_private_networks to allow it`)
    this.name = 'AddressRefused'
  }
}

export interface Addresses {
  mayReach(address: string): boolean
  /** Checks a host of a URL that is an address; names pass, and are checked at lookup. @throws AddressRefused */
  checkLiteral(host: string): void
  /** Checks a host that a proxy connects to, as far as its addresses are known here. @throws AddressRefused */
  checkName(host: string): Promise<void>
  /** For `net.connect`: resolves a name to the allowed addresses, so that only those are connected to. */
  lookup: LookupFunction
}

/** Resolves a name to all its addresses. */
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
        // The proxy may resolve a name that this host cannot.
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
  // A zone names the interface, not the destination.
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
