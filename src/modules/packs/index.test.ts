import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { loadEncryption } from '../../core/encryption.ts'
import { createSensorRecords } from '../../../tests/helpers/sensors.ts'
import { startRules, type RulesWorld } from '../../../tests/helpers/rules.ts'
import type { Log } from '../../lib/log/log.ts'
import type { RunnerTypeDefinition } from '../../runners/runner.ts'
import type { Actions } from '../actions/index.ts'
import { describeProblem } from '../../lib/text/metadata.ts'
import type { RuleRecord } from '../rules/types.ts'
import { createTemplateThread } from '../../core/rendering/index.ts'
import { createAliases } from '../aliases/index.ts'
import { createPolicies } from '../policies/index.ts'
import { createPacks, type Packs } from './index.ts'
import { noMetrics } from '../../core/metrics.ts'

const shell: RunnerTypeDefinition = {
  name: 'local-shell-cmd',
  description: '',
  enabled: true,
  runner_package: 'local_runner',
  runner_module: 'local_runner',
  runner_parameters: {
    cmd: { type: 'string' },
    kwarg_op: { type: 'string', default: '--' },
    sudo: { type: 'boolean', default: false },
    sudo_password: { type: 'string', default: null, secret: true },
    timeout: { type: 'integer', default: 60 },
  },
}

let folder: string
let world: RulesWorld
let actions: Actions
let packs: Packs
let warnings: string[]

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-packs-'))
  world = await startRules()
  actions = world.actions
  warnings = []
  packs = createPacks({
    notifications: { usePack: () => Promise.resolve([]), forgetPack: () => undefined },
    metrics: noMetrics,
    database: world.database,
    triggers: world.triggers,
    actions,
    rules: world.rules,
    aliases: createAliases({
      database: world.database,
      bus: world.bus,
      log: listeningLog(),
      actions,
      executions: world.executions,
      templateThread: createTemplateThread(),
      settings: { systemUser: 'svc', maxPageSize: 100 },
    }),
    policies: createPolicies({
      database: world.database,
      bus: world.bus,
      log: listeningLog(),
      actions,
      executions: world.executions,
      settings: { systemUser: 'svc', maxPageSize: 100 },
    }),
    sensors: createSensorRecords(world.database, listeningLog()),
    encryption: await loadEncryption({ enabled: true, keyPath: '', ownKeyPath: join(folder, 'keys.json') }),
    log: listeningLog(),
    templates: () => ({ variables: {} }),
    startExecution: () => Promise.reject(new Error('nothing is installed here')),
    virtualenvs: {
      ensure: () => Promise.reject(new Error('nothing is installed here')),
      recreate: () => Promise.reject(new Error('nothing is installed here')),
      remove: () => Promise.resolve(),
      examine: () => Promise.resolve(undefined),
    },
    runnerTypes: [shell, { ...shell, name: 'noop', runner_parameters: {} }],
    get: () => Promise.reject(new Error('no index is configured')),
    settings: {
      basePaths: [join(folder, 'packs')],
      configsPath: join(folder, 'configs'),
      overridesPath: join(folder, 'overrides'),
      cachePath: join(folder, 'cache'),
      versionsPath: join(folder, 'versions'),
      indexUrls: [],
      watch: false,
      maxPageSize: 100,
      maskSecrets: true,
    },
  })
})

afterEach(async () => {
  await world.stop()
  rmSync(folder, { recursive: true })
})

function listeningLog(): Log {
  const ignore = (): void => undefined
  return {
    debug: ignore,
    info: ignore,
    audit: ignore,
    warning: (_, message) => void warnings.push(message),
    error: ignore,
    critical: ignore,
    enabled: () => true,
    child: listeningLog,
    maskUrl: (url) => url,
  }
}

function put(path: string, text: string): void {
  const file = join(folder, 'mine', path)
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, text)
}

