/** An HTTP receiver on loopback that keeps what it gets. */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'

export interface Received {
  path: string
  headers: IncomingHttpHeaders
  text: string
  /** The body as JSON. */
  body: unknown
}

export interface Receiver {
  url: string
  received: Received[]
  /** Chooses the answer to each request; default: 200 `ok`. Undefined: no answer. */
  answer: (
    request: Received,
    count: number,
  ) => { status: number; text?: string; headers?: Record<string, string>; afterMs?: number } | undefined
  close(): Promise<void>
}

export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('error', () => undefined)
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      const one = { path: request.url ?? '', headers: request.headers, text, body: parse(text) }
      received.push(one)
      const answer = receiver.answer(one, received.length)
      if (answer === undefined) return
      const say = (): unknown => response.writeHead(answer.status, answer.headers).end(answer.text ?? '')
      if (answer.afterMs === undefined) say()
      else setTimeout(say, answer.afterMs)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // it listens on TCP
  const receiver: Receiver = {
    url: `http://127.0.0.1:${port}`,
    received,
    answer: () => ({ status: 200, text: 'ok' }),
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return receiver
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
