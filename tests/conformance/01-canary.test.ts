/**
 * Secrets are sent through every door there is, right and wrong ones, and then looked for in everything the server has
 * written and in what other accounts of the machine can see of its processes.
 * CVE-2025-2877 (secrets in debug logs), CVE-2022-31044 (keys stored in clear).
 */
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startCli } from '../helpers/cli.ts'
import { makeFolder } from '../helpers/folders.ts'
import { basicAuth, firstPassword } from '../helpers/logins.ts'
import { createTestApp } from '../helpers/app.ts'
import { call, executable, waitForLog, type Answer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { send } from './support.ts'
import { fullOnly } from '../helpers/tiers.ts'

/** Recognisable whole and in part; nothing else has these letters. */
const canary = (name: string): string => `canary${name}${randomBytes(12).toString('hex')}`

const folder = makeFolder()
const home = makeFolder()
const secrets: Record<string, string> = {
  password: canary('password'),
  newPassword: canary('newpassword'),
  wrongPassword: canary('wrongpassword'),
  wrongToken: canary('wrongtoken'),
  wrongKey: canary('wrongkey'),
  malformed: canary('malformed'),
  kwargs: canary('kwargs'),
}
const seen = { processes: '' }
let server: TestApp

const login = (user: string, password: string, path = '/tokens'): Promise<Answer<{ token: string }>> =>
  call(`${server.urls.auth}${path}`, 'POST', {}, { Authorization: basicAuth(user, password) })

/** What `ps` shows everybody. */
function watchProcesses(): void {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      seen.processes += readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    } catch {
      // It has ended.
    }
  }
}

beforeAll(async () => {
  server = await createTestApp({
    basePath: folder.path,
    settings: { 'auth.enable': 'True', 'log.level': 'DEBUG', 'log.format': 'json' },
  })
  const first = firstPassword(folder.path)
  const { token } = (await login('admin', first)).body
  const administrator = { 'X-Auth-Token': token }

  // Users, right and wrong passwords.
  const made = { name: 'canary-user', password: secrets['password'] }
  expectStatus(await server.call('POST', '/v1/users', made, administrator), 201)
  const { token: userToken } = (await login('canary-user', secrets['password'] ?? '')).body
  secrets['token'] = userToken
  const changed = { password: secrets['newPassword'], current_password: secrets['password'] }
  expectStatus(await server.call('PUT', '/v1/users/canary-user', changed, { 'X-Auth-Token': userToken }), 200)
  await server.call(
    'PUT',
    '/v1/users/canary-user',
    { ...changed, current_password: secrets['wrongPassword'] },
    { 'X-Auth-Token': userToken },
  )
  await server.call('PUT', '/v1/users/canary-user', { password: 7, is_service: secrets['malformed'] }, administrator)
  for (const path of ['/tokens', '/v1/tokens', '/auth/v1/tokens', '/tokens/nowhere']) {
    await login('canary-user', secrets['wrongPassword'] ?? '', path)
    await login('nobody', secrets['wrongPassword'] ?? '', path)
  }
  for (const authorization of [
    secrets['malformed'] ?? '',
    `Basic ${secrets['malformed']}`,
    `Bearer ${secrets['malformed']}`,
    `Basic ${Buffer.from(secrets['malformed'] ?? '').toString('base64')}`,
  ]) {
    await call(`${server.urls.auth}/tokens`, 'POST', {}, { Authorization: authorization })
  }
  const fresh = await login('canary-user', secrets['newPassword'] ?? '')
  expectStatus(fresh, 201)
  secrets['secondToken'] = fresh.body.token

  // API keys.
  const key = await server.call<{ id: string; key: string }>('POST', '/v1/apikeys', {}, administrator)
  expectStatus(key, 201)
  secrets['key'] = key.body.key
  await server.call('GET', `/v1/apikeys/${key.body.key}?show_secrets=true`, undefined, administrator)
  await server.call('PUT', `/v1/apikeys/${key.body.key}`, { enabled: 'x' }, administrator)
  await server.call('GET', `/v1/apikeys/${secrets['wrongKey']}`, undefined, administrator)
  await server.call('DELETE', `/v1/apikeys/${secrets['wrongKey']}`, undefined, administrator)

  // Every credential at every door: headers, query, cookie, both, on good, bad and unknown addresses of all listeners.
  const values = ['token', 'secondToken', 'key', 'wrongToken', 'wrongKey'].map((name) => secrets[name] ?? '')
  for (const value of values) {
    for (const base of Object.values(server.urls)) {
      for (const path of ['/v1/user', '/v1/executions/last', '/v1/nowhere', '/v1/executions?limit=x', '/v1/%zz']) {
        const mark = path.includes('?') ? '&' : '?'
        await send(base, { path, headers: { 'X-Auth-Token': value } })
        await send(base, { path, headers: { 'Svc-Api-Key': value } })
        await send(base, { path, headers: { 'X-Auth-Token': value, 'Svc-Api-Key': value } })
        await send(base, { path, headers: { Cookie: `auth-token=${value}` } })
        await send(base, { path: `${path}${mark}x-auth-token=${value}` })
        await send(base, { path: `${path}${mark}svc-api-key=${value}` })
        await send(base, {
          path: `${path}${mark}X-Auth-Token=${value}`,
          headers: { Referer: `${base}/?svc-api-key=${value}` },
        })
      }
    }
    await server.call('DELETE', `/auth/v1/tokens/${value}x`, undefined, administrator)
    await server.call('POST', '/auth/v1/tokens/validate', { token: value }, administrator)
  }

  // An action whose own token must stay with it, and one that is given a secret by the client's environment.
  const execution = await server.call<{ id: string }>(
    'POST',
    '/v1/executions',
    { action: 'core.local', parameters: { cmd: 'printf %s "$SVC_ACTION_AUTH_TOKEN" | sha256sum; sleep 0.2' } },
    { 'Svc-Api-Key': secrets['key'] ?? '' },
  )
  expectStatus(execution, 201)
  await waitFor('the action to end', async () => {
    watchProcesses()
    const path = `/v1/executions/${execution.body.id}`
    return (await server.call<{ status: string }>('GET', path, undefined, administrator)).body.status === 'succeeded'
  })

  // The client, by environment and by its own files.
  for (const env of [
    { SVC_AUTH_TOKEN: secrets['secondToken'] ?? '' },
    { SVC_API_KEY: secrets['key'] ?? '' },
    { SVC_API_KEY: secrets['wrongKey'] ?? '' },
  ] as Record<string, string>[]) {
    const client = startCli(['--api-url', `${server.urls.api}/v1`, 'execution', 'list'], { HOME: home.path, ...env })
    watchProcesses()
    const { code, stderr } = await client.exit
    if (code !== (env['SVC_API_KEY'] === secrets['wrongKey'] ? 1 : 0)) throw new Error(`ended with ${code}: ${stderr}`)
  }
  expectStatus(await server.call('DELETE', `/v1/apikeys/${secrets['key']}`, undefined, administrator), 204)
  watchProcesses()
  await server.stop()
})

