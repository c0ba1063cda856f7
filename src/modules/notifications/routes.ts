/** Endpoints of notifications and their destinations. */
import {
  listEndpoint,
  parsePlace,
  pageHeaders,
  listReply,
  placeQuery,
  route,
  textFilter,
  type QueryParameter,
  type Rights,
  type Route,
} from '../../http/index.ts'
import { actionResource, type Resource } from '../../core/permissions.ts'
import { queryInvalid } from '../../core/errors.ts'
import { shown } from '../../lib/text/index.ts'
import { Type } from '../../lib/schema/index.ts'
import type { NotificationService } from './service.ts'
import type { NotificationFilter, NotificationStore } from './store.ts'
import { DestinationRecord, NotificationRecord, notificationStatuses, TestOutcome } from './types.ts'

const DEFAULT_LIMIT = 50

const filters = {
  status: { type: 'string', description: `Only of this status: ${notificationStatuses.join(', ')}.` },
  destination: { type: 'string', description: 'Only to the destination of this name.' },
  rule: { type: 'string', description: 'Only of the rule with this reference.' },
  execution: { type: 'string', description: 'Only of the execution with this id.' },
} as const satisfies Record<string, QueryParameter>

export function createNotificationRoutes(deps: {
  service: NotificationService
  store: Pick<NotificationStore, 'list' | 'count' | 'actions'>
  maxPageSize: number
}): Route[] {
  const { service, store, maxPageSize } = deps

  /** What the caller can see of all: notifications of the executions that it can view. */
  async function visible(rights: Rights): Promise<Pick<NotificationFilter, 'user' | 'actions'>> {
    const user = rights.onlyOf
    if (user === undefined && rights.may('execution_view')) return {}
    const actions = (await store.actions()).filter((ref) => rights.may('execution_view', actionResource(ref)))
    return { actions, ...(user === undefined ? {} : { user }) }
  }

  const resource = ({ params }: { params: { id: string } }): Resource => service.resourceOf(service.get(params.id))

  return [
    listEndpoint({
      path: '/notifications',
      permission: 'execution_list',
      summary: 'Lists notifications about executions that the caller can view, newest first.',
      record: NotificationRecord,
      query: { ...filters, ...placeQuery },
      page: { defaultLimit: DEFAULT_LIMIT, maxPageSize },
      async find({ query, page, rights }) {
        const status = textFilter(query, 'status')
        const known = notificationStatuses.find((name) => name === status)
        if (status !== undefined && known === undefined) {
          throw queryInvalid(`status: "${shown(status)}" is not one of ${notificationStatuses.join(', ')}`)
        }
        const filter: NotificationFilter = {
          status: known,
          destination: textFilter(query, 'destination'),
          rule: textFilter(query, 'rule'),
          execution: textFilter(query, 'execution'),
          ...(await visible(rights)),
        }
        const place = parsePlace(query, true)
        const [found, total] = await Promise.all([
          store.list(filter, page, place),
          place === undefined ? store.count(filter) : undefined,
        ])
        return { records: found.map((notification) => service.record(notification)), total }
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/notifications/destinations',
      permission: 'administrator',
      summary: 'Lists the destinations of notifications. Their secrets are masked.',
      response: Type.Array(DestinationRecord),
      handler() {
        const all = service.destinations()
        return listReply(all, pageHeaders({ limit: undefined, offset: 0 }, all.length))
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/notifications/destinations/:name',
      permission: 'administrator',
      summary: 'Gets one destination. Its secrets are masked.',
      response: DestinationRecord,
      failures: [404],
      handler: ({ params }) => service.destination(params.name),
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/notifications/destinations/:name/test',
      permission: 'administrator',
      summary: 'Sends a test message to a destination, and says what came of it. It takes 15 seconds at most.',
      response: TestOutcome,
      failures: [404, 503],
      handler: (request) => service.test(request, request.params.name),
      answerAgain: (_, id = '') => service.outcomeOf(id),
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/notifications/:id',
      permission: 'execution_view',
      resource,
      summary: 'Gets one notification.',
      response: NotificationRecord,
      failures: [404],
      handler: ({ params }) => service.record(service.get(params.id)),
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/notifications/:id/replay',
      permission: 'execution_rerun',
      resource,
      summary: 'Sends a notification again, with the same id.',
      response: NotificationRecord,
      failures: [404, 409, 503],
      handler: async (request) => service.record(await service.replay(request, request.params.id)),
      answerAgain: (_, id = '') => service.record(service.get(id)),
    }),
  ]
}
