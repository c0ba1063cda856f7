import { sql } from 'kysely'
import { afterEach, describe, expect, it } from 'vitest'
import { startRules, type RulesOptions, type RulesWorld } from '../../../../tests/helpers/rules.ts'
import { waitFor } from '../../../../tests/helpers/wait.ts'
import { TemplateError } from '../../../lib/template/render.ts'
import type { Explanation, RuleRecord, RuleTestResult } from '../types.ts'
import type { TemplateReader } from '../../../core/template-reader.ts'

let world: RulesWorld
afterEach(() => world.stop())

async function start(options: RulesOptions = {}): Promise<void> {
  world = await startRules(options)
}

const MASK = '********'
const n = (type: string, pattern: unknown) => ({ 'trigger.n': { type, pattern } })
const explain = async (id: string, as = 'root'): Promise<Explanation> => {
  const { status, body, text } = await world.callAs<Explanation>(as, 'GET', `/v1/triggerinstances/${id}/explain`)
  if (status !== 200) throw new Error(text)
  return body
}
const test = async (body: object, as = 'root'): Promise<RuleTestResult> => {
  const { status, body: result, text } = await world.callAs<RuleTestResult>(as, 'POST', '/v1/rules/test', body)
  if (status !== 200) throw new Error(text)
  return result
}
const verdictsOf = ({ rules }: Explanation) => rules.map(({ rule, verdict }) => [rule.ref, verdict])
const change = (rule: RuleRecord, more: object) => world.call('PUT', `/v1/rules/${rule.id}`, { ...rule, ...more })
const rule = (more: object = {}) => ({
  name: 'tried',
  pack: 'test',
  trigger: { type: 'test.event' },
  action: { ref: 'test.do' },
  ...more,
})
const event = (payload: unknown = {}) => ({ trigger: 'test.event', payload })

