/** Contract 03, 3.6, 3.8 and 3.9; 02, 2.10; decision 13: requests over HTTP. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { run, runToEnd, waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

let web: Server
let url: string
let open: TestApp
let closed: TestApp
let requests: string[] = []

function answer(request: IncomingMessage, response: ServerResponse): void {
  void text(request).then((body) => {
    requests.push(`${request.method} ${request.url}`)
    const path = new URL(request.url ?? '/', url).pathname
    if (path === '/silent') return
    if (path.startsWith('/deep/')) {
      const depth = Number(path.slice('/deep/'.length))
      const levels = `{"a":[{"\\n\\\\":`.repeat(depth / 3)
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(`${levels}1${'}]}'.repeat(depth / 3)}`)
    } else if (path === '/status') response.writeHead(503).end('busy')
    else if (path === '/away') response.writeHead(302, { Location: 'http://169.254.169.254/latest/meta-data/' }).end()
    else if (path === '/here') response.writeHead(302, { Location: '/echo' }).end()
    else {
      response.writeHead(200, { 'Content-Type': 'application/json' })
      response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body }))
    }
  })
}

beforeAll(async () => {
  web = createServer(answer)
  await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(web.address() as AddressInfo).port}` // it listens on a port
  ;[open, closed] = await Promise.all([
    createTestApp({ settings: { 'http_runner.allowed_private_networks': '127.0.0.0/8' } }),
    createTestApp(),
  ])
})
afterAll(async () => {
  await Promise.all([open.stop(), closed.stop()])
  web.closeAllConnections()
  await new Promise((resolve) => web.close(resolve))
})

const end = (parameters: Record<string, unknown>, server = open): Promise<ExecutionAnswer> =>
  runToEnd(server, parameters, { action: 'core.http' })

describe('core.http', () => {
  it('03.9 status_code, body, parsed, headers; the headers that tell where it comes from', async () => {
    const { status, result } = await end({ url: `${url}/echo`, params: { a: 'ü' }, headers: { 'X-One': 1 } })
    expect(status).toBe('succeeded')
    expect(result).toEqual({
      status_code: 200,
      parsed: true,
      headers: expect.objectContaining({ 'Content-Type': 'application/json' }),
      body: {
        method: 'GET',
        url: '/echo?a=%C3%BC',
        headers: expect.objectContaining({
          'user-agent': expect.stringMatching(/^svc\//),
          'svc-action': 'core.http',
          'x-one': '1',
        }),
        body: '',
      },
    })
  })

  it('02.10, 03.9 POST with a body or file, JSON with the content type, basic authentication', async () => {
    const json = await end({ url, body: 'x', headers: { 'Content-Type': 'application/json' } })
    expect(json.result).toMatchObject({ body: { method: 'POST', body: '"x"' } })
    const file = await end({ url, file_name: 'f.txt', file_content: 'content' })
    expect(file.result).toMatchObject({ body: { method: 'POST', body: expect.stringContaining('filename="f.txt"') } })
    const login = await end({ url, method: 'PUT', username: 'me', password: 'geheim' })
    // Any form of a secret is masked in what comes back.
    expect(login.result).toMatchObject({ status_code: 200, body: { method: 'PUT' } })
    expect(login.parameters).toMatchObject({ password: '********' })
  })

  it('03.9 other status codes fail, a redirect that is not followed as well', async () => {
    expect(await end({ url: `${url}/status` })).toMatchObject({
      status: 'failed',
      result: { status_code: 503, body: 'busy', parsed: false },
    })
    expect(await end({ url: `${url}/here` })).toMatchObject({ status: 'failed', result: { status_code: 302 } })
    expect(await end({ url: `${url}/here`, allow_redirects: true })).toMatchObject({
      status: 'succeeded',
      result: { body: { url: '/echo' } },
    })
  })

  it('03.9 lists of hosts', async () => {
    const error = async (more: Record<string, unknown>): Promise<unknown> =>
      (await end({ url: `${url}/echo`, ...more })).result
    expect(await error({ url_hosts_blacklist: ['127.0.0.1'] })).toMatchObject({
      error: `URL "${url}/echo" is blacklisted`,
    })
    expect(await error({ url_hosts_whitelist: ['x.test'] })).toMatchObject({
      error: `URL "${url}/echo" is not whitelisted`,
    })
    expect(await error({ url_hosts_whitelist: ['a'], url_hosts_blacklist: ['b'] })).toMatchObject({
      error: expect.stringContaining('mutually exclusive'),
    })
  })

  it('03.8 a time-out has status timeout and an error alone; a cancel ends it at once', async () => {
    expect(await end({ url: `${url}/silent`, timeout: 1 })).toMatchObject({
      status: 'timeout',
      result: { error: expect.stringMatching(/1(\.0)? seconds/) },
    })
    requests = []
    const { id } = await run(open, { url: `${url}/silent` }, { action: 'core.http' })
    await waitFor('the request', () => requests.includes('GET /silent'))
    await open.call('DELETE', `/v1/executions/${id}`)
    expect((await waitForStatus(open, id)).status).toBe('canceled')
  })

  it.each([300, 3_000, 6_000, 30_000, 300_000])(
    '03.9 an answer that is nested %d deep leaves nothing stuck and nothing unreadable',
    async (depth) => {
      for (const secret of [{}, { username: 'ann', password: 'hunter22' }]) {
        const { id } = await run(open, { url: `${url}/deep/${depth}`, ...secret }, { action: 'core.http' })
        const { status } = await waitForStatus(open, id, ['succeeded', 'failed'])
        expect([depth, status]).toEqual([depth, expect.stringMatching(/succeeded|failed/) as unknown])
        for (const path of ['/v1/executions?limit=5', `/v1/executions/${id}`, `/v1/executions/${id}/result`]) {
          expect([path, (await open.call('GET', path)).status]).toEqual([path, 200])
        }
      }
    },
  )

  it('02.10 an unknown method and a missing URL are refused', async () => {
    for (const parameters of [{ url, method: 'CONNECT' }, {}]) {
      const { status } = await open.call('POST', '/v1/executions', { action: 'core.http', parameters })
      expect(status).toBe(400)
    }
  })
})

describe('decision 13: private addresses', () => {
  it('are refused unless they are allowed, in any spelling', async () => {
    requests = []
    const { port } = new URL(url)
    const hosts = ['127.0.0.1', 'localhost', '2130706433', '0x7f.1', '0.0.0.0', '[::1]', '[::ffff:127.0.0.1]']
    const targets = [
      ...hosts.map((host) => `http://${host}:${port}/echo`),
      'http://169.254.169.254/latest/meta-data/',
      'http://10.0.0.1/',
      'http://[fe80::1]/',
    ]
    const results = await Promise.all(targets.map((target) => end({ url: target }, closed)))
    for (const [n, { status, result }] of results.entries()) {
      expect([targets[n], status, result]).toEqual([
        targets[n],
        'failed',
        { error: expect.stringContaining('http_runner.allowed_private_networks'), traceback: expect.any(String) },
      ])
    }
    expect(requests).toEqual([])
  })

  it('are refused when a redirect leads to them, and proxies there as well', async () => {
    expect((await end({ url: `${url}/away`, allow_redirects: true })).result).toMatchObject({
      error: expect.stringContaining('169.254.169.254'),
    })
    expect((await end({ url: 'http://8.8.8.8/', http_proxy: url }, closed)).result).toMatchObject({
      error: expect.stringContaining('127.0.0.1'),
    })
  })
})
