/** A way to a server that loses answers: what was asked for is done, and the connection breaks before anybody is told. */
import net, { type AddressInfo } from 'node:net'

export interface ForgetfulWay {
  readonly url: string
  /** Of the next requests that run an action. */
  loseAnswers(count: number): void
  /** How many of them there were since. */
  requests(): number
  stop(): Promise<void>
}

export async function startForgetfulWay(url: string): Promise<ForgetfulWay> {
  const { hostname, port } = new URL(url)
  const sockets = new Set<net.Socket>()
  let left = 0
  let requests = 0
  const listener = net.createServer((client) => {
    const upstream = net.connect(Number(port), hostname)
    let losesAnswer = false
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket
        .on('error', () => undefined)
        .on('close', () => {
          sockets.delete(socket)
          client.destroy()
          upstream.destroy()
        })
    }
    client.on('data', (bytes) => {
      if (bytes.toString('latin1').startsWith('POST /api/v1/executions ')) {
        requests += 1
        losesAnswer = left > 0
        left -= 1
      }
      upstream.write(bytes)
    })
    upstream.on('data', (bytes) => {
      if (losesAnswer) client.resetAndDestroy()
      else client.write(bytes)
    })
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const address = listener.address() as AddressInfo // it listens on a port
  return {
    url: `http://127.0.0.1:${address.port}`,
    loseAnswers(count) {
      left = count
      requests = 0
    },
    requests: () => requests,
    async stop() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => listener.close(resolve))
    },
  }
}
