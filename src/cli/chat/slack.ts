/**
 * Slack: messages and slash commands over Socket Mode, or slash commands as signed requests; posts over the Web API. Slack's
 * own client libraries speak both; connecting again is ours, because theirs ends the process when the network is away.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { SocketModeClient, LogLevel, type Logger } from '@slack/socket-mode'
import { ErrorCode, WebClient } from '@slack/web-api'
import { writeJson } from '../../lib/json/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import { ChatFailure, type ChatAdapter, type ChatMessage, type ChatPost } from './adapter.ts'
import { mapTexts, placeText } from './attachments.ts'

export interface SlackSettings {
  /** `xoxb-…`, of the bot. */
  token: string
  /** `xapp-…`, for Socket Mode; undefined: messages are not read. */
  appToken: string | undefined
  /** Slash commands as requests to this address; undefined: none are taken. */
  requests: { signingSecret: string; host: string; port: number } | undefined
  /** Address of the Web API. */
  url: string
}

export interface SlackDeps {
  settings: SlackSettings
  readonly log: (text: string) => void
}

type Handle = (message: ChatMessage) => Promise<void>

/** Escaping makes a text five times as long at most, and Slack cuts at 40,000. */
const MAX_CHARS = 8_000
const FIRST_RETRY_MS = 500
const MAX_RETRY_MS = 60_000
const REQUEST_MS = 60_000
/** Slack delivers again what is not confirmed within three seconds. */
const CONFIRM_MS = 2_500
const MAX_REQUEST_BYTES = 64 * 1024
/** Seconds that a signed request may be old. */
const MAX_REQUEST_AGE = 300
/** Requests that were taken, so that none is taken twice. */
const MAX_SEEN = 10_000
/** Messages of a thread, or of a channel, in which a post is looked for. */
const LOOK_BACK = 200
const EVENT_TYPE = 'svc_chat_post'
/** Slack has the fault, or it passes. */
const passing: ReadonlySet<string> = new Set([
  'ratelimited',
  'internal_error',
  'fatal_error',
  'service_unavailable',
  'request_timeout',
  'team_added_to_org',
])

