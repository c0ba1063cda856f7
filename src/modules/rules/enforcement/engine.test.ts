import { isDeepStrictEqual } from 'node:util'
import { afterEach, describe, expect, it } from 'vitest'
import { escapes } from '../../../../tests/helpers/escapes.ts'
import { startRules, type RulesOptions, type RulesWorld } from '../../../../tests/helpers/rules.ts'
import { fullOnly, rounds } from '../../../../tests/helpers/tiers.ts'
import { waitFor } from '../../../../tests/helpers/wait.ts'
import type { Database, Unit } from '../../../db/database.ts'
import { storageFailed } from '../../../core/errors.ts'
import type { RuleEnforcement } from '../types.ts'
import type { TemplateReader } from '../../../core/template-reader.ts'

let world: RulesWorld
afterEach(() => world.stop())

async function start(options: RulesOptions = {}): Promise<void> {
  world = await startRules(options)
}

const refs = (enforcements: RuleEnforcement[]): string[] => enforcements.map(({ rule }) => rule.ref)
const only = (enforcements: RuleEnforcement[]): RuleEnforcement => {
  const [one, ...more] = enforcements
  if (one === undefined || more.length > 0) throw new Error(`one enforcement, not ${JSON.stringify(enforcements)}`)
  return one
}
const reasonOf = async (payload: unknown = {}): Promise<string> => {
  const { status, failure_reason: reason = '', execution_id: id } = only(await world.fire(payload))
  expect([status, id]).toEqual(['failed', undefined])
  return reason
}
const executionOf = (enforcement: RuleEnforcement) => {
  const execution = world.executions.find(enforcement.execution_id ?? '')
  if (execution === undefined) throw new Error(`no execution: ${JSON.stringify(enforcement)}`)
  return execution
}
const at = (criteria: string, type: string, pattern: unknown) => ({ [criteria]: { type, pattern } })

describe('which rules fire', () => {
  it('every matching standard rule, but no disabled rule and no rule of another trigger', async () => {
    await start()
    await world.make('a', { criteria: at('trigger.n', 'eq', 1) })
    await world.make('b')
    await world.make('c', { criteria: at('trigger.n', 'eq', 2) })
    await world.make('d', { enabled: false })
    await world.make('e', { trigger: { type: 'test.keyed', parameters: { key: 'x' } } })
    expect(refs(await world.fire({ n: 1 }))).toEqual(['test.a', 'test.b'])
  })

  it('backstop rules only if no standard rule matches; a failed comparison is no match', async () => {
    await start()
    await world.make('last', { type: { ref: 'backstop' } })
    await world.make('final', { type: { ref: 'backstop' }, criteria: at('trigger.n', 'gt', 5) })
    await world.make('first', { criteria: at('trigger.n', 'eq', 1) })
    expect(refs(await world.fire({ n: 1 }))).toEqual(['test.first'])
    expect(refs(await world.fire({ n: 2 }))).toEqual(['test.last'])
    expect(refs(await world.fire({ n: 9 }))).toEqual(['test.last', 'test.final'])
    await world.make('broken', { criteria: at('trigger.n', 'contains', 'x') })
    const enforcements = await world.fire({ n: 9 })
    expect(enforcements.map(({ rule, status }) => [rule.ref, status])).toEqual([
      ['test.broken', 'failed'],
      ['test.last', 'succeeded'],
      ['test.final', 'succeeded'],
    ])
  })

  it('rules created, changed, disabled and deleted between two events take effect at once', async () => {
    await start()
    expect(await world.fire()).toEqual([])
    const rule = await world.make('now')
    expect(await world.fire()).toHaveLength(1)
    await world.call('PUT', `/v1/rules/${rule.id}`, { ...rule, criteria: at('trigger.n', 'eq', 1) })
    expect([await world.fire({ n: 2 }), (await world.fire({ n: 1 })).length]).toEqual([[], 1])
    await world.call('PUT', `/v1/rules/${rule.id}`, { ...rule, enabled: false })
    expect(await world.fire()).toEqual([])
    await world.call('PUT', `/v1/rules/${rule.id}`, {
      ...rule,
      trigger: { type: 'test.keyed', parameters: { key: 'k' } },
    })
    const keyed = world.triggers.ofType('test.keyed')[0]?.ref ?? ''
    expect([await world.fire(), (await world.fire({}, keyed)).length]).toEqual([[], 1])
    await world.call('DELETE', `/v1/rules/${rule.id}`)
    expect(world.triggers.find(keyed)).toBeUndefined()
  })

  it('an instance without enabled rules is stored as processed and not announced', async () => {
    await start()
    await world.make('asleep', { enabled: false })
    let announced = 0
    world.bus.subscribe('trigger_instance.created', () => (announced += 1))
    const id = await world.dispatch()
    expect(world.triggers.findInstance(id)?.status).toBe('processed')
    await world.make('awake')
    await world.fire()
    expect(announced).toBe(1)
  })
})

