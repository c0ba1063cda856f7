/**
 * Matrix: the client-server API of a homeserver over HTTPS. Needs no library: one long request reads, one request writes.
 * Encrypted rooms cannot be read.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { readJson, writeJson } from '../../lib/json/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import { ChatFailure, type ChatAdapter, type ChatMessage, type ChatPost } from './adapter.ts'

export interface MatrixSettings {
  /** Address of the homeserver. */
  url: string
  token: string
}

export interface MatrixDeps {
  settings: MatrixSettings
  /** Place in the stream of events up to which everything has been dealt with. */
  position: { read(): string | undefined; write(position: string): Promise<void> }
  /** Whether invitations of this user are accepted. */
  readonly knows: (user: string) => boolean
  readonly log: (text: string) => void
}

/** Longest wait for news in one request. */
const SYNC_MS = 30_000
const REQUEST_MS = 60_000
const FIRST_RETRY_MS = 500
const MAX_RETRY_MS = 60_000
/** Events have at most 64 KiB, and carry the text twice. */
const MAX_CHARS = 12_000
const MAX_ANSWER_BYTES = 64 * 1024 * 1024
/** Attempts to post while the homeserver asks to wait. */
const MAX_ATTEMPTS = 10

type Json = Record<string, unknown>

export function createMatrix({ settings, position, knows, log }: MatrixDeps): ChatAdapter {
  const base = settings.url.replace(/\/+$/, '')

  /** @throws ChatFailure */
  async function call(method: string, path: string, body: unknown, signal: AbortSignal): Promise<Json> {
    for (let attempt = 1; ; attempt += 1) {
      let response: Response
      let text: string
      try {
        response = await fetch(`${base}/_matrix/client/v3${path}`, {
          method,
          headers: { Authorization: `Bearer ${settings.token}`, 'Content-Type': 'application/json' },
          redirect: 'error',
          signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]),
          ...(body === undefined ? {} : { body: writeJson(body) }),
        })
        text = await readBounded(response)
      } catch (error) {
        if (signal.aborted) throw error
        throw new ChatFailure(
          `The homeserver cannot be reached: ${error instanceof Error ? error.message : 'unknown'}`,
          false,
        )
      }
      const answer = parse(text)
      if (response.ok) return answer
      if (response.status === 429 && attempt < MAX_ATTEMPTS) {
        await delay(waitOf(response, answer), undefined, { signal })
        continue
      }
      const said = typeof answer['error'] === 'string' ? answer['error'].slice(0, 300) : response.statusText
      throw new ChatFailure(
        `The homeserver answers ${response.status}: ${said}`,
        response.status >= 400 && response.status < 500 && response.status !== 429,
      )
    }
  }

  async function sync(since: string | undefined, signal: AbortSignal): Promise<Json> {
    const query = new URLSearchParams({
      timeout: since === undefined ? '0' : String(SYNC_MS),
      // What was said before the bot was there is no command.
      filter: writeJson({
        presence: { types: [] },
        account_data: { types: [] },
        room: { timeline: { limit: since === undefined ? 1 : 100 }, ephemeral: { types: [] } },
      }),
      ...(since === undefined ? {} : { since }),
    })
    return call('GET', `/sync?${query.toString()}`, undefined, signal)
  }

  async function accept(rooms: Json, self: string, signal: AbortSignal): Promise<void> {
    for (const [room, invited] of Object.entries(objectIn(rooms, 'invite'))) {
      const events = listIn(objectIn(invited, 'invite_state'), 'events')
      const invitation = events.find((event) => event['type'] === 'm.room.member' && event['state_key'] === self)
      const sender = invitation?.['sender']
      const by = typeof sender === 'string' ? sender : ''
      if (!knows(by)) {
        log(`matrix: ${by} is no known user; the invitation to ${room} is left alone`)
        continue
      }
      await call('POST', `/rooms/${encodeURIComponent(room)}/join`, {}, signal).catch((error: unknown) => {
        if (signal.aborted) throw error
        log(`matrix: ${room} cannot be joined: ${String(error)}`)
      })
    }
  }

  return {
    name: 'matrix',
    maxChars: MAX_CHARS,
    async run(handle, signal) {
      let retry = FIRST_RETRY_MS
      let self: string | undefined
      let since = position.read()
      while (!signal.aborted) {
        try {
          self ??= String((await call('GET', '/account/whoami', undefined, signal))['user_id'])
          const answer = await sync(since, signal)
          const rooms = objectIn(answer, 'rooms')
          await accept(rooms, self, signal)
          if (since !== undefined) {
            for (const [room, joined] of Object.entries(objectIn(rooms, 'join'))) {
              for (const event of listIn(objectIn(joined, 'timeline'), 'events')) {
                const message = messageOf(event, room, self)
                if (message !== undefined) await handle(message)
              }
            }
          }
          const next = answer['next_batch']
          if (typeof next !== 'string') throw new ChatFailure('The answer of the homeserver has no next_batch', false)
          since = next
          await position.write(next)
          retry = FIRST_RETRY_MS
        } catch (error) {
          if (signal.aborted) return
          if (!(error instanceof ChatFailure)) throw error
          log(`matrix: ${error.message}; trying again in ${Math.ceil(retry / 1000)} s`)
          await delay(retry, undefined, { signal }).catch(() => undefined)
          retry = Math.min(MAX_RETRY_MS, retry * 2)
        }
      }
    },
    async post(post, signal) {
      const room = encodeURIComponent(post.channel)
      // The homeserver takes a transaction id once, however often it comes.
      await call('PUT', `/rooms/${room}/send/m.room.message/${encodeURIComponent(post.key)}`, contentOf(post), signal)
    },
  }
}

