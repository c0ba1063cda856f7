import { describe, expect, it } from 'vitest'
import { computedMs } from '../../../../tests/helpers/work.ts'
import { createRandom, seedOfRun } from '../../../../tests/helpers/random.ts'
import { isAppError } from '../../../core/errors.ts'
import { TemplateError, type TemplateScope } from '../../../lib/template/render.ts'
import { checkCriteria, compileCriteria, findProblems } from './criteria.ts'
import { operators } from './operators.ts'
import type { CriteriaResult } from './run.ts'
import { operatorNames } from './operators.ts'

const noScope: TemplateScope = { variables: {} }
const now = Date.UTC(2024, 0, 1) * 1_000

function evaluate(criteria: Record<string, unknown>, payload: unknown, scope: TemplateScope = noScope): CriteriaResult {
  return compileCriteria(criteria).evaluate({ payload, scope, now })
}

/** The error of saving the criteria. */
function refusal(criteria: Record<string, unknown>): string {
  try {
    compileCriteria(criteria)
  } catch (error) {
    if (isAppError(error) && error.kind === 'invalid' && error.code === 'CRITERIA_INVALID') return error.message
    throw error
  }
  return 'accepted'
}

const reasonOf = (result: CriteriaResult): string | undefined => (result.matches ? undefined : result.reason)

describe('a set of criteria', () => {
  it('always matches when it is empty', () => {
    expect(evaluate({}, { a: 1 })).toEqual({ matches: true })
    for (const payload of [{}, [], null, '']) expect(evaluate({}, payload)).toEqual({ matches: true })
  })

  it('never matches an empty payload', () => {
    const criteria = { 'trigger.a': { type: 'nexists', pattern: true } }
    expect(evaluate(criteria, { b: 1 })).toEqual({ matches: true })
    for (const payload of [{}, [], null, '', 0, false]) {
      expect(evaluate(criteria, payload)).toEqual({
        matches: false,
        failed: { key: 'trigger.a', type: 'nexists', pattern: true, value: null },
        note: 'The payload is empty.',
      })
    }
  })

  it('matches when all criteria hold, else returns the first that does not', () => {
    const criteria = {
      'trigger.a': { type: 'eq', pattern: 1 },
      'trigger.b': { type: 'gt', pattern: 5 },
      'trigger.c': { type: 'exists', pattern: true },
    }
    expect(evaluate(criteria, { a: 1, b: 6, c: 0 })).toEqual({ matches: true })
    expect(evaluate(criteria, { a: 1, b: 5 })).toEqual({
      matches: false,
      failed: { key: 'trigger.b', type: 'gt', pattern: 5, value: 5 },
    })
    expect(evaluate(criteria, { a: '1', b: 'text' })).toEqual({
      matches: false,
      failed: { key: 'trigger.a', type: 'eq', pattern: 1, value: '1' },
    })
  })

  it('accepts the same path twice under different tags', () => {
    const criteria = {
      'trigger.a#least': { type: 'gt', pattern: 1 },
      'trigger.a#most': { type: 'lt', pattern: 3 },
    }
    expect(evaluate(criteria, { a: 2 })).toEqual({ matches: true })
    expect(evaluate(criteria, { a: 1 })).toMatchObject({ matches: false, failed: { key: 'trigger.a#least' } })
    expect(evaluate(criteria, { a: 3 })).toMatchObject({ matches: false, failed: { key: 'trigger.a#most' } })
  })

  it('stops at the first comparison that fails and returns the reason', () => {
    const criteria = { 'trigger.a': { type: 'lt', pattern: 3 }, 'trigger.b': { type: 'contains', pattern: 'x' } }
    expect(evaluate(criteria, { b: 1 })).toEqual({
      matches: false,
      failed: { key: 'trigger.a', type: 'lt', pattern: 3, value: null },
      reason: `key "trigger.a", operator lt: '<' not supported between instances of 'NoneType' and 'int'`,
    })
    expect(reasonOf(evaluate(criteria, { a: 1, b: 1 }))).toBe(
      `key "trigger.b", operator contains: argument of type 'int' is not iterable`,
    )
  })

  it('returns the same result each time, also for invalid patterns', () => {
    const compiled = compileCriteria({ 'trigger.a': { type: 'regex', pattern: '(' } })
    const results = [1, 2, 3].map(() => compiled.evaluate({ payload: { a: 'x' }, scope: noScope, now }))
    expect(results.map(reasonOf)).toEqual(
      Array(3).fill(expect.stringMatching(/^key "trigger\.a", operator regex: the regular expression is invalid/)),
    )
  })
})