describe('a rule that matches', () => {
  it('starts an execution as the system user, with context, trace and origin', async () => {
    await start()
    const rule = await world.make('full', {
      description: 'It does.',
      action: { ref: 'test.do', parameters: { text: 'n is {{ trigger.n }}', any: '{{ trigger.list }}' } },
    })
    const id = await world.dispatch({ n: 1, list: [1, { a: 'b' }] })
    const enforcement = only(await world.settled(id))
    const execution = executionOf(enforcement)
    const instance = world.triggers.findInstance(id)
    const trigger = world.triggers.find('test.event')
    expect(enforcement).toEqual({
      id: expect.any(String),
      trigger_instance_id: id,
      execution_id: execution.id,
      rule: { id: rule.id, ref: 'test.full', uid: 'rule:test:full' },
      enforced_at: expect.stringMatching(/^\d{4}-.*Z$/),
      status: 'succeeded',
    })
    expect(execution).toMatchObject({
      action_ref: 'test.do',
      user: 'svc',
      parameters: { text: 'n is 1', any: [1, { a: 'b' }] },
      rule: 'full',
      trigger: 'event',
      trigger_type: 'event',
      trigger_instance: id,
      trace_id: instance?.trace_id,
      origin: {
        rule: {
          id: rule.id,
          uid: 'rule:test:full',
          ref: 'test.full',
          name: 'full',
          pack: 'test',
          description: 'It does.',
        },
        trigger: {
          id: trigger?.id,
          uid: trigger?.uid,
          ref: 'test.event',
          name: 'event',
          pack: 'test',
          type: 'test.event',
        },
        trigger_type: { ref: 'test.event', description: 'Something happens.' },
      },
    })
    expect(execution.context).toEqual({
      trigger_instance: { id, trigger: 'test.event', occurrence_time: instance?.occurrence_time },
      rule: { id: rule.id, ref: 'test.full', name: 'full' },
      trace_context: { id_: instance?.trace_id, trace_tag: `trigger_instance-${id}` },
      user: 'svc',
      pack: 'test',
    })
    const members = world.database.all(
      world.database.build
        .selectFrom('trace_components')
        .selectAll()
        .where('trace_id', '=', execution.trace_id)
        .orderBy('updated_at'),
    )
    expect(
      members.map(({ kind, object_id: object, caused_by_type: type, caused_by_id: cause }) => [
        kind,
        object,
        type,
        cause,
      ]),
    ).toEqual([
      ['trigger_instance', id, null, null],
      ['rule', rule.id, 'trigger_instance', id],
      ['execution', execution.id, 'rule', `${rule.id}:${id}`],
    ])
    await waitFor('the run', () => world.runs.length === 1)
    expect(world.runs[0]?.actionParameters).toMatchObject({ text: 'n is 1' })
  })

  it('equal origins are stored once', async () => {
    await start()
    await world.make('often')
    for (let i = 0; i < 3; i++) await world.fire()
    const rows = world.database.all(world.database.build.selectFrom('executions').select('origin_hash').distinct())
    expect(rows).toEqual([{ origin_hash: expect.any(String) }])
  })

  it('action_context of templates is the context of the execution', async () => {
    await start()
    await world.make('told', {
      action: {
        ref: 'test.do',
        parameters: {
          text: '{{ action_context.rule.ref }} {{ action_context.user }} {{ action_context.pack }}',
          any: '{{ action_context.trigger_instance }}',
        },
      },
    })
    const id = await world.dispatch()
    const { parameters, context } = executionOf(only(await world.settled(id)))
    expect(parameters).toEqual({ text: 'test.told svc test', any: context['trigger_instance'] })
  })

  it('templates read the datastore with the permissions of both the system user and the author of the rule', async () => {
    const readers: TemplateReader[] = []
    await start({
      users: {
        ann: { role: 'admin' },
        key: { role: 'admin', scopes: [{ permission_types: ['rule_create', 'action_execute'] }] },
      },
      templates(reader) {
        readers.push(reader)
        return { variables: { svckv: { system: { a: `of ${reader.author ?? reader.user}` } } } }
      },
    })
    const action = { ref: 'test.do', parameters: { text: '{{ svckv.system.a }}' } }
    await world.make('one', { action }, 'ann')
    await world.make('two', { action }, 'key')
    readers.length = 0
    const texts = (await world.fire()).map((enforcement) => executionOf(enforcement).parameters['text'])
    expect(texts).toEqual(['of ann', 'of key'])
    expect(readers).toContainEqual({ user: 'svc', author: 'ann' })
    expect(readers).toContainEqual({
      user: 'svc',
      author: 'key',
      scopes: [{ permission_types: ['rule_create', 'action_execute'] }],
    })
  })

  it('rendered values are converted to the declared types', async () => {
    await start()
    await world.make('typed', {
      action: {
        ref: 'test.do',
        parameters: { count: '{{ trigger.n }}', flag: '{{ trigger.f }}', text: '{{ trigger.n }}' },
      },
    })
    const { parameters } = executionOf(only(await world.fire({ n: '7', f: 'true' })))
    expect(parameters).toEqual({ count: 7, flag: true, text: '7' })
  })
})

