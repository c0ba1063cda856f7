/** Parses the query parameters of enforcement lists (contract 05, 5.7). */
import {
  idQuery,
  isNullFilter,
  parseItems,
  parseTime,
  textFilter,
  type SortField,
  type QueryParameter,
  type QueryValue,
} from '../../../http/index.ts'
import type { EnforcementFilter, EnforcementSortColumn } from './store.ts'

type Query = Readonly<Record<string, QueryValue>>

const text = (description: string) => ({ type: 'string', description }) as const

export const enforcementFilters = {
  ...idQuery,
  rule_ref: text('Only enforcements of the rule with this reference.'),
  rule_id: text('Only enforcements of the rule with this id.'),
  execution: text('Only the enforcement that started this execution; `null`: enforcements without an execution.'),
  trigger_instance: { type: 'array', description: 'Only enforcements of these trigger instances; at most 100 ids.' },
  enforced_at_gt: text('Only enforcements after this time.'),
  enforced_at_lt: text('Only enforcements before this time.'),
} as const satisfies Record<string, QueryParameter>

const sortColumns = {
  id: 'id',
  enforced_at: 'id',
  enforced_at_gt: 'id',
  enforced_at_lt: 'id',
  rule_ref: 'rule_ref',
  rule_id: 'rule_id',
  execution: 'execution_id',
  trigger_instance: 'trigger_instance_id',
} as const satisfies Record<string, EnforcementSortColumn>

export type EnforcementSortName = keyof typeof sortColumns

export const enforcementSortNames: readonly EnforcementSortName[] = [
  'id',
  'enforced_at',
  'enforced_at_gt',
  'enforced_at_lt',
  'rule_ref',
  'rule_id',
  'execution',
  'trigger_instance',
]

/** @throws QUERY_INVALID */
export function parseEnforcementQuery(
  query: Query,
  given: readonly SortField<EnforcementSortName>[],
): {
  filter: EnforcementFilter
  sort: SortField<EnforcementSortColumn>[]
} {
  const filter: EnforcementFilter = {}
  const ids = parseItems(query['id'])
  if (ids !== undefined) filter.ids = ids
  for (const name of ['rule_ref', 'rule_id'] as const) {
    const value = textFilter(query, name)
    if (value !== undefined) filter[name] = value
  }
  const instances = parseItems(query['trigger_instance'])
  if (instances !== undefined) filter.trigger_instances = instances
  const execution = textFilter(query, 'execution')
  if (execution !== undefined) filter.execution = isNullFilter(execution) ? null : execution
  const after = parseTime(query, 'enforced_at_gt')
  if (after !== undefined) filter.after = after
  const before = parseTime(query, 'enforced_at_lt')
  if (before !== undefined) filter.before = before

  const sort: SortField<EnforcementSortColumn>[] = []
  for (const { name, descending } of given) {
    const column = sortColumns[name]
    if (!sort.some((field) => field.name === column)) sort.push({ name: column, descending })
  }
  return { filter, sort: sort.length > 0 ? sort : [{ name: 'id', descending: true }] }
}
