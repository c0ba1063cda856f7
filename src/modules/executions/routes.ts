import { gzip } from 'node:zlib'
import { promisify } from 'node:util'
import { isAppError, queryInvalid, resourceNotFound } from '../../core/errors.ts'
import {
  listReply,
  pageHeaders,
  pageQuery,
  parsePage,
  seesSecrets,
  showSecretsQuery,
  type Projection,
  Reply,
  type ApiRequest,
  type QueryParameter,
  type Rights,
  type Route,
} from '../../http/index.ts'
import { isId } from '../../core/ids.ts'
import { readJson, shown } from '../../lib/text/index.ts'
import type { OutputType } from '../../runners/index.ts'
import { executionAttributeQuery, executionAttributes, wantedAttributes } from './attributes.ts'
import { filterParameters, parseListQuery } from './list.ts'
import { MAX_LINES, type LinesRequest } from './output-lines.ts'
import type { SearchRequest } from './output-search.ts'
import { triggerInstanceOf } from './record.ts'
import { executionRequestSchema, rerunRequestSchema, type ExecutionRequest, type RerunRequest } from './request.ts'
import {
  executionListSchema,
  executionSchema,
  filterViewsSchema,
  outputLinesSchema,
  outputMatchesSchema,
  partialExecutionSchema,
  refusalOrExecutionSchema,
  updateRequestSchema,
} from './schemas.ts'
import type { ExecutionService } from './service.ts'
import type { CountDimension, ExecutionStore, Visibility } from './store.ts'
import type { Execution, ExecutionRecord, ExecutionStatus, OutputLines, OutputMatches } from './types.ts'
import { actionResource, executionResource } from '../../core/permissions.ts'

const compress = promisify(gzip)

/** Of children, and of their children. */
const MAX_LEVELS = 1000
const MAX_DESCENDANTS = 10_000
const bareAttributes = ['result', 'trigger_instance', 'status'] as const
const MAX_RESULT_SIZE_BYTES = 14 * 1024 * 1024
/** Executions of a list that are read at once. */
const RECORDS_TOGETHER = 25
/** Their results are, up to this size; beyond it one after the other, because each may be 20 MB. */
const MAX_RESULT_BYTES_TOGETHER = 1024 * 1024

export interface ExecutionRoutesOptions {
  service: ExecutionService
  store: ExecutionStore
  maxPageSize: number
  /** `api.mask_secrets` and `log.mask_secrets` */
  maskSecrets: boolean
  record(execution: Execution, options: { children: string[]; unmasked: boolean }): ExecutionRecord
  readOutput(executionId: string, type: OutputType | undefined): AsyncIterable<string>
  readLines(executionId: string, wanted: LinesRequest): OutputLines
  searchOutput(executionId: string, wanted: SearchRequest): Promise<OutputMatches>
}

