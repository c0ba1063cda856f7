/** Mattermost, as far as a bot sees it: posts of one team, over REST and a WebSocket. */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { WebSocketServer } from 'ws'
import { waitFor } from './wait.ts'

interface Post {
  id: string
  channel_id: string
  user_id: string
  message: string
  root_id: string
  create_at: number
  /** Also when it gets a reaction. */
  update_at: number
  delete_at: number
  type: string
  props: Record<string, unknown>
}

export interface FakeMattermost {
  readonly url: string
  readonly token: string
  /** Of the bot. */
  readonly posts: Post[]
  readonly calls: string[]
  readonly connections: () => number
  /** @returns the post */
  say(message: string, more?: Partial<Post> & { channelType?: string; isQuiet?: boolean }): Post
  /** Tells of a post once more. */
  repeat(post: Post): void
  sendRaw(text: string): void
  /** The next request whose method and path begin so gets this answer; `isDone`: it has its effect all the same. */
  answerNext(
    start: string,
    status: number,
    body: string,
    more?: { headers?: Record<string, string>; isDone?: boolean },
  ): void
  cut(): void
  waitForPost(text: string | RegExp): Promise<Post>
  stop(): Promise<void>
}

export const MATTERMOST_BOT = 'bot0'

export async function startFakeMattermost(): Promise<FakeMattermost> {
  const token = 'mattermost-canary-token'
  const all: Post[] = []
  const posts: Post[] = []
  const calls: string[] = []
  const planned: { start: string; status: number; body: string; headers: Record<string, string>; isDone: boolean }[] =
    []
  const sockets = new WebSocketServer({ noServer: true })
  /** Those that have proved who they are. */
  const admitted = new Set<unknown>()

  function tell(post: Post, channelType: string): void {
    const text = JSON.stringify({
      event: 'posted',
      data: { post: JSON.stringify(post), channel_type: channelType },
      seq: 1,
    })
    for (const socket of sockets.clients) if (admitted.has(socket)) socket.send(text)
  }
  sockets.on('connection', (socket) => {
    socket.on('message', (data: Buffer) => {
      const {
        action,
        data: given,
        seq,
      } = JSON.parse(data.toString()) as {
        action: string
        data: { token?: string }
        seq: number
      }
      if (action === 'ping') socket.send(JSON.stringify({ status: 'OK', data: { text: 'pong' }, seq_reply: seq }))
      if (action !== 'authentication_challenge') return
      if (given.token !== token) socket.close()
      else {
        admitted.add(socket)
        socket.send(JSON.stringify({ event: 'hello', data: { server_version: '10.0' }, seq: 0 }))
      }
    })
  })

  const asList = (found: Post[]): unknown => ({
    order: found.map(({ id }) => id),
    posts: Object.fromEntries(found.map((post) => [post.id, post])),
  })

  function answerOf(method: string, url: URL, body: Record<string, unknown>): unknown {
    const path = url.pathname.replace('/api/v4', '')
    if (method === 'POST' && path === '/posts') {
      const post: Post = {
        id: randomUUID(),
        user_id: MATTERMOST_BOT,
        channel_id: String(body['channel_id']),
        message: String(body['message']),
        root_id: typeof body['root_id'] === 'string' ? body['root_id'] : '',
        props: (body['props'] ?? {}) as Record<string, unknown>, // as the bot made them
        create_at: Date.now(),
        update_at: Date.now(),
        delete_at: 0,
        type: '',
      }
      posts.push(post)
      all.push(post)
      tell(post, 'O')
      return post
    }
    if (method === 'POST' && path === '/channels/direct') return { id: (body as unknown as string[]).join('__') }
    if (path === '/users/ann') return { id: 'ann', username: 'ann.smith' }
    if (path === '/users/me') return { id: MATTERMOST_BOT, username: 'svc' }
    if (path === '/users/me/teams') return [{ id: 'team0' }]
    if (path === '/users/me/teams/team0/channels') {
      return [
        { id: 'ops', type: 'O' },
        { id: 'ann__bot0', type: 'D' },
      ]
    }
    const [, channel] = /^\/channels\/([^/]+)\/posts$/.exec(path) ?? []
    const since = Number(url.searchParams.get('since') ?? 0)
    if (channel !== undefined) {
      const found = all.filter((post) => post.channel_id === channel && post.update_at > since)
      // What a reply belongs to comes with it.
      return asList(all.filter((post) => found.includes(post) || found.some(({ root_id: of }) => of === post.id)))
    }
    const [, root] = /^\/posts\/([^/]+)\/thread$/.exec(path) ?? []
    if (root !== undefined) return asList(all.filter(({ id, root_id: of }) => id === root || of === root))
    return undefined
  }

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const { method = '' } = request
    const url = new URL(request.url ?? '', 'http://fake')
    const call = `${method} ${url.pathname.replace('/api/v4', '')}`
    calls.push(call)
    const send = (status: number, body: unknown, headers: Record<string, string> = {}): void => {
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(text)
    }
    if (request.headers.authorization !== `Bearer ${token}`) {
      send(401, { message: 'Invalid or expired session' })
      return
    }
    const body = chunks.length === 0 ? {} : (JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>)
    const index = planned.findIndex(({ start }) => call.startsWith(start))
    const [plan] = index === -1 ? [] : planned.splice(index, 1)
    const answer = plan === undefined || plan.isDone ? answerOf(method, url, body) : undefined
    if (plan !== undefined) send(plan.status, plan.body, plan.headers)
    else if (answer === undefined) send(404, { message: 'not found' })
    else send(200, answer)
  }

  const server = createServer((request, response) => {
    respond(request, response).catch(() => response.destroy())
  })
  server.on('upgrade', (request, socket, head) => {
    sockets.handleUpgrade(request, socket, head, (client) => sockets.emit('connection', client, request))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()

  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    token,
    posts,
    calls,
    connections: () => admitted.size,
    say(message, { channelType = 'O', isQuiet = false, ...more } = {}) {
      const at = more.create_at ?? Date.now()
      const post: Post = {
        id: randomUUID(),
        channel_id: 'ops',
        user_id: 'ann',
        message,
        root_id: '',
        create_at: at,
        update_at: at,
        delete_at: 0,
        type: '',
        props: {},
        ...more,
      }
      all.push(post)
      if (!isQuiet) tell(post, channelType)
      return post
    },
    repeat(post) {
      tell(post, 'O')
    },
    sendRaw(text) {
      for (const socket of sockets.clients) socket.send(text)
    },
    answerNext(start, status, body, { headers = {}, isDone = false } = {}) {
      planned.push({ start, status, body, headers, isDone })
    },
    cut() {
      admitted.clear()
      for (const socket of sockets.clients) socket.terminate()
    },
    async waitForPost(text) {
      const isIt = ({ message }: Post): boolean => (typeof text === 'string' ? message === text : text.test(message))
      await waitFor(`a post ${String(text)}`, () => posts.some(isIt))
      const [found] = posts.filter(isIt)
      if (found === undefined) throw new Error('The post is gone.')
      return found
    },
    async stop() {
      for (const socket of sockets.clients) socket.terminate()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
