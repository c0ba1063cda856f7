/**
 * HTTP client: one kept-alive connection per address, responses of limited size, errors as readable messages.
 *
 * `node:http` and not `fetch`, because it loads in half the time.
 */
import { isCalledAsStackstorm } from '../program-names.ts'
import http from 'node:http'
import { createRedactor, escapeUnprintable } from '../../lib/log/index.ts'
import { CliFailure, ConnectionFailure, Interrupted } from '../failures.ts'
import { createAgents, secureHttp } from './agents.ts'
import { isDeeper, MAX_DEPTH, parseJson, recordIn, textOrEmpty, type ApiResponse } from './responses.ts'
import { createDebugLines } from './debug-lines.ts'
import { adviceAbout, describeConnection, describeSocket, toHttpFailure } from './failure-texts.ts'
import { isCredentialText, type ClientCredential, type Settings } from './settings.ts'
import { writeFiniteJson } from '../../lib/json/index.ts'

/** Default time to wait for the response. */
const SILENCE_MS = 60_000
const MAX_ANSWER_BYTES = 256 * 1024 * 1024
const MAX_ERROR_BYTES = 64 * 1024

export type Query = Record<string, string | number | boolean | undefined>

export interface JsonRequest {
  query?: Query
  body?: unknown
  /** Sent as it is, in place of `body`; its type is one of the headers. */
  bytes?: Buffer
  headers?: Record<string, string>
  /** Time to wait for the response. Default one minute. */
  timeoutMs?: number
  /** Printed instead of the path, when the path contains a secret. */
  shownPath?: string
  /** Sends the request to the authentication service instead of the API. Default false. */
  isForAuth?: boolean
  /** Maximum size of the response. Default 256 MiB. */
  maxBytes?: number
}

/** A user as a chat system knows it. */
export interface Nickname {
  nickname: string
  /** Such as `slack`. */
  origin: string
}

export interface Client {
  readonly apiUrl: string
  /**
   * Path below the address of the API, such as `/executions`, or of the authentication service.
   *
   * @throws HttpFailure, ConnectionFailure, Interrupted
   */
  call(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, request?: JsonRequest): Promise<ApiResponse>
  /**
   * Logs in: a token of the authentication service. The password goes alone, without any other credential.
   *
   * @param forUser whose token it is, if the account is a service that may have one; default: its own
   * @throws as `call`, and CliFailure for a name that cannot be sent, or for an answer without a token
   */
  createToken(
    user: string,
    password: string,
    ttlSeconds: number | undefined,
    forUser?: string | Nickname,
  ): Promise<ApiResponse>
  /** Text below the API's address, such as output: the response, once it has begun with 200. */
  openText(path: string, query: Query): Promise<http.IncomingMessage>
  /** An event stream below the stream address: the response, once it has begun with 200. */
  openStream(path: string, query: Query, headers: Record<string, string>): Promise<http.IncomingMessage>
  /** Values under these names are masked in what `--debug` prints. */
  maskNames(names: Iterable<string>): void
  close(): void
}

/** Provides the credential when the settings have none. */
export interface ClientLogin {
  /** Asked before each request. Undefined: the request goes without. */
  find(): Promise<ClientCredential | undefined>
  /** Another credential when the server has refused the first one; undefined when there is none. */
  renew(): Promise<ClientCredential | undefined>
  /** What to do when the server refuses the credential. */
  readonly advice: string
}

export interface ClientOptions {
  settings: Settings
  login?: ClientLogin | undefined
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
  credential?: ClientCredential | undefined
  basicAuth?: string | undefined
  /** This request is the login itself: a refusal must not advise to log in. */
  isLogin?: boolean
}

