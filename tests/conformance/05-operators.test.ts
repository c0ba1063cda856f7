/** Contract 05, 5.6: every operator under each of its names, by itself and in rules of a real server. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { compileCriteria } from '../../src/modules/rules/criteria/criteria.ts'
import { operatorNames } from '../../src/modules/rules/criteria/operators.ts'
import { nowMicros } from '../../src/core/time.ts'
import { createTestApp } from '../helpers/app.ts'
import { type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

interface Row {
  names: string[]
  pattern: unknown
  condition?: string
  /** Values for which the criterion holds. */
  fits: unknown[]
  /** Values for which it does not. */
  fitsNot: unknown[]
  /** Values that cannot be compared with the pattern: a failed rule enforcement is stored. */
  fails?: unknown[]
}

const DAY_SECONDS = 86_400
const ago = (seconds: number): string => new Date(Date.now() - seconds * 1000).toISOString()
const hourAgo = ago(3_600)
const weekAgo = ago(7 * DAY_SECONDS)
/** Without a zone: UTC. */
const bare = (time: string): string => time.slice(0, 19).replace('T', ' ')

const isLarge = { 'item.size': { type: 'gt', pattern: 10 } }
const isLargeAndRed = { ...isLarge, 'item.color': { type: 'eq', pattern: 'red' } }
const [largeRed, largeBlue, smallRed, smallBlue] = [
  { size: 11, color: 'red' },
  { size: 12, color: 'blue' },
  { size: 1, color: 'red' },
  { size: 2, color: 'blue' },
]

