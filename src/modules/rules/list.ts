/** From query parameters to a page of rules (contract 05, 5.5). */
import { flagFilter, parseItems, textFilter, type QueryParameter, type QueryValue } from '../../http/index.ts'
import type { RuleFilter } from './store.ts'

type Query = Readonly<Record<string, QueryValue>>

const text = (description: string): QueryParameter => ({ type: 'string', description })

export const ruleFilters: Record<string, QueryParameter> = {
  name: text('Only rules of this name.'),
  pack: text('Only rules of this pack.'),
  action: text('Only rules with this action, by its reference.'),
  trigger: { type: 'array', description: 'Only rules bound to these triggers, by their references; at most 100.' },
  enabled: { type: 'boolean', description: 'Only rules that are enabled, or that are not.' },
  user: text('Only rules that this user wrote last.'),
}

/** @param triggerIdOf by reference @throws QUERY_INVALID */
export function parseRuleFilter(query: Query, triggerIdOf: (ref: string) => string | undefined): RuleFilter {
  const triggers = parseItems(query['trigger'])
  return {
    name: textFilter(query, 'name'),
    pack: textFilter(query, 'pack'),
    action: textFilter(query, 'action'),
    triggers: triggers?.flatMap((ref) => triggerIdOf(ref) ?? []),
    enabled: flagFilter(query, 'enabled'),
    user: textFilter(query, 'user'),
  }
}