describe('a failed enforcement', () => {
  it('an action that does not exist', async () => {
    await start()
    await world.make('lost', { action: { ref: 'test.nope' } })
    expect(await reasonOf()).toBe(`Action "test.nope" doesn't exist`)
  })

  it('an action named by its id', async () => {
    await start()
    const id = world.actions.find('test.do')?.id ?? ''
    await world.make('by-id', { action: { ref: id } })
    expect(await reasonOf()).toBe(`Action "${id}" doesn't exist`)
  })

  it('an action that is disabled', async () => {
    await start()
    await world.make('off', { action: { ref: 'test.off' } })
    expect(await reasonOf()).toMatch(/test\.off.*disabled/)
  })

  it.each([
    ['missing', { ref: 'test.needs' }, /'text' is a required property/],
    ['unknown', { ref: 'test.do', parameters: { nope: 1 } }, /nope/],
    ['of the wrong type', { ref: 'test.do', parameters: { count: 'many' } }, /count|many/],
  ])('parameters that are %s', async (_, action, message) => {
    await start()
    await world.make('wrong', { action })
    expect(await reasonOf()).toMatch(message)
    expect(world.executions.last()).toBeUndefined()
  })

  it('a template that fails creates a failed execution with the unrendered text', async () => {
    await start()
    await world.make('vague', { action: { ref: 'test.do', parameters: { text: 'x {{ trigger.a.b }}' } } })
    expect(await reasonOf()).toMatch(/^Failed to render parameter "text": /)
    const failed = world.executions.last()
    expect(failed).toMatchObject({ status: 'failed', rule: 'vague', parameters: { text: 'x {{ trigger.a.b }}' } })
    expect(world.runs).toEqual([])
  })

  it('a template that fails creates no execution if the parameter cannot have its text as a value', async () => {
    await start()
    await world.make('vague', { action: { ref: 'test.do', parameters: { count: '{{ trigger.a.b }}' } } })
    expect(await reasonOf()).toMatch(/^Failed to render parameter "count": /)
    expect(world.executions.last()).toBeUndefined()
  })

  it('a default of the action that fails creates a failed execution', async () => {
    await start()
    await world.make('chained', { action: { ref: 'test.chained', parameters: { text: 'a' } } })
    expect(await reasonOf()).toMatch(/nope/)
    expect(world.executions.last()).toMatchObject({ status: 'failed', action_ref: 'test.chained' })
  })

  it('criteria that cannot be compared, and patterns that cannot be rendered', async () => {
    await start()
    const rule = await world.make('odd', { criteria: at('trigger.n', 'lt', 3) })
    const id = await world.dispatch({ n: null, m: 1 })
    const { failure_reason: reason, status } = only(await world.settled(id))
    expect(status).toBe('failed')
    expect(reason).toContain(
      `Failed to match rule "test.odd" against trigger instance "${id}": There might be a problem with the criteria in rule test.odd: `,
    )
    await world.call('PUT', `/v1/rules/${rule.id}`, { ...rule, criteria: at('trigger.n', 'eq', '{{ trigger.a.b }}') })
    expect(await reasonOf({ n: 1 })).toMatch(/Failed to render pattern value/)
  })

  it('does not affect the other rules', async () => {
    await start()
    await world.make('a', { action: { ref: 'test.nope' } })
    await world.make('b')
    await world.make('c', { criteria: at('trigger.n', 'lt', 3) })
    const enforcements = await world.fire({ n: 'x' })
    expect(enforcements.map(({ rule, status }) => [rule.ref, status])).toEqual([
      ['test.a', 'failed'],
      ['test.b', 'succeeded'],
      ['test.c', 'failed'],
    ])
    await waitFor('the run', () => world.runs.length === 1)
  })
})