describe('the core pack', () => {
  beforeEach(() => packs.start?.())

  test('has the actions of the contract', () => {
    const found = ['local', 'local_sudo', 'noop', 'echo'].map((name) => actions.find(`core.${name}`))
    expect(found).toEqual([
      expect.objectContaining({
        ref: 'core.local',
        runner_type: 'local-shell-cmd',
        enabled: true,
        entry_point: '',
        metadata_file: 'actions/local.yaml',
      }),
      expect.objectContaining({ ref: 'core.local_sudo', runner_type: 'local-shell-cmd' }),
      expect.objectContaining({ ref: 'core.noop', runner_type: 'noop', parameters: {} }),
      expect.objectContaining({ ref: 'core.echo', runner_type: 'local-shell-cmd' }),
    ])
  })

  test('with the parameters of the contract', () => {
    const merged = (ref: string) => {
      const action = actions.find(ref)
      return action === undefined ? undefined : actions.parametersOf(action)
    }
    expect(merged('core.local')).toMatchObject({
      cmd: { type: 'string', required: true },
      sudo: { default: false, immutable: true },
    })
    expect(merged('core.local_sudo')).toMatchObject({
      cmd: { required: true },
      sudo: { default: true, immutable: true },
    })
    expect(merged('core.echo')).toMatchObject({
      message: { type: 'string', required: true },
      cmd: { default: 'cat', immutable: true },
      kwarg_op: { immutable: true },
      sudo: { immutable: true },
      sudo_password: { immutable: true, secret: true },
    })
  })

  test('starting again changes nothing', async () => {
    const before = actions.find('core.local')
    await packs.start?.()
    expect(actions.find('core.local')).toEqual(before)
    expect(warnings).toEqual([])
  })
})

describe('registering a folder', () => {
  beforeEach(async () => {
    await packs.start?.()
    put('pack.yaml', 'name: mine\ndescription: d\nversion: 1.0.0\nauthor: a\n')
    put('actions/good.yaml', 'name: good\nrunner_type: noop\nentry_point: good.sh\n')
    put('actions/good.sh', 'echo good\n')
  })

  test('problems are told with file, line and key', async () => {
    put(
      'actions/bad.yaml',
      'name: bad\nrunner_type: local-shell-cmd\nparameters:\n  cmd:\n    type: integer\n  x:\n    type: string\n    order: 1\n',
    )
    put('actions/lost.yaml', 'name: lost\nrunner_type: nothing\n')
    put('actions/broken.yaml', 'name: [')
    const registration = await packs.register(join(folder, 'mine'))
    expect(registration).toMatchObject({ ref: 'mine', registered: { actions: 1 }, removed: { actions: 0 } })
    expect(warnings).toEqual([
      expect.stringMatching(/^actions\/broken\.yaml:1: /),
      `actions/bad.yaml:8 (parameters.x.order): parameters.x: Additional properties are not allowed ('order' was unexpected)`,
      'actions/lost.yaml:2 (runner_type): RunnerType nothing is not found',
    ])
    expect(actions.find('mine.good')).toMatchObject({ metadata_file: 'actions/good.yaml' })
    expect(actions.folderOf('mine')).toBe(join(folder, 'mine'))
  })

  test('an action whose file is gone loses its record', async () => {
    put('actions/other.yaml', 'name: other\nrunner_type: noop\n')
    await packs.register(join(folder, 'mine'))
    rmSync(join(folder, 'mine/actions/other.yaml'))
    put('actions/good.yaml', 'name: [')
    expect(await packs.register(join(folder, 'mine'))).toMatchObject({
      registered: { actions: 0 },
      removed: { actions: 1 },
    })
    expect(actions.find('mine.other')).toBeUndefined()
    expect(actions.find('mine.good')).toBeDefined()
  })

  test('a folder that cannot be read takes no record away', async () => {
    await packs.register(join(folder, 'mine'))
    const before = actions.find('mine.good')
    rmSync(join(folder, 'mine/actions'), { recursive: true })
    symlinkSync('actions', join(folder, 'mine/actions'))
    expect(await packs.register(join(folder, 'mine'))).toMatchObject({
      removed: { actions: 0 },
      problems: [{ file: 'actions', message: 'the folder cannot be read: the path has too many symbolic links' }],
    })
    expect(before).toBeDefined()
    expect(actions.find('mine.good')).toEqual(before)
  })

  test('without a manifest nothing is registered', async () => {
    rmSync(join(folder, 'mine/pack.yaml'))
    expect(await packs.register(join(folder, 'mine'))).toMatchObject({
      ref: undefined,
      registered: { triggers: 0, actions: 0, rules: 0 },
    })
    expect(actions.find('mine.good')).toBeUndefined()
  })
})

