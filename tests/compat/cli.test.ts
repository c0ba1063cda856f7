/** The client called by the names of StackStorm's programs (docs/compatibility.md). */
import { execFile } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { argumentsFor, stackstormNames } from '../../src/cli/program-names.ts'
import { createTestApp } from '../helpers/app.ts'
import { runCli } from '../helpers/cli.ts'
import { makeFolder } from '../helpers/folders.ts'
import { basicAuth, firstPassword } from '../helpers/logins.ts'
import { call, executable, type TestApp } from '../helpers/server.ts'

let app: TestApp
let key: string
const home = makeFolder()
beforeAll(async () => {
  app = await createTestApp({ settings: { 'auth.enable': 'True', 'compat.stackstorm': 'True' } })
  const Authorization = basicAuth('admin', firstPassword(app.basePath))
  const token = await call<{ token: string }>(`${app.urls.auth}/tokens`, 'POST', {}, { Authorization })
  const made = await app.call('POST', '/v1/apikeys', {}, { 'X-Auth-Token': token.body.token })
  key = String(made.body['key'])
})
afterAll(async () => {
  await app.stop()
  home.remove()
})

const addresses = (prefix: string): Record<string, string> => ({
  [`${prefix}_API_URL`]: `${app.urls.api}/v1`,
  [`${prefix}_AUTH_URL`]: app.urls.auth,
  [`${prefix}_STREAM_URL`]: `${app.urls.stream}/v1`,
})
const st2 = { program: '/usr/local/bin/st2' }

it('st2 reads ST2_* variables, shows the names of StackStorm, and follows output', async () => {
  const env = { HOME: home.path, ...addresses('ST2'), ST2_API_KEY: key }
  const rule = join(home.path, 'rule.yaml')
  writeFileSync(
    rule,
    'name: hook\npack: default\ntrigger: {type: core.st2.webhook, parameters: {url: hook}}\naction: {ref: core.noop}\nenabled: true\n',
  )
  const made = await runCli(['rule', 'create', rule, '-j'], env, st2)
  expect([made.code, made.stdout]).toEqual([0, expect.stringContaining('"core.st2.webhook"')])
  const shown = await runCli(['trigger', 'getspecs', 'core.st2.webhook', '-j'], env, st2)
  expect([shown.code, shown.stdout]).toEqual([0, expect.stringContaining('"core.st2.webhook"')])
  const run = await runCli(['run', '--tail', 'core.local', 'cmd=echo followed'], env, st2)
  expect([run.code, run.stdout]).toEqual([0, expect.stringContaining('followed')])
  const later = await runCli(['run', '-a', 'core.noop'], env, st2)
  expect(later.stdout).toContain(' st2 execution get ')
})

it('st2 logs in with ~/.st2/config and keeps the token there', async () => {
  const folder = join(home.path, '.st2')
  mkdirSync(folder, { mode: 0o700 })
  const password = firstPassword(app.basePath)
  const [api, auth, stream] = [`${app.urls.api}/v1`, app.urls.auth, `${app.urls.stream}/v1`]
  const text = `[credentials]\nusername = admin\npassword = ${password}\n[api]\nurl = ${api}\n[auth]\nurl = ${auth}\n[stream]\nurl = ${stream}\n`
  writeFileSync(join(folder, 'config'), text, { mode: 0o600 })
  const who = await runCli(['whoami'], { HOME: home.path }, st2)
  expect([who.code, who.stdout]).toEqual([0, expect.stringContaining('admin')])
  const printed = await runCli(['--print-config'], { HOME: home.path }, st2)
  expect(printed.stdout).toContain(join(folder, 'config'))
  const { readdirSync } = await import('node:fs')
  expect(readdirSync(folder).toSorted()).toEqual(['config', 'token-admin'])
})

it('a link to the executable is enough', async () => {
  const links = join(home.path, 'bin')
  mkdirSync(links)
  for (const name of ['st2', 'st2-validate-pack']) symlinkSync(executable, join(links, name))
  const env = { PATH: process.env['PATH'], HOME: join(home.path, 'nobody'), ...addresses('ST2'), ST2_API_KEY: key }
  const play = (name: string, ...args: string[]): Promise<{ stdout: string }> =>
    promisify(execFile)(process.execPath, [join(links, name), ...args], { env })
  expect((await play('st2', 'whoami')).stdout).toContain('admin')
  expect((await play('st2', 'trigger', 'get', 'core.st2.webhook', '-a', 'ref')).stdout).toContain('core.st2.webhook')
  expect((await play('st2-validate-pack', '--help')).stdout).toContain('Usage: ')
})

