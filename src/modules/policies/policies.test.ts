import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createTemplateThread } from '../../core/rendering/index.ts'
import { openDatabase } from '../../../tests/helpers/database.ts'
import { makeExecution } from '../../../tests/helpers/execution.ts'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { TextSink } from '../../../tests/helpers/text-sink.ts'
import type { Database, Unit } from '../../db/database.ts'
import { actionDisabled } from '../../core/errors.ts'
import { createLog, type Log } from '../../lib/log/log.ts'
import type { PackDefinitions, Registration } from '../../core/pack-content.ts'
import { now } from '../../core/time.ts'
import { createActions, type Actions } from '../actions/index.ts'
import type { Execution } from '../executions/types.ts'
import { createApplying, type Applying } from './apply.ts'
import { createPolicyService, type PolicyService } from './service.ts'
import { createPolicyStore, type PolicyStore } from './store.ts'

let folder: TemporaryFolder
let database: Database
let store: PolicyStore
let actions: Actions
let service: PolicyService
let logged: TextSink
let log: Log
let written: Unit[]
const templateThread = createTemplateThread()
afterAll(() => templateThread.stop())

beforeEach(async () => {
  folder = makeFolder()
  const { database: real } = await openDatabase(folder.path)
  written = []
  database = {
    ...real,
    write(unit) {
      written.push(unit)
      return real.write(unit)
    },
  }
  logged = new TextSink()
  log = createLog({ level: 'INFO', format: 'text', stream: logged })
  store = createPolicyStore(database)
  actions = createActions({
    database,
    log,
    templateThread,
    planEvent: () => undefined,
    maxPageSize: 100,
  })
  service = createPolicyService({ database, store, actions, log, systemUser: 'svc' })
  await actions.registerRunnerTypes([
    {
      name: 'noop',
      description: '',
      enabled: true,
      runner_package: 'noop',
      runner_module: 'noop',
      runner_parameters: { cwd: { type: 'string' } },
    },
  ])
  await actions.registerActions(
    content('actions', { 'do.yaml': { name: 'do', runner_type: 'noop', parameters: { host: { type: 'string' } } } }),
  )
})

afterEach(async () => {
  await database.close()
  folder.remove()
})

/** @param missing names of files whose text is broken */
function content(kind: string, files: Record<string, unknown>, broken: string[] = []): PackDefinitions {
  return {
    pack: 'mine',
    definitions: Object.entries(files).map(([name, definition]) => ({ metadataFile: `${kind}/${name}`, definition })),
    metadataFiles: new Set([...Object.keys(files), ...broken].map((name) => `${kind}/${name}`)),
  }
}

describe('registering the policies of a pack', () => {
  const limit = {
    name: 'limit',
    resource_ref: 'mine.do',
    policy_type: 'action.concurrency',
    parameters: { threshold: 1 },
  }
  const register = (files: Record<string, unknown>, broken?: string[]): Promise<Registration> =>
    service.register(content('policies', files, broken))
  const facts = (): unknown[] => written.flatMap((unit) => unit.facts).map(({ payload }) => payload)

  test('stores them once, keeps their ids when they change, and tells whom it concerns', async () => {
    written = []
    expect(await register({ 'limit.yaml': limit })).toEqual({ registered: 1, removed: 0, problems: [] })
    const before = store.findByRef('mine.limit')
    expect(before).toMatchObject({
      metadata_file: 'policies/limit.yaml',
      enabled: true,
      parameters: { threshold: 1, action: 'delay' },
    })
    expect(facts()).toMatchObject([{ ref: 'mine.limit', change: 'created', action_refs: ['mine.do'] }])
    written = []
    expect(await register({ 'limit.yaml': limit })).toMatchObject({ registered: 1 })
    expect(written).toEqual([])

    await register({ 'limit.yaml': { ...limit, resource_ref: 'mine.other', enabled: false } })
    expect(store.findByRef('mine.limit')).toMatchObject({ id: before?.id, enabled: false, resource_ref: 'mine.other' })
    expect(facts()).toMatchObject([{ change: 'updated', action_refs: ['mine.do', 'mine.other'] }])
  })

  test('takes away what has lost its file, and keeps what stands in a broken one', async () => {
    await register({ 'limit.yaml': limit, 'other.yaml': { ...limit, name: 'other' } })
    expect(await register({}, ['limit.yaml'])).toEqual({ registered: 0, removed: 1, problems: [] })
    expect(store.ofPack('mine').map(({ ref }) => ref)).toEqual(['mine.limit'])
    expect(await register({ 'limit.yaml': { ...limit, name: 'renamed' } })).toMatchObject({ registered: 1, removed: 1 })
    expect(store.ofPack('mine').map(({ ref }) => ref)).toEqual(['mine.renamed'])
  })

  test('says where the problem is, and registers the others', async () => {
    const attr = { ...limit, policy_type: 'action.concurrency.attr' }
    const { registered, problems } = await register({
      'a.yaml': { ...limit, name: 'a', surplus: 1 },
      'b.yaml': { ...limit, name: 'b', policy_type: 'action.none' },
      'c.yaml': { ...limit, name: 'c', parameters: { threshold: 'x' } },
      'd.yaml': { ...attr, name: 'd', parameters: { threshold: 1, attributes: ['cwd', 'hots'] } },
      'e.yaml': { ...attr, name: 'e', parameters: { threshold: 1, attributes: ['cwd', 'host'] } },
      'f.yaml': { ...limit, name: 'f', pack: 'theirs' },
      'g.yaml': { ...limit, name: 'e' },
    })
    expect(registered).toBe(2)
    expect(problems.map(({ metadataFile, path }) => `${metadataFile} ${path.join('.')}`)).toEqual([
      'policies/a.yaml surplus',
      'policies/b.yaml policy_type',
      'policies/c.yaml parameters.threshold',
      'policies/d.yaml parameters.attributes.1',
      'policies/f.yaml pack',
      'policies/g.yaml name',
    ])
    // The action may get the parameter later.
    expect(problems[3]).toMatchObject({
      message: expect.stringMatching(/no parameter "hots".*; it counts as missing in every execution$/),
      isWarning: true,
    })
  })
})