const rows: Row[] = [
  { names: ['eq', 'equals'], pattern: 'web', fits: ['web'], fitsNot: ['Web', 'web ', '', null, 1, ['web']] },
  { names: ['eq', 'equals'], pattern: 1, fits: [1, 1.0], fitsNot: ['1', 2, 1.5, null, [1]] },
  { names: ['eq', 'equals'], pattern: '1', fits: ['1'], fitsNot: [1, '1.0', null] },
  { names: ['eq', 'equals'], pattern: true, fits: [true], fitsNot: [false, 'true', 'True', null] },
  {
    names: ['eq', 'equals'],
    pattern: [1, { a: 'b' }],
    fits: [[1, { a: 'b' }]],
    fitsNot: [[{ a: 'b' }, 1], [1], { 0: 1 }],
  },
  {
    names: ['eq', 'equals'],
    pattern: { a: 1, b: [2] },
    fits: [{ b: [2], a: 1 }],
    fitsNot: [{ a: 1 }, { a: 1, b: 2 }, null],
  },
  { names: ['neq', 'nequals'], pattern: ['web'], fits: ['web', null, [], ['web', 'db']], fitsNot: [['web']] },
  { names: ['neq', 'nequals'], pattern: 1, fits: ['1', 2, null], fitsNot: [1, 1.0] },
  { names: ['ieq', 'iequals'], pattern: 'Web', fits: ['wEB', 'Web'], fitsNot: ['webs', ''], fails: [null, 1, ['web']] },
  {
    names: ['contains'],
    pattern: 'b',
    fits: ['abc', ['a', 'b'], { b: 1 }],
    fitsNot: ['B', ['abc'], { a: 'b' }, ''],
    fails: [null, 5],
  },
  { names: ['contains'], pattern: 1, fits: [[0, 1]], fitsNot: [['1'], [], { 1: 1 }], fails: ['1', 1, null] },
  {
    names: ['ncontains'],
    pattern: 'b',
    fits: ['B', ['abc'], { a: 'b' }],
    fitsNot: ['abc', ['b'], { b: 1 }],
    fails: [null, 5],
  },
  { names: ['icontains'], pattern: 'Ab', fits: ['xaBx'], fitsNot: ['a b', ''], fails: [null, 5, ['ab']] },
  { names: ['incontains'], pattern: 'Ab', fits: ['a b', ''], fitsNot: ['xaBx', 'AB'], fails: [null, ['ab']] },
  {
    names: ['startswith'],
    pattern: 'web',
    fits: ['web1', 'web'],
    fitsNot: ['Web1', 'aweb', ''],
    fails: [null, 1, ['web']],
  },
  { names: ['istartswith'], pattern: 'Web', fits: ['wEb1'], fitsNot: ['aweb', 'we'], fails: [null, {}] },
  { names: ['endswith'], pattern: '.log', fits: ['a.log', '.log'], fitsNot: ['a.LOG', 'a.log.gz'], fails: [null, 1] },
  { names: ['iendswith'], pattern: '.Log', fits: ['a.LOG'], fitsNot: ['a.log.gz', 'log'], fails: [null, []] },
  { names: ['lt', 'lessthan'], pattern: 5, fits: [4, -1, 4.9], fitsNot: [5, 6], fails: ['4', null, [4], {}] },
  { names: ['lt', 'lessthan'], pattern: 'b', fits: ['a', 'B', ''], fitsNot: ['b', 'c'], fails: [1, null] },
  { names: ['gt', 'greaterthan'], pattern: 5, fits: [6, 5.1], fitsNot: [5, 4], fails: ['6', null, [6]] },
  { names: ['gt', 'greaterthan'], pattern: 'b', fits: ['c', 'ba'], fitsNot: ['b', 'C'], fails: [9, null] },
  {
    names: ['td_lt', 'timediff_lt'],
    pattern: DAY_SECONDS,
    fits: [hourAgo, bare(hourAgo), new Date(hourAgo).toUTCString(), ago(-60)],
    fitsNot: [weekAgo, bare(weekAgo), '2001-02-03', 20_010_203, '20010203T040506Z', 'Feb 3, 2001 at 4:05 PM'],
    fails: [null, 'yesterday', 1_700_000_000, '1700000000', true, [hourAgo]],
  },
  {
    names: ['td_lt', 'timediff_lt'],
    pattern: '86400.5',
    fits: [hourAgo],
    fitsNot: [weekAgo, '2001-02-03'],
    fails: [''],
  },
  {
    names: ['td_gt', 'timediff_gt'],
    pattern: DAY_SECONDS,
    fits: [weekAgo, bare(weekAgo), '2001-02-03T04:05:06+02:00', 20_010_203],
    fitsNot: [hourAgo, bare(hourAgo), ago(-60)],
    fails: [null, 'long ago', 1_700_000_000, {}],
  },
  { names: ['exists'], pattern: true, fits: ['', 0, false, [], {}], fitsNot: [null, undefined] },
  { names: ['nexists'], pattern: true, fits: [null, undefined], fitsNot: ['', 0, false, []] },
  { names: ['in', 'inside'], pattern: ['a', 1, null], fits: ['a', 1, null], fitsNot: ['b', '1', ['a']] },
  { names: ['in', 'inside'], pattern: 'abc', fits: ['b', 'abc', ''], fitsNot: ['B', 'ac'], fails: [1, null] },
  { names: ['in', 'inside'], pattern: { a: 'b' }, fits: ['a'], fitsNot: ['b', 'constructor', 1, null], fails: [['a']] },
  { names: ['nin', 'ninside'], pattern: ['a', 1], fits: ['b', '1', null], fitsNot: ['a', 1] },
  { names: ['nin', 'ninside'], pattern: 'abc', fits: ['x', 'B'], fitsNot: ['b', ''], fails: [1, null] },
  {
    names: ['matchwildcard'],
    pattern: 'web-?[0-9].*',
    fits: ['web-a1.b', 'web-a1.'],
    fitsNot: ['Web-a1.b', 'xweb-a1.b', 'web-1.b'],
    fails: [null, 5],
  },
  {
    names: ['regex'],
    pattern: 'b.d',
    fits: ['abcde', 'x\nbxd'],
    fitsNot: ['ABCDE', 'b\nd', 'bd'],
    fails: [null, 5, ['bcd']],
  },
  { names: ['regex'], pattern: '^web\\d+$', fits: ['web12', 'web1\n'], fitsNot: ['a web1', 'web'] },
  { names: ['iregex'], pattern: 'B.d', fits: ['abCDe'], fitsNot: ['b\nd', 'bd'], fails: [null, {}] },
  { names: ['matchregex'], pattern: 'b.d', fits: ['bcde', 'b\nd'], fitsNot: ['abcd', 'BCD'], fails: [null, 5] },
  {
    names: ['search'],
    condition: 'any',
    pattern: isLargeAndRed,
    fits: [[smallRed, largeRed], largeRed],
    fitsNot: [[largeBlue, smallRed], [], smallBlue],
    fails: [null, 'text'],
  },
  {
    names: ['search'],
    condition: 'all',
    pattern: isLargeAndRed,
    fits: [[largeRed, largeRed], largeRed, []],
    fitsNot: [[largeRed, smallRed], smallRed],
    fails: [null, 5],
  },
  {
    names: ['search'],
    condition: 'any2any',
    pattern: isLargeAndRed,
    fits: [[smallBlue, smallRed]],
    fitsNot: [[smallBlue], []],
    fails: [null],
  },
  {
    names: ['search'],
    condition: 'all2any',
    pattern: isLargeAndRed,
    fits: [[smallRed, largeBlue], []],
    fitsNot: [[largeRed, smallBlue], smallBlue],
    fails: [null],
  },
]