describe('a payload value is never rendered', () => {
  it('in criteria, parameters and the action', async () => {
    await start()
    const hostile = ['{{ 7 * 7 }}', '{% raw %}', '{{ svckv.system.secret }}', '{{ text }}', "{{ ''.__class__ }}"]
    await world.make('relay', {
      criteria: at('trigger.kind', 'eq', '{{ trigger.same }}'),
      action: { ref: 'test.do', parameters: { text: '{{ trigger.text }}', any: { inner: ['{{ trigger.text }}'] } } },
    })
    for (const text of hostile) {
      const { parameters } = executionOf(only(await world.fire({ text, kind: text, same: text })))
      expect(parameters).toEqual({ text, any: { inner: [text] } })
    }
    await waitFor('the runs', () => world.runs.length === hostile.length)
    expect(world.runs.map(({ actionParameters }) => actionParameters['text'])).toEqual(hostile)
  })
})

describe('templates of rules', () => {
  const payload = { text: 'abc', list: [1, 2, 3], object: { a: 1, nested: { b: 2 } }, number: 5, map: { k: 'v' } }
  const names = Object.keys(payload)
  const given = names.map((name) => `{% set ${name} = trigger.${name} %}`).join('')
  const register = (make: (template: string) => object): Promise<unknown> => {
    const definitions = escapes.map((template, i) => ({
      metadataFile: `rules/e${i}.yaml`,
      definition: {
        name: `e${i}`,
        enabled: true,
        trigger: { type: 'test.event' },
        action: { ref: 'test.do' },
        ...make(template),
      },
    }))
    const metadataFiles = new Set(definitions.map(({ metadataFile }) => metadataFile))
    return world.rules.registerRules({ pack: 'test', definitions, metadataFiles })
  }
  /** Enforces all of them at once. */
  const tryAll = async (message: RegExp): Promise<{ tried: number; reached: unknown[]; isUntouched: boolean }> => {
    const enforcements = await world.fire(payload)
    const reached = enforcements.filter(({ failure_reason: reason }) => !message.test(reason ?? ''))
    const kept = world.triggers.findInstance(enforcements[0]?.trigger_instance_id ?? '')?.payload
    return {
      tried: enforcements.length,
      reached: reached.map(({ rule, failure_reason: reason }) => [
        escapes[Number(rule.ref.slice('test.e'.length))],
        reason,
      ]),
      isUntouched:
        world.runs.length === 0 && !Object.hasOwn(Object.prototype, 'polluted') && isDeepStrictEqual(kept, payload),
    }
  }
  const harmless = { tried: escapes.length, reached: [], isUntouched: true }

  it('in action parameters access data only', async () => {
    await start()
    await register((template) => ({ action: { ref: 'test.do', parameters: { text: given + template } } }))
    expect(await tryAll(/^Failed to render parameter "text": /)).toEqual(harmless)
  })

  it('in patterns access data only', async () => {
    await start()
    await register((template) => ({ criteria: at('trigger.text', 'eq', given + template) }))
    expect(await tryAll(/Failed to render pattern value/)).toEqual(harmless)
  })

  it('that never end are stopped', async () => {
    await start()
    const endless =
      '{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{{ c }}{% endfor %}{% endfor %}{% endfor %}'
    await world.make('endless', { action: { ref: 'test.do', parameters: { text: endless } } })
    await world.make('pattern', { criteria: at('trigger.n', 'eq', endless) })
    const enforcements = await world.fire({ n: 1 })
    expect(enforcements.map(({ status }) => status)).toEqual(['failed', 'failed'])
  })
})

