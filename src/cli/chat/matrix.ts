/**
 * Matrix: the client-server API of a homeserver over HTTPS. Needs no library: one long request reads, one request writes.
 * Encrypted rooms cannot be read.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { writeJson } from '../../lib/json/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import { ChatFailure, type ChatAdapter, type ChatMessage, type ChatPosition, type ChatPost } from './adapter.ts'
import { textOf } from './attachments.ts'
import { callJson } from './json-api.ts'
import { StateFailure } from './state.ts'

export interface MatrixSettings {
  /** Address of the homeserver. */
  url: string
  token: string
}

export interface MatrixDeps {
  settings: MatrixSettings
  /** Place in the stream of events up to which everything has been dealt with. */
  position: ChatPosition
  /** Whether invitations of this user are accepted. */
  readonly knows: (user: string) => Promise<boolean>
  readonly log: (text: string) => void
}

/** Longest wait for news in one request. */
const SYNC_MS = 30_000
const FIRST_RETRY_MS = 500
const MAX_RETRY_MS = 60_000
/** Events have at most 64 KiB, and carry the text twice. */
const MAX_CHARS = 12_000
/** UTF-16 units of its attachments. */
const MAX_ATTACHED_CHARS = 2_000
/** Events of a room in one answer. */
const PAGE = 100
/** Further answers that are asked for in a room when the bot was away. */
const MAX_PAGES = 10
/** Rooms that are told of once. */
const MAX_NOTED = 10_000
const encryptionTypes: ReadonlySet<string> = new Set(['m.room.encryption', 'm.room.encrypted'])

type Json = Record<string, unknown>

