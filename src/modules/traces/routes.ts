/** Endpoints of contract 07, 7.2. */
import { queryInvalid, resourceNotFound } from '../../core/errors.ts'
import {
  attributeQuery,
  isNullFilter,
  jsonReply,
  listEndpoint,
  listReply,
  pageHeaders,
  parseAttributes,
  parseItems,
  parsePlace,
  placeQuery,
  route,
  textFilter,
  type ApiRequest,
  type AttributeOptions,
  type QueryParameter,
  type QueryValue,
  type Rights,
  type Route,
  type SortField,
} from '../../http/index.ts'
import { isId } from '../../core/ids.ts'
import { ImportOutcomes } from '../../core/import-outcomes.ts'
import type { TraceTable } from '../../db/index.ts'
import { Type } from '../../lib/schema/index.ts'
import { summaryAttributes, toMember, traceAttributes, writeTrace } from './record.ts'
import type { ImportTraces } from './import.ts'
import type { TraceFilter, TraceSort, TraceStore } from './store.ts'
import { Trace, TraceImport, TraceMemberRecord } from './types.ts'
import { traceResource } from '../../core/permissions.ts'

const text = (description: string): QueryParameter => ({ type: 'string', description })

const filterParameters: Record<string, QueryParameter> = {
  id: { type: 'array', description: 'At most 100 ids.' },
  trace_tag: text('Trace tag.'),
  trace_tag_prefix: text('Prefix of the trace tag.'),
  execution: text('Id of an execution in it; `null` for traces without any.'),
  rule: text('Id of a rule that matched in it; `null` for traces without any.'),
  trigger_instance: text('Id of a trigger instance in it; `null` for traces without any.'),
  sort_asc: text('`True`: oldest first.'),
  sort_desc: text('`True`: newest first, the default.'),
}

const MAX_MEMBERS = 1000

export function createTraceRoutes({
  store,
  maxPageSize,
  importTraces,
}: {
  store: TraceStore
  maxPageSize: number
  readonly importTraces: ImportTraces
}): Route[] {
  /** @throws RESOURCE_NOT_FOUND */
  function get({ params: { id = '' } }: Pick<ApiRequest, 'params'>): TraceTable {
    const trace = isId(id) ? store.find(id) : undefined
    if (trace === undefined) throw resourceNotFound(id)
    return trace
  }

  return [
    listEndpoint({
      path: '/traces',
      permission: 'trace_list',
      summary: 'Lists traces, newest first.',
      record: Trace,
      query: { ...filterParameters, ...placeQuery },
      page: { defaultLimit: 100, maxPageSize },
      attributes: attributesFor,
      sort: ['id', 'start_timestamp', 'trace_tag'],
      async find({ query, page, projection, sort, rights }) {
        const filter = parseFilter(query)
        const within = visibleTo(rights)
        if (within !== undefined) filter.within = within
        const order = orderOf(sort, query)
        const place = parsePlace(query, order.tag === undefined)
        const [records, total] = await Promise.all([
          store.search({ filter, sort: order, ...page, ...(place === undefined ? {} : { place }) }),
          // A client that continues knows the total already, and the store need not count.
          place === undefined ? store.total(filter) : undefined,
        ])
        return { records, total, write: (trace: TraceTable) => writeTrace(store, trace, projection) }
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/traces/:id',
      permission: 'trace_view',
      resource: (request) => traceResource(get(request).id),
      summary: 'Gets one trace with all its components.',
      query: attributeQuery,
      response: Trace,
      failures: [400, 404],
      handler: (request) =>
        jsonReply(writeTrace(store, get(request), parseAttributes(request.query, attributesFor(request.query)))),
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/traces/:id/components',
      permission: 'trace_view',
      resource: (request) => traceResource(get(request).id),
      summary: 'Lists the components of a trace in the order in which they were added.',
      query: {
        after_seq: { type: 'integer', description: 'Only components after this number.' },
        before_seq: { type: 'integer', description: 'Only components before this number.' },
        sort_desc: text('Newest first when not empty.'),
        limit: { type: 'integer', description: `Most components to return; at most ${MAX_MEMBERS}, the default.` },
      },
      response: Type.Array(TraceMemberRecord),
      failures: [400, 404, 503],
      async handler(request) {
        const { query } = request
        const { id } = get(request)
        const { after_seq: after, before_seq: before } = query
        const range = {
          traceId: id,
          after: typeof after === 'number' ? after : 0,
          before: typeof before === 'number' ? before : Number.MAX_SAFE_INTEGER,
          isDescending: textFilter(query, 'sort_desc') !== undefined,
          limit: memberLimit(query['limit']),
        }
        // The first page had the total; further pages skip the count.
        const total = after === undefined && before === undefined ? await store.countMembers(id) : undefined
        return listReply(store.members(range).map(toMember), pageHeaders({ limit: range.limit, offset: 0 }, total))
      },
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/traces/import',
      permission: 'administrator',
      summary: 'Takes over traces of another server, to read them here. Nothing follows from them.',
      body: TraceImport,
      response: ImportOutcomes,
      failures: [400, 503],
      handler: (request) => importTraces(request, request.body),
    }),
  ]
}

/** @throws QUERY_INVALID */
function memberLimit(given: QueryValue): number {
  if (typeof given !== 'number') return MAX_MEMBERS
  if (given < 1 || given > MAX_MEMBERS)
    throw queryInvalid(`Limit, "${given}" specified, must be from 1 to ${MAX_MEMBERS}.`)
  return given
}

function attributesFor(query: { include_attributes?: unknown }): AttributeOptions {
  return {
    // Attributes that cost more are returned only to who names them.
    known: query.include_attributes === undefined ? traceAttributes : [...traceAttributes, ...summaryAttributes],
    excludable: traceAttributes.filter((name) => name !== 'id'),
    always: ['id'],
  }
}

/** @throws QUERY_INVALID */
function parseFilter(query: Record<string, QueryValue>): TraceFilter {
  const filter: TraceFilter = {}
  const ids = parseItems(query['id'])
  if (ids !== undefined) filter.ids = ids
  const tag = textFilter(query, 'trace_tag')
  if (tag !== undefined) filter.trace_tag = tag
  const prefix = textFilter(query, 'trace_tag_prefix')
  if (prefix !== undefined) filter.trace_tag_prefix = prefix
  for (const name of ['execution', 'rule', 'trigger_instance'] as const) {
    const value = textFilter(query, name)
    if (value !== undefined) filter[name] = isNullFilter(value) ? null : value
  }
  return filter
}

/** Ids sort by creation, so a field after `id` decides nothing. */
function orderOf(
  sort: readonly SortField<'id' | 'start_timestamp' | 'trace_tag'>[],
  query: Record<string, QueryValue>,
): TraceSort {
  const [first, second] = sort.map(
    ({ name, descending }) => ({ name, direction: descending ? 'desc' : 'asc' }) as const,
  )
  if (first === undefined) {
    return { id: query['sort_asc'] === 'True' && query['sort_desc'] !== 'True' ? 'asc' : 'desc' }
  }
  if (first.name !== 'trace_tag') return { id: first.direction }
  return { tag: first.direction, id: second?.direction ?? first.direction }
}

/** Undefined: all. Each grant names one trace, so the list is as long as the grants. */
function visibleTo(rights: Rights): string[] | undefined {
  if (rights.may('trace_view')) return undefined
  const { uid: prefix } = traceResource('')
  return rights.named('trace_view').map((uid) => uid.slice(prefix.length))
}
