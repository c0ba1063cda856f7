/** `svc migrate import`: a made-up installation becomes a working server, once and again. */
import { createHash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createTestApp, type InProcessApp } from '../helpers/app.ts'
import { runCli, spawnCli } from '../helpers/cli.ts'
import { makeFolder } from '../helpers/folders.ts'
import { startServer } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { CONFIGS, makeInstallation, PACKS, writeGreetings, type Installation } from './installation.ts'
import { makeOldKey, type OldKey } from './secrets.ts'

interface Row {
  kind: string
  name: string
  outcome: string
  why?: string
}

interface Summary {
  counts: Record<string, Record<string, number>>
  attention: Row[]
  problems: string[]
  left: { kind: string }[]
  proposed_conf: string
  report: string
}

const OTHER_ACCOUNT = 65534

const apiKey = 'ZjIxYjY3YjM0NTM0NTNiNTM0'
const keyHash = createHash('sha512').update(`saltnpeper${apiKey}`).digest('hex')

/** Every kind of export that is not history. */
function writeExports({ write }: Installation, key: OldKey): void {
  write('etc/st2/keys/datastore_key.json', key.file)
  write('exports/keys.json', [
    { name: 'region', value: 'eu', scope: 'st2kv.system', secret: false, encrypted: false },
    { name: 'token', value: key.encrypt('hunter2 é'), scope: 'st2kv.system', secret: true, encrypted: true },
    { name: 'mine', value: key.encrypt('of ada'), scope: 'st2kv.user', user: 'ada', secret: true, encrypted: true },
    { name: 'gone', value: 'x', scope: 'st2kv.system', expire_timestamp: '2020-01-01T00:00:00.000000Z' },
  ])
  write(
    'exports/apikeys.yaml',
    `- id: 5a1f0c2e4b0a1d2c3e4f5070\n  user: ada\n  key_hash: ${keyHash}\n  metadata: {used_by: tests}\n  enabled: true\n`,
  )
  write('exports/rules.json', [
    {
      name: 'on_hook',
      pack: 'default',
      enabled: true,
      trigger: { type: 'core.st2.webhook', ref: 'core.5d6f', parameters: { url: 'old' }, description: '' },
      criteria: { 'trigger.body.place': { type: 'eq', pattern: '{{ st2kv.system.region }}' } },
      action: { ref: 'core.local', parameters: { cmd: 'echo {{ st2kv.system.token | decrypt_kv }}' } },
      type: { ref: 'standard', parameters: {} },
      uid: 'rule:default:on_hook',
    },
    {
      ref: 'greetings.on_visit',
      name: 'on_visit',
      pack: 'greetings',
      enabled: false,
      metadata_file: 'rules/on_visit.yaml',
      trigger: { type: 'visits.visit' },
      criteria: {},
      action: { ref: 'greetings.greet' },
    },
  ])
  write('exports/policies.json', [
    {
      name: 'one',
      pack: 'default',
      resource_ref: 'core.local',
      policy_type: 'action.concurrency',
      parameters: { threshold: 3 },
      enabled: true,
    },
  ])
  write('exports/aliases.json', [
    {
      name: 'greet',
      pack: 'default',
      action_ref: 'greetings.greet',
      formats: ['greet {{ name }}'],
      ack: { format: 'on {{ st2kv.system.region }}' },
      enabled: true,
    },
  ])
  write('exports/triggertypes.json', [
    {
      name: 'door',
      pack: 'default',
      description: 'A door opens.',
      payload_schema: { type: 'object' },
      parameters_schema: {},
    },
    { name: 'st2.webhook', pack: 'core', description: '', payload_schema: {}, parameters_schema: {} },
  ])
  write('exports/tokens.json', [{ token: 'abc', expiry: '2030-01-01T00:00:00Z', user: 'ada' }])
  write('etc/st2/htpasswd', 'ada:$apr1$A1b2C3d4$Yg4R0yXb3Mff8iQw4iC5g0\nold:plain\n')
  write('opt/stackstorm/rbac/roles/ops.yaml', 'name: ops\npermission_grants:\n  - permission_types: [execution_list]\n')
  write('opt/stackstorm/rbac/assignments/ada.yaml', 'username: ada\nroles: [ops]\n')
  write('etc/st2/st2.conf', '[auth]\ntoken_ttl = 3600\n[messaging]\nurl = amqp://u:hunter4@h/\n')
}