it('svc reads none of them, and says so when it needs one', async () => {
  const env = { HOME: join(home.path, 'nobody'), ...addresses('SVC'), ST2_API_KEY: key }
  const refused = await runCli(['whoami'], env)
  expect([refused.code, refused.stdout + refused.stderr]).toEqual([1, expect.stringContaining('SVC_API_KEY')])
  const listed = await runCli(['rule', 'list'], env)
  expect(listed.stdout + listed.stderr).toContain('ST2_API_KEY (here SVC_API_KEY)')
})

it('st2-rule-tester, st2-trigger-refire and st2-apply-rbac-definitions find the server by its st2.conf', async () => {
  const file = join(home.path, 'st2.conf')
  // As StackStorm has it: with options of a server that the client knows nothing of.
  writeFileSync(
    file,
    `[system]\nbase_path = ${app.basePath} # of packs\n[database]\nhost = 127.0.0.1\n[api]\nport = None\n`,
  )
  const [rule, instance] = ['tested.yaml', 'instance.yaml'].map((name) => join(home.path, name))
  writeFileSync(
    rule ?? '',
    'name: tested\npack: default\ntrigger: {type: core.st2.webhook, parameters: {url: t}}\naction: {ref: core.noop}\nenabled: true\n',
  )
  writeFileSync(instance ?? '', 'trigger: core.st2.webhook\npayload: {}\n')
  const env = { HOME: join(home.path, 'nobody') }
  const ask = (name: string, ...words: string[]): Promise<Awaited<ReturnType<typeof runCli>>> =>
    runCli(['--config-file', file, ...words], env, { program: `/usr/bin/${name}` })
  const tested = await ask('st2-rule-tester', `--rule=${rule}`, `--trigger-instance=${instance}`)
  expect([tested.stderr, tested.stdout, tested.code]).toEqual(['', expect.stringContaining('=== RULE MATCHES ==='), 0])

  const headers = { 'Svc-Api-Key': key }
  const sent = await app.call('POST', '/v1/webhooks/svc', { trigger: 'core.svc.generic.inquiry', payload: {} }, headers)
  const id = sent.headers.get('svc-trigger-instance-id') ?? ''
  const fired = await ask('st2-trigger-refire', '-t', id)
  expect([fired.stdout, fired.code]).toEqual([expect.stringContaining('Trigger re-fired'), 0])
  // The server says so: access control is off in this test.
  const applied = await ask('st2-apply-rbac-definitions')
  expect([applied.code, applied.stderr, applied.stdout]).toEqual([1, '', expect.stringContaining('rbac.enable')])
})

it('st2 workflow test takes the names of StackStorm, and quotes them', async () => {
  const file = join(home.path, 'workflow.yaml')
  const tell = (condition: string, ...more: string[]): Promise<Awaited<ReturnType<typeof runCli>>> => {
    writeFileSync(
      file,
      `version: 1.0\ntasks:\n  one: {action: core.echo, input: {message: <% ctx(st2).user %>}, next: [{when: ${condition}}]}\n`,
    )
    return runCli(['workflow', 'test', file, ...more], { HOME: home.path }, st2)
  }
  const fine = await tell('<% ctx().st2.user != x %>')
  expect([fine.code, fine.stderr, fine.stdout]).toEqual([0, '', expect.stringContaining('<% ctx().st2.user != x %>')])
  const wrong = await tell('<% ctx().st2.user + %>', '-j')
  expect([wrong.code, wrong.stdout]).toEqual([1, expect.stringContaining('<% ctx().st2.user + %>')])
})

it('each program of StackStorm is a command', () => {
  for (const name of stackstormNames) {
    const own = name.replace(/^st2(?=-|ctl|$)/, 'svc')
    expect([name, argumentsFor(`/usr/bin/${name}`, ['x'])]).toEqual([name, argumentsFor(`/usr/bin/${own}`, ['x'])])
  }
  expect(argumentsFor('st2ctl', ['status'])).toEqual(['svcctl', 'status'])
  expect(argumentsFor('st2', ['run'])).toEqual(['run'])
  expect(argumentsFor('st2-purge-executions', [])).toEqual(['purge', 'executions'])
})
