/** docs/recipes/senders.md: senders that Debian has, with the configuration of the page. */
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { extractDebianProgram } from '../helpers/apt.ts'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import type { ExecutionAnswer, TestApp } from '../helpers/server.ts'
import { findPort } from '../helpers/slapd.ts'
import { waitFor } from '../helpers/wait.ts'
import { startProgram, type WebServer } from '../helpers/web-servers.ts'
import { adapted, blockOf, rulesOf } from './support.ts'

const PAGE = 'senders.md'
const PUBLIC = 'https://svc.example.com/api/v1/webhooks'

const folder = makeFolder()
const started: WebServer[] = []
let server: TestApp
let admin: Record<string, string>

beforeAll(async () => {
  server = await createTestApp({ settings: { 'auth.enable': 'True' } })
  admin = await signIn(server, 'admin', firstPassword(server.basePath))
})
afterAll(async () => {
  await Promise.all(started.map((program) => program.stop()))
  await server.stop()
  folder.remove()
})

/** Creates the rule. @returns a key for its webhook alone */
async function prepare(rule: string, hook: string): Promise<string> {
  const made = await server.call('POST', '/v1/rules', rulesOf(PAGE).get(rule), admin)
  const scopes = [{ resource_uid: `webhook:${hook}`, permission_types: ['webhook_send'] }]
  const { body } = await server.call<{ key: string }>('POST', '/v1/apikeys', { scopes }, admin)
  if (made.status !== 201) throw new Error(made.text)
  return body.key
}

/** What the action of the rule has printed, once it has ended. */
function printedBy(rule: string): Promise<string> {
  return waitFor(`an execution of ${rule}`, async () => {
    const path = `/v1/executions?rule=default.${rule}&include_attributes=status,result`
    const { body } = await server.call<ExecutionAnswer[]>('GET', path, undefined, admin)
    const ended = body.find(({ status }) => status === 'succeeded')
    return ended !== undefined && String(ended.result['stdout'])
  })
}

const post = (url: string, body: unknown): Promise<Response> =>
  fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })

it('Alertmanager', async () => {
  const program = await extractDebianProgram('prometheus-alertmanager', 'usr/bin/prometheus-alertmanager')
  const own = join(folder.path, 'alertmanager')
  mkdirSync(own)
  const keyFile = join(own, 'svc.key')
  writeFileSync(keyFile, await prepare('alertmanager.yaml', 'alertmanager'))
  const file = join(own, 'alertmanager.yml')
  const text = adapted(blockOf(PAGE, '# /etc/prometheus/alertmanager.yml'), {
    [PUBLIC]: `${server.urls.api}/v1/webhooks`,
    '/etc/prometheus/svc.key': keyFile,
    // Otherwise it collects alerts of the group for half a minute.
    'group_by: [alertname]': 'group_by: [alertname]\n  group_wait: 10ms',
  })
  writeFileSync(file, text)
  const port = await findPort()
  const words = [`--config.file=${file}`, `--storage.path=${own}`, `--web.listen-address=127.0.0.1:${port}`]
  // It looks for its templates where the package would have installed them.
  const share = join(program, '../../share/prometheus')
  const script = 'd=/usr/share/prometheus; mkdir -p $d && mount --bind "$1" $d && shift && exec "$@"'
  const inside = ['unshare', '--mount', 'sh', '-c', script, 'sh', share, program, ...words]
  started.push(await startProgram([...inside, '--cluster.listen-address='], port))
  const alerts = ['web1', 'web2'].map((instance) => ({
    labels: { alertname: 'ServiceDown', service: 'shop', instance },
  }))
  const answer = await waitFor('Alertmanager to be ready', async () => {
    const given = await post(`http://127.0.0.1:${port}/api/v2/alerts`, alerts)
    return given.status !== 503 && given
  })
  expect(answer.status).toBe(200)
  expect(await printedBy('alertmanager_firing')).toBe('restart shop on web1\nrestart shop on web2')
})

it('Docker registry', async () => {
  const program = await extractDebianProgram('docker-registry', 'usr/bin/docker-registry')
  const own = join(folder.path, 'registry')
  mkdirSync(own)
  const key = await prepare('registry.yaml', 'registry')
  const [head = ''] = blockOf(PAGE, '# /etc/docker/registry/config.yml, besides what stands there').split('\n', 1)
  const notifications = adapted(blockOf(PAGE, head), { [PUBLIC]: `${server.urls.api}/v1/webhooks`, '<API key>': key })
  const port = await findPort()
  const file = join(own, 'config.yml')
  const storage = `storage: {filesystem: {rootdirectory: ${own}}}`
  writeFileSync(file, `version: 0.1\n${storage}\nhttp: {addr: "127.0.0.1:${port}"}\n${notifications}`)
  started.push(await startProgram([program, 'serve', file], port))

  const origin = `http://127.0.0.1:${port}`
  const config = '{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}'
  const digest = `sha256:${createHash('sha256').update(config).digest('hex')}`
  const upload = await fetch(`${origin}/v2/shop/api/blobs/uploads/`, { method: 'POST' })
  const place = new URL(upload.headers.get('location') ?? '', origin)
  place.searchParams.set('digest', digest)
  const headers = { 'Content-Type': 'application/octet-stream' }
  expect((await fetch(place, { method: 'PUT', headers, body: config })).status).toBe(201)
  const type = 'application/vnd.docker.distribution.manifest.v2+json'
  const manifest = {
    schemaVersion: 2,
    mediaType: type,
    config: { mediaType: 'application/vnd.docker.container.image.v1+json', size: config.length, digest },
    layers: [],
  }
  const pushed = await fetch(`${origin}/v2/shop/api/manifests/v2`, {
    method: 'PUT',
    headers: { 'Content-Type': type },
    body: JSON.stringify(manifest),
  })
  expect(pushed.status).toBe(201)
  expect(await printedBy('registry_push')).toBe('deploy shop/api:v2')
})
