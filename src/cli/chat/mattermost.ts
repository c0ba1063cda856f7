/**
 * Mattermost: its REST API, version 4, and its WebSocket, which tells of new posts. Node speaks both. What was posted while
 * the bot was away is asked for when it is connected.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { readJson, writeJson } from '../../lib/json/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import { ChatFailure, type ChatAdapter, type ChatMessage, type ChatPosition, type ChatPost } from './adapter.ts'
import { mapTexts, placeText } from './attachments.ts'
import { callJson, type JsonAnswer } from './json-api.ts'
import { StateFailure } from './state.ts'

export interface MattermostSettings {
  /** Address of the server. */
  url: string
  /** Of the bot account. */
  token: string
}

export interface MattermostDeps {
  settings: MattermostSettings
  /** Milliseconds since the epoch up to which all posts have been dealt with. */
  position: ChatPosition
  readonly log: (text: string) => void
}

/** Of a post in a server with the settings it comes with. */
const MAX_CHARS = 16_000
const FIRST_RETRY_MS = 500
const MAX_RETRY_MS = 60_000
/** Within which the server says hello; later: without which the connection is taken for dead. */
const HELLO_MS = 30_000
const PING_MS = 30_000
/** Events that wait to be dealt with; at more the connection begins anew, and they are asked for. */
const MAX_WAITING = 1_000

/** Property of a post of the bot. */
const KEY = 'svc_chat_post'
/** Messages of a channel in which a post is looked for. */
const LOOK_BACK = 200
/** Posts may come out of their order by so much: those of the last minute are looked at again. */
const OVERLAP_MS = 60_000
/** Posts of one answer; there may be older ones. */
const MAX_MISSED = 1_000

type Json = Record<string, unknown>

export function createMattermost({ settings, position, log }: MattermostDeps): ChatAdapter {
  const base = settings.url.replace(/\/+$/, '')
  const call = async (method: string, path: string, body: unknown, signal: AbortSignal): Promise<JsonAnswer> =>
    callJson({
      name: 'The Mattermost server',
      url: `${base}/api/v4${path}`,
      method,
      headers: { Authorization: `Bearer ${settings.token}` },
      body,
      waitMs: () => undefined,
      signal,
    })

  /** Posts of all channels of the bot since then, the oldest first. @throws ChatFailure */
  async function postsSince(since: number, signal: AbortSignal): Promise<{ post: Json; channelType: unknown }[]> {
    const found: { post: Json; channelType: unknown }[] = []
    const seen = new Set<string>()
    for (const { id: team } of await listOf(call('GET', '/users/me/teams', undefined, signal))) {
      const path = `/users/me/teams/${encodeURIComponent(String(team))}/channels`
      for (const { id, type, last_post_at: last } of await listOf(call('GET', path, undefined, signal))) {
        const channel = String(id)
        // Direct channels are in the list of every team.
        if (seen.has(channel) || (typeof last === 'number' && last < since)) continue
        seen.add(channel)
        const answer = await call(
          'GET',
          `/channels/${encodeURIComponent(channel)}/posts?since=${since}`,
          undefined,
          signal,
        )
        const posts = postsIn(answer)
        if (posts.length >= MAX_MISSED) log(`mattermost: older posts of ${channel} are not read: there are too many`)
        // The answer has older posts as well, that were changed or got a reply or a reaction.
        const missed = posts.filter(({ create_at: at }) => Number(at) >= since)
        for (const post of missed) found.push({ post, channelType: type })
      }
    }
    return found.toSorted((a, b) => Number(a.post['create_at']) - Number(b.post['create_at']))
  }

  /** Resolves when the connection has ended. @throws ChatFailure */
  async function follow(
    self: Json,
    take: (post: Json, channelType: unknown) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const socket = new WebSocket(`${base.replace(/^http/, 'ws')}/api/v4/websocket`)
    let work: Promise<void> = Promise.resolve()
    let failure: unknown
    let waiting = 0
    let hasHello = false
    let isAnswered = true
    let sequence = 1
    const send = (action: string, data: Json): void => {
      sequence += 1
      socket.send(writeJson({ seq: sequence, action, data }))
    }
    const end = (): void => {
      socket.close()
    }
    const timer = setInterval(
      () => {
        if (!hasHello || !isAnswered) end()
        else {
          isAnswered = false
          send('ping', {})
        }
      },
      Math.max(HELLO_MS, PING_MS),
    )
    const ended = new Promise<void>((resolve) => {
      socket.addEventListener('close', () => {
        resolve()
      })
      socket.addEventListener('error', () => {
        resolve()
      })
    })
    socket.addEventListener('open', () => {
      send('authentication_challenge', { token: settings.token })
    })
    const queue = (job: () => Promise<void>): void => {
      waiting += 1
      if (waiting > MAX_WAITING) end()
      work = work
        .then(async () => {
          if (failure === undefined) await job()
        })
        .catch((error: unknown) => {
          failure ??= error
          end()
        })
        .finally(() => {
          waiting -= 1
        })
    }
    socket.addEventListener('message', ({ data }: MessageEvent) => {
      isAnswered = true
      const event = parse(typeof data === 'string' ? data : '')
      if (event['event'] === 'hello' && !hasHello) {
        hasHello = true
        log('mattermost: connected')
        // From here on nothing is missed; what was before is asked for first.
        const since = position.read()
        if (since !== undefined) {
          queue(async () => {
            const missed = await postsSince(Number(since) - OVERLAP_MS, signal)
            for (const { post, channelType } of missed) await take(post, channelType)
          })
        }
        return
      }
      if (event['event'] !== 'posted' || !hasHello || !isObject(event['data'])) return
      const { post, channel_type: channelType } = event['data']
      queue(() => take(parse(typeof post === 'string' ? post : ''), channelType))
    })
    signal.addEventListener('abort', end)
    try {
      await ended
      await work
      if (failure !== undefined) throw failure
      if (!hasHello && !signal.aborted)
        throw new ChatFailure(`The Mattermost server did not let ${String(self['username'])} in`, false)
    } finally {
      clearInterval(timer)
      signal.removeEventListener('abort', end)
      end()
    }
  }

  return {
    name: 'mattermost',
    maxChars: MAX_CHARS,
    async run(handle, signal) {
      let retry = FIRST_RETRY_MS
      // What was said before the bot was there is no command.
      if (position.read() === undefined) await position.write(String(Date.now() + OVERLAP_MS))
      while (!signal.aborted) {
        try {
          const self = await call('GET', '/users/me', undefined, signal)
          if (!isObject(self)) throw new ChatFailure('The answer of the Mattermost server is no user', false)
          await follow(
            self,
            async (post, channelType) => {
              const message = messageOf(post, channelType, self)
              if (message !== undefined) await handle(message)
              const at = Number(post['create_at'])
              if (at > Number(position.read() ?? 0)) await position.write(String(at))
            },
            signal,
          )
          retry = FIRST_RETRY_MS
        } catch (error) {
          if (signal.aborted) return
          if (!(error instanceof ChatFailure || error instanceof StateFailure)) throw error
          log(`mattermost: ${error.message}; trying again in ${Math.ceil(retry / 1000)} s`)
        }
        await delay(retry, undefined, { signal }).catch(() => undefined)
        retry = Math.min(MAX_RETRY_MS, retry * 2)
      }
    },
    async privateChannel(user, signal) {
      const self = await call('GET', '/users/me', undefined, signal)
      const answer = await call('POST', '/channels/direct', [isObject(self) ? self['id'] : '', user], signal)
      if (!isObject(answer) || typeof answer['id'] !== 'string') {
        throw new ChatFailure(`The Mattermost server has no direct messages with ${user}`, true)
      }
      return answer['id']
    },
    async post(post, signal) {
      if (post.mayHaveBeenSent && (await isThere(post, signal))) return
      const { channel, thread, key, user } = post
      const { text, attachments } = placeText(post.text, post.attachments)
      await call(
        'POST',
        '/posts',
        {
          channel_id: channel,
          message: `${user === undefined ? '' : await callOf(user, signal)}${quiet(text)}`,
          props: {
            [KEY]: key,
            ...(attachments.length === 0 ? {} : { attachments: attachments.map((one) => mapTexts(one, quiet)) }),
          },
          ...(thread === undefined ? {} : { root_id: thread }),
        },
        signal,
      )
    },
  }

  /** By the name that belongs to an id; what is no id stays text. */
  async function callOf(user: string, signal: AbortSignal): Promise<string> {
    try {
      const answer = await call('GET', `/users/${encodeURIComponent(user)}`, undefined, signal)
      if (isObject(answer) && typeof answer['username'] === 'string') return `@${answer['username']} `
    } catch (error) {
      if (!(error instanceof ChatFailure) || !error.isFinal) throw error
    }
    return `${quiet(user)}: `
  }

  /** Mattermost forgets the keys of posts after minutes, so the key is in the post. */
  async function isThere({ channel, thread, key }: ChatPost, signal: AbortSignal): Promise<boolean> {
    const path =
      thread === undefined
        ? `/channels/${encodeURIComponent(channel)}/posts?per_page=${LOOK_BACK}`
        : `/posts/${encodeURIComponent(thread)}/thread`
    return postsIn(await call('GET', path, undefined, signal)).some(
      ({ props }) => isObject(props) && props[KEY] === key,
    )
  }
}