describe('patterns', () => {
  const scope: TemplateScope = {
    variables: { svckv: { system: { limit: '5', host: 'web1' }, user: {} } },
    filters: {
      decrypt_kv: ([value]) => {
        if (value === 'sealed') return 'hunter2'
        throw new TemplateError('FILTER', 'the value is not the encrypted value of any key')
      },
    },
  }

  it.for<[pattern: unknown, value: unknown]>([
    ['{{ trigger.other }}', 7],
    ['{{ trigger.other + 1 }}', 8],
    ['{{ trigger.other }}!', '7!'],
    ['{{ trigger.list }}', [1, 'a']],
    ['{{ trigger.flag }}', true],
    [
      { n: '{{ trigger.other }}', l: ['{{ trigger.name }}'] },
      { n: 7, l: ['web1'] },
    ],
    [['{{ svckv.system.host }}'], ['web1']],
    ['{{ svckv.system.host }}', 'web1'],
    ['{{ system.host }}', 'web1'],
    ['{{ svckv.system.limit | int }}', 5],
    ['{% if trigger.flag %}yes{% endif %}', 'yes'],
    ['plain', 'plain'],
    ['{ brace }', '{ brace }'],
  ])('%j is rendered and keeps its type', ([pattern, value]) => {
    const payload = { value, other: 7, list: [1, 'a'], flag: true, name: 'web1' }
    expect(evaluate({ 'trigger.value': { type: 'eq', pattern } }, payload, scope)).toEqual({ matches: true })
  })

  it('shows the rendered pattern of a criterion that does not hold', () => {
    expect(evaluate({ 'trigger.a': { type: 'eq', pattern: '{{ trigger.b }}' } }, { a: '2', b: 2 })).toEqual({
      matches: false,
      failed: { key: 'trigger.a', type: 'eq', pattern: 2, value: '2' },
    })
  })

  it('are rendered once; payloads are never rendered', () => {
    const template = '{{ trigger.secret }}'
    const criteria = { 'trigger.a': { type: 'eq', pattern: '{{ trigger.b }}' } }
    expect(evaluate(criteria, { a: template, b: template, secret: 'x' })).toEqual({ matches: true })
    expect(evaluate(criteria, { a: 'x', b: template, secret: 'x' })).toMatchObject({
      matches: false,
      failed: { pattern: template, value: 'x' },
    })
    const searching = { 'trigger.list': { type: 'search', condition: 'any', pattern: '{{ trigger.criteria }}' } }
    const nested = { 'item.a': { type: 'eq', pattern: template } }
    expect(evaluate(searching, { list: [{ a: 'x' }], criteria: nested, secret: 'x' })).toMatchObject({ matches: false })
    expect(evaluate(searching, { list: [{ a: template }], criteria: nested, secret: 'x' })).toEqual({ matches: true })
  })

  it.for([
    ['eq', false],
    ['neq', true],
    ['nequals', true],
    ['exists', true],
    ['nexists', false],
    ['in', false],
    ['nin', false],
    ['contains', false],
    ['ncontains', false],
    ['lt', false],
    ['regex', false],
    ['td_gt', false],
    ['search', false],
  ] as const)('%s with a pattern that becomes null: %s', ([type, matches]) => {
    const criteria = { 'trigger.a': { type, pattern: '{{ trigger.none }}', condition: 'any' } }
    const result = evaluate(criteria, { a: 'x', none: null })
    expect(result.matches).toBe(matches)
    expect(reasonOf(result)).toBeUndefined()
  })

  describe('from a datastore item that is missing', () => {
    const store: TemplateScope = {
      variables: {
        svckv: {
          get: () => ({
            get: (name: string) => ({
              get: () => undefined,
              has: () => false,
              value: () => (name === 'prefix' ? 'a' : ''),
            }),
          }),
        },
      },
      filters: { decrypt_kv: ([value]) => value },
    }
    const outcome = (type: string, pattern: unknown, value: unknown = 'abc') =>
      evaluate({ 'trigger.a': { type, pattern, condition: 'any' } }, { a: value, none: '' }, store)
    const isOfText = operators.filter(({ pattern }) => pattern !== 'none').flatMap(({ names }) => names)

    it.for(isOfText)('%s matches nothing, and says why', (type) => {
      for (const value of ['abc', '', 1, null, ['', 'abc'], { '': 1 }]) {
        const patterns = [
          '{{ svckv.system.gone }}',
          '{{ system.gone }}',
          '^{{ svckv.system.gone }}',
          ['{{ system.gone }}'],
        ]
        for (const pattern of patterns) {
          const result = outcome(type, pattern, value)
          expect([value, pattern, result]).toEqual([
            value,
            pattern,
            expect.objectContaining({
              matches: false,
              note: expect.stringMatching(/^The pattern matches nothing: the datastore has no value for \S+gone\.$/),
            }),
          ])
        }
        expect(outcome(type, '{{ trigger.none }}', value)).toMatchObject({
          matches: false,
          note: expect.stringMatching(/gives no text/),
        })
      }
    })

    it('a template may say what to use instead', () => {
      const matching = [
        '{{ svckv.system.gone | default("ab") }}',
        '{{ svckv.system.gone or "ab" }}',
        '{% if svckv.system.gone %}x{% else %}ab{% endif %}',
        '{{ svckv.system.prefix }}b',
        '{{ "ab" if svckv.system.gone == "" else svckv.system.prefix }}',
      ]
      expect(matching.map((pattern) => [pattern, outcome('startswith', pattern).matches])).toEqual(
        matching.map((pattern) => [pattern, true]),
      )
    })

    it('within search as well, also for criteria that negate', () => {
      for (const condition of ['any', 'all', 'any2any', 'all2any']) {
        for (const type of ['neq', 'ncontains', 'startswith', 'nin']) {
          const pattern = { 'item.n': { type, pattern: '{{ svckv.system.gone }}' } }
          const result = evaluate({ 'trigger.l': { type: 'search', condition, pattern } }, { l: [{ n: 'x' }] }, store)
          expect([condition, type, result]).toEqual([
            condition,
            type,
            expect.objectContaining({ matches: false, note: expect.stringContaining('svckv.system.gone') }),
          ])
        }
      }
    })

    it('exists and nexists ignore it', () => {
      expect(outcome('exists', '{{ svckv.system.prefix }}').matches).toBe(true)
      expect(outcome('exists', '{{ trigger.none }}').matches).toBe(true)
      expect(outcome('nexists', '{{ trigger.none }}', null).matches).toBe(true)
    })
  })

  it.for([
    ['{{ trigger.missing }}', /'missing'/],
    ['{{ nothing }}', /'nothing' is undefined\. To keep such text as it is, write \{% raw %\} before it/],
    ['{{ trigger.a + 1 }}', /.+/],
    ['{{ trigger. }}', /.+/],
    ['{{', /.+/],
    ['{% for x in %}', /.+/],
    ['{{ trigger.a | nofilter }}', /nofilter/],
    ['{{ "plain" | decrypt_kv }}', /is not the encrypted value of any key/],
    ['{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}', /.+/],
  ] as const)('%s fails', ([pattern, why]) => {
    const result = evaluate({ 'trigger.a': { type: 'eq', pattern } }, { a: 'x' }, scope)
    expect(result).toMatchObject({ matches: false, failed: { key: 'trigger.a', pattern, value: 'x' } })
    const start = `Failed to render pattern value "${pattern}" for key "trigger.a": `
    expect(reasonOf(result)?.slice(0, start.length)).toBe(start)
    expect(reasonOf(result)?.slice(start.length)).toMatch(why)
  })

  it('never show decrypted values', () => {
    const pattern = '{{ "sealed" | decrypt_kv }}'
    for (const criterion of [
      { type: 'eq', pattern },
      { type: 'eq', pattern: { deep: [pattern] } },
      { type: 'lt', pattern: [pattern] },
      { type: 'td_lt', pattern },
      { type: 'regex', pattern: `(${pattern}` },
      { type: 'search', condition: 'any', pattern },
    ]) {
      const result = evaluate({ 'trigger.a': criterion }, { a: 'x' }, scope)
      expect(result).toMatchObject({ matches: false, failed: { pattern: '********' } })
      expect(JSON.stringify(result)).not.toContain('hunter2')
    }
    expect(evaluate({ 'trigger.a': { type: 'eq', pattern } }, { a: 'hunter2' }, scope)).toEqual({ matches: true })
  })

  it('cannot access prototypes', () => {
    for (const path of ['__proto__', 'constructor', 'constructor.prototype', 'toString', 'a.__proto__', 'l.map']) {
      const result = evaluate({ 'trigger.a': { type: 'exists', pattern: `{{ trigger.${path} }}` } }, { a: 1, l: [1] })
      expect(reasonOf(result)).toMatch(/^Failed to render pattern value/)
    }
  })

  it('with too many templates fail', () => {
    const pattern = Array.from({ length: 600 }, (_, index) => `{{ ${index} }}`)
    expect(reasonOf(evaluate({ 'trigger.a': { type: 'in', pattern } }, { a: 1 }))).toMatch(/more than 500 templates/)
  })
})

