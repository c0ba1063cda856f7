/** Servers on loopback that stand where one of ours would: scripted ones, and fronts that pass on what they get. */
import http from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Front {
  readonly url: string
  readonly port: number
  /** For what is no request. */
  readonly server: http.Server
  /** Cuts what is open. */
  readonly close: () => Promise<void>
}

export async function startFront(answer: http.RequestListener): Promise<Front> {
  const server = http.createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo // it listens at a port
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    server,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Has the server at that address answer, byte for byte. A connection that breaks on one side breaks on the other. */
export function passOn(request: http.IncomingMessage, response: http.ServerResponse, address: URL): void {
  const { method = 'GET', headers } = request
  const passed = http.request(address, { method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(response)
    answer.once('error', () => response.destroy())
  })
  passed.once('error', () => response.destroy())
  response.once('close', () => passed.destroy())
  request.pipe(passed)
}