/** Patterns that nothing can be compared with. A rule cannot be written with them, an older one may have them. */
const refused: Row[] = [
  { names: ['regex', 'iregex', 'matchregex'], pattern: '[', fits: [], fitsNot: [], fails: ['['] },
  { names: ['regex'], pattern: '(?<=a)b\\1', fits: [], fitsNot: [], fails: ['abb'] },
  {
    names: ['startswith', 'ieq', 'icontains', 'matchwildcard', 'regex'],
    pattern: 5,
    fits: [],
    fitsNot: [],
    fails: ['5'],
  },
  { names: ['in', 'nin'], pattern: 5, fits: [], fitsNot: [], fails: [5] },
  { names: ['td_lt', 'td_gt'], pattern: 'soon', fits: [], fitsNot: [], fails: [hourAgo] },
]

const failing: Row[] = [
  { names: ['search'], pattern: isLarge, fits: [], fitsNot: [], fails: [[largeRed]] },
  { names: ['search'], condition: 'most', pattern: isLarge, fits: [], fitsNot: [], fails: [[largeRed]] },
]

const eachName = ({ names, ...row }: Row) => names.map((name) => ({ name, ...row }))
const cases = [...rows, ...failing].flatMap(eachName)
const refusedCases = refused.flatMap(eachName)

const criterionOf = ({ name, pattern, condition }: (typeof cases)[number]): Record<string, unknown> => ({
  type: name,
  pattern,
  ...(condition === undefined ? {} : { condition }),
})

describe('05.6 the operators', () => {
  it('05.6 are those of the contract, each with one value at least that fits and two that do not', () => {
    const names =
      'eq equals neq nequals ieq iequals contains ncontains icontains incontains startswith istartswith endswith iendswith ' +
      'lt lessthan gt greaterthan td_lt timediff_lt td_gt timediff_gt exists nexists in inside nin ninside ' +
      'matchwildcard regex iregex matchregex search'
    expect(operatorNames.toSorted()).toEqual(names.split(' ').toSorted())
    for (const name of operatorNames) {
      const own = rows.filter((row) => row.names.includes(name))
      expect([name, own.some(({ fits }) => fits.length >= 1)]).toEqual([name, true])
      expect([name, own.some(({ fitsNot }) => fitsNot.length >= 2)]).toEqual([name, true])
    }
  })

  it.for([...cases, ...refusedCases])('05.6 $name $pattern', (row) => {
    const compiled = compileCriteria({ 'trigger.value': criterionOf(row) })
    const outcomeOf = (value: unknown): string => {
      const payload = { value, other: 1 }
      const result = compiled.evaluate({ payload, scope: { variables: {} }, now: nowMicros() })
      return result.matches ? 'matches' : result.reason === undefined ? 'does not' : 'fails'
    }
    const outcomes = (values: readonly unknown[] = []) => values.map((value) => [value, outcomeOf(value)])
    expect(outcomes(row.fits)).toEqual(row.fits.map((value) => [value, 'matches']))
    expect(outcomes(row.fitsNot)).toEqual(row.fitsNot.map((value) => [value, 'does not']))
    expect(outcomes(row.fails)).toEqual((row.fails ?? []).map((value) => [value, 'fails']))
  })
})

