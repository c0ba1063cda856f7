/** Endpoints of contract 05, 5.1–5.3. */
import { queryInvalid, queueFull, resourceNotFound, triggerGone } from '../../core/errors.ts'
import {
  aboutCaller,
  attributeQuery,
  listReply,
  pageHeaders,
  pageQuery,
  parseAttributes,
  parseItems,
  parsePage,
  parseSort,
  slicePage,
  textFilter,
  type Projection,
  type SortField,
  Reply,
  type ApiRequest,
  type QueryParameter,
  type QueryValue,
  type Rights,
  type Route,
} from '../../http/index.ts'
import { isId } from '../../core/ids.ts'
import type { Log } from '../../lib/log/index.ts'
import { defaultPack, descriptionSchema, nameSchema, packSchema } from '../../core/pack-content.ts'
import { isObject, type JsonSchema } from '../../lib/schema/index.ts'
import type { Catalogue } from './catalogue.ts'
import { definitionSchema } from './definition.ts'
import { instanceFilterParameters, parseInstanceQuery } from './list.ts'
import type { TriggersService } from './service.ts'
import type { TriggerStore } from './store.ts'
import type {
  TriggerAuthor,
  TriggerInstance,
  TriggerInstanceRecord,
  TriggerRecord,
  TriggerTypeRecord,
} from './types.ts'
import type { TriggerRequest, TypesService } from './types-service.ts'
import { triggerResource } from '../../core/permissions.ts'

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

/** Of the record of a trigger; webhooks and timers are triggers as well. */
export const triggerProperties: Record<string, JsonSchema> = {
  id: text,
  uid: text,
  ref: text,
  name: text,
  pack: text,
  type: { type: 'string', description: 'Reference of the trigger type.' },
  description: text,
  parameters: { type: 'object', description: 'Secret values are masked.' },
}

const triggerSchema: JsonSchema = {
  title: 'Trigger',
  type: 'object',
  required: Object.keys(triggerProperties),
  properties: triggerProperties,
}

const triggerBody: JsonSchema = {
  type: 'object',
  properties: {
    type: { type: 'string', description: 'Reference of the trigger type.' },
    pack: { ...packSchema, type: ['string', 'null'], description: 'Default: that of the type.' },
    name: { ...nameSchema, type: ['string', 'null'], description: 'Default: a random one.' },
    description: descriptionSchema,
    parameters: { type: ['object', 'null'] },
  },
}

const instanceProperties: Record<string, JsonSchema> = {
  id: text,
  trigger: { type: 'string', description: 'Reference of the trigger.' },
  trigger_type: { type: 'string', description: 'Reference of the trigger type.' },
  payload: { description: 'What has happened.' },
  occurrence_time: { type: 'string', description: 'ISO 8601 UTC with microseconds.' },
  status: { type: 'string', enum: ['pending', 'processing', 'processed', 'processing_failed'] },
  trace_id: text,
}

const payloadQuery: Record<string, QueryParameter> = {
  max_payload_size: {
    type: 'integer',
    description: 'Leaves out a payload of more bytes, and tells `payload_size` instead; 0: no limit.',
  },
}

/** With `include_attributes` nothing but the id is certain. */
const instanceSchema: JsonSchema = {
  title: 'TriggerInstance',
  type: 'object',
  required: ['id'],
  properties: {
    ...instanceProperties,
    payload_size: { type: 'integer', description: 'In the place of `payload`: see `max_payload_size`.' },
  },
}

const instanceAttributes = {
  known: Object.keys(instanceProperties),
  excludable: Object.keys(instanceProperties).filter((name) => name !== 'id'),
  always: ['id'],
}

const reEmitSchema: JsonSchema = {
  type: 'object',
  required: ['message', 'payload'],
  properties: { message: text, payload: { description: 'Of the new instance.' } },
}

