import { queryInvalid } from '../../../core/errors.ts'
import { executionResource } from '../../../core/permissions.ts'
import {
  pageHeaders,
  listEndpoint,
  listReply,
  route,
  seesSecrets,
  showSecretsQuery,
  type ApiRequest,
  type Found,
  type Page,
  type Projection,
  type Rights,
  type Route,
} from '../../../http/index.ts'
import { Type } from '../../../lib/schema/index.ts'
import type { ExecutionService } from '../service.ts'
import { ExecutionFilters, PartialExecution, type FoundLine } from '../types.ts'
import {
  attributeOptions,
  executionAttributeQuery,
  parametersLimitQuery,
  wantedAttributes,
  withParametersLimit,
} from './attributes.ts'
import type { CountDimension, Visibility } from './filter.ts'
import { writeCursor, type FindRequest } from '../output/find.ts'
import type { OutputReader } from '../output/read.ts'
import { filterParameters, parseListQuery, parseOutputQuery, type ListQuery } from './query.ts'
import { descendantsOf, withoutResult, type RecordReader } from './read.ts'
import type { ExecutionListStore } from './store.ts'
import { shown } from '../../../lib/text/index.ts'

/** Of children, and of their children. */
const MAX_LEVELS = 1000
const MAX_DESCENDANTS = 10_000
const MAX_RESULT_SIZE_BYTES = 14 * 1024 * 1024

export interface ListRoutesDeps {
  service: Pick<ExecutionService, 'get' | 'getOrLast'>
  list: ExecutionListStore
  reader: RecordReader
  output: Pick<OutputReader, 'find'>
  maxPageSize: number
  /** `api.mask_secrets` and `log.mask_secrets` */
  maskSecrets: boolean
}

