import { describe, expect, it } from 'vitest'
import type { OperatorRecord } from '../../api/records.ts'
import { noOperators, operatorsByName, criterionSentence, criterionSentences, patternText } from './criteria-text.ts'

const records: OperatorRecord[] = [
  { name: 'equals', aliases: ['eq'], phrase: 'is', description: '', pattern: 'any' },
  { name: 'exists', aliases: [], phrase: 'exists', description: '', pattern: 'none' },
  {
    name: 'search',
    aliases: [],
    phrase: 'has items that match',
    description: '',
    pattern: 'criteria',
    conditions: [{ name: 'any', phrase: 'has an item for which all of this is true:' }],
  },
]
const operators = operatorsByName(records)

describe('a criterion in words', () => {
  it('tells key, operator by any of its names, and the pattern as JSON', () => {
    const wanted = { key: 'trigger.a', phrase: 'is', pattern: '"x"', items: [] }
    expect(criterionSentence('trigger.a', { type: 'equals', pattern: 'x' }, operators)).toEqual(wanted)
    expect(criterionSentence('trigger.a', { type: 'eq', pattern: 'x' }, operators)).toEqual(wanted)
    expect(criterionSentence('trigger.a', { type: 'eq', pattern: 1 }, operators).pattern).toBe('1')
  })

  it('has no pattern where there is nothing to compare with', () => {
    expect(criterionSentence('k', { type: 'exists', pattern: 'whatever' }, operators).pattern).toBeUndefined()
  })

  it('tells what has to hold for the items of a search, whose operators ignore case', () => {
    const criterion = { type: 'search', condition: 'any', pattern: { 'item.id': { type: 'EQUALS', pattern: 3 } } }
    expect(criterionSentence('trigger.items', criterion, operators)).toEqual({
      key: 'trigger.items',
      phrase: 'has an item for which all of this is true:',
      pattern: undefined,
      items: [{ key: 'item.id', phrase: 'is', pattern: '3', items: [] }],
    })
    expect(criterionSentence('k', { ...criterion, condition: 'most' }, operators).phrase).toContain('"most"')
    expect(criterionSentence('k', { ...criterion, pattern: '{{ trigger.p }}' }, operators).pattern).toBe(
      '"{{ trigger.p }}"',
    )
  })

  it('calls what it does not know by its name, and takes whatever a record has', () => {
    expect(criterionSentence('k', { type: 'equals', pattern: 1 }, noOperators).phrase).toBe('equals')
    expect(criterionSentence('k', { type: 'toString', pattern: 1 }, operators).phrase).toBe('toString')
    expect(
      criterionSentences({ a: null, b: 7, c: [], d: { type: {} } }, operators).map(({ pattern }) => pattern),
    ).toEqual(Array(4).fill('null'))
  })

  it('ends however deep a search is nested', () => {
    let pattern: unknown = 1
    for (let i = 0; i < 1000; i += 1) pattern = { item: { type: 'search', condition: 'any', pattern } }
    let found = criterionSentences(pattern as Record<string, unknown>, operators)
    let depth = 0
    for (; found.length > 0; depth += 1) found = found[0]?.items ?? []
    expect(depth).toBeLessThan(12)
  })

  it('shows nothing as null', () => {
    expect(patternText(undefined)).toBe('null')
  })
})
