/** What a listener promises of its connections, without and with TLS. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { TLSSocket, connect as connectTls } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeAuthority, type Authority, type Certificate } from '../../tests/helpers/certificates.ts'
import { makeFolder } from '../../tests/helpers/folders.ts'
import { startHttp, type TestHttp, type TestTls } from '../../tests/helpers/http.ts'
import { waitFor } from '../../tests/helpers/wait.ts'
import type { JsonRoute, Route } from './route.ts'
import { readTlsIdentity, type TlsIdentity } from './tls.ts'

const folder = makeFolder()
let authority: Authority
let first: TlsIdentity
let second: TlsIdentity
let ca: Buffer

beforeAll(async () => {
  authority = await makeAuthority(folder.path, 'test')
  ca = readFileSync(authority.caFile)
  first = await identityOf(authority.issue('first', 'IP:127.0.0.1'))
  second = await identityOf(authority.issue('second', 'IP:127.0.0.1'))
}, 240_000)

afterAll(() => folder.remove())

async function identityOf({ certFile, keyFile }: Certificate): Promise<TlsIdentity> {
  const reading = await readTlsIdentity('api', { cert: certFile, key: keyFile })
  if ('problems' in reading) throw new Error(reading.problems.join())
  return reading.identity
}

/** Lets answers through one at a time. */
const gate = { begun: 0, open: (): void => undefined }

