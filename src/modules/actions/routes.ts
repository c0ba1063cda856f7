/** Endpoints of contract 02, 2.2 and 2.3. */
import { entryPointNotFound, namedNotFound } from '../../core/errors.ts'
import { defaultPack, entryPointFile } from '../../core/pack-content.ts'
import { actionResource, runnerTypeResource, type Resource } from '../../core/permissions.ts'
import {
  aboutCaller,
  allPages,
  arrange,
  idQuery,
  listEndpoint,
  parseItems,
  Reply,
  route,
  slicePage,
  type AttributeOptions,
  type Page,
  type QueryParameter,
  type Route,
} from '../../http/index.ts'
import { readContainedFile } from '../../lib/files/index.ts'
import type { Log } from '../../lib/log/index.ts'
import { Type } from '../../lib/schema/index.ts'
import type { ActionChanges } from './changes.ts'
import type { ActionCloning } from './clone.ts'
import { MAX_ENTRY_POINT_BYTES } from './files.ts'
import { entityTagOf, type ActionService } from './service.ts'
import type { ActionStore } from './store.ts'
import {
  ActionClone,
  ActionDeletion,
  ActionParameters,
  ActionRecord,
  ActionRequest,
  PartialAction,
  PartialRunnerType,
  RunnerTypeRecord,
  RunnerTypeUpdate,
} from './types.ts'

const RUNNER_TYPES_LIMIT = 100

const attributes: AttributeOptions = {
  known: Object.keys(ActionRecord.properties),
  excludable: ['parameters', 'notify'],
  always: ['id', 'ref', 'pack', 'name'],
}

const filterQuery = {
  pack: { type: 'string', description: 'Only actions of this pack.' },
  name: { type: 'string', description: 'Only actions of this name.' },
  id: { type: 'array', description: 'Only these ids, at most 100.' },
} as const satisfies Record<string, QueryParameter>

const mediaTypes: Readonly<Record<string, string>> = {
  yaml: 'application/x-yaml',
  yml: 'application/x-yaml',
  py: 'text/x-python',
}

interface ActionRoutesDeps {
  service: ActionService
  changes: ActionChanges
  cloning: ActionCloning
  store: ActionStore
  log: Log
  maxPageSize: number
}

export function createActionRoutes(deps: ActionRoutesDeps): Route[] {
  return [...actionRoutes(deps), ...viewRoutes(deps), ...runnerTypeRoutes(deps)]
}

const entityTagHeader = { ETag: 'Differs after each change of the action. Send it as `If-Match`.' }

const tagged = (action: ActionRecord): Reply => new Reply(action, { headers: { ETag: entityTagOf(action) } })

interface ActionQuery {
  pack?: string
  name?: string
  id?: string[]
}

/** @param tag only actions with a tag of this name */
async function find(
  store: ActionStore,
  { pack, name, id }: ActionQuery,
  page: Page,
  tag?: string,
): Promise<{ actions: ActionRecord[]; total: number }> {
  const filter = { pack, name, ids: parseItems(id) }
  if (tag === undefined) return { total: store.count(filter), actions: await store.list(filter, page) }
  const tagged = (await store.list(filter, { limit: undefined, offset: 0 })).filter(({ tags }) =>
    tags.some((one) => one.name === tag),
  )
  return { actions: slicePage(tagged, page), total: tagged.length }
}

