/** Endpoints of trigger types (contract 05, 5.1). */
import {
  aboutCaller,
  attributeQuery,
  listReply,
  pageHeaders,
  pageQuery,
  parseAttributes,
  parsePage,
  parseSort,
  slicePage,
  textFilter,
  type SortField,
  type ApiRequest,
  type Route,
} from '../../../http/index.ts'
import { mayViewType } from '../visible-types.ts'
import type { TypeChanges } from './type-changes.ts'
import type { Log } from '../../../lib/log/index.ts'
import { defaultPack } from '../../../core/pack-content.ts'
import type { JsonSchema } from '../../../lib/schema/index.ts'
import type { Catalogue } from './catalogue.ts'
import { definitionSchema } from './type-definition.ts'
import type { TriggerTypeRecord } from '../types.ts'
import { triggerResource } from '../../../core/permissions.ts'

const DEFAULT_LIMIT = 100

const object: JsonSchema = { type: 'object' }
const text: JsonSchema = { type: 'string' }

const typeProperties: Record<string, JsonSchema> = {
  id: text,
  uid: text,
  ref: text,
  name: text,
  pack: text,
  description: text,
  payload_schema: object,
  parameters_schema: object,
  tags: { type: 'array', items: { type: 'object', properties: { name: text, value: text } } },
  metadata_file: text,
}

const typeSchema: JsonSchema = {
  title: 'TriggerType',
  type: 'object',
  required: Object.keys(typeProperties).filter((name) => name !== 'metadata_file'),
  properties: typeProperties,
}

const typeAttributes = {
  known: Object.keys(typeProperties),
  excludable: ['description', 'payload_schema', 'parameters_schema', 'tags', 'metadata_file'],
  always: ['id', 'ref', 'pack', 'name'],
}

export function createTypeRoutes(deps: {
  catalogue: Catalogue
  changes: TypeChanges
  log: Log
  maxPageSize: number
}): Route[] {
  const { catalogue, changes, log, maxPageSize } = deps

  const typeOf = ({ params }: Pick<ApiRequest, 'params'>): TriggerTypeRecord =>
    changes.getType(params['ref_or_id'] ?? '')

  function auditType(
    what: 'created' | 'updated' | 'deleted',
    { id, ref }: TriggerTypeRecord,
    request: ApiRequest,
  ): void {
    const message = `TriggerType ${what}. TriggerType.id=${id}`
    log.audit(`trigger_type.${what}`, message, { ...aboutCaller(request), trigger_type: ref, trigger_type_id: id })
  }

  return [
    {
      surface: 'api',
      method: 'get',
      path: '/triggertypes',
      permission: 'trigger_list',
      summary: 'Lists trigger types in the order of pack and name.',
      query: {
        pack: { type: 'string', description: 'Only types of this pack.' },
        name: { type: 'string', description: 'Only types of this name.' },
        sort: { type: 'array', description: 'id, ref, pack or name, `-` before a name for descending.' },
        ...pageQuery,
        ...attributeQuery,
      },
      response: { type: 'array', items: { ...typeSchema, title: 'PartialTriggerType', required: ['id', 'ref'] } },
      failures: [400, 403],
      handler({ query, principal, rights }) {
        const page = parsePage(query, principal, { defaultLimit: DEFAULT_LIMIT, maxPageSize })
        const projection = parseAttributes(query, typeAttributes)
        const pack = textFilter(query, 'pack')
        const name = textFilter(query, 'name')
        const sort = parseSort(query['sort'], ['id', 'ref', 'pack', 'name'])
        const found = [...catalogue.types()]
          .filter((type) => (pack ?? type.pack) === type.pack && (name ?? type.name) === type.name)
          .filter(({ ref }) => mayViewType(rights, ref))
          .sort(byFields([...sort, ...packAndName]))
        const shown = slicePage(found, page).map((type) => projection.apply({ ...type }))
        return listReply(shown, pageHeaders(page, found.length))
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/triggertypes/:ref_or_id',
      permission: 'trigger_view',
      resource: (request) => triggerResource(typeOf(request).ref),
      summary: 'Gets one trigger type.',
      response: typeSchema,
      failures: [404],
      handler: (request) => typeOf(request),
    },
    {
      surface: 'api',
      method: 'post',
      path: '/triggertypes',
      permission: 'trigger_all',
      resourceOfBody(body) {
        const { pack, name } = body as { pack?: string | null; name: string } // fits the schema
        return triggerResource(`${pack ?? defaultPack}.${name}`)
      },
      summary: 'Makes a trigger type; one without parameters gets the trigger of its own name as well.',
      body: definitionSchema,
      status: 201,
      response: typeSchema,
      failures: [400, 409],
      async handler(request) {
        const type = await changes.createType(request.body)
        auditType('created', type, request)
        return type
      },
    },
    {
      surface: 'api',
      method: 'put',
      path: '/triggertypes/:ref_or_id',
      permission: 'trigger_all',
      resource: (request) => triggerResource(typeOf(request).ref),
      summary: 'Replaces a trigger type; its id stays.',
      body: { ...definitionSchema, required: [] },
      response: typeSchema,
      failures: [400, 404, 409],
      async handler(request) {
        const before = typeOf(request)
        const { name, pack } = request.body as { name?: string; pack?: string | null } // fits the schema
        request.rights.require('trigger_all', triggerResource(`${pack ?? before.pack}.${name ?? before.name}`))
        const type = await changes.updateType(before.id, request.body)
        auditType('updated', type, request)
        return type
      },
    },
    {
      surface: 'api',
      method: 'delete',
      path: '/triggertypes/:ref_or_id',
      permission: 'trigger_all',
      resource: (request) => triggerResource(typeOf(request).ref),
      summary: 'Deletes a trigger type that no rule uses, with its triggers.',
      status: 204,
      response: {},
      failures: [400, 404, 409],
      async handler(request) {
        auditType('deleted', await changes.deleteType(typeOf(request).id), request)
      },
    },
  ]
}

const packAndName = [
  { name: 'pack', descending: false },
  { name: 'name', descending: false },
] as const

function byFields<N extends string>(
  fields: readonly SortField<N>[],
): (a: Record<N, string>, b: Record<N, string>) => number {
  return (a, b) => {
    for (const { name, descending } of fields) {
      if (a[name] !== b[name]) return a[name] < b[name] === descending ? 1 : -1
    }
    return 0
  }
}
