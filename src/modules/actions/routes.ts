/** Endpoints of contract 02, 2.2 and 2.3. */
import { contentNotFound, entryPointNotFound, namedNotFound } from '../../core/errors.ts'
import {
  attributeQuery,
  listReply,
  pageHeaders,
  pageQuery,
  parseAttributes,
  parseItems,
  parsePage,
  slicePage,
  Reply,
  type ApiRequest,
  type QueryParameter,
  type Route,
  aboutCaller,
} from '../../http/index.ts'
import { readContainedFile } from '../../lib/files/index.ts'
import type { Log } from '../../lib/log/index.ts'
import { defaultPack } from '../../core/pack-content.ts'
import type { JsonSchema } from '../../lib/schema/index.ts'
import type { ActionChanges, ActionRequest } from './changes.ts'
import { actionRequestSchema } from './definition.ts'
import type { ActionService } from './service.ts'
import type { ActionStore } from './store.ts'
import type { ActionRecord, RunnerTypeRecord } from './types.ts'
import { actionResource, runnerTypeResource, type Resource } from '../../core/permissions.ts'

const MAX_ENTRY_POINT_BYTES = 5_000_000
const RUNNER_TYPES_LIMIT = 100

const parametersSchema: JsonSchema = {
  type: 'object',
  description:
    'Parameter name → its schema, JSON schema draft 4 with `required`, `immutable`, `secret` and `position`.',
  additionalProperties: { type: 'object' },
}

const actionProperties: Record<string, JsonSchema> = {
  id: { type: 'string' },
  uid: { type: 'string' },
  ref: { type: 'string' },
  name: { type: 'string' },
  pack: { type: 'string' },
  description: { type: 'string' },
  enabled: { type: 'boolean' },
  runner_type: { type: 'string' },
  entry_point: { type: 'string' },
  parameters: parametersSchema,
  output_schema: { type: 'object' },
  tags: {
    type: 'array',
    items: { type: 'object', properties: { name: { type: 'string' }, value: { type: 'string' } } },
  },
  notify: { type: 'object' },
  metadata_file: { type: 'string' },
}

const runnerTypeProperties: Record<string, JsonSchema> = {
  id: { type: 'string' },
  uid: { type: 'string' },
  name: { type: 'string' },
  description: { type: 'string' },
  enabled: { type: 'boolean' },
  runner_package: { type: 'string' },
  runner_module: { type: 'string' },
  runner_parameters: parametersSchema,
  output_key: { type: 'string' },
  output_schema: { type: 'object' },
}

/** For the OpenAPI document. */
export const actionSchema: JsonSchema = {
  type: 'object',
  required: Object.keys(actionProperties).filter((name) => name !== 'metadata_file'),
  properties: actionProperties,
}

/** For the OpenAPI document. */
export const runnerTypeSchema: JsonSchema = {
  type: 'object',
  required: Object.keys(runnerTypeProperties).filter((name) => !name.startsWith('output_')),
  properties: runnerTypeProperties,
}

/** `include_attributes` and `exclude_attributes` leave parts out. */
const partialActionSchema: JsonSchema = { type: 'object', required: ['id', 'ref'], properties: actionProperties }

const attributes = {
  known: Object.keys(actionProperties),
  excludable: ['parameters', 'notify'],
  always: ['id', 'ref', 'pack', 'name'],
}

const overviewQuery = {
  pack: { type: 'string', description: 'Only actions of this pack.' },
  name: { type: 'string', description: 'Only actions of this name.' },
  id: { type: 'array', description: 'Only these ids, at most 100.' },
  ...pageQuery,
  ...attributeQuery,
} satisfies Record<string, QueryParameter>

const mediaTypes: Readonly<Record<string, string>> = {
  yaml: 'application/x-yaml',
  yml: 'application/x-yaml',
  py: 'text/x-python',
}

