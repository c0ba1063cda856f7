/** Endpoints of contract 07, 7.2. */
import { queryInvalid, resourceNotFound } from '../../core/errors.ts'
import {
  arrayOf,
  attributeQuery,
  isNullFilter,
  jsonReply,
  pageHeaders,
  pageQuery,
  parseAttributes,
  parseItems,
  listReply,
  parsePage,
  parsePlace,
  parseSort,
  placeQuery,
  textFilter,
  type Projection,
  type ApiRequest,
  type QueryParameter,
  type QueryValue,
  type Rights,
  type Route,
} from '../../http/index.ts'
import { isId } from '../../core/ids.ts'
import type { TraceTable } from '../../db/index.ts'
import type { JsonSchema } from '../../lib/schema/index.ts'
import { summaryAttributes, toMember, traceAttributes, writeTrace } from './record.ts'
import type { TraceFilter, TraceSort, TraceStore } from './store.ts'
import { traceResource } from '../../core/permissions.ts'

const string = { type: 'string' } as const
const text = (description: string): QueryParameter => ({ type: 'string', description })

const filterParameters: Record<string, QueryParameter> = {
  id: { type: 'array', description: 'At most 100 ids.' },
  trace_tag: text('Trace tag.'),
  trace_tag_prefix: text('What the trace tag begins with.'),
  execution: text('Id of an execution in it; `null` for traces without any.'),
  rule: text('Id of a rule that matched in it; `null` for traces without any.'),
  trigger_instance: text('Id of a trigger instance in it; `null` for traces without any.'),
  sort: { type: 'array', description: '`id`, `start_timestamp`, `trace_tag`; `-` before a name for descending.' },
  sort_asc: text('`True`: oldest first.'),
  sort_desc: text('`True`: newest first, as when nothing is said.'),
}

const componentProperties: Record<string, JsonSchema> = {
  object_id: { ...string, description: 'Id of the execution, rule or trigger instance.' },
  ref: { ...string, description: 'Of the action, the rule or the trigger.' },
  updated_at: { ...string, description: 'When it was added.' },
  caused_by: {
    type: 'object',
    description: 'Empty for what came from outside. The id of a rule is followed by `:` and its trigger instance.',
    properties: { type: { enum: ['action_execution', 'rule', 'trigger_instance'] }, id: string },
  },
}

const components: JsonSchema = {
  type: 'array',
  description: 'In the order in which they were added.',
  items: { title: 'TraceComponent', type: 'object', properties: componentProperties },
}

const memberProperties: Record<string, JsonSchema> = {
  seq: {
    type: 'integer',
    description: 'Its place among the components of all traces; later ones have a greater number.',
  },
  kind: { enum: ['execution', 'rule', 'trigger_instance'] },
  ...componentProperties,
}

const memberSchema: JsonSchema = {
  title: 'TraceMember',
  type: 'object',
  required: Object.keys(memberProperties),
  properties: memberProperties,
}

const MAX_MEMBERS = 1000

const traceSchema: JsonSchema = {
  title: 'Trace',
  type: 'object',
  required: ['id'],
  properties: {
    id: string,
    uid: string,
    trace_tag: string,
    start_timestamp: string,
    action_executions: components,
    rules: components,
    trigger_instances: components,
    origin: {
      type: ['object', 'null'],
      description: 'The component that was added first, if `include_attributes` names it.',
      properties: memberProperties,
    },
    component_count: {
      type: 'integer',
      description: 'Components, if `include_attributes` names it; at most 1,000 are counted.',
    },
  },
}

