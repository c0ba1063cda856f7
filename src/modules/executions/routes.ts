/** The endpoints of executions: requests that change something here, lists and output beside their stores. */
import { gzip } from 'node:zlib'
import { promisify } from 'node:util'
import { isAppError, queryInvalid } from '../../core/errors.ts'
import { ImportOutcomes } from '../../core/import-outcomes.ts'
import { actionResource, executionResource } from '../../core/permissions.ts'
import { Reply, route, showSecretsQuery, type Route } from '../../http/index.ts'
import { Type } from '../../lib/schema/index.ts'
import { shown } from '../../lib/text/index.ts'
import { createRecordReader, type RecordReader } from './list/read.ts'
import { childrenRoute, listRoutes } from './list/routes.ts'
import type { ExecutionListStore } from './list/store.ts'
import type { OutputReader } from './output/read.ts'
import { outputRoutes } from './output/routes.ts'
import type { ImportExecutions } from './import.ts'
import type { ImportOutput } from './output/import.ts'
import { idOf } from './path.ts'
import { triggerInstanceOf, type Records } from './record.ts'
import { ExecutionRequest, RerunRequest } from './request/schemas.ts'
import type { ExecutionService } from './service.ts'
import type { ExecutionStore } from './store.ts'
import { CancelRefusal, ExecutionImport, OutputImport, ExecutionRecord, ExecutionUpdate } from './types.ts'
import { readJson, writeJson } from '../../lib/json/index.ts'

const compress = promisify(gzip)

const refusalOrExecution = Type.Union([ExecutionRecord, CancelRefusal])

const bareAttributes = ['result', 'trigger_instance', 'status'] as const

export function createExecutionRoutes(deps: {
  service: ExecutionService
  readonly importEnded: ImportExecutions
  readonly importOutput: ImportOutput
  store: ExecutionStore
  list: ExecutionListStore
  records: Records
  output: OutputReader
  settings: {
    maxPageSize: number
    /** `api.mask_secrets` and `log.mask_secrets` */
    maskSecrets: boolean
  }
}): Route[] {
  const { service, store, list, settings } = deps
  const reader = createRecordReader(deps)
  return withOldPaths([
    createRoute(service, reader),
    importRoute(deps.importEnded),
    importOutputRoute(deps.importOutput),
    ...listRoutes({ service, list, reader, output: deps.output, ...settings }),
    ...outputRoutes(service, deps.output),
    ...valueRoutes(service, store),
    childrenRoute({ service, list, reader }),
    ...changeRoutes(service, reader),
  ])
}

/** Every path answers under its old name as well. */
function withOldPaths(routes: Route[]): Route[] {
  return routes.map((route) => ({ ...route, aliases: [route.path.replace('/executions', '/actionexecutions')] }))
}

function createRoute(service: ExecutionService, reader: RecordReader): Route {
  return route({
    surface: 'api',
    method: 'post',
    path: '/executions',
    permission: 'action_execute',
    resourceOfBody: (body) => actionResource(service.actionOf(body.action).ref),
    summary: 'Runs an action. The answer comes at once, with the execution in status `requested`.',
    query: showSecretsQuery,
    body: ExecutionRequest,
    status: 201,
    response: ExecutionRecord,
    failures: [400, 403, 503],
    async handler(request) {
      const contextHeader = request.headers['svc-context']
      const execution = await service.request(
        request,
        request.body,
        typeof contextHeader === 'string' ? contextHeader : undefined,
      )
      return reader.created(execution, request)
    },
    answerAgain: (request, id = '') => reader.created(service.get(id), request),
  })
}

function importRoute(importEnded: ImportExecutions): Route {
  return route({
    surface: 'api',
    method: 'post',
    path: '/executions/import',
    permission: 'administrator',
    summary: 'Takes over executions that have ended on another server, to read them here. Nothing follows from them.',
    body: ExecutionImport,
    response: ImportOutcomes,
    failures: [400, 503],
    handler: (request) => importEnded(request, request.body),
  })
}

function importOutputRoute(importOutput: ImportOutput): Route {
  return route({
    surface: 'api',
    method: 'post',
    path: '/executions/output/import',
    permission: 'administrator',
    summary: 'Takes over the output of executions that have ended on another server, to read it here.',
    body: OutputImport,
    response: ImportOutcomes,
    failures: [400, 503],
    handler: (request) => importOutput(request, request.body),
  })
}

