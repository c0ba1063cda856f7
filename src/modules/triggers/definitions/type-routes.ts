/** Endpoints of trigger types (contract 05, 5.1). */
import {
  aboutCaller,
  arrange,
  idQuery,
  listEndpoint,
  route,
  textFilter,
  type SortField,
  type ApiRequest,
  type Route,
} from '../../../http/index.ts'
import { mayViewType } from '../visible-types.ts'
import type { TypeChanges } from './type-changes.ts'
import type { Log } from '../../../lib/log/index.ts'
import { defaultPack } from '../../../core/pack-content.ts'
import type { Catalogue } from './catalogue.ts'
import { PartialTriggerType, TriggerTypeRecord, TriggerTypeRequest, TriggerTypeUpdate } from '../types.ts'
import { triggerResource } from '../../../core/permissions.ts'

const DEFAULT_LIMIT = 100

const typeAttributes = {
  known: Object.keys(TriggerTypeRecord.properties),
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
    request: Parameters<typeof aboutCaller>[0],
  ): void {
    const message = `TriggerType ${what}. TriggerType.id=${id}`
    log.audit(`trigger_type.${what}`, message, { ...aboutCaller(request), trigger_type: ref, trigger_type_id: id })
  }

  return [
    listEndpoint({
      path: '/triggertypes',
      permission: 'trigger_list',
      summary: 'Lists trigger types by pack and name.',
      record: PartialTriggerType,
      query: {
        pack: { type: 'string', description: 'Only types of this pack.' },
        name: { type: 'string', description: 'Only types of this name.' },
        ...idQuery,
      },
      page: { defaultLimit: DEFAULT_LIMIT, maxPageSize },
      attributes: typeAttributes,
      sort: ['id', 'ref', 'pack', 'name'],
      find({ query, rights, page, sort }) {
        const pack = textFilter(query, 'pack')
        const name = textFilter(query, 'name')
        const found = [...catalogue.types()]
          .filter((type) => (pack ?? type.pack) === type.pack && (name ?? type.name) === type.name)
          .filter(({ ref }) => mayViewType(rights, ref))
          .sort(byFields([...sort, ...packAndName]))
        return arrange(found, { query, sort: [], page })
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/triggertypes/:ref_or_id',
      permission: 'trigger_view',
      resource: (request) => triggerResource(typeOf(request).ref),
      summary: 'Gets one trigger type.',
      response: TriggerTypeRecord,
      failures: [404],
      handler: (request) => typeOf(request),
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/triggertypes',
      permission: 'trigger_all',
      resourceOfBody: ({ pack, name }) => triggerResource(`${pack ?? defaultPack}.${name}`),
      summary: 'Creates a trigger type. A type without parameters gets one trigger, which has the name of the type.',
      body: TriggerTypeRequest,
      status: 201,
      response: TriggerTypeRecord,
      failures: [400, 409],
      async handler(request) {
        const type = await changes.createType(request.body)
        auditType('created', type, request)
        return type
      },
      answerAgain: (_, id = '') => changes.getType(id),
    }),
    route({
      surface: 'api',
      method: 'put',
      path: '/triggertypes/:ref_or_id',
      permission: 'trigger_all',
      resource: (request) => triggerResource(typeOf(request).ref),
      summary: 'Replaces a trigger type. Its id stays.',
      body: TriggerTypeUpdate,
      response: TriggerTypeRecord,
      failures: [400, 404, 409],
      async handler(request) {
        const before = typeOf(request)
        const { name, pack } = request.body
        request.rights.require('trigger_all', triggerResource(`${pack ?? before.pack}.${name ?? before.name}`))
        const type = await changes.updateType(before.id, request.body)
        auditType('updated', type, request)
        return type
      },
      answerAgain: ({ params }, id = params.ref_or_id) => changes.getType(id),
    }),
    route({
      surface: 'api',
      method: 'delete',
      path: '/triggertypes/:ref_or_id',
      permission: 'trigger_all',
      resource: (request) => triggerResource(typeOf(request).ref),
      summary: 'Deletes a trigger type and its triggers. No rule may use them.',
      status: 204,
      response: {},
      failures: [400, 404, 409],
      async handler(request) {
        auditType('deleted', await changes.deleteType(typeOf(request).id), request)
      },
    }),
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
