/** A Matrix homeserver, as far as a bot sees it: the client-server API of one account. */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { waitFor } from './wait.ts'

export interface MatrixPost {
  room: string
  body: string
  formatted: string
  thread: string | undefined
  transaction: string
  /** Users who are called. */
  mentions: string[]
}

export interface FakeMatrix {
  readonly url: string
  readonly token: string
  /** What the room shows: a transaction that came twice is there once. */
  readonly posts: MatrixPost[]
  /** Requests to post, repeated ones included. */
  readonly attempts: () => number
  readonly joined: string[]
  /** @returns the id of the event */
  say(
    body: string,
    more?: {
      sender?: string
      room?: string
      content?: Record<string, unknown>
      at?: number
      type?: string
      state?: string
    },
  ): string
  /** Delivers an event once more. */
  repeat(id: string): void
  /** @param state types of further events of the room's state */
  invite(room: string, by: string, state?: string[]): void
  /** The next requests whose path holds `part` get this answer. */
  answerNext(part: string, status: number, body: string, headers?: Record<string, string>): void
  /** Such answers that have not been given. */
  readonly planned: () => number
  /** Forgets them. */
  answerAgain(): void
  /** Ends every connection that is open. */
  cut(): void
  /** Text of every answered post. */
  waitForPost(text: string | RegExp): Promise<MatrixPost>
  stop(): Promise<void>
}

interface Planned {
  part: string
  status: number
  body: string
  headers: Record<string, string>
}

export const BOT = '@svc:fake'