fullOnly(describe.skipIf(process.getuid?.() !== 0))('svc migrate import of root', () => {
  test('acts as the account of the server, which must be able to read the folder', async () => {
    const old = makeInstallation()
    const folder = makeFolder()
    const own = join(folder.path, 'base')
    mkdirSync(own)
    for (const path of [folder.path, old.path]) chmodSync(path, 0o755)
    chownSync(own, OTHER_ACCOUNT, OTHER_ACCOUNT)
    const account = ['--reuid', String(OTHER_ACCOUNT), '--regid', String(OTHER_ACCOUNT), '--clear-groups']
    const server = await startServer({ basePath: own, through: (command) => ['setpriv', ...account, ...command] })
    try {
      writeGreetings(old)
      const outside = folder.write('outside', 'of root')
      mkdirSync(join(own, 'keys'), { recursive: true })
      chownSync(join(own, 'keys'), OTHER_ACCOUNT, OTHER_ACCOUNT)
      chmodSync(outside, 0o600)
      symlinkSync(outside, join(own, 'keys', 'migrated.json'))
      const import_ = () => spawnCli(['migrate', 'import', old.path, '--config-file', server.configFile], {})
      chmodSync(old.path, 0o700)
      expect(await import_()).toMatchObject({
        code: 2,
        stdout: expect.stringContaining('permission denied') as unknown,
      })
      chmodSync(old.path, 0o755)
      expect(await import_()).toMatchObject({ code: 1, stdout: expect.stringContaining('migrated.json') as unknown })
      rmSync(join(own, 'keys', 'migrated.json'))
      expect(await import_()).toMatchObject({ code: 0 })
      expect([statSync(outside).uid, readFileSync(outside, 'utf8')]).toEqual([0, 'of root'])
      for (const name of ['keys/migrated.json', 'packs/greetings', 'configs/greetings.yaml']) {
        expect([name, statSync(join(own, name)).uid]).toEqual([name, OTHER_ACCOUNT])
      }
    } finally {
      await server.stop()
      old.remove()
      folder.remove()
    }
  })
})

