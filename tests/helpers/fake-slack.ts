/** Slack, as far as a bot sees it: the Web API of one workspace and Socket Mode. */
import { randomInt, randomUUID } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import { WebSocketServer, type WebSocket } from 'ws'
import { waitFor } from './wait.ts'

export interface SlackPost {
  channel: string
  text: string
  thread: string | undefined
  metadata: unknown
  attachments: Record<string, unknown>[]
}

export interface FakeSlack {
  /** Of the Web API. */
  readonly url: string
  readonly token: string
  readonly appToken: string
  /** What the channels show. */
  readonly posts: SlackPost[]
  /** Names of the methods that were called. */
  readonly calls: string[]
  readonly connections: () => number
  /** Envelopes that are not confirmed. */
  readonly waiting: () => number
  /** @returns the time stamp of the message */
  say(text: string, more?: Record<string, unknown>): string
  slash(text: string, user?: string): void
  /** Delivers an event once more. */
  repeat(ts: string): void
  /** Sends a text as it is to every connection. */
  sendRaw(text: string): void
  /** The next call of the method gets this answer; `isDone`: it has its effect all the same. */
  answerNext(
    method: string,
    status: number,
    body: unknown,
    more?: { headers?: Record<string, string>; isDone?: boolean },
  ): void
  /** Ends every connection. */
  cut(): void
  waitForPost(text: string | RegExp): Promise<SlackPost>
  stop(): Promise<void>
}

export const SLACK_BOT = 'U0BOT'

interface Planned {
  method: string
  status: number
  body: unknown
  headers: Record<string, string>
  isDone: boolean
}

export async function startFakeSlack(): Promise<FakeSlack> {
  const token = 'xoxb-canary-token'
  const appToken = 'xapp-canary-token'
  const posts: SlackPost[] = []
  const calls: string[] = []
  const planned: Planned[] = []
  const envelopes = new Map<string, string>()
  const delivered = new Map<string, Record<string, unknown>>()
  // Time stamps of messages are never the same, in no workspace.
  let count = randomInt(900_000)

  const sockets = new WebSocketServer({ noServer: true })
  const deliver = (id: string, envelope: Record<string, unknown>): void => {
    const text = JSON.stringify({ envelope_id: id, accepts_response_payload: true, ...envelope })
    envelopes.set(id, text)
    for (const socket of sockets.clients) socket.send(text)
  }
  sockets.on('connection', (socket: WebSocket) => {
    socket.send(JSON.stringify({ type: 'hello', num_connections: 1 }))
    for (const text of envelopes.values()) socket.send(text)
    socket.on('message', (data: Buffer) => {
      const { envelope_id: id } = JSON.parse(data.toString()) as { envelope_id: string }
      envelopes.delete(id)
    })
  })

  function methodAnswer(method: string, fields: URLSearchParams): unknown {
    if (method === 'auth.test') return { ok: true, user_id: SLACK_BOT, team: 'fake' }
    if (method === 'apps.connections.open')
      return { ok: true, url: `${base.replace('http', 'ws')}/link/${randomUUID()}` }
    if (method === 'chat.postMessage') {
      posts.push({
        channel: fields.get('channel') ?? '',
        text: fields.get('text') ?? '',
        thread: fields.get('thread_ts') ?? undefined,
        metadata: JSON.parse(fields.get('metadata') ?? 'null'),
        attachments: JSON.parse(fields.get('attachments') ?? '[]') as Record<string, unknown>[],
      })
      return { ok: true, ts: `${Date.now() / 1000}` }
    }
    if (method === 'conversations.open') return { ok: true, channel: { id: `D-${fields.get('users') ?? ''}` } }
    if (method === 'conversations.replies' || method === 'conversations.history') {
      const thread = fields.get('ts') ?? undefined
      const found = posts.filter((post) => post.channel === fields.get('channel') && post.thread === thread)
      return { ok: true, messages: found.map(({ text, metadata }) => ({ text, metadata })) }
    }
    return { ok: false, error: 'unknown_method' }
  }

  function respond(
    response: ServerResponse,
    status: number,
    body: unknown,
    headers: Record<string, string> = {},
  ): void {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(text)
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const method = (request.url ?? '').replace('/api/', '')
      calls.push(method)
      const expected = method === 'apps.connections.open' ? appToken : token
      if (request.headers.authorization !== `Bearer ${expected}`) {
        respond(response, 200, { ok: false, error: 'invalid_auth' })
        return
      }
      const fields = new URLSearchParams(Buffer.concat(chunks).toString())
      const index = planned.findIndex((plan) => plan.method === method)
      const [plan] = index === -1 ? [] : planned.splice(index, 1)
      if (plan === undefined) respond(response, 200, methodAnswer(method, fields))
      else {
        if (plan.isDone) methodAnswer(method, fields)
        respond(response, plan.status, plan.body, plan.headers)
      }
    })
  })
  server.on('upgrade', (request, socket, head) => {
    sockets.handleUpgrade(request, socket, head, (client) => sockets.emit('connection', client, request))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const base = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`

  return {
    url: `${base}/api/`,
    token,
    appToken,
    posts,
    calls,
    connections: () => sockets.clients.size,
    waiting: () => envelopes.size,
    say(text, more = {}) {
      count += 1
      const ts = `${Math.floor(Date.now() / 1000)}.${String(count).padStart(6, '0')}`
      const event = { type: 'message', channel: 'C0OPS', channel_type: 'channel', user: 'U0ANN', text, ts, ...more }
      delivered.set(ts, event)
      deliver(randomUUID(), { type: 'events_api', payload: { type: 'event_callback', event } })
      return ts
    },
    repeat(ts) {
      deliver(randomUUID(), {
        type: 'events_api',
        retry_attempt: 1,
        payload: { type: 'event_callback', event: delivered.get(ts) },
      })
    },
    slash(text, user = 'U0ANN') {
      const payload = { command: '/svc', text, user_id: user, channel_id: 'C0OPS', trigger_id: randomUUID() }
      deliver(randomUUID(), { type: 'slash_commands', payload })
    },
    sendRaw(text) {
      for (const socket of sockets.clients) socket.send(text)
    },
    answerNext(method, status, body, { headers = {}, isDone = false } = {}) {
      planned.push({ method, status, body, headers, isDone })
    },
    cut() {
      for (const socket of sockets.clients) socket.terminate()
    },
    async waitForPost(text) {
      const isIt = (post: SlackPost): boolean => (typeof text === 'string' ? post.text === text : text.test(post.text))
      await waitFor(`a post ${String(text)}`, () => posts.some(isIt))
      return posts.findLast(isIt) ?? { channel: '', text: '', thread: undefined, metadata: null, attachments: [] }
    },
    async stop() {
      for (const socket of sockets.clients) socket.terminate()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