describe('trigger types and rules', () => {
  const rule = (more = ''): string =>
    `name: react\nenabled: true\ntrigger:\n  type: mine.event\naction:\n  ref: mine.good\n${more}`
  const register = async () => {
    const registration = await packs.register(join(folder, 'mine'))
    return { ...registration, problems: registration.problems.map(describeProblem) }
  }
  const rules = async () =>
    (await world.call<RuleRecord[]>('GET', '/v1/rules?pack=mine')).body.map(({ ref, enabled, metadata_file }) => ({
      ref,
      enabled,
      metadata_file,
    }))

  beforeEach(async () => {
    await packs.start?.()
    put('pack.yaml', 'name: mine\ndescription: d\nversion: 1.0.0\nauthor: a\n')
    put('actions/good.yaml', 'name: good\nrunner_type: noop\n')
    put('triggers/event.yaml', 'name: event\npayload_schema:\n  type: object\n')
    put('rules/react.yaml', rule())
  })

  test('are registered, so that an event runs what the rule says', async () => {
    put('rules/scripted.yaml', 'name: other\nenabled: true\ntrigger:\n  type: mine.event\naction:\n  ref: test.do\n')
    expect(await register()).toEqual({
      ref: 'mine',
      registered: { triggers: 1, sensors: 0, actions: 1, rules: 2, aliases: 0, policies: 0, configs: 0 },
      overridden: { actions: 0, sensors: 0, rules: 0, aliases: 0 },
      removed: { triggers: 0, sensors: 0, actions: 0, rules: 0, aliases: 0, policies: 0, configs: 0 },
      problems: [],
      warnings: [],
    })
    expect(world.triggers.findType('mine.event')).toMatchObject({ metadata_file: 'triggers/event.yaml' })
    expect(await rules()).toEqual([
      { ref: 'mine.other', enabled: true, metadata_file: 'rules/scripted.yaml' },
      { ref: 'mine.react', enabled: true, metadata_file: 'rules/react.yaml' },
    ])
    const enforcements = await world.fire({}, 'mine.event')
    expect(enforcements.map(({ rule: { ref } }) => ref).sort()).toEqual(['mine.other', 'mine.react'])
  })

  test('again change what has changed; a rule is enabled as its file says', async () => {
    await register()
    const [before] = (await world.call<RuleRecord[]>('GET', '/v1/rules?pack=mine')).body
    await world.call('PUT', '/v1/rules/mine.react', { ...before, enabled: false })
    expect(await rules()).toMatchObject([{ enabled: false }])
    put('triggers/event.yaml', 'name: event\ndescription: changed\n')
    expect(await register()).toMatchObject({ registered: { triggers: 1, rules: 1 }, problems: [] })
    expect(await rules()).toMatchObject([{ enabled: true }])
    expect(world.triggers.findType('mine.event')).toMatchObject({ description: 'changed' })
    expect((await world.call('GET', '/v1/rules/mine.react')).body).toMatchObject({ id: before?.id })
  })

  test('whose files are gone lose their records, both at once', async () => {
    await register()
    rmSync(join(folder, 'mine/rules/react.yaml'))
    rmSync(join(folder, 'mine/triggers/event.yaml'))
    expect(await register()).toMatchObject({ removed: { triggers: 1, rules: 1 }, problems: [] })
    expect(await rules()).toEqual([])
    expect(world.triggers.findType('mine.event')).toBeUndefined()
  })

  test('a type that somebody else needs stays, and the reason is told', async () => {
    await register()
    await world.make('mine', { trigger: { type: 'mine.event' } })
    rmSync(join(folder, 'mine/rules/react.yaml'))
    rmSync(join(folder, 'mine/triggers/event.yaml'))
    expect(await register()).toMatchObject({
      removed: { triggers: 0, rules: 1 },
      problems: [expect.stringMatching(/^triggers\/event\.yaml.*is used by a rule/)],
    })
    expect(world.triggers.findType('mine.event')).toBeDefined()
  })

  test('problems are told with file, line and key, and cost no more than their file', async () => {
    put('triggers/bad.yaml', 'name: bad\npayload_schema:\n  type: nothing\n')
    put('triggers/core.yaml', 'name: other\npack: core\n')
    put('rules/unknown.yaml', rule().replace('mine.event', 'mine.nothing').replace('react', 'unknown'))
    put(
      'rules/criteria.yaml',
      rule('criteria:\n  trigger.a:\n    type: like\n    pattern: x\n').replace('react', 'criteria'),
    )
    put('rules/key.yaml', rule('when: now\n').replace('react', 'key'))
    put('rules/broken.yaml', 'name: [')
    const { registered, problems } = await register()
    expect(registered).toMatchObject({ triggers: 2, actions: 1, rules: 1 })
    expect(problems).toEqual([
      expect.stringMatching(/^rules\/broken\.yaml:\d: /),
      expect.stringMatching(/^triggers\/core\.yaml:2 \(pack\): /),
      expect.stringMatching(
        /^rules\/key\.yaml:\d+ \(when\): Additional properties are not allowed \('when' was unexpected\)/,
      ),
      expect.stringMatching(/^rules\/criteria\.yaml:\d+ \(criteria.*\): .*like/),
      expect.stringMatching(/^rules\/unknown\.yaml:3 \(trigger\): .*mine\.nothing/),
    ])
    expect(await rules()).toEqual([{ ref: 'mine.react', enabled: true, metadata_file: 'rules/react.yaml' }])
  })

  test('a rule on a timer makes the timer', async () => {
    put(
      'rules/nightly.yaml',
      'name: nightly\nenabled: true\ntrigger:\n  type: core.svc.CronTimer\n  parameters:\n    hour: 3\naction:\n  ref: mine.good\n',
    )
    put(
      'rules/wrong.yaml',
      'name: wrong\ntrigger:\n  type: core.svc.CronTimer\n  parameters:\n    hour: 3-30\naction:\n  ref: mine.good\n',
    )
    expect(await register()).toMatchObject({
      registered: { rules: 2 },
      problems: [
        'rules/wrong.yaml:2 (trigger): Parameters of trigger type "core.svc.CronTimer": hour: "3-30" is outside of the range of the field, 0 to 23',
      ],
    })
    expect(world.triggers.ofType('core.svc.CronTimer')).toMatchObject([{ parameters: { hour: 3 } }])
  })
})

