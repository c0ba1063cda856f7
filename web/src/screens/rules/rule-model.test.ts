import { describe, expect, it } from 'vitest'
import type { OperatorRecord, RuleRecord } from '../../api/records.ts'
import { operatorsByName } from '../../components/rules/criteria-text.ts'
import {
  copyOfDefinition,
  definitionOf,
  definitionOfRecord,
  doubledKeys,
  draftOf,
  emptyRule,
  isSameDefinition,
  maskProblemOf,
  newRow,
  placeOfRefusal,
  ruleProblemsAfter,
  readRule,
  valueOfPattern,
  withMoved,
  withType,
  type DraftWithParameters,
} from './rule-model.ts'

const operators = operatorsByName(
  (
    [
      ['equals', 'any'],
      ['exists', 'none'],
      ['regex', 'text'],
      ['search', 'criteria'],
    ] as const
  ).map(([name, pattern]): OperatorRecord => ({ name, aliases: [], phrase: name, description: '', pattern })),
)

function read(definition: unknown): DraftWithParameters {
  const read = draftOf(definition)
  if ('problem' in read) throw new Error(read.problem)
  return read
}

const whole = {
  name: 'on order',
  pack: 'shop',
  description: 'Says <b>what</b> came.',
  enabled: true,
  type: { ref: 'backstop', parameters: {} },
  trigger: { type: 'core.svc.webhook', parameters: { url: 'orders' }, description: 'of the shop' },
  criteria: {
    'trigger.body.kind': { type: 'equals', pattern: 'order' },
    'trigger.body.count': { type: 'equals', pattern: 12 },
    'trigger.body.text': { type: 'equals', pattern: '12' },
    'trigger.body.none': { type: 'equals', pattern: null },
    'trigger.body.list': { type: 'equals', pattern: [1, { a: null }] },
    'trigger.body.items': {
      type: 'search',
      condition: 'any',
      pattern: {
        'item.id': { type: 'regex', pattern: '^a\nb' },
        'item.inner': { type: 'search', condition: 'all', pattern: { 'item.x': { type: 'exists' } } },
      },
    },
    'trigger.body.dynamic': { type: 'search', condition: 'any', pattern: '{{ trigger.body.criteria }}' },
    'trigger.body.extra': { type: 'exists', pattern: true, note: 'kept' },
  },
  action: { ref: 'core.local', parameters: { cmd: 'echo {{ trigger.body.kind }}', nested: { a: ['********'] } } },
  tags: [{ name: 'a', value: 'b' }],
  unknown: { kept: true },
}

describe('a definition as a form', () => {
  it('comes back as it was', () => {
    expect(definitionOf(read(whole), { operators })).toEqual({ definition: whole, problems: new Map() })
    expect(definitionOf(read(whole), { operators, lenient: true }).definition).toEqual(whole)
  })

  it('is what an author writes, without what the server sets', () => {
    const record: RuleRecord = {
      id: '1',
      uid: 'rule:p:n',
      ref: 'p.n',
      name: 'n',
      pack: 'p',
      description: '',
      enabled: false,
      type: { ref: 'standard', parameters: {} },
      trigger: { type: 't.t', ref: 'core.uuid', parameters: {} },
      criteria: {},
      action: { ref: 'a.a', parameters: {} },
      context: { user: 'u' },
      tags: [],
      metadata_file: 'rules/n.yaml',
      notify: ['slack'],
    }
    expect(definitionOfRecord(record)).toEqual({
      name: 'n',
      pack: 'p',
      description: '',
      enabled: false,
      type: { ref: 'standard' },
      trigger: { type: 't.t', parameters: {} },
      criteria: {},
      action: { ref: 'a.a', parameters: {} },
      notify: ['slack'],
    })
  })

  it('is refused where a form cannot show it, in words', () => {
    const refused: [unknown, RegExp][] = [
      [[], /Enter a rule as an object/],
      [{ name: 3 }, /"name" must be a string/],
      [{ enabled: 'yes' }, /"enabled"/],
      [{ trigger: 'core.svc.webhook' }, /"trigger" must be an object/],
      [{ trigger: { type: 1 } }, /"trigger.type"/],
      [{ action: { parameters: [] } }, /"action.parameters"/],
      [{ criteria: { k: 'v' } }, /criterion "k"/],
      [{ criteria: { k: { type: 1 } } }, /name of an operator/],
      [{ criteria: { k: { type: 'search', pattern: { i: 2 } } } }, /criterion "i"/],
    ]
    for (const [given, message] of refused) {
      const found = draftOf(given)
      expect('problem' in found ? found.problem : found).toMatch(message)
    }
    expect('draft' in draftOf({ name: null, criteria: null, action: null })).toBe(true)
  })

  it('tells what is missing, at its place', () => {
    const empty = read(emptyRule)
    expect([...definitionOf(empty, { operators }).problems.keys()]).toEqual(['name', 'trigger', 'action'])
  })
})