function actionRoutes({ service, changes, cloning, store, maxPageSize }: ActionRoutesDeps): Route[] {
  return [
    listEndpoint({
      path: '/actions',
      permission: 'action_list',
      summary: 'Lists actions in the order of pack and name.',
      record: PartialAction,
      query: { ...filterQuery, tags: { type: 'string', description: 'Only actions with a tag of this name.' } },
      page: { defaultLimit: undefined, maxPageSize },
      attributes,
      async find({ query, page }) {
        const { actions, total } = await find(store, query, page, query.tags)
        return { records: actions, total }
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/actions/:ref_or_id',
      permission: 'action_view',
      resource: ({ params }) => actionResource(service.get(params.ref_or_id).ref),
      summary: 'Gets one action.',
      response: ActionRecord,
      failures: [404],
      answerHeaders: entityTagHeader,
      handler: ({ params }) => tagged(service.get(params.ref_or_id)),
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/actions',
      permission: 'action_create',
      resourceOfBody: (body) => givenResource(body),
      summary: 'Creates an action and writes its files into its pack.',
      body: ActionRequest,
      status: 201,
      response: ActionRecord,
      failures: [400, 403, 409, 500, 503],
      answerHeaders: entityTagHeader,
      handler: async (request) => tagged(await changes.create(request, request.body)),
      answerAgain: (_, id = '') => tagged(service.get(id)),
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/actions/:ref_or_id/clone',
      permission: 'action_view',
      resource: ({ params }) => actionResource(service.get(params.ref_or_id).ref),
      summary: 'Copies an action with its metadata file and entry point into a pack.',
      body: ActionClone,
      status: 201,
      response: ActionRecord,
      failures: [400, 403, 404, 409, 500, 503],
      answerHeaders: entityTagHeader,
      handler: async (request) => tagged(await cloning.clone(request, request.params.ref_or_id, request.body)),
      answerAgain: (_, id = '') => tagged(service.get(id)),
    }),
    route({
      surface: 'api',
      method: 'put',
      path: '/actions/:ref_or_id',
      permission: 'action_modify',
      resource: ({ params }) => actionResource(service.get(params.ref_or_id).ref),
      summary: 'Replaces an action and writes its files into its pack.',
      body: ActionRequest,
      response: ActionRecord,
      headers: { 'If-Match': '`ETag` of the action: the request fails with 412 if the action has changed since.' },
      answerHeaders: entityTagHeader,
      failures: [400, 403, 404, 409, 412, 500, 503],
      async handler(request) {
        const { params, body, headers } = request
        return tagged(await changes.update(request, params.ref_or_id, body, headers['if-match']))
      },
      answerAgain: ({ params }, id = params.ref_or_id) => tagged(service.get(id)),
    }),
    route({
      surface: 'api',
      method: 'delete',
      path: '/actions/:ref_or_id',
      permission: 'action_delete',
      resource: ({ params }) => actionResource(service.get(params.ref_or_id).ref),
      summary: 'Deletes an action; its executions stay.',
      body: ActionDeletion,
      status: 204,
      response: Type.Unknown(),
      failures: [400, 403, 404, 500, 503],
      async handler(request) {
        const { remove_files: removesFiles = false } = request.body
        await changes.delete(request, request.params.ref_or_id, removesFiles)
      },
    }),
  ]
}

/** Actions with more than their own record. */
function viewRoutes({ service, store, maxPageSize }: ActionRoutesDeps): Route[] {
  const withMergedParameters = (action: ActionRecord): ActionRecord => ({
    ...action,
    parameters: { ...service.parametersOf(action) },
  })

  return [
    route({
      surface: 'api',
      method: 'get',
      path: '/actions/views/parameters/:id',
      permission: 'action_view',
      resource: ({ params }) => actionResource(service.get(params.id).ref),
      summary: 'Gets all parameters of an action, those of its runner type included.',
      response: ActionParameters,
      failures: [404],
      handler: ({ params }) => ({ parameters: service.parametersOf(service.get(params.id)) }),
    }),
    listEndpoint({
      path: '/actions/views/overview',
      permission: 'action_list',
      summary: 'Lists actions with the parameters of their runner types merged in.',
      record: PartialAction,
      query: filterQuery,
      page: { defaultLimit: undefined, maxPageSize },
      attributes,
      async find({ query, page }) {
        const { actions, total } = await find(store, query, page)
        // Merged and written piece by piece: thousands at once would block the event loop.
        function* records(): Generator<ActionRecord> {
          for (const action of actions) yield withMergedParameters(action)
        }
        return { records: records(), total }
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/actions/views/overview/:ref_or_id',
      permission: 'action_view',
      resource: ({ params }) => actionResource(service.get(params.ref_or_id).ref),
      summary: 'Gets one action with the parameters of its runner type merged in.',
      response: ActionRecord,
      failures: [404],
      handler: ({ params }) => withMergedParameters(service.get(params.ref_or_id)),
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/actions/views/entry_point/:ref_or_id',
      permission: 'action_view',
      resource: ({ params }) => actionResource(service.get(params.ref_or_id).ref),
      summary: 'Gets the text of the file that an action runs.',
      response: Type.String(),
      mediaType: 'text/plain; charset=UTF-8',
      failures: [404],
      handler: ({ params }) => readEntryPoint(service, service.get(params.ref_or_id)),
    }),
  ]
}

const runnerTypeAttributes: AttributeOptions = {
  known: Object.keys(RunnerTypeRecord.properties),
  excludable: Object.keys(RunnerTypeRecord.properties).filter((name) => !['id', 'name'].includes(name)),
  always: ['id', 'name'],
}

function runnerTypeRoutes({ service, store, log, maxPageSize }: ActionRoutesDeps): Route[] {
  function getRunnerType(nameOrId: string): RunnerTypeRecord {
    const runnerType = service.findRunnerType(nameOrId)
    if (runnerType === undefined) throw namedNotFound(nameOrId)
    return runnerType
  }

  return [
    listEndpoint({
      path: '/runnertypes',
      permission: 'runner_type_list',
      summary: 'Lists runner types in the order of their names.',
      record: PartialRunnerType,
      query: { name: { type: 'array', description: 'Only runner types of these names, at most 100.' }, ...idQuery },
      page: { defaultLimit: RUNNER_TYPES_LIMIT, maxPageSize },
      attributes: runnerTypeAttributes,
      sort: ['id', 'name'],
      find: (request) => arrange(store.listRunnerTypes(parseItems(request.query.name), allPages), request),
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/runnertypes/:name_or_id',
      permission: 'runner_type_view',
      resource: ({ params }) => runnerTypeResource(getRunnerType(params.name_or_id).name),
      summary: 'Gets one runner type.',
      response: RunnerTypeRecord,
      failures: [404],
      handler: ({ params }) => getRunnerType(params.name_or_id),
    }),
    route({
      surface: 'api',
      method: 'put',
      path: '/runnertypes/:name_or_id',
      permission: 'runner_type_modify',
      resource: ({ params }) => runnerTypeResource(getRunnerType(params.name_or_id).name),
      summary: 'Enables or disables a runner type; other attributes of the body are ignored.',
      body: RunnerTypeUpdate,
      response: RunnerTypeRecord,
      failures: [400, 404],
      async handler(request) {
        const { enabled } = request.body
        const changed = await service.setRunnerTypeEnabled(request.params.name_or_id, enabled)
        const { id, name: runner } = changed
        log.audit('runner_type.updated', `Runner Type updated. RunnerType.id=${id}`, {
          ...aboutCaller(request),
          runner,
          runner_type_id: id,
          enabled,
        })
        return changed
      },
      answerAgain: ({ params }) => getRunnerType(params.name_or_id),
    }),
  ]
}

function givenResource({ pack, name }: ActionRequest): Resource {
  return actionResource(`${pack ?? defaultPack}.${name}`)
}

async function readEntryPoint(service: ActionService, action: ActionRecord): Promise<Reply> {
  const { ref, pack, entry_point: entryPoint } = action
  if (entryPoint === '') throw entryPointNotFound(ref, 'its runner needs none.')
  const folder = service.folderOf(pack)
  if (folder === undefined) throw entryPointNotFound(ref, `the pack "${pack}" has no folder on this server.`)
  const file = await readContainedFile(folder, entryPointFile('actions', entryPoint) ?? '', MAX_ENTRY_POINT_BYTES)
  if ('problem' in file) throw entryPointNotFound(ref, `its file is ${file.problem}.`)
  const [, extension = ''] = /\.(\w+)$/.exec(entryPoint) ?? []
  const mediaType = Object.hasOwn(mediaTypes, extension) ? mediaTypes[extension] : 'text/plain'
  return new Reply(file.text, { headers: { 'Content-Type': `${mediaType ?? ''}; charset=UTF-8` } })
}
