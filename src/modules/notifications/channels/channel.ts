/** What a channel is: a way to deliver notifications. `index.ts` lists all. */
import type { HttpPost } from '../../../runners/index.ts'
import { HttpProblem } from '../../../runners/index.ts'
import type { JsonSchema } from '../../../lib/schema/index.ts'
import type { Condition } from '../types.ts'
import { readJson, writeJson } from '../../../lib/json/index.ts'

/** How urgent a message is. */
export type Level = 'error' | 'warning' | 'success' | 'info'

/** A message as a channel gets it: plain text everywhere, secrets masked. Channels escape what their format needs. */
export interface Notice {
  /** Stable id of the notification: the same in each attempt. */
  readonly id: string
  readonly condition: Condition | 'digest' | 'test'
  readonly level: Level
  /** What it is about: the reference of a rule, else of an action. Empty for a digest and a test. */
  readonly job: string
  /** One line. */
  readonly title: string
  /** The text of the author, else empty. It replaces `facts` and `output`. */
  readonly text: string
  readonly facts: readonly (readonly [label: string, value: string])[]
  /** The end of the standard error, or the list of a digest; empty: none. */
  readonly output: string
  /** Page in the web client; empty: none. */
  readonly link: string
  /** Wire timestamp of the event. */
  readonly timestamp: string
  /** Recipients that the author of the rule has chosen; empty: those of the destination. */
  readonly to: readonly string[]
  /** What programs read. */
  readonly data: Readonly<Record<string, unknown>>
}

/** Settings of a destination, secrets included; they fit the schemas of the channel, except that templates were rendered. */
export type Settings = Readonly<Record<string, unknown>>

/** What a channel sends with. */
export interface SendTools {
  readonly post: HttpPost
  /** Runs a program until it ends. Resolves with its exit code and the end of its standard error. */
  readonly run: (program: {
    file: string
    args: string[]
    stdin: Uint8Array
  }) => Promise<{ code: number; error: string }>
  /** Seconds since the epoch. */
  readonly now: () => number
  /** Aborted when the time is over. */
  readonly signal: AbortSignal
}

export interface Channel {
  readonly kind: string
  /** Schemas of its settings. Texts may hold templates over `svckv.system`. */
  readonly settings: Readonly<Record<string, JsonSchema>>
  readonly required: readonly string[]
  /** Settings that are secrets, or contain one. */
  readonly secrets: readonly string[]
  /** Schemes of URLs that it understands, without `:`. */
  readonly schemes: readonly string[]
  /** Settings that a URL stands for. @throws UrlProblem */
  readonly fromUrl: (url: AppriseUrl) => Settings
  /** Whether a rule may choose the recipients. */
  readonly hasRecipients?: true
  /** Whether many messages can become one; else each is sent. */
  readonly isDigested: boolean
  /** Sends one message. Resolves with what the receiver says, short. @throws SendFailure */
  readonly send: (notice: Notice, settings: Settings, tools: SendTools) => Promise<string>
}

/** Why a message was not delivered; its text may contain secrets, which the sender masks. */
export class SendFailure extends Error {
  /** Repeating it cannot help. */
  readonly isFinal: boolean
  /** When the receiver wants the next attempt. */
  readonly retryAfterSeconds: number | undefined
  constructor(message: string, isFinal = false, retryAfterSeconds?: number) {
    super(message)
    this.name = 'SendFailure'
    this.isFinal = isFinal
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** A URL that does not mean a destination. */
export class UrlProblem extends Error {}

/** The parts of a URL such as `slack://A/B/C`, decoded. */
export interface AppriseUrl {
  scheme: string
  user: string
  password: string
  host: string
  /** Undefined: the default. */
  port: number | undefined
  path: readonly string[]
  query: ReadonlyMap<string, string>
}

/** @throws UrlProblem */
export function readAppriseUrl(text: string): AppriseUrl {
  const [, scheme = '', rest = ''] = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/is.exec(text.trim()) ?? []
  if (scheme === '') throw new UrlProblem('is not a URL such as slack://A/B/C')
  // The parser of the platform changes the letter case and the form of hosts of known schemes only.
  const [beforeQuery = '', ...queries] = rest.split('?')
  const [authority = '', ...path] = beforeQuery.split('/')
  const at = authority.lastIndexOf('@')
  const [user = '', ...passwords] = at < 0 ? [''] : authority.slice(0, at).split(':')
  const place = authority.slice(at + 1)
  const [, host = '', port] = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(place) ?? [undefined, '', undefined]
  if (place !== '' && host === '') throw new UrlProblem('has no host that can be read')
  return {
    scheme: scheme.toLowerCase(),
    user: decoded(user),
    password: decoded(passwords.join(':')),
    host: decoded(host),
    port: port === undefined ? undefined : Number(port),
    path: path.filter((part) => part !== '').map(decoded),
    query: new Map(new URLSearchParams(queries.join('?'))),
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** `https://host:port`, or with HTTP. */
export function originOf({ host, port }: AppriseUrl, isSecure: boolean): string {
  if (host === '') throw new UrlProblem('needs a host')
  return `${isSecure ? 'https' : 'http'}://${host}${port === undefined ? '' : `:${port}`}`
}

export function textIn(settings: Settings, name: string): string {
  const value = settings[name]
  return typeof value === 'string' ? value.trim() : typeof value === 'number' ? String(value) : ''
}

const MAX_ANSWER_CHARS = 200

/**
 * Posts JSON, and judges the answer by its status: 2xx is success. Redirects are not followed: the address is the
 * administrator's. Only what the message itself causes is final, because an address or a token can be repaired.
 *
 * @throws SendFailure
 */
export async function postJson(
  { post, signal }: SendTools,
  address: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  const url = urlIn(address)
  const text = typeof body === 'string' ? body : writeJson(body)
  let answer: Awaited<ReturnType<HttpPost>>
  try {
    answer = await post(url, text, { 'content-type': 'application/json', ...headers }, signal)
  } catch (error) {
    if (signal.aborted) throw new SendFailure(`no answer in time from ${url.host}`)
    // Paths of addresses are often secrets; the host is what helps.
    if (error instanceof HttpProblem)
      throw new SendFailure(error.message.replaceAll(url.origin + url.pathname, url.origin))
    throw error
  }
  const said = shortened(answer.body.toString())
  const { statusCode } = answer
  if (statusCode >= 200 && statusCode < 300) return parsed(said, answer.body)
  if (statusCode >= 300 && statusCode < 400) {
    throw new SendFailure(`HTTP ${statusCode}: ${url.host} redirects to another address. Write that address instead.`)
  }
  const retryAfter = Number(headerOf(answer.headers, 'retry-after'))
  throw new SendFailure(
    `HTTP ${statusCode}${said === '' ? '' : `: ${said}`}`,
    [400, 413, 422].includes(statusCode),
    Number.isFinite(retryAfter) && retryAfter > 0 ? retryAfter : undefined,
  )
}

/** @throws SendFailure */
function urlIn(address: string): URL {
  const url = URL.parse(address)
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new SendFailure('the address is not a URL that begins with https:// or http://')
  }
  return url
}

function headerOf(headers: Readonly<Record<string, string>>, wanted: string): string | undefined {
  return Object.entries(headers).find(([name]) => name.toLowerCase() === wanted)?.[1]
}

function parsed(said: string, body: Buffer): unknown {
  try {
    return readJson(body.toString())
  } catch {
    return said
  }
}

export function shortened(text: string): string {
  const line = text
    .replace(/\p{C}+/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  return line.length <= MAX_ANSWER_CHARS ? line : `${line.slice(0, MAX_ANSWER_CHARS)}…`
}
