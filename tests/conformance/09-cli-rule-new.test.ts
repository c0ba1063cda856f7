/** `svc rule new`: what it writes registers, and the test delivery that it prints runs the action. */
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { senderNames, senders, type Sender } from '../../src/cli/scaffold/rule/senders.ts'
import { signatureSchemes } from '../../src/modules/triggers/types.ts'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { createTestApp } from '../helpers/app.ts'
import { jsonOf, runCli, type CliExit } from '../helpers/cli.ts'
import { makeFolder } from '../helpers/folders.ts'
import { executable, type TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

interface Written {
  files: string[]
  next: string[]
  test_delivery: string | null
}

const folder = makeFolder()
let server: TestApp
let packs: string

beforeAll(async () => {
  server = await createTestApp()
  packs = join(server.basePath, 'packs')
  const parameters = ['repository', 'branch', 'event', 'status', 'alert', 'text']
  writePack('shop', 'show', parameters.map((name) => `  ${name}: {type: string, default: ''}\n`).join(''))
  // Base64 of 24 bytes, which is also a text for all other schemes.
  await ended(0, svc('key', 'set', '-e', 'shared_secret', 'MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3'))
}, 120_000)
afterAll(async () => {
  await server.stop()
  folder.remove()
})

/** With an action that prints the values of its parameters. */
function writePack(pack: string, action: string, parameters: string): void {
  mkdirSync(join(packs, pack, 'actions'), { recursive: true })
  writeFileSync(join(packs, pack, 'pack.yaml'), `name: ${pack}\ndescription: d\nversion: 1.0.0\nauthor: a\n`)
  writeFileSync(
    join(packs, pack, 'actions', `${action}.yaml`),
    `name: ${action}\nrunner_type: local-shell-script\nentry_point: ${action}.sh\nparameters:\n${parameters}`,
  )
  writeFileSync(join(packs, pack, 'actions', `${action}.sh`), '#!/bin/sh\necho "$@"\n', { mode: 0o755 })
}

const env = (): Record<string, string> => ({
  HOME: folder.path,
  SVC_API_URL: `${server.urls.api}/v1`,
  SVC_CONFIG_FILE: server.configFile,
})

const svc = (...args: string[]): Promise<CliExit> => runCli(args, env(), { cwd: folder.path })

async function ended(code: number, run: Promise<CliExit>): Promise<string> {
  const { code: found, stdout, stderr } = await run
  expect([found, stdout, stderr]).toEqual([code, stdout, stderr])
  return stdout
}

async function register(pack: string): Promise<void> {
  const { body, text } = await server.call('POST', '/v1/packs/register', { packs: [pack], fail_on_failure: false })
  expect([body['problems'] ?? [], body['warnings'] ?? [], text]).toEqual([[], [], text])
}

const create = (ref: string, ...flags: string[]): Promise<Written> =>
  jsonOf<Written>(svc, ['rule', 'new', ref, ...flags])

test('a rule for each sender, each timer and failures registers as it is written', async () => {
  for (const name of senderNames) {
    await create(
      `shop.on_${name}`,
      '--webhook',
      name,
      '--run',
      'shop.show',
      '--secret',
      'shared_secret',
      '--notify',
      'slack',
      '--enable',
    )
  }
  await create('shop.nightly', '--cron', '0 3 * * mon-fri', '--timezone', 'Europe/Berlin', '--run', 'shop.show')
  await create('shop.often', '--every', '1h30m', '--run', 'shop.show', '--notify', 'slack,mail')
  await create(
    'shop.failed',
    '--on-failure-of',
    'core.local',
    '--run',
    'shop.show',
    '--parameter',
    'text={{ trigger.error }}',
  )
  await register('shop')
  const { body } = await server.call<({ ref: string } & Record<string, unknown>)[]>(
    'GET',
    '/v1/rules?pack=shop&limit=-1',
  )
  const rules = new Map(body.map((rule) => [rule.ref, rule]))
  expect(rules.size).toBe(senderNames.length + 3)
  expect(rules.get('shop.nightly')).toMatchObject({
    enabled: false,
    trigger: { type: 'core.svc.CronTimer', parameters: { cron: '0 3 * * mon-fri', timezone: 'Europe/Berlin' } },
  })
  expect(rules.get('shop.often')).toMatchObject({
    trigger: { type: 'core.svc.IntervalTimer', parameters: { unit: 'minutes', delta: 90 } },
    notify: ['slack', 'mail'],
  })
  expect(rules.get('shop.on_github')).toMatchObject({
    enabled: true,
    notify: 'slack',
    trigger: { parameters: { url: 'shop/on_github', signature: { scheme: 'github', secret: '********' } } },
    action: {
      ref: 'shop.show',
      parameters: {
        repository: '{{ trigger.body.repository.full_name }}',
        branch: "{{ trigger.body.ref | replace('refs/heads/', '') }}",
      },
    },
  })
})

test('every scheme has a sender, but that of Amazon, which nobody else can sign for', () => {
  const used = Object.values<Sender>(senders).flatMap(({ signature }) => signature?.['scheme'] ?? [])
  expect(new Set([...used, 'sns'])).toEqual(new Set(signatureSchemes))
})

fullOnly(describe)('the printed test delivery', () => {
  beforeAll(async () => {
    await Promise.all([ensureDebianPackage('jq', '/usr/bin/jq'), ensureDebianPackage('openssl', '/usr/bin/openssl')])
    mkdirSync(join(folder.path, 'bin'))
    symlinkSync(executable, join(folder.path, 'bin', 'svc'))
  })

  const play = (command: string): Promise<{ stdout: string }> =>
    promisify(execFile)('sh', ['-c', command], {
      cwd: folder.path,
      env: { ...env(), PATH: `${join(folder.path, 'bin')}:${process.env['PATH'] ?? ''}` },
    })

  test.each(senderNames)('of %s runs the action, once it is signed', async (name) => {
    const ref = `shop.play_${name}`
    const written = await create(ref, '--webhook', name, '--run', 'shop.show', '--secret', 'shared_secret', '--enable')
    await register('shop')
    const delivery = written.test_delivery ?? ''
    const { stdout } = await play(delivery)
    expect(stdout).toContain(`rule: ${ref}`)
    expect(stdout).toContain('status: succeeded')
    const { signature }: Sender = senders[name]
    if (signature === undefined) return
    await expect(play(delivery.replace(/^SECRET=.*$/m, 'SECRET=MTEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3'))).rejects.toThrow(
      'Command failed',
    )
  })
})

fullOnly(test)('a rule on failures runs after the last attempt, and not on its own', async () => {
  writePack('bad', 'fails', '  x: {type: string, default: x}\n')
  writeFileSync(join(packs, 'bad/actions/fails.sh'), '#!/bin/sh\nexit 3\n', { mode: 0o755 })
  await create(
    'bad.alarm',
    '--on-failure-of',
    'bad.fails',
    '--run',
    'shop.show',
    '--enable',
    '--parameter',
    'text={{ trigger.action_ref }} {{ trigger.status }}',
  )
  await register('bad')
  await svc('run', 'bad.fails')
  await waitFor('the rule to run its action', async () => {
    const { body } = await server.call<{ result?: { stdout?: string } }[]>(
      'GET',
      '/v1/executions?rule_ref=bad.alarm&action=shop.show',
    )
    return body.some(({ result }) => result?.stdout?.includes('bad.fails failed') === true)
  })
})

test('what an action needs and does not get is said', async () => {
  writePack('needy', 'needs', '  branch: {type: string, required: true}\n  host: {type: string, required: true}\n')
  const { stderr } = await svc('rule', 'new', 'needy.push', '--webhook', 'gitlab', '--run', 'needy.needs')
  expect(stderr).toContain('The action needy.needs needs host: add it')
  const text = readFileSync(join(packs, 'needy/rules/push.yaml'), 'utf8')
  expect(text).toContain("    branch: '{{ trigger.body.ref | replace(''refs/heads/'', '''') }}'")
  expect(text).toContain('  #   commit: {{ trigger.body.checkout_sha }}')
})

test.each([
  [['web.push', '--run', 'web.a'], 'Give one of --webhook, --cron, --every and --on-failure-of.'],
  [['web.push', '--run', 'web.a', '--cron', '* * * * *', '--every', '5m'], 'Give one of'],
  [['web.push', '--run', 'web.a', '--cron', '* * * *'], '--cron: the expression has 4 fields'],
  [['web.push', '--run', 'web.a', '--cron', '* * * * *', '--timezone', 'Mars'], 'no time zone'],
  [['web.push', '--run', 'web.a', '--every', '0'], 'use whole seconds, 1 or more'],
  [['web.push', '--run', 'web.a', '--every', '500ms'], 'use whole seconds, 1 or more'],
  [['web.push', '--run', 'web.a', '--every', 'soon'], '"soon" is not a duration'],
  [['web.push', '--run', 'a', '--every', '5m'], '--run a: write <pack>.<name>'],
  [['web.push', '--run', 'web.a', '--on-failure-of', 'web.a'], 'would run on its own failures'],
  [
    ['web.push', '--run', 'web.a', '--webhook', 'github', '--hook', 'https://x/y'],
    '--hook https://x/y: write the part',
  ],
  [['web.push', '--run', 'web.a', '--webhook', 'github', '--hook', 'a/../b'], 'write the part'],
  [['web.push', '--run', 'web.a', '--webhook', 'github', '--hook', 'svc'], 'write the part'],
  [
    ['web.push', '--run', 'web.a', '--webhook', 'github', '--secret', 'a b'],
    'this is the name of a key, not the secret',
  ],
  [['web.push', '--run', 'web.a', '--every', '5m', '--hook', 'x'], '--hook and --secret are for --webhook.'],
  [['web.push', '--run', 'web.a', '--every', '5m', '--notify', 'a b'], '--notify a b: write the name of a destination'],
  [['web.push', '--run', 'web.a', '--every', '5m'], 'There is no pack "web"'],
])('%j is refused', async (args, message) => {
  expect(await ended(2, svc('rule', 'new', ...args))).toContain(message)
})