describe('order and limits', () => {
  it('instances are enforced in the order of their arrival', async () => {
    await start()
    await world.make('in-order', { action: { ref: 'test.do', parameters: { count: '{{ trigger.i }}' } } })
    const ids: string[] = []
    for (let i = 0; i < rounds({ daily: 30, full: 300 }); i++) ids.push(await world.dispatch({ i }))
    await world.settled(ids.at(-1) ?? '')
    const { database } = world
    const rows = database.all(
      database.build.selectFrom('rule_enforcements').select('trigger_instance_id').orderBy('id'),
    )
    expect(rows.map((row) => row.trigger_instance_id)).toEqual(ids)
  })

  it('instances wait while the execution queue is full', async () => {
    let release: () => void = () => undefined
    const gate = new Promise<void>((resolve) => (release = resolve))
    await start({ queueLimit: 2, slots: 1, run: () => gate })
    await world.make('crowd')
    const ids: string[] = []
    for (let i = 0; i < 20; i++) ids.push(await world.dispatch({ i }))
    await waitFor('the queue to be full', () => !world.executions.hasRoom())
    expect(world.triggers.findInstance(ids.at(-1) ?? '')?.status).toBe('pending')
    release()
    for (const id of ids) expect(await world.settled(id)).toHaveLength(1)
    await waitFor('all runs', () => world.runs.length === 20)
  })

  it('a rule that multiplies a text fails, and the other rules fire', async () => {
    await start()
    await world.make('greedy', { action: { ref: 'test.do', parameters: { any: '{{ [trigger.text] * 600 }}' } } })
    await world.make('other')
    const enforcements = await world.fire({ text: 'x'.repeat(1_000_000) })
    expect(enforcements.map(({ rule, status }) => [rule.ref, status])).toEqual([
      ['test.greedy', 'failed'],
      ['test.other', 'succeeded'],
    ])
    expect(enforcements[0]?.failure_reason).toContain('the templates give more than')
  })

  fullOnly(it)('rules that pass a large payload fire up to the limit of one transaction', async () => {
    await start()
    for (let i = 0; i < 24; i++) {
      await world.make(`large${i}`, { action: { ref: 'test.do', parameters: { text: '{{ trigger.text }}' } } })
    }
    await world.make('small')
    const enforcements = await world.fire({ text: 'x'.repeat(3_000_000) })
    const failed = enforcements.filter(({ status }) => status === 'failed')
    expect([enforcements.length, failed.length]).toEqual([25, 2])
    expect(failed[0]?.failure_reason).toContain('pass more than 67108864 characters of action parameters')
    expect(enforcements.at(-1)).toMatchObject({ rule: { ref: 'test.small' }, status: 'succeeded' })
  })

  it('thousands of rules on hundreds of triggers: one event reads and compiles those of its own trigger', async () => {
    let read = 0
    const around = (real: Database): Database => ({
      ...real,
      build: real.build,
      all(query) {
        const rows = real.all(query)
        const { sql } = query.compile()
        // The review after the start goes through all rules, in pages.
        if (sql.includes('from "rules"') && sql.includes('"trigger_id"')) read += rows.length
        return rows
      },
    })
    await start({ around, start: false })
    const triggers = rounds({ daily: 60, full: 1000 })
    const definitions = Array.from({ length: 10 * triggers }, (_, i) => ({
      metadataFile: `rules/r${i}.yaml`,
      definition: {
        name: `r${i}`,
        enabled: true,
        trigger: { type: 'test.keyed', parameters: { key: `k${i % triggers}` } },
        criteria: at('trigger.n', 'eq', i),
        action: { ref: 'test.do' },
      },
    }))
    const content = {
      pack: 'test',
      definitions,
      metadataFiles: new Set(definitions.map(({ metadataFile }) => metadataFile)),
    }
    expect(await world.rules.registerRules(content)).toEqual({ registered: 10 * triggers, removed: 0, problems: [] })
    read = 0
    await world.rules.start?.()
    expect(read).toBe(0)
    const refOf = (key: string): string =>
      world.triggers.ofType('test.keyed').find(({ parameters }) => parameters['key'] === key)?.ref ?? ''
    expect(refs(await world.fire({ n: 17 }, refOf('k17')))).toEqual(['test.r17'])
    expect(read).toBe(10)
    const next = 17 + triggers
    expect(refs(await world.fire({ n: next }, refOf('k17')))).toEqual([`test.r${next}`])
    expect(read).toBe(10)
  }, 240_000)
})

