/** HTTP agents: one kept-alive connection per server, through a proxy if the environment names one, over TLS for https. */
import http from 'node:http'
import { readBoundedFileSync } from '../../lib/files/index.ts'
import { CliFailure } from '../failures.ts'
import { canUseProxies, findProxy, type Proxy } from './proxy.ts'
import type { Settings } from './settings.ts'

const MAX_AUTHORITIES_BYTES = 16 * 1024 * 1024

/** How to connect to one server. */
export interface ServerConnection {
  agent: http.Agent
  proxy: Proxy | undefined
}

export interface Agents {
  /** @throws CliFailure when the environment names a proxy that cannot be one */
  routeTo(url: URL): ServerConnection
  /** The proxy used for the server at this origin. */
  proxyOf(origin: string): Proxy | undefined
  /** Ends all connections. */
  close(): void
}

/**
 * @param warn takes a line for standard error
 * @throws CliFailure when the file of authorities cannot be used
 */
export function createAgents(
  { cacert, silenceSslWarnings }: Pick<Settings, 'cacert' | 'silenceSslWarnings'>,
  warn: (text: string) => void,
  env: NodeJS.ProcessEnv,
): Agents {
  const routes = new Map<string, ServerConnection>()
  let isProxyIgnored = false
  const authorities = typeof cacert === 'string' ? readAuthorities(cacert) : undefined

  function createRoute(url: URL): ServerConnection {
    const proxy = usableProxy(url)
    const options = { keepAlive: true, proxyEnv: proxy?.agentEnv ?? {} }
    if (url.protocol === 'http:') return { agent: new http.Agent(options), proxy }
    if (cacert === false && !silenceSslWarnings) {
      warn(`The certificate of ${url.host} is not verified. To verify it, use --cacert <path> or --cacert true.`)
    }
    const agent = new (secureHttp().Agent)({
      ...options,
      rejectUnauthorized: cacert !== false,
      ...(authorities === undefined ? {} : { ca: authorities }),
    })
    return { agent, proxy }
  }

  /** Warns when this Node.js cannot use proxies, instead of bypassing the proxy silently. */
  function usableProxy(url: URL): Proxy | undefined {
    const proxy = findProxy(url, env)
    const { node } = process.versions
    if (proxy === undefined || canUseProxies(node)) return proxy
    if (!isProxyIgnored) {
      warn(
        `The proxy in ${proxy.variable} is not used: Node.js ${node} has no proxy support. Use Node.js 22.21 or 24.5 or ` +
          `newer. svc connects to ${url.host} directly.`,
      )
    }
    isProxyIgnored = true
    return undefined
  }

  return {
    routeTo(url) {
      const route = routes.get(url.origin) ?? createRoute(url)
      routes.set(url.origin, route)
      return route
    },
    proxyOf: (origin) => routes.get(origin)?.proxy,
    close() {
      for (const { agent } of routes.values()) agent.destroy()
    },
  }
}

/** Loaded only when needed: it takes a third of the run time of a command. */
export function secureHttp(): typeof import('node:https') {
  return process.getBuiltinModule('node:https')
}

function readAuthorities(path: string): Buffer {
  const file = readBoundedFileSync(path, MAX_AUTHORITIES_BYTES)
  if ('problem' in file) throw new CliFailure(`The --cacert file ${path} ${file.problem}.`)
  if (file.bytes.includes('-----BEGIN CERTIFICATE-----')) return file.bytes
  throw new CliFailure(`The --cacert file ${path} contains no certificates. It must be in PEM format.`)
}
