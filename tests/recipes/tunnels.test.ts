/** docs/recipes/tunnels.md: a sender, Caddy on a public machine, sshd, ssh, Caddy beside svc, and svc. */
import { spawnSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { auditRecords, send, type RawAnswer, type RawRequest } from '../conformance/support.ts'
import { createTestApp } from '../helpers/app.ts'
import { makeAuthority } from '../helpers/certificates.ts'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import type { TestApp } from '../helpers/server.ts'
import { findPort } from '../helpers/slapd.ts'
import { makeSshSite, type SshSite } from '../helpers/sshd.ts'
import { waitFor } from '../helpers/wait.ts'
import { startCaddy, startProgram, type WebServer } from '../helpers/web-servers.ts'
import { adapted, blockOf, rulesOf, settingsOf } from './support.ts'

const PAGE = 'tunnels.md'
const SECRET = 'a secret of 28 characters !!'
/** Another machine than the public one. */
const SENDER = '127.0.0.2'

const folder = makeFolder()
const started: WebServer[] = []
let server: TestApp
let site: SshSite
let ca: Buffer
let origin: string
/** Words of ssh that log in with the key of the tunnel. */
let asTunnel: string[]

beforeAll(async () => {
  server = await createTestApp({ settings: settingsOf(blockOf(PAGE, '# /etc/svc/svc.conf')) })
  const admin = await signIn(server, 'admin', firstPassword(server.basePath))
  const secret = { name: 'github_secret', value: SECRET, secret: true }
  await server.call('PUT', '/v1/keys/github_secret', secret, admin)
  const made = await server.call('POST', '/v1/rules', rulesOf('senders.md').get('github.yaml'), admin)
  if (made.status !== 201) throw new Error(made.text)

  const [inner, outer, publicPort] = [await findPort(), await findPort(), await findPort()]
  const own = (name: string): string => {
    mkdirSync(join(folder.path, name))
    return join(folder.path, name)
  }
  const besideSvc = adapted(blockOf(PAGE, '# /etc/caddy/Caddyfile'), {
    'http://127.0.0.1:9180': `http://127.0.0.1:${inner}`,
    '127.0.0.1:9101': new URL(server.urls.api).host,
  })
  started.push(await startCaddy(own('inner'), inner, besideSvc))

  site = await makeSshSite()
  const [options = ''] = /^restrict.*(?= ssh-ed25519)/m.exec(blockOf(PAGE, keyLine)) ?? []
  const key = site.makeKey('tunnel', { isAllowed: false })
  const line = `${adapted(options, { ':9180': `:${outer}` })} ${key.publicKey}`
  writeFileSync(join(site.folder, 'authorized_keys'), `${line}\n`)
  const sshd = await site.start()
  const unknown = ['-o', 'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null', '-o', 'BatchMode=yes']
  const place = [...unknown, '-p', String(sshd.port), `${site.user}@${sshd.host}`]
  asTunnel = ['-i', key.path, ...place]
  const [, command = ''] = /^ExecStart=(.*)$/m.exec(blockOf(PAGE, '# /etc/systemd/system/svc-tunnel.service')) ?? []
  const words = adapted(command, {
    '127.0.0.1:9180:127.0.0.1:9180': `127.0.0.1:${outer}:127.0.0.1:${inner}`,
    '/etc/svc/tunnel_key': key.path,
    'tunnel@hooks.example.com': place.join(' '),
  })
  started.push(await startProgram(words.split(' '), outer))

  const authority = await makeAuthority(folder.path, 'tunnel')
  const { certFile, keyFile } = authority.issue('public', 'IP:127.0.0.1')
  ca = readFileSync(authority.caFile)
  const atPublic = adapted(blockOf(PAGE, '# /etc/caddy/Caddyfile of the public machine'), {
    'hooks.example.com {': `https://127.0.0.1:${publicPort} {\n\ttls ${certFile} ${keyFile}`,
    '127.0.0.1:9180': `127.0.0.1:${outer}`,
  })
  started.push(await startCaddy(own('outer'), publicPort, atPublic))
  origin = `https://127.0.0.1:${publicPort}`
})
afterAll(async () => {
  await Promise.all(started.map((program) => program.stop()))
  await site?.stop()
  await server?.stop()
  folder.remove()
})

const keyLine =
  'restrict,port-forwarding,permitlisten="127.0.0.1:9180",permitopen="127.0.0.1:1",command="/bin/false" ssh-ed25519 AAAA… svc'
const ask = (given: RawRequest): Promise<RawAnswer> => send(origin, { ca, from: SENDER, ...given })
const push = JSON.stringify({ ref: 'refs/heads/main', after: 'c0ffee', repository: { full_name: 'shop/api' } })

function deliver(secret: string, more: Record<string, string> = {}): Promise<RawAnswer> {
  const signature = createHmac('sha256', secret).update(push).digest('hex')
  const headers = {
    'Content-Type': 'application/json',
    'X-GitHub-Event': 'push',
    'X-Hub-Signature-256': `sha256=${signature}`,
  }
  return ask({ method: 'POST', path: '/api/v1/webhooks/github', body: push, headers: { ...headers, ...more } })
}

it('a signed webhook arrives', async () => {
  const answer = await deliver(SECRET)
  expect([answer.status, answer.headers['svc-trigger-instance-id']]).toEqual([202, expect.any(String)])
})

it('svc knows the address of a sender, whatever the sender says', async () => {
  expect((await deliver('not the secret', { 'X-Forwarded-For': '192.0.2.1' })).status).toBe(401)
  const record = await waitFor('the audit record', () => auditRecords(server, 'webhook.refused').at(0))
  expect(record['_remote_address']).toBe(SENDER)
})

it.each([
  ['GET', '/'],
  ['GET', '/api/v1/executions'],
  ['POST', '/auth/v1/tokens'],
  ['GET', '/stream/v1/stream'],
  ['GET', '/v1/executions'],
  ['GET', '/api/v1/webhooks/../executions'],
  ['GET', '/api/v1/webhooks/%2e%2e/executions'],
  ['GET', '/api/v1//executions'],
  ['GET', '/metrics'],
  ['GET', '/readyz'],
])('nothing else is public: %s %s', async (method, path) => {
  const { status, text } = await ask({ method, path })
  expect([status, text]).toEqual([404, ''])
})

it('the key of the tunnel runs no command, listens at no other port and reaches none', async () => {
  const runs = spawnSync('ssh', [...asTunnel, 'id'], { encoding: 'utf8' })
  expect([runs.status, runs.stdout]).toEqual([1, ''])
  const other = `127.0.0.1:${await findPort()}:127.0.0.1:1`
  const listens = spawnSync('ssh', ['-N', '-R', other, '-o', 'ExitOnForwardFailure=yes', ...asTunnel], {
    encoding: 'utf8',
  })
  expect([listens.status, listens.stderr]).toEqual([255, expect.stringContaining('remote port forwarding failed')])
  // sshd itself listens there.
  const inner = `127.0.0.1:${asTunnel[asTunnel.indexOf('-p') + 1] ?? ''}`
  const reaches = spawnSync('ssh', ['-W', inner, ...asTunnel], { encoding: 'utf8', input: '' })
  expect([reaches.status, reaches.stdout, reaches.stderr]).toEqual([
    255,
    '',
    expect.stringContaining('administratively prohibited'),
  ])
})
