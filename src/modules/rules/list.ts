/** Parses the query parameters of rule lists (contract 05, 5.5). */
import { flagFilter, idQuery, parseItems, textFilter, type QueryParameter, type QueryValue } from '../../http/index.ts'
import type { RuleFilter } from './store.ts'

export type RuleQuery = Readonly<Record<string, QueryValue>>

const text = (description: string) => ({ type: 'string', description }) as const

export const ruleFilters = {
  name: text('Only rules with this name.'),
  pack: text('Only rules of this pack.'),
  action: text('Only rules with this action, by its reference.'),
  trigger: { type: 'array', description: 'Only rules bound to these triggers, by their references; at most 100.' },
  enabled: { type: 'boolean', description: 'Only enabled rules, or only disabled ones.' },
  user: text('Only rules that this user wrote last.'),
  ...idQuery,
} as const satisfies Record<string, QueryParameter>

/** @param triggerIdOf id of a trigger by its reference @throws QUERY_INVALID */
export function parseRuleFilter(query: RuleQuery, triggerIdOf: (ref: string) => string | undefined): RuleFilter {
  const triggers = parseItems(query['trigger'])
  return {
    name: textFilter(query, 'name'),
    pack: textFilter(query, 'pack'),
    action: textFilter(query, 'action'),
    triggers: triggers?.flatMap((ref) => triggerIdOf(ref) ?? []),
    enabled: flagFilter(query, 'enabled'),
    user: textFilter(query, 'user'),
    ids: parseItems(query['id']),
  }
}
