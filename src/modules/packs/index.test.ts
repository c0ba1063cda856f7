import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Database } from '../../db/database.ts'
import { openSqlite } from '../../db/sqlite/open.ts'
import type { Log } from '../../log.ts'
import type { RunnerTypeDefinition } from '../../runners/runner.ts'
import { createActions, type Actions } from '../actions/index.ts'
import { createPacks, type Packs } from './index.ts'

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
let database: Database
let actions: Actions
let packs: Packs
let warnings: string[]

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-packs-'))
  database = await openSqlite({ path: join(folder, 'svc.db'), synchronous: 'normal', announce: () => undefined })
  actions = createActions({ database, maxPageSize: 100 })
  warnings = []
  packs = createPacks({
    actions,
    log: listeningLog(),
    runnerTypes: [shell, { ...shell, name: 'noop', runner_parameters: {} }],
  })
})

afterEach(async () => {
  await database.close()
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
      cmd: { default: 'echo "{{message}}"', immutable: true },
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
  })

  test('problems are told with file, line and key', async () => {
    put(
      'actions/bad.yaml',
      'name: bad\nrunner_type: local-shell-cmd\nparameters:\n  cmd:\n    type: integer\n  x:\n    type: string\n    order: 1\n',
    )
    put('actions/lost.yaml', 'name: lost\nrunner_type: nothing\n')
    put('actions/broken.yaml', 'name: [')
    const registration = await packs.register(join(folder, 'mine'))
    expect(registration).toMatchObject({ ref: 'mine', actions: 1, actionsRemoved: 0 })
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
    expect(await packs.register(join(folder, 'mine'))).toMatchObject({ actions: 0, actionsRemoved: 1 })
    expect(actions.find('mine.other')).toBeUndefined()
    expect(actions.find('mine.good')).toBeDefined()
  })

  test('a folder that cannot be read takes no record away', async () => {
    await packs.register(join(folder, 'mine'))
    const before = actions.find('mine.good')
    rmSync(join(folder, 'mine/actions'), { recursive: true })
    symlinkSync('actions', join(folder, 'mine/actions'))
    expect(await packs.register(join(folder, 'mine'))).toMatchObject({
      actionsRemoved: 0,
      problems: [{ file: 'actions', message: 'the folder cannot be read' }],
    })
    expect(before).toBeDefined()
    expect(actions.find('mine.good')).toEqual(before)
  })

  test('without a manifest nothing is registered', async () => {
    rmSync(join(folder, 'mine/pack.yaml'))
    expect(await packs.register(join(folder, 'mine'))).toMatchObject({ ref: undefined, actions: 0 })
    expect(actions.find('mine.good')).toBeUndefined()
  })
})
