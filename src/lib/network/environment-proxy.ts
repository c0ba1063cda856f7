/** Network proxies of the environment: `http_proxy`, `https_proxy`, `no_proxy`, in either letter case (contract 09, 9.7). */
import { BlockList, isIP } from 'node:net'
import { isLoopback } from './loopback.ts'

export interface EnvironmentProxy {
  /** The variable that names it. */
  variable: string
  /** With credentials; undefined: what the variable says is no address of an HTTP proxy. */
  url: URL | undefined
}

/** The proxy for a URL; none for those of this machine, which a network proxy cannot reach. */
export function environmentProxy(url: URL, env: NodeJS.ProcessEnv): EnvironmentProxy | undefined {
  const name = url.protocol === 'https:' ? 'https_proxy' : 'http_proxy'
  const variable = [name, name.toUpperCase()].find((each) => (env[each] ?? '') !== '')
  if (variable === undefined) return undefined
  const host = plainHost(url)
  if (isLoopback(host) || isExempt(host, portOf(url), env['no_proxy'] || env['NO_PROXY'] || '')) return undefined
  const text = (env[variable] ?? '').trim()
  const address = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`
  const proxy = URL.canParse(address) ? new URL(address) : undefined
  const isUsable = proxy !== undefined && ['http:', 'https:'].includes(proxy.protocol) && isDecodable(proxy)
  return { variable, url: isUsable ? proxy : undefined }
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