describe('taking a pack away', () => {
  beforeEach(async () => {
    await packs.start?.()
    put('pack.yaml', 'name: mine\ndescription: d\nversion: 1.0.0\nauthor: a\n')
    put('actions/good.yaml', 'name: good\nrunner_type: noop\n')
    put('triggers/event.yaml', 'name: event\n')
    put('rules/react.yaml', 'name: react\ntrigger:\n  type: mine.event\naction:\n  ref: mine.good\n')
    put('aliases/do.yaml', 'name: do\naction_ref: mine.good\nformats: [do it]\n')
    put(
      'policies/few.yaml',
      'name: few\nresource_ref: mine.good\npolicy_type: action.concurrency\nparameters:\n  threshold: 1\n',
    )
    put('config.schema.yaml', 'a:\n  default: 1\n')
    await packs.register(join(folder, 'mine'))
  })

  const rows = (): number =>
    (['actions', 'rules', 'trigger_types', 'action_aliases', 'policies'] as const)
      .map((table) =>
        world.database.all(world.database.build.selectFrom(table).select('id').where('ref', 'like', 'mine.%')),
      )
      .flat().length

  test('takes away all that it has brought', async () => {
    expect([rows(), packs.find('mine')?.ref, packs.resolve('mine', { user: 'svc' }).values]).toEqual([
      5,
      'mine',
      { a: 1 },
    ])
    expect(await packs.unregister('mine')).toEqual([])
    expect([rows(), packs.find('mine'), packs.resolve('mine', { user: 'svc' }).values]).toEqual([0, undefined, {}])
    expect(await packs.unregister('mine')).toEqual([])
  })

  test('what others need stays, and is told', async () => {
    await world.make('mine', { trigger: { type: 'mine.event' } })
    expect((await packs.unregister('mine')).map(describeProblem)).toEqual([
      expect.stringMatching(/^triggers\/event\.yaml \(name\): .*is used by a rule/),
    ])
    expect(rows()).toBe(1)
    expect(packs.find('mine')).toBeUndefined()
  })

  test('it can come again', async () => {
    await packs.unregister('mine')
    expect((await packs.register(join(folder, 'mine'))).problems).toEqual([])
    expect(rows()).toBe(5)
  })
})
