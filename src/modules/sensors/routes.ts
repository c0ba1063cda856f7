/** Endpoints of contract 05, 5.10. */
import { sensorResource } from '../../core/permissions.ts'
import {
  listEndpoint,
  route,
  textFilter,
  type AttributeOptions,
  type QueryParameter,
  type Route,
} from '../../http/index.ts'
import type { SensorService } from './service.ts'
import type { SensorStore } from './store.ts'
import { PartialSensor, SensorRecord, SensorUpdate } from './types.ts'

const attributes: AttributeOptions = {
  known: Object.keys(SensorRecord.properties),
  excludable: ['description', 'trigger_types'],
  always: ['id', 'ref', 'pack', 'class_name'],
}

const filters = {
  id: { type: 'string', description: 'Only the sensor with this id.' },
  name: { type: 'string', description: 'Only sensors with this class name.' },
  pack: { type: 'string', description: 'Only sensors of this pack.' },
  enabled: { type: 'boolean', description: 'Only enabled sensors, or only disabled ones.' },
  trigger: { type: 'string', description: 'Only sensors that dispatch the trigger type with this reference.' },
} as const satisfies Record<string, QueryParameter>

export function createSensorRoutes(deps: {
  service: SensorService
  store: Pick<SensorStore, 'list' | 'count'>
  maxPageSize: number
}): Route[] {
  const { service, store, maxPageSize } = deps
  const resourceAt = ({ params }: { params: { ref_or_id: string } }) =>
    sensorResource(service.get(params.ref_or_id).ref)

  return [
    listEndpoint({
      path: '/sensortypes',
      permission: 'sensor_type_list',
      summary: 'Lists sensors in the order in which svc registered them.',
      record: PartialSensor,
      query: filters,
      page: { defaultLimit: undefined, maxPageSize },
      attributes,
      async find({ query, page }) {
        const id = textFilter(query, 'id')
        const filter = {
          ids: id === undefined ? undefined : [id],
          name: textFilter(query, 'name'),
          pack: textFilter(query, 'pack'),
          trigger: textFilter(query, 'trigger'),
          enabled: typeof query.enabled === 'boolean' ? query.enabled : undefined,
        }
        const total = store.count(filter)
        const sensors = await store.list(filter, page)
        return { records: sensors.map((sensor) => service.record(sensor)), total }
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/sensortypes/:ref_or_id',
      permission: 'sensor_type_view',
      resource: resourceAt,
      summary: 'Gets one sensor.',
      response: SensorRecord,
      failures: [404],
      handler: ({ params }) => service.record(service.get(params.ref_or_id)),
    }),
    route({
      surface: 'api',
      method: 'put',
      path: '/sensortypes/:ref_or_id',
      permission: 'sensor_type_modify',
      resource: resourceAt,
      summary: 'Enables or disables a sensor; it starts or stops at once.',
      body: SensorUpdate,
      response: SensorRecord,
      failures: [400, 403, 404, 409, 503],
      handler: async (request) => service.record(await service.update(request, request.params.ref_or_id, request.body)),
      answerAgain: ({ params }, id = params.ref_or_id) => service.record(service.get(id)),
    }),
  ]
}
