/** How the client uses a network proxy of the environment (contract 09, 9.7). */
import { environmentProxy } from '../../lib/network/index.ts'
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
  const found = environmentProxy(server, env)
  if (found === undefined) return undefined
  const { variable, url: proxy } = found
  if (proxy === undefined) {
    throw new CliFailure(
      `${variable} is not the address of an HTTP proxy, such as http://proxy.example.com:3128. Correct it, ` +
        `or add ${server.hostname.replace(/^\[(.*)\]$/, '$1')} to no_proxy.`,
    )
  }
  const { protocol, host: place, username, password } = proxy
  const credentials = username === '' ? '' : `${username}${password === '' ? '' : `:${secretMask}`}@`
  return {
    url: `${protocol}//${place}`,
    shownUrl: `${protocol}//${credentials}${place}`,
    variable,
    agentEnv: { [variable.toLowerCase()]: proxy.href },
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
