/** Decides which web pages may call the server. */
import { isIP } from 'node:net'
import { hostname } from 'node:os'
import type { IncomingHttpHeaders } from 'node:http'
import type { Config } from '../config/index.ts'
import { namesOf } from '../core/compat/index.ts'
import { originRefused } from '../core/errors.ts'
import { shown } from '../lib/text/index.ts'

export interface OriginPolicy {
  /** `Access-Control-*` headers for a request with this `Origin`. */
  corsHeaders(origin: string | undefined): Record<string, string>
  /**
   * Refuses requests that a foreign page makes a browser send. A page can POST text to any address, and with DNS
   * rebinding it can read the answers.
   *
   * @throws ORIGIN_REFUSED
   */
  check(method: string, page: Sender, to: Addressee): void
  /** Whether a page that is neither the server's own nor listed by name makes a browser send this; `*` does not count. */
  isForeign(page: Sender, to: Addressee): boolean
}

/** The page that makes a browser send a request, as the browser names it. Programs name none. */
export interface Sender {
  /** The header `Origin`. */
  origin: string | undefined
  /** The header `Sec-Fetch-Site`: it may come without `Origin`. */
  site?: string | undefined
}

/** The headers of a request that name its page. */
export function senderOf({ origin, 'sec-fetch-site': site }: IncomingHttpHeaders): Sender {
  return { origin, site: Array.isArray(site) ? site.join() : site }
}

/** The server as a request addresses it. */
export interface Addressee {
  /** The header `Host`. */
  host: string | undefined
  /** Whether the request is known to have come over TLS; some proxies do not say. */
  isSecure: boolean
}

export interface OriginPolicySettings {
  /** `api.allow_origin`; `*` admits every page, without credentials. */
  allowedOrigins: readonly string[]
  /** The server's own public address, where a proxy does not pass `Host`; default none. */
  ownOrigins?: readonly string[]
  /**
   * The host names of the server; `*` stands for all. Set while authentication is off: a browser's request then needs no
   * credential, so a name that an attacker has pointed at the server must not count.
   */
  knownHosts: ReadonlySet<string> | undefined
  /** Further request headers that listed pages may send, besides ours. */
  moreHeaders?: readonly string[]
}

/** Methods that change nothing; a foreign page cannot read their answers. */
const harmless: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

const fixedHeaders = {
  'Access-Control-Allow-Methods': 'GET,POST,PUT,DELETE,OPTIONS',
  'Access-Control-Allow-Headers': 'Content-Type,Authorization,X-Auth-Token,Svc-Api-Key,X-Request-ID,Last-Event-ID',
  'Access-Control-Expose-Headers': 'Content-Type,X-Limit,X-Total-Count,X-Request-ID',
}

/** Origins and host names from the configuration. */
export function originSettings(config: Config): OriginPolicySettings {
  const { auth, api, stream, webui, compat } = config
  const publicUrls = [auth.api_url, webui.webui_base_url].filter((url) => url !== '')
  const machine = hostname()
  const hosts = [
    auth.host,
    api.host,
    stream.host,
    machine,
    ...machine.split('.', 1),
    ...publicUrls.map((url) => new URL(url).hostname),
    ...api.allowed_hosts,
  ]
  return {
    allowedOrigins: api.allow_origin,
    ownOrigins: auth.api_url === '' ? [] : [new URL(auth.api_url).origin],
    moreHeaders: compat.stackstorm ? ['Svc-Dialect', ...namesOf('header').keys()] : [],
    knownHosts: auth.enable || api.allowed_hosts.includes('*') ? undefined : new Set(hosts),
  }
}

export function createOriginPolicy(settings: OriginPolicySettings): OriginPolicy {
  const allowed = new Set(
    settings.allowedOrigins.filter((origin) => origin !== '*' && origin !== 'null').map(asSentByBrowsers),
  )
  const knownHosts = settings.knownHosts && new Set([...settings.knownHosts].map((host) => host.toLowerCase()))
  const allowsAny = settings.allowedOrigins.includes('*')
  const [first] = allowed
  const own = new Set(settings.ownOrigins)
  const headers = {
    ...fixedHeaders,
    'Access-Control-Allow-Headers': [
      fixedHeaders['Access-Control-Allow-Headers'],
      ...(settings.moreHeaders ?? []),
    ].join(),
  }

  function isForeign({ origin, site }: Sender, to: Addressee): boolean {
    // `same-site` is another port or a sibling name: somebody else may serve the page.
    if (origin === undefined) return site !== undefined && site !== 'same-origin' && site !== 'none'
    return !allowed.has(origin) && !own.has(origin) && !isOwn(origin, to)
  }

  return {
    isForeign,
    corsHeaders(origin) {
      if (allowsAny && (origin === undefined || !allowed.has(origin))) {
        return { 'Access-Control-Allow-Origin': '*', Vary: 'Origin', ...headers }
      }
      const named = origin !== undefined && allowed.has(origin) ? origin : first
      if (named === undefined) return headers
      return {
        'Access-Control-Allow-Origin': named,
        'Access-Control-Allow-Credentials': 'true',
        Vary: 'Origin',
        ...headers,
      }
    },
    check(method, page, to) {
      const { host } = to
      if (knownHosts !== undefined && host !== undefined && !isKnownHost(knownHosts, host)) {
        throw originRefused(
          `The server is not known as "${shown(hostName(host))}". A proxy in front must pass Host unchanged. List the name in api.allowed_hosts, use an address, or set auth.enable = True.`,
        )
      }
      if (harmless.has(method) || allowsAny || !isForeign(page, to)) return
      throw originRefused(
        page.origin === undefined
          ? 'A page of another origin made the browser send this request. To allow that page, list its origin in api.allow_origin.'
          : `Pages of the origin "${shown(page.origin)}" cannot send changes to this server, addressed as "${shown(host ?? '')}". Is that its own address? Then the proxy in front must pass Host unchanged. Else list the origin in api.allow_origin.`,
      )
    },
  }
}

/** `HTTP://Example.com:80/` becomes `http://example.com`, as in the header. */
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

/**
 * Compares the header exactly. A page over plain HTTP is foreign to a TLS server, because an attacker may have changed
 * it.
 */
function isOwn(origin: string, { host, isSecure }: Addressee): boolean {
  const [, scheme] = /^(https?):\/\//.exec(origin) ?? []
  if (scheme === undefined || (isSecure && scheme === 'http')) return false
  if (host === undefined || !/^[^/?#@\\\s]+$/.test(host)) return false
  const own = `${scheme}://${host}`
  return URL.canParse(own) && new URL(own).origin === origin
}
