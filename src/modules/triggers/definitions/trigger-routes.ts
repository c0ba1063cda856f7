/** Endpoints of triggers (contract 05, 5.2). */
import {
  aboutCaller,
  listReply,
  parseItems,
  textFilter,
  route,
  type ApiRequest,
  type Route,
} from '../../../http/index.ts'
import { mayViewType } from '../visible-types.ts'
import type { TriggerChanges } from './trigger-changes.ts'
import type { Log } from '../../../lib/log/index.ts'
import type { Catalogue } from './catalogue.ts'
import type { TriggersService } from '../service.ts'
import { Trigger, TriggerRequest, TriggerUpdate, type TriggerAuthor, type TriggerRecord } from '../types.ts'
import { Type } from '../../../lib/schema/index.ts'
import { triggerResource } from '../../../core/permissions.ts'

export function createTriggerRoutes(deps: {
  catalogue: Catalogue
  changes: TriggerChanges
  service: TriggersService
  log: Log
}): Route[] {
  const { catalogue, changes, service, log } = deps

  const triggerOf = ({ params }: Pick<ApiRequest, 'params'>): TriggerRecord => changes.getTrigger(params['id'] ?? '')

  function auditTrigger(
    what: 'created' | 'updated' | 'deleted',
    { id, ref }: TriggerRecord,
    request: Parameters<typeof aboutCaller>[0],
  ): void {
    const message = `Trigger ${what}. Trigger.id=${id}`
    log.audit(`trigger.${what}`, message, { ...aboutCaller(request), trigger: ref, trigger_id: id })
  }

  function* recordsOf(triggers: readonly TriggerRecord[]): Generator<TriggerRecord> {
    for (const trigger of triggers) yield service.record(trigger)
  }

  return [
    route({
      surface: 'api',
      method: 'get',
      path: '/triggers',
      permission: 'trigger_list',
      summary: 'Lists triggers, oldest first.',
      query: {
        type: { type: 'string', description: 'Only triggers of this type (reference).' },
        pack: { type: 'string', description: 'Only triggers of this pack.' },
        name: { type: 'string', description: 'Only triggers with this name.' },
        ref: { type: 'array', description: 'Only triggers with these references; at most 100.' },
      },
      response: Type.Array(Trigger),
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
          .filter((trigger) => mayViewType(rights, trigger.type))
        return listReply(recordsOf(found), { 'X-Total-Count': String(found.length) })
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/triggers/:id',
      permission: 'trigger_view',
      resource: (request) => triggerResource(triggerOf(request).type),
      summary: 'Gets one trigger.',
      response: Trigger,
      failures: [404],
      handler: (request) => service.record(triggerOf(request)),
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/triggers',
      permission: 'trigger_all',
      resourceOfBody: (body) => triggerResource(body.type),
      summary: 'Creates a trigger. If a trigger with this pack and name exists, svc returns it unchanged.',
      body: TriggerRequest,
      status: 201,
      response: Trigger,
      failures: [400, 409],
      async handler(request) {
        const { trigger, isNew } = await changes.createTrigger(request.body, authorOf(request))
        // The existing trigger can be of another type than requested.
        if (!isNew) request.rights.require('trigger_view', triggerResource(trigger.type))
        else auditTrigger('created', trigger, request)
        return service.record(trigger)
      },
      answerAgain: (_, id = '') => service.record(changes.getTrigger(id)),
    }),
    route({
      surface: 'api',
      method: 'put',
      path: '/triggers/:id',
      permission: 'trigger_all',
      resource: (request) => triggerResource(triggerOf(request).type),
      summary: 'Changes a trigger. If rules use it, only the description can change.',
      body: TriggerUpdate,
      response: Trigger,
      failures: [400, 404, 409],
      async handler(request) {
        const trigger = await changes.updateTrigger(triggerOf(request).id, request.body, authorOf(request))
        auditTrigger('updated', trigger, request)
        return service.record(trigger)
      },
      answerAgain: (request) => service.record(triggerOf(request)),
    }),
    route({
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
        auditTrigger('deleted', await changes.deleteTrigger(triggerOf(request).id), request)
      },
    }),
  ]
}

function authorOf({ principal: { user, scopes } }: Pick<ApiRequest, 'principal'>): TriggerAuthor {
  return { user, ...(scopes === undefined ? {} : { scopes }) }
}