describe('explain', () => {
  it('gives each rule a verdict: matched, not_matched with the compared value, failed, disabled, not_needed', async () => {
    await start()
    const yes = await world.make('yes')
    await world.make('no', { criteria: { 'trigger.m': { type: 'exists', pattern: 1 }, ...n('gt', 5) } })
    await world.make('odd', { criteria: n('contains', 'x') })
    await world.make('asleep', { enabled: false })
    await world.make('last', { type: { ref: 'backstop' } })
    await world.make('lost', { action: { ref: 'test.nope' } })
    const id = await world.dispatch({ n: 3, m: 1 })
    const enforcements = await world.settled(id)
    const of = (ref: string) => enforcements.find((enforcement) => enforcement.rule.ref === ref)
    const instance = world.triggers.findInstance(id)
    expect(await explain(id)).toEqual({
      trigger_instance: {
        id,
        trigger: 'test.event',
        status: 'processed',
        occurrence_time: instance?.occurrence_time,
        trace_id: instance?.trace_id,
      },
      rules: [
        {
          rule: { id: yes.id, ref: 'test.yes', uid: 'rule:test:yes', type: 'standard' },
          verdict: 'matched',
          enforcement: { id: of('test.yes')?.id, status: 'succeeded', execution_id: of('test.yes')?.execution_id },
        },
        expect.objectContaining({
          verdict: 'not_matched',
          criterion: { key: 'trigger.n', type: 'gt', pattern: 5, value: 3 },
        }),
        expect.objectContaining({
          verdict: 'failed',
          criterion: { key: 'trigger.n', type: 'contains', pattern: 'x', value: 3 },
          reason: expect.any(String) as string,
          enforcement: {
            id: of('test.odd')?.id,
            status: 'failed',
            failure_reason: expect.stringContaining('Failed to match rule') as string,
          },
        }),
        { rule: expect.objectContaining({ ref: 'test.asleep' }) as object, verdict: 'disabled' },
        expect.objectContaining({
          verdict: 'matched',
          enforcement: expect.objectContaining({ status: 'failed' }) as object,
        }),
        { rule: expect.objectContaining({ ref: 'test.last', type: 'backstop' }) as object, verdict: 'not_needed' },
      ],
      hidden: 0,
      message: '1 rule started an execution: test.yes. Failed enforcements: test.odd, test.lost.',
    })
  })

  it('the message says why no execution was started', async () => {
    await start()
    const sentences: string[] = []
    const ask = async (id: string): Promise<void> => void sentences.push((await explain(id)).message)
    const alone = await world.dispatch()
    await ask(alone)
    const rule_ = await world.make('one', { enabled: false })
    await ask(alone)
    const other = await world.make('two', { enabled: false })
    await ask(alone)
    await change(rule_, { enabled: true, criteria: n('eq', 1) })
    const no = await world.dispatch({ n: 2 })
    await world.settled(no)
    await ask(no)
    await change(other, { enabled: true, criteria: n('eq', 1) })
    await ask(no)
    await change(other, { enabled: true, criteria: {} })
    await ask(no)
    await change(other, { enabled: true, action: { ref: 'test.nope' } })
    const failed = await world.dispatch({ n: 2 })
    await world.settled(failed)
    await ask(failed)
    await world.call('DELETE', `/v1/rules/${other.id}`)
    await ask(failed)
    const yes = await world.dispatch({ n: 1 })
    await world.settled(yes)
    await world.call('DELETE', `/v1/rules/${rule_.id}`)
    await ask(yes)
    expect(sentences).toEqual([
      'No rule is bound to trigger "test.event".',
      'The only rule of the trigger is disabled.',
      'All 2 rules of the trigger are disabled.',
      'The only enabled rule does not match: test.one.',
      'None of the 2 enabled rules matches.',
      'No rule matched at the time. These match now, because rules or datastore values have changed: test.two.',
      'No execution was started. Failed enforcements: test.two.',
      'No execution was started. Failed enforcements: test.two.',
      '1 rule started an execution: test.one.',
    ])
  })

  it('a trigger that svc deleted with its last rule', async () => {
    await start()
    const keyed = await world.make('keyed', {
      trigger: { type: 'test.keyed', parameters: { key: 'a' } },
      criteria: n('eq', 1),
    })
    const id = await world.dispatch({ n: 2 }, keyed.trigger.ref)
    await world.settled(id)
    await world.call('DELETE', `/v1/rules/${keyed.id}`)
    expect(await explain(id)).toMatchObject({
      rules: [],
      message: `Trigger "${keyed.trigger.ref}" no longer exists: its type, or the last rule that used it, was deleted or changed.`,
    })
  })

  it('the reason tells an invalid key from a missing value', async () => {
    await start()
    await world.make('nowhere', { criteria: { 'trigger.old': { type: 'eq', pattern: 1 } } })
    // As an older version has stored it.
    await world.database.write({
      steps: [
        {
          query: world.database.build
            .updateTable('rules')
            .set({ record: sql`replace(record, 'trigger.old', 'body.n')` })
            .where('ref', '=', 'test.nowhere'),
        },
      ],
      facts: [],
    })
    await world.make('missing', { criteria: { 'trigger.m': { type: 'eq', pattern: 1 } } })
    const id = await world.dispatch({ n: 1 })
    await world.settled(id)
    const { rules } = await explain(id)
    expect(rules.map(({ rule: { ref }, criterion, reason }) => [ref, criterion?.value, reason])).toEqual([
      ['test.nowhere', null, expect.stringContaining('must start with "trigger."')],
      ['test.missing', null, 'trigger has no key "m": it has n. Did you mean trigger.n?'],
    ])
    const given = rule({ criteria: { 'body.n': { type: 'eq', pattern: 1 } } })
    expect((await test({ rule: given, trigger_instance: event({ n: 1 }) })).problem).toContain('"body.n"')
  })

  it('a trigger instance that could not be processed', async () => {
    await start({
      start: false,
      templates() {
        throw new Error('out of the blue')
      },
    })
    await world.make('waits')
    const id = await world.dispatch()
    // svc cannot evaluate the rules here, so it cannot return verdicts.
    expect((await world.call('GET', `/v1/triggerinstances/${id}/explain`)).status).toBe(500)
    await world.rules.start?.()
    await world.settled(id)
    await world.call('DELETE', '/v1/rules/test.waits')
    expect((await explain(id)).message).toMatch(/^svc could not process the trigger instance/)
  })

  it('the message says that a trigger instance is pending', async () => {
    await start({ start: false })
    await world.make('waits')
    const { message, trigger_instance: instance } = await explain(await world.dispatch())
    expect([instance.status, message]).toEqual(['pending', expect.stringMatching(/is pending/)])
  })

  it('rules without view permission are only counted, and still decide the verdicts of other rules', async () => {
    const view = (name: string) => ({ permission_types: ['rule_view'], resource_uid: `rule:test:${name}` })
    const trigger = { permission_types: ['trigger_view'], resource_uid: 'trigger:test:event' }
    await start({ users: { ann: { grants: [view('last'), trigger] }, bob: { grants: [trigger] }, eve: {} } })
    await world.make('last', { type: { ref: 'backstop' } })
    await world.make('secret')
    const id = await world.dispatch()
    await world.settled(id)
    const hers = await explain(id, 'ann')
    expect([verdictsOf(hers), hers.hidden]).toEqual([[['test.last', 'not_needed']], 1])
    const his = await explain(id, 'bob')
    expect([his.rules, his.hidden]).toEqual([[], 2])
    expect(JSON.stringify([hers, his])).not.toContain('test.secret')
    expect((await world.callAs('eve', 'GET', `/v1/triggerinstances/${id}/explain`)).status).toBe(403)
  })

  it('cuts long values', async () => {
    await start()
    await world.make('long', { criteria: { 'trigger.text': { type: 'eq', pattern: 'x' }, ...n('eq', 1) } })
    await world.make('deep', { criteria: { 'trigger.list': { type: 'eq', pattern: [] } } })
    const id = await world.dispatch({
      text: 'y'.repeat(100_000),
      list: Array.from({ length: 10_000 }, (_, i) => ({ i })),
    })
    await world.settled(id)
    const [long, deep] = (await explain(id)).rules.map(({ criterion }) => criterion?.value)
    expect(long).toBe(`${'y'.repeat(1000)}…`)
    expect(deep).toMatch(/^\[\{'i': 0\}, .*…$/)
  })
})

describe('datastore items that the caller cannot view', () => {
  /** Everybody but eve can view `a`; `s` is a secret. */
  const templates = (reader: TemplateReader) => {
    const refuse = (): never => {
      throw new TemplateError('FILTER', 'may not be viewed')
    }
    const value = (name: string): string => (reader.author === 'eve' ? refuse() : `value of ${name}`)
    return {
      variables: { svckv: { get: () => ({ get: (name: string) => value(name), has: () => true }) } },
      filters: { decrypt_kv: () => (reader.author === 'eve' ? refuse() : 'pl4in') },
    }
  }
  const users = {
    eve: {
      grants: [
        { permission_types: ['rule_view'], resource_uid: 'pack:test' },
        { permission_types: ['trigger_view'], resource_uid: 'trigger:test:event' },
      ],
    },
  }
  const criteria = { 'trigger.n': { type: 'eq', pattern: '{{ svckv.system.a }}' } }
  const secret = { 'trigger.n': { type: 'eq', pattern: '{{ svckv.system.s | decrypt_kv }}' } }

  it('explain shows rendered patterns to administrators, templates to others, and secrets to nobody', async () => {
    await start({ templates, users })
    await world.make('a', { criteria })
    await world.make('s', { criteria: secret })
    await world.make('k', { criteria: { 'system.a': { type: 'eq', pattern: 'x' } } })
    const id = await world.dispatch({ n: 1 })
    await world.settled(id)
    const seen = async (as: string) =>
      (await explain(id, as)).rules.map(({ criterion }) => [criterion?.pattern, criterion?.value])
    expect(await seen('root')).toEqual([
      ['value of a', 1],
      [MASK, 1],
      ['x', 'value of a'],
    ])
    expect(await seen('eve')).toEqual([
      ['{{ svckv.system.a }}', 1],
      ['{{ svckv.system.s | decrypt_kv }}', 1],
      ['x', MASK],
    ])
  })

  it('a rule test masks datastore values for every spelling of the key, whether the criterion holds or not', async () => {
    await start({ templates, users })
    const keys = ['system.a', '$.system.a', " ['system'].a", '$["system"]["a"]']
    const of = (type: string) => Object.fromEntries(keys.map((key) => [key, { type, pattern: 'x' }]))
    await world.make('is', { criteria: of('nequals') })
    await world.make('is_not', { criteria: of('equals') })
    for (const ref of ['test.is', 'test.is_not']) {
      const body = { rule_ref: ref, trigger_instance: event({ n: 7 }) }
      const values = async (as: string) => (await test(body, as)).criteria.map(({ value }) => value)
      expect(await values('root')).toEqual(keys.map(() => 'value of a'))
      expect(await values('eve')).toEqual(keys.map(() => MASK))
    }
    const { verdict } = await test({ rule_ref: 'test.is_not', trigger_instance: event({ n: 7 }) }, 'eve')
    expect(verdict.criterion?.value).toBe(MASK)
  })

  it('a rule test masks secrets and parameters that the caller cannot view', async () => {
    await start({ templates, users })
    const parameters = {
      text: '{{ svckv.system.a }}',
      any: ['{{ svckv.system.s | decrypt_kv }}'],
      count: '{{ trigger.n }}',
      token: 'plain',
    }
    await world.make('reads', { action: { ref: 'test.do', parameters } })
    const body = { rule_ref: 'test.reads', trigger_instance: event({ n: 7 }) }
    expect((await test(body)).parameters).toEqual({ text: 'value of a', any: MASK, count: 7, token: MASK })
    expect((await test(body, 'eve')).parameters).toEqual({ text: MASK, any: MASK, count: 7, token: MASK })
  })
})

describe('the configuration of the pack of the action', () => {
  const packConfigs = {
    resolve: (pack: string, { user }: TemplateReader) => ({
      values: { region: `${pack} for ${user}`, key: 'c0nfig-key' },
      secrets: ['c0nfig-key'],
      withoutSecrets: () => ({ region: `${pack} for ${user}` }),
    }),
  }
  const action = {
    ref: 'test.do',
    parameters: { text: '{{ config_context.region }}', any: 'k={{ config_context.key }}', token: 'plain' },
  }

  it('is readable in action parameters; only the action gets its secrets', async () => {
    await start({ packConfigs })
    await world.make('configured', { action })
    const [enforcement] = await world.fire()
    const run = await waitFor('the action to run', () => world.runs[0])
    expect(run.actionParameters).toMatchObject({ text: 'test for svc', any: 'k=c0nfig-key' })
    const execution = world.executions.find(enforcement?.execution_id ?? '')
    expect(execution?.parameters).toEqual({ text: 'test for svc', any: `k=${MASK}`, token: MASK })
    const shown = await test({ rule_ref: 'test.configured', trigger_instance: event({ n: 1 }) })
    expect(shown.parameters).toEqual({ text: 'test for svc', any: `k=${MASK}`, token: MASK })
  })

  it('masks its secrets in the failure reason of a rule', async () => {
    await start({ packConfigs })
    await world.make('wrong', { action: { ref: 'test.do', parameters: { count: '{{ config_context.key }}' } } })
    const [enforcement] = await world.fire()
    expect(enforcement?.failure_reason).toContain(`count: invalid literal for int() with base 10: '${MASK}'`)
    const { problem } = await test({ rule_ref: 'test.wrong', trigger_instance: event({ n: 1 }) })
    expect(problem).toMatch(/would reject these parameters/)
    expect(world.log()).not.toContain('c0nfig')
  })
})

describe('test', () => {
  it('a match returns the rendered parameters, and runs and stores nothing', async () => {
    await start()
    const given = rule({
      criteria: n('gt', 1),
      action: { ref: 'test.do', parameters: { text: 'n = {{ trigger.n }}', count: '{{ trigger.n }}' } },
    })
    const result = await test({ rule: given, trigger_instance: event({ n: 2 }) })
    expect(result).toEqual({
      matches: true,
      verdict: { rule: { ref: 'test.tried', uid: 'rule:test:tried', type: 'standard' }, verdict: 'matched' },
      criteria: [{ key: 'trigger.n', type: 'gt', pattern: 1, value: 2, holds: true }],
      parameters: { text: 'n = 2', count: 2 },
    })
    expect(world.executions.last()).toBeUndefined()
    expect((await world.call<RuleRecord[]>('GET', '/v1/rules')).body).toEqual([])
    expect((await world.call<object[]>('GET', '/v1/triggerinstances')).body).toEqual([])
  })

  it('no match returns the criterion and the compared value', async () => {
    await start()
    const { verdict, ...rest } = await test({ rule: rule({ criteria: n('gt', 1) }), trigger_instance: event({ n: 1 }) })
    expect([rest, verdict.criterion]).toEqual([
      { matches: false, criteria: [{ key: 'trigger.n', type: 'gt', pattern: 1, value: 1, holds: false }] },
      { key: 'trigger.n', type: 'gt', pattern: 1, value: 1 },
    ])
    const empty = await test({ rule: rule({ criteria: n('gt', 1) }), trigger_instance: { trigger: 'test.event' } })
    expect(empty).toMatchObject({
      matches: false,
      verdict: { verdict: 'not_matched', reason: expect.any(String) as string },
      criteria: [],
    })
  })

  it('returns every criterion with its value: those that hold, do not hold and cannot be compared', async () => {
    await start()
    const criteria = {
      ...n('gt', 1),
      'trigger.text': { type: 'contains', pattern: '{{ trigger.part }}' },
      'trigger.none': { type: 'exists', pattern: true },
      'trigger.n#again': { type: 'startswith', pattern: 'x' },
      'trigger.list': { type: 'search', condition: 'any', pattern: { 'item.a': { type: 'eq', pattern: 1 } } },
      'trigger.long': { type: 'exists', pattern: true },
    }
    const payload = { n: 2, text: 'abc', part: 'b', list: [{ a: 2 }, { a: 1 }], long: 'y'.repeat(5000) }
    const result = await test({ rule: rule({ criteria }), trigger_instance: event(payload) })
    expect(
      result.criteria.map(({ key, pattern, value, holds, reason }) => [key, pattern, value, holds, reason]),
    ).toEqual([
      ['trigger.n', 1, 2, true, undefined],
      ['trigger.text', 'b', 'abc', true, undefined],
      ['trigger.none', true, null, false, undefined],
      ['trigger.n#again', 'x', 2, false, expect.stringContaining('must be a string') as string],
      ['trigger.list', { 'item.a': { type: 'eq', pattern: 1 } }, payload.list, true, undefined],
      ['trigger.long', true, `${'y'.repeat(1000)}…`, true, undefined],
    ])
    expect(result.criteria[4]?.condition).toBe('any')
    expect(result.verdict).toMatchObject({ verdict: 'not_matched', criterion: { key: 'trigger.none' } })
  })

  it('a stored rule, enabled or not, by id or reference, with a recorded instance', async () => {
    await start()
    const stored = await world.make('stored', { enabled: false })
    const id = await world.dispatch({ n: 1 })
    for (const name of [stored.id, stored.ref]) {
      expect(await test({ rule_ref: name, trigger_instance_id: id })).toEqual({
        matches: true,
        verdict: {
          rule: { id: stored.id, ref: 'test.stored', uid: 'rule:test:stored', type: 'standard' },
          verdict: 'matched',
          reason: 'The rule is disabled.',
        },
        criteria: [],
        parameters: {},
      })
    }
  })

  it('accepts a rule and an instance as the API returned them', async () => {
    await start()
    const stored = await world.make('got', { trigger: { type: 'test.keyed', parameters: { key: 'a', pass: 'p' } } })
    const id = await world.dispatch({}, stored.trigger.ref)
    const { body: instance } = await world.call('GET', `/v1/triggerinstances/${id}`)
    expect(await test({ rule: stored, trigger_instance: instance })).toMatchObject({ matches: true })
  })

  it.each<[string, object, RegExp]>([
    ['an action that does not exist', { action: { ref: 'test.nope' } }, /^Action "test\.nope" doesn't exist$/],
    [
      'a template that fails',
      { action: { ref: 'test.do', parameters: { text: '{{ trigger.a.b }}' } } },
      /^Failed to render parameter "text"/,
    ],
    ['parameters that are wrong', { action: { ref: 'test.do', parameters: { count: 'x' } } }, /x/],
    ['parameters that are missing', { action: { ref: 'test.needs' } }, /'text' is a required property/],
  ])('a match that could not be enforced: %s', async (_, more, problem) => {
    await start()
    expect(await test({ rule: rule(more), trigger_instance: event({ n: 1 }) })).toMatchObject({
      matches: true,
      problem: expect.stringMatching(problem) as string,
    })
  })

  it('a criterion that cannot be compared', async () => {
    await start()
    const result = await test({ rule: rule({ criteria: n('lt', 3) }), trigger_instance: event({ n: 'x' }) })
    expect(result).toMatchObject({
      matches: false,
      verdict: { verdict: 'failed', reason: expect.any(String) as string },
    })
    const hopeless = { ...n('eq', 1), 'trigger.m': { type: 'regex', pattern: '(' } }
    const other = await test({ rule: rule({ criteria: hopeless }), trigger_instance: event({ n: 2 }) })
    expect(other).toMatchObject({
      matches: false,
      verdict: { verdict: 'not_matched' },
      problem: expect.stringContaining('trigger.m') as string,
    })
  })

  it('reports a criterion that can never match once, also for an empty payload', async () => {
    await start()
    const given = rule({ criteria: n('regex', '(') })
    const empty = await test({ rule: given, trigger_instance: event({}) })
    expect(empty.verdict.reason).toBe('The payload is empty.')
    expect(empty.problem).toMatch(/key "trigger\.n", operator regex/)
    const compared = await test({ rule: given, trigger_instance: event({ n: 'text' }) })
    expect(compared.verdict.reason).toMatch(/key "trigger\.n", operator regex/)
    expect(compared.problem).toBeUndefined()
  })

  it('the trigger types must be the same', async () => {
    await start()
    const result = await test({
      rule: rule(),
      trigger_instance: { trigger: 'core.svc.generic.actiontrigger', payload: {} },
    })
    expect(result).toMatchObject({
      matches: false,
      problem: expect.stringMatching(/test\.event.*actiontrigger/) as string,
    })
  })

  it.each<[string, object, number, RegExp]>([
    ['no rule', { trigger_instance: event() }, 400, /"rule" or "rule_ref"/],
    ['two rules', { rule: rule(), rule_ref: 'a.b', trigger_instance: event() }, 400, /"rule" or "rule_ref"/],
    ['no instance', { rule: rule() }, 400, /"trigger_instance" or "trigger_instance_id"/],
    ['two instances', { rule: rule(), trigger_instance: event(), trigger_instance_id: 'a' }, 400, /"trigger_instance"/],
    ['an unknown rule', { rule_ref: 'test.nope', trigger_instance: event() }, 404, /test\.nope/],
    [
      'an unknown instance',
      { rule: rule(), trigger_instance_id: '0123456789abcdef01234567' },
      404,
      /0123456789abcdef01234567/,
    ],
    ['an id that is none', { rule: rule(), trigger_instance_id: 'nope' }, 404, /nope/],
    ['an unknown trigger', { rule: rule(), trigger_instance: { trigger: 'test.nope' } }, 400, /test\.nope/],
    [
      'an unknown trigger type',
      { rule: rule({ trigger: { type: 'test.nope' } }), trigger_instance: event() },
      400,
      /test\.nope/,
    ],
    [
      'wrong criteria',
      { rule: rule({ criteria: { a: { type: 'eq' } } }), trigger_instance: event() },
      400,
      /no pattern/,
    ],
    ['a wrong rule', { rule: { name: 'x' }, trigger_instance: event() }, 400, /'trigger' is a required property/],
    ['a wrong property', { rule_ref: 'a.b', instance: 1 }, 400, /'instance' was unexpected/],
  ])('%s is refused', async (_, body, status, message) => {
    await start()
    const answer = await world.call('POST', '/v1/rules/test', body)
    expect([answer.status, answer.body.faultstring]).toEqual([status, expect.stringMatching(message)])
  })

  it('needs rule_view for a stored rule, rule_create for a given one, trigger_view for a recorded instance', async () => {
    const on = (uid: string, ...permissions: string[]) => ({ permission_types: permissions, resource_uid: uid })
    await start({
      users: {
        none: {},
        views: { grants: [on('rule:test:stored', 'rule_view')] },
        creates: { grants: [on('rule:test:tried', 'rule_create')] },
        both: { grants: [on('rule:test:stored', 'rule_view'), on('trigger:test:event', 'trigger_view')] },
      },
    })
    await world.make('stored')
    const id = await world.dispatch()
    const bodies = [
      { rule_ref: 'test.stored', trigger_instance: event() },
      { rule: rule(), trigger_instance: event() },
      { rule_ref: 'test.stored', trigger_instance_id: id },
    ]
    const answers = async (as: string) =>
      Promise.all(bodies.map(async (body) => (await world.callAs(as, 'POST', '/v1/rules/test', body)).status))
    expect(await answers('none')).toEqual([403, 403, 403])
    expect(await answers('views')).toEqual([200, 403, 403])
    expect(await answers('creates')).toEqual([403, 200, 403])
    expect(await answers('both')).toEqual([200, 403, 200])
  })
})
