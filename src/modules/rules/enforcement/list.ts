/** From query parameters to a page of enforcements (contract 05, 5.7). */
import {
  isNullFilter,
  parseItems,
  parseSort,
  parseTime,
  textFilter,
  type SortField,
  type QueryParameter,
  type QueryValue,
} from '../../../http/index.ts'
import type { EnforcementFilter, EnforcementSortColumn } from './store.ts'

type Query = Readonly<Record<string, QueryValue>>

const text = (description: string): QueryParameter => ({ type: 'string', description })

export const enforcementFilters: Record<string, QueryParameter> = {
  rule_ref: text('Only those of the rule with this reference.'),
  rule_id: text('Only those of the rule with this id.'),
  execution: text('Only the one that this execution came of; `null`: those that no execution came of.'),
  trigger_instance: { type: 'array', description: 'Only those of these trigger instances; at most 100 ids.' },
  enforced_at_gt: text('Enforced after this time.'),
  enforced_at_lt: text('Enforced before this time.'),
  sort: { type: 'array', description: 'Field names, `-` before a name for descending. Default: `-enforced_at`.' },
}

const sortColumns: Readonly<Record<string, EnforcementSortColumn>> = {
  id: 'id',
  enforced_at: 'id',
  enforced_at_gt: 'id',
  enforced_at_lt: 'id',
  rule_ref: 'rule_ref',
  rule_id: 'rule_id',
  execution: 'execution_id',
  trigger_instance: 'trigger_instance_id',
}

/** @throws QUERY_INVALID */
export function parseEnforcementQuery(query: Query): {
  filter: EnforcementFilter
  sort: SortField<EnforcementSortColumn>[]
} {
  const filter: EnforcementFilter = {}
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
  for (const { name, descending } of parseSort(query['sort'], Object.keys(sortColumns))) {
    const column = sortColumns[name] ?? 'id'
    if (!sort.some((field) => field.name === column)) sort.push({ name: column, descending })
  }
  return { filter, sort: sort.length > 0 ? sort : [{ name: 'id', descending: true }] }
}
