import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { startTriggers, type TriggersWorld } from '../../../tests/helpers/triggers.ts'
import { Conflict } from '../../db/database.ts'
import { loadEncryption } from '../../core/encryption.ts'
import type { AppError } from '../../core/errors.ts'
import type { Triggers } from './index.ts'
import type { TriggerRecord } from './types.ts'

const MASK = '********'

let folder: TemporaryFolder
let world: TriggersWorld
let triggers: Triggers

beforeEach(async () => {
  folder = makeFolder()
  world = await startTriggers(folder.path)
  triggers = world.triggers
})

afterEach(async () => {
  await world.stop()
  folder.remove()
})

const rowsOf = (table: 'trigger_types' | 'triggers' | 'trigger_instances') =>
  world.database.all(world.database.build.selectFrom(table).selectAll().orderBy('id'))

async function use(
  type: string,
  parameters: Record<string, unknown>,
  stored?: Record<string, unknown>,
): Promise<TriggerRecord> {
  const { trigger, unit } = triggers.planUse(type, parameters, stored)
  await world.database.write(unit)
  return trigger
}

const release = (id: string) => world.database.write(triggers.planRelease(id))
const actionTrigger = () => found(triggers.find('core.svc.generic.actiontrigger'))

function found<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('it is not there')
  return value
}

function problemOf(work: () => unknown): Pick<AppError, 'code' | 'message'> {
  try {
    work()
  } catch (error) {
    return error as AppError // the assertion that follows finds out
  }
  throw new Error('nothing was thrown')
}

describe('built-in types', () => {
  test('exist with their triggers', () => {
    for (const name of [
      'svc.generic.actiontrigger',
      'svc.generic.notifytrigger',
      'svc.generic.inquiry',
      'svc.action.file_written',
      'svc.sensor.process_spawn',
      'svc.sensor.process_exit',
      'svc.key_value_pair.create',
      'svc.key_value_pair.update',
      'svc.key_value_pair.value_change',
      'svc.key_value_pair.delete',
    ]) {
      const type = found(triggers.findType(`core.${name}`))
      expect(type).toMatchObject({ uid: `trigger_type:core:${name}`, name, pack: 'core', parameters_schema: {} })
      const trigger = found(triggers.find(`core.${name}`))
      expect(trigger).toMatchObject({
        ref: `core.${name}`,
        type: `core.${name}`,
        name,
        pack: 'core',
        parameters: {},
        uid: `trigger:core:${name}:${createHash('md5').update('{}').digest('hex')}`,
      })
      expect(triggers.find(trigger.id)).toBe(trigger)
      expect(triggers.findType(type.id)).toBe(type)
    }
    for (const name of ['svc.webhook', 'svc.IntervalTimer', 'svc.DateTimer', 'svc.CronTimer']) {
      expect(triggers.findType(`core.${name}`)?.parameters_schema).toHaveProperty('properties')
      expect(triggers.find(`core.${name}`)).toBeUndefined()
    }
  })

  test('are updated and keep their ids', async () => {
    const before = [rowsOf('trigger_types'), rowsOf('triggers')]
    await world.restart()
    expect([rowsOf('trigger_types'), rowsOf('triggers')]).toEqual(before)
    expect(world.takeFacts()).toEqual([])

    const type = found(triggers.findType('core.svc.generic.inquiry'))
    const old = JSON.stringify({ ...type, description: 'old', payload_schema: { type: 'array' } })
    await world.database.write({
      steps: [
        { query: world.database.build.updateTable('trigger_types').set({ record: old }).where('id', '=', type.id) },
      ],
      facts: [],
    })
    const again = await world.restart()
    expect(again.findType('core.svc.generic.inquiry')).toEqual(type)
    expect([rowsOf('trigger_types'), rowsOf('triggers')]).toEqual(before)
  })
})

