/** Network proxies of the environment: `http_proxy`, `https_proxy`, `no_proxy`, in either letter case (contract 09, 9.7). */
import { BlockList, isIP } from 'node:net'
import { isLoopback } from '../../lib/network/index.ts'
import { secretMask } from '../../lib/log/index.ts'
import { CliFailure } from '../failures.ts'

export interface Proxy {
  /** Without credentials. */
  url: string
  /** For `curl -x`, its password masked. */
  shownUrl: string
  /** The variable that names it. */
  variable: string
  /** What an agent of Node has to know. */
  agentEnv: NodeJS.ProcessEnv
}

/**
 * The proxy for a server; none for servers on this machine, which a network proxy cannot reach.
 *
 * @throws CliFailure for one that is no address, without repeating it: it may hold a password
 */
export function findProxy(server: URL, env: NodeJS.ProcessEnv): Proxy | undefined {
  const name = server.protocol === 'https:' ? 'https_proxy' : 'http_proxy'
  const variable = [name, name.toUpperCase()].find((each) => (env[each] ?? '') !== '')
  if (variable === undefined) return undefined
  const host = plainHost(server)
  if (isLoopback(host) || isExempt(host, portOf(server), env['no_proxy'] || env['NO_PROXY'] || '')) return undefined
  const text = (env[variable] ?? '').trim()
  const address = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`
  const proxy = URL.canParse(address) ? new URL(address) : undefined
  if (proxy === undefined || !['http:', 'https:'].includes(proxy.protocol) || !isDecodable(proxy)) {
    throw new CliFailure(
      `${variable} is not the address of an HTTP proxy, such as http://proxy.example.com:3128. Correct it, ` +
        `or add ${host} to no_proxy.`,
    )
  }
  const { protocol, host: place, username, password } = proxy
  const credentials = username === '' ? '' : `${username}${password === '' ? '' : `:${secretMask}`}@`
  return {
    url: `${protocol}//${place}`,
    shownUrl: `${protocol}//${credentials}${place}`,
    variable,
    agentEnv: { [name]: proxy.href },
  }
}

/** Whether a proxy is named at all: curl may ask it where this client asks directly. */
export function namesProxy(env: NodeJS.ProcessEnv): boolean {
  return ['http_proxy', 'https_proxy', 'all_proxy'].some((name) => env[name] || env[name.toUpperCase()])
}

/** Whether agents of this Node know `proxyEnv`. @param version such as `22.14.0` */
export function canUseProxies(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major === 22 ? minor >= 21 : major === 24 ? minor >= 5 : major > 24
}

/** As curl and the incumbent read it: a name stands for what is below it, too. */
function isExempt(host: string, port: string, list: string): boolean {
  const name = host.toLowerCase()
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => entry === '*' || matches(entry, name, port))
}

function matches(entry: string, host: string, port: string): boolean {
  const family = isIP(host)
  const [, network = '', bits] = /^\[?([0-9a-f.:]+)\]?\/(\d{1,3})$/.exec(entry) ?? []
  if (bits !== undefined) return family !== 0 && isIP(network) === family && isWithin(host, network, Number(bits))
  const [, bare = '', onlyPort] = /^(?:\*?\.)?(.*?)(?::(\d+))?$/.exec(isIP(entry) === 6 ? `[${entry}]` : entry) ?? []
  if (onlyPort !== undefined && onlyPort !== port) return false
  const wanted = bare.replace(/^\[(.*)\]$/, '$1')
  return host === wanted || (family === 0 && wanted !== '' && host.endsWith(`.${wanted}`))
}

function isWithin(host: string, network: string, bits: number): boolean {
  const type = isIP(host) === 4 ? 'ipv4' : 'ipv6'
  if (bits > (type === 'ipv4' ? 32 : 128)) return false
  const list = new BlockList()
  list.addSubnet(network, bits, type)
  return list.check(host, type)
}

function plainHost(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1')
}

function portOf(url: URL): string {
  return url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port
}

/** Node decodes both when it connects, and would throw a failure that repeats them. */
function isDecodable({ username, password }: URL): boolean {
  try {
    decodeURIComponent(`${username}${password}`)
    return true
  } catch {
    return false
  }
}
