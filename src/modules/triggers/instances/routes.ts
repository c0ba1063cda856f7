/** Endpoints of trigger instances (contract 05, 5.3). */
import { queryInvalid, queueFull, resourceNotFound, triggerGone } from '../../../core/errors.ts'
import {
  aboutCaller,
  attributeQuery,
  listEndpoint,
  parseAttributes,
  Reply,
  route,
  type ApiRequest,
  type Projection,
  type QueryParameter,
  type Rights,
  type Route,
} from '../../../http/index.ts'
import { ImportOutcomes } from '../../../core/import-outcomes.ts'
import { isId } from '../../../core/ids.ts'
import { mayViewType } from '../visible-types.ts'
import type { InstanceStore } from './store.ts'
import { visiblePayload } from './visible-payload.ts'
import { WrittenJson } from '../../../lib/json/index.ts'
import type { Log } from '../../../lib/log/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import type { Catalogue } from '../definitions/catalogue.ts'
import type { ImportInstances } from './import.ts'
import { instanceFilters, instanceSortNames, parseInstanceQuery } from './list.ts'
import type { TriggersService } from '../service.ts'
import {
  instanceAttributes,
  PartialTriggerInstance,
  ReEmittedInstance,
  TriggerInstanceImport,
  type TriggerInstance,
  type TriggerInstanceRecord,
} from '../types.ts'
import { triggerResource } from '../../../core/permissions.ts'

const DEFAULT_LIMIT = 100

const payloadQuery = {
  max_payload_size: {
    type: 'integer',
    description: 'Replaces a payload of more bytes with `payload_size`. 0: no limit.',
  },
} as const satisfies Record<string, QueryParameter>

const attributes = {
  known: instanceAttributes,
  excludable: instanceAttributes.filter((name) => name !== 'id'),
  always: ['id'],
}