describe('triggers of rules', () => {
  test('with equal parameters share one trigger, which is deleted with the last rule', async () => {
    const first = await use('core.svc.webhook', { url: 'sample' })
    expect(world.takeFacts()).toEqual([
      { name: 'trigger.created', payload: { id: first.id, type: 'core.svc.webhook' } },
    ])
    expect(first).toMatchObject({ pack: 'core', type: 'core.svc.webhook', parameters: { url: 'sample' } })
    expect(first.name).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(first.ref).toBe(`core.${first.name}`)
    const md5 = createHash('md5').update('{"url":"sample"}').digest('hex')
    expect(first.uid).toBe(`trigger:core:${first.name}:${md5}`)

    const second = await use('core.svc.webhook', { url: 'sample' })
    const other = await use('core.svc.webhook', { url: '/sample' })
    expect(second.id).toBe(first.id)
    expect(other.id).not.toBe(first.id)
    expect(triggers.ofType('core.svc.webhook').map(({ id }) => id)).toEqual([first.id, other.id])

    await release(first.id)
    expect(triggers.find(first.id)).toEqual(first)
    world.takeFacts()
    await release(first.id)
    expect(triggers.find(first.id)).toBeUndefined()
    expect(triggers.find(first.ref)).toBeUndefined()
    expect(world.takeFacts()).toEqual([
      { name: 'trigger.deleted', payload: { id: first.id, type: 'core.svc.webhook' } },
    ])
    expect(() => triggers.planRelease(first.id)).toThrow(Conflict)
    expect((await use('core.svc.webhook', { url: 'sample' })).id).not.toBe(first.id)
  })

  test('are equal for any order of their parameters', async () => {
    const one = await use('core.svc.IntervalTimer', { unit: 'seconds', delta: 5 })
    expect((await use('core.svc.IntervalTimer', { delta: 5, unit: 'seconds' })).id).toBe(one.id)
    expect((await use('core.svc.IntervalTimer', { delta: 6, unit: 'seconds' })).id).not.toBe(one.id)
  })

  test('of a type without parameters use its single trigger, which stays', async () => {
    const { id } = await use('core.svc.generic.actiontrigger', {})
    expect(id).toBe(actionTrigger().id)
    await use('core.svc.generic.actiontrigger', {})
    await release(id)
    await release(id)
    expect(actionTrigger().id).toBe(id)
    await expect(release(id)).rejects.toThrow(Conflict)
  })

  test('created concurrently: one commit conflicts, then shares the trigger', async () => {
    const plans = [1, 2].map(() => triggers.planUse('core.svc.webhook', { url: 'x' }))
    const done = await Promise.allSettled(plans.map(({ unit }) => world.database.write(unit)))
    expect(done.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const { trigger } = triggers.planUse('core.svc.webhook', { url: 'x' })
    expect(triggers.ofType('core.svc.webhook')).toEqual([trigger])
  })

  test('the last release and a new use at the same time keep the trigger', async () => {
    const { id } = await use('core.svc.webhook', { url: 'x' })
    const leaving = triggers.planRelease(id)
    await world.database.write(triggers.planUse('core.svc.webhook', { url: 'x' }).unit)
    await expect(world.database.write(leaving)).rejects.toThrow(Conflict)
    await release(id)
    expect(triggers.find(id)).toBeDefined()
    const coming = triggers.planUse('core.svc.webhook', { url: 'x' }).unit
    await release(id)
    await expect(world.database.write(coming)).rejects.toThrow(Conflict)
  })

  test.each([
    ['core.nothing', {}, 'TRIGGER_TYPE_UNKNOWN', 'core.nothing'],
    ['core.svc.webhook', {}, 'PARAMETERS_INVALID', "'url' is a required property"],
    ['core.svc.webhook', { url: 5 }, 'PARAMETERS_INVALID', "url: 5 is not of type 'string'"],
    ['core.svc.webhook', { url: 'svc' }, 'PARAMETERS_INVALID', 'svc'],
    [
      'core.svc.webhook',
      { url: 'x', y: 1 },
      'PARAMETERS_INVALID',
      "Additional properties are not allowed ('y' was unexpected)",
    ],
    ['core.svc.CronTimer', { hour: '99' }, 'PARAMETERS_INVALID', '99'],
    [
      'core.svc.generic.actiontrigger',
      { x: 1 },
      'PARAMETERS_INVALID',
      "Additional properties are not allowed ('x' was unexpected)",
    ],
  ])('%s with %j is rejected: %s', (type, parameters, code, text) => {
    expect(problemOf(() => triggers.planUse(type, parameters))).toMatchObject({
      code,
      message: expect.stringContaining(text) as string,
    })
  })

  test('without validation only webhooks and timers are checked', async () => {
    await triggers.registerTypes({
      pack: 'mine',
      definitions: [
        {
          metadataFile: 'triggers/e.yaml',
          definition: { name: 'e', parameters_schema: { type: 'object', properties: { n: { type: 'integer' } } } },
        },
      ],
      metadataFiles: new Set(['triggers/e.yaml']),
    })
    expect(problemOf(() => triggers.planUse('mine.e', { n: 'x' })).message).toBe(
      `Parameters of trigger type "mine.e": n: 'x' is not of type 'integer', 'null'`,
    )
    const settings = {
      validatePayload: false,
      validateParameters: false,
      emitWhen: [],
      queueLimit: 1,
      maxPageSize: 1,
      webUrl: () => '',
    }
    const lenient = await world.restart({ settings })
    expect(lenient.planUse('mine.e', { n: 'x' }).trigger.parameters).toEqual({ n: 'x' })
    expect(problemOf(() => lenient.planUse('core.svc.webhook', {})).code).toBe('PARAMETERS_INVALID')
    expect(problemOf(() => lenient.planUse('core.svc.CronTimer', { hour: '99' })).code).toBe('PARAMETERS_INVALID')
  })
})

describe('secrets in parameters', () => {
  const secret = 'the secret of the sender 4711'
  const signed = (value: unknown) => ({ url: 'signed', signature: { scheme: 'github', secret: value } })

  test('are encrypted in the row, masked for clients and plain for the module', async () => {
    const trigger = await use('core.svc.webhook', signed(secret))
    expect(trigger.parameters).toEqual(signed(secret))
    expect(triggers.find(trigger.id)?.parameters).toEqual(signed(secret))
    expect(triggers.record(trigger).parameters).toEqual(signed(MASK))
    const [row] = rowsOf('triggers').filter(({ id }) => id === trigger.id)
    expect(JSON.stringify(row)).not.toContain(secret)
    expect(readFileSync(join(folder.path, 'svc.db-wal'), 'latin1')).not.toContain(secret)
    // Nor can it be tried out against a digest.
    const text = JSON.stringify(signed(secret))
    for (const algorithm of ['md5', 'sha1', 'sha256']) {
      expect(JSON.stringify(row)).not.toContain(createHash(algorithm).update(text).digest('hex'))
    }
    const again = await world.restart()
    expect(again.find(trigger.id)?.parameters).toEqual(signed(secret))
  })

  test('with other values make different triggers', async () => {
    const one = await use('core.svc.webhook', signed(secret))
    expect((await use('core.svc.webhook', signed('another secret 0815'))).id).not.toBe(one.id)
    expect((await use('core.svc.webhook', signed(secret))).id).toBe(one.id)
  })

  test('a mask keeps the stored value and is rejected without one', async () => {
    const one = await use('core.svc.webhook', signed(['first secret', 'second secret']))
    expect((await use('core.svc.webhook', signed(MASK), one.parameters)).id).toBe(one.id)
    const moved = await use('core.svc.webhook', { ...signed(MASK), url: 'elsewhere' }, one.parameters)
    expect(moved.parameters).toEqual({ ...signed(['first secret', 'second secret']), url: 'elsewhere' })
    for (const stored of [undefined, {}, { url: 'signed' }, { signature: {} }]) {
      const problem = problemOf(() => triggers.planUse('core.svc.webhook', signed(MASK), stored))
      expect(problem).toMatchObject({ code: 'PARAMETERS_INVALID', message: expect.stringContaining(MASK) as string })
    }
  })

  test('that cannot be decrypted make the trigger inactive instead of unprotected', async () => {
    const { id, ref } = await use('core.svc.webhook', signed(secret))
    const open = await use('core.svc.webhook', { url: 'open' })
    const encryption = await loadEncryption({ enabled: true, keyPath: '', ownKeyPath: join(folder.path, 'other.json') })
    const blind = await world.restart({ encryption })
    expect(blind.find(id)).toBeUndefined()
    expect(blind.ofType('core.svc.webhook')).toEqual([open])
    expect(world.log()).toContain('trigger.unreadable')
    expect(world.log()).toContain(ref)
    expect(world.log()).not.toContain(secret)
  })
})

describe('payloads', () => {
  test.each([
    ['core.svc.webhook', { headers: {}, body: [] }, undefined],
    ['core.svc.webhook', { headers: {}, body: 5 }, "body: 5 is not of type 'object', 'array'"],
    ['core.svc.webhook', { headers: {}, body: null }, "body: None is not of type 'object', 'array'"],
    ['core.svc.webhook', 'x', "'x' is not of type 'object'"],
    ['core.svc.generic.inquiry', { id: 'x', route: 'y', more: 1 }, undefined],
    ['core.svc.generic.inquiry', { id: 5 }, "id: 5 is not of type 'string', 'null'"],
    ['core.nothing', {}, 'Trigger type "core.nothing" does not exist.'],
    ['constructor', {}, 'Trigger type "constructor" does not exist.'],
  ])('of %s: %j → %s', (type, payload, problem) => {
    expect(triggers.problemOfPayload(type, payload)).toBe(problem)
  })

  test('without validation only those of webhooks and timers are checked', async () => {
    const settings = {
      validatePayload: false,
      validateParameters: false,
      emitWhen: [],
      queueLimit: 1,
      maxPageSize: 1,
      webUrl: () => '',
    }
    const lenient = await world.restart({ settings })
    expect(lenient.problemOfPayload('core.svc.generic.inquiry', { id: 5 })).toBeUndefined()
    expect(lenient.problemOfPayload('core.nothing', {})).toBeUndefined()
    expect(lenient.problemOfPayload('core.svc.webhook', 5)).toBe("5 is not of type 'object'")
    expect(lenient.problemOfPayload('core.svc.DateTimer', 5)).toBe("5 is not of type 'object'")
  })
})

describe('dispatching', () => {
  const payload = { a: [1, null, 'ü', { __proto__x: 1 }], 'key "with" quotes': '\u2028' }

  test('without a rule: processed at once, without a fact', async () => {
    const instance = await triggers.dispatch(actionTrigger(), payload)
    expect(world.takeFacts()).toEqual([])
    expect(instance).toMatchObject({
      trigger: 'core.svc.generic.actiontrigger',
      trigger_id: actionTrigger().id,
      trigger_type: 'core.svc.generic.actiontrigger',
      status: 'processed',
      payload,
    })
    expect(triggers.findInstance(instance.id)).toEqual(instance)
    expect(triggers.pending('', 10)).toEqual([])
    expect(triggers.pendingCount()).toBe(0)
    expect(world.traces.tagOf(instance.trace_id)).toBe(`trigger_instance-${instance.id}`)
    expect(triggers.findInstance('nonsense')).toBeUndefined()
  })

  test('with a rule: pending, with a fact', async () => {
    world.awaited.add(actionTrigger().id)
    const first = await triggers.dispatch(actionTrigger(), payload)
    const second = await triggers.dispatch(actionTrigger(), payload)
    const { payload: _, status, occurrence_time: _o, ...queued } = first
    expect(status).toBe('pending')
    expect(world.takeFacts()[0]).toEqual({ name: 'trigger_instance.created', payload: queued })
    expect(triggers.pending('', 10).map(({ id }) => id)).toEqual([first.id, second.id])
    expect(triggers.pending('', 1)).toEqual([queued])
    expect(triggers.pending(first.id, 10).map(({ id }) => id)).toEqual([second.id])
    expect(triggers.pendingCount()).toBe(2)

    await world.database.write(triggers.planProcessed(first.id, 'processed'))
    await world.database.write(triggers.planProcessed(second.id, 'processing_failed'))
    expect(triggers.findInstance(first.id)?.status).toBe('processed')
    expect(triggers.findInstance(second.id)?.status).toBe('processing_failed')
    expect(triggers.pending('', 10)).toEqual([])
    await expect(world.database.write(triggers.planProcessed(first.id, 'processed'))).rejects.toThrow(Conflict)
    const facts = [first, second].map(({ id }) => ({ id, execution_ids: [] }))
    facts.forEach((fact) => world.bus.publish({ name: 'trigger_instance.processed', payload: fact }))
    expect(triggers.pendingCount()).toBe(0)
    expect((await world.restart()).pendingCount()).toBe(0)
  })

  test('joins the given trace', async () => {
    const first = await triggers.dispatch(
      actionTrigger(),
      {},
      { kind: 'request', trace_tag: 'order', default_tag: 'x' },
    )
    const second = await triggers.dispatch(
      actionTrigger(),
      {},
      { kind: 'request', trace_tag: 'order', default_tag: 'y' },
    )
    const third = await triggers.dispatch(actionTrigger(), {}, { kind: 'request', default_tag: 'webhook-x' })
    const fourth = await triggers.dispatch(
      actionTrigger(),
      {},
      { kind: 'inherited', trace_id: third.trace_id, caused_by: { type: 'action_execution', id: 'e' } },
    )
    expect(second.trace_id).toBe(first.trace_id)
    expect(world.traces.tagOf(first.trace_id)).toBe('order')
    expect(world.traces.tagOf(third.trace_id)).toBe('webhook-x')
    expect(fourth.trace_id).toBe(third.trace_id)
    const members = world.database.all(
      world.database.build
        .selectFrom('trace_components')
        .selectAll()
        .where('trace_id', '=', third.trace_id)
        .orderBy(sql`n`),
    )
    expect(members).toMatchObject([
      { kind: 'trigger_instance', object_id: third.id, ref: 'core.svc.generic.actiontrigger', caused_by_type: null },
      { kind: 'trigger_instance', object_id: fourth.id, caused_by_type: 'action_execution', caused_by_id: 'e' },
    ])
  })

  test('concurrent instances with one new tag share a trace', async () => {
    const instances = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        triggers.dispatch(actionTrigger(), { i }, { kind: 'request', trace_tag: 'rush', default_tag: 'x' }),
      ),
    )
    expect(new Set(instances.map(({ trace_id }) => trace_id)).size).toBe(1)
    expect(rowsOf('trigger_instances')).toHaveLength(20)
  })

  test('of a built-in trigger by its name', async () => {
    await world.database.write(triggers.planInternal('core.svc.generic.inquiry', { id: 'i', route: 'r' }))
    const [row] = rowsOf('trigger_instances')
    expect(row).toMatchObject({ trigger: 'core.svc.generic.inquiry', payload: '{"id":"i","route":"r"}' })
    expect(() => triggers.planInternal('core.nothing', {})).toThrow('core.nothing')
  })

  test('a plan writes nothing', () => {
    triggers.planDispatch(actionTrigger(), payload)
    triggers.planUse('core.svc.webhook', { url: 'planned' })
    expect(rowsOf('trigger_instances')).toEqual([])
    expect(triggers.ofType('core.svc.webhook')).toEqual([])
  })
})

