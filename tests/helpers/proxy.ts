/** A network proxy on loopback: it alone knows where the hosts of a test are. */
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { passOn, startFront } from './front.ts'

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
  const admits = (request: IncomingMessage): boolean => {
    requests.push(`${request.method} ${request.url}`)
    const given = request.headers['proxy-authorization']
    credentials.push(given)
    return credential === undefined || given === credential
  }
  const { server, url, port, close } = await startFront((request, response) => {
    if (!admits(request)) {
      response.writeHead(407, { 'Proxy-Authenticate': 'Basic' }).end('who are you?')
      return
    }
    const asked = request.url ?? ''
    const target = URL.canParse(asked) ? new URL(asked) : undefined
    const place = target === undefined ? undefined : hosts[target.host]
    if (target === undefined || place === undefined) {
      response.writeHead(502).end('no such host')
      return
    }
    passOn(request, response, new URL(`${target.pathname}${target.search}`, `http://${place}`))
  })
  server.on('connect', (request, socket) => {
    socket.on('error', () => undefined)
    if (!admits(request)) {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n')
      return
    }
    const [host = '', hostPort = ''] = hosts[request.url ?? '']?.split(':') ?? []
    if (hostPort === '') {
      socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n')
      return
    }
    const far = connect(Number(hostPort), host, () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      socket.pipe(far).pipe(socket)
    })
    far.on('error', () => socket.destroy())
    socket.on('close', () => far.destroy())
  })
  return { url, port, requests, credentials, close }
}