async function* endlessText(): AsyncGenerator<string> {
  for (;;) {
    yield 'x'.repeat(10_000)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const get = (path: string, handler: JsonRoute['handler']): JsonRoute => ({
  surface: 'api',
  method: 'get',
  path,
  summary: '',
  response: {},
  permission: 'public',
  handler,
})

const routes: Route[] = [
  get('/gate', async () => {
    gate.begun += 1
    const name = `gate ${gate.begun}`
    await new Promise<void>((resolve) => (gate.open = resolve))
    return name
  }),
  get('/last', () => 'last'),
  { ...get('/endless', endlessText), mediaType: 'text/plain' },
]

const request = (path: string, more = ''): string => `GET /v1${path} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`
const lastRequest = request('/last', 'Connection: close\r\n')

const handshakes: string[] = []

function start(kind: 'http' | 'https', more: Partial<TestTls> = {}): Promise<TestHttp> {
  const tls: TestTls = {
    ca,
    identity: first,
    headers: { 'Strict-Transport-Security': 'max-age=1' },
    handshakeFailed: (error) => handshakes.push(error.code ?? error.message),
    ...more,
  }
  return startHttp(routes, {}, kind === 'https' ? tls : undefined)
}

describe.each(['http', 'https'] as const)('over %s', (kind) => {
  let http: TestHttp

  beforeAll(async () => {
    http = await start(kind)
  })
  afterAll(() => http.close())

  test('the address says so', () => {
    expect(http.urls.api).toMatch(new RegExp(`^${kind}://127\\.0\\.0\\.1:\\d+$`))
  })

  test('requests sent ahead are answered one after another', async () => {
    const before = gate.begun
    const pipelined = http.raw(request('/gate').repeat(2) + lastRequest)
    await waitFor('the first', () => gate.begun === before + 1)
    expect(await http.raw(lastRequest)).toContain('"last"')
    expect(gate.begun).toBe(before + 1)
    gate.open()
    await waitFor('the second', () => gate.begun === before + 2)
    gate.open()
    const answers = [...(await pipelined).matchAll(/"(gate \d+|last)"/g)].map((match) => match[1])
    expect(answers).toEqual([`gate ${before + 1}`, `gate ${before + 2}`, 'last'])
  })

  test('more than a hundred of them end the connection', async () => {
    expect(await http.raw(request('/gate').repeat(102))).toBe('')
    gate.open()
  })

  test('what is no HTTP is answered with a reason, and the end', async () => {
    const answered = await http.raw('hello\r\n\r\n')
    expect(answered).toMatch(/^HTTP\/1\.1 400 /)
    expect(answered).toContain('"code":"REQUEST_MALFORMED"')
    expect(await http.raw(`GET /v1/last?id=${'a'.repeat(20_000)} HTTP/1.1\r\n`)).toMatch(/^HTTP\/1\.1 431 /)
  })

  test('what is no HTTP does not mix with an answer that has begun', async () => {
    const socket = http.connect()
    let received = ''
    let isSent = false
    socket.on('data', (part: Buffer) => {
      received += part.toString('latin1')
      if (isSent) return
      isSent = true
      socket.write('hello\r\n\r\n')
    })
    socket.write(request('/endless'))
    await once(socket, 'close')
    expect(received).toContain('200 OK')
    expect(received).not.toContain('REQUEST_MALFORMED')
  })

  test('what is no HTTP is not answered in the place of a request that is carried out', async () => {
    const before = gate.begun
    const answered = http.raw(`${request('/gate')}hello\r\n\r\n`)
    await waitFor('the first', () => gate.begun === before + 1)
    gate.open()
    expect((await answered).match(/HTTP\/1\.1 \d+|gate \d+|REQUEST_MALFORMED/g)).toEqual([
      'HTTP/1.1 200',
      `gate ${before + 1}`,
      'HTTP/1.1 400',
      'REQUEST_MALFORMED',
    ])
  })

  test('the host of an absolute address counts', async () => {
    expect(
      await http.raw(`GET ${kind}://127.0.0.1/v1/last HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n`),
    ).toContain('"last"')
    expect(
      await http.raw(`GET ${kind}://evil.example/v1/last HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`),
    ).toContain('ORIGIN_REFUSED')
  })

  test('answers carry the headers of TLS with TLS alone', async () => {
    for (const sent of [lastRequest, request('/nowhere', 'Connection: close\r\n'), 'OPTIONS / HTTP/1.0\r\n\r\n']) {
      const answered = await http.raw(sent)
      expect(/^strict-transport-security: max-age=1\r$/im.test(answered)).toBe(kind === 'https')
    }
  })

  test('close takes no new connections, and waits for requests under way', async () => {
    const stopping = await start(kind)
    const before = gate.begun
    const answered = stopping.raw(request('/gate', 'Connection: close\r\n'))
    await waitFor('the request', () => gate.begun === before + 1)
    const closed = Promise.all(stopping.listeners.map((listener) => listener.close(60_000)))
    const late = connect(Number(new URL(stopping.urls.api).port), '127.0.0.1')
    const [error] = (await once(late, 'error')) as [NodeJS.ErrnoException] // what a socket reports
    // Reset: it came before the system had closed the port, and nobody took it.
    expect(['ECONNREFUSED', 'ECONNRESET']).toContain(error.code)
    gate.open()
    expect(await answered).toContain(`gate ${before + 1}`)
    await closed
  })

  test('close cuts what goes on after its grace', async () => {
    const stopping = await start(kind)
    const socket = stopping.connect()
    socket.on('error', () => undefined)
    socket.write(request('/endless'))
    await once(socket, 'data')
    const cut = once(socket, 'close')
    let end = ''
    socket.on('data', (part: Buffer) => (end = part.toString('latin1').slice(-5)))
    await stopping.close()
    await cut
    expect(end).not.toBe('0\r\n\r\n')
  })
})

describe('TLS', () => {
  let http: TestHttp

  beforeAll(async () => {
    http = await start('https')
  })
  afterAll(() => http.close())

  const port = (): number => Number(new URL(http.urls.api).port)

  /** Common name of the certificate that a new connection meets. */
  async function nameMet(session?: Buffer): Promise<string> {
    const socket = connectTls({ port: port(), host: '127.0.0.1', ca, session })
    await once(socket, 'secureConnect')
    const name = String(socket.getPeerCertificate().subject.CN)
    socket.destroy()
    return name
  }

  test('plain HTTP fails at the connection, and the listener hears of it', async () => {
    const before = handshakes.length
    const socket = connect(port(), '127.0.0.1')
    socket.on('error', () => undefined)
    let received = ''
    socket.on('data', (part: Buffer) => (received += part.toString('latin1')))
    socket.write(lastRequest)
    await once(socket, 'close')
    expect(received).not.toContain('HTTP')
    expect(handshakes.slice(before)).toEqual(['ERR_SSL_HTTP_REQUEST'])
    expect(await http.raw(lastRequest)).toContain('"last"')
  })

  test('two hundred strangers at once disturb nobody', async () => {
    const strangers = Array.from({ length: 200 }, (_, index) => {
      const socket = connect(port(), '127.0.0.1')
      socket.on('error', () => undefined)
      socket.end(index % 2 === 0 ? 'GET / HTTP/1.1\r\n\r\n' : Buffer.alloc(300, index))
      socket.resume()
      return once(socket, 'close')
    })
    expect(await http.raw(lastRequest)).toContain('"last"')
    await Promise.all(strangers)
    expect(await http.raw(lastRequest)).toContain('"last"')
  })

  test.each(['TLSv1', 'TLSv1.1'] as const)('%s is refused, 1.2 and 1.3 are spoken', async (version) => {
    const old = connectTls({
      port: port(),
      host: '127.0.0.1',
      ca,
      minVersion: version,
      maxVersion: version,
      ciphers: 'DEFAULT@SECLEVEL=0',
    })
    const [error] = (await once(old, 'error')) as [NodeJS.ErrnoException] // what a socket reports
    expect(error.code).toMatch(/^ERR_SSL_.*(VERSION|PROTOCOL)/)
    for (const spoken of ['TLSv1.2', 'TLSv1.3'] as const) {
      const socket = connectTls({ port: port(), host: '127.0.0.1', ca, minVersion: spoken, maxVersion: spoken })
      await once(socket, 'secureConnect')
      expect(socket.getProtocol()).toBe(spoken)
      socket.destroy()
    }
  })

  test('a renewed certificate is for new connections, also those that resume an old session', async () => {
    const old = http.connect()
    if (!(old instanceof TLSSocket)) throw new Error('not TLS')
    const session = once(old, 'session') as Promise<[Buffer]> // its ticket
    let received = ''
    old.on('data', (part: Buffer) => (received += part.toString()))
    old.write(request('/last'))
    const [ticket] = await session
    await waitFor('the first answer', () => received.includes('"last"'))
    expect(await nameMet()).toBe('first')
    for (const listener of http.listeners) listener.renew(second)
    expect(await nameMet()).toBe('second')
    expect(await nameMet(ticket)).toBe('second')
    received = ''
    old.write(request('/last'))
    await waitFor('the second answer', () => received.includes('"last"'))
    old.destroy()
  })

  test('a handshake that is never finished does not keep a listener from closing', async () => {
    const stopping = await start('https')
    const silent = connect(Number(new URL(stopping.urls.api).port), '127.0.0.1')
    silent.on('error', () => undefined)
    await once(silent, 'connect')
    // It is accepted once somebody who came later is served.
    expect(await stopping.raw(lastRequest)).toContain('"last"')
    const closed: Promise<unknown> = once(silent, 'close')
    silent.resume()
    await stopping.close()
    await closed
  })

  test('a handshake that is never finished is cut in the end', async () => {
    const impatient = await start('https', { handshakeMs: 50 })
    const before = handshakes.length
    const silent = connect(Number(new URL(impatient.urls.api).port), '127.0.0.1')
    silent.on('error', () => undefined)
    silent.resume()
    await once(silent, 'close')
    await impatient.close()
    expect(handshakes.slice(before)).toContain('ERR_TLS_HANDSHAKE_TIMEOUT')
  })

  test('a listener without TLS has nothing to renew', async () => {
    const plain = await start('http')
    expect(() => plain.listeners[0]?.renew(second)).toThrow('without TLS')
    await plain.close()
  })
})
