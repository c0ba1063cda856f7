/**
 * Talks HTTP to the server: one kept connection per address, answers bounded, every failure in words.
 *
 * `node:http` and not `fetch`: it is loaded in half the time, and a command must answer at once.
 */
import http from 'node:http'
import { readBoundedFileSync } from '../../bounded-file.ts'
import { readJson } from '../../json.ts'
import { createRedactor, escapeUnprintable, secretMask } from '../../redact.ts'
import { codeOf } from '../../system-error.ts'
import { CliFailure, ConnectionFailure, HttpFailure, Interrupted } from '../failures.ts'
import { canUseProxies, findProxy, namesProxy, type Proxy } from './proxy.ts'
import { recordIn, textOf } from './answers.ts'
import { isCredentialText, type Credential, type Settings } from './settings.ts'
import { quote } from '../../shell-words.ts'

/** A server that accepts a request and then says nothing for this long is given up. */
const SILENCE_MS = 60_000
const MAX_ANSWER_BYTES = 256 * 1024 * 1024
const MAX_ERROR_BYTES = 64 * 1024
const MAX_AUTHORITIES_BYTES = 16 * 1024 * 1024
/** Deeper ones could not be printed. */
const MAX_DEPTH = 1000
const MAX_DEBUG_LENGTH = 20_000

export type Query = Record<string, string | number | boolean | undefined>

export interface JsonRequest {
  query?: Query
  body?: unknown
  /** Sent as it is, in place of `body`; its type is one of the headers. */
  bytes?: Buffer
  headers?: Record<string, string>
  /** How long the server may think about the answer. Default a minute. */
  patienceMs?: number
  /** Stands for the path in what is printed, when that holds a secret. */
  shownPath?: string
  /** Asks the authentication service in place of the API. Default false. */
  isForAuth?: boolean
  /** How large the answer may be. Default 256 MiB. */
  maxBytes?: number
}

export interface Answer {
  status: number
  headers: http.IncomingHttpHeaders
  body: unknown
}

export interface Client {
  readonly apiUrl: string
  /**
   * Path below the address of the API, such as `/executions`, or of the authentication service.
   *
   * @throws HttpFailure, ConnectionFailure, Interrupted
   */
  call(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, request?: JsonRequest): Promise<Answer>
  /**
   * Logs in: a token of the authentication service. The password goes alone, without any other credential.
   *
   * @throws as `call`, and CliFailure for a name that cannot be sent, or for an answer without a token
   */
  createToken(user: string, password: string, ttlSeconds: number | undefined): Promise<Answer>
  /** Text below the API's address, such as output: the response, once it has begun with 200. */
  openText(path: string, query: Query): Promise<http.IncomingMessage>
  /** An event stream below the stream address: the response, once it has begun with 200. */
  openStream(path: string, query: Query, headers: Record<string, string>): Promise<http.IncomingMessage>
  /** Values under these names are masked in what `--debug` prints. */
  maskNames(names: Iterable<string>): void
  close(): void
}

/** Finds the credential where the settings have none. */
export interface Login {
  /** Asked before each request. Undefined: the request goes without. */
  find(): Promise<Credential | undefined>
  /** In place of one that the server refused; undefined: there is no other. */
  renew(): Promise<Credential | undefined>
  /** What somebody whom the server refuses can do. */
  readonly advice: string
}

export interface ClientOptions {
  settings: Settings
  login?: Login | undefined
  /** Aborted by Ctrl-C. */
  interrupted: AbortSignal
  /** A line for standard error. */
  warn: (text: string) => void
  debug: (text: string) => void
  env: NodeJS.ProcessEnv
}

/** One segment of a path. Names that a path would resolve away stay what they are; halves of characters are sent as U+FFFD. */
export function segment(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(/^\.{1,2}$/, (dots) => dots.replaceAll('.', '%2E'))
}

interface Outgoing extends JsonRequest {
  base: string
  path: string
  headers: Record<string, string>
  credential?: Credential | undefined
  basicAuth?: string | undefined
  /** Does the user's login, so that there is no other way to tell of. */
  isLogin?: boolean
}