export function createSlack({ settings, log }: SlackDeps): ChatAdapter {
  const clientOptions = {
    slackApiUrl: settings.url,
    retryConfig: { retries: 0 },
    rejectRateLimitedCalls: true,
    timeout: REQUEST_MS,
  }
  const web = new WebClient(settings.token, { ...clientOptions, logger: silent })

  /** @throws ChatFailure */
  async function call<T>(ask: () => Promise<T>, signal: AbortSignal): Promise<T> {
    for (;;) {
      try {
        return await ask()
      } catch (error) {
        if (signal.aborted) throw error
        const wait = waitIn(error)
        if (wait === undefined) throw failureOf(error)
        await delay(wait, undefined, { signal })
      }
    }
  }

  /** Resolves when the connection has ended. @throws ChatFailure */
  async function connect(appToken: string, self: string, handle: Handle, signal: AbortSignal): Promise<void> {
    const socket = new SocketModeClient({
      appToken,
      autoReconnectEnabled: false,
      clientOptions,
      logger: silent,
    })
    const take = (message: ChatMessage | undefined, ack: (answer?: Record<string, unknown>) => Promise<void>): void => {
      const done = message === undefined ? Promise.resolve() : handle(message)
      // What is not confirmed comes again.
      void confirmed(done)
        .then(() =>
          ack(message?.thread === undefined && message !== undefined ? { response_type: 'in_channel' } : undefined),
        )
        .catch((error: unknown) => {
          if (!signal.aborted) log(`slack: ${messageOf(error)}`)
        })
    }
    socket.on('slack_event', ({ type, body, ack }: Envelope) => {
      if (type === 'events_api') take(messageIn(body, self), ack)
      else if (type === 'slash_commands') take(commandIn(body), ack)
      else void ack().catch(() => undefined)
    })
    const ended = new Promise<void>((resolve) => socket.once('disconnected', resolve))
    const end = (): void => void socket.disconnect().catch(() => undefined)
    signal.addEventListener('abort', end)
    try {
      await call(() => socket.start(), signal)
      log('slack: connected')
      if (!signal.aborted) await ended
    } finally {
      signal.removeEventListener('abort', end)
      socket.removeAllListeners('slack_event')
      await Promise.race([socket.disconnect().catch(() => undefined), delay(FIRST_RETRY_MS)])
    }
  }

  async function read(handle: Handle, appToken: string, signal: AbortSignal): Promise<void> {
    let retry = FIRST_RETRY_MS
    while (!signal.aborted) {
      try {
        const { user_id: self } = await call(() => web.auth.test(), signal)
        await connect(appToken, String(self), handle, signal)
        retry = FIRST_RETRY_MS
      } catch (error) {
        if (signal.aborted) return
        if (!(error instanceof ChatFailure)) throw error
        log(`slack: ${error.message}; trying again in ${Math.ceil(retry / 1000)} s`)
        await delay(retry, undefined, { signal }).catch(() => undefined)
        retry = Math.min(MAX_RETRY_MS, retry * 2)
      }
    }
  }

  return {
    name: 'slack',
    maxChars: MAX_CHARS,
    async run(handle, signal) {
      const { appToken, requests } = settings
      await Promise.all([
        appToken === undefined ? undefined : read(handle, appToken, signal),
        requests === undefined ? undefined : serve(requests, handle, log, signal),
      ])
    },
    async privateChannel(user, signal) {
      const { channel } = await call(() => web.conversations.open({ users: user }), signal)
      if (channel?.id === undefined) throw new ChatFailure(`Slack has no direct messages with ${user}`, true)
      return channel.id
    },
    async post(post, signal) {
      if (post.mayHaveBeenSent && (await isThere(post, signal))) return
      const { text, attachments } = placeText(post.text, post.attachments)
      await call(
        () =>
          web.chat.postMessage({
            channel: post.channel,
            text: `${callOf(post.user)}${escaped(text)}`,
            ...(attachments.length === 0
              ? {}
              : {
                  attachments: attachments.map((one) => ({
                    ...mapTexts(one, escaped),
                    mrkdwn_in: ['text', 'pretext', 'fields'],
                  })),
                }),
            // Nothing in an output calls people, or is fetched by Slack.
            parse: 'none',
            link_names: false,
            unfurl_links: false,
            unfurl_media: false,
            metadata: { event_type: EVENT_TYPE, event_payload: { key: post.key } },
            ...(post.thread === undefined ? {} : { thread_ts: post.thread }),
          }),
        signal,
      )
    },
  }

  /** Slack takes no keys for posts, so the key is in the post. */
  async function isThere({ channel, thread, key }: ChatPost, signal: AbortSignal): Promise<boolean> {
    const { messages = [] } =
      thread === undefined
        ? await call(() => web.conversations.history({ channel, limit: LOOK_BACK, include_all_metadata: true }), signal)
        : await call(
            () => web.conversations.replies({ channel, ts: thread, limit: LOOK_BACK, include_all_metadata: true }),
            signal,
          )
    return messages.some(({ metadata }) => {
      const { event_type: type, event_payload: payload } = metadata ?? {}
      return type === EVENT_TYPE && isObject(payload) && payload['key'] === key
    })
  }
}

interface Envelope {
  type: string
  body: unknown
  readonly ack: (answer?: Record<string, unknown>) => Promise<void>
}

/** A message to the bot or in one of its channels. */
function messageIn(body: unknown, self: string): ChatMessage | undefined {
  const event = isObject(body) ? body['event'] : undefined
  if (!isObject(event) || (event['type'] !== 'message' && event['type'] !== 'app_mention')) return undefined
  const { channel, user, text, ts, thread_ts: thread } = event
  // Messages of bots and edits are no commands.
  if (event['bot_id'] !== undefined || event['subtype'] !== undefined || user === self) return undefined
  if (typeof channel !== 'string' || typeof user !== 'string' || typeof text !== 'string' || typeof ts !== 'string') {
    return undefined
  }
  const mention = `<@${self}>`
  const isToBot = text.trimStart().startsWith(mention)
  return {
    id: `${channel}-${ts}`,
    channel,
    thread: typeof thread === 'string' ? thread : ts,
    user,
    text: plain(isToBot ? text.trimStart().slice(mention.length) : text),
    isCommand: isToBot || event['channel_type'] === 'im',
    at: Number(ts) * 1000,
  }
}

function commandIn(body: unknown): ChatMessage | undefined {
  if (!isObject(body)) return undefined
  const { text, user_id: user, channel_id: channel, trigger_id: trigger } = body
  if (typeof user !== 'string' || typeof channel !== 'string' || typeof trigger !== 'string') return undefined
  const command = typeof text === 'string' ? plain(text) : ''
  return {
    id: `slash-${trigger}`,
    channel,
    user,
    text: command.trim() === '' ? 'help' : command,
    isCommand: true,
    at: Date.now(),
  }
}