export function createRoutes(deps: {
  service: ActionService
  changes: ActionChanges
  store: ActionStore
  log: Log
  maxPageSize: number
}): Route[] {
  const { service, changes, store, log, maxPageSize } = deps

  function get(refOrId: string | undefined): ActionRecord {
    const action = service.find(refOrId ?? '')
    if (action === undefined) throw contentNotFound(refOrId ?? '')
    return action
  }

  function getRunnerType(nameOrId: string | undefined): RunnerTypeRecord {
    const runnerType = service.findRunnerType(nameOrId ?? '')
    if (runnerType === undefined) throw namedNotFound(nameOrId ?? '')
    return runnerType
  }

  async function list(
    { query, principal }: ApiRequest,
    present: (action: ActionRecord) => ActionRecord,
  ): Promise<Reply> {
    const page = parsePage(query, principal, { defaultLimit: undefined, maxPageSize })
    const projection = parseAttributes(query, attributes)
    const filter = {
      pack: textOf(query['pack']),
      name: textOf(query['name']),
      ids: parseItems(query['id']),
    }
    const tag = textOf(query['tags'])
    let actions: ActionRecord[]
    let total: number
    if (tag === undefined) {
      total = store.count(filter)
      actions = await store.list(filter, page)
    } else {
      const tagged = (await store.list(filter, { limit: undefined, offset: 0 })).filter(({ tags }) =>
        tags.some(({ name }) => name === tag),
      )
      total = tagged.length
      actions = slicePage(tagged, page)
    }
    function* records(): Generator<Record<string, unknown>> {
      for (const action of actions) yield projection.apply({ ...present(action) })
    }
    // Merged and written piece by piece: thousands at once would keep everybody else waiting.
    return listReply(records(), pageHeaders(page, total))
  }

  const withMergedParameters = (action: ActionRecord): ActionRecord => ({
    ...action,
    parameters: { ...service.parametersOf(action) },
  })

  return [
    {
      surface: 'api',
      method: 'get',
      path: '/actions',
      permission: 'action_list',
      summary: 'Lists actions in the order of pack and name.',
      query: { ...overviewQuery, tags: { type: 'string', description: 'Only actions with a tag of this name.' } },
      response: { type: 'array', items: partialActionSchema },
      failures: [400, 403],
      handler: (request) => list(request, (action) => action),
    },
    {
      surface: 'api',
      method: 'get',
      path: '/actions/:ref_or_id',
      permission: 'action_view',
      resource: ({ params }) => actionResource(get(params['ref_or_id']).ref),
      summary: 'Gets one action.',
      response: actionSchema,
      failures: [404],
      handler: ({ params }) => get(params['ref_or_id']),
    },
    {
      surface: 'api',
      method: 'post',
      path: '/actions',
      permission: 'action_create',
      resourceOfBody: (body) => givenResource(body as ActionRequest), // fits the schema
      summary: 'Makes an action, and writes files of it into its pack.',
      body: actionRequestSchema,
      status: 201,
      response: actionSchema,
      failures: [400, 403, 409, 500, 503],
      handler: (request) => changes.create(request, request.body as ActionRequest), // fits the schema
    },
    {
      surface: 'api',
      method: 'put',
      path: '/actions/:ref_or_id',
      permission: 'action_modify',
      resource: ({ params }) => actionResource(get(params['ref_or_id']).ref),
      summary: 'Replaces an action, and writes files of it into its pack.',
      body: actionRequestSchema,
      response: actionSchema,
      failures: [400, 403, 404, 409, 500, 503],
      handler: (request) => changes.update(request, request.params['ref_or_id'] ?? '', request.body as ActionRequest), // fits the schema
    },
    {
      surface: 'api',
      method: 'delete',
      path: '/actions/:ref_or_id',
      permission: 'action_delete',
      resource: ({ params }) => actionResource(get(params['ref_or_id']).ref),
      summary: 'Deletes an action; its executions stay.',
      body: {
        type: 'object',
        additionalProperties: false,
        properties: {
          remove_files: {
            type: 'boolean',
            description: 'Also deletes its metadata file and its entry point; default false.',
          },
        },
      },
      status: 204,
      response: {},
      failures: [400, 403, 404, 500, 503],
      async handler(request) {
        const { remove_files: removesFiles = false } = request.body as { remove_files?: boolean } // fits the schema
        await changes.delete(request, request.params['ref_or_id'] ?? '', removesFiles)
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/actions/views/parameters/:id',
      permission: 'action_view',
      resource: ({ params }) => actionResource(get(params['id']).ref),
      summary: 'Gets the parameters an action really has, those of its runner included.',
      response: { type: 'object', required: ['parameters'], properties: { parameters: parametersSchema } },
      failures: [404],
      handler: ({ params }) => ({ parameters: service.parametersOf(get(params['id'])) }),
    },
    {
      surface: 'api',
      method: 'get',
      path: '/actions/views/overview',
      permission: 'action_list',
      summary: 'Lists actions with the parameters of their runners merged in.',
      query: overviewQuery,
      response: { type: 'array', items: partialActionSchema },
      failures: [400, 403],
      handler: (request) => list(request, withMergedParameters),
    },
    {
      surface: 'api',
      method: 'get',
      path: '/actions/views/overview/:ref_or_id',
      permission: 'action_view',
      resource: ({ params }) => actionResource(get(params['ref_or_id']).ref),
      summary: 'Gets one action with the parameters of its runner merged in.',
      response: actionSchema,
      failures: [404],
      handler: ({ params }) => withMergedParameters(get(params['ref_or_id'])),
    },
    {
      surface: 'api',
      method: 'get',
      path: '/actions/views/entry_point/:ref_or_id',
      permission: 'action_view',
      resource: ({ params }) => actionResource(get(params['ref_or_id']).ref),
      summary: 'Gets the text of the file an action runs.',
      response: { type: 'string' },
      mediaType: 'text/plain; charset=UTF-8',
      failures: [404],
      handler: ({ params }) => readEntryPoint(service, get(params['ref_or_id'])),
    },
    {
      surface: 'api',
      method: 'get',
      path: '/runnertypes',
      permission: 'runner_type_list',
      summary: 'Lists runner types in the order of their names.',
      query: { name: { type: 'array', description: 'Only runner types of these names, at most 100.' }, ...pageQuery },
      response: { type: 'array', items: runnerTypeSchema },
      failures: [400, 403],
      handler({ query, principal }) {
        const page = parsePage(query, principal, { defaultLimit: RUNNER_TYPES_LIMIT, maxPageSize })
        const names = parseItems(query['name'])
        return new Reply(store.listRunnerTypes(names, page), {
          headers: pageHeaders(page, store.countRunnerTypes(names)),
        })
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/runnertypes/:name_or_id',
      permission: 'runner_type_view',
      resource: ({ params }) => runnerTypeResource(getRunnerType(params['name_or_id']).name),
      summary: 'Gets one runner type.',
      response: runnerTypeSchema,
      failures: [404],
      handler: ({ params }) => getRunnerType(params['name_or_id']),
    },
    {
      surface: 'api',
      method: 'put',
      path: '/runnertypes/:name_or_id',
      permission: 'runner_type_modify',
      resource: ({ params }) => runnerTypeResource(getRunnerType(params['name_or_id']).name),
      summary: 'Enables or disables a runner type; nothing else of the body is taken.',
      body: { type: 'object', required: ['enabled'], properties: { enabled: { type: 'boolean' } } },
      response: runnerTypeSchema,
      failures: [400, 404],
      async handler(request) {
        const { enabled } = request.body as { enabled: boolean } // has passed its schema
        const changed = await service.setRunnerTypeEnabled(request.params['name_or_id'] ?? '', enabled)
        const { id, name: runner } = changed
        log.audit('runner_type.updated', `Runner Type updated. RunnerType.id=${id}`, {
          ...aboutCaller(request),
          runner,
          runner_type_id: id,
          enabled,
        })
        return changed
      },
    },
  ]
}

function givenResource({ pack, name = '' }: ActionRequest): Resource {
  return actionResource(`${pack ?? defaultPack}.${name}`)
}

async function readEntryPoint(service: ActionService, action: ActionRecord): Promise<Reply> {
  const { ref, pack, entry_point: entryPoint } = action
  if (entryPoint === '') throw entryPointNotFound(ref, 'its runner needs none.')
  const folder = service.folderOf(pack)
  if (folder === undefined) throw entryPointNotFound(ref, `the pack "${pack}" has no folder on this server.`)
  const file = await readContainedFile(folder, `actions/${entryPoint}`, MAX_ENTRY_POINT_BYTES)
  if ('problem' in file) throw entryPointNotFound(ref, `its file is ${file.problem}.`)
  const [, extension = ''] = /\.(\w+)$/.exec(entryPoint) ?? []
  const mediaType = Object.hasOwn(mediaTypes, extension) ? mediaTypes[extension] : 'text/plain'
  return new Reply(file.text, { headers: { 'Content-Type': `${mediaType ?? ''}; charset=UTF-8` } })
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
