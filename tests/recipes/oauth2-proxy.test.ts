/** docs/recipes/oauth2-proxy.md: a real nginx, a stand-in for oauth2-proxy, and clients who name somebody else. */
import { mkdirSync, readFileSync } from 'node:fs'
import http from 'node:http'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { connect } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { auditRecords, send, type RawAnswer, type RawRequest } from '../conformance/support.ts'
import { createTestApp } from '../helpers/app.ts'
import { makeAuthority } from '../helpers/certificates.ts'
import { makeFolder } from '../helpers/folders.ts'
import { startFront, type Front } from '../helpers/front.ts'
import type { TestApp } from '../helpers/server.ts'
import { findPort } from '../helpers/slapd.ts'
import { waitFor } from '../helpers/wait.ts'
import { startNginx, type WebServer } from '../helpers/web-servers.ts'
import { startBrowser } from '../web/browser.ts'
import { userIn } from '../web/session.ts'
import { adapted, recipe, settingsOf } from './support.ts'
import { blocksOf } from '../helpers/doc-blocks.ts'

const PAGE = 'oauth2-proxy.md'
/** Another machine, as far as svc can tell. */
const STRANGER = '127.0.0.2'
const ALICE = 'alice@example.com'
const SESSION = '_oauth2_proxy=of-alice'
const USER_HEADERS = ['Remote-User', 'X-Remote-User', 'X-Forwarded-User']

function blockBelow(heading: string, firstLine: string): string {
  const [, rest = ''] = recipe(PAGE).split(`\n## ${heading}\n`)
  const block = blocksOf(rest.split('\n## ')[0] ?? '').find(({ text }) => text.startsWith(`${firstLine}\n`))
  if (block === undefined) throw new Error(`there is no "${firstLine}" below "${heading}"`)
  return block.text
}

/** Every way in which a client could name somebody: what it sends. */
const forgeries: [string, Record<string, string | string[]>][] = [
  ...USER_HEADERS.map((name): [string, Record<string, string>] => [name, { [name]: 'admin' }]),
  ['lower case', { 'remote-user': 'admin', 'x-forwarded-user': 'admin' }],
  ['upper case', { 'REMOTE-USER': 'admin', 'X-REMOTE-USER': 'admin', 'X-FORWARDED-USER': 'admin' }],
  ['mixed case', { 'rEmOtE-uSeR': 'admin' }],
  ['underscores', { Remote_User: 'admin', X_Forwarded_User: 'admin', 'X-Remote_User': 'admin' }],
  ['duplicates', { 'Remote-User': ['admin', 'admin'], 'X-Forwarded-User': ['admin', 'root'] }],
  ['all at once', Object.fromEntries(USER_HEADERS.map((name) => [name, 'admin']))],
  ['hop by hop', { Connection: 'Remote-User, X-Forwarded-User', 'X-Remote-User': 'admin' }],
  ['those of oauth2-proxy', { 'X-Auth-Request-Email': 'admin', 'X-Auth-Request-User': 'admin' }],
]

/** Lines that no proper client sends, instead of a header. */
const malformed = [
  'Remote-User : admin',
  'Remote-User\t: admin',
  ' Remote-User: admin',
  'X-A: b\r\n Remote-User: admin',
  'X-A: b\nRemote-User: admin',
]

const folder = makeFolder()
let ca: Buffer
let certificate: { certFile: string; keyFile: string }

beforeAll(async () => {
  const authority = await makeAuthority(folder.path, 'sso')
  certificate = authority.issue('front', 'IP:127.0.0.1')
  ca = readFileSync(authority.caFile)
})
afterAll(() => folder.remove())

/** As oauth2-proxy answers to nginx. */
function isAlice(request: http.IncomingMessage): boolean {
  return request.headers.cookie?.split('; ').includes(SESSION) === true
}

async function startServer(heading: string): Promise<TestApp> {
  const settings = settingsOf(blockBelow(heading, '# /etc/svc/svc.conf'))
  const basePath = join(folder.path, heading.replaceAll(' ', '-'))
  mkdirSync(basePath)
  return createTestApp({ basePath, settings: { ...settings, 'auth.failures_per_address': '0' } })
}

const loginOf = ({ status, text }: RawAnswer): { status: number; user?: string } => {
  const { user } = status === 201 ? (JSON.parse(text) as { user: string }) : {}
  return { status, ...(user === undefined ? {} : { user }) }
}

