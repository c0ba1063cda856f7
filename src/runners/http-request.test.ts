import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { makeAuthority } from '../../tests/helpers/certificates.ts'
import { makeFolder, type TemporaryFolder } from '../../tests/helpers/folders.ts'
import { recordRun } from '../../tests/helpers/run-context.ts'
import { waitFor } from '../../tests/helpers/wait.ts'
import type { LookupAll } from './http/addresses.ts'
import { createHttpRequest } from './http-request.ts'
import type { RunContext, RunResult } from './runner.ts'

const MAX_BODY_BYTES = 10_000

interface Received {
  method: string | undefined
  url: string | undefined
  headers: IncomingMessage['headers']
  body: string
}

let folder: TemporaryFolder
let url: string
let answer: RequestListener
let received: Received[]
const servers: Server[] = []

async function listen(server: Server, host = '127.0.0.1'): Promise<number> {
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  return (server.address() as AddressInfo).port // it listens on a port
}

const handle: RequestListener = (request, response) => {
  const { method, headers } = request
  void text(request).then((body) => {
    received.push({ method, url: request.url, headers, body })
    answer(request, response)
  })
}

beforeAll(async () => {
  folder = makeFolder()
  url = `http://127.0.0.1:${await listen(createServer(handle))}`
})
afterAll(async () => {
  for (const server of servers) {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  folder.remove()
})
beforeEach(() => {
  received = []
  answer = (_, response) => response.end('hello')
})
afterEach(() => {
  for (const [name, value] of Object.entries(process.env)) {
    if (name.toLowerCase().endsWith('_proxy')) throw new Error(`${name}=${value} is set`)
  }
})

interface Parts {
  own?: Record<string, unknown>
  more?: Partial<RunContext>
  allowed?: string[]
  lookup?: LookupAll
}

function run(runnerParameters: Record<string, unknown>, parts: Parts = {}): Promise<RunResult> {
  const runner = createHttpRequest({
    allowedPrivateNetworks: parts.allowed ?? ['127.0.0.1', '127.0.0.2'],
    maxBodyBytes: MAX_BODY_BYTES,
    ...(parts.lookup === undefined ? {} : { lookup: parts.lookup }),
  })
  const more = { actionRef: 'core.http', actionParameters: parts.own ?? {}, ...parts.more }
  return runner.run(recordRun({ url: `${url}/`, ...runnerParameters }, more).context)
}

const failure = (pattern: RegExp): RunResult => ({
  status: 'failed',
  result: { error: expect.stringMatching(pattern), traceback: expect.any(String) },
})

describe('the answer', () => {
  it('has status, body and headers', async () => {
    answer = (_, response) =>
      response
        .writeHead(
          200,
          [
            ['X-One', '1'],
            ['X-Two', 'a'],
            ['x-two', 'b'],
            ['Content-Type', 'text/plain'],
          ].flat(),
        )
        .end('hello')
    const { status, result } = await run({})
    expect(status).toBe('succeeded')
    expect(result).toEqual({
      status_code: 200,
      body: 'hello',
      parsed: false,
      headers: expect.objectContaining({ 'X-One': '1', 'X-Two': 'a, b', 'Content-Type': 'text/plain' }),
    })
  })

  it.each([
    [200, 'succeeded'],
    [201, 'succeeded'],
    [204, 'succeeded'],
    [206, 'succeeded'],
    [207, 'failed'],
    [302, 'failed'],
    [304, 'failed'],
    [404, 'failed'],
    [500, 'failed'],
  ])('%d has %s', async (code, expected) => {
    answer = (_, response) => response.writeHead(code, { Location: '/x' }).end()
    const { status, result } = await run({})
    expect([status, result['status_code'], result['body']]).toEqual([expected, code, ''])
  })

  it.each<[string, string, unknown, boolean]>([
    ['application/json', '{"a":[1]}', { a: [1] }, true],
    ['Application/JSON; charset=utf-8', '"x"', 'x', true],
    ['application/json', '{"a":', '{"a":', false],
    ['application/json', '', '', false],
    ['application/problem+json', '{}', '{}', false],
    ['text/plain', '{"a":1}', '{"a":1}', false],
  ])('%s with %j is %j', async (type, sent, body, parsed) => {
    answer = (_, response) => response.writeHead(200, { 'Content-Type': type }).end(sent)
    expect((await run({})).result).toMatchObject({ body, parsed })
  })

  it.each([
    ['text/plain; charset=ISO-8859-1', Buffer.from([0xe4]), 'ä'],
    ['text/plain; charset="utf-16le"', Buffer.from('ä', 'utf16le'), 'ä'],
    ['text/plain', Buffer.from([0x61, 0xff, 0xc3]), 'a\ufffd\ufffd'],
    ['text/plain; charset=unheard-of', Buffer.from('ü'), 'ü'],
  ])('%s is decoded', async (type, sent, body) => {
    answer = (_, response) => response.writeHead(200, { 'Content-Type': type }).end(sent)
    expect((await run({})).result['body']).toBe(body)
  })

  it.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ] as const)('is decompressed: %s', async (encoding, compress) => {
    answer = (_, response) => response.writeHead(200, { 'Content-Encoding': encoding }).end(compress('hello'))
    expect((await run({})).result['body']).toBe('hello')
    expect(received[0]?.headers['accept-encoding']).toContain(encoding)
  })

  it.each<[string, RequestListener, RegExp]>([
    ['is too long', (_, response) => response.end('x'.repeat(MAX_BODY_BYTES + 1)), /max_body_bytes \(10000\)/],
    [
      'is too long once decompressed',
      (_, response) => response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(gzipSync(Buffer.alloc(50_000_000))),
      /max_body_bytes/,
    ],
    [
      'is not what it says',
      (_, response) => response.writeHead(200, { 'Content-Encoding': 'gzip' }).end('hello'),
      /does not match its encoding/,
    ],
    [
      'is cut',
      (_, response) =>
        response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(gzipSync('x'.repeat(5000)).subarray(0, 20)),
      /ends too early/,
    ],
    ['is encoded strangely', (_, response) => response.writeHead(200, { 'Content-Encoding': 'zip' }).end('x'), /"zip"/],
    [
      'has too long headers',
      (_, response) => response.writeHead(200, { x: 'x'.repeat(70_000) }).end(),
      /headers .*longer/,
    ],
    [
      'breaks off',
      (_, response) => {
        response.writeHead(200, { 'Content-Length': 100 }).write('x')
        setImmediate(() => response.destroy())
      },
      /closed before/,
    ],
    ['does not come', (_, response) => response.destroy(), /closed before|reset/],
  ])('that %s is a failure', async (_, listener, error) => {
    answer = listener
    expect(await run({})).toEqual(failure(error))
  })

  it('of exactly the limit is taken', async () => {
    answer = (_, response) => response.end('x'.repeat(MAX_BODY_BYTES))
    expect((await run({})).result['body']).toHaveLength(MAX_BODY_BYTES)
  })

  it('of HEAD has no body', async () => {
    answer = (_, response) =>
      response.writeHead(200, { 'Content-Encoding': 'gzip', 'Content-Type': 'application/json' }).end()
    expect((await run({}, { own: { method: 'HEAD' } })).result).toMatchObject({ body: '', parsed: false })
  })
})

