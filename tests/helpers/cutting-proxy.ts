/** A way to a server that breaks again and again. */
import net, { type AddressInfo } from 'node:net'

export interface CuttingProxy {
  readonly port: number
  /** How often a connection was cut. */
  cuts(): number
  /** Cuts all connections, and lets nobody through. */
  shut(): void
  open(): void
  stop(): Promise<void>
}

/** @param maxBytes of answers, after which a connection is cut */
export async function startCuttingProxy(url: string, maxBytes: number): Promise<CuttingProxy> {
  const { hostname, port } = new URL(url)
  let cuts = 0
  let isShut = false
  const sockets = new Set<net.Socket>()
  const listener = net.createServer((client) => {
    if (isShut) {
      client.destroy()
      return
    }
    const upstream = net.connect(Number(port), hostname)
    let passed = 0
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
    client.pipe(upstream)
    upstream.on('data', (bytes: Buffer) => {
      const allowed = bytes.subarray(0, maxBytes - passed)
      passed += allowed.length
      if (passed < maxBytes) client.write(allowed)
      else {
        cuts += 1
        client.end(allowed)
        upstream.destroy()
      }
    })
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const address = listener.address() as AddressInfo // it listens on a port
  return {
    port: address.port,
    cuts: () => cuts,
    shut() {
      isShut = true
      for (const socket of sockets) socket.destroy()
    },
    open() {
      isShut = false
    },
    stop: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => listener.close(resolve))
    },
  }
}
