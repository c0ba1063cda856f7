/** A front of a server that passes everything on, and keeps which routes were asked for. */
import http from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Recorder {
  /** Stands for all three listeners. */
  readonly url: string
  /** Method and path of every request so far, such as `GET /v1/actions/core.local`. */
  readonly requests: readonly string[]
  close(): Promise<void>
}

/** @param target base URL of the API listener */
export async function startRecorder(target: string): Promise<Recorder> {
  const requests: string[] = []
  const front = http.createServer((request, response) => {
    const { method = 'GET', url = '/' } = request
    requests.push(`${method} ${url.split('?', 1)[0]}`)
    const passed = http.request(new URL(url, target), { method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
      answer.once('error', () => response.destroy())
    })
    passed.once('error', () => response.destroy())
    response.once('close', () => passed.destroy())
    request.pipe(passed)
  })
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve))
  const { port } = front.address() as AddressInfo // it listens at a port
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        front.close(() => resolve())
        front.closeAllConnections()
      }),
  }
}
