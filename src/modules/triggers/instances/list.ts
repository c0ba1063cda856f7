/** Parses the query parameters of trigger instance lists (contract 05, 5.3). */
import {
  parseItems,
  parsePlace,
  parseTime,
  placeQuery,
  textFilter,
  type Place,
  type QueryParameter,
  type QueryValue,
  type SortField,
} from '../../../http/index.ts'
import type { InstanceFilter, InstanceSort, InstanceSortColumn } from './store.ts'

export const instanceFilters = {
  id: { type: 'array', description: 'At most 100 ids.' },
  trigger: { type: 'array', description: 'References of triggers, at most 100.' },
  trigger_type: { type: 'string', description: 'Reference of the trigger type.' },
  status: { type: 'string', description: 'pending, processed or processing_failed.' },
  timestamp_gt: { type: 'string', description: 'Occurred after this time.' },
  timestamp_lt: { type: 'string', description: 'Occurred before this time.' },
  ...placeQuery,
} as const satisfies Record<string, QueryParameter>

const sortColumns = {
  id: 'id',
  timestamp: 'id',
  occurrence_time: 'id',
  trigger: 'trigger',
  trigger_type: 'trigger_type',
  status: 'status',
} as const satisfies Record<string, InstanceSortColumn>

type SortName = keyof typeof sortColumns

export const instanceSortNames = [
  'id',
  'timestamp',
  'occurrence_time',
  'trigger',
  'trigger_type',
  'status',
] as const satisfies SortName[]

/** @throws QUERY_INVALID */
export function parseInstanceQuery(
  query: Readonly<Record<string, QueryValue>>,
  given: readonly SortField<SortName>[],
): {
  filter: InstanceFilter
  sort: InstanceSort[]
  place?: Place
} {
  const filter: InstanceFilter = {}
  const ids = parseItems(query['id'])
  if (ids !== undefined) filter.ids = ids
  const triggers = parseItems(query['trigger'])
  if (triggers !== undefined) filter.triggers = [...new Set(triggers)]
  for (const name of ['trigger_type', 'status'] as const) {
    const value = textFilter(query, name)
    if (value !== undefined) filter[name] = value
  }
  const after = parseTime(query, 'timestamp_gt')
  const before = parseTime(query, 'timestamp_lt')
  if (after !== undefined) filter.after = after
  if (before !== undefined) filter.before = before
  const sort = given.map(({ name, descending }) => ({ column: sortColumns[name], descending }))
  const place = parsePlace(
    query,
    sort.every(({ column }) => column === 'id'),
  )
  return {
    filter,
    sort: sort.length > 0 ? sort : [{ column: 'id', descending: true }],
    ...(place === undefined ? {} : { place }),
  }
}