export function createClient({ settings, login, interrupted, warn, debug, env }: ClientOptions): Client {
  const { socket } = settings
  const agents = createAgents(settings, warn, env)
  const redactor = createRedactor(true)
  const debugLines = createDebugLines(settings, redactor, env)

  /** Resolves when the head of the answer is there. */
  async function send(method: string, request: Outgoing): Promise<http.IncomingMessage> {
    if (interrupted.aborted) throw new Interrupted()
    const url = new URL(request.base)
    const target = `${url.pathname.replace(/\/$/, '')}${request.path}${queryText(request.query ?? {})}`
    if (isDeeper(request.body, MAX_DEPTH)) {
      throw new CliFailure(`The request is nested deeper than ${MAX_DEPTH} levels, which no server accepts.`)
    }
    const { timeoutMs = SILENCE_MS } = request
    const body = request.body === undefined ? request.bytes : encode(request.body)
    const headers = headersFor(body, request)
    const { agent, proxy } = agents.routeTo(url)
    if (settings.debug) {
      const { basicAuth, body: json, bytes } = request
      debug(debugLines.ofRequest({ method, url: shownUrl(request), headers, basicAuth, body: json, bytes, proxy }))
    }
    return new Promise((resolve, reject) => {
      const sent = (url.protocol === 'https:' ? secureHttp() : http).request({
        protocol: url.protocol,
        // Literal IPv6 addresses are bracketed in URLs alone.
        hostname: url.hostname.replace(/^\[|\]$/g, ''),
        ...(url.port === '' ? {} : { port: url.port }),
        ...(socket === undefined ? {} : { socketPath: socket.address }),
        method,
        path: target,
        headers,
        agent,
        signal: interrupted,
      })
      sent.setTimeout(timeoutMs, () =>
        sent.destroy(new ConnectionFailure(`${url.origin} did not answer within ${timeoutMs / 1000} seconds.`)),
      )
      sent.once('response', resolve)
      sent.once('error', (error) => reject(toFailure(error, url.origin)))
      sent.end(body)
    })
  }

  /** `send` with the credential. After a 401 it retries once with a renewed credential. */
  async function sendAs(method: string, request: Outgoing): Promise<http.IncomingMessage> {
    const { basicAuth, credential = await login?.find() } = settings
    const response = await send(method, { ...request, basicAuth, credential })
    if (response.statusCode !== 401 || settings.credential !== undefined || credential === undefined) return response
    const renewed = await login?.renew()
    if (renewed === undefined) return response
    response.resume()
    return send(method, { ...request, basicAuth, credential: renewed })
  }

  async function readAnswer(response: http.IncomingMessage, method: string, request: Outgoing): Promise<ApiResponse> {
    const status = response.statusCode ?? 0
    if (status < 200 || status > 299) throw await failure(response, method, request)
    const url = shownUrl(request)
    const text = await readText(response, new URL(url).origin, {
      maxBytes: request.maxBytes ?? MAX_ANSWER_BYTES,
      isCut: false,
    })
    if (settings.debug) debug(debugLines.ofAnswer(status, response.statusMessage, text))
    if (text === '') return { status, headers: response.headers, body: undefined }
    const parsed = parseJson(text)
    if (parsed === undefined) {
      throw new CliFailure(
        `The response of ${redactor.maskUrl(url)} is not JSON. Check that this is the API of an svc server.`,
      )
    }
    return { status, headers: response.headers, body: parsed.value }
  }

  /** A response whose text is read as it comes. */
  async function opened(response: http.IncomingMessage, request: Outgoing): Promise<http.IncomingMessage> {
    if (response.statusCode !== 200) throw await failure(response, 'GET', request)
    if (settings.debug) debug(debugLines.ofAnswer(response.statusCode, response.statusMessage, ''))
    return response
  }

  function toFailure(error: Error, origin: string): Error {
    if (interrupted.aborted) return new Interrupted()
    if (error instanceof CliFailure) return error
    if (socket !== undefined) return new ConnectionFailure(describeSocket(error, socket.path))
    return new ConnectionFailure(describeConnection(error, origin, agents.proxyOf(origin)))
  }

  /** All of a body, or as much as there is room for: what is longer is cut, or else an error. */
  async function readText(
    response: http.IncomingMessage,
    origin: string,
    { maxBytes, isCut }: { maxBytes: number; isCut: boolean },
  ): Promise<string> {
    const chunks: Buffer[] = []
    let size = 0
    try {
      for await (const chunk of response as AsyncIterable<Buffer>) {
        size += chunk.length
        if (size > maxBytes && isCut) {
          chunks.push(chunk.subarray(0, chunk.length - (size - maxBytes)))
          // Leaving the loop ends the connection as well.
          break
        }
        if (size > maxBytes) {
          response.destroy()
          throw new CliFailure(
            `The response of ${origin} is larger than ${maxBytes / 1024 / 1024} MiB. Request less data.`,
          )
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
        `${redactor.maskUrl(url)} redirects to ${escapeUnprintable(location)}. Set that address with --url or --api-url.`,
      )
    }
    // The status matters more than the rest of a long body.
    const text = await readText(response, origin, { maxBytes: MAX_ERROR_BYTES, isCut: true })
    if (settings.debug) debug(debugLines.ofAnswer(status, response.statusMessage, text))
    return toHttpFailure({
      status,
      statusMessage: response.statusMessage,
      text,
      method,
      url: redactor.maskUrl(url),
      advice: status === 401 && request.isLogin !== true ? adviceAbout(settings.credential, login?.advice) : undefined,
      proxy: agents.proxyOf(origin),
    })
  }

  return {
    apiUrl: settings.apiUrl,
    async call(method, path, request = {}) {
      const base = request.isForAuth === true ? settings.authUrl : settings.apiUrl
      const outgoing = { ...request, base, path, headers: { Accept: 'application/json', ...request.headers } }
      return readAnswer(await sendAs(method, outgoing), method, outgoing)
    },
    async createToken(user, password, ttlSeconds, forUser) {
      // The server would read the text after the first colon as the password.
      if (user.includes(':')) throw new CliFailure('A user name must not contain a colon.')
      const outgoing = {
        base: settings.authUrl,
        path: '/tokens',
        body: {
          ...(ttlSeconds === undefined ? {} : { ttl: ttlSeconds }),
          ...(typeof forUser === 'string' ? { user: forUser } : {}),
          ...(typeof forUser === 'object'
            ? { impersonate_user: forUser.nickname, nickname_origin: forUser.origin }
            : {}),
        },
        headers: { Accept: 'application/json' },
        basicAuth: `${user}:${password}`,
        isLogin: true,
      }
      const answer = await readAnswer(await send('POST', outgoing), 'POST', outgoing)
      const { token, expiry } = recordIn(answer)
      // Anything else, stored as a token, would break every later command.
      if (!isCredentialText(textOrEmpty(token)) || Number.isNaN(Date.parse(textOrEmpty(expiry)))) {
        throw new CliFailure(
          `${settings.authUrl} did not return a token. Check that --auth-url is the authentication service of an svc server.`,
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
        throw new CliFailure(`${redactor.maskUrl(shownUrl(outgoing))} is not an event stream. Check --stream-url.`)
      }
      return response
    },
    maskNames: (names) => debugLines.maskNames(names),
    close: () => agents.close(),
  }
}

function headersFor(body: Buffer | undefined, request: Outgoing): Record<string, string> {
  const { credential, basicAuth } = request
  const headers: Record<string, string> = { ...request.headers }
  if (isCalledAsStackstorm()) headers['Svc-Dialect'] = 'stackstorm'
  if (request.body !== undefined) headers['Content-Type'] = 'application/json'
  if (body !== undefined) headers['Content-Length'] = String(body.length)
  if (credential !== undefined) headers[credential.header] = credential.value
  if (basicAuth !== undefined) headers['Authorization'] = `Basic ${Buffer.from(basicAuth).toString('base64')}`
  return headers
}

/** The address of a request, as it may be printed once its query is masked. */
function shownUrl({ base, path, shownPath, query = {} }: Outgoing): string {
  return `${base}${shownPath ?? path}${queryText(query)}`
}

/** @throws CliFailure for a number that would arrive as null */
function encode(body: unknown): Buffer {
  try {
    return Buffer.from(writeFiniteJson(body))
  } catch (error) {
    if (error instanceof RangeError) throw new CliFailure(`The request ${error.message}`)
    throw error
  }
}

function queryText(query: Query): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, String(value))
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}
