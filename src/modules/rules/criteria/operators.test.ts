import { readFileSync } from 'node:fs'
import { describe, expect, it, test } from 'vitest'
import { computedMs } from '../../../../tests/helpers/work.ts'
import { TemplateError } from '../../../lib/template/render.ts'
import { Budget, defaultLimits } from '../../../lib/template/limits.ts'
import type { Value } from '../../../lib/template/values.ts'
import { findOperator, operatorNames, operatorRecords, operators, SEARCH } from './operators.ts'

const limits = { ...defaultLimits, maxWork: 16 * 1024 * 1024 }

/** Undefined: value and pattern cannot be compared. */
function compare(name: string, value: Value, pattern: Value): boolean | undefined {
  const operator = findOperator(name)
  if (operator === undefined) throw new Error(`there is no operator ${name}`)
  if (pattern === null && operator.acceptsNull !== true) return false
  const budget = new Budget(limits, 'the comparison')
  try {
    return operator.prepare(pattern, budget)(value, { budget, now: Date.UTC(2024, 0, 1) * 1_000 })
  } catch (error) {
    if (error instanceof TemplateError) return undefined
    throw error
  }
}

test('operatorRecords lists every operator, each with a phrase of its own', () => {
  const names = operatorRecords.flatMap(({ name, aliases }) => [name, ...aliases])
  expect(names.toSorted()).toEqual(operatorNames.toSorted())
  const phrases = operatorRecords.map(({ phrase }) => phrase)
  expect(new Set(phrases).size).toBe(phrases.length)
  expect(operatorRecords.find(({ name }) => name === 'equals')).toEqual({
    name: 'equals',
    aliases: ['eq'],
    phrase: 'is',
    description: 'Types must be equal: 1 is not "1".',
    pattern: 'any',
  })
  expect(operatorRecords.filter(({ conditions }) => conditions !== undefined).map(({ name }) => name)).toEqual([SEARCH])
})

test.each(operatorRecords.filter(({ pattern }) => pattern !== 'criteria'))(
  '$name accepts the documented kind of pattern: $pattern',
  ({ name, pattern }) => {
    const refuses = (given: Value): boolean => {
      try {
        findOperator(name)?.prepare(given, new Budget(limits, 'the comparison'))
        return false
      } catch {
        return true
      }
    }
    const [isOrder, isIn] = [/than$/, /inside$/].map((kind) => kind.test(name))
    expect([refuses('5'), refuses(5), refuses({ a: 1 })]).toEqual(
      {
        any: [false, isIn, isOrder],
        none: [false, false, false],
        text: [false, true, true],
        seconds: [false, false, true],
      }[
        pattern as 'any' // those of `criteria` are not here
      ],
    )
  },
)

describe('operators', () => {
  // The generator writes this shape.
  const golden = JSON.parse(
    readFileSync(new URL('../../../../tests/golden/criteria/comparisons.json', import.meta.url), 'utf8'),
  ) as { cases: [name: string, value: Value, pattern: Value, result: boolean | null][] }

  it.for([...new Set(golden.cases.map(([name]) => name))])('%s compares as Python does', (name) => {
    const cases = golden.cases.filter(([each]) => each === name)
    expect(cases.length).toBeGreaterThanOrEqual(50)
    const differing = cases.filter(([, value, pattern, result]) => (compare(name, value, pattern) ?? null) !== result)
    expect(differing).toEqual([])
  })

  it('names are unique and in lower case', () => {
    expect(new Set(operatorNames).size).toBe(operatorNames.length)
    expect(operatorNames.filter((name) => name !== name.toLowerCase())).toEqual([])
    expect(operatorNames).toHaveLength(operators.flatMap(({ names }) => names).length + 1)
    expect(operatorNames).toContain(SEARCH)
    for (const name of ['constructor', '__proto__', 'toString']) expect(findOperator(name)).toBeUndefined()
  })
})

describe('hostile patterns', () => {
  const long = 'a'.repeat(200_000)

  it.for<[name: string, value: string, pattern: string]>([
    ['regex', `${long}!`, '(a+)+$'],
    ['regex', `${long}!`, '^(a|a)*$'],
    ['regex', `${long}!`, '(a|aa)+$'],
    ['regex', `${long}!`, '^([a-zA-Z]+)*$'],
    ['regex', `${long}!`, '(.*a){12}$'],
    ['regex', `${long}!`, '^(([a-z])+.)+[A-Z]([a-z])+$'],
    ['iregex', `${long}!`, '(A+)+$'],
    ['iregex', `${long}!`, '(x+x+)+y|(a*)*b'],
    ['matchregex', `${long}!`, '(a*)*b'],
    ['matchregex', `${long}!`, '(?:a?){50}a{50}$'],
    ['regex', 'ab'.repeat(100_000), '[ab]*a[ab]{20}[cd]'],
    ['regex', 'ab'.repeat(100_000), '(?:a?){500}a{500}'],
    ['regex', 'a', '((a{0,100}){0,100}){0,100}'],
    ['regex', 'a', `${'('.repeat(4_000)}a`],
    ['regex', 'a', '(?=a)a'],
    ['regex', 'a', '(a)\\1'],
    ['matchwildcard', long, `${'*a'.repeat(500)}b`],
    ['matchwildcard', long, `*${'a'.repeat(4_000)}b`],
    ['contains', 'a'.repeat(10_000_000), `${'a'.repeat(200_000)}b`],
    ['icontains', 'a'.repeat(10_000_000), `${'a'.repeat(200_000)}b`],
    ['eq', `${'a'.repeat(10_000_000)}b`, `${'a'.repeat(10_000_000)}c`],
    ['lt', `${'a'.repeat(10_000_000)}b`, `${'a'.repeat(10_000_000)}a`],
    ['td_lt', '1'.repeat(10_000_000), '5'],
    ['td_lt', '2024-01-01', '9'.repeat(1_000_000)],
  ])('%s stays within the work limit', ([name, value, pattern]) => {
    const startedAt = computedMs()
    expect(compare(name, value, pattern)).not.toBe(true)
    expect(computedMs() - startedAt).toBeLessThan(3_000)
  })

  it('name the limit in the error', () => {
    const budget = new Budget(limits, 'the comparison')
    const run = findOperator('regex')?.prepare('[ab]*a[ab]{20}[cd]', budget)
    expect(() => run?.('ab'.repeat(1_000_000), { budget, now: 0 })).toThrow(
      /^the value has 2000000 characters; svc runs this regular expression on at most \d{6}$/,
    )
    const contains = findOperator('contains')?.prepare('x', budget)
    expect(() => contains?.('ab'.repeat(10_000_000), { budget, now: 0 })).toThrow(
      'the comparison handles more than 16777216 characters of text',
    )
  })
})