export async function startFakeMatrix(): Promise<FakeMatrix> {
  const token = 'syt_canary_token'
  /** Ids of events are never the same, on no homeserver. */
  const series = randomUUID()
  const events: { room: string; event: Record<string, unknown> }[] = []
  const invites: { room: string; by: string; state: string[] }[] = []
  const posts: MatrixPost[] = []
  const joined: string[] = []
  const planned: Planned[] = []
  let direct: Record<string, string[]> = {}
  /** Room → who was invited when it was made. */
  const made = new Map<string, string[]>()
  const seen = new Map<string, string>()
  let attempts = 0
  let count = 0
  let wake = (): void => undefined

  function answer(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(text)
  }

  /** Of a room, the latest first, between two places in the stream; `end`: where the next page begins, `to` at the last. */
  function pageBefore(room: string, from: number, to: number, limit: number): { events: unknown[]; end: number } {
    const found: unknown[] = []
    for (let at = from - 1; at >= to; at -= 1) {
      if (events[at]?.room !== room) continue
      if (found.length === limit) return { events: found, end: at + 1 }
      found.push(events[at]?.event)
    }
    return { events: found, end: to }
  }

  async function sync(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    const since = url.searchParams.get('since')
    const from = since === null ? events.length : Number(since)
    const wait = Number(url.searchParams.get('timeout'))
    if (since !== null && from >= events.length && invites.length === 0 && wait > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, wait)
        const previous = wake
        wake = () => {
          previous()
          clearTimeout(timer)
          resolve()
        }
        request.once('close', resolve)
      })
    }
    const join: Record<string, { timeline: Record<string, unknown> }> = {}
    const state = since === null ? events.filter(({ event }) => event['type'] === 'm.room.encryption') : []
    const filter = JSON.parse(url.searchParams.get('filter') ?? '{}') as { room?: { timeline?: { limit?: number } } }
    const limit = filter.room?.timeline?.limit ?? 10
    for (const room of new Set([...state, ...events.slice(from)].map((of) => of.room))) {
      const older = state.filter((of) => of.room === room).map(({ event }) => event)
      const page = pageBefore(room, events.length, from, limit)
      join[room] = {
        timeline: {
          events: [...older, ...page.events.toReversed()],
          limited: page.end > from,
          prev_batch: String(page.end),
        },
      }
    }
    const invite = Object.fromEntries(
      invites.splice(0).map(({ room, by, state }) => [
        room,
        {
          invite_state: {
            events: [
              ...state.map((type) => ({ type, state_key: '', sender: by, content: {} })),
              { type: 'm.room.member', state_key: BOT, sender: by, content: { membership: 'invite' } },
            ],
          },
        },
      ]),
    )
    answer(response, 200, { next_batch: String(events.length), rooms: { join, invite } })
  }

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', 'http://fake')
    let text = ''
    for await (const chunk of request) text += String(chunk)
    const at = planned.findIndex(({ part }) => url.pathname.includes(part))
    const [plan] = at === -1 ? [] : planned.splice(at, 1)
    if (plan !== undefined) return answer(response, plan.status, plan.body, plan.headers)
    if (request.headers.authorization !== `Bearer ${token}`) {
      return answer(response, 401, { errcode: 'M_UNKNOWN_TOKEN', error: 'Unknown token' })
    }
    const path = url.pathname.replace('/_matrix/client/v3', '')
    if (path === '/account/whoami') return answer(response, 200, { user_id: BOT })
    if (path === '/sync') return sync(request, response, url)
    if (path.endsWith('/account_data/m.direct')) {
      if (request.method === 'PUT') direct = JSON.parse(text) as typeof direct
      return answer(response, Object.keys(direct).length === 0 ? 404 : 200, direct)
    }
    if (path === '/createRoom') {
      const room = `!private${made.size}:fake`
      made.set(room, (JSON.parse(text) as { invite: string[] }).invite)
      return answer(response, 200, { room_id: room })
    }
    const [, of = '', member = ''] = (/^\/rooms\/([^/]+)\/state\/m\.room\.member\/(.+)$/.exec(path) ?? []).map(
      decodeURIComponent,
    )
    if (of !== '') {
      const isThere = made.get(of)?.includes(member) === true
      return answer(response, isThere ? 200 : 404, isThere ? { membership: 'invite' } : {})
    }
    const [, room = '', operation, , transaction = ''] = path.slice(1).split('/').map(decodeURIComponent)
    if (operation === 'join') {
      joined.push(room)
      return answer(response, 200, { room_id: room })
    }
    if (operation === 'messages') {
      const asked = (name: string): number => Number(url.searchParams.get(name) ?? 0)
      const { events: chunk, end } = pageBefore(room, asked('from'), asked('to'), asked('limit'))
      return answer(response, 200, {
        chunk,
        start: url.searchParams.get('from'),
        ...(end > 0 ? { end: String(end) } : {}),
      })
    }
    attempts += 1
    const content = JSON.parse(text) as {
      body: string
      formatted_body: string
      'm.relates_to'?: { event_id: string }
      'm.mentions'?: { user_ids?: string[] }
    }
    const known = seen.get(transaction)
    if (known === undefined) {
      posts.push({
        room,
        body: content.body,
        formatted: content.formatted_body,
        thread: content['m.relates_to']?.event_id,
        transaction,
        mentions: content['m.mentions']?.user_ids ?? [],
      })
      seen.set(transaction, `$post${seen.size}`)
    }
    answer(response, 200, { event_id: seen.get(transaction) })
  }

  const server = createServer((request, response) => {
    take(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0

  function add(room: string, event: Record<string, unknown>): void {
    events.push({ room, event })
    wake()
  }

  return {
    url: `http://127.0.0.1:${port ?? 0}`,
    token,
    posts,
    attempts: () => attempts,
    joined,
    say(
      body,
      { sender = '@ann:fake', room = '!ops:fake', content = {}, at = Date.now(), type = 'm.room.message', state } = {},
    ) {
      count += 1
      const id = `$${series}-${count}:fake`
      add(room, {
        type,
        event_id: id,
        sender,
        origin_server_ts: at,
        ...(state === undefined ? {} : { state_key: state }),
        content: { msgtype: 'm.text', body, ...content },
      })
      return id
    },
    repeat(id) {
      const known = events.find(({ event }) => event['event_id'] === id)
      if (known !== undefined) add(known.room, known.event)
    },
    invite(room, by, state = []) {
      invites.push({ room, by, state })
      wake()
    },
    answerNext: (part, status, body, headers = {}) => planned.push({ part, status, body, headers }),
    planned: () => planned.length,
    answerAgain: () => planned.splice(0),
    cut: () => server.closeAllConnections(),
    waitForPost: (wanted) =>
      waitFor(`the post ${String(wanted)}`, () =>
        posts.find(({ body }) => (typeof wanted === 'string' ? body === wanted : wanted.test(body))),
      ),
    async stop() {
      wake()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