describe('keys of the datastore', () => {
  const scope: TemplateScope = {
    variables: {
      svckv: {
        get: (scope: string) =>
          scope === 'system'
            ? {
                get: (name: string) => ({
                  get: () => undefined,
                  value: () => {
                    if (name === 'refused') throw new TemplateError('FILTER', 'needs key_value_pair_view')
                    return name === 'host' ? 'web1' : ''
                  },
                }),
              }
            : undefined,
      },
    },
  }

  it('are read through the scope', () => {
    expect(evaluate({ 'system.host': { type: 'eq', pattern: 'web1' } }, { a: 1 }, scope)).toEqual({ matches: true })
    expect(evaluate({ 'system.none': { type: 'nexists', pattern: 1 } }, { a: 1 }, scope)).toEqual({ matches: true })
    expect(evaluate({ 'system.host': { type: 'nexists', pattern: 1 } }, { a: 1 })).toEqual({ matches: true })
  })

  it('without permission fail with a reason', () => {
    expect(reasonOf(evaluate({ 'system.refused': { type: 'exists', pattern: 1 } }, { a: 1 }, scope))).toBe(
      'Failed to read the value of key "system.refused": needs key_value_pair_view',
    )
  })
})

describe('search', () => {
  const list = [
    { name: 'a', size: 1 },
    { name: 'b', size: 2 },
    { name: 'b', size: 3 },
  ]
  const search = (condition: unknown, pattern: unknown, value: unknown = list) =>
    evaluate({ 'trigger.list': { type: 'search', condition, pattern } }, { list: value, limit: 2, other: 1 })
  const isB = { 'item.name': { type: 'eq', pattern: 'b' } }
  const isOne = { 'item.size': { type: 'eq', pattern: 1 } }
  const isLarge = { 'item.size': { type: 'gt', pattern: 0 } }

  it.for<[condition: string, pattern: Record<string, unknown>, value: unknown, matches: boolean]>([
    ['any', isB, list, true],
    ['any', { ...isB, ...isOne }, list, false],
    ['any', { ...isB, 'item.size': { type: 'eq', pattern: 3 } }, list, true],
    ['any', {}, list, true],
    ['any', isB, [], false],
    ['any', isB, { name: 'b' }, true],
    ['any', isB, { name: 'a' }, false],
    ['all', isLarge, list, true],
    ['all', isB, list, false],
    ['all', isB, [], true],
    ['all', isB, { name: 'b' }, true],
    ['any2any', { ...isB, ...isOne }, list, true],
    ['any2any', { 'item.name': { type: 'eq', pattern: 'c' }, 'item.size': { type: 'eq', pattern: 9 } }, list, false],
    ['any2any', {}, list, false],
    ['all2any', { ...isB, ...isOne }, list, true],
    ['all2any', isB, list, false],
    ['all2any', isB, [], true],
    ['any', { item: { type: 'eq', pattern: 2 } }, [1, 2], true],
    ['any', { 'item[1]': { type: 'eq', pattern: 2 } }, [[1, 2]], true],
    [
      'any',
      { 'item.size#least': { type: 'gt', pattern: 1 }, 'item.size#most': { type: 'lt', pattern: 3 } },
      list,
      true,
    ],
    ['all', { 'item.size': { type: 'gt', pattern: '{{ trigger.limit - 2 }}' } }, list, true],
    ['all', { 'item.size': { type: 'eq', pattern: '{{ item.size }}' } }, list, true],
    ['any', { 'item.name': { type: 'eq', pattern: '{{ "b" if item.size == 1 else "z" }}' } }, list, false],
    ['any', { 'item.gone': { type: 'nexists' } }, list, true],
    ['any', { 'item.gone': { type: 'neq' } }, list, false],
    ['any', { 'item.name': { type: 'EQUALS', pattern: 'b' } }, list, true],
    [
      'any',
      { 'item.tags': { type: 'search', condition: 'all', pattern: { item: { type: 'startswith', pattern: 'x' } } } },
      [{ tags: ['y'] }, { tags: ['x1', 'x2'] }],
      true,
    ],
  ])('%s of %j', ([condition, pattern, value, matches]) => {
    const result = search(condition, pattern, value)
    expect(result.matches).toBe(matches)
    expect(reasonOf(result)).toBeUndefined()
  })

  it.for([undefined, null, '', 'every', 'Any', 'constructor', 5])(
    'lists the conditions if the given one is unknown: %s',
    (condition) => {
      expect(reasonOf(search(condition, isB))).toMatch(
        /^key "trigger\.list", operator search: .*any, all, any2any, all2any$/,
      )
    },
  )

  it.for([null, 'text', 5, true])('lists the conditions for a value that is no list: %j', (value) => {
    expect(reasonOf(search('any', isB, value))).toMatch(/any, all, any2any, all2any/)
  })

  it('skips items that cannot be compared, and gives the reason if no other item matches', () => {
    const isLess = { 'item.size': { type: 'lt', pattern: 5 } }
    expect(search('any', isLess, [{ size: 'x' }, { size: 1 }])).toEqual({ matches: true })
    expect(reasonOf(search('all', isLess, [{ size: 'x' }, { size: 1 }]))).toBe(
      `key "item.size", operator lt: '<' not supported between instances of 'str' and 'int'`,
    )
  })

  it.for<[pattern: unknown, message: string]>([
    [
      'text',
      'For field: trigger.list, the pattern of search must be an object of criteria with keys that start with "item."',
    ],
    [
      [],
      'For field: trigger.list, the pattern of search must be an object of criteria with keys that start with "item."',
    ],
    [
      { name: { type: 'eq', pattern: 1 } },
      'For field: name, keys within the pattern of search must start with "item."',
    ],
    [
      { 'trigger.a': { type: 'eq', pattern: 1 } },
      'For field: trigger.a, keys within the pattern of search must start with "item."',
    ],
    [{ 'item.a': { pattern: 1 } }, 'Operator not specified for field: item.a'],
    [{ 'item.a': { type: 'eq' } }, 'For field: item.a, no pattern specified for operator eq'],
    [
      { 'item.a': { type: 'Search', pattern: {} } },
      'For field: item.a, operator Search not in list of allowed operators: [',
    ],
  ])('rejects %j', ([pattern, message]) => {
    expect(refusal({ 'trigger.list': { type: 'search', condition: 'any', pattern } })).toContain(message)
    const rendered = evaluate(
      { 'trigger.list': { type: 'search', condition: 'any', pattern: '{{ trigger.pattern }}' } },
      { list, pattern },
    )
    expect(reasonOf(rendered)).toMatch(/^key "trigger\.list", operator search: /)
  })

  it('stops after a bounded amount of work', () => {
    const many = Array.from({ length: 300_000 }, () => ({ size: null }))
    for (const [condition, pattern] of [
      ['any', isOne],
      ['any', { 'item.size': { type: 'lt', pattern: 5 } }],
      ['all', { 'item.size': { type: 'neq', pattern: '{{ item.size or 1 }}' } }],
    ] as const) {
      const startedAt = computedMs()
      const result = search(condition, pattern, many)
      expect(computedMs() - startedAt).toBeLessThan(3_000)
      expect(reasonOf(result)).toMatch(/the comparison (needs more than 200000 steps|takes too long)|takes too long/)
    }
  })

  it('limits the nesting', () => {
    const nest = (depth: number): Record<string, unknown> =>
      depth === 0 ? isB : { item: { type: 'search', condition: 'any', pattern: nest(depth - 1) } }
    expect(refusal({ 'trigger.list': { type: 'search', condition: 'any', pattern: nest(4) } })).toBe('accepted')
    expect(refusal({ 'trigger.list': { type: 'search', condition: 'any', pattern: nest(5) } })).toBe(
      'For field: item, search is nested more than 5 levels deep',
    )
  })
})