export function createInstanceRoutes(deps: {
  store: InstanceStore
  catalogue: Catalogue
  service: TriggersService
  readonly importInstances: ImportInstances
  log: Log
  maxPageSize: number
  queueLimit: number
}): Route[] {
  const { store, catalogue, service, log, maxPageSize, queueLimit } = deps

  function instanceOf({ params }: Pick<ApiRequest, 'params'>, withPayload: boolean): TriggerInstance {
    const id = params['id'] ?? ''
    const [instance] = isId(id) ? store.instances([id], withPayload ? Infinity : 0) : []
    if (instance === undefined) throw resourceNotFound(id)
    return { ...instance, payload: WrittenJson.read(instance.payload) }
  }

  /** @param maxPayloadBytes the size replaces a larger payload. @param rights decide what of a payload is shown */
  function* instanceRecords(
    ids: readonly string[],
    projection: Projection,
    maxPayloadBytes: number,
    rights: Rights,
  ): Generator<Record<string, unknown>> {
    const withPayload = projection.needed === undefined || projection.needed.has('payload')
    for (const instance of store.instances(ids, withPayload ? maxPayloadBytes : 0)) {
      const { payload: _, ...record } = instanceRecord(instance)
      if (!withPayload) yield projection.apply(record)
      else if (instance.payload_size <= maxPayloadBytes) {
        const { payload, withheld } = visiblePayload(rights, instance)
        const shown = projection.apply({ ...record, payload })
        yield withheld === undefined || !('payload' in shown) ? shown : { ...shown, payload_reduced: withheld.reason }
      } else yield { ...projection.apply(record), payload_size: instance.payload_size }
    }
  }

  return [
    listEndpoint({
      path: '/triggerinstances',
      permission: 'trigger_list',
      summary: 'Lists trigger instances, newest first.',
      record: PartialTriggerInstance,
      query: { ...instanceFilters, ...payloadQuery },
      page: { defaultLimit: DEFAULT_LIMIT, maxPageSize },
      attributes,
      sort: instanceSortNames,
      async find({ query, rights, page, projection, sort }) {
        const list = parseInstanceQuery(query, sort)
        const { filter, place } = list
        if (!rights.may('trigger_view')) {
          const visible = [...catalogue.types()].map(({ ref }) => ref).filter((ref) => mayViewType(rights, ref))
          // A filter by one visible type needs no further condition.
          if (filter.trigger_type === undefined || !visible.includes(filter.trigger_type)) filter.types = visible
        }
        const maxPayloadBytes = maxPayloadBytesOf(query)
        const [ids, total] = await Promise.all([
          store.page({ ...list, ...page }),
          // A client that continues a list knows the total from its first request.
          place === undefined ? store.total(filter) : undefined,
        ])
        // `payload_size` is no attribute that clients can name, so the projection is applied here.
        return {
          records: instanceRecords(ids, projection, maxPayloadBytes, rights),
          total,
          isProjected: true,
        }
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/triggerinstances/:id',
      permission: 'trigger_view',
      resource: (request) => triggerResource(instanceOf(request, false).trigger_type),
      summary: 'Gets one trigger instance.',
      query: { ...attributeQuery, ...payloadQuery },
      response: PartialTriggerInstance,
      failures: [400, 404],
      handler(request) {
        const projection = parseAttributes(request.query, attributes)
        const maxPayloadBytes = maxPayloadBytesOf(request.query)
        const { id } = instanceOf(request, false)
        const [record] = instanceRecords([id], projection, maxPayloadBytes, request.rights)
        return record
      },
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/triggerinstances/import',
      permission: 'administrator',
      summary: 'Takes over trigger instances of another server, to read them here. No rule is evaluated for them.',
      body: TriggerInstanceImport,
      response: ImportOutcomes,
      failures: [400, 503],
      handler: (request) => deps.importInstances(request, request.body),
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/triggerinstances/:id/re_emit',
      permission: 'trigger_all',
      resource: (request) => triggerResource(instanceOf(request, false).trigger_type),
      summary: 'Dispatches the payload of a trigger instance again, in a new trace.',
      response: ReEmittedInstance,
      failures: [400, 404, 409, 503],
      async handler(request) {
        const found = instanceOf(request, true)
        const { id, trigger: ref, trigger_id: triggerId, payload: original } = found
        const trigger = catalogue.find(triggerId) ?? catalogue.find(ref)
        if (trigger === undefined) throw triggerGone(ref)
        if (service.pendingCount() >= queueLimit) throw queueFull('trigger instances', queueLimit)
        const payload = isObject(original) ? { ...original, __context: { original_id: id } } : original
        const { credentials, owner } = service.openInstance(service.findInstance(id) ?? found)
        const instance = await service.dispatch(trigger, payload, undefined, { credentials, owner })
        log.audit('trigger_instance.re_emitted', {
          ...aboutCaller(request),
          trigger: trigger.ref,
          original_id: id,
          trigger_instance_id: instance.id,
        })
        return reEmitted(id, instance, request.rights)
      },
      answerAgain({ params, rights }, id = '') {
        const instance = instanceOf({ params: { id } }, true)
        return reEmitted(params.id, instance, rights)
      },
    }),
  ]
}

/** @throws QUERY_INVALID */
function maxPayloadBytesOf({ max_payload_size: size = 0 }: { max_payload_size?: number }): number {
  if (size === 0) return Infinity
  if (size < 0) throw queryInvalid('max_payload_size must be a positive number')
  return size
}

function instanceRecord(instance: TriggerInstance): TriggerInstanceRecord {
  const { id, trigger, trigger_type, payload, occurrence_time, status, trace_id } = instance
  return { id, trigger, trigger_type, payload, occurrence_time, status, trace_id }
}

function reEmitted(originalId: string, instance: TriggerInstance, rights: Rights): Reply {
  const { payload, withheld } = visiblePayload(rights, instance)
  const message = `Trigger instance ${originalId} successfully re-sent.`
  const body: ReEmittedInstance = { message, payload }
  if (withheld !== undefined) body.payload_reduced = withheld.reason
  return new Reply(body, { headers: { 'Svc-Trigger-Instance-Id': instance.id, 'Svc-Trace-Id': instance.trace_id } })
}
