/** A network proxy on loopback: it alone knows where the hosts of a test are. */
import http from 'node:http'
import { connect, type AddressInfo } from 'node:net'

export interface TestProxy {
  readonly url: string
  readonly port: number
  /** Every request so far, such as `GET http://svc.test:9101/v1/user` or `CONNECT svc.test:9101`. */
  readonly requests: readonly string[]
  /** `Proxy-Authorization` of each of them. */
  readonly credentials: readonly (string | undefined)[]
  close(): Promise<void>
}

export interface ProxyOptions {
  /** Host and port → where they really are, such as `svc.test:9101` → `127.0.0.1:40001`. Others are answered 502. */
  hosts: Readonly<Record<string, string>>
  /** Asked for as `Proxy-Authorization`; without, everybody may. */
  credential?: string
}

export async function startProxy({ hosts, credential }: ProxyOptions): Promise<TestProxy> {
  const requests: string[] = []
  const credentials: (string | undefined)[] = []
  const admits = (request: http.IncomingMessage): boolean => {
    requests.push(`${request.method} ${request.url}`)
    const given = request.headers['proxy-authorization']
    credentials.push(given)
    return credential === undefined || given === credential
  }
  const proxy = http.createServer((request, response) => {
    if (!admits(request)) {
      response.writeHead(407, { 'Proxy-Authenticate': 'Basic' }).end('who are you?')
      return
    }
    const { method = 'GET', url = '', headers } = request
    const target = URL.canParse(url) ? new URL(url) : undefined
    const place = target === undefined ? undefined : hosts[target.host]
    if (target === undefined || place === undefined) {
      response.writeHead(502).end('no such host')
      return
    }
    const address = new URL(`${target.pathname}${target.search}`, `http://${place}`)
    const passed = http.request(address, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
      answer.once('error', () => response.destroy())
    })
    passed.once('error', () => response.destroy())
    response.once('close', () => passed.destroy())
    request.pipe(passed)
  })
  proxy.on('connect', (request, socket) => {
    socket.on('error', () => undefined)
    if (!admits(request)) {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n')
      return
    }
    const [host = '', port = ''] = hosts[request.url ?? '']?.split(':') ?? []
    if (port === '') {
      socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n')
      return
    }
    const far = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      socket.pipe(far).pipe(socket)
    })
    far.on('error', () => socket.destroy())
    socket.on('close', () => far.destroy())
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const { port } = proxy.address() as AddressInfo // it listens at a port
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests,
    credentials,
    close: () =>
      new Promise((resolve) => {
        proxy.close(() => resolve())
        proxy.closeAllConnections()
      }),
  }
}