describe('criteria that svc rejects when they are saved', () => {
  it.for<[criteria: Record<string, unknown>, message: string | RegExp]>([
    [{ 'trigger.a': {} }, 'Operator not specified for field: trigger.a'],
    [{ 'trigger.a': { type: null, pattern: 1 } }, 'Operator not specified for field: trigger.a'],
    [{ 'trigger.a': { type: '', pattern: 1 } }, 'Operator not specified for field: trigger.a'],
    [{ 'trigger.a': 'text' }, /^Operator not specified for field: trigger\.a; a criterion is an object/],
    [{ 'trigger.a': [] }, /^Operator not specified for field: trigger\.a; a criterion is an object/],
    [{ 'trigger.a': null }, /^Operator not specified for field: trigger\.a; a criterion is an object/],
    [{ 'trigger.a': { type: 'eq' } }, 'For field: trigger.a, no pattern specified for operator eq'],
    [{ 'trigger.a': { type: 'eq', pattern: null } }, 'For field: trigger.a, no pattern specified for operator eq'],
    [{ 'trigger.a': { type: 'exists' } }, 'For field: trigger.a, no pattern specified for operator exists'],
    [{ 'trigger.a': { type: 'nexists' } }, 'For field: trigger.a, no pattern specified for operator nexists'],
    [
      { 'trigger.a': { type: 'Equals', pattern: 1 } },
      /^For field: trigger\.a, operator Equals not in list of allowed operators: \['eq', 'equals', .*'search'\]$/,
    ],
    [{ 'trigger.a': { type: 'SEARCH', pattern: {} } }, /^For field: trigger\.a, operator SEARCH not in list/],
    [{ 'trigger.a': { type: 'constructor', pattern: 1 } }, /operator constructor not in list of allowed operators/],
    [{ 'trigger.a': { type: 5, pattern: 1 } }, /operator 5 not in list of allowed operators/],
    [{ 'trigger.a': { type: ['eq'], pattern: 1 } }, /not in list of allowed operators/],
    [
      { 'trigger.a b': { type: 'eq', pattern: 1 } },
      /^For field: trigger\.a b, the key is not a path: .* character 10; /,
    ],
    [{ '': { type: 'eq', pattern: 1 } }, /^For field: , the key is not a path: the path is empty/],
    [
      { 'trigger.a': { type: 'eq', pattern: 'x'.repeat(300_000) } },
      /^For field: trigger\.a, the patterns .* more than 262144/,
    ],
  ])('%j', ([criteria, message]) => {
    expect(refusal(criteria)).toMatch(message)
  })

  it('limits the number of criteria and the depth of patterns', () => {
    const many = (count: number) =>
      Object.fromEntries(
        Array.from({ length: count }, (_, index) => [`trigger.a#${index}`, { type: 'eq', pattern: 1 }]),
      )
    expect(refusal(many(500))).toBe('accepted')
    expect(refusal(many(501))).toMatch(/^For field: trigger\.a#500, a rule has at most 500 criteria/)
    const nest = (depth: number): unknown => (depth === 0 ? 1 : [nest(depth - 1)])
    expect(refusal({ 'trigger.a': { type: 'eq', pattern: nest(100) } })).toBe('accepted')
    expect(refusal({ 'trigger.a': { type: 'eq', pattern: nest(101) } })).toMatch(/more than 100 levels of nesting/)
    const shared = Array.from({ length: 60 }).reduce<unknown>((inner) => [inner, inner, inner, inner], 'x')
    expect(refusal({ 'trigger.a': { type: 'eq', pattern: shared } })).toMatch(/more than 262144/)
  })

  it('accepts patterns that fail at evaluation; findProblems reports them, checkCriteria rejects them', () => {
    const criteria = {
      'trigger.a': { type: 'regex', pattern: '[' },
      'trigger.b': { type: 'td_lt', pattern: 'soon' },
      'trigger.c': { type: 'eq', pattern: '{{ trigger. }}' },
      'trigger.d': { type: 'startswith', pattern: 5 },
      'trigger.e': { type: 'search', pattern: { 'item.a': { type: 'iregex', pattern: '(?=x)' } } },
      'trigger.f': { type: 'regex', pattern: '{{ trigger.expression }}' },
      'trigger.g': { type: 'regex', pattern: '^fine$' },
    }
    expect(refusal(criteria)).toBe('accepted')
    const problems = findProblems(criteria)
    expect(problems.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^key "trigger\.a", operator regex: the regular expression is invalid/),
      expect.stringMatching(/^key "trigger\.b", operator td_lt: the pattern must be a number of seconds/),
      expect.stringMatching(/^Failed to render pattern value "\{\{ trigger\. \}\}" for key "trigger\.c": /),
      expect.stringMatching(/^key "trigger\.d", operator startswith: the pattern must be a string, not 'int'$/),
      expect.stringMatching(/^key "trigger\.e", operator search: search has no condition; use one of any, /),
      expect.stringMatching(/^key "item\.a", operator iregex: the regular expression is invalid/),
    ])
    expect(problems.map(({ path }) => path)).toEqual([
      ...['a', 'b', 'c', 'd', 'e'].map((name) => [`trigger.${name}`]),
      ['trigger.e', 'pattern', 'item.a'],
    ])
    const rejected = Object.entries(criteria).flatMap(([key, criterion]) => {
      try {
        checkCriteria({ [key]: criterion })
        return []
      } catch {
        return key.slice(-1)
      }
    })
    expect(rejected.join('')).toBe('abcde')
    // A condition is compared with the four names at evaluation (contract 05, 5.6).
    checkCriteria({ 'trigger.e': { type: 'search', pattern: { 'item.a': { type: 'exists' } } } })
    expect(findProblems({ 'trigger.a': { type: 'eq', pattern: 1 }, 'system.b': { type: 'eq', pattern: 1 } })).toEqual(
      [],
    )
    expect(findProblems({ 'body.a': { type: 'eq', pattern: 1 } })).toEqual([
      {
        message: expect.stringMatching(/^The key "body\.a" never has a value: it must start with "trigger\."/),
        path: ['body.a'],
      },
    ])
  })
})

