/** Which web pages may talk to the server. */
import { isIP } from 'node:net'
import type { Config } from '../config/index.ts'
import { originRefused } from '../core/errors.ts'
import { shown } from '../lib/text/index.ts'

export interface OriginPolicy {
  /** `Access-Control-*` headers for a request with this `Origin`. */
  corsHeaders(origin: string | undefined): Record<string, string>
  /**
   * Refuses what a foreign web page makes a browser send: a page can POST text to any address without asking, and with a
   * rebound name it can even read the answers.
   *
   * @throws ORIGIN_REFUSED
   */
  check(method: string, origin: string | undefined, to: Addressee): void
  /** Whether pages of this origin are this server's own, or admitted by name; `*` names nobody. */
  isKnown(origin: string, to: Addressee): boolean
}

/** Whom a request is meant for. */
export interface Addressee {
  /** The header `Host`. */
  host: string | undefined
  /** Whether the request is known to have come over TLS; behind some proxies that cannot be known. */
  isSecure: boolean
}

export interface OriginPolicySettings {
  /** `api.allow_origin`; `*` admits every page, without credentials. */
  allowedOrigins: readonly string[]
  /**
   * Host names the server is known by. Given while authentication is off: a browser's request is then the only credential
   * there is, so a name that an attacker has pointed here must not count as this server.
   */
  knownHosts: ReadonlySet<string> | undefined
}

/** Methods that change nothing; a foreign page cannot read what they answer. */
const harmless: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

const fixedHeaders = {
  'Access-Control-Allow-Methods': 'GET,POST,PUT,DELETE,OPTIONS',
  'Access-Control-Allow-Headers': 'Content-Type,Authorization,X-Auth-Token,Svc-Api-Key,X-Request-ID,Last-Event-ID',
  'Access-Control-Expose-Headers': 'Content-Type,X-Limit,X-Total-Count,X-Request-ID',
}

/** Pages of the web client that developers serve themselves. */
const developmentOrigins = ['http://127.0.0.1:3000', 'http://localhost:8080', 'http://127.0.0.1:8080']

/** What the configuration says of web pages elsewhere, and of the names this server has. */
export function originSettings(config: Config): OriginPolicySettings {
  const { auth, api, stream, webui, system } = config
  const publicUrls = [auth.api_url, webui.webui_base_url].filter((url) => url !== '')
  const hosts = [auth.host, api.host, stream.host, ...publicUrls.map((url) => new URL(url).hostname)]
  return {
    allowedOrigins: [
      ...api.allow_origin,
      ...developmentOrigins,
      ...(auth.api_url === '' ? [] : [new URL(auth.api_url).origin]),
    ],
    knownHosts: auth.enable || system.allow_open_network ? undefined : new Set(hosts),
  }
}

export function createOriginPolicy(settings: OriginPolicySettings): OriginPolicy {
  const allowed = new Set(
    settings.allowedOrigins.filter((origin) => origin !== '*' && origin !== 'null').map(asSentByBrowsers),
  )
  const knownHosts = settings.knownHosts && new Set([...settings.knownHosts].map((host) => host.toLowerCase()))
  const allowsAny = settings.allowedOrigins.includes('*')
  const [first] = allowed
  const isAllowed = (origin: string): boolean => allowsAny || allowed.has(origin)

  return {
    isKnown: (origin, to) => allowed.has(origin) || isOwn(origin, to),
    corsHeaders(origin) {
      if (allowsAny && (origin === undefined || !allowed.has(origin))) {
        return { 'Access-Control-Allow-Origin': '*', Vary: 'Origin', ...fixedHeaders }
      }
      const named = origin !== undefined && allowed.has(origin) ? origin : first
      if (named === undefined) return fixedHeaders
      return {
        'Access-Control-Allow-Origin': named,
        'Access-Control-Allow-Credentials': 'true',
        Vary: 'Origin',
        ...fixedHeaders,
      }
    },
    check(method, origin, to) {
      const { host } = to
      if (knownHosts !== undefined && host !== undefined && !isKnownHost(knownHosts, host)) {
        throw originRefused(
          `The server is not known as "${shown(hostName(host))}". Use its address, or enable authentication.`,
        )
      }
      if (origin === undefined || harmless.has(method)) return
      if (isAllowed(origin) || isOwn(origin, to)) return
      throw originRefused(`Pages of the origin "${shown(origin)}" may not change anything here; see api.allow_origin.`)
    },
  }
}

/** `HTTP://Example.com:80/` is `http://example.com` in the header. */
function asSentByBrowsers(configured: string): string {
  const origin = URL.canParse(configured) ? new URL(configured).origin : 'null'
  return origin === 'null' ? configured : origin
}

function hostName(host: string): string {
  const bracketed = /^\[([^\]]*)\]/.exec(host)
  if (bracketed?.[1] !== undefined) return bracketed[1]
  const colon = host.lastIndexOf(':')
  return (colon === -1 ? host : host.slice(0, colon)).slice(0, 200).toLowerCase()
}

function isKnownHost(known: ReadonlySet<string>, host: string): boolean {
  const name = hostName(host)
  return isIP(name) !== 0 || name === 'localhost' || name.endsWith('.localhost') || known.has(name)
}

/** Exactly as a browser writes it. Whoever can change what comes over plain HTTP is not the server behind TLS. */
function isOwn(origin: string, { host, isSecure }: Addressee): boolean {
  const [, scheme] = /^(https?):\/\//.exec(origin) ?? []
  if (scheme === undefined || (isSecure && scheme === 'http')) return false
  if (host === undefined || !/^[^/?#@\\\s]+$/.test(host)) return false
  const own = `${scheme}://${host}`
  return URL.canParse(own) && new URL(own).origin === origin
}
