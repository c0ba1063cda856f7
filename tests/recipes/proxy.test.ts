/** docs/recipes/proxy.md: real web servers in front, with the text of the page. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { load } from 'js-yaml'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { auditRecords, send, type RawAnswer, type RawRequest } from '../conformance/support.ts'
import { createTestApp } from '../helpers/app.ts'
import { makeAuthority } from '../helpers/certificates.ts'
import type { ConsoleStep } from '../helpers/console-session.ts'
import { makeFolder } from '../helpers/folders.ts'
import { basicAuth, firstPassword } from '../helpers/logins.ts'
import type { TestApp } from '../helpers/server.ts'
import { findPort } from '../helpers/slapd.ts'
import { openEvents, outputOf } from '../helpers/sse.ts'
import { waitFor } from '../helpers/wait.ts'
import { startCaddy, startNginx, type WebServer } from '../helpers/web-servers.ts'
import { runButton } from '../web/actions.ts'
import { startBrowser } from '../web/browser.ts'
import { signInOn } from '../web/session.ts'
import { adapted, blockOf, openShell, settingsOf, stepsBelow } from './support.ts'

const PAGE = 'proxy.md'
const PUBLIC = 'https://svc.example.com/svc'
/** Another machine than the web server, as far as both servers can tell. */
const CLIENT = '127.0.0.2'
const MAX_BODY_BYTES = 16_777_216

const nginxText = blockOf(PAGE, '# /etc/nginx/conf.d/svc.conf')
const caddyText = blockOf(PAGE, '# /etc/caddy/Caddyfile')
const settings = settingsOf(blockOf(PAGE, '# /etc/svc/svc.conf'))

const folder = makeFolder()
let server: TestApp
let certificate: { certFile: string; keyFile: string }
let ca: Buffer
let key: string

beforeAll(async () => {
  const authority = await makeAuthority(folder.path, 'recipe')
  certificate = authority.issue('front', 'IP:127.0.0.1')
  ca = readFileSync(authority.caFile)
  const basePath = join(folder.path, 'data')
  mkdirSync(basePath)
  server = await createTestApp({ basePath, settings: { ...settings, 'stream.heartbeat': '0.2' } })
  const Authorization = basicAuth('admin', firstPassword(basePath))
  const login = await server.call<{ token: string }>('POST', '/auth/v1/tokens', {}, { Authorization })
  const headers = { 'X-Auth-Token': login.body.token }
  key = (await server.call<{ key: string }>('POST', '/v1/apikeys', {}, headers)).body.key
  const rule = {
    name: 'hooked',
    enabled: true,
    trigger: { type: 'core.svc.webhook', parameters: { url: 'hooked' } },
    action: { ref: 'core.local', parameters: { cmd: 'echo hooked' } },
  }
  const made = await server.call('POST', '/v1/rules', rule, headers)
  if (made.status !== 201) throw new Error(made.text)
})

afterAll(async () => {
  await server.stop()
  folder.remove()
})

const upstream = (): string => new URL(server.urls.api).host

const nginxAt = (port: number): string =>
  adapted(nginxText, {
    'listen 443 ssl http2;': `listen 127.0.0.1:${port} ssl http2;`,
    '/etc/ssl/svc/cert.pem': certificate.certFile,
    '/etc/ssl/svc/key.pem': certificate.keyFile,
    '127.0.0.1:9101': upstream(),
  })

const caddyAt = (port: number): string =>
  adapted(caddyText, {
    // Otherwise it would ask for a certificate on the internet.
    'svc.example.com {': `https://127.0.0.1:${port} {\n\ttls ${certificate.certFile} ${certificate.keyFile}`,
    '127.0.0.1:9101': upstream(),
  })

const fronts = [
  { name: 'nginx', start: startNginx, text: nginxAt },
  { name: 'Caddy', start: startCaddy, text: caddyAt },
]

