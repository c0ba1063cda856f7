/** How servers are reached: one kept connection for each, through a proxy where the environment names one, over TLS. */
import http from 'node:http'
import { readBoundedFileSync } from '../../lib/files/index.ts'
import { CliFailure } from '../failures.ts'
import { canUseProxies, findProxy, type Proxy } from './proxy.ts'
import type { Settings } from './settings.ts'

const MAX_AUTHORITIES_BYTES = 16 * 1024 * 1024

/** How one server is reached. */
export interface Way {
  agent: http.Agent
  proxy: Proxy | undefined
}

export interface Agents {
  /** @throws CliFailure when the environment names a proxy that cannot be one */
  wayTo(url: URL): Way
  /** The proxy that the server at this origin has been asked through. */
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
  const ways = new Map<string, Way>()
  let isProxyIgnored = false
  const authorities = typeof cacert === 'string' ? readAuthorities(cacert) : undefined

  function findWay(url: URL): Way {
    const proxy = usableProxy(url)
    const options = { keepAlive: true, proxyEnv: proxy?.agentEnv ?? {} }
    if (url.protocol === 'http:') return { agent: new http.Agent(options), proxy }
    if (cacert === false && !silenceSslWarnings) {
      warn(`The certificate of ${url.host} is not verified; name its authorities with --cacert, or --cacert true.`)
    }
    const agent = new (secureHttp().Agent)({
      ...options,
      rejectUnauthorized: cacert !== false,
      ...(authorities === undefined ? {} : { ca: authorities }),
    })
    return { agent, proxy }
  }

  /** Says what this Node cannot do, rather than go around a proxy without a word. */
  function usableProxy(url: URL): Proxy | undefined {
    const proxy = findProxy(url, env)
    const { node } = process.versions
    if (proxy === undefined || canUseProxies(node)) return proxy
    if (!isProxyIgnored) {
      warn(
        `The proxy that ${proxy.variable} names is not used, since Node ${node} cannot; 22.21 and newer, and 24.5 and ` +
          `newer, can. ${url.host} is asked directly.`,
      )
    }
    isProxyIgnored = true
    return undefined
  }

  return {
    wayTo(url) {
      const way = ways.get(url.origin) ?? findWay(url)
      ways.set(url.origin, way)
      return way
    },
    proxyOf: (origin) => ways.get(origin)?.proxy,
    close() {
      for (const { agent } of ways.values()) agent.destroy()
    },
  }
}

/** Loading it takes a third of the time of a command, and most servers are asked without it. */
export function secureHttp(): typeof import('node:https') {
  return process.getBuiltinModule('node:https')
}

function readAuthorities(path: string): Buffer {
  const file = readBoundedFileSync(path, MAX_AUTHORITIES_BYTES)
  if ('problem' in file) throw new CliFailure(`The file of --cacert, ${path}, ${file.problem}.`)
  if (file.bytes.includes('-----BEGIN CERTIFICATE-----')) return file.bytes
  throw new CliFailure(`There are no certificates in ${path}, which --cacert names; it has to be a file in PEM form.`)
}
