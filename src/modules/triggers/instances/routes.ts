/** Endpoints of trigger instances (contract 05, 5.3). */
import { queryInvalid, queueFull, resourceNotFound, triggerGone } from '../../../core/errors.ts'
import {
  aboutCaller,
  attributeQuery,
  listReply,
  pageHeaders,
  pageQuery,
  parseAttributes,
  parsePage,
  type Projection,
  Reply,
  type ApiRequest,
  type QueryParameter,
  type QueryValue,
  type Route,
} from '../../../http/index.ts'
import { isId } from '../../../core/ids.ts'
import { mayViewType } from '../visible-types.ts'
import type { InstanceStore } from './store.ts'
import type { Log } from '../../../lib/log/index.ts'
import { isObject, type JsonSchema } from '../../../lib/schema/index.ts'
import type { Catalogue } from '../definitions/catalogue.ts'
import { instanceFilterParameters, parseInstanceQuery } from './list.ts'
import type { TriggersService } from '../service.ts'
import type { TriggerInstance, TriggerInstanceRecord } from '../types.ts'
import { triggerResource } from '../../../core/permissions.ts'

const DEFAULT_LIMIT = 100

const text: JsonSchema = { type: 'string' }

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

export function createInstanceRoutes(deps: {
  store: InstanceStore
  catalogue: Catalogue
  service: TriggersService
  log: Log
  maxPageSize: number
  queueLimit: number
}): Route[] {
  const { store, catalogue, service, log, maxPageSize, queueLimit } = deps

  function instanceOf({ params }: Pick<ApiRequest, 'params'>, withPayload: boolean): TriggerInstance {
    const id = params['id'] ?? ''
    const [instance] = isId(id) ? store.instances([id], withPayload ? Infinity : 0) : []
    if (instance === undefined) throw resourceNotFound(id)
    return instance
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
      path: '/triggerinstances',
      permission: 'trigger_list',
      summary: 'Lists trigger instances, newest first.',
      query: { ...instanceFilterParameters, ...pageQuery, ...attributeQuery, ...payloadQuery },
      response: { type: 'array', items: instanceSchema },
      failures: [400, 403, 503],
      async handler(request) {
        const { query, principal, rights } = request
        const page = parsePage(query, principal, { defaultLimit: DEFAULT_LIMIT, maxPageSize })
        const list = parseInstanceQuery(query)
        const { filter, place } = list
        if (!rights.may('trigger_view')) {
          const visible = [...catalogue.types()].map(({ ref }) => ref).filter((ref) => mayViewType(rights, ref))
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
        if (service.pendingCount() >= queueLimit) throw queueFull('trigger instances', queueLimit)
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
