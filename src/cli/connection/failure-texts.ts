/** What is said when the server does not answer, or refuses. */
import http from 'node:http'
import { escapeUnprintable } from '../../lib/log/index.ts'
import { codeOf } from '../../lib/process/index.ts'
import { HttpFailure } from '../failures.ts'
import { parseJson, textOf, toObject } from './answers.ts'
import type { Proxy } from './proxy.ts'
import type { Credential } from './settings.ts'

/** Why no answer came. @param proxy the one that was asked through */
export function describeConnection(error: Error, origin: string, proxy: Proxy | undefined): string {
  const code = codeOf(error) ?? String(error)
  if (proxy !== undefined) return describeProxied(error, code, origin, proxy)
  switch (code) {
    case 'ECONNREFUSED':
      return (
        `Cannot connect to ${origin}: connection refused. Start a server with "svc serve", ` +
        `or name its address with --url, or with --api-url and --auth-url.`
      )
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `Cannot connect to ${origin}: the host name cannot be resolved.`
    case 'ECONNRESET':
    case 'EPIPE':
    case 'HPE_INVALID_EOF_STATE':
      return `${origin} closed the connection before it had answered.`
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return `Cannot connect to ${origin}: it cannot be reached (${code}).`
    default:
      if (code.startsWith('HPE_')) return `${origin} does not answer in HTTP (${code}).`
      return `Cannot connect to ${origin}: ${describeTls(code, error) ?? escapeUnprintable(error.message || code)}`
  }
}

/** Why no answer came by a control socket. */
export function describeSocket(error: Error, path: string): string {
  const code = codeOf(error) ?? String(error)
  switch (code) {
    case 'ENOENT':
    case 'ECONNREFUSED':
      return (
        `No server runs that has the control socket ${path}. Start it with "svc serve"; name its configuration with ` +
        `--config-file, or ask a server elsewhere with --api-url.`
      )
    case 'EACCES':
    case 'EPERM':
      return (
        `The control socket ${path} is for root and the account of the server alone. Run the command as one of them, or ` +
        `name the server with --api-url and log in.`
      )
    default:
      return `The server at ${path} did not answer: ${escapeUnprintable(error.message || code)}`
  }
}

/** Undefined for what has nothing to do with TLS. Names in a certificate are the words of whoever made it. */
function describeTls(code: string, error: Error): string | undefined {
  const why = escapeUnprintable(error.message.trim()).slice(0, 300)
  if (/CERT|ISSUER|SIGNATURE|_CRL|CHAIN/.test(code)) {
    const advice = /ISSUER|SELF_SIGNED|UNABLE_TO/.test(code) ? ' Name its authorities with --cacert <path>.' : ''
    return `its certificate is not trusted (${why}).${advice}`
  }
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_')) return `it does not answer in TLS (${code}); is it http://?`
  return undefined
}

function describeProxied(error: Error, code: string, origin: string, { url, variable }: Proxy): string {
  const place = `the proxy ${url} (${variable})`
  switch (code) {
    case 'ERR_PROXY_TUNNEL': {
      // Its own words repeat all of this around the status line.
      const statusLine = /: (HTTP\/[^]{1,200})$/.exec(error.message)?.[1]
      return `Cannot connect to ${origin}: ${place} does not lead there (${escapeUnprintable(statusLine ?? error.message)}).`
    }
    case 'ECONNREFUSED':
      return `Cannot connect to ${origin}: ${place} refuses connections. Correct ${variable}, or name the host in no_proxy.`
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `Cannot connect to ${origin}: the host name of ${place} cannot be resolved.`
    case 'ECONNRESET':
    case 'EPIPE':
    case 'HPE_INVALID_EOF_STATE':
      return `The connection to ${origin} through ${place} was closed before there was an answer.`
    default:
      if (code.startsWith('HPE_')) return `What ${place} answers for ${origin} is not HTTP (${code}).`
      return (
        `Cannot connect to ${origin} through ${place}: ` +
        (describeTls(code, error) ?? escapeUnprintable(error.message || code))
      )
  }
}

export interface Refusal {
  status: number
  /** The words beside it. */
  statusMessage: string | undefined
  /** As much of the body as is read of an error. */
  text: string
  method: string
  /** Of the request, secrets masked. */
  url: string
  /** What can be done about the credential; undefined: nothing is known. */
  advice: string | undefined
  /** The one that was asked through. */
  proxy: Proxy | undefined
}

/** An answer that is an error, in words; other programs than ours may have sent it. */
export function toHttpFailure({ status, statusMessage, text, method, url, advice, proxy }: Refusal): HttpFailure {
  const { faultstring: said, code } = toObject(parseJson(text)?.value)
  const reason = escapeUnprintable(statusMessage ?? '') || http.STATUS_CODES[status] || 'Unknown'
  const faultstring = typeof said === 'string' ? said : text.trim().slice(0, 1000) || `${method} was refused`
  const failure = new HttpFailure(status, reason, escapeLines(faultstring), textOf(code), url)
  // What has to be signed is refused whoever sends it.
  if (advice !== undefined && !failure.code.startsWith('SIGNATURE_')) failure.message += `\n${advice}`
  if (proxy !== undefined && typeof said !== 'string') {
    failure.message += `\nThat may be the answer of the proxy ${proxy.url}, which ${proxy.variable} names.`
  }
  return failure
}

/** For who has no credential. */
const anyLogin = 'Log in with "svc login <user>"; or set SVC_AUTH_TOKEN or SVC_API_KEY, or use -t/--token or --api-key.'

/** What can be done when the server refuses a credential, or wants one. @param ofLogin what the login itself advises */
export function adviceAbout(credential: Credential | undefined, ofLogin: string = anyLogin): string {
  if (credential?.origin === undefined) return ofLogin
  return credential.header === 'X-Auth-Token'
    ? `The token ${credential.origin} was sent; "svc auth <user>" makes a new one.`
    : `The API key ${credential.origin} was sent; "svc apikey create" makes a new one.`
}

function escapeLines(text: string): string {
  return text.split('\n').map(escapeUnprintable).join('\n')
}
