import { queryInvalid } from '../../../core/errors.ts'
import { executionResource } from '../../../core/permissions.ts'
import {
  listReply,
  pageHeaders,
  pageQuery,
  parsePage,
  seesSecrets,
  showSecretsQuery,
  type ApiRequest,
  type Rights,
  type Route,
} from '../../../http/index.ts'
import { idOrLastOf } from '../path.ts'
import { executionListSchema, filterViewsSchema, partialExecutionSchema } from '../schemas.ts'
import type { ExecutionService } from '../service.ts'
import { executionAttributeQuery, wantedAttributes } from './attributes.ts'
import type { CountDimension, Visibility } from './filter.ts'
import { filterParameters, parseListQuery } from './query.ts'
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
  maxPageSize: number
  /** `api.mask_secrets` and `log.mask_secrets` */
  maskSecrets: boolean
}

/** Lists of executions, and single ones. */
export function listRoutes({ service, list, reader, maxPageSize, maskSecrets }: ListRoutesDeps): Route[] {
  return [
    {
      surface: 'api',
      method: 'get',
      path: '/executions',
      permission: 'execution_list',
      summary: 'Lists executions, newest first.',
      query: { ...filterParameters, ...pageQuery, ...executionAttributeQuery, ...showSecretsQuery },
      response: executionListSchema,
      failures: [400, 403, 503],
      async handler(request) {
        const page = parsePage(request.query, request.principal, {
          defaultLimit: 100,
          maxPageSize,
        })
        const wanted = wantedAttributes(request.query)
        const wantedList = parseListQuery(request.query, maskSecrets && !seesSecrets(request))
        const { filter, place } = wantedList
        const within = visibilityOf(list, request.rights)
        if (within !== undefined) filter.within = within
        const [ids, total] = await Promise.all([
          list.page({ ...wantedList, ...page }),
          // Who goes on has been told before, and can be spared the counting.
          place === undefined ? list.total(filter) : undefined,
        ])
        return listReply(reader.many(ids, request, wanted), pageHeaders(page, total))
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/executions/views/filters',
      permission: 'execution_views_filters_list',
      summary: 'The distinct values that executions have in the attributes a list can be filtered by.',
      query: { types: { type: 'array', description: 'Only these attributes.' } },
      response: filterViewsSchema,
      failures: [503],
      handler: ({ query: { types }, rights }) =>
        filterViews(list, Array.isArray(types) ? types : undefined, visibilityOf(list, rights)),
    },
    {
      surface: 'api',
      method: 'get',
      path: '/executions/:id',
      permission: 'execution_view',
      resource: (request) => executionResource(service.getOrLast(idOrLastOf(request))),
      summary: 'One execution; `last` is the one created last.',
      query: {
        ...executionAttributeQuery,
        ...showSecretsQuery,
        max_result_size: { type: 'integer', description: 'Leaves out a result of more bytes; 0: no limit.' },
      },
      response: partialExecutionSchema,
      failures: [400, 404],
      handler(request) {
        const maxResultSize = maxResultSizeOf(request)
        const wanted = wantedAttributes(request.query)
        const execution = service.getOrLast(idOrLastOf(request))
        const tooLarge = maxResultSize > 0 && (execution.result_size ?? 0) > maxResultSize
        return reader.one(execution, request, tooLarge ? withoutResult(wanted) : wanted)
      },
    },
  ]
}

/** The descendants of an execution. */
export function childrenRoute({ service, list, reader }: Pick<ListRoutesDeps, 'service' | 'list' | 'reader'>): Route {
  return {
    surface: 'api',
    method: 'get',
    path: '/executions/:id/children',
    permission: 'execution_view',
    resource: (request) => executionResource(service.getOrLast(idOrLastOf(request))),
    summary: 'All descendants, depth first.',
    query: {
      depth: { type: 'integer', description: 'Levels below the execution; -1, the default: all.' },
      limit: {
        type: 'integer',
        description: `Most executions to return, those nearest to it before others; default and maximum ${MAX_DESCENDANTS}.`,
      },
      result_fmt: { type: 'string', description: '`default`, or `sorted` by start time.' },
      ...executionAttributeQuery,
      ...showSecretsQuery,
    },
    response: executionListSchema,
    failures: [400, 404],
    handler(request) {
      const { id } = service.get(idOrLastOf(request))
      const { depth = -1, result_fmt: format, limit = MAX_DESCENDANTS } = request.query
      if (typeof limit !== 'number' || limit < 1 || limit > MAX_DESCENDANTS) {
        throw queryInvalid(`Limit, "${shown(limit)}" specified, must be between 1 and ${MAX_DESCENDANTS}.`)
      }
      const levels = typeof depth === 'number' && depth >= 0 ? depth : MAX_LEVELS
      const ids = descendantsOf(list, id, levels, limit)
      if (format === 'sorted') ids.sort()
      return listReply(reader.many(ids, request, wantedAttributes(request.query)))
    },
  }
}

/** @throws QUERY_INVALID */
function maxResultSizeOf({ query }: ApiRequest): number {
  const size = query['max_result_size']
  if (typeof size !== 'number') return 0
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