export function createRoutes(deps: {
  store: TriggerStore
  catalogue: Catalogue
  service: TriggersService
  types: TypesService
  log: Log
  settings: { maxPageSize: number; queueLimit: number }
}): Route[] {
  const { store, catalogue, service, types, log, settings } = deps

  const typeOf = ({ params }: Pick<ApiRequest, 'params'>): TriggerTypeRecord => types.getType(params['ref_or_id'] ?? '')
  const triggerOf = ({ params }: Pick<ApiRequest, 'params'>): TriggerRecord => types.getTrigger(params['id'] ?? '')

  function instanceOf({ params }: Pick<ApiRequest, 'params'>, withPayload: boolean): TriggerInstance {
    const id = params['id'] ?? ''
    const [instance] = isId(id) ? store.instances([id], withPayload ? Infinity : 0) : []
    if (instance === undefined) throw resourceNotFound(id)
    return instance
  }

  function auditType(
    what: 'created' | 'updated' | 'deleted',
    { id, ref }: TriggerTypeRecord,
    request: ApiRequest,
  ): void {
    const message = `TriggerType ${what}. TriggerType.id=${id}`
    log.audit(`trigger_type.${what}`, message, { ...aboutCaller(request), trigger_type: ref, trigger_type_id: id })
  }

  function auditTrigger(
    what: 'created' | 'updated' | 'deleted',
    { id, ref }: TriggerRecord,
    request: ApiRequest,
  ): void {
    const message = `Trigger ${what}. Trigger.id=${id}`
    log.audit(`trigger.${what}`, message, { ...aboutCaller(request), trigger: ref, trigger_id: id })
  }

  /** @param maxPayloadBytes a larger payload is left out, and its size is told instead */
  function* instanceRecords(
    ids: readonly string[],
    projection: Projection,
    maxPayloadBytes: number,
  ): Generator<Record<string, unknown>> {
    const withPayload = projection.needed === undefined || projection.needed.has('payload')
    for (const instance of store.instances(ids, withPayload ? maxPayloadBytes : 0)) {
      const { payload, ...record } = instanceRecord(instance)
      if (!withPayload) yield projection.apply(record)
      else if (instance.payload_size <= maxPayloadBytes) yield projection.apply({ ...record, payload })
      else yield { ...projection.apply(record), payload_size: instance.payload_size }
    }
  }

  return [
    {
      surface: 'api',
      method: 'get',
      path: '/triggertypes',
      permission: 'trigger_list',
      summary: 'Lists trigger types in the order of pack and name.',
      query: {
        pack: textQuery('Only types of this pack.'),
        name: textQuery('Only types of this name.'),
        sort: { type: 'array', description: 'id, ref, pack or name, `-` before a name for descending.' },
        ...pageQuery,
        ...attributeQuery,
      },
      response: { type: 'array', items: { ...typeSchema, title: 'PartialTriggerType', required: ['id', 'ref'] } },
      failures: [400, 403],
      handler({ query, principal, rights }) {
        const page = parsePage(query, principal, { defaultLimit: DEFAULT_LIMIT, maxPageSize: settings.maxPageSize })
        const projection = parseAttributes(query, typeAttributes)
        const pack = textFilter(query, 'pack')
        const name = textFilter(query, 'name')
        const sort = parseSort(query['sort'], ['id', 'ref', 'pack', 'name'])
        const found = [...catalogue.types()]
          .filter((type) => (pack ?? type.pack) === type.pack && (name ?? type.name) === type.name)
          .filter(({ ref }) => mayView(rights, ref))
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
        const type = await types.createType(request.body)
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
        const type = await types.updateType(before.id, request.body)
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
        auditType('deleted', await types.deleteType(typeOf(request).id), request)
      },
    },

    {
      surface: 'api',
      method: 'get',
      path: '/triggers',
      permission: 'trigger_list',
      summary: 'Lists triggers in the order in which they were made.',
      query: {
        type: textQuery('Only triggers of this type (reference).'),
        pack: textQuery('Only triggers of this pack.'),
        name: textQuery('Only triggers of this name.'),
        ref: { type: 'array', description: 'Only triggers with these references; at most 100.' },
      },
      response: { type: 'array', items: triggerSchema },
      failures: [400, 403],
      handler({ query, rights }) {
        const type = textFilter(query, 'type')
        const pack = textFilter(query, 'pack')
        const name = textFilter(query, 'name')
        const refs = parseItems(query['ref'])
        const wanted = refs === undefined ? undefined : new Set(refs)
        const candidates = type === undefined ? [...catalogue.triggers()] : catalogue.ofType(type)
        const found = candidates
          .filter(({ ref }) => wanted?.has(ref) !== false)
          .filter((trigger) => (pack ?? trigger.pack) === trigger.pack && (name ?? trigger.name) === trigger.name)
          .filter((trigger) => mayView(rights, trigger.type))
        return listReply(recordsOf(found), { 'X-Total-Count': String(found.length) })
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/triggers/:id',
      permission: 'trigger_view',
      resource: (request) => triggerResource(triggerOf(request).type),
      summary: 'Gets one trigger.',
      response: triggerSchema,
      failures: [404],
      handler: (request) => service.record(triggerOf(request)),
    },
    {
      surface: 'api',
      method: 'post',
      path: '/triggers',
      permission: 'trigger_all',
      resourceOfBody: (body) => triggerResource((body as { type: string }).type), // fits the schema
      summary: 'Makes a trigger; one of this pack and name that there is already is answered as it is.',
      body: { ...triggerBody, required: ['type'] },
      status: 201,
      response: triggerSchema,
      failures: [400, 409],
      async handler(request) {
        const { trigger, isNew } = await types.createTrigger(
          request.body as TriggerRequest & { type: string }, // as above
          authorOf(request),
        )
        // It may be of another type than the one that was asked for.
        if (!isNew) request.rights.require('trigger_view', triggerResource(trigger.type))
        else auditTrigger('created', trigger, request)
        return service.record(trigger)
      },
    },
    {
      surface: 'api',
      method: 'put',
      path: '/triggers/:id',
      permission: 'trigger_all',
      resource: (request) => triggerResource(triggerOf(request).type),
      summary: 'Changes a trigger; of one that rules use only the description.',
      body: triggerBody,
      response: triggerSchema,
      failures: [400, 404, 409],
      async handler(request) {
        const trigger = await types.updateTrigger(
          triggerOf(request).id,
          request.body as TriggerRequest, // as above
          authorOf(request),
        )
        auditTrigger('updated', trigger, request)
        return service.record(trigger)
      },
    },
    {
      surface: 'api',
      method: 'delete',
      path: '/triggers/:id',
      permission: 'trigger_all',
      resource: (request) => triggerResource(triggerOf(request).type),
      summary: 'Deletes a trigger that no rule uses.',
      status: 204,
      response: {},
      failures: [404, 409],
      async handler(request) {
        auditTrigger('deleted', await types.deleteTrigger(triggerOf(request).id), request)
      },
    },

    {
      surface: 'api',
      method: 'get',
      path: '/triggerinstances',
      permission: 'trigger_list',
      summary: 'Lists trigger instances, newest first.',
      query: { ...instanceFilterParameters, ...pageQuery, ...attributeQuery, ...payloadQuery },
      response: { type: 'array', items: instanceSchema },
      failures: [400, 403, 503],
      async handler(request) {
        const { query, principal, rights } = request
        const page = parsePage(query, principal, { defaultLimit: DEFAULT_LIMIT, maxPageSize: settings.maxPageSize })
        const list = parseInstanceQuery(query)
        const { filter, place } = list
        if (!rights.may('trigger_view')) {
          const visible = [...catalogue.types()].map(({ ref }) => ref).filter((ref) => mayView(rights, ref))
          // One type that may be seen needs no further condition.
          if (filter.trigger_type === undefined || !visible.includes(filter.trigger_type)) filter.types = visible
        }
        const projection = parseAttributes(query, instanceAttributes)
        const maxPayloadBytes = maxPayloadBytesOf(query)
        const [ids, total] = await Promise.all([
          store.page({ ...list, ...page }),
          // Who goes on has been told before, and can be spared the counting.
          place === undefined ? store.total(filter) : undefined,
        ])
        return listReply(instanceRecords(ids, projection, maxPayloadBytes), pageHeaders(page, total))
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/triggerinstances/:id',
      permission: 'trigger_view',
      resource: (request) => triggerResource(instanceOf(request, false).trigger_type),
      summary: 'Gets one trigger instance.',
      query: { ...attributeQuery, ...payloadQuery },
      response: instanceSchema,
      failures: [400, 404],
      handler(request) {
        const projection = parseAttributes(request.query, instanceAttributes)
        const maxPayloadBytes = maxPayloadBytesOf(request.query)
        const [record] = instanceRecords([instanceOf(request, false).id], projection, maxPayloadBytes)
        return record
      },
    },
    {
      surface: 'api',
      method: 'post',
      path: '/triggerinstances/:id/re_emit',
      permission: 'trigger_all',
      resource: (request) => triggerResource(instanceOf(request, false).trigger_type),
      summary: 'Dispatches the payload of a trigger instance again, in a new trace.',
      response: reEmitSchema,
      failures: [404, 409, 503],
      async handler(request) {
        const { id, trigger: ref, trigger_id: triggerId, payload: original } = instanceOf(request, true)
        const trigger = catalogue.find(triggerId) ?? catalogue.find(ref)
        if (trigger === undefined) throw triggerGone(ref)
        if (service.pendingCount() >= settings.queueLimit) throw queueFull('trigger instances', settings.queueLimit)
        const payload = isObject(original) ? { ...original, __context: { original_id: id } } : original
        const instance = await service.dispatch(trigger, payload)
        log.audit('trigger_instance.re_emitted', {
          ...aboutCaller(request),
          trigger: trigger.ref,
          original_id: id,
          trigger_instance_id: instance.id,
        })
        return new Reply(
          { message: `Trigger instance ${id} successfully re-sent.`, payload },
          { headers: { 'Svc-Trigger-Instance-Id': instance.id, 'Svc-Trace-Id': instance.trace_id } },
        )
      },
    },
  ]

  function* recordsOf(triggers: readonly TriggerRecord[]): Generator<TriggerRecord> {
    for (const trigger of triggers) yield service.record(trigger)
  }
}

/** @throws QUERY_INVALID */
function maxPayloadBytesOf(query: Record<string, QueryValue>): number {
  const size = query['max_payload_size']
  if (typeof size !== 'number' || size === 0) return Infinity
  if (size < 0) throw queryInvalid('max_payload_size must be a positive number')
  return size
}

function instanceRecord(instance: TriggerInstance): TriggerInstanceRecord {
  const { id, trigger, trigger_type, payload, occurrence_time, status, trace_id } = instance
  return { id, trigger, trigger_type, payload, occurrence_time, status, trace_id }
}

function mayView(rights: Rights, typeRef: string): boolean {
  return rights.may('trigger_view', triggerResource(typeRef))
}

function textQuery(description: string): QueryParameter {
  return { type: 'string', description }
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

function authorOf({ principal: { user, scopes } }: ApiRequest): TriggerAuthor {
  return { user, ...(scopes === undefined ? {} : { scopes }) }
}