describe('rows of criteria', () => {
  const problemsOf = (...rows: Parameters<typeof Object.assign>[1][]) => {
    const start = read({ ...whole, criteria: {} })
    const criteria = rows.map((row, i) => ({ ...newRow(), id: String(i), ...row }))
    return definitionOf({ ...start, draft: { ...start.draft, criteria } }, { operators })
  }

  it('need a key, an operator and a pattern that can be read', () => {
    const { problems } = problemsOf(
      { key: '' },
      { key: 'a', type: '' },
      { key: 'b', as: 'json', pattern: '{"x": }' },
      { key: 'c', as: 'json', pattern: ' ' },
      { key: 'd', type: 'search', as: 'rows' },
      { key: 'e' },
    )
    expect([...problems.keys()]).toEqual(['0', '1', '2', '3', '4'])
    expect(problems.get('2')).toMatch(/^The pattern is not valid JSON. Line 1, column 7/)
  })

  it('of one key are told apart by a tag', () => {
    const { problems } = problemsOf({ key: 'trigger.a' }, { key: 'trigger.a' }, { key: 'trigger.a#2' })
    expect([...problems]).toEqual([['1', expect.stringContaining('trigger.a#2')]])
  })

  it('keep what was typed when it is shown as JSON', () => {
    const start = read({ ...whole, criteria: {} })
    const criteria = [{ ...newRow('k'), as: 'json' as const, pattern: '{"x": ' }]
    const { definition } = definitionOf({ ...start, draft: { ...start.draft, criteria } }, { operators, lenient: true })
    expect(definition.criteria).toEqual({ k: { type: 'equals', pattern: '{"x": ' } })
  })

  it('ask whether a text was meant as a value', () => {
    const meant = (pattern: string, type = 'equals') => valueOfPattern({ ...newRow('k', type), pattern }, operators)
    expect(meant('12')).toBe(12)
    expect(meant(' true ')).toBe(true)
    expect(meant('["a"]')).toEqual(['a'])
    for (const text of ['', 'order', '12 apples', '{{ trigger.a }}', '1.2.3']) expect(meant(text)).toBeUndefined()
    expect(meant('12', 'regex')).toBeUndefined()
  })

  it('change to a search and back', () => {
    const row = { ...newRow('k'), pattern: 'x' }
    const search = withType(row, 'search')
    expect(search).toMatchObject({ as: 'rows', condition: 'any' })
    expect(withType(search, 'equals')).toMatchObject({ as: 'text', condition: '', pattern: 'x' })
  })
})