export function createRoutes(options: ExecutionRoutesOptions): Route[] {
  const { service, store } = options

  /** Records of executions in the given order, each with its result (unless left out) and its children. */
  function* makeRecords(
    executions: Execution[],
    request: ApiRequest,
    wanted: Projection,
  ): Generator<Record<string, unknown>> {
    const ids = executions.map(({ id }) => id)
    const children = needs(wanted, 'children') ? groupByParent(store.childrenOf(ids)) : noChildren
    const wantsResults = needs(wanted, 'result')
    const resultBytes = executions.reduce((sum, { result_size: bytes }) => sum + (bytes ?? 0), 0)
    const isTogether = wantsResults && resultBytes <= MAX_RESULT_BYTES_TOGETHER
    const together = isTogether ? store.results(ids) : undefined
    for (const execution of executions) {
      const { id } = execution
      const stored = together ?? (wantsResults ? store.results([id]) : undefined)
      const record = options.record(
        { ...execution, result: execution.result ?? stored?.get(id) },
        { children: children.get(id) ?? [], unmasked: seesSecrets(request) },
      )
      yield wanted.apply(record)
    }
  }

  /** Few at a time: a list may be of everything there is. */
  function* findRecords(ids: string[], request: ApiRequest, wanted: Projection): Generator<Record<string, unknown>> {
    for (let start = 0; start < ids.length; start += RECORDS_TOGETHER) {
      const some = ids.slice(start, start + RECORDS_TOGETHER)
      const found = new Map(
        store
          .findByIds(some)
          .filter((execution) => request.rights.may('execution_view', executionResource(execution)))
          .map((execution) => [execution.id, execution]),
      )
      yield* makeRecords(
        some.flatMap((id) => found.get(id) ?? []),
        request,
        wanted,
      )
    }
  }

  /** An execution that was made just now has neither a result nor children to look for. */
  function newRecord(execution: Execution, request: ApiRequest): ExecutionRecord {
    return options.record(execution, { children: [], unmasked: seesSecrets(request) })
  }

  function toRecord(execution: Execution, request: ApiRequest): Record<string, unknown> {
    const [record] = makeRecords([execution], request, everything)
    return record ?? {}
  }

  return executionPaths([
    {
      surface: 'api',
      method: 'post',
      path: '/executions',
      permission: 'action_execute',
      resourceOfBody: (body) => actionResource(service.actionOf((body as ExecutionRequest).action).ref), // fits the schema
      summary: 'Runs an action. Answers at once with the execution in status `requested`.',
      query: showSecretsQuery,
      body: executionRequestSchema,
      status: 201,
      response: executionSchema,
      failures: [400, 403, 503],
      async handler(request) {
        const contextHeader = request.headers['svc-context']
        const execution = await service.request(
          request,
          request.body as ExecutionRequest, // it fits `executionRequestSchema`
          typeof contextHeader === 'string' ? contextHeader : undefined,
        )
        return newRecord(execution, request)
      },
    },
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
          maxPageSize: options.maxPageSize,
        })
        const wanted = wantedAttributes(request.query)
        const list = parseListQuery(request.query, options.maskSecrets && !seesSecrets(request))
        const { filter, place } = list
        const within = visibilityOf(store, request.rights)
        if (within !== undefined) filter.within = within
        const [ids, total] = await Promise.all([
          store.page({ ...list, ...page }),
          // Who goes on has been told before, and can be spared the counting.
          place === undefined ? store.total(filter) : undefined,
        ])
        return listReply(findRecords(ids, request, wanted), pageHeaders(page, total))
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
        filterViews(store, Array.isArray(types) ? types : undefined, visibilityOf(store, rights)),
    },
    {
      surface: 'api',
      method: 'get',
      path: '/executions/:id',
      permission: 'execution_view',
      resource: (request) => executionResource(service.getOrLast(idOf(request))),
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
        const execution = service.getOrLast(idOf(request))
        const tooLarge = maxResultSize > 0 && (execution.result_size ?? 0) > maxResultSize
        const [record] = makeRecords([execution], request, tooLarge ? withoutResult(wanted) : wanted)
        return record
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/executions/:id/output',
      permission: 'execution_view',
      resource: (request) => executionResource(service.getOrLast(idOf(request))),
      summary: 'The output produced so far, as plain text; `last` works too.',
      query: { output_type: outputTypeParameter },
      response: { type: 'string' },
      mediaType: 'text/plain; charset=UTF-8',
      failures: [400, 404],
      handler(request) {
        const { id } = service.getOrLast(idOf(request))
        const type = outputTypeOf(request)
        return type === 'none' ? '' : options.readOutput(id, type)
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/executions/:id/output/lines',
      permission: 'execution_view',
      resource: (request) => executionResource(service.getOrLast(idOf(request))),
      summary: 'Lines of the output produced so far, numbered as in the text of it; `last` works too.',
      query: {
        output_type: outputTypeParameter,
        from: {
          type: 'integer',
          description: 'Number of the first line, from 1, the default. Negative: counted from the end, -1 is the last.',
        },
        limit: {
          type: 'integer',
          description: `At most so many lines, up to ${MAX_LINES}; default 100. Fewer when they are long.`,
        },
        offset: {
          type: 'integer',
          description: 'Bytes of the first line that are passed over, such as `next_offset`.',
        },
      },
      response: outputLinesSchema,
      failures: [400, 404],
      handler(request) {
        const { from, limit, offset } = readLinesQuery(request.query)
        const { id } = service.getOrLast(idOf(request))
        return options.readLines(id, { type: outputTypeOf(request), from, limit, offset })
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/executions/:id/output/search',
      permission: 'execution_view',
      resource: (request) => executionResource(service.getOrLast(idOf(request))),
      summary: 'Lines of the output that have a text. Looks through a part of it: go on with `next` until `is_at_end`.',
      query: {
        query: { type: 'string', description: 'What to search for, within one line.', required: true },
        output_type: outputTypeParameter,
        ignore_case: { type: 'boolean', description: 'Capital and small letters are the same.' },
        is_pattern: { type: 'boolean', description: '`query` is a regular expression, in the notation of RE2.' },
        from: { type: 'integer', description: 'Number of the line to begin with, from 1, the default.' },
        offset: { type: 'integer', description: 'Bytes of that line that are passed over.' },
        limit: { type: 'integer', description: `At most so many lines, up to ${MAX_LINES}; default 100.` },
      },
      response: outputMatchesSchema,
      failures: [400, 404],
      handler(request) {
        const { from, limit, offset } = readLinesQuery(request.query)
        if (from < 1) throw queryInvalid('Parameter "from" must be 1 or more')
        const { query, ignore_case: ignoreCase, is_pattern: isPattern } = request.query
        const { id } = service.getOrLast(idOf(request))
        return options.searchOutput(id, {
          type: outputTypeOf(request),
          query: String(query),
          ignoreCase: ignoreCase === true,
          isPattern: isPattern === true,
          from,
          offset,
          limit,
        })
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/executions/:id/result',
      permission: 'execution_view',
      resource: (request) => executionResource(service.getOrLast(idOf(request))),
      summary: 'The result alone.',
      query: {
        pretty_format: { type: 'boolean', description: 'Indented by two blanks.' },
        download: { type: 'boolean', description: 'As an attachment with a file name.' },
        compress: { type: 'boolean', description: 'Compressed with gzip.' },
      },
      response: {},
      mediaType: 'text/json',
      failures: [404],
      async handler(request) {
        const { id } = service.get(idOf(request))
        const stored = store.resultText(id) ?? 'null'
        const text = request.query['pretty_format'] === true ? JSON.stringify(readJson(stored), undefined, 2) : stored
        const isCompressed = request.query['compress'] === true
        const headers: Record<string, string> = {}
        if (request.query['download'] === true) {
          const name = `execution_${id}_result.json${isCompressed ? '.gz' : ''}`
          headers['Content-Disposition'] = `attachment; filename=${name}`
        }
        if (!isCompressed) return new Reply(text, { headers })
        return new Reply(await compress(text), {
          headers: { ...headers, 'Content-Type': 'application/x-gzip', 'Content-Encoding': 'gzip' },
        })
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/executions/:id/attribute/:name',
      permission: 'execution_view',
      resource: (request) => executionResource(service.getOrLast(idOf(request))),
      summary: 'One attribute alone: `result`, `trigger_instance` or `status`.',
      response: {},
      failures: [400, 404],
      handler(request) {
        const name = request.params['name'] ?? ''
        const attribute = bareAttributes.find((known) => known === name)
        if (attribute === undefined) {
          throw queryInvalid(
            `Invalid attribute "${shown(name)}" specified. Valid attributes are: ${bareAttributes.join(', ')}`,
          )
        }
        if (attribute === 'result') return service.getWithResult(knownId(request)).result ?? null
        const execution = service.get(idOf(request))
        if (attribute === 'status') return execution.status
        return triggerInstanceOf(execution)
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/executions/:id/children',
      permission: 'execution_view',
      resource: (request) => executionResource(service.getOrLast(idOf(request))),
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
        const { id } = service.get(idOf(request))
        const { depth = -1, result_fmt: format, limit = MAX_DESCENDANTS } = request.query
        if (typeof limit !== 'number' || limit < 1 || limit > MAX_DESCENDANTS) {
          throw queryInvalid(`Limit, "${shown(limit)}" specified, must be between 1 and ${MAX_DESCENDANTS}.`)
        }
        const levels = typeof depth === 'number' && depth >= 0 ? depth : MAX_LEVELS
        const ids = descendants(store, id, levels, limit)
        if (format === 'sorted') ids.sort()
        return listReply(findRecords(ids, request, wantedAttributes(request.query)))
      },
    },
    {
      surface: 'api',
      method: 'delete',
      path: '/executions/:id',
      permission: 'execution_stop',
      resource: (request) => executionResource(service.get(knownId(request))),
      summary: 'Cancels an execution; its processes are ended, its output so far is kept.',
      isUrgent: true,
      query: showSecretsQuery,
      response: refusalOrExecutionSchema,
      failures: [404],
      async handler(request) {
        try {
          return toRecord(await service.cancel(request, knownId(request)), request)
        } catch (error) {
          // Clients of this operation look for the message in an answer with status 200.
          if (isAppError(error) && error.code === 'TRANSITION_REFUSED') {
            return { faultstring: error.message, code: error.code }
          }
          throw error
        }
      },
    },
    {
      surface: 'api',
      method: 'put',
      path: '/executions/:id',
      permission: 'execution_stop',
      resource: (request) => executionResource(service.get(knownId(request))),
      summary: 'Pauses, resumes or cancels, or sets the end of an execution that something outside has carried out.',
      isUrgent: true,
      query: showSecretsQuery,
      body: updateRequestSchema,
      response: executionSchema,
      failures: [400, 404],
      async handler(request) {
        const { status, result } = request.body as { status: ExecutionStatus; result?: Record<string, unknown> } // fits the schema
        return toRecord(await service.update(request, knownId(request), status, result), request)
      },
    },
    {
      surface: 'api',
      method: 'post',
      path: '/executions/:id/re_run',
      permission: 'execution_rerun',
      resource: (request) => executionResource(service.get(knownId(request))),
      summary: 'Runs the action again, with the parameters of this execution and overrides merged into them.',
      query: {
        no_merge: {
          type: 'boolean',
          description: 'The given parameters replace the original ones instead, but for those that `keep` names.',
        },
        ...showSecretsQuery,
      },
      body: rerunRequestSchema,
      status: 201,
      response: executionSchema,
      failures: [400, 404, 503],
      async handler(request) {
        const merges = request.query['no_merge'] !== true
        const body = request.body as RerunRequest // it fits `rerunRequestSchema`
        return newRecord(await service.rerun(request, knownId(request), body, merges), request)
      },
    },
  ])
}

/** Every path answers under its old name as well. */
function executionPaths(routes: Route[]): Route[] {
  return routes.map((route) => ({ ...route, aliases: [route.path.replace('/executions', '/actionexecutions')] }))
}

function idOf(request: Pick<ApiRequest, 'params'>): string {
  return request.params['id'] ?? ''
}

/** `last` is a word for readers only: what changes something names its object. @throws RESOURCE_NOT_FOUND */
function knownId(request: Pick<ApiRequest, 'params'>): string {
  const id = idOf(request)
  if (!isId(id)) throw resourceNotFound(id)
  return id
}

const outputTypeParameter: QueryParameter = {
  type: 'string',
  description: '`stdout`, `stderr`, `other`; absent or `all`: everything.',
}

/** Undefined: all. `none`: a type that no record has. */
function outputTypeOf({ query }: ApiRequest): OutputType | undefined | 'none' {
  const type = query['output_type']
  if (type === undefined || type === '' || type === 'all') return undefined
  return type === 'stdout' || type === 'stderr' || type === 'other' ? type : 'none'
}

/** @throws QUERY_INVALID */
function readLinesQuery(query: ApiRequest['query']): { from: number; limit: number; offset: number } {
  const { from = 1, limit = 100, offset = 0 } = query as { from?: number; limit?: number; offset?: number } // declared so
  if (from === 0) throw queryInvalid('Parameter "from" is 0: the first line has the number 1, the last one -1')
  if (limit < 1 || limit > MAX_LINES) throw queryInvalid(`Parameter "limit" must be from 1 to ${MAX_LINES}`)
  if (offset < 0) throw queryInvalid('Parameter "offset" must not be negative')
  return { from, limit, offset }
}

const everything: Projection = { needed: undefined, apply: (record) => record }

function needs(wanted: Projection, attribute: string): boolean {
  return wanted.needed === undefined || wanted.needed.has(attribute)
}

function withoutResult(wanted: Projection): Projection {
  const needed = new Set(wanted.needed ?? executionAttributes)
  needed.delete('result')
  return { needed, apply: (record) => wanted.apply(record) }
}

/** @throws QUERY_INVALID */
function maxResultSizeOf({ query }: ApiRequest): number {
  const size = query['max_result_size']
  if (typeof size !== 'number') return 0
  if (size < 0) throw queryInvalid('max_result_size must be a positive number')
  if (size > MAX_RESULT_SIZE_BYTES) throw queryInvalid('max_result_size query parameter must be smaller than 14 MB')
  return size
}

/** Ids of descendants, depth first, siblings oldest first. @param limit those nearest to the root come first */
function descendants(store: ExecutionStore, root: string, depth: number, limit: number): string[] {
  const childrenOf = new Map<string, string[]>()
  let level = [root]
  let left = limit
  for (let n = 0; n < depth && level.length > 0 && left > 0; n++) {
    const children = store.childrenOf(level, left)
    for (const [parent, ids] of groupByParent(children)) childrenOf.set(parent, ids)
    left -= children.length
    level = children.map(({ id }) => id)
  }
  const ordered: string[] = []
  const pending = [root]
  for (let id = pending.pop(); id !== undefined; id = pending.pop()) {
    if (id !== root) ordered.push(id)
    for (const child of (childrenOf.get(id) ?? []).toReversed()) pending.push(child)
  }
  return ordered
}

const noChildren: ReadonlyMap<string, string[]> = new Map()

/** Ids by parent, in the given order. */
function groupByParent(children: readonly { id: string; parent: string }[]): Map<string, string[]> {
  const groups = new Map<string, string[]>()
  for (const { id, parent } of children) {
    const siblings = groups.get(parent)
    if (siblings === undefined) groups.set(parent, [id])
    else siblings.push(id)
  }
  return groups
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
function visibilityOf(store: ExecutionStore, rights: Rights): Visibility | undefined {
  if (rights.may('execution_view')) return undefined
  const user = rights.onlyOf
  const refs = store.actionRefs()
  const visible = refs.filter((ref) =>
    rights.may('execution_view', executionResource({ id: '', action_ref: ref, user: user ?? '' })),
  )
  return {
    ...(visible.length === refs.length ? {} : { actionRefs: visible }),
    ...(user === undefined ? {} : { user }),
  }
}

async function filterViews(
  store: ExecutionStore,
  types: string[] | undefined,
  within: Visibility | undefined,
): Promise<Record<string, (string | null)[]>> {
  const views: Record<string, (string | null)[]> = {}
  for (const [name, dimension] of Object.entries(dimensions)) {
    if (types !== undefined && !types.includes(name)) continue
    views[name] = (await store.distinct(dimension, within)).map((value) => (value === '' ? null : value))
  }
  return views
}