let server: TestApp
beforeAll(async () => {
  server = await createTestApp()
})
afterAll(() => server.stop())

async function send<T>(method: string, path: string, body: unknown, status: number): Promise<T> {
  const answer = await server.call<T>(method, `/v1${path}`, body)
  if (answer.status !== status) throw new Error(`${path} ${JSON.stringify(body)}: ${answer.status} ${answer.text}`)
  return answer.body
}

const addTriggerType = (name: string) =>
  send('POST', '/triggertypes', { name, pack: 'operators', payload_schema: {} }, 201)

const addRule = (name: string, triggerType: string, criteria: Record<string, unknown>) =>
  send(
    'POST',
    '/rules',
    {
      name,
      pack: 'operators',
      enabled: true,
      trigger: { type: `operators.${triggerType}` },
      criteria,
      action: { ref: 'core.noop' },
    },
    201,
  )

interface Enforcement {
  rule: { ref: string }
  status: string
  failure_reason?: string
}

/** What came of one event. */
async function enforcementsOf(triggerType: string, payload: unknown): Promise<Enforcement[]> {
  const sent = await server.call('POST', '/v1/webhooks/svc', { trigger: `operators.${triggerType}`, payload })
  expect([sent.text, sent.status]).toEqual([expect.any(String), 202])
  const id = sent.headers.get('svc-trigger-instance-id')
  await waitFor(`trigger instance ${id} to be processed`, async () => {
    const { body } = await server.call('GET', `/v1/triggerinstances/${id}`)
    return body['status'] === 'processed'
  })
  const found: Enforcement[] = []
  for (;;) {
    const path = `/v1/ruleenforcements?trigger_instance=${id}&limit=50&offset=${found.length}`
    const { body } = await server.call<Enforcement[]>('GET', path)
    found.push(...body)
    if (body.length < 50) return found
  }
}

const ruleName = (index: number): string => `rule_${index}`