export function createRoutes({ store, maxPageSize }: { store: TraceStore; maxPageSize: number }): Route[] {
  /** @throws RESOURCE_NOT_FOUND */
  function get({ params: { id = '' } }: Pick<ApiRequest, 'params'>): TraceTable {
    const trace = isId(id) ? store.find(id) : undefined
    if (trace === undefined) throw resourceNotFound(id)
    return trace
  }

  return [
    {
      surface: 'api',
      method: 'get',
      path: '/traces',
      permission: 'trace_list',
      summary: 'Lists traces, newest first.',
      query: { ...filterParameters, ...placeQuery, ...pageQuery, ...attributeQuery },
      response: { type: 'array', items: traceSchema },
      failures: [400, 403, 503],
      async handler({ query, principal, rights }) {
        const page = parsePage(query, principal, { defaultLimit: 100, maxPageSize })
        const wanted = wantedAttributes(query)
        const filter = parseFilter(query)
        const within = visibleTo(rights)
        if (within !== undefined) filter.within = within
        const sort = parseOrder(query)
        const place = parsePlace(query, sort.tag === undefined)
        const [traces, total] = await Promise.all([
          store.search({ filter, sort, ...page, ...(place === undefined ? {} : { place }) }),
          // Who goes on has been told before, and can be spared the counting.
          place === undefined ? store.total(filter) : undefined,
        ])
        return jsonReply(
          arrayOf(traces, (trace) => writeTrace(store, trace, wanted)),
          pageHeaders(page, total),
        )
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/traces/:id',
      permission: 'trace_view',
      resource: (request) => traceResource(get(request).id),
      summary: 'One trace with everything that belongs to it.',
      query: attributeQuery,
      response: traceSchema,
      failures: [400, 404],
      handler: (request) => jsonReply(writeTrace(store, get(request), wantedAttributes(request.query))),
    },
    {
      surface: 'api',
      method: 'get',
      path: '/traces/:id/components',
      permission: 'trace_view',
      resource: (request) => traceResource(get(request).id),
      summary: 'Lists what belongs to a trace, of every kind, in the order in which it was added.',
      query: {
        after_seq: { type: 'integer', description: 'Goes on with those after this number.' },
        before_seq: { type: 'integer', description: 'Only those before this number.' },
        sort_desc: text('Latest first when not empty.'),
        limit: { type: 'integer', description: `Most components to return; at most ${MAX_MEMBERS}, the default.` },
      },
      response: { type: 'array', items: memberSchema },
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
        // Who goes on has been told before, and can be spared the counting.
        const total = after === undefined && before === undefined ? await store.countMembers(id) : undefined
        return listReply(store.members(range).map(toMember), pageHeaders({ limit: range.limit, offset: 0 }, total))
      },
    },
  ]
}

/** @throws QUERY_INVALID */
function memberLimit(given: QueryValue): number {
  if (typeof given !== 'number') return MAX_MEMBERS
  if (given < 1 || given > MAX_MEMBERS)
    throw queryInvalid(`Limit, "${given}" specified, must be from 1 to ${MAX_MEMBERS}.`)
  return given
}

/** @throws QUERY_INVALID */
function wantedAttributes(query: Record<string, QueryValue>): Projection {
  return parseAttributes(query, {
    // What costs more is there for who names it.
    known: query['include_attributes'] === undefined ? traceAttributes : [...traceAttributes, ...summaryAttributes],
    excludable: traceAttributes.filter((name) => name !== 'id'),
    always: ['id'],
  })
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

/** Ids sort by creation, so that nothing can come after one. */
function parseOrder(query: Record<string, QueryValue>): TraceSort {
  const fields = parseSort(query['sort'], ['id', 'start_timestamp', 'trace_tag'])
  const [first, second] = fields.map(
    ({ name, descending }) => ({ name, direction: descending ? 'desc' : 'asc' }) as const,
  )
  if (first === undefined) {
    return { id: query['sort_asc'] === 'True' && query['sort_desc'] !== 'True' ? 'asc' : 'desc' }
  }
  if (first.name !== 'trace_tag') return { id: first.direction }
  return { tag: first.direction, id: second?.direction ?? first.direction }
}

/** Undefined: all. One trace after the other is granted, and there are as many grants as somebody has written down. */
function visibleTo(rights: Rights): string[] | undefined {
  if (rights.may('trace_view')) return undefined
  const { uid: prefix } = traceResource('')
  return rights.named('trace_view').map((uid) => uid.slice(prefix.length))
}
