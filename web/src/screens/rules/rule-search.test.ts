import { describe, expect, it } from 'vitest'
import { ruleRows, type ListedRule, type RuleFilter } from './rule-search.ts'

const rule = (ref: string, more: Partial<ListedRule> = {}): ListedRule => {
  const [pack = '', name = ''] = ref.split('.')
  return {
    id: ref,
    ref,
    pack,
    name,
    description: '',
    enabled: true,
    type: { ref: 'standard', parameters: {} },
    trigger: { type: 'core.svc.webhook', ref: 'core.x', parameters: { url: 'orders' } },
    action: { ref: 'core.local' },
    ...more,
  }
}
const rules = [
  rule('shop.push', { enabled: false }),
  rule('core.b', { description: 'Tells the Shop.' }),
  rule('core.a', { action: { ref: 'core.http' } }),
]
const refs = (filter: Partial<RuleFilter>): string[] =>
  ruleRows(rules, { search: '', enabled: '', trigger: '', action: '', ...filter }).map((row) =>
    row.kind === 'pack' ? `${row.pack} ${row.count}` : row.rule.ref,
  )

describe('the list of rules', () => {
  it('is in the order of packs and names', () => {
    expect(refs({})).toEqual(['core 2', 'core.a', 'core.b', 'shop 1', 'shop.push'])
  })

  it('is searched for words, wherever in the rule they are', () => {
    expect(refs({ search: ' SHOP ' })).toEqual(['core 1', 'core.b', 'shop 1', 'shop.push'])
    expect(refs({ search: 'orders http' })).toEqual(['core 1', 'core.a'])
    expect(refs({ search: 'nothing' })).toEqual([])
  })

  it('is filtered', () => {
    expect(refs({ enabled: 'false' })).toEqual(['shop 1', 'shop.push'])
    expect(refs({ action: 'core.http' })).toEqual(['core 1', 'core.a'])
    expect(refs({ trigger: 'other.type' })).toEqual([])
  })
})