describe('svc migrate import', () => {
  let old: Installation
  let app: InProcessApp
  beforeEach(async () => {
    old = makeInstallation()
    app = await createTestApp()
  })
  afterEach(async () => {
    await app.stop()
    old.remove()
  })

  const run = (...args: string[]) =>
    runCli(['migrate', 'import', old.path, '--config-file', app.configFile, ...args], {})

  async function importAll(...args: string[]): Promise<Summary & { code: number | null; text: string }> {
    const { code, stdout, stderr } = await run('-j', ...args)
    expect(stderr).toBe('')
    return { code, text: stdout, ...(JSON.parse(stdout) as Summary) }
  }

  const read = async (path: string): Promise<Record<string, unknown>> =>
    (await app.call('GET', path)).body as Record<string, unknown>

  test('takes over everything, and the same action gives the same result', async () => {
    const key = makeOldKey()
    writeGreetings(old)
    writeExports(old, key)
    const first = await importAll()
    expect(first.attention).toEqual([expect.objectContaining({ kind: 'password', name: 'old', outcome: 'refused' })])
    expect(first).toMatchObject({
      code: 1,
      problems: [],
      counts: {
        key: { imported: 3, skipped: 1 },
        api_key: { imported: 1 },
        pack: { imported: 2 },
        config: { imported: 1 },
        password: { imported: 1, refused: 1 },
        role: { imported: 1 },
        role_assignment: { imported: 1 },
        rule: { imported: 1, changed: 1 },
        policy: { imported: 1 },
        action_alias: { imported: 1 },
        trigger_type: { imported: 1, skipped: 1 },
      },
      left: [{ kind: 'token' }],
    })
    expect(first.text + readFileSync(first.report, 'utf8')).not.toMatch(/hunter|of ada/)
    expect(await read('/v1/keys/token?decrypt=true')).toMatchObject({ value: 'hunter2 é', secret: true })
    expect(await read('/v1/rules/default.on_hook')).toMatchObject({
      trigger: { type: 'core.svc.webhook', parameters: { url: 'old' } },
      action: { parameters: { cmd: 'echo {{ svckv.system.token | decrypt_kv }}' } },
    })
    expect(await read('/v1/rules/greetings.on_visit')).toMatchObject({ enabled: false })
    expect(await read(`/v1/apikeys/${apiKey}`)).toMatchObject({ user: 'ada', id: '5a1f0c2e4b0a1d2c3e4f5070' })
    expect(readFileSync(first.proposed_conf, 'utf8')).toContain('token_ttl = 3600')
    expect(statSync(first.proposed_conf).mode & 0o777).toBe(0o600)
    const ran = await runCli(['run', 'greetings.greet'], { SVC_API_URL: `${app.urls.api}/v1` })
    expect(ran.stdout).toContain('hello world')
  })

  test('takes configurations over byte by byte, and keeps what else is in the password file', async () => {
    writeGreetings(old)
    old.write(`${CONFIGS}/greetings.yaml`, Buffer.from('greeting: Gr\xfcezi\n', 'latin1'))
    old.write('etc/st2/htpasswd', 'ada:$apr1$A1b2C3d4$Yg4R0yXb3Mff8iQw4iC5g0\n')
    const passwords = join(app.basePath, 'htpasswd')
    writeFileSync(passwords, '# by hand\nada:*\n\nbob:$apr1$A1b2C3d4$Yg4R0yXb3Mff8iQw4iC5g0\n')
    const first = await importAll('--on-conflict', 'replace')
    expect(first.counts).toMatchObject({ config: { imported: 1 }, password: { replaced: 1 } })
    expect(readFileSync(join(app.basePath, 'configs', 'greetings.yaml'), 'latin1')).toBe('greeting: Gr\xfcezi\n')
    expect(readFileSync(passwords, 'utf8')).toMatch(/^# by hand\nada:\$apr1\$.*\n\nbob:\$apr1\$.*\n$/)
    expect((await importAll()).counts).toMatchObject({ config: { unchanged: 1 }, password: { unchanged: 1 } })
  })

  test('says that the password file cannot be read, and leaves it', async () => {
    old.write('etc/st2/htpasswd', 'ada:$apr1$A1b2C3d4$Yg4R0yXb3Mff8iQw4iC5g0\n')
    mkdirSync(join(app.basePath, 'htpasswd'))
    const { code, problems } = await importAll()
    expect([code, problems]).toEqual([1, [expect.stringContaining('htpasswd cannot be read (it is not a file)')]])
  })

  test('changes nothing when it is run again, updates what has changed there, and keeps what was changed here', async () => {
    const key = makeOldKey()
    writeGreetings(old)
    writeExports(old, key)
    await importAll()
    const again = await importAll()
    for (const [kind, ofKind] of Object.entries(again.counts)) {
      expect([kind, ofKind['imported'], ofKind['changed']]).toEqual([kind, undefined, undefined])
    }
    const { stdout } = await run()
    expect(stdout).toMatch(/^Nothing has changed\.$/m)

    old.write('exports/keys.json', [
      { name: 'region', value: 'us', scope: 'st2kv.system' },
      { name: 'token', value: key.encrypt('new'), scope: 'st2kv.system', secret: true, encrypted: true },
      { name: 'none', value: '', scope: 'st2kv.system', secret: false, encrypted: false },
    ])
    old.write(`${CONFIGS}/greetings.yaml`, 'name: moon\n')
    old.write(
      `${PACKS}/visits/triggers/visit.yaml`,
      'name: visit\ndescription: Somebody came.\npayload_schema:\n  type: object\n',
    )
    await app.call('PUT', '/v1/keys/token', { name: 'token', value: 'changed here', secret: true })
    const third = await importAll()
    expect(third.counts).toMatchObject({
      key: { imported: 1, changed: 1, conflict: 1 },
      config: { changed: 1 },
      pack: { changed: 1, unchanged: 1 },
    })
    expect(third.attention).toContainEqual(
      expect.objectContaining({ kind: 'key', name: 'system:token', outcome: 'conflict' }),
    )
    expect(await read('/v1/keys/token?decrypt=true')).toMatchObject({ value: 'changed here' })
    expect(await importAll('--on-conflict', 'replace')).toMatchObject({
      counts: { key: { replaced: 1, unchanged: 2 } },
    })
    expect(await read('/v1/keys/token?decrypt=true')).toMatchObject({ value: 'new' })
    expect(await read('/v1/keys/none')).toMatchObject({ value: '' })

    old.write(`${PACKS}/visits/README.md`, 'changed there')
    writeFileSync(join(app.basePath, 'packs', 'visits', 'README.md'), 'changed here')
    expect((await importAll()).attention).toContainEqual(
      expect.objectContaining({
        kind: 'pack',
        name: 'visits',
        why: expect.stringContaining('changed here') as unknown,
      }),
    )
  })

  test('says what would happen, and changes nothing', async () => {
    writeGreetings(old)
    writeExports(old, makeOldKey())
    const { counts, report } = await importAll('--dry-run')
    expect(counts).toMatchObject({ key: { imported: 3 }, pack: { imported: 2 }, rule: { imported: 1, changed: 1 } })
    expect(report).toBe('')
    expect((await app.call('GET', '/v1/keys')).body).toEqual([])
    expect(readdirSync(join(app.basePath, 'packs'))).toEqual(['default'])
    expect(existsSync(join(app.basePath, 'migration'))).toBe(false)
  })

  test('says which packs have content that svc cannot use, and takes over the rest of them', async () => {
    writeGreetings(old)
    old.write(`${PACKS}/greetings/actions/gone.yaml`, 'name: gone\nrunner_type: mistral-v2\n')
    expect(await importAll()).toMatchObject({
      code: 1,
      counts: { pack: { imported: 2 } },
      // The rule of the first pack needs the second one, which comes later: that is no problem.
      packs_with_problems: ['greetings'],
    })
    const { stdout } = await run()
    expect(stdout).toMatch(/^Packs with content that svc cannot use: greetings\. svc migrate check says why\.$/m)
    expect(await read('/v1/actions/greetings.greet')).toMatchObject({ enabled: true })
  })

  test('whatever a pack defines is enabled or disabled as it was there, and as it has been switched here since', async () => {
    writeGreetings(old)
    const at = (name: string): string => `${PACKS}/greetings/${name}`
    old.write(at('aliases/hi.yaml'), 'name: hi\naction_ref: greetings.greet\nformats: [hi]\n')
    old.write(
      at('policies/one.yaml'),
      'name: one\nenabled: true\nresource_ref: greetings.greet\npolicy_type: action.concurrency\nparameters: {threshold: 1}\n',
    )
    old.write(at('sensors/look.yaml'), 'class_name: Look\nentry_point: look.py\ntrigger_types: [{name: seen}]\n')
    old.write(at('sensors/look.py'), 'class Look:\n    def run(self):\n        pass\n')
    const states = {
      actions: 'greetings.greet',
      actionalias: 'greetings.hi',
      policies: 'greetings.one',
      rules: 'greetings.on_visit',
      sensortypes: 'greetings.Look',
    }
    const writeStates = (enabled: boolean): void => {
      const more = { pack: 'greetings', enabled, metadata_file: 'there.yaml' }
      old.write('actions.json', [{ ...more, name: 'greet', runner_type: 'local-shell-cmd' }])
      old.write('aliases.json', [{ ...more, name: 'hi', formats: ['hi'], action_ref: 'greetings.greet' }])
      old.write('policies.json', [
        { ...more, name: 'one', policy_type: 'action.concurrency', resource_ref: 'greetings.greet' },
      ])
      old.write('rules.json', [
        { ...more, name: 'on_visit', trigger: { type: 'visits.visit' }, criteria: {}, action: { ref: 'core.noop' } },
      ])
      old.write('sensors.json', [{ pack: 'greetings', class_name: 'Look', enabled, trigger_types: [] }])
    }
    const here = async (): Promise<unknown[]> =>
      Promise.all(Object.entries(states).map(async ([path, ref]) => (await read(`/v1/${path}/${ref}`))['enabled']))

    const changed = Object.fromEntries(
      ['action', 'action_alias', 'policy', 'rule', 'sensor'].map((kind) => [kind, { changed: 1 }]),
    )
    writeStates(false)
    expect(await importAll()).toMatchObject({ code: 0, counts: changed })
    expect(await here()).toEqual([false, false, false, false, false])
    expect((await run()).stdout).toMatch(/^Nothing has changed\.$/m)
    expect(await here()).toEqual([false, false, false, false, false])
    // The definitions are those of the pack, not of the export.
    expect(await read('/v1/rules/greetings.on_visit')).toMatchObject({ action: { ref: 'greetings.greet' } })
    writeStates(true)
    await app.call('PUT', '/v1/sensortypes/greetings.Look', { enabled: false })
    expect(await importAll()).toMatchObject({ counts: changed })
    expect(await here()).toEqual([true, true, true, true, true])
    await app.call('PUT', '/v1/sensortypes/greetings.Look', { enabled: false })
    expect(await importAll()).toMatchObject({ code: 1, counts: { sensor: { conflict: 1 }, action: { unchanged: 1 } } })
    expect(await here()).toEqual([true, true, true, true, false])
  })

  test('a pack that has changed, or has a problem, enables nothing that was disabled there or here', async () => {
    writeGreetings(old)
    const at = (name: string): string => `${PACKS}/greetings/${name}`
    old.write(at('actions/gone.yaml'), 'name: gone\nrunner_type: mistral-v2\n')
    old.write(at('aliases/hi.yaml'), 'name: hi\naction_ref: greetings.greet\nformats: [hi]\n')
    old.write('rules.json', [
      {
        pack: 'greetings',
        name: 'on_visit',
        enabled: false,
        metadata_file: 'rules/on_visit.yaml',
        trigger: { type: 'visits.visit' },
        criteria: {},
        action: { ref: 'greetings.greet' },
      },
    ])
    const here = async (): Promise<unknown[]> =>
      Promise.all(
        ['rules/greetings.on_visit', 'actions/greetings.greet', 'actionalias/greetings.hi'].map(
          async (path) => (await read(`/v1/${path}`))['enabled'],
        ),
      )
    expect(await importAll()).toMatchObject({ counts: { rule: { changed: 1 } }, packs_with_problems: ['greetings'] })
    expect(await here()).toEqual([false, true, true])

    const action = await read('/v1/actions/greetings.greet')
    await app.call('PUT', '/v1/actions/greetings.greet', { ...action, enabled: false })
    // It has a problem: it is registered each time.
    expect(await importAll()).toMatchObject({ counts: { pack: { unchanged: 2 }, rule: { unchanged: 1 } } })
    expect(await here()).toEqual([false, false, true])
    old.write(at('actions/more.yaml'), 'name: more\nrunner_type: noop\n')
    old.write(at('aliases/hi.yaml'), 'name: hi\nenabled: false\naction_ref: greetings.greet\nformats: [hi]\n')
    expect(await importAll()).toMatchObject({
      counts: { pack: { unchanged: 1, changed: 1 }, rule: { unchanged: 1 } },
      attention: [],
    })
    // What the changed file says itself counts.
    expect(await here()).toEqual([false, false, false])

    const rule = await read('/v1/rules/greetings.on_visit')
    await app.call('PUT', '/v1/rules/greetings.on_visit', { ...rule, enabled: true })
    old.write(at('README.md'), 'changed')
    expect(await importAll()).toMatchObject({
      counts: { pack: { changed: 1 }, rule: { conflict: 1 } },
      attention: [{ kind: 'rule', why: 'it has been enabled here since the last import' }],
    })
    expect(await here()).toEqual([true, false, false])
    expect(await importAll('--on-conflict', 'replace')).toMatchObject({ counts: { rule: { replaced: 1 } } })
    expect(await here()).toEqual([false, false, false])
  })

  test('a key that expires later expires here at the same moment', async () => {
    const expiry = '2040-01-02T03:04:05.000000Z'
    const write = (time: string): void => {
      old.write('keys.json', [{ name: 'lease', value: 'x', scope: 'st2kv.system', expire_timestamp: time }])
    }
    write(expiry)
    expect(await importAll()).toMatchObject({ code: 0, counts: { key: { imported: 1 } } })
    const there = String((await read('/v1/keys/lease'))['expire_timestamp'])
    expect(Math.abs(Date.parse(there) - Date.parse(expiry))).toBeLessThan(2000)
    expect(await importAll()).toMatchObject({ counts: { key: { unchanged: 1 } } })
    await app.call('PUT', '/v1/keys/lease', { name: 'lease', value: 'x', ttl: 500_000_000 })
    expect(await importAll()).toMatchObject({ code: 1, counts: { key: { conflict: 1 } } })
    expect(await importAll('--on-conflict', 'replace')).toMatchObject({ counts: { key: { replaced: 1 } } })
    write('2041-01-02T03:04:05.000000Z')
    expect(await importAll()).toMatchObject({ counts: { key: { changed: 1 } } })
    expect((await read('/v1/keys/lease'))['expire_timestamp']).toMatch(/^2041-01-02T03:04:0/)
  })

  test('goes on where an import was killed, and loses no earlier version of a pack', async () => {
    writeGreetings(old)
    const packs = join(app.basePath, 'packs')
    // As it is between the two renames.
    mkdirSync(join(packs, '.migrate-old-mine'), { recursive: true })
    writeFileSync(join(packs, '.migrate-old-mine', 'pack.yaml'), 'name: mine\n')
    mkdirSync(join(packs, '.migrate-new-greetings', 'actions'), { recursive: true })
    await importAll()
    expect(readdirSync(packs).toSorted()).toEqual(['default', 'greetings', 'mine', 'visits'])
  })

  test('refuses what it cannot trust, and takes over the rest', async () => {
    const key = makeOldKey()
    const broken = key
      .encrypt('x')
      .replace(/^.{20}/, (head) => head.replaceAll(/[0-9A-F]/g, (digit) => (digit === '0' ? '1' : '0')))
    old.write('datastore_key.json', key.file)
    old.write('keys.json', [
      { name: 'good', value: key.encrypt('fine'), scope: 'st2kv.system', secret: true, encrypted: true },
      { name: 'changed', value: broken, scope: 'st2kv.system', secret: true, encrypted: true },
      { name: 'other', value: makeOldKey().encrypt('x'), scope: 'st2kv.system', secret: true, encrypted: true },
      { name: 'masked', value: '********', scope: 'st2kv.system', secret: true, encrypted: false },
      { name: 'twice', value: 'a', scope: 'st2kv.system' },
      { name: 'twice', value: 'b', scope: 'st2kv.system' },
      { name: 'number', value: 5, scope: 'st2kv.system' },
    ])
    old.write('cut.json', '[{"name": "whole", "value": "1", "scope": "st2kv.system"}, {"name": "half", "val')
    old.write(
      'bomb.yaml',
      `a: &a [${'x,'.repeat(50)}]\n${'bcdefghij'
        .split('')
        .map((name, i) => `${name}: &${name} [${`*${'abcdefghij'[i]},`.repeat(50)}]`)
        .join('\n')}\n`,
    )
    old.write('apikeys.json', [{ user: 'ada', key_hash: '********', metadata: {} }])
    old.write('list.json', [{ ref: 'x.y', pack: 'x', name: 'y', description: '', runner_type: '' }])
    const found = await importAll()
    expect(Object.fromEntries(found.attention.map(({ name, why = '' }) => [name, why]))).toMatchObject({
      'system:changed': expect.stringContaining('another key'),
      'system:other': expect.stringContaining('another key'),
      'system:masked': expect.stringContaining('masked'),
      'system:twice': expect.stringContaining('another record of this name'),
      'system:number': expect.stringContaining('not text'),
    })
    expect(found.counts['key']).toEqual({ imported: 3, refused: 5 })
    expect(found.problems).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/cut\.json: record 2: the file ends within it/),
        expect.stringMatching(/bomb\.yaml: /),
      ]),
    )
  })

  test('refuses packs that lead out of themselves, and takes nothing of them', async () => {
    writeGreetings(old)
    old.link(`${PACKS}/greetings/actions/secret.yaml`, '/etc/passwd')
    const { attention } = await importAll()
    expect(attention).toContainEqual(
      expect.objectContaining({
        kind: 'pack',
        name: 'greetings',
        outcome: 'refused',
        why: expect.stringContaining('leads out'),
      }),
    )
    expect(existsSync(join(app.basePath, 'packs', 'greetings'))).toBe(false)
  })
})