function messageOf(event: Json, room: string, self: string): ChatMessage | undefined {
  const { type, sender, event_id: id, content, origin_server_ts: at } = event
  if (type !== 'm.room.message' || typeof sender !== 'string' || typeof id !== 'string' || sender === self)
    return undefined
  if (!isObject(content)) return undefined
  // Notices come from bots; an edit is no new command.
  if (content['msgtype'] !== 'm.text' || typeof content['body'] !== 'string') return undefined
  const relation = objectIn(content, 'm.relates_to')
  if (relation['rel_type'] === 'm.replace') return undefined
  const thread = relation['rel_type'] === 'm.thread' ? relation['event_id'] : undefined
  return {
    id,
    channel: room,
    user: sender,
    text: content['body'],
    at: typeof at === 'number' ? at : Date.now(),
    thread: typeof thread === 'string' ? thread : id,
  }
}

function contentOf({ text, thread }: ChatPost): Json {
  return {
    msgtype: 'm.notice',
    body: text,
    format: 'org.matrix.custom.html',
    formatted_body: htmlOf(text),
    ...(thread === undefined
      ? {}
      : {
          'm.relates_to': {
            rel_type: 'm.thread',
            event_id: thread,
            is_falling_back: true,
            'm.in_reply_to': { event_id: thread },
          },
        }),
  }
}

/** Text that users have written stays text. */
function htmlOf(text: string): string {
  const escaped = text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
  return escaped
    .split(/^```\n?/m)
    .map((part, index) => (index % 2 === 1 ? `<pre><code>${part}</code></pre>` : part.replaceAll('\n', '<br>')))
    .join('')
}

function waitOf(response: Response, answer: Json): number {
  const milliseconds = Number(answer['retry_after_ms'] ?? Number(response.headers.get('Retry-After')) * 1000)
  return Math.min(MAX_RETRY_MS, Math.max(FIRST_RETRY_MS, Number.isFinite(milliseconds) ? milliseconds : 0))
}

async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > MAX_ANSWER_BYTES) throw new Error('the answer is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parse(text: string): Json {
  try {
    const value = readJson(text)
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}

function objectIn(value: unknown, key: string): Json {
  const inner = isObject(value) ? value[key] : undefined
  return isObject(inner) ? inner : {}
}

function listIn(value: Json, key: string): Json[] {
  const inner = value[key]
  return Array.isArray(inner) ? inner.filter((item) => isObject(item)) : []
}