describe('the request', () => {
  it('says who sends it, and for which action', async () => {
    await run({})
    expect(received[0]).toMatchObject({
      method: 'GET',
      url: '/',
      headers: { 'user-agent': expect.stringMatching(/^svc\//), 'svc-action': 'core.http' },
      body: '',
    })
    await run({ headers: { 'User-Agent': 'mine' } })
    expect(received[1]?.headers['user-agent']).toBe('mine')
  })

  it.each<[Record<string, unknown>, string, string]>([
    [{}, 'GET', ''],
    [{ body: '' }, 'GET', ''],
    [{ body: 'text' }, 'POST', 'text'],
    [{ body: 'text', method: 'PUT' }, 'PUT', 'text'],
    [{ method: 'DELETE' }, 'DELETE', ''],
    [{ method: 'PATCH', body: 'x' }, 'PATCH', 'x'],
    [{ method: 'PURGE' }, 'PURGE', ''],
    [{ method: 'OPTIONS' }, 'OPTIONS', ''],
    [{ method: 'TRACE' }, 'TRACE', ''],
    [{ body: { a: 1 } }, 'POST', '{"a":1}'],
  ])('%j is sent with %s', async (own, method, body) => {
    await run({}, { own })
    expect(received[0]).toMatchObject({ method, body })
  })

  it.each([
    ['{"a": 1}', '{"a": 1}'],
    ['plain', '"plain"'],
    ['[1', '"[1"'],
  ])('%j becomes the JSON text %j', async (body, sent) => {
    await run({ headers: { 'content-type': 'application/json; charset=utf-8' } }, { own: { body } })
    expect(received[0]?.body).toBe(sent)
  })

  it('has parameters in its URL, headers, cookies and credentials', async () => {
    const parameters = {
      url: `${url}/path?a=1#fragment`,
      headers: { 'X-Number': 5, 'X-None': null, Cookie: 'z=0' },
      cookies: { one: 1, two: 'b' },
      username: 'me',
      password: 'pä:ss',
    }
    await run(parameters, { own: { params: { a: 'x y', list: [1, 2], none: null, 'ü&': '=' } } })
    expect(received[0]).toMatchObject({
      url: '/path?a=1&a=x+y&list=1&list=2&%C3%BC%26=%3D',
      headers: {
        'x-number': '5',
        cookie: 'z=0; one=1; two=b',
        authorization: `Basic ${Buffer.from('me:pä:ss').toString('base64')}`,
      },
    })
    expect(received[0]?.headers).not.toHaveProperty('x-none')
  })

  it.each<[Record<string, unknown>, Record<string, unknown>]>([
    [{}, { auth: 'me:secret' }],
    [{ username: 'me', password: 'secret' }, { auth: 'other:x' }],
  ])('takes credentials from %j and %j', async (runner, own) => {
    await run(runner, { own })
    expect(received[0]?.headers.authorization).toBe(`Basic ${btoa('me:secret')}`)
  })

  it('takes credentials from the URL, and shows them nowhere', async () => {
    const withCredentials = url.replace('http://', 'http://me:s%65cret@')
    await run({ url: withCredentials })
    expect(received[0]?.headers.authorization).toBe(`Basic ${btoa('me:secret')}`)
    const refused = await run({ url: `${withCredentials}/?token=s%65cret` }, { allowed: [] })
    expect(JSON.stringify(refused)).not.toMatch(/s%65cret|secret/)
  })

  it('sends a file as a form does', async () => {
    await run(
      { headers: { 'Content-Type': 'x/y' } },
      { own: { file_name: 'a "b".txt', file_content: 'ä\n', file_content_type: 'text/csv' } },
    )
    expect(received[0]?.method).toBe('POST')
    expect(received[0]?.headers['content-type']).toMatch(/^multipart\/form-data; boundary=/)
    expect(received[0]?.body).toMatch(
      /Content-Disposition: form-data; name="a %22b%22.txt"; filename="a %22b%22.txt"\r\nContent-Type: text\/csv\r\n\r\nä\n\r\n/,
    )
  })

  it('sends a file of the pack, and no other', async () => {
    const packFolder = join(folder.path, 'pack')
    mkdirSync(join(packFolder, 'etc'), { recursive: true })
    writeFileSync(join(packFolder, 'etc/data.bin'), Buffer.from([0x41, 0xff]))
    writeFileSync(join(packFolder, 'long'), 'x'.repeat(MAX_BODY_BYTES + 1))
    symlinkSync('/etc/passwd', join(packFolder, 'link'))
    const send = (path: string) =>
      run({}, { own: { file_name: 'f', file_path: path }, more: { packFolder, pack: 'mine' } })
    expect((await send('etc/data.bin')).status).toBe('succeeded')
    expect((await send(join(packFolder, 'etc/data.bin'))).status).toBe('succeeded')
    expect(received.map(({ body }) => body.includes('A\ufffd'))).toEqual([true, true])
    for (const [path, why] of [
      ['/etc/passwd', /outside of the pack/],
      ['../../etc/passwd', /outside of the pack/],
      ['link', /outside of the pack/],
      ['etc/../../x', /outside of the pack/],
      ['gone', /does not exist/],
      ['etc', /not a file/],
      ['long', /longer/],
    ] as const) {
      expect([path, await send(path)]).toEqual([path, failure(why)])
    }
    expect(await run({}, { own: { file_name: 'f', file_path: 'etc/data.bin' } })).toEqual(failure(/does not exist/))
    expect(received).toHaveLength(2)
  })

  it.each<[string, Record<string, unknown>, Record<string, unknown>, RegExp]>([
    ['no URL', { url: null }, {}, /"url"/],
    ['no URL at all', { url: 'not a url' }, {}, /"url"/],
    ['another scheme', { url: 'file:///etc/passwd' }, {}, /http or https/],
    ['a zone', { url: 'http://[fe80::1%25eth0]/' }, {}, /"url"/],
    ['a bad method', {}, { method: 'GET / HTTP/1.1' }, /"method"/],
    ['a tunnel', {}, { method: 'CONNECT' }, /"method"/],
    ['a header with a line end', { headers: { x: 'a\r\nb: c' } }, {}, /"x"/],
    ['a header with a strange name', { headers: { 'a b': 'c' } }, {}, /"a b"/],
    ['headers that are none', { headers: [1] }, {}, /"headers"/],
    ['a cookie with a semicolon', { cookies: { a: 'b; c=d' } }, {}, /semicolon/],
    ['a cookie with a line end', { cookies: { a: 'b\n' } }, {}, /cookie/],
    ['body and file', {}, { body: 'x', file_name: 'f', file_content: 'y' }, /not both/],
    ['two files', {}, { file_name: 'f', file_content: 'y', file_path: 'z' }, /not both/],
    ['a file without a name', {}, { file_content: 'y' }, /"file_name"/],
    ['a bad time limit', {}, { timeout: -1 }, /"timeout"/],
    ['a proxy of another kind', { http_proxy: 'socks5://127.0.0.1:1' }, {}, /"http_proxy"/],
  ])('is not sent with %s', async (_, runner, own, error) => {
    expect(await run(runner, { own })).toEqual(failure(error))
    expect(received).toEqual([])
  })

  it('leaves out headers that only the sender can know', async () => {
    await run(
      { headers: { 'Content-Length': '3', Connection: 'close', 'Transfer-Encoding': 'chunked' } },
      { own: { body: 'hello' } },
    )
    expect(received[0]).toMatchObject({ body: 'hello', headers: { 'content-length': '5' } })
  })
})

describe('hosts', () => {
  it('are the same whether an address of IPv4 is written as one of IPv6', async () => {
    const url = 'http://[::ffff:127.0.0.1]:1/'
    const black = await run({ url, url_hosts_blacklist: ['127.0.0.1'] })
    expect(black.result['error']).toMatch(/is blacklisted/)
    expect((await run({ url, url_hosts_whitelist: ['127.0.0.1'] })).result['error']).not.toMatch(/whitelisted/)
  })

  it.each<[string, Record<string, unknown>, RegExp | undefined]>([
    [
      'blacklisted',
      { url_hosts_blacklist: ['x.test', '127.0.0.1'] },
      /^URL "http:\/\/127\.0\.0\.1:\d+\/" is blacklisted$/,
    ],
    ['blacklisted in another spelling', { url_hosts_blacklist: ['0x7f.1'] }, /is blacklisted/],
    [
      'blacklisted as an address of IPv6',
      { url_hosts_blacklist: ['::FFFF:127.0.0.1', '[::1]', '::1', 'x.test.'] },
      /is blacklisted/,
    ],
    ['not blacklisted', { url_hosts_blacklist: ['27.0.0.1', '127.0.0'] }, undefined],
    ['whitelisted', { url_hosts_whitelist: ['127.0.0.1'] }, undefined],
    ['not whitelisted', { url_hosts_whitelist: ['example.test'] }, /is not whitelisted$/],
    ['without lists', { url_hosts_whitelist: [], url_hosts_blacklist: null }, undefined],
    ...['127.0.0.1:80', 'x.test:', 'http://127.0.0.1/', 'x/y', 'me@x.test', ' x.test', '', '[::1]:80', 'a%zz'].map(
      (entry): [string, Record<string, unknown>, RegExp] => [
        `with the entry ${JSON.stringify(entry)}`,
        { url_hosts_blacklist: ['x', entry] },
        /"url_hosts_blacklist" has the entry ".*host names and addresses without/,
      ],
    ),
    ['with both', { url_hosts_whitelist: ['a'], url_hosts_blacklist: ['b'] }, /mutually exclusive/],
  ])('%s', async (_, parameters, error) => {
    const outcome = await run(parameters)
    expect(outcome.status).toBe(error === undefined ? 'succeeded' : 'failed')
    expect(String(outcome.result['error'])).toMatch(error ?? /^undefined$/)
    expect(received).toHaveLength(error === undefined ? 1 : 0)
  })

  it.each([
    'http://127.0.0.1:PORT/',
    'http://2130706433:PORT/',
    'http://0x7f.1:PORT/',
    'http://0177.0.0.1:PORT/',
    'http://0:PORT/',
    'http://0.0.0.0:PORT/',
    'http://[::1]:PORT/',
    'http://[::]:PORT/',
    'http://[::ffff:127.0.0.1]:PORT/',
    'http://localhost:PORT/',
    'http://169.254.169.254/latest/meta-data/',
    'http://[fd00:ec2::254]/',
    'http://10.0.0.1/',
  ])('%s is refused', async (given) => {
    const target = given.replace('PORT', new URL(url).port)
    expect(await run({ url: target }, { allowed: [] })).toEqual(
      failure(/not on the public internet.*allowed_private_networks/),
    )
    expect(received).toEqual([])
  })

  it('connects to the address that was checked, whatever the name leads to afterwards', async () => {
    let asked = 0
    const rebinding: LookupAll = (_, done) => {
      asked += 1
      // Allowed when it is asked for the first time, another one ever after.
      done(null, [{ address: asked === 1 ? '127.0.0.1' : '127.0.0.3', family: 4 }])
    }
    const target = `http://rebinding.test:${new URL(url).port}/`
    expect((await run({ url: target }, { lookup: rebinding })).status).toBe('succeeded')
    expect(asked).toBe(1)
    expect(await run({ url: target }, { lookup: rebinding })).toEqual(failure(/"rebinding\.test" \(127\.0\.0\.3\)/))
    expect(received).toHaveLength(1)
  })

  it('checks the name anew when a redirect leads to it', async () => {
    const lookup: LookupAll = (_, done) => done(null, [{ address: '10.0.0.1', family: 4 }])
    answer = (_, response) => response.writeHead(302, { Location: 'http://inside.test/' }).end()
    expect(await run({ allow_redirects: true }, { lookup })).toEqual(failure(/"inside\.test" \(10\.0\.0\.1\)/))
  })
})

describe('redirects', () => {
  const to =
    (code: number, location: string): RequestListener =>
    (request, response) => {
      if (request.url === '/end') response.end('end')
      else response.writeHead(code, { Location: location }).end()
    }

  it.each([
    [301, 'POST', 'GET', ''],
    [302, 'POST', 'GET', ''],
    [303, 'PUT', 'GET', ''],
    [307, 'POST', 'POST', 'body'],
    [308, 'PUT', 'PUT', 'body'],
    [301, 'PUT', 'PUT', 'body'],
  ])('%d after %s is followed with %s', async (code, method, next, body) => {
    answer = to(code, '/end')
    expect((await run({ allow_redirects: true }, { own: { method, body: 'body' } })).result['body']).toBe('end')
    expect(received.at(-1)).toMatchObject({ method: next, url: '/end', body })
  })

  it('are followed at most 10 times', async () => {
    answer = to(302, '/again')
    expect(await run({ allow_redirects: true })).toEqual(failure(/redirects more than 10 times/))
    expect(received).toHaveLength(11)
  })

  it('take credentials, cookies and other headers along to the same origin only', async () => {
    const headers = { 'X-Api-Key': 'secret', Accept: 'text/x' }
    const parameters = { allow_redirects: true, username: 'me', password: 'secret', cookies: { a: 'secret' }, headers }
    answer = to(302, '/end')
    await run(parameters)
    expect(received.at(-1)?.headers).toMatchObject({ 'x-api-key': 'secret', cookie: 'a=secret' })
    const other = await listen(createServer(handle), '127.0.0.2')
    answer = to(302, `http://you:pass@127.0.0.2:${other}/end`)
    expect((await run(parameters)).result['body']).toBe('end')
    expect(received.at(-1)?.headers).toMatchObject({ accept: 'text/x', host: `127.0.0.2:${other}` })
    expect(JSON.stringify(received.at(-1))).not.toMatch(/secret|authorization/)
  })

  it.each([
    ['http://169.254.169.254/latest', /"169\.254\.169\.254" is not on the public internet/],
    ['http://[::1]/', /"::1"/],
    ['file:///etc/passwd', /only http and https/],
    ['http://', /not a URL/],
    ['//127.0.0.9/', /"127\.0\.0\.9"/],
  ])('to %s are refused', async (location, error) => {
    answer = to(302, location)
    expect(await run({ allow_redirects: true })).toEqual(failure(error))
    expect(received).toHaveLength(1)
  })

  it('to a host on the blacklist are refused', async () => {
    answer = to(302, 'http://127.0.0.2:1/')
    const outcome = await run({ allow_redirects: true, url_hosts_blacklist: ['127.0.0.2'] })
    expect(outcome).toEqual(failure(/"http:\/\/127\.0\.0\.2:1\/" is blacklisted/))
  })
})

describe('TLS', () => {
  let secure: string
  beforeAll(async () => {
    const { certFile, keyFile } = (await makeAuthority(folder.path, 'http')).issue('server', 'IP:127.0.0.1')
    const options = { cert: readFileSync(certFile), key: readFileSync(keyFile) }
    secure = `https://127.0.0.1:${await listen(createSecureServer(options, handle))}/`
  })

  it('refuses a certificate that is not trusted, unless it may', async () => {
    expect(await run({ url: secure })).toEqual(failure(/certificate is signed by an authority that is not trusted/))
    expect((await run({ url: secure, verify_ssl_cert: false })).result['body']).toBe('hello')
  })

  it('does not follow from https to http', async () => {
    answer = (_, response) => response.writeHead(302, { Location: url }).end()
    const outcome = await run({ url: secure, verify_ssl_cert: false, allow_redirects: true })
    expect(outcome).toEqual(failure(/from https to http/))
  })

  describe('a proxy', () => {
    let proxy: string
    let seen: string[]
    beforeAll(async () => {
      const server = createServer((request, response) => {
        seen.push(`${request.method} ${request.url} ${request.headers['proxy-authorization'] ?? '-'}`)
        response.end('through')
      })
      server.on('connect', (request: IncomingMessage, client: Socket) => {
        seen.push(`CONNECT ${request.url}`)
        const [host, port] = (request.url ?? '').split(':')
        const target = connect(Number(port), host, () => {
          client.write('HTTP/1.1 200 OK\r\n\r\n')
          target.pipe(client).pipe(target)
        })
        target.on('error', () => client.destroy())
        client.on('error', () => target.destroy())
      })
      proxy = `http://127.0.0.1:${await listen(server)}`
    })
    beforeEach(() => {
      seen = []
    })

    it('gets requests for http, with its credentials', async () => {
      const withCredentials = proxy.replace('http://', 'http://me:secret@')
      const outcome = await run({ url: 'http://8.8.8.8/x?y', http_proxy: withCredentials })
      expect(outcome).toMatchObject({ status: 'succeeded', result: { body: 'through' } })
      expect(seen).toEqual([`GET http://8.8.8.8/x?y Basic ${btoa('me:secret')}`])
    })

    it('makes a tunnel for https', async () => {
      const outcome = await run({
        url: secure,
        https_proxy: proxy,
        http_proxy: 'http://127.0.0.1:1',
        verify_ssl_cert: false,
      })
      expect(outcome).toMatchObject({ status: 'succeeded', result: { body: 'hello' } })
      expect(seen).toEqual([`CONNECT ${new URL(secure).host}`])
      expect(await run({ url: secure, https_proxy: proxy })).toEqual(failure(/not trusted/))
    })

    it('must be one that may be reached itself, and is not asked for what may not', async () => {
      expect(await run({ http_proxy: proxy, url: 'http://8.8.8.8/' }, { allowed: [] })).toEqual(
        failure(/"127\.0\.0\.1" is not on/),
      )
      expect(await run({ http_proxy: proxy, url: 'http://10.0.0.1/' })).toEqual(failure(/"10\.0\.0\.1" is not on/))
      const lookup: LookupAll = (_, done) => done(null, [{ address: '10.0.0.2', family: 4 }])
      expect(await run({ http_proxy: proxy, url: 'http://inside.test/' }, { lookup })).toEqual(
        failure(/"inside\.test"/),
      )
      expect(seen).toEqual([])
    })

    it('may know names that are not known here', async () => {
      const lookup: LookupAll = (_, done) => done(Object.assign(new Error('no'), { code: 'ENOTFOUND' }), [])
      expect((await run({ http_proxy: proxy, url: 'http://there.test/' }, { lookup })).status).toBe('succeeded')
    })
  })
})

describe('an end', () => {
  it.each<[string, RequestListener]>([
    ['nothing', () => undefined],
    ['headers only', (_, response) => response.writeHead(200).flushHeaders()],
    ['a body that never ends', (_, response) => void response.writeHead(200).write('x')],
  ])('comes at the time limit when there is %s', async (_, listener) => {
    answer = listener
    expect(await run({}, { own: { timeout: 0.5 } })).toEqual({
      status: 'timeout',
      result: { error: 'Action failed to complete in 0.5 seconds' },
    })
  })

  it.each(['cancel', 'shutdown'])('comes with %s at once', async (reason) => {
    answer = () => undefined
    const abort = new AbortController()
    const ended = run({}, { more: { signal: abort.signal } })
    await waitFor('the request', () => received.length === 1)
    abort.abort(reason)
    expect(await ended).toEqual(failure(/stopped/))
  })

  it('comes before a beginning', async () => {
    expect(await run({}, { more: { signal: AbortSignal.abort('cancel') } })).toEqual(failure(/stopped/))
    expect(received).toEqual([])
  })

  it('comes while a connection is being made', async () => {
    // Addresses that nobody answers for, of the range for tests.
    const abort = new AbortController()
    const lookup: LookupAll = (_, done) => {
      done(null, [{ address: '198.18.0.1', family: 4 }])
      setImmediate(() => abort.abort('cancel'))
    }
    const outcome = await run(
      { url: 'http://far.test/' },
      { lookup, allowed: ['198.18.0.0/15'], more: { signal: abort.signal } },
    )
    expect(outcome.status).toBe('failed')
  })

  it('is a failure that says why', async () => {
    const lookup: LookupAll = (_, done) => done(Object.assign(new Error('no'), { code: 'ENOTFOUND' }), [])
    expect(await run({ url: 'http://unknown.test/?secret' }, { lookup })).toEqual(
      failure(/^No response from "http:\/\/unknown\.test\/": the host name does not exist \(ENOTFOUND\)$/),
    )
    // Nobody gets this port by chance.
    expect(await run({ url: 'http://127.0.0.1:1/' })).toEqual(failure(/refused the connection/))
  })
})