export function createMatrix({ settings, position, knows, log }: MatrixDeps): ChatAdapter {
  const base = settings.url.replace(/\/+$/, '')

  /** @throws ChatFailure */
  async function call(method: string, path: string, body: unknown, signal: AbortSignal): Promise<Json> {
    const answer = await callJson({
      name: 'The homeserver',
      url: `${base}/_matrix/client/v3${path}`,
      method,
      headers: { Authorization: `Bearer ${settings.token}` },
      body,
      waitMs: ({ retry_after_ms: wait }) => (typeof wait === 'number' ? wait : undefined),
      signal,
    })
    return Array.isArray(answer) ? {} : answer
  }

  async function sync(since: string | undefined, signal: AbortSignal): Promise<Json> {
    const query = new URLSearchParams({
      timeout: since === undefined ? '0' : String(SYNC_MS),
      filter: writeJson({
        presence: { types: [] },
        account_data: { types: [] },
        room: { timeline: { limit: since === undefined ? 1 : PAGE }, ephemeral: { types: [] } },
      }),
      ...(since === undefined ? {} : { since }),
    })
    return call('GET', `/sync?${query.toString()}`, undefined, signal)
  }

  /** The oldest first: those of the answer, and those since then that it has left out. @throws ChatFailure */
  async function eventsIn(
    room: string,
    joined: unknown,
    since: string,
    self: string,
    signal: AbortSignal,
  ): Promise<Json[]> {
    const timeline = objectIn(joined, 'timeline')
    let events = afterJoin(listIn(timeline, 'events'), self)
    let from = timeline['limited'] === true ? timeline['prev_batch'] : undefined
    let hasJoined = events.length < listIn(timeline, 'events').length
    for (let page = 0; typeof from === 'string' && !hasJoined; page += 1) {
      if (page === MAX_PAGES) {
        log(`matrix: older messages of ${room} are not read: there are more than ${(MAX_PAGES + 1) * PAGE}`)
        break
      }
      const query = new URLSearchParams({ dir: 'b', from, to: since, limit: String(PAGE) })
      let answer: Json
      try {
        answer = await call('GET', `/rooms/${encodeURIComponent(room)}/messages?${query.toString()}`, undefined, signal)
      } catch (error) {
        if (!(error instanceof ChatFailure) || !error.isFinal) throw error
        log(`matrix: older messages of ${room} are not read: ${error.message}`)
        break
      }
      const chunk = listIn(answer, 'chunk').toReversed()
      const older = afterJoin(chunk, self)
      hasJoined = older.length < chunk.length
      events = [...older, ...events]
      // The last page is empty, or names no further one.
      from = chunk.length === 0 ? undefined : answer['end']
    }
    return events
  }

  async function accept(rooms: Json, self: string, signal: AbortSignal): Promise<void> {
    for (const [room, invited] of Object.entries(objectIn(rooms, 'invite'))) {
      const events = listIn(objectIn(invited, 'invite_state'), 'events')
      const invitation = events.find((event) => event['type'] === 'm.room.member' && event['state_key'] === self)
      noteEncryption(room, events)
      const sender = invitation?.['sender']
      const by = typeof sender === 'string' ? sender : ''
      if (!(await knows(by))) {
        log(`matrix: ${by} is no known user; the invitation to ${room} is left alone`)
        continue
      }
      await call('POST', `/rooms/${encodeURIComponent(room)}/join`, {}, signal).catch((error: unknown) => {
        if (signal.aborted) throw error
        log(`matrix: ${room} cannot be joined: ${String(error)}`)
      })
    }
  }

  /** Rooms of which it has been said that they are encrypted, while the process runs. */
  const encrypted = new Set<string>()

  function noteEncryption(room: string, events: readonly Json[]): void {
    if (encrypted.has(room) || encrypted.size >= MAX_NOTED) return
    if (!events.some(({ type }) => encryptionTypes.has(String(type)))) return
    encrypted.add(room)
    log(`matrix: ${room} is encrypted; svc chat cannot read what is said there. Use a room without encryption.`)
  }

  /** Of this bot, once it is known. */
  let self: string | undefined

  async function isIn(user: string, room: string, signal: AbortSignal): Promise<boolean> {
    const path = `/rooms/${encodeURIComponent(room)}/state/m.room.member/${encodeURIComponent(user)}`
    const { membership } = await ifAny(call('GET', path, undefined, signal))
    return membership === 'join' || membership === 'invite'
  }

  return {
    name: 'matrix',
    maxChars: MAX_CHARS,
    async run(handle, signal) {
      let retry = FIRST_RETRY_MS
      let since = position.read()
      while (!signal.aborted) {
        try {
          self ??= String((await call('GET', '/account/whoami', undefined, signal))['user_id'])
          const answer = await sync(since, signal)
          const rooms = objectIn(answer, 'rooms')
          await accept(rooms, self, signal)
          for (const [room, joined] of Object.entries(objectIn(rooms, 'join'))) {
            const latest = listIn(objectIn(joined, 'timeline'), 'events')
            noteEncryption(room, [...listIn(objectIn(joined, 'state'), 'events'), ...latest])
            // What was said before the bot was there is no command.
            if (since === undefined) continue
            for (const event of await eventsIn(room, joined, since, self, signal)) {
              const message = messageOf(event, room, self)
              if (message !== undefined) await handle(message)
            }
          }
          const next = answer['next_batch']
          if (typeof next !== 'string') throw new ChatFailure('The answer of the homeserver has no next_batch', false)
          since = next
          await position.write(next)
          retry = FIRST_RETRY_MS
        } catch (error) {
          if (signal.aborted) return
          if (!(error instanceof ChatFailure || error instanceof StateFailure)) throw error
          log(`matrix: ${error.message}; trying again in ${Math.ceil(retry / 1000)} s`)
          await delay(retry, undefined, { signal }).catch(() => undefined)
          retry = Math.min(MAX_RETRY_MS, retry * 2)
        }
      }
    },
    async privateChannel(user, signal) {
      self ??= String((await call('GET', '/account/whoami', undefined, signal))['user_id'])
      const path = `/user/${encodeURIComponent(self)}/account_data/m.direct`
      const known = await ifAny(call('GET', path, undefined, signal))
      const given = known[user]
      const rooms: unknown[] = Array.isArray(given) ? given : []
      for (const room of rooms) {
        if (typeof room === 'string' && (await isIn(user, room, signal))) return room
      }
      const made = await call(
        'POST',
        '/createRoom',
        { is_direct: true, preset: 'trusted_private_chat', invite: [user] },
        signal,
      )
      const { room_id: room } = made
      if (typeof room !== 'string') throw new ChatFailure('The answer of the homeserver has no room_id', false)
      await call('PUT', path, { ...known, [user]: [...rooms, room] }, signal)
      return room
    },
    async post(post, signal) {
      const room = encodeURIComponent(post.channel)
      // The homeserver takes a transaction id once, however often it comes.
      await call('PUT', `/rooms/${room}/send/m.room.message/${encodeURIComponent(post.key)}`, contentOf(post), signal)
    },
  }
}

/** Without what was before the bot came into the room. */
function afterJoin(events: Json[], self: string): Json[] {
  const isJoin = ({ type, state_key: of, content, unsigned }: Json): boolean =>
    type === 'm.room.member' &&
    of === self &&
    objectIn({ content }, 'content')['membership'] === 'join' &&
    // A new name of the bot is such an event as well.
    objectIn(unsigned, 'prev_content')['membership'] !== 'join'
  return events.slice(events.findLastIndex(isJoin) + 1)
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

function contentOf({ text: message, thread, user, attachments }: ChatPost): Json {
  const text = [`${user === undefined ? '' : `${user}: `}${message}`, textOf(attachments)]
    .filter((part) => part !== '')
    .join('\n')
    .slice(0, MAX_CHARS + MAX_ATTACHED_CHARS)
  return {
    // Nobody is called but whom it is for.
    'm.mentions': user === undefined ? {} : { user_ids: [user] },
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

/** An empty object for what there is not. @throws ChatFailure */
async function ifAny(answer: Promise<Json>): Promise<Json> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof ChatFailure && error.isFinal) return {}
    throw error
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

function objectIn(value: unknown, key: string): Json {
  const inner = isObject(value) ? value[key] : undefined
  return isObject(inner) ? inner : {}
}

function listIn(value: Json, key: string): Json[] {
  const inner = value[key]
  return Array.isArray(inner) ? inner.filter((item) => isObject(item)) : []
}
