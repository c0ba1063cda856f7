import { describe, expect, test } from 'vitest'
import { describeRuleOutcome } from './rule-outcome.ts'

const rule = { id: '0123456789abcdef01234567', ref: 'shop.on_order', uid: 'rule:shop:on_order', type: 'standard' }
const id = '6000000000000000000000aa'

describe('verdicts in words', () => {
  test('the criterion that did not hold, with its operator, its pattern and the value it saw', () => {
    const criterion = { key: 'trigger.body.kind', type: 'equals', pattern: 'order', value: null }
    expect(describeRuleOutcome({ rule, verdict: 'not_matched', criterion })).toBe(
      'shop.on_order does not match:\n  key: trigger.body.kind\n  type: equals\n  pattern: order\n  value: null\n',
    )
    const search = {
      ...criterion,
      type: 'search',
      condition: 'any',
      pattern: { 'item.a': { type: 'exists' } },
      value: [],
    }
    expect(describeRuleOutcome({ rule, verdict: 'not_matched', criterion: search })).toBe(
      'shop.on_order does not match:\n  key: trigger.body.kind\n  type: search\n  pattern:\n    item.a:\n      type: exists\n' +
        '  condition: any\n  value: []\n',
    )
  })

  test('why something cannot be compared', () => {
    const criterion = { key: 'trigger.n', type: 'lessthan', pattern: 3, value: 'x' }
    const said = describeRuleOutcome({ rule, verdict: 'failed', criterion, reason: 'a text and a number' })
    expect(said).toMatch(/^shop\.on_order does not match: a value cannot be compared:\n {2}key: trigger\.n\n/)
    expect(said).toMatch(/\n {2}value: x\n {2}reason: a text and a number\n$/)
  })

  test('that the rule saw a part of the payload, once', () => {
    const reduced = 'The payload is reduced to id: a permission is missing.'
    expect(describeRuleOutcome({ rule, verdict: 'matched', reduced })).toContain(`\n  reduced: '${reduced}'\n`)
    const criterion = { key: 'trigger.n', type: 'eq', pattern: 3, value: null }
    const reason = `The rule cannot see the value. ${reduced}`
    expect(describeRuleOutcome({ rule, verdict: 'not_matched', criterion, reason, reduced })).not.toContain(
      '  reduced:',
    )
  })

  test('what a rule has started, or could not start', () => {
    const done = { id, status: 'succeeded', execution_id: '6000000000000000000000bb' }
    expect(describeRuleOutcome({ rule, verdict: 'matched', enforcement: done })).toBe(
      `shop.on_order matches:\n  enforcement: ${id}\n  execution: 6000000000000000000000bb\n`,
    )
    const refused = { id, status: 'failed', failure_reason: 'Action "a.b" doesn\'t exist' }
    expect(describeRuleOutcome({ rule, verdict: 'matched', enforcement: refused })).toMatch(
      /\n {2}failure_reason: .*Action "a\.b" doesn/,
    )
  })

  test.each([
    ['disabled', 'shop.on_order is disabled\n'],
    ['not_needed', 'shop.on_order is a backstop rule and did not run: a standard rule matches\n'],
    ['matched', 'shop.on_order matches\n'],
    ['of a later server', 'shop.on_order of a later server\n'],
    ['constructor', 'shop.on_order constructor\n'],
  ])('%s: one line', (verdict, line) => {
    expect(describeRuleOutcome({ rule, verdict })).toBe(line)
  })

  test('nothing can steer a terminal or fill it without end', () => {
    const value = `\u001b]0;x\u0007${'long '.repeat(10_000)}`
    const criterion = { key: 'trigger.a', type: 'eq', pattern: '\u202e', value }
    const said = describeRuleOutcome({ rule: { ref: 'a\u001b[2Jb' }, verdict: 'not_matched', criterion })
    expect(said.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u)
    expect(said.length).toBeLessThan(11_000)
    expect(said).toMatch(/long….*\n$/)
  })
})
