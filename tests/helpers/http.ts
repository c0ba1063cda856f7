/** The HTTP layer alone: a route table of the test's own behind real listeners. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { RequestAdmission } from '../../src/http/admission.ts'
import { createHttpApp, type HttpAppOptions } from '../../src/http/app.ts'
import { openAccess } from '../../src/http/authenticate.ts'
import { listen, type Listener, type ListenerTls } from '../../src/http/listeners.ts'
import { createOriginPolicy } from '../../src/http/origin.ts'
import { createPeers } from '../../src/http/peers.ts'
import type { Route, Surface } from '../../src/http/route.ts'
import { createLog } from '../../src/lib/log/log.ts'
import { createMemoryLedger } from './ledger.ts'
import { TextSink } from './text-sink.ts'

export interface TestTls extends ListenerTls {
  /** PEM of the authority that clients trust. */
  ca: Buffer
}

export interface TestHttp {
  urls: Record<Surface, string>
  listeners: readonly Listener[]
  /** A connection as clients have one: through TLS where there is TLS. */
  connect(surface?: Surface): Socket
  /** What was logged, the lines of each request aside. */
  logged(): string
  /** Sends these bytes over one connection, and returns what comes back until the server closes it or `until` fits. */
  raw(text: string | Buffer, until?: (received: string) => boolean, surface?: Surface): Promise<string>
  close(): Promise<void>
}

export async function startHttp(
  routes: Route[],
  more: Partial<HttpAppOptions> = {},
  tls?: TestTls,
  admission?: RequestAdmission,
): Promise<TestHttp> {
  const logged = new TextSink()
  const log = createLog({ level: 'DEBUG', format: 'text', stream: logged })
  const app = createHttpApp({
    routes,
    access: openAccess('tester'),
    origins: createOriginPolicy({ allowedOrigins: ['http://allowed.example'], knownHosts: new Set() }),
    peers: createPeers([]),
    maxBodyBytes: 100_000,
    events: { heartbeatSeconds: 60, maxQueuedBytes: 100_000 },
    logs: { auth: log, api: log, stream: log },
    isStopping: () => false,
    ledger: createMemoryLedger(),
    ...more,
  })
  const listeners: Listener[] = []
  const urls: Record<Surface, string> = { auth: '', api: '', stream: '' }
  for (const surface of ['auth', 'api', 'stream'] as const) {
    const listener = await listen(app, {
      surface,
      host: '127.0.0.1',
      port: 0,
      tls,
      ...(admission === undefined ? {} : { admission }),
    })
    listeners.push(listener)
    urls[surface] = listener.url
  }
  const connectTo = (surface: Surface = 'api'): Socket => {
    const address = { port: Number(new URL(urls[surface]).port), host: '127.0.0.1' }
    return tls === undefined ? connect(address) : connectTls({ ...address, ca: tls.ca })
  }
  return {
    urls,
    listeners,
    connect: connectTo,
    logged: () => logged.text.replace(/^.*\(event=request\.(received|answered),.*\n/gm, ''),
    async raw(text, until, surface = 'api') {
      const socket = connectTo(surface)
      let received = ''
      socket.setEncoding('latin1').on('data', (part: string) => {
        received += part
        if (until?.(received) === true) socket.destroy()
      })
      socket.on('error', () => undefined)
      socket.write(text)
      await once(socket, 'close')
      return received
    },
    async close() {
      await Promise.all(listeners.map((listener) => listener.close(0)))
    },
  }
}