describe('types of packs', () => {
  const content = (...definitions: Record<string, unknown>[]) => ({
    pack: 'mine',
    definitions: definitions.map((definition) => ({
      metadataFile: `triggers/${String(definition['file'] ?? definition['name'])}.yaml`,
      definition,
    })),
    metadataFiles: new Set(definitions.map(({ file, name }) => `triggers/${String(file ?? name)}.yaml`)),
  })
  const url = { type: 'object', properties: { url: { type: 'string', required: true } } }

  test('are registered once, updated and deleted with their file', async () => {
    expect(await triggers.registerTypes(content({ name: 'plain' }, { name: 'hook', parameters_schema: url }))).toEqual({
      registered: 2,
      removed: 0,
      problems: [],
    })
    const plain = found(triggers.findType('mine.plain'))
    expect(plain).toMatchObject({ pack: 'mine', metadata_file: 'triggers/plain.yaml', tags: [] })
    expect(triggers.find('mine.plain')).toMatchObject({ type: 'mine.plain', parameters: {} })
    expect(triggers.find('mine.hook')).toBeUndefined()
    world.takeFacts()

    expect((await triggers.registerTypes(content({ name: 'plain', description: 'new' }))).removed).toBe(1)
    expect(triggers.findType(plain.id)).toMatchObject({ ref: 'mine.plain', description: 'new' })
    expect(triggers.find('mine.plain')?.description).toBe('new')
    expect(triggers.findType('mine.hook')).toBeUndefined()
    expect(await triggers.registerTypes(content())).toMatchObject({ removed: 1, problems: [] })
    expect(triggers.find('mine.plain')).toBeUndefined()
    expect(
      world.database.all(world.database.build.selectFrom('trigger_types').select('ref').where('ref', 'like', 'mine.%')),
    ).toEqual([])
  })

  test('an invalid type is reported and the others are registered', async () => {
    const { registered, problems } = await triggers.registerTypes(
      content(
        { name: 'good' },
        { file: 'a', name: 'bad', payload_schema: { type: 'dict' } },
        { file: 'b', name: 'worse', parameters_schema: { $ref: '#' } },
        { file: 'c', name: 'good' },
        { file: 'd', name: 'foreign', pack: 'core' },
        { file: 'e' },
        { file: 'f', name: 'x', parameters_schema: { patternProperties: { '(?=a)': {} } } },
      ),
    )
    expect(registered).toBe(2)
    expect(problems.map(({ metadataFile, path, message }) => [metadataFile, path, message])).toEqual([
      ['triggers/a.yaml', ['payload_schema'], expect.stringMatching(/dict.*; svc does not check this part/)],
      ['triggers/b.yaml', ['parameters_schema'], expect.stringContaining('$ref')],
      ['triggers/d.yaml', ['pack'], expect.stringContaining('"core"')],
      ['triggers/e.yaml', [], "'name' is a required property"],
      ['triggers/f.yaml', ['parameters_schema'], expect.stringContaining('(?=a)')],
    ])
  })

  test('that rules use stay when their file is deleted', async () => {
    await triggers.registerTypes(content({ name: 'plain' }))
    await use('mine.plain', {})
    const { removed, problems } = await triggers.registerTypes(content())
    expect(removed).toBe(0)
    expect(problems).toMatchObject([{ metadataFile: 'triggers/plain.yaml' }])
    expect(problems[0]?.message).toContain('used by a rule')
    expect(triggers.find('mine.plain')).toBeDefined()
  })

  test('cannot have the name of a built-in type', async () => {
    const { registered, problems } = await triggers.registerTypes({
      pack: 'core',
      definitions: [{ metadataFile: 'triggers/w.yaml', definition: { name: 'svc.webhook' } }],
      metadataFiles: new Set(['triggers/w.yaml']),
    })
    expect(registered).toBe(0)
    expect(problems[0]?.message).toContain('core.svc.webhook')
    expect(triggers.findType('core.svc.webhook')?.parameters_schema).toHaveProperty('properties')
  })

  test('a new schema changes which parameters are secret', async () => {
    const schema = (secret: boolean) => ({ type: 'object', properties: { key: { type: 'string', secret } } })
    await triggers.registerTypes(content({ name: 'k', parameters_schema: schema(false) }))
    const trigger = await use('mine.k', { key: 'visible value' })
    expect(JSON.stringify(rowsOf('triggers'))).toContain('visible value')
    await triggers.registerTypes(content({ name: 'k', parameters_schema: schema(true) }))
    expect(JSON.stringify(rowsOf('triggers'))).not.toContain('visible value')
    const found_ = found(triggers.find(trigger.id))
    expect(found_.parameters).toEqual({ key: 'visible value' })
    expect(triggers.record(found_).parameters).toEqual({ key: MASK })
    expect((await use('mine.k', { key: 'visible value' })).id).toBe(trigger.id)

    const { problems } = await triggers.registerTypes(
      content({ name: 'k', parameters_schema: { type: 'object', properties: { key: { type: 'integer' } } } }),
    )
    expect(problems[0]?.message).toContain('are invalid under the new parameters_schema')
    expect(problems[0]?.message).not.toContain('visible value')
    expect((await triggers.registerTypes(content({ name: 'k' }))).problems[0]?.message).toContain('used by 2 rules')
  })
})