describe('random criteria', () => {
  const seed = seedOfRun()
  const random = createRandom(seed)
  const below = (limit: number): number => random.below(limit)
  const pick = <T>(items: readonly [T, ...T[]]): T => random.pick(items)
  const text = (): string =>
    pick([
      '',
      'a',
      'true',
      '2024-01-01',
      '10',
      '(a+)+$',
      '[',
      '\\',
      '*a*[!b-',
      '{{ trigger.a }}',
      '{{ item }}',
      '{{ trigger.none }}',
      '{{ "a" * 100000 }}',
      '{% if',
      '\ud800',
      '__proto__',
      'a'.repeat(50_000),
      '(?:a{1,50}){1,50}b',
    ])
  const value = (depth = 0): unknown => {
    const kind = below(depth > 2 ? 6 : 10)
    if (kind < 3) return text()
    if (kind === 3) return pick([0, -1, 1.5, 1e308, 20_240_101])
    if (kind === 4) return pick([true, false])
    if (kind === 5) return null
    const inner = Array.from({ length: below(4) }, () => value(depth + 1))
    return kind < 8
      ? inner
      : Object.fromEntries(inner.map((each) => [pick(['a', 'item.a', 'type', '__proto__']), each]))
  }
  const criterion = (depth = 0): unknown => {
    if (depth > 2 || below(4) > 0) return { type: pick(operatorNames as [string, ...string[]]), pattern: value() } // there are names
    const pattern = Object.fromEntries([0, 1].map((index) => [`item.a#${index}`, criterion(depth + 1)]))
    return { type: 'search', condition: pick(['any', 'all', 'any2any', 'all2any', 'none']), pattern }
  }
  const key = (): string =>
    pick(['trigger.a', 'trigger', 'trigger.a[*]', 'trigger..a', '*', 'system.a', 'trigger.a[0].a', 'trigger.__proto__'])

  it(`are rejected or evaluated in bounded time without an internal error (seed ${seed})`, { timeout: 240_000 }, () => {
    const slow: string[] = []
    const outcomes = { refused: 0, matched: 0, unmatched: 0, failed: 0 }
    for (let round = 0; round < 4_000; round += 1) {
      const criteria = { [key()]: criterion() }
      const payload = { a: value() }
      if (refusal(criteria) !== 'accepted') {
        outcomes.refused += 1
        continue
      }
      const startedAt = computedMs()
      const result = evaluate(criteria, payload)
      const took = computedMs() - startedAt
      if (took > 2_000) slow.push(`${took} ms of work for ${JSON.stringify([criteria, payload]).slice(0, 1_000)}`)
      outcomes[result.matches ? 'matched' : result.reason === undefined ? 'unmatched' : 'failed'] += 1
      JSON.stringify(result)
    }
    expect(slow).toEqual([])
    for (const count of Object.values(outcomes)) expect(count).toBeGreaterThan(50)
  })
})