describe('05.6 the operators in rules', () => {
  beforeAll(async () => {
    await addTriggerType('event')
    await Promise.all(
      cases.map((row, index) =>
        addRule(ruleName(index), 'event', { [`trigger.values.${ruleName(index)}`]: criterionOf(row) }),
      ),
    )
  })

  /** What came of one event that has a value for each of the rules. */
  const enforcementsWith = (valueOf: (row: (typeof cases)[number]) => unknown): Promise<Enforcement[]> =>
    enforcementsOf('event', { values: Object.fromEntries(cases.map((row, index) => [ruleName(index), valueOf(row)])) })

  const refsOf = (enforcements: readonly Enforcement[], status: string): string[] =>
    enforcements.filter((each) => each.status === status).map(({ rule }) => rule.ref)
  const refsWith = (kind: 'fits' | 'fitsNot' | 'fails'): string[] =>
    cases.flatMap((row, index) => ((row[kind]?.length ?? 0) > 0 ? [`operators.${ruleName(index)}`] : []))

  const rounds = (kind: 'fits' | 'fitsNot' | 'fails'): number[] => [
    ...Array(Math.max(...cases.map((row) => row[kind]?.length ?? 0))).keys(),
  ]

  it.for(rounds('fits'))('05.6 those whose criterion holds fire, and no other: values %i', async (round) => {
    // A rule that nothing fits sees what it cannot compare, or nothing at all.
    const enforcements = await enforcementsWith(({ fits, fails = [null] }) =>
      fits.length === 0 ? fails[0] : fits[round % fits.length],
    )
    expect(refsOf(enforcements, 'succeeded').toSorted()).toEqual(refsWith('fits').toSorted())
  })

  it.for(rounds('fitsNot'))('05.6 those whose criterion does not hold leave nothing: values %i', async (round) => {
    const enforcements = await enforcementsWith(({ fitsNot, fails = [null] }) =>
      fitsNot.length === 0 ? fails[0] : fitsNot[round % fitsNot.length],
    )
    expect(refsOf(enforcements, 'succeeded')).toEqual([])
    const failingRefs = cases.flatMap((row, index) =>
      row.fitsNot.length === 0 ? [`operators.${ruleName(index)}`] : [],
    )
    expect(refsOf(enforcements, 'failed').toSorted()).toEqual(failingRefs.toSorted())
  })

  it.for(rounds('fails'))('05.6 those that cannot be compared leave a failed enforcement: values %i', async (round) => {
    const enforcements = await enforcementsWith(({ fitsNot, fails = [] }) =>
      fails.length === 0 ? fitsNot[0] : fails[round % fails.length],
    )
    expect(refsOf(enforcements, 'succeeded')).toEqual([])
    expect(refsOf(enforcements, 'failed').toSorted()).toEqual(refsWith('fails').toSorted())
    for (const { rule, failure_reason: reason } of enforcements) {
      const start = `Failed to match rule "${rule.ref}" against trigger instance "`
      const middle = `There might be a problem with the criteria in rule ${rule.ref}: key "trigger.values.`
      expect(reason?.startsWith(start)).toBe(true)
      expect(reason).toContain(middle)
    }
  })

  it.for<[criterion: Record<string, unknown>, message: RegExp]>([
    [{ pattern: 1 }, /^Operator not specified for field: trigger\.a$/],
    [{ type: 'eq' }, /^For field: trigger\.a, no pattern specified for operator eq$/],
    [{ type: 'exists' }, /^For field: trigger\.a, no pattern specified for operator exists$/],
    [{ type: 'nexists' }, /^For field: trigger\.a, no pattern specified for operator nexists$/],
    [
      { type: 'Equals', pattern: 1 },
      /^For field: trigger\.a, operator Equals not in list of allowed operators: \[.+\]$/,
    ],
    [{ type: 'same', pattern: 1 }, /^For field: trigger\.a, operator same not in list of allowed operators: \[.+\]$/],
    [
      { type: 'Search', pattern: isLarge },
      /^For field: trigger\.a, operator Search not in list of allowed operators: \[/,
    ],
  ])('05.5 refuses %j', async ([criterion, message]) => {
    const answer = await server.call('POST', '/v1/rules', {
      name: 'refused',
      pack: 'operators',
      trigger: { type: 'operators.event' },
      criteria: { 'trigger.a': criterion },
      action: { ref: 'core.noop' },
    })
    expect([answer.status, answer.body['faultstring']]).toEqual([400, expect.stringMatching(message)])
  })
})

describe('rules that would always or never fire are refused, and the criterion is named', () => {
  const refusal = async (criteria: Record<string, unknown>): Promise<unknown[]> => {
    const { status, body } = await server.call('POST', '/v1/rules', {
      name: 'refused',
      pack: 'operators',
      trigger: { type: 'core.svc.generic.actiontrigger' },
      criteria,
      action: { ref: 'core.noop' },
    })
    return [status, body['code'], body['faultstring']]
  }
  const refusedWith = (text: RegExp): unknown[] => [400, 'CRITERIA_INVALID', expect.stringMatching(text)]

  it.for(refusedCases)('constant patterns: $name $pattern', async (row) => {
    const criterion = criterionOf(row)
    expect(await refusal({ 'trigger.value': criterion })).toEqual(refusedWith(/^key "trigger\.value", operator /))
    const nested = { type: 'search', condition: 'any', pattern: { 'item.value': criterion } }
    expect(await refusal({ 'trigger.list': nested })).toEqual(refusedWith(/^key "item\.value", operator /))
  })

  it.for(['contains', 'incontains', 'startswith', 'iendswith', 'regex', 'matchregex'])(
    'an empty constant pattern of %s',
    async (type) => {
      expect(await refusal({ 'trigger.a': { type, pattern: '' } })).toEqual(
        refusedWith(/^key "trigger\.a", operator \w+: the pattern is empty/),
      )
    },
  )

  it.for(['body.a', 'payload', 'svckv.system.a', 'item.a', 'Trigger.body', "headers['X-A']"])(
    'the key %s, which never has a value',
    async (key) => {
      for (const type of ['eq', 'nexists', 'neq']) {
        expect(await refusal({ [key]: { type, pattern: 'x' } })).toEqual(refusedWith(/must start with "trigger\."/))
      }
    },
  )

  it('a template that is none', async () => {
    expect(await refusal({ 'trigger.a': { type: 'eq', pattern: '{{ trigger. }}' } })).toEqual(
      refusedWith(/^Failed to render pattern value "\{\{ trigger\. \}\}" for key "trigger\.a": /),
    )
  })
})

describe('05.6 keys, patterns and edges of criteria in rules', () => {
  const payload = {
    body: { name: 'web', items: [{ id: 7 }, { id: 8 }], none: null, truth: true, text: 'true', count: 1 },
    headers: { 'X-Custom': 'yes', 'a#b': 'tagged' },
    template: '{{ trigger.body.name }}',
    expression: '[',
  }
  const nested = { 'item.id': { type: 'eq', pattern: 8 } }

  /** `fires`, `stays silent`, or what the stored reason says. */
  const expectations: [criteria: Record<string, unknown>, outcome: string][] = [
    [{}, 'fires'],
    [
      { 'trigger.body.name': { type: 'eq', pattern: 'web' }, 'trigger.body.count': { type: 'eq', pattern: 1 } },
      'fires',
    ],
    [
      { 'trigger.body.name': { type: 'eq', pattern: 'web' }, 'trigger.body.count': { type: 'eq', pattern: 2 } },
      'stays silent',
    ],
    [{ "trigger.headers['X-Custom']": { type: 'eq', pattern: 'yes' } }, 'fires'],
    [{ "trigger.headers['x-custom']": { type: 'nexists', pattern: true } }, 'fires'],
    [{ "trigger.headers['a#b']#1": { type: 'eq', pattern: 'tagged' } }, 'fires'],
    [{ 'trigger.body.items[0].id': { type: 'eq', pattern: 7 } }, 'fires'],
    [{ 'trigger.body.items[1].id': { type: 'eq', pattern: 7 } }, 'stays silent'],
    [{ 'trigger.body.items[*].id': { type: 'eq', pattern: 7 } }, 'fires'],
    [{ 'trigger.body.items[*].id': { type: 'eq', pattern: 8 } }, 'stays silent'],
    [{ 'trigger.body.gone.deeper': { type: 'nexists', pattern: true } }, 'fires'],
    [{ 'trigger.body.gone': { type: 'neq', pattern: 'x' } }, 'fires'],
    [{ 'trigger.body.none': { type: 'exists', pattern: true } }, 'stays silent'],
    [{ 'trigger.body.__proto__': { type: 'exists', pattern: true } }, 'stays silent'],
    [{ 'trigger.constructor.name': { type: 'exists', pattern: true } }, 'stays silent'],
    [
      { 'trigger.body.count#least': { type: 'gt', pattern: 0 }, 'trigger.body.count#most': { type: 'lt', pattern: 2 } },
      'fires',
    ],
    [
      { 'trigger.body.count#least': { type: 'gt', pattern: 0 }, 'trigger.body.count#most': { type: 'lt', pattern: 1 } },
      'stays silent',
    ],
    [{ 'trigger.body.truth': { type: 'eq', pattern: true } }, 'fires'],
    [{ 'trigger.body.text': { type: 'eq', pattern: true } }, 'stays silent'],
    [{ 'trigger.body.truth': { type: 'eq', pattern: 'true' } }, 'stays silent'],
    [{ 'trigger.body.count': { type: 'eq', pattern: '{{ trigger.body.count }}' } }, 'fires'],
    [{ 'trigger.body.count': { type: 'eq', pattern: '{{ trigger.body.count }} ' } }, 'stays silent'],
    [{ 'trigger.body.name': { type: 'in', pattern: ['db', '{{ trigger.body.name }}'] } }, 'fires'],
    [{ 'trigger.body.name': { type: 'eq', pattern: '{{ svckv.system.operators_host }}' } }, 'fires'],
    [{ 'trigger.body.name': { type: 'eq', pattern: '{{ system.operators_host }}' } }, 'fires'],
    [{ 'trigger.body.name': { type: 'eq', pattern: '{{ svckv.system.operators_gone }}' } }, 'stays silent'],
    ...['neq', 'ncontains', 'icontains', 'startswith', 'iendswith', 'regex', 'nin'].map(
      (type): [Record<string, unknown>, string] => [
        { 'trigger.body.name': { type, pattern: '{{ svckv.system.operators_gone }}' } },
        'stays silent',
      ],
    ),
    [{ 'trigger.body.name': { type: 'regex', pattern: '^{{ svckv.system.operators_gone }}' } }, 'stays silent'],
    [{ 'system.operators_host': { type: 'eq', pattern: 'web' } }, 'fires'],
    [{ 'system.operators_gone': { type: 'nexists', pattern: true } }, 'fires'],
    [{ 'trigger.template': { type: 'eq', pattern: '{{ trigger.template }}' } }, 'fires'],
    [{ 'trigger.template': { type: 'eq', pattern: '{{ trigger.body.name }}' } }, 'stays silent'],
    [{ 'trigger.body.name': { type: 'eq', pattern: '{{ trigger.body.none }}' } }, 'stays silent'],
    [{ 'trigger.body.name': { type: 'nequals', pattern: '{{ trigger.body.none }}' } }, 'fires'],
    [{ 'trigger.body.name': { type: 'exists', pattern: '{{ trigger.body.none }}' } }, 'fires'],
    [{ 'trigger.body.name': { type: 'eq', pattern: '{{ trigger.body.gone }}' } }, 'Failed to render pattern value'],
    [
      { 'trigger.body.none': { type: 'lt', pattern: 3 } },
      "'<' not supported between instances of 'NoneType' and 'int'",
    ],
    [{ 'trigger.body.count': { type: 'contains', pattern: 1 } }, "argument of type 'int' is not iterable"],
    [
      { 'trigger.body.name': { type: 'regex', pattern: '{{ trigger.expression }}' } },
      'the regular expression is invalid',
    ],
    [{ 'trigger.body.items': { type: 'search', condition: 'any', pattern: nested } }, 'fires'],
    [{ 'trigger.body.items': { type: 'search', condition: 'all', pattern: nested } }, 'stays silent'],
    [{ 'trigger.body.items': { type: 'search', pattern: nested } }, 'any, all, any2any, all2any'],
    [{ 'trigger.body.gone': { type: 'search', condition: 'any', pattern: nested } }, 'any, all, any2any, all2any'],
  ]

  beforeAll(async () => {
    await addTriggerType('edge')
    await send('PUT', '/keys/operators_host', { name: 'operators_host', value: 'web' }, 200)
    await Promise.all(expectations.map(([criteria], index) => addRule(`edge_${index}`, 'edge', criteria)))
  })

  it('05.6 fire, stay silent, or leave a failed enforcement', async () => {
    const enforcements = await enforcementsOf('edge', payload)
    const outcomes = expectations.map(([criteria, expected], index) => {
      const found = enforcements.find(({ rule }) => rule.ref === `operators.edge_${index}`)
      const reason = found?.failure_reason ?? ''
      const outcome = found === undefined ? 'stays silent' : found.status === 'succeeded' ? 'fires' : reason
      return [criteria, found?.status === 'failed' && reason.includes(expected) ? expected : outcome]
    })
    expect(outcomes).toEqual(expectations)
  })

  it('05.6 an empty payload matches empty criteria alone', async () => {
    const enforcements = await enforcementsOf('edge', {})
    expect(enforcements.map(({ rule, status }) => [rule.ref, status])).toEqual([['operators.edge_0', 'succeeded']])
  })
})