afterAll(() => {
  folder.remove()
  home.remove()
})

function expectStatus(answer: Answer<unknown>, status: number): void {
  if (answer.status !== status) throw new Error(`answered ${answer.status}: ${answer.text}`)
}

/** As it is, and as it would look on its way: base64 of `user:password` ends in that of its tail. */
function traces(secret: string): string[] {
  return [secret, Buffer.from(secret).toString('base64').slice(4, -4), Buffer.from(secret).toString('hex')]
}

function files(path: string): string[] {
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .map((name) => join(path, name))
    .filter((name) => statSync(name).isFile())
}

it('CVE-2022-31044 no secret is in any file of base_path, but the hash of a password and of a key', () => {
  const found: string[] = []
  const all = files(folder.path)
  expect(all.map((name) => name.slice(folder.path.length + 1))).toEqual(
    expect.arrayContaining(['svc.db', 'htpasswd', 'logs/svc.audit.log']),
  )
  for (const name of all) {
    const content = readFileSync(name, 'latin1')
    for (const [kind, secret] of Object.entries(secrets)) {
      if (traces(secret).some((text) => content.includes(text))) found.push(`${kind} in ${name}`)
    }
  }
  expect(found).toEqual([])
})

it('CVE-2025-2877 no secret is in the log at level DEBUG', async () => {
  await waitForLog(server, '"level":"AUDIT"')
  const found = Object.entries(secrets).filter(([, secret]) =>
    traces(secret).some((text) => server.log().includes(text)),
  )
  expect(found).toEqual([])
})

it('no secret is in the arguments of any process', () => {
  expect(seen.processes).toContain(executable)
  const found = Object.entries(secrets).filter(([, secret]) => seen.processes.includes(secret))
  expect(found).toEqual([])
})

fullOnly(it)('a secret in the configuration is in no message about it', async () => {
  const kwargs = secrets['kwargs'] ?? ''
  for (const settings of [
    { 'auth.backend_kwargs': `{"file_path": "/nowhere/x", "bind_password": "${kwargs}"}` },
    { 'auth.backend_kwargs': `{"bind_password": "${kwargs}"` },
    { 'auth.backend': 'ldap', 'auth.backend_kwargs': `{"bind_dn": "cn=x", "bind_password": "${kwargs}"}` },
  ]) {
    const started = createTestApp({ settings: { 'auth.enable': 'True', 'log.level': 'DEBUG', ...settings } })
    await expect(started).rejects.toThrow('auth.backend_kwargs')
    await expect(started).rejects.not.toThrow(kwargs)
  }
})