/** As it was typed: links and channels are their labels. */
function plain(text: string): string {
  return text
    .replace(/<([^<>|]*)(?:\|([^<>|]*))?>/g, (all, target: string, label: string | undefined) =>
      /^[@!]/.test(target) ? all : label === undefined || label === '' ? target : label,
    )
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
}

/** A name that is no id of a user stays text. */
function callOf(user: string | undefined): string {
  if (user === undefined) return ''
  return /^[UW][A-Z0-9]+$/.test(user) ? `<@${user}> ` : `${escaped(user)}: `
}

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** Takes slash commands as requests until the signal is aborted. @throws ChatFailure */
async function serve(
  { signingSecret, host, port }: NonNullable<SlackSettings['requests']>,
  handle: Handle,
  log: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const seen = new Set<string>()
  const server = createServer({ requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS }, (request, response) => {
    void answer(request, response).catch((error: unknown) => {
      if (!signal.aborted) log(`slack: ${messageOf(error)}`)
      if (!response.headersSent) end(response, 500)
    })
  })
  server.maxConnections = 100

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST' || request.url !== '/slack/commands') return end(response, 404)
    const body = await readBody(request)
    if (body === undefined) return end(response, 413)
    const signature = String(request.headers['x-slack-signature'] ?? '')
    const at = String(request.headers['x-slack-request-timestamp'] ?? '')
    if (!isSigned(signingSecret, at, body, signature)) return end(response, 401)
    // A signature is taken once.
    if (seen.has(signature)) return end(response, 200)
    if (seen.size >= MAX_SEEN) seen.delete(seen.values().next().value ?? '')
    seen.add(signature)
    const fields = new URLSearchParams(body.toString('utf8'))
    const message = commandIn(Object.fromEntries(fields))
    if (message === undefined) return end(response, fields.has('ssl_check') ? 200 : 400)
    await confirmed(handle(message))
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(writeJson({ response_type: 'in_channel' }))
  }

  await listen(server, host, port)
  log(`slack: slash commands are taken at http://${host}:${addressPort(server)}/slack/commands`)
  await new Promise<void>((resolve) => {
    const stop = (): void => {
      server.close(() => {
        resolve()
      })
      server.closeAllConnections()
    }
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop)
  })
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      reject(new ChatFailure(`${host}:${port} cannot be listened on: ${error.message}`, true))
    })
    server.listen(port, host, resolve)
  })
}

function addressPort(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

function isSigned(secret: string, at: string, body: Buffer, signature: string): boolean {
  if (!/^\d{1,12}$/.test(at) || Math.abs(Date.now() / 1000 - Number(at)) > MAX_REQUEST_AGE) return false
  const expected = Buffer.from(`v0=${createHmac('sha256', secret).update(`v0:${at}:`).update(body).digest('hex')}`)
  const given = Buffer.from(signature)
  return given.length === expected.length && timingSafeEqual(given, expected)
}

function end(response: ServerResponse, status: number): void {
  response.writeHead(status, { Connection: 'close' }).end()
}

/** When it is dealt with, or when Slack would not wait longer. */
async function confirmed(done: Promise<void>): Promise<void> {
  const timer = new AbortController()
  try {
    await Promise.race([done, delay(CONFIRM_MS, undefined, { signal: timer.signal })])
  } finally {
    timer.abort()
  }
}

/** Milliseconds; undefined when waiting does not help. */
function waitIn(error: unknown): number | undefined {
  if (!isObject(error) || error['code'] !== ErrorCode.RateLimitedError) return undefined
  return Math.min(MAX_RETRY_MS, Math.max(FIRST_RETRY_MS, Number(error['retryAfter']) * 1000 || 0))
}

function failureOf(error: unknown): ChatFailure {
  const data = isObject(error) ? error['data'] : undefined
  const reason = isObject(data) && typeof data['error'] === 'string' ? data['error'] : undefined
  if (reason === undefined) return new ChatFailure(`Slack cannot be reached: ${messageOf(error)}`, false)
  return new ChatFailure(`Slack answers ${reason}`, !passing.has(reason))
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** What the libraries say of each step may hold tokens. */
const silent: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  setLevel: () => undefined,
  getLevel: () => LogLevel.ERROR,
  setName: () => undefined,
}

/** Undefined: it is larger. */
async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > MAX_REQUEST_BYTES) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