/** How a server is reached; by its origin. */
interface Way {
  agent: http.Agent
  proxy: Proxy | undefined
}

export function createClient({ settings, login, interrupted, warn, debug, env }: ClientOptions): Client {
  const ways = new Map<string, Way>()
  let isProxyIgnored = false
  const secretNames = new Set<string>()
  const redactor = createRedactor(true)
  const authorities = typeof settings.cacert === 'string' ? readAuthorities(settings.cacert) : undefined

  function wayTo(url: URL): Way {
    let way = ways.get(url.origin)
    if (way === undefined) {
      way = findWay(url)
      ways.set(url.origin, way)
    }
    return way
  }

  function findWay(url: URL): Way {
    const proxy = usableProxy(url)
    const options = { keepAlive: true, proxyEnv: proxy?.agentEnv ?? {} }
    if (url.protocol === 'http:') return { agent: new http.Agent(options), proxy }
    if (settings.cacert === false && !settings.silenceSslWarnings) {
      warn(`The certificate of ${url.host} is not verified; name its authorities with --cacert, or --cacert true.`)
    }
    const agent = new (secureHttp().Agent)({
      ...options,
      rejectUnauthorized: settings.cacert !== false,
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

  function headersFor(body: Buffer | undefined, request: Outgoing): Record<string, string> {
    const { credential, basicAuth } = request
    const headers: Record<string, string> = { ...request.headers }
    if (request.body !== undefined) headers['Content-Type'] = 'application/json'
    if (body !== undefined) headers['Content-Length'] = String(body.length)
    if (credential !== undefined) headers[credential.header] = credential.value
    if (basicAuth !== undefined) headers['Authorization'] = `Basic ${Buffer.from(basicAuth).toString('base64')}`
    return headers
  }

  /** Resolves when the head of the answer is there. */
  async function send(method: string, request: Outgoing): Promise<http.IncomingMessage> {
    if (interrupted.aborted) throw new Interrupted()
    const url = new URL(request.base)
    const target = `${url.pathname.replace(/\/$/, '')}${request.path}${queryText(request.query ?? {})}`
    if (isDeeper(request.body, MAX_DEPTH)) {
      throw new CliFailure(`What is to be sent is nested deeper than ${MAX_DEPTH} levels; no server takes that.`)
    }
    const { patienceMs = SILENCE_MS } = request
    const body = request.body === undefined ? request.bytes : Buffer.from(JSON.stringify(request.body))
    const headers = headersFor(body, request)
    const { agent, proxy } = wayTo(url)
    if (settings.debug) debug(curlLine(method, request, headers, proxy))
    return new Promise((resolve, reject) => {
      const sent = (url.protocol === 'https:' ? secureHttp() : http).request({
        protocol: url.protocol,
        // Literal IPv6 addresses are bracketed in URLs alone.
        hostname: url.hostname.replace(/^\[|\]$/g, ''),
        ...(url.port === '' ? {} : { port: url.port }),
        method,
        path: target,
        headers,
        agent,
        signal: interrupted,
      })
      sent.setTimeout(patienceMs, () =>
        sent.destroy(new ConnectionFailure(`${url.origin} did not answer within ${patienceMs / 1000} seconds.`)),
      )
      sent.once('response', resolve)
      sent.once('error', (error) => reject(toFailure(error, url.origin)))
      sent.end(body)
    })
  }

  /** `send` with whatever says who is asking; what the server refuses is asked again once with another credential. */
  async function sendAs(method: string, request: Outgoing): Promise<http.IncomingMessage> {
    const { basicAuth, credential = await login?.find() } = settings
    const response = await send(method, { ...request, basicAuth, credential })
    if (response.statusCode !== 401 || settings.credential !== undefined || credential === undefined) return response
    const renewed = await login?.renew()
    if (renewed === undefined) return response
    response.resume()
    return send(method, { ...request, basicAuth, credential: renewed })
  }

  async function readAnswer(response: http.IncomingMessage, method: string, request: Outgoing): Promise<Answer> {
    const status = response.statusCode ?? 0
    if (status < 200 || status > 299) throw await failure(response, method, request)
    const url = shownUrl(request)
    const text = await readText(response, request.maxBytes ?? MAX_ANSWER_BYTES, new URL(url).origin)
    if (settings.debug) debug(answerLines(status, response.statusMessage, text))
    if (text === '') return { status, headers: response.headers, body: undefined }
    const parsed = parseJson(text)
    if (parsed === undefined) {
      throw new CliFailure(`The answer of ${redactor.maskUrl(url)} is not JSON; is this the API of an svc server?`)
    }
    return { status, headers: response.headers, body: parsed.value }
  }

  /** A response whose text is read as it comes. */
  async function opened(response: http.IncomingMessage, request: Outgoing): Promise<http.IncomingMessage> {
    if (response.statusCode !== 200) throw await failure(response, 'GET', request)
    if (settings.debug) debug(answerLines(response.statusCode, response.statusMessage, ''))
    return response
  }

  function toFailure(error: Error, origin: string): Error {
    if (interrupted.aborted) return new Interrupted()
    if (error instanceof CliFailure) return error
    return new ConnectionFailure(describeConnection(error, origin, ways.get(origin)?.proxy))
  }

  async function readText(
    response: http.IncomingMessage,
    maxBytes: number,
    origin: string,
    mayCut = false,
  ): Promise<string> {
    const chunks: Buffer[] = []
    let size = 0
    try {
      for await (const chunk of response as AsyncIterable<Buffer>) {
        size += chunk.length
        if (size > maxBytes && mayCut) {
          chunks.push(chunk.subarray(0, chunk.length - (size - maxBytes)))
          // Leaving the loop ends the connection as well.
          break
        }
        if (size > maxBytes) {
          response.destroy()
          throw new CliFailure(`The answer of ${origin} is larger than ${maxBytes / 1024 / 1024} MiB; ask for less.`)
        }
        chunks.push(chunk)
      }
    } catch (error) {
      throw toFailure(error instanceof Error ? error : new Error(String(error)), origin)
    }
    return Buffer.concat(chunks).toString('utf8')
  }

  async function failure(response: http.IncomingMessage, method: string, request: Outgoing): Promise<CliFailure> {
    const status = response.statusCode ?? 0
    const url = shownUrl(request)
    const origin = new URL(url).origin
    const location = response.headers.location
    if (status >= 300 && status < 400 && location !== undefined) {
      response.resume()
      return new CliFailure(
        `${redactor.maskUrl(url)} has moved to ${escapeUnprintable(location)}; name that address with --url or --api-url.`,
      )
    }
    // What comes after that is of no use to anybody; the status is.
    const text = await readText(response, MAX_ERROR_BYTES, origin, true)
    if (settings.debug) debug(answerLines(status, response.statusMessage, text))
    const body = parseObject(text)
    const reason = escapeUnprintable(response.statusMessage ?? '') || http.STATUS_CODES[status] || 'Unknown'
    const said = body?.['faultstring']
    const faultstring = typeof said === 'string' ? said : text.trim().slice(0, 1000) || `${method} was refused`
    const isRefused = status === 401 && request.isLogin !== true
    const hint = isRefused ? `\n${adviceAbout(settings.credential, login)}` : ''
    const code = body?.['code']
    const maskedUrl = redactor.maskUrl(url)
    const words = escapeLines(faultstring)
    const httpFailure = new HttpFailure(status, reason, words, typeof code === 'string' ? code : '', maskedUrl)
    httpFailure.message += hint
    const proxy = ways.get(origin)?.proxy
    if (proxy !== undefined && typeof said !== 'string') {
      httpFailure.message += `\nThat may be the answer of the proxy ${proxy.url}, which ${proxy.variable} names.`
    }
    return httpFailure
  }

  /** As it would be typed, secrets masked. */
  function curlLine(
    method: string,
    request: Outgoing,
    headers: Record<string, string>,
    proxy: Proxy | undefined,
  ): string {
    const url = shownUrl(request)
    const parts = ['curl', '-X', method]
    if (url.startsWith('https:') && settings.cacert === false) parts.push('-k')
    if (url.startsWith('https:') && typeof settings.cacert === 'string') parts.push('--cacert', quote(settings.cacert))
    if (proxy !== undefined) parts.push('-x', quote(proxy.shownUrl))
    else if (namesProxy(env)) parts.push('--noproxy', quote('*'))
    if (headers['Accept'] === 'text/event-stream') parts.push('-N')
    for (const [name, value] of Object.entries(headers)) {
      if (name === 'Content-Length' || (name === 'Authorization' && request.basicAuth !== undefined)) continue
      parts.push('-H', quote(`${name}: ${redactor.isSecret(name) ? secretMask : value}`))
    }
    const { basicAuth, body, bytes } = request
    if (basicAuth !== undefined) parts.push('-u', quote(`${basicAuth.split(':', 1)[0]}:${secretMask}`))
    if (body !== undefined) parts.push('--data-binary', quote(JSON.stringify(body, mask)))
    if (bytes !== undefined) parts.push('--data-binary', quote(shownBytes(bytes)))
    return escapeUnprintable([...parts, quote(redactor.maskUrl(url))].join(' '))
  }

  /** Where nobody can tell what is a secret, all of it may be one. */
  function shownBytes(bytes: Buffer): string {
    const parsed = parseJson(bytes.toString('utf8'))
    return parsed === undefined ? secretMask : JSON.stringify(parsed.value, mask)
  }

  /** Comments for a shell that all of it is pasted into. */
  function answerLines(status: number, reason: string | undefined, text: string): string {
    const parsed = parseJson(text)
    const shownText = parsed === undefined ? text : JSON.stringify(parsed.value, mask)
    const cut = shownText.length > MAX_DEBUG_LENGTH ? `${shownText.slice(0, MAX_DEBUG_LENGTH)}…` : shownText
    return [`${status} ${reason ?? ''}`, ...(cut === '' ? [] : cut.split('\n'))]
      .map((line) => `# ${escapeUnprintable(line)}`)
      .join('\n')
  }

  function mask(name: string, value: unknown): unknown {
    if (value === null || value === undefined) return value
    if (secretNames.has(name) || redactor.isSecret(name)) return secretMask
    // An inherited environment holds secrets under any name.
    if (name === 'env' && typeof value === 'object') {
      return Object.fromEntries(Object.keys(value).map((variable) => [variable, secretMask]))
    }
    if (typeof value === 'string') return value.replace(loginInUrl, `$1${secretMask}@`)
    // A parameter in the file of an action, say.
    const isSecretSchema = typeof value === 'object' && 'secret' in value && value.secret === true && 'default' in value
    return isSecretSchema ? { ...value, default: secretMask } : value
  }

  return {
    apiUrl: settings.apiUrl,
    async call(method, path, request = {}) {
      const base = request.isForAuth === true ? settings.authUrl : settings.apiUrl
      const outgoing = { ...request, base, path, headers: { Accept: 'application/json', ...request.headers } }
      return readAnswer(await sendAs(method, outgoing), method, outgoing)
    },
    async createToken(user, password, ttlSeconds) {
      // What follows the first colon would be taken for the password.
      if (user.includes(':')) throw new CliFailure('A user name that holds a colon cannot be sent to the server.')
      const outgoing = {
        base: settings.authUrl,
        path: '/tokens',
        body: ttlSeconds === undefined ? {} : { ttl: ttlSeconds },
        headers: { Accept: 'application/json' },
        basicAuth: `${user}:${password}`,
        isLogin: true,
      }
      const answer = await readAnswer(await send('POST', outgoing), 'POST', outgoing)
      const { token, expiry } = recordIn(answer)
      // What is kept, and not one, would be in the way of every further command.
      if (!isCredentialText(textOf(token)) || Number.isNaN(Date.parse(textOf(expiry)))) {
        throw new CliFailure(
          `${settings.authUrl} answered with no token; is --auth-url the authentication service of an svc server?`,
        )
      }
      return answer
    },
    async openText(path, query) {
      const outgoing = { base: settings.apiUrl, path, query, headers: { Accept: 'text/plain' } }
      return opened(await sendAs('GET', outgoing), outgoing)
    },
    async openStream(path, query, headers) {
      const accept = { Accept: 'text/event-stream', ...headers }
      const outgoing = { base: settings.streamUrl, path, query, headers: accept }
      const response = await opened(await sendAs('GET', outgoing), outgoing)
      if (response.headers['content-type']?.startsWith('text/event-stream') !== true) {
        response.destroy()
        throw new CliFailure(`${redactor.maskUrl(shownUrl(outgoing))} is no event stream; see --stream-url.`)
      }
      return response
    },
    maskNames(names) {
      for (const name of names) secretNames.add(name)
    },
    close() {
      for (const { agent } of ways.values()) agent.destroy()
    },
  }
}

/** As in the address of a repository, where the name alone may be a token; the name that all have is none. */
const loginInUrl = /(:\/\/)(?!git@)[^/?#\s@]+@/g

/** For who has no credential. */
const loginAdvice =
  'Log in with "svc login <user>"; or set SVC_AUTH_TOKEN or SVC_API_KEY, or use -t/--token or --api-key.'

function adviceAbout(credential: Credential | undefined, login: Login | undefined): string {
  if (credential?.origin === undefined) return login?.advice ?? loginAdvice
  return credential.header === 'X-Auth-Token'
    ? `The token ${credential.origin} was sent; "svc auth <user>" makes a new one.`
    : `The API key ${credential.origin} was sent; "svc apikey create" makes a new one.`
}

/** The address of a request, as it may be printed once its query is masked. */
function shownUrl({ base, path, shownPath, query = {} }: Outgoing): string {
  return `${base}${shownPath ?? path}${queryText(query)}`
}

/** Loading it takes a third of the time of a command, and most servers are asked without it. */
function secureHttp(): typeof import('node:https') {
  return process.getBuiltinModule('node:https')
}

function readAuthorities(path: string): Buffer {
  const file = readBoundedFileSync(path, MAX_AUTHORITIES_BYTES)
  if ('problem' in file) throw new CliFailure(`The file of --cacert, ${path}, ${file.problem}.`)
  if (file.bytes.includes('-----BEGIN CERTIFICATE-----')) return file.bytes
  throw new CliFailure(`There are no certificates in ${path}, which --cacert names; it has to be a file in PEM form.`)
}

function queryText(query: Query): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, String(value))
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}

function describeConnection(error: Error, origin: string, proxy: Proxy | undefined): string {
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

/** Undefined for what has nothing to do with TLS. Names in a certificate are the words of whoever made it. */
function describeTls(code: string, error: Error): string | undefined {
  const why = escapeUnprintable(error.message.trim()).slice(0, 300)
  if (/CERT|ISSUER|SIGNATURE|_CRL|CHAIN/.test(code)) {
    return `its certificate is not trusted (${why}). Name its authorities with --cacert <path>.`
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

function parseJson(text: string): { value: unknown } | undefined {
  try {
    const value = readJson(text)
    return isDeeper(value, MAX_DEPTH) ? undefined : { value }
  } catch {
    return undefined
  }
}

function isDeeper(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return depth === 0 || Object.values(value).some((inner) => isDeeper(inner, depth - 1))
}

function parseObject(text: string): Record<string, unknown> | undefined {
  const value = parseJson(text)?.value
  return typeof value === 'object' && value !== null ? { ...value } : undefined
}

function escapeLines(text: string): string {
  return text.split('\n').map(escapeUnprintable).join('\n')
}