describe('with nginx', () => {
  let server: TestApp
  let oauth2Proxy: Front
  let recorder: Front
  const started: WebServer[] = []
  /** In front of svc, and in front of a server that answers with the headers that it gets. */
  let [origin, recording] = ['', '']

  beforeAll(async () => {
    server = await startServer('With nginx')
    oauth2Proxy = await startFront((request, response) => {
      if (request.url === '/oauth2/auth') {
        response
          .writeHead(isAlice(request) ? 202 : 401, isAlice(request) ? { 'X-Auth-Request-Email': ALICE } : {})
          .end()
      } else response.writeHead(302, { Location: 'https://id.example.com/' }).end(request.url)
    })
    recorder = await startFront((request, response) => void response.end(JSON.stringify(request.rawHeaders)))
    const site = blockBelow('With nginx', '# /etc/nginx/conf.d/svc.conf')
    const start = async (name: string, upstream: string): Promise<string> => {
      const own = join(folder.path, name)
      mkdirSync(own)
      const port = await findPort()
      const changes = {
        'listen 443 ssl http2;': `listen 127.0.0.1:${port} ssl http2;`,
        '/etc/ssl/svc/cert.pem': certificate.certFile,
        '/etc/ssl/svc/key.pem': certificate.keyFile,
        '127.0.0.1:9101': upstream,
        '127.0.0.1:4180': `127.0.0.1:${oauth2Proxy.port}`,
      }
      started.push(await startNginx(own, port, adapted(site, changes)))
      return `https://127.0.0.1:${port}`
    }
    origin = await start('front', new URL(server.urls.api).host)
    recording = await start('recording', `127.0.0.1:${recorder.port}`)
  })
  afterAll(async () => {
    await Promise.all(started.map((front) => front.stop()))
    await Promise.all([oauth2Proxy?.close(), recorder?.close()])
    await server?.stop()
  })

  const ask = (to: string, { headers = {}, ...more }: RawRequest): Promise<RawAnswer> =>
    send(to, { ca, headers: { Cookie: SESSION, ...headers }, ...more })
  const logIn = (headers: Record<string, string | string[]>): Promise<RawAnswer> =>
    ask(origin, { method: 'POST', path: '/auth/v1/tokens', headers })

  it('who is signed in there is signed in here', async () => {
    const browser = await startBrowser()
    try {
      const cookie = { name: '_oauth2_proxy', value: 'of-alice', domain: '127.0.0.1', path: '/', expires: -1 }
      const cookies = [{ ...cookie, httpOnly: true, secure: true, sameSite: 'Lax' as const }]
      const options = { ignoreHTTPSErrors: true, storageState: { cookies, origins: [] } }
      const { page } = await browser.open(`${origin}/`, options)
      page.setDefaultTimeout(120_000)
      await page.getByRole('button', { name: 'Use proxy sign-in' }).click()
      await userIn(page).waitFor()
      expect(await userIn(page).innerText()).toContain(ALICE)
    } finally {
      await browser.close()
    }
  })

  it('nobody else gets past nginx, but is sent to sign in', async () => {
    for (const path of ['/', '/api/v1/executions', '/auth/v1/tokens', '/stream/v1/stream', '/api/v1//executions']) {
      const answer = await ask(origin, { path, headers: { Cookie: '' } })
      expect({ path, status: answer.status, to: answer.headers['location'] }).toEqual({
        path,
        status: 302,
        to: `${origin}/oauth2/start?rd=${path}`,
      })
    }
  })

  it('a sender reaches webhooks, and nothing beside them', async () => {
    const paths = ['/api/v1/webhooks/x', '/api/v1/executions/..%2fwebhooks/x', '/api/v1/executions/../webhooks/x']
    for (const path of paths) {
      const answer = await ask(origin, { method: 'POST', path, headers: { Cookie: '' }, body: '{}' })
      // svc asks for a key, and it is asked for a webhook.
      expect([path, answer.status]).toEqual([path, 401])
    }
    const answer = await ask(origin, { path: '/api/v1/webhooks/../executions', headers: { Cookie: '' } })
    expect(answer.status).toBe(302)
    for (const path of paths) {
      const seen = await ask(recording, { method: 'POST', path, headers: { Cookie: '', 'Remote-User': 'admin' } })
      expect(seen.text.toLowerCase()).not.toMatch(/remote.user|forwarded.user/)
    }
  })

  it.each(forgeries)('%s: the name is that of the session', async (_name, headers) => {
    expect(loginOf(await logIn(headers))).toEqual({ status: 201, user: ALICE })
    expect(loginOf(await logIn({ ...headers, Cookie: '' })).status).toBe(302)
  })

  it.each(forgeries)('%s: nothing of the client passes', async (_name, headers) => {
    const { text } = await ask(recording, { path: '/', headers })
    const passed = JSON.parse(text) as string[]
    const pairs = passed.flatMap((name, index) => (index % 2 === 0 ? [[name.toLowerCase(), passed[index + 1]]] : []))
    const users = pairs.filter(([name = '']) => /^(?:x[-_])?(?:remote|forwarded)[-_]user$/.test(name))
    expect(users).toEqual([['remote-user', ALICE]])
  })

  it.each(malformed)('the line %j names nobody', async (line) => {
    const { port } = new URL(origin)
    const socket = connect({ port: Number(port), host: '127.0.0.1', ca })
    socket.write(
      `POST /auth/v1/tokens HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nCookie: ${SESSION}\r\n${line}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
    )
    const answer = await textOf(socket)
    expect(answer).toMatch(/^HTTP\/1\.1 (?:201|400) /)
    expect(answer).not.toContain('"user":"admin"')
  })

  it.each(forgeries.slice(0, 9))('svc refuses %s from anybody but nginx', async (_name, headers) => {
    const answer = await send(server.urls.api, { method: 'POST', path: '/auth/v1/tokens', headers, from: STRANGER })
    expect(answer.status).toBe(401)
    expect(auditRecords(server, 'token.issued').map((record) => record['_user'])).not.toContain('admin')
  })

  it('svc says who tried', async () => {
    const headers = { 'Remote-User': 'somebody else' }
    await send(server.urls.api, { method: 'POST', path: '/auth/v1/tokens', headers, from: STRANGER })
    const record = await waitFor('the audit record', () =>
      auditRecords(server, 'login.spoofed').find((found) => found['_user'] === 'somebody else'),
    )
    expect(record['_remote_address']).toBe(STRANGER)
  })
})

describe('oauth2-proxy alone', () => {
  let server: TestApp
  let oauth2Proxy: Front

  beforeAll(async () => {
    server = await startServer('oauth2-proxy alone')
    const upstream = new URL(server.urls.api)
    oauth2Proxy = await startFront((request, response) => {
      if (!isAlice(request)) {
        response.writeHead(302, { Location: 'https://id.example.com/' }).end()
        return
      }
      // It replaces its own headers and passes on all others, each as often as it came.
      const own: [string, string][] = [['X-Forwarded-User', ALICE]]
      const pairs = request.rawHeaders.flatMap((name, index): [string, string][] =>
        index % 2 === 0 ? [[name, request.rawHeaders[index + 1] ?? '']] : [],
      )
      const passed = pairs.filter(([name]) => !/^(?:x-forwarded-.*|connection)$/i.test(name))
      const options = { host: upstream.hostname, port: upstream.port, path: request.url, method: request.method }
      const outgoing = http.request({ ...options, headers: [...passed, ...own].flat() }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      })
      request.pipe(outgoing)
    })
  })
  afterAll(async () => {
    await oauth2Proxy?.close()
    await server?.stop()
  })

  it.each([['nothing', {}] as (typeof forgeries)[number], ...forgeries])(
    '%s: the name is that of the session',
    async (_name, headers) => {
      const answer = await send(oauth2Proxy.url, {
        method: 'POST',
        path: '/auth/v1/tokens',
        headers: { ...headers, Cookie: SESSION },
      })
      expect(loginOf(answer)).toEqual({ status: 201, user: ALICE })
    },
  )

  it('the files of oauth2-proxy name the address of svc, and its own as nginx has it', () => {
    expect(blockBelow('oauth2-proxy alone', '# /etc/oauth2-proxy.cfg')).toContain(
      'upstreams = ["http://127.0.0.1:9101"]',
    )
    const [nginx, own] = ['# /etc/nginx/conf.d/svc.conf', '# /etc/oauth2-proxy.cfg'].map((name) =>
      blockBelow('With nginx', name),
    )
    const [, address = '-'] = /http_address = "([^"]*)"/.exec(own ?? '') ?? []
    expect(nginx).toContain(`proxy_pass http://${address};`)
  })
})