describe('errors', () => {
  const wrapped =
    (write: (real: Database, unit: Unit) => ReturnType<Database['write']>) =>
    (real: Database): Database => ({ ...real, build: real.build, write: (unit) => write(real, unit) })
  const endsInstance = ({ facts }: Unit): boolean => facts.some(({ name }) => name === 'trigger_instance.processed')

  it('an unexpected exception sets processing_failed and is logged; the next instance is processed', async () => {
    let isBroken = true
    await start({
      templates() {
        if (isBroken) throw new Error('out of the blue')
        return { variables: {} }
      },
    })
    await world.make('unlucky', { action: { ref: 'test.do', parameters: { text: '{{ trigger.n }}' } } })
    const id = await world.dispatch({ n: 1 })
    expect(await world.settled(id)).toEqual([])
    expect(world.triggers.findInstance(id)?.status).toBe('processing_failed')
    expect(world.log()).toMatch(/rules\.instance_failed[^\n]*out of the blue/)
    isBroken = false
    expect(await world.fire({ n: 2 })).toHaveLength(1)
  })

  fullOnly(it)('a storage failure is retried until it succeeds', async () => {
    let failures = 2
    await start({
      around: wrapped((real, unit) => {
        if (!endsInstance(unit) || failures === 0) return real.write(unit)
        failures -= 1
        return Promise.reject(storageFailed(new Error('disk full')))
      }),
    })
    await world.make('patient')
    expect(await world.fire()).toHaveLength(1)
    expect(failures).toBe(0)
    expect(world.log().match(/rules\.not_stored/g)).toHaveLength(2)
    await waitFor('the run', () => world.runs.length === 1)
  })

  it('another database error sets processing_failed; the next instance is processed', async () => {
    let isBroken = true
    await start({
      around: wrapped((real, unit) =>
        isBroken && endsInstance(unit) && unit.steps.length > 1
          ? Promise.reject(new Error('damaged'))
          : real.write(unit),
      ),
    })
    await world.make('unlucky')
    const id = await world.dispatch()
    expect(await world.settled(id)).toEqual([])
    expect(world.triggers.findInstance(id)?.status).toBe('processing_failed')
    isBroken = false
    expect(await world.fire()).toHaveLength(1)
  })

  it('an instance whose failure cannot be stored either stays pending and does not delay others', async () => {
    let damaged = ''
    await start({
      start: false,
      around: wrapped((real, unit) =>
        unit.facts.some(({ name, payload }) => name === 'trigger_instance.processed' && payload.id === damaged)
          ? Promise.reject(new Error('damaged'))
          : real.write(unit),
      ),
    })
    await world.make('steady')
    damaged = await world.dispatch()
    const ids = await Promise.all(
      Array.from({ length: rounds({ daily: 60, full: 1000 }) }, (_, i) => world.dispatch({ i })),
    )
    await world.rules.start?.()
    for (const id of ids) expect(await world.settled(id)).toHaveLength(1)
    expect(world.triggers.findInstance(damaged)?.status).toBe('pending')
    expect(world.log().match(/rules\.not_stored/g)).toHaveLength(1)
    await world.rules.stop?.()
    const id = damaged
    damaged = ''
    const next = world.createServer()
    await next.start?.()
    expect(await world.settled(id)).toHaveLength(1)
    await next.stop?.()
  })

  fullOnly(it)('stopping aborts a long evaluation; the next start repeats it', async () => {
    let looked = 0
    const slow = {
      get: () => {
        looked += 1
        const end = performance.now() + 10
        while (performance.now() < end);
        return { get: () => undefined, value: () => 'x' }
      },
    }
    await start({ templates: () => ({ variables: { svckv: slow } }) })
    for (let i = 0; i < 40; i++) await world.make(`r${i}`, { criteria: at('trigger.text', 'eq', '{{ svckv.x }}') })
    const id = await world.dispatch({ text: 'x' })
    await waitFor('the evaluation', () => looked > 0)
    await world.rules.stop?.()
    expect(looked).toBeLessThan(40)
    expect(world.triggers.findInstance(id)?.status).toBe('pending')
    const next = world.createServer()
    await next.start?.()
    expect(await world.settled(id)).toHaveLength(40)
    await next.stop?.()
  })

  it('stopping finishes started writes, but does not wait for a storage failure to end', async () => {
    let isBroken = true
    await start({
      around: wrapped((real, unit) =>
        isBroken && endsInstance(unit) ? Promise.reject(storageFailed(new Error('disk full'))) : real.write(unit),
      ),
    })
    await world.make('left')
    const id = await world.dispatch()
    await waitFor('the first failure', () => world.log().includes('rules.not_stored'))
    await world.rules.stop?.()
    expect(world.triggers.findInstance(id)?.status).toBe('pending')
    isBroken = false
    // Another server takes it up.
    const next = world.createServer()
    await next.start?.()
    expect(await world.settled(id)).toHaveLength(1)
    await next.stop?.()
  })

  it('pending instances are processed at start, oldest first', async () => {
    await start({ start: false })
    await world.make('later', { action: { ref: 'test.do', parameters: { count: '{{ trigger.i }}' } } })
    const ids: string[] = []
    const count = rounds({ daily: 40, full: 250 })
    for (let i = 0; i < count; i++) ids.push(await world.dispatch({ i }))
    expect(world.triggers.pendingCount()).toBe(count)
    await world.rules.start?.()
    for (const id of ids) expect(await world.settled(id)).toHaveLength(1)
    const { database } = world
    const rows = database.all(
      database.build.selectFrom('rule_enforcements').select('trigger_instance_id').orderBy('id'),
    )
    expect(rows.map((row) => row.trigger_instance_id)).toEqual(ids)
  })

  fullOnly(it)('two engines on one database: each instance is enforced once', async () => {
    await start()
    await world.make('shared')
    const other = world.createServer()
    await other.start?.()
    const ids = await Promise.all(Array.from({ length: 100 }, (_, i) => world.dispatch({ i })))
    for (const id of ids) expect(await world.settled(id)).toHaveLength(1)
    await other.stop?.()
    await waitFor('the runs', () => world.runs.length === 100)
  })

  it('an instance of a deleted trigger is dropped with an error in the log', async () => {
    await start({ start: false })
    const rule = await world.make('short', { trigger: { type: 'test.keyed', parameters: { key: 'gone' } } })
    const id = await world.dispatch({}, rule.trigger.ref)
    await world.call('DELETE', `/v1/rules/${rule.id}`)
    await world.rules.start?.()
    expect(await world.settled(id)).toEqual([])
    expect(world.triggers.findInstance(id)?.status).toBe('processing_failed')
    expect(world.log()).toMatch(/ERROR [^\n]*rules\.trigger_missing/)
  })

  it('an instance whose rule is now disabled is processed without enforcement', async () => {
    await start({ start: false })
    const rule = await world.make('tired')
    const id = await world.dispatch()
    await world.call('PUT', `/v1/rules/${rule.id}`, { ...rule, enabled: false })
    await world.rules.start?.()
    expect(await world.settled(id)).toEqual([])
    expect(world.triggers.findInstance(id)?.status).toBe('processed')
  })

  it('an event with many rules yields to the event loop', async () => {
    await start({ start: false })
    const definitions = Array.from({ length: rounds({ daily: 1500, full: 3000 }) }, (_, i) => ({
      metadataFile: `rules/r${i}.yaml`,
      definition: {
        name: `r${i}`,
        enabled: true,
        trigger: { type: 'test.event' },
        criteria: at('trigger.text', 'regex', `^x{1,${(i % 50) + 2}}y$`),
        action: { ref: 'test.do' },
      },
    }))
    await world.rules.registerRules({
      pack: 'test',
      definitions,
      metadataFiles: new Set(definitions.map(({ metadataFile }) => metadataFile)),
    })
    const id = await world.dispatch({ text: 'x'.repeat(500) })
    let turns = 0
    const count = (): void => {
      turns += 1
      if (world.triggers.findInstance(id)?.status === 'pending') setImmediate(count)
    }
    await world.rules.start?.()
    count()
    expect(await world.settled(id)).toEqual([])
    expect(turns).toBeGreaterThan(rounds({ daily: 5, full: 10 }))
  })
})

it('facts: one per enforcement, then trigger_instance.processed with the executions', async () => {
  await start()
  await world.make('a')
  await world.make('b', { action: { ref: 'test.nope' } })
  const facts: unknown[] = []
  world.bus.subscribe('rule.enforced', ({ rule, status }) => facts.push([rule.ref, status]))
  world.bus.subscribe('trigger_instance.processed', ({ id, execution_ids: ids }) => facts.push([id, ids]))
  const id = await world.dispatch()
  const [first] = await world.settled(id)
  expect(facts).toEqual([
    ['test.a', 'succeeded'],
    ['test.b', 'failed'],
    [id, [first?.execution_id]],
  ])
  expect(world.log()).toMatch(
    new RegExp(
      `AUDIT Rule enforced\\. Execution [^\\n]*\\(event=rule\\.enforced, [^\\n]*execution_id=${first?.execution_id}`,
    ),
  )
  expect(world.log()).toMatch(
    /AUDIT Rule enforcement failed\. Rule [^\n]*\(event=rule\.enforcement_failed, [^\n]*test\.nope/,
  )
})