function postsIn(answer: JsonAnswer): Json[] {
  const posts = isObject(answer) && isObject(answer['posts']) ? Object.values(answer['posts']) : []
  return posts.filter((post) => isObject(post))
}

function messageOf(post: Json, channelType: unknown, self: Json): ChatMessage | undefined {
  const { id, channel_id: channel, user_id: user, message, root_id: root, type, props, create_at: at } = post
  if (Number(post['delete_at'] ?? 0) > 0) return undefined
  if (typeof id !== 'string' || typeof channel !== 'string' || typeof user !== 'string' || user === self['id']) {
    return undefined
  }
  // Posts of the system, and of other bots and webhooks, are no commands.
  if (type !== '' && type !== undefined) return undefined
  if (isObject(props) && (props['from_bot'] !== undefined || props['from_webhook'] !== undefined)) return undefined
  if (typeof message !== 'string' || typeof at !== 'number') return undefined
  const mention = `@${String(self['username'])}`
  const [first = ''] = message.trimStart().split(/\s/, 1)
  const isToBot = first.toLowerCase() === mention.toLowerCase()
  return {
    id,
    channel,
    thread: typeof root === 'string' && root !== '' ? root : id,
    user,
    text: isToBot ? message.trimStart().slice(mention.length) : message,
    isCommand: isToBot || channelType === 'D',
    at,
  }
}

/** Nothing in an output calls people: a mention that is cut by a character without width is none. */
const quiet = (text: string): string => text.replace(/(^|[^\w@])@(?=[\w.-])/g, '$1@\u200b')

async function listOf(answer: Promise<unknown>): Promise<Json[]> {
  const value = await answer
  return Array.isArray(value) ? value.filter((item) => isObject(item)) : []
}

function parse(text: string): Json {
  try {
    const value = readJson(text)
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}