describe('a refusal of the server', () => {
  const { draft } = read(whole)
  const rowOf = (key: string) => draft.criteria.find((row) => row.key === key)?.id

  it('belongs to the part of the path', () => {
    expect(placeOfRefusal(['name'], draft)).toBe('name')
    expect(placeOfRefusal(['trigger', 'type'], draft)).toBe('trigger')
    expect(placeOfRefusal(['trigger', 'parameters', 'timezone'], draft)).toBe('triggerParameters')
    expect(placeOfRefusal(['action', 'parameters'], draft)).toBe('actionParameters')
    expect(placeOfRefusal(['action', 'ref'], draft)).toBe('action')
    expect(placeOfRefusal(['criteria', 'trigger.body.kind', 'type'], draft)).toBe(rowOf('trigger.body.kind'))
    const inner = draft.criteria.find(({ key }) => key === 'trigger.body.items')?.items[0]
    expect(placeOfRefusal(['criteria', 'trigger.body.items', 'pattern', 'item.id'], draft)).toBe(inner?.id)
    expect(placeOfRefusal(['criteria', 'trigger.body.items', 'pattern'], draft)).toBe(rowOf('trigger.body.items'))
    for (const path of [[], ['tags'], ['criteria'], ['criteria', 'item.id']])
      expect(placeOfRefusal(path, draft)).toBeUndefined()
  })
})

it('a criterion moves by one place, and no further than to the ends', () => {
  const rows = ['a', 'b', 'c'].map((key) => newRow(key))
  const moved = (index: number, step: -1 | 1): string =>
    withMoved(rows, index, step)
      .map(({ key }) => key)
      .join('')
  expect([moved(2, -1), moved(0, 1), moved(1, 1)]).toEqual(['acb', 'bac', 'acb'])
  expect(withMoved(rows, 0, -1)).toBe(rows)
  expect(withMoved(rows, 2, 1)).toBe(rows)
  expect(withMoved([], 0, 1)).toEqual([])
})

it('two definitions are the same in whatever order they say it', () => {
  expect(isSameDefinition({ a: 1, b: { c: [1], d: 2 } }, { b: { d: 2, c: [1] }, a: 1 })).toBe(true)
  expect(isSameDefinition({ a: [1, 2] }, { a: [2, 1] })).toBe(false)
})

describe('secrets that are not shown', () => {
  const masked = {
    ...emptyRule,
    name: 'a',
    trigger: { type: 'core.svc.webhook', parameters: { url: 'a', signature: { secret: '********' } } },
    action: { ref: 'core.http', parameters: { url: 'u', password: '********' } },
  }
  // What else a rule has is of no meaning here.
  const stored = masked as unknown as RuleRecord

  it('are not copied', () => {
    const { definition, left } = copyOfDefinition(masked)
    expect(left).toEqual(['signature', 'password'])
    expect(definition).toMatchObject({ name: 'a_copy', enabled: false })
    expect(definition.trigger.parameters).toEqual({ url: 'a' })
    expect(definition.action.parameters).toEqual({ url: 'u' })
  })

  it('stay where the rule has them, and nowhere else', () => {
    expect(maskProblemOf(masked, stored)).toBeUndefined()
    expect(maskProblemOf(masked, undefined)).toContain('Enter or remove the secret of signature, password:')
    const other = { ...masked, action: { ...masked.action, ref: 'core.sendmail' } }
    expect(maskProblemOf(other, stored)).toContain('Enter or remove the secret of password:')
    expect(maskProblemOf({ ...masked, trigger: null, action: 'x' } as never, stored)).toBeUndefined() // as JSON may be
  })
})

it('keys that JSON cannot hold twice are found at any depth, among their siblings alone', () => {
  const search = (...keys: string[]): ReturnType<typeof newRow> => ({
    ...newRow('list', 'search'),
    items: keys.map((key) => newRow(key)),
  })
  expect(doubledKeys({ criteria: [newRow('a'), { ...search('a', 'b'), key: 'l' }] })).toEqual([])
  expect(doubledKeys({ criteria: [newRow('a'), search('b', 'b'), newRow('a')] })).toEqual(['a', 'b'])
})

it('what is changed takes its problem away, and no other', () => {
  const problems = new Map([
    ['name', '1'],
    ['trigger', '2'],
    ['row-3', '3'],
  ])
  expect([...ruleProblemsAfter(problems, { triggerType: 'x' }).keys()]).toEqual(['name', 'row-3'])
  expect([...ruleProblemsAfter(problems, { criteria: [] }).keys()]).toEqual(['name', 'trigger'])
})

it.each(['null', '[]', '5', '"a"', '{'])('%s is no rule', (text) => {
  expect(readRule(text)).toHaveProperty('problem')
})
