/** `svc migrate check` with packs, configurations and st2.conf of a made-up installation. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { findPlaces, scanPack } from '../../src/migrate/index.ts'
import { spawnCli } from '../helpers/cli.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { CONFIGS, makeInstallation, manifest, PACKS, writeGreetings, type Installation } from './installation.ts'

let old: Installation
beforeEach(() => {
  old = makeInstallation()
})
afterEach(() => old.remove())

const check = (...args: string[]) => spawnCli(['migrate', 'check', old.path, ...args], {})

interface Report {
  packs: {
    pack: string
    state: string
    content: unknown
    config: string
    problems: { file: string; message: string }[]
  }[]
  options: { option: string; value: string; outcome: string }[]
  usable_percent: number
  needs_old_names: boolean
  skipped: { path: string }[]
  refused_records: { name: string; why: string }[]
}

async function report(...args: string[]): Promise<Report & { code: number | null }> {
  const { code, stdout, stderr } = await check('-j', ...args)
  expect(stderr).toBe('')
  return { code, ...(JSON.parse(stdout) as Report) }
}

describe('svc migrate check', () => {
  test('finds all of an installation that svc can use, whatever the order of its packs', async () => {
    writeGreetings(old)
    const found = await report()
    expect(found).toMatchObject({ code: 0, usable_percent: 100, needs_old_names: false })
    const [greetings] = found.packs
    expect(greetings).toMatchObject({
      pack: 'greetings',
      state: 'ready',
      config: 'valid',
      problems: [],
      content: { actions: { total: 2, usable: 2 }, rules: { total: 1, usable: 1 }, workflows: { total: 1, usable: 1 } },
    })
  })

  test('says of each pack what cannot be used and why, and leaves nothing behind', async () => {
    writeGreetings(old)
    old.write(`${PACKS}/greetings/actions/gone.yaml`, 'name: gone\nrunner_type: mistral-v2\n')
    old.write(
      `${PACKS}/greetings/actions/workflows/both.yaml`,
      'version: 1.0\ntasks:\n  one:\n    action: greetings.nothing\n',
    )
    old.write(`${CONFIGS}/greetings.yaml`, 'name: [1]\n')
    old.write(`${PACKS}/broken/pack.yaml`, 'name: broken\n')
    old.write(`${PACKS}/core/pack.yaml`, manifest('core'))
    // Other tests have servers of their own in the common one.
    const temporary = makeInstallation()
    const { code, stdout } = await spawnCli(['migrate', 'check', old.path], { TMPDIR: temporary.path })
    expect(code).toBe(1)
    expect(stdout).toMatch(/\| broken +\| refused +\|/)
    expect(stdout).toMatch(/\| core +\| included +\|/)
    expect(stdout).toMatch(/\| greetings +\| partly +\| 2 of 3 +\| 0 of 1 +\| 1 +\| +\| refused +\|/)
    expect(stdout).toContain('actions/gone.yaml:2 (runner_type)')
    expect(stdout).toContain('greetings.nothing')
    expect(stdout).toMatch(/^Usable: \d+(\.\d)? % \(\d+ of \d+\)\.$/m)
    expect(readdirSync(temporary.path)).toEqual([])
    temporary.remove()
  })

  fullOnly(test)('says what a pack lacks and can do without, which keeps it ready', async () => {
    writeGreetings(old)
    old.write(`${PACKS}/greetings/requirements.txt`, 'a-package-that-is-not-here\n')
    old.write(`${PACKS}/greetings/actions/py.yaml`, 'name: py\nrunner_type: python-script\nentry_point: py.py\n')
    old.write(`${PACKS}/greetings/actions/py.py`, 'class Py:\n    def run(self):\n        pass\n')
    const { code, stdout } = await check()
    expect(code).toBe(0)
    expect(stdout).toMatch(/\| greetings +\| ready +\|/)
    expect(stdout).toMatch(/^ {2}warning: requirements\.txt.*a-package-that-is-not-here/m)
    expect((await report()).packs[0]).toMatchObject({
      warnings: [{ file: 'requirements.txt' }],
      warnings_not_listed: 0,
    })
  })

  fullOnly(test)('names what is missing and where, and both places of what is there twice', async () => {
    writeGreetings(old)
    old.write(
      `${PACKS}/greetings/rules/on_line.yaml`,
      'name: on_line\nenabled: true\ntrigger:\n  type: linux.file_watch.line\naction:\n  ref: greetings.greet\n',
    )
    old.write(`srv/packs/visits/pack.yaml`, manifest('visits'))
    old.write('rules.json', [
      { name: 'a', pack: 'default', trigger: { type: 'shop.sold' }, criteria: {}, action: { ref: 'core.noop' } },
    ])
    old.write('more/rules.json', [
      { name: 'b', pack: 'default', trigger: { type: 'visits.visit' }, criteria: {}, action: { ref: 'core.noop' } },
    ])
    old.write('more/again.json', [
      { name: 'b', pack: 'default', trigger: { type: 'visits.visit' }, criteria: {}, action: { ref: 'core.local' } },
    ])
    const { packs, refused_records: refused } = await report()
    const problems = packs.flatMap((pack) => pack.problems.map(({ message }) => message))
    expect(problems).toContainEqual(
      expect.stringMatching(/"linux\.file_watch\.line" does not exist\. The pack "linux" is not here: copy it/),
    )
    expect(problems).toContainEqual(
      expect.stringMatching(/packs\/visits has a pack of this name, which counts instead$/),
    )
    expect(refused.map(({ why }) => why)).toEqual(
      expect.arrayContaining([
        expect.stringContaining('The pack "shop" is not here'),
        expect.stringMatching(
          /again\.json: record 1.*rules\.json: record 1|rules\.json: record 1.*again\.json: record 1/,
        ),
      ]),
    )
  })

  test('says what becomes of st2.conf, without its secrets', async () => {
    old.write(
      'etc/st2/st2.conf',
      [
        '[system]\nbase_path = /opt/stackstorm # data',
        '[webui]\nwebui_base_url = https://ada:hunter5@old.example/x?token=hunter6',
        '[auth]\nenable = True\ntoken_ttl = 3600\nbackend_kwargs = {"bind_password": "hunter2"}',
        '[api]\nmask_secrets = True\nmax_page_size = many',
        '[database]\npassword = hunter3',
        '[messaging]\nurl = amqp://user:hunter4@127.0.0.1/',
        '[surprise]\nat = all',
      ].join('\n'),
    )
    const { code, options } = await report()
    expect(code).toBe(0)
    expect(Object.fromEntries(options.map(({ option, outcome }) => [option, outcome]))).toEqual({
      'system.base_path': 'decide',
      'auth.enable': 'taken',
      'auth.token_ttl': 'taken',
      'auth.backend_kwargs': 'decide',
      'api.mask_secrets': 'default',
      'api.max_page_size': 'decide',
      'database.password': 'ignored',
      'messaging.url': 'ignored',
      'surprise.at': 'ignored',
      'webui.webui_base_url': 'decide',
    })
    expect(options.find(({ option }) => option.startsWith('webui'))).toMatchObject({
      value: 'https://********@old.example/x?token=********',
    })
    expect(JSON.stringify(options)).not.toMatch(/hunter/)
  })

  fullOnly(test)('follows links to packs only, and refuses paths that lead out of a pack', async () => {
    const other = makeInstallation()
    try {
      other.write('secret.yaml', 'name: secret\nrunner_type: noop\n')
      other.write('linked/pack.yaml', manifest('linked'))
      old.link(`${PACKS}/linked`, `${other.path}/linked`)
      old.write(`${PACKS}/sly/pack.yaml`, manifest('sly'))
      old.link(`${PACKS}/sly/actions/out.yaml`, `${other.path}/secret.yaml`)
      old.link('exports', other.path)
      const { packs, skipped } = await report()
      expect(packs.map(({ pack, state }) => [pack, state])).toEqual([
        ['linked', 'ready'],
        ['sly', 'partly'],
      ])
      expect(skipped).toMatchObject([{ path: 'exports' }])
    } finally {
      other.remove()
    }
  })

  test('runs nothing of the installation', async () => {
    const mark = `${old.path}/it-ran`
    old.write(`${PACKS}/watch/pack.yaml`, manifest('watch'))
    old.write(
      `${PACKS}/watch/sensors/look.yaml`,
      'class_name: Look\nentry_point: look.py\ntrigger_types:\n  - name: seen\n',
    )
    old.write(`${PACKS}/watch/sensors/look.py`, `open("${mark}", "w")\nclass Look:\n    pass\n`)
    old.write(
      `${PACKS}/watch/actions/act.yaml`,
      `name: act\nrunner_type: local-shell-cmd\nparameters:\n  cmd:\n    default: touch ${mark}\n`,
    )
    old.write(
      `${PACKS}/watch/rules/key.yaml`,
      'name: key\nenabled: true\ntrigger:\n  type: core.st2.key_value_pair.create\naction:\n  ref: watch.act\n',
    )
    old.write(
      `${PACKS}/watch/rules/tick.yaml`,
      'name: tick\nenabled: true\ntrigger:\n  type: core.st2.IntervalTimer\n  parameters: {unit: seconds, delta: 1}\naction:\n  ref: watch.act\n',
    )
    old.write('keys.json', [{ name: 'a', value: '1', scope: 'st2kv.system' }])
    expect(await report()).toMatchObject({ code: 0, needs_old_names: true, usable_percent: 100 })
    const validated = await spawnCli(['pack', 'validate', `${old.path}/${PACKS}/watch`], {})
    expect(validated.stdout).toMatch(/sensors.*1/)
    expect(existsSync(mark)).toBe(false)
  })

  fullOnly(test)('tries the records of exports, and names those that svc refuses', async () => {
    writeGreetings(old)
    const rule = {
      pack: 'default',
      enabled: true,
      criteria: {},
      trigger: { type: 'visits.visit' },
      action: { ref: 'core.noop' },
    }
    old.write('rules.json', [
      { ...rule, name: 'good' },
      { ...rule, name: 'no_type', trigger: { type: 'nothing.here' } },
      { ...rule, name: 'operator', criteria: { 'trigger.a': { type: 'wishes', pattern: 1 } } },
    ])
    old.write('list.json', [
      { ref: 'default.listed', pack: 'default', description: '', trigger: '', criteria: '', action: '' },
    ])
    const { code, refused_records: refused } = await report()
    expect(code).toBe(1)
    expect(refused.map(({ name, why }) => [name, why])).toEqual([
      ['default.listed', expect.stringContaining('the export has no trigger')],
      ['default.no_type', expect.stringContaining('nothing.here')],
      ['default.operator', expect.stringContaining('wishes')],
    ])
    expect((await spawnCli(['doctor', '--from-st2', old.path], {})).stdout).toMatch(/\| rule +\| default\.no_type/)
  })

  test('takes a pack itself for a folder of packs, and says when there is none', async () => {
    writeGreetings(old)
    old.write('empty/notes.txt', 'none')
    const [packs, empty] = [join(old.path, PACKS), join(old.path, 'empty')]
    const visits = join(packs, 'visits')
    const one = [{ folder: packs, names: ['visits'] }]
    expect((await findPlaces(visits)).packs).toEqual(one)
    expect(await findPlaces(empty, { packs: [visits, empty] })).toMatchObject({
      packs: one,
      skipped: [{ path: '.', why: 'there is no pack in it' }],
    })
    const none = await spawnCli(['migrate', 'check', empty, '--packs', empty], {})
    expect([none.code, none.stdout]).toEqual([2, expect.stringContaining('has nothing of StackStorm')])
  })

  test('names an empty and a missing folder', async () => {
    expect(await check()).toMatchObject({
      code: 2,
      stdout: expect.stringMatching(/^ERROR: .*has nothing of StackStorm/),
    })
    const missing = await spawnCli(['migrate', 'check', `${old.path}/none`], {})
    expect(missing).toMatchObject({ code: 2, stdout: expect.stringMatching(/does not exist/) })
  })

  test('tells names of StackStorm from names of the pack', async () => {
    const names = [
      'core.st2.webhook',
      'st2kv',
      'ctx().st2',
      'ctx(st2)',
      "ctx('st2')",
      'St2-Api-Key',
      'st2.execution__update',
      'webhooks/st2',
      'ST2_ACTION_API_URL',
    ]
    old.write('mine/pack.yaml', manifest('mine'))
    old.write(
      'mine/actions/own.yaml',
      'a: st2_url st2.executions.cancel ctx().st2kv_of my_st2kv_ ST2_ core.st2 st2-notes',
    )
    old.write('mine/actions/their.py', names.join('\n'))
    const { oldNames } = await scanPack(join(old.path, 'mine'))
    expect(oldNames).toEqual(names.map((name) => ({ name, file: 'actions/their.py' })))
  })

  fullOnly(test)('says which packs need the names of StackStorm', async () => {
    writeGreetings(old)
    old.write(
      `${PACKS}/visits/actions/show.yaml`,
      'name: show\nrunner_type: local-shell-cmd\nparameters:\n  cmd:\n    default: "{{ st2kv.system.place }}"\n',
    )
    const { needs_old_names: needs } = await report()
    expect(needs).toBe(true)
  })
})