describe('a policy that cannot be applied', () => {
  const open = (): Record<string, unknown> => ({})
  let applying: Applying
  let planRetry: () => { execution: Execution; unit: Unit }

  beforeEach(async () => {
    applying = createApplying({ store, executions: { planRetry: () => planRetry() }, log })
    await service.register(
      content('policies', {
        'a.yaml': {
          name: 'a',
          resource_ref: 'mine.do',
          policy_type: 'action.concurrency.attr',
          parameters: { threshold: 1, attributes: ['host'] },
        },
        'b.yaml': {
          name: 'b',
          resource_ref: 'mine.do',
          policy_type: 'action.concurrency',
          parameters: { threshold: 2, action: 'cancel' },
        },
        'c.yaml': {
          name: 'c',
          resource_ref: 'mine.do',
          policy_type: 'action.retry',
          parameters: { retry_on: 'failure', delay: 0.5 },
        },
      }),
    )
  })

  test('a limit by parameters that names none counts all executions', async () => {
    const parameters = { threshold: 1 }
    const all = { name: 'all', resource_ref: 'mine.do', policy_type: 'action.concurrency.attr', parameters }
    await service.register(content('policies', { 'all.yaml': all }))
    const keys = ['one', 'two'].map((host) => {
      const [first] = applying.limitsOf(makeExecution({ action_ref: 'mine.do' }), () => ({ host }))
      return first?.key
    })
    expect(keys).toEqual([expect.any(String), keys[0]])
  })

  test('is logged, and the others still count', () => {
    const closed = (): never => {
      throw new Error('the key is missing')
    }
    expect(applying.limitsOf(makeExecution({ action_ref: 'mine.do' }), closed)).toMatchObject([
      { policy: 'mine.b', threshold: 2, beyond: 'cancel' },
    ])
    expect(logged.text).toContain('mine.a')
    expect(logged.text).toContain('the key is missing')
  })

  test('does not count when it cannot even be read', () => {
    const unreadable = createApplying({
      store: {
        enabledOf() {
          throw new Error('disk I/O error')
        },
      },
      executions: { planRetry: () => planRetry() },
      log,
    })
    expect(unreadable.limitsOf(makeExecution(), open)).toEqual([])
    expect(unreadable.planRetry(failed())).toBeUndefined()
    expect(logged.text).toContain('disk I/O error')
  })

  function failed(more: Partial<Execution> = {}): Execution {
    const log = (['requested', 'scheduled', 'running', 'failed'] as const).map((status) => ({
      status,
      timestamp: now(),
    }))
    return makeExecution({ action_ref: 'mine.do', status: 'failed', log, ...more })
  }

  test('ends the retries with a line when the action has been switched off', () => {
    planRetry = () => {
      throw actionDisabled('mine.do')
    }
    expect(applying.planRetry(failed())).toBeUndefined()
    expect(logged.text).toMatch(/Could not retry an execution.*"mine\.do" is disabled/)
  })

  test('or has failed in a way that nobody has thought of, and the end of the execution is recorded all the same', () => {
    planRetry = () => {
      throw new TypeError('what was that')
    }
    expect(applying.planRetry(failed())).toBeUndefined()
    expect(logged.text).toContain('what was that')
  })

  test.each<[string, Partial<Execution>, boolean]>([
    ['a failure', {}, true],
    ['a time-out', { status: 'timeout' }, false],
    ['a success', { status: 'succeeded' }, false],
    ['a cancellation', { status: 'canceled' }, false],
    ['what was abandoned', { status: 'abandoned' }, false],
    ['a child', { parent: '6000000000000000000000aa' }, false],
    ['a part of something', { context: { parent: {} } }, false],
    ['what was never tried', { log: [{ status: 'requested', timestamp: '' }] }, false],
    ['the first retry', { context: { policies: { retry: { retry_count: 1 } } } }, true],
    ['the last retry', { context: { policies: { retry: { retry_count: 2 } } } }, false],
  ])('is not the same as one that does not apply: %s', (_, more, isRetried) => {
    const unit: Unit = { steps: [], facts: [] }
    planRetry = () => ({ execution: makeExecution(), unit })
    expect(applying.planRetry(failed(more))).toBe(isRetried ? unit : undefined)
  })
})
