/** Error messages for a server that does not answer, or refuses a request. */
import http from 'node:http'
import { escapeUnprintable } from '../../lib/log/index.ts'
import { codeOf } from '../../lib/process/index.ts'
import { cliProcess } from '../cli-process.ts'
import { adviceOnVariables } from '../program-names.ts'
import { HttpFailure } from '../failures.ts'
import { parseJson, textOrEmpty, toObject } from './responses.ts'
import type { Proxy } from './proxy.ts'
import type { ClientCredential } from './settings.ts'

/** Why there is no response. @param proxy the proxy that was used */
export function describeConnection(error: Error, origin: string, proxy: Proxy | undefined): string {
  const code = codeOf(error) ?? String(error)
  if (proxy !== undefined) return describeProxied(error, code, origin, proxy)
  switch (code) {
    case 'ECONNREFUSED':
      return (
        `Cannot connect to ${origin}: connection refused. Start a server with "svc serve", ` +
        `or set its address with --url, or with --api-url and --auth-url.`
      )
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `Cannot connect to ${origin}: the host name cannot be resolved.`
    case 'ECONNRESET':
    case 'EPIPE':
    case 'HPE_INVALID_EOF_STATE':
      return `${origin} closed the connection without an answer.`
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return `Cannot connect to ${origin}: the host is unreachable (${code}).`
    default:
      if (code.startsWith('HPE_')) return `${origin} does not answer with HTTP (${code}).`
      return `Cannot connect to ${origin}: ${describeTls(code, error) ?? escapeUnprintable(error.message || code)}`
  }
}

/** Why there is no response on a control socket. */
export function describeSocket(error: Error, path: string): string {
  const code = codeOf(error) ?? String(error)
  switch (code) {
    case 'ENOENT':
    case 'ECONNREFUSED':
      return (
        `No server uses the control socket ${path}. Start one with "svc serve", name its configuration with ` +
        `--config-file, or connect to another server with --api-url.`
      )
    case 'EACCES':
    case 'EPERM':
      return (
        `The control socket ${path} is only for root and the account of the server. Run the command as one of them, or ` +
        `set the address with --api-url and log in.`
      )
    default:
      return `The server at ${path} did not answer: ${escapeUnprintable(error.message || code)}`
  }
}

/** Undefined for errors other than TLS errors. Names in a certificate are untrusted text. */
function describeTls(code: string, error: Error): string | undefined {
  const why = escapeUnprintable(error.message.trim()).slice(0, 300)
  if (/CERT|ISSUER|SIGNATURE|_CRL|CHAIN/.test(code)) {
    const advice = /ISSUER|SELF_SIGNED|UNABLE_TO/.test(code) ? ' To trust it, name its CA with --cacert <path>.' : ''
    return `its certificate is not trusted (${why}).${advice}`
  }
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_'))
    return `it does not answer with TLS (${code}). Check whether the address must be http://.`
  return undefined
}

function describeProxied(error: Error, code: string, origin: string, { url, variable }: Proxy): string {
  const place = `the proxy ${url} (${variable})`
  switch (code) {
    case 'ERR_PROXY_TUNNEL': {
      // The message of the error repeats this around the status line.
      const statusLine = /: (HTTP\/[^]{1,200})$/.exec(error.message)?.[1]
      return `Cannot connect to ${origin}: ${place} refuses the connection (${escapeUnprintable(statusLine ?? error.message)}).`
    }
    case 'ECONNREFUSED':
      return `Cannot connect to ${origin}: ${place} refuses connections. Correct ${variable}, or add the host to no_proxy.`
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `Cannot connect to ${origin}: the host name of ${place} cannot be resolved.`
    case 'ECONNRESET':
    case 'EPIPE':
    case 'HPE_INVALID_EOF_STATE':
      return `The connection to ${origin} through ${place} was closed without an answer.`
    default:
      if (code.startsWith('HPE_')) return `Cannot connect to ${origin}: ${place} does not answer with HTTP (${code}).`
      return (
        `Cannot connect to ${origin} through ${place}: ` +
        (describeTls(code, error) ?? escapeUnprintable(error.message || code))
      )
  }
}

export interface HttpErrorResponse {
  status: number
  /** The words beside it. */
  statusMessage: string | undefined
  /** As much of the body as is read of an error. */
  text: string
  method: string
  /** Of the request, secrets masked. */
  url: string
  /** What to do about the credential; undefined: no advice. */
  advice: string | undefined
  /** The one that was asked through. */
  proxy: Proxy | undefined
}

/** An answer that is an error, in words; other programs than ours may have sent it. */
export function toHttpFailure({
  status,
  statusMessage,
  text,
  method,
  url,
  advice,
  proxy,
}: HttpErrorResponse): HttpFailure {
  const { faultstring: said, code } = toObject(parseJson(text)?.value)
  const reason = escapeUnprintable(statusMessage ?? '') || http.STATUS_CODES[status] || 'Unknown'
  const faultstring = typeof said === 'string' ? said : text.trim().slice(0, 1000) || `${method} was refused`
  const failure = new HttpFailure(status, reason, escapeLines(faultstring), textOrEmpty(code), url)
  // A missing signature is refused with any credential.
  if (advice !== undefined && !failure.code.startsWith('SIGNATURE_')) failure.message += `\n${advice}`
  if (proxy !== undefined && typeof said !== 'string') {
    failure.message += `\nThis may be the response of the proxy ${proxy.url} (${proxy.variable}).`
  }
  return failure
}

/** Advice without a credential. */
const anyLogin = 'Log in with "svc login <user>", set SVC_AUTH_TOKEN or SVC_API_KEY, or use -t/--token or --api-key.'

/** What to do when the server refuses a credential, or needs one. @param ofLogin advice of the login */
export function adviceAbout(credential: ClientCredential | undefined, ofLogin: string = anyLogin): string {
  if (credential?.origin === undefined) {
    const ignored = adviceOnVariables(cliProcess().env)
    return ignored === '' ? ofLogin : `${ofLogin}\n${ignored}`
  }
  return credential.header === 'X-Auth-Token'
    ? `svc sent the token ${credential.origin}. To create a new one: svc auth <user>`
    : `svc sent the API key ${credential.origin}. To create a new one: svc apikey create`
}

function escapeLines(text: string): string {
  return text.split('\n').map(escapeUnprintable).join('\n')
}