/** Lists of executions, and single ones. */
export function listRoutes({ service, list, reader, output, maxPageSize, maskSecrets }: ListRoutesDeps): Route[] {
  async function findByOutput(
    request: ApiRequest & { page: Page },
    { filter, place }: ListQuery,
    wanted: Omit<FindRequest, 'page' | 'limit'>,
    projection: Projection,
  ): Promise<Found<Record<string, unknown>>> {
    const { limit: asked } = request.page
    const limit = Math.min(asked ?? maxPageSize, maxPageSize)
    const { ids, lines, searched, cursor } = await output.find({
      ...wanted,
      limit,
      page: (before, count) =>
        list.page({
          filter,
          sort: [{ column: 'id', direction: 'desc' }],
          place: { ...place, ...(before === undefined ? {} : { before }) },
          limit: count,
          offset: 0,
        }),
    })
    const records = reader.many(ids, request, projection)
    return {
      records: wanted.lines === 0 ? records : withMatches(records, lines),
      total: undefined,
      isProjected: true,
      headers: {
        'X-Output-Searched': String(searched),
        ...(cursor === undefined ? {} : { 'X-Output-Cursor': writeCursor(cursor) }),
      },
    }
  }

  return [
    listEndpoint({
      path: '/executions',
      permission: 'execution_list',
      summary: 'Lists executions, newest first.',
      record: PartialExecution,
      query: { ...filterParameters, ...parametersLimitQuery, ...showSecretsQuery },
      page: { defaultLimit: 100, maxPageSize },
      attributes: attributeOptions,
      answerHeaders: {
        'X-Output-Cursor':
          'With `output`: where the search continues; absent when it has reached the oldest execution.',
        'X-Output-Searched': 'With `output`: number of executions that this request has searched.',
      },
      async find(request) {
        const { query, page, rights } = request
        const wanted = withParametersLimit(query, request.projection)
        const parsed = parseListQuery(query, maskSecrets && !seesSecrets(request))
        const { filter, place } = parsed
        const within = visibilityOf(list, rights)
        if (within !== undefined) filter.within = within
        const output = parseOutputQuery(query)
        if (output !== undefined) return findByOutput(request, parsed, output, wanted)
        const [ids, total] = await Promise.all([
          list.page({ ...parsed, ...page }),
          // A client that continues knows the total already, and the store need not count.
          place === undefined ? list.total(filter) : undefined,
        ])
        return { records: reader.many(ids, request, wanted), total, isProjected: true }
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/executions/views/filters',
      permission: 'execution_views_filters_list',
      summary: 'Lists the distinct values of the attributes that filter executions.',
      query: { types: { type: 'array', description: 'Only these attributes.' } },
      response: ExecutionFilters,
      failures: [503],
      handler: ({ query: { types }, rights }) => filterViews(list, types, visibilityOf(list, rights)),
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/executions/:id',
      permission: 'execution_view',
      resource: (request) => executionResource(service.getOrLast(request.params.id)),
      summary: 'Gets one execution; `last` is the newest one.',
      query: {
        ...executionAttributeQuery,
        ...showSecretsQuery,
        max_result_size: { type: 'integer', description: 'Leaves out results of more bytes. 0 disables the limit.' },
      },
      response: PartialExecution,
      failures: [400, 404],
      handler(request) {
        const maxResultSize = checkedSize(request.query.max_result_size ?? 0)
        const wanted = wantedAttributes(request.query)
        const execution = service.getOrLast(request.params.id)
        const tooLarge = maxResultSize > 0 && (execution.result_size ?? 0) > maxResultSize
        return reader.one(execution, request, tooLarge ? withoutResult(wanted) : wanted)
      },
    }),
  ]
}

function* withMatches(
  records: Iterable<Record<string, unknown>>,
  lines: ReadonlyMap<string, FoundLine[]>,
): Generator<Record<string, unknown>> {
  for (const record of records) yield { ...record, output_matches: lines.get(String(record['id'])) ?? [] }
}

/** The descendants of an execution. */
export function childrenRoute({ service, list, reader }: Pick<ListRoutesDeps, 'service' | 'list' | 'reader'>): Route {
  return route({
    surface: 'api',
    method: 'get',
    path: '/executions/:id/children',
    permission: 'execution_view',
    resource: (request) => executionResource(service.getOrLast(request.params.id)),
    summary: 'Lists all descendants of an execution, depth first.',
    query: {
      depth: { type: 'integer', description: 'Levels below the execution. Default: -1, all levels.' },
      limit: {
        type: 'integer',
        description: `Most executions to return, nearest levels first. Default and maximum: ${MAX_DESCENDANTS}.`,
      },
      result_fmt: { type: 'string', description: '`default`, or `sorted` by start time.' },
      ...executionAttributeQuery,
      ...showSecretsQuery,
    },
    response: Type.Array(PartialExecution),
    failures: [400, 404],
    handler(request) {
      const { id } = service.get(request.params.id)
      const { depth = -1, result_fmt: format, limit: given } = request.query
      const limit = given ?? MAX_DESCENDANTS
      if (limit < 1 || limit > MAX_DESCENDANTS) {
        throw queryInvalid(`Limit, "${shown(limit)}" specified, must be between 1 and ${MAX_DESCENDANTS}.`)
      }
      const levels = depth >= 0 ? depth : MAX_LEVELS
      const ids = descendantsOf(list, id, levels, limit)
      if (format === 'sorted') ids.sort()
      const records = reader.many(ids, request, wantedAttributes(request.query))
      if (given === undefined) return listReply(records)
      // A page that is not full has all there are.
      const total = ids.length < limit ? ids.length : descendantsOf(list, id, levels, MAX_DESCENDANTS).length
      return listReply(records, pageHeaders({ limit: undefined, offset: 0 }, total))
    },
  })
}

/** @throws QUERY_INVALID */
function checkedSize(size: number): number {
  if (size < 0) throw queryInvalid('max_result_size must be a positive number')
  if (size > MAX_RESULT_SIZE_BYTES) throw queryInvalid('max_result_size query parameter must be smaller than 14 MB')
  return size
}

const dimensions: Record<string, CountDimension> = {
  action: 'action_ref',
  status: 'status',
  rule: 'rule',
  runner: 'runner',
  trigger: 'trigger',
  trigger_type: 'trigger_type',
  user: 'user',
}

/** Undefined: all. What `execution_view` says of an execution depends on its action and its user alone. */
function visibilityOf(list: ExecutionListStore, rights: Rights): Visibility | undefined {
  if (rights.may('execution_view')) return undefined
  const user = rights.onlyOf
  const refs = list.actionRefs()
  const visible = refs.filter((ref) =>
    rights.may('execution_view', executionResource({ id: '', action_ref: ref, user: user ?? '' })),
  )
  return {
    ...(visible.length === refs.length ? {} : { actionRefs: visible }),
    ...(user === undefined ? {} : { user }),
  }
}

async function filterViews(
  list: ExecutionListStore,
  types: string[] | undefined,
  within: Visibility | undefined,
): Promise<Record<string, (string | null)[]>> {
  const views: Record<string, (string | null)[]> = {}
  for (const [name, dimension] of Object.entries(dimensions)) {
    if (types !== undefined && !types.includes(name)) continue
    views[name] = (await list.distinct(dimension, within)).map((value) => (value === '' ? null : value))
  }
  return views
}