describe.each(fronts)('$name in front', ({ name, start, text }) => {
  let front: WebServer | undefined
  let origin: string

  beforeAll(async () => {
    const own = join(folder.path, name)
    mkdirSync(own)
    const port = await findPort()
    origin = `https://127.0.0.1:${port}`
    front = await start(own, port, text(port))
  })
  afterAll(() => front?.stop())

  const ask = ({ headers = {}, ...more }: RawRequest): Promise<RawAnswer> =>
    send(origin, { from: CLIENT, ca, headers: { 'Svc-Api-Key': key, ...headers }, ...more })
  const json = { 'Content-Type': 'application/json' }
  const run = async (cmd: string): Promise<string> => {
    const body = JSON.stringify({ action: 'core.local', parameters: { cmd } })
    const answer = await ask({ method: 'POST', path: '/svc/api/v1/executions', headers: json, body })
    expect(answer.status).toBe(201)
    const { id, web_url: address } = JSON.parse(answer.text) as { id: string; web_url: string }
    expect(address).toBe(`${PUBLIC}/#/history/${id}/general`)
    return id
  }

  it('shows what the page says', async () => {
    const own = join(folder.path, `${name}-shell`)
    mkdirSync(own)
    const caFile = join(own, 'ca.pem')
    writeFileSync(caFile, ca)
    const env = { SVC_API_KEY: key, SVC_CACERT: caFile, CURL_CA_BUNDLE: caFile }
    const shell = openShell(own, env, { [PUBLIC]: `${origin}/svc` })
    const steps = stepsBelow(PAGE, 'Check that it works')
    const isSetting = ({ command }: ConsoleStep): boolean => command.startsWith('export ')
    // A shell of the test lasts for one command.
    const set = steps.filter(isSetting).map(({ command }) => command)
    for (const { command, expected } of steps.filter((step) => !isSetting(step))) {
      const played = await shell.play({ command: [...set, command].join('\n'), expected })
      expect(played.printed).toBe(played.expected)
    }
  })

  it('serves the web client under its path: signing in, a run, its output', async () => {
    const browser = await startBrowser()
    try {
      const { page } = await browser.open(`${origin}/svc`, { ignoreHTTPSErrors: true })
      page.setDefaultTimeout(120_000)
      expect(page.url()).toBe(`${origin}/svc/`)
      await signInOn(page, 'admin', firstPassword(server.basePath))
      const [cookie] = await page.context().cookies()
      expect(cookie).toMatchObject({ name: 'auth-token', secure: true })
      await page.goto(`${origin}/svc/#/actions/core.local`)
      await page.getByLabel('cmd', { exact: true }).fill('echo under a path')
      await runButton(page).click()
      await page.getByText('under a path').last().waitFor()
      await page.getByText('succeeded', { exact: true }).first().waitFor()
    } finally {
      await browser.close()
    }
  })

  it('passes output on before the end', async () => {
    const go = join(folder.path, `${name}-go`)
    const id = await run(`echo first; until [ -e ${go} ]; do sleep 0.02; done; echo second`)
    const events = await openEvents(
      `${origin}/svc/stream/v1/executions/${id}/output`,
      { 'Svc-Api-Key': key },
      undefined,
      ca,
    )
    await waitFor('the first line', () => outputOf(events.frames) === 'first\n')
    writeFileSync(go, '')
    await events.frame(({ event }) => event === 'EOF')
    expect(outputOf(events.frames)).toBe('first\nsecond\n')
    events.close()
  })

  it('keeps an idle stream open: heartbeats arrive one by one', async () => {
    const events = await openEvents(
      `${origin}/svc/stream/v1/stream?events=nothing.happens`,
      { 'Svc-Api-Key': key },
      undefined,
      ca,
    )
    const seen = new Set<string>()
    await waitFor('heartbeats', () => seen.add(events.raw()).size > 3)
    expect(events.frames).toEqual([])
    events.close()
  })

  it('passes a webhook on, and its address in the answer leads to it', async () => {
    const answer = await ask({ method: 'POST', path: '/svc/api/v1/webhooks/hooked', headers: json, body: '{"a": 1}' })
    expect(answer.status).toBe(202)
    const location = String(answer.headers['location'])
    const id = String(answer.headers['svc-trigger-instance-id'])
    expect(location).toBe(`/svc/v1/triggerinstances/${id}`)
    expect(JSON.parse((await ask({ path: location })).text)).toMatchObject({ id, payload: { body: { a: 1 } } })
  })

  it('waits for a result as long as svc does', async () => {
    const headers = { ...json, Prefer: 'wait=300' }
    const answer = await ask({ method: 'POST', path: '/svc/api/v1/webhooks/hooked', headers, body: '{}' })
    expect(answer.status).toBe(200)
    expect(answer.text).toContain('"stdout":"hooked"')
  })

  it('passes a body of exactly the limit; svc answers to a larger one', async () => {
    const around = '{"text":""}'.length
    const bodyOf = (bytes: number): string => JSON.stringify({ text: 'x'.repeat(bytes - around) })
    const path = '/svc/api/v1/webhooks/hooked'
    const most = await ask({ method: 'POST', path, headers: json, body: bodyOf(MAX_BODY_BYTES) })
    expect(most.status).toBe(202)
    const headers = { ...json, 'Content-Length': String(MAX_BODY_BYTES + 1) }
    const more = await ask({ method: 'POST', path, headers, body: bodyOf(MAX_BODY_BYTES + 1) })
    expect([more.status, JSON.parse(more.text)]).toMatchObject([413, { code: 'BODY_TOO_LARGE' }])
  })

  it('passes encoded characters of a name as they are', async () => {
    const path = '/svc/api/v1/keys/a%2Fb%20c'
    const body = JSON.stringify({ name: 'a/b c', value: 'v' })
    expect((await ask({ method: 'PUT', path, headers: json, body })).status).toBe(200)
    expect(JSON.parse((await ask({ path })).text)).toMatchObject({ name: 'a/b c', value: 'v' })
  })

  it.each([
    ['X-Forwarded-For', '192.0.2.1'],
    ['x-forwarded-for', '127.0.0.1, 192.0.2.1, 127.0.0.1'],
    ['X-Real-IP', '192.0.2.1'],
    ['Forwarded', 'for=192.0.2.1'],
    ['Remote-Addr', '192.0.2.1'],
  ])('%s of a client is no address: %s', async (header, value) => {
    const agent = `liar ${name} ${header}`
    const Authorization = basicAuth(agent, 'wrong')
    const headers = { [header]: value, Authorization, ...json, 'Svc-Api-Key': [] }
    const { status } = await ask({ method: 'POST', path: '/svc/auth/v1/tokens', headers, body: '{}' })
    expect(status).toBe(401)
    const record = await waitFor('the audit record', () =>
      auditRecords(server, 'login.refused').find((found) => found['_user'] === agent),
    )
    expect(record['_remote_address']).toBe(CLIENT)
  })

  it('a page of another origin changes nothing', async () => {
    const headers = { ...json, Origin: 'https://attacker.example' }
    const answer = await ask({ method: 'POST', path: '/svc/api/v1/executions', headers, body: '{}' })
    expect([answer.status, JSON.parse(answer.text)]).toMatchObject([403, { code: 'ORIGIN_REFUSED' }])
  })
})

describe('the configuration', () => {
  it('nginx waits longer than svc lets a webhook wait, and than heartbeats need', () => {
    const [, minutes = ''] = /proxy_read_timeout (\d+)m;/.exec(nginxText) ?? []
    expect(Number(minutes) * 60).toBeGreaterThanOrEqual(600)
  })

  it('Traefik: what a part names is there', () => {
    type Parts = Record<string, Record<string, unknown>>
    const { http } = load(blockOf(PAGE, '# /etc/traefik/dynamic/svc.yaml')) as {
      http: { routers: Parts; middlewares: Parts; services: Parts }
    }
    for (const { middlewares, service, rule } of Object.values(http.routers)) {
      for (const used of middlewares as string[]) expect(Object.keys(http.middlewares)).toContain(used)
      expect(Object.keys(http.services)).toContain(service)
      expect(rule).toContain('PathPrefix(`/svc/`)')
    }
    expect(http).toMatchObject({
      middlewares: { 'svc-prefix': { stripPrefix: { prefixes: ['/svc'] } } },
      services: { svc: { loadBalancer: { passHostHeader: true, servers: [{ url: 'http://127.0.0.1:9101' }] } } },
    })
  })
})
