/**
 * Talks HTTP to the server: one kept connection per address, answers bounded, every failure in words.
 *
 * `node:http` and not `fetch`: it is loaded in half the time, and a command must answer at once.
 */
import http from 'node:http'
import { refuseInfinite } from '../../lib/text/index.ts'
import { createRedactor, escapeUnprintable } from '../../lib/log/index.ts'
import { CliFailure, ConnectionFailure, Interrupted } from '../failures.ts'
import { createAgents, secureHttp } from './agents.ts'
import { isDeeper, MAX_DEPTH, parseJson, recordIn, textOf, type Answer } from './answers.ts'
import { createDebugLines } from './debug-lines.ts'
import { adviceAbout, describeConnection, describeSocket, toHttpFailure } from './failure-texts.ts'
import { isCredentialText, type Credential, type Settings } from './settings.ts'

/** A server that accepts a request and then says nothing for this long is given up. */
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
  /** How long the server may think about the answer. Default a minute. */
  patienceMs?: number
  /** Stands for the path in what is printed, when that holds a secret. */
  shownPath?: string
  /** Asks the authentication service in place of the API. Default false. */
  isForAuth?: boolean
  /** How large the answer may be. Default 256 MiB. */
  maxBytes?: number
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
  /** Another credential when the server has refused the first one; undefined when there is none. */
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
  /** It is the login itself, so that no advice to log in is given when it is refused. */
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
      throw new CliFailure(`What is to be sent is nested deeper than ${MAX_DEPTH} levels; no server takes that.`)
    }
    const { patienceMs = SILENCE_MS } = request
    const body = request.body === undefined ? request.bytes : encode(request.body)
    const headers = headersFor(body, request)
    const { agent, proxy } = agents.wayTo(url)
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
    const text = await readText(response, new URL(url).origin, {
      maxBytes: request.maxBytes ?? MAX_ANSWER_BYTES,
      isCut: false,
    })
    if (settings.debug) debug(debugLines.ofAnswer(status, response.statusMessage, text))
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
      // Anything else, kept as a token, would be in the way of every further command.
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
    maskNames: (names) => debugLines.maskNames(names),
    close: () => agents.close(),
  }
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

/** The address of a request, as it may be printed once its query is masked. */
function shownUrl({ base, path, shownPath, query = {} }: Outgoing): string {
  return `${base}${shownPath ?? path}${queryText(query)}`
}

/** @throws CliFailure for a number that would arrive as null */
function encode(body: unknown): Buffer {
  try {
    return Buffer.from(JSON.stringify(body, refuseInfinite))
  } catch (error) {
    if (error instanceof RangeError) throw new CliFailure(`What is to be sent ${error.message}`)
    throw error
  }
}

function queryText(query: Query): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, String(value))
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}