/** Single values of an execution. */
function valueRoutes(service: ExecutionService, store: Pick<ExecutionStore, 'resultText'>): Route[] {
  return [
    route({
      surface: 'api',
      method: 'get',
      path: '/executions/:id/result',
      permission: 'execution_view',
      resource: (request) => executionResource(service.getOrLast(request.params.id)),
      summary: 'Gets the result of an execution.',
      query: {
        pretty_format: { type: 'boolean', description: 'Indents the JSON by two spaces.' },
        download: { type: 'boolean', description: 'Answers with an attachment and its file name.' },
        compress: { type: 'boolean', description: 'Compresses the answer with gzip.' },
      },
      response: Type.Unknown(),
      mediaType: 'text/json',
      failures: [404],
      async handler(request) {
        const { id } = service.get(request.params.id)
        const stored = store.resultText(id) ?? 'null'
        const text = request.query.pretty_format === true ? writeJson(readJson(stored), 2) : stored
        const isCompressed = request.query.compress === true
        const headers: Record<string, string> = {}
        if (request.query.download === true) {
          const name = `execution_${id}_result.json${isCompressed ? '.gz' : ''}`
          headers['Content-Disposition'] = `attachment; filename=${name}`
        }
        if (!isCompressed) return new Reply(text, { headers })
        return new Reply(await compress(text), {
          headers: { ...headers, 'Content-Type': 'application/x-gzip', 'Content-Encoding': 'gzip' },
        })
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/executions/:id/attribute/:name',
      permission: 'execution_view',
      resource: (request) => executionResource(service.getOrLast(request.params.id)),
      summary: 'Gets one attribute: `result`, `trigger_instance` or `status`.',
      response: Type.Unknown(),
      failures: [400, 404],
      handler(request) {
        const name = request.params.name
        const attribute = bareAttributes.find((known) => known === name)
        if (attribute === undefined) {
          throw queryInvalid(
            `Invalid attribute "${shown(name)}" specified. Valid attributes are: ${bareAttributes.join(', ')}`,
          )
        }
        if (attribute === 'result') return service.getWithResult(idOf(request)).result ?? null
        const execution = service.get(request.params.id)
        if (attribute === 'status') return execution.status
        return triggerInstanceOf(execution)
      },
    }),
  ]
}

/** Cancel, update, run again. */
function changeRoutes(service: ExecutionService, reader: RecordReader): Route[] {
  return [
    route({
      surface: 'api',
      method: 'delete',
      path: '/executions/:id',
      permission: 'execution_stop',
      resource: (request) => executionResource(service.get(idOf(request))),
      summary:
        'Cancels an execution: stops its processes and keeps its output so far. Of one that has ended, stops the processes left in the background.',
      isUrgent: true,
      query: showSecretsQuery,
      response: refusalOrExecution,
      failures: [404],
      async handler(request) {
        try {
          return reader.one(await service.cancel(request, idOf(request)), request)
        } catch (error) {
          // Clients of this operation look for the message in an answer with status 200.
          if (isAppError(error) && error.code === 'TRANSITION_REFUSED') {
            return { faultstring: error.message, code: error.code }
          }
          throw error
        }
      },
      answerAgain: (request) => reader.one(service.get(idOf(request)), request),
    }),
    route({
      surface: 'api',
      method: 'put',
      path: '/executions/:id',
      permission: 'execution_stop',
      resource: (request) => executionResource(service.get(idOf(request))),
      summary: 'Pauses, resumes or cancels an execution, or sets the final status of one that an outside system runs.',
      isUrgent: true,
      query: showSecretsQuery,
      body: ExecutionUpdate,
      response: ExecutionRecord,
      failures: [400, 404],
      async handler(request) {
        const { status, result } = request.body
        return reader.one(await service.update(request, idOf(request), status, result), request)
      },
      answerAgain: (request) => reader.one(service.get(idOf(request)), request),
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/executions/:id/re_run',
      permission: 'execution_rerun',
      resource: (request) => executionResource(service.get(idOf(request))),
      summary: 'Re-runs an execution with its parameters and the given overrides.',
      query: {
        no_merge: {
          type: 'boolean',
          description: 'Uses only the given parameters, and the original ones that `keep` names.',
        },
        ...showSecretsQuery,
      },
      body: RerunRequest,
      status: 201,
      response: ExecutionRecord,
      failures: [400, 404, 503],
      async handler(request) {
        const merges = request.query.no_merge !== true
        return reader.created(await service.rerun(request, idOf(request), request.body, merges), request)
      },
      answerAgain: (request, id = '') => reader.created(service.get(id), request),
    }),
  ]
}
