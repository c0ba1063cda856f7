/** Endpoints of contract 05, 5.10. */
import { queryInvalid } from '../../core/errors.ts'
import { sensorResource } from '../../core/permissions.ts'
import {
  contentRoutes,
  listEndpoint,
  route,
  textFilter,
  type AttributeOptions,
  type QueryParameter,
  type Route,
} from '../../http/index.ts'
import { Type } from '../../lib/schema/index.ts'
import type { Outputs } from './run/output.ts'
import type { SensorService } from './service.ts'
import type { SensorStore } from './store.ts'
import { PartialSensor, SensorOutput, SensorRecord, SensorUpdate } from './types.ts'

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

/** All that is kept. */
const MAX_RECORDS = 2_000
const MAX_WAIT_SECONDS = 60

/** @throws QUERY_INVALID */
function numberIn(value: unknown, { name, min, max }: { name: string; min: number; max: number }): number | undefined {
  if (typeof value !== 'number') return undefined
  if (value < min || value > max) throw queryInvalid(`The parameter "${name}" must be a number from ${min} to ${max}.`)
  return value
}

export function createSensorRoutes(deps: {
  service: SensorService
  store: Pick<SensorStore, 'list' | 'count'>
  outputs: Outputs
  maxPageSize: number
}): Route[] {
  const { service, store, outputs, maxPageSize } = deps
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
    ...contentRoutes({
      path: '/sensortypes',
      record: SensorRecord,
      request: SensorUpdate,
      resourceOf: sensorResource,
      service,
      toRecord: (sensor) => service.record(sensor),
      get: { permission: 'sensor_type_view', summary: 'Gets one sensor.' },
      put: {
        permission: 'sensor_type_modify',
        summary: 'Enables or disables a sensor; it starts or stops at once.',
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/sensortypes/:ref_or_id/output',
      permission: 'sensor_type_view',
      resource: ({ params }) => sensorResource(service.get(params.ref_or_id).ref),
      summary: 'Gets the newest output of a sensor, oldest first.',
      query: {
        after: { type: 'integer', description: 'Only records with a greater `seq`.' },
        limit: { type: 'integer', description: `Most records to return, from the newest; ${MAX_RECORDS} at most.` },
        wait: {
          type: 'integer',
          description: `Seconds to wait for a record when there is none; ${MAX_WAIT_SECONDS} at most.`,
        },
      },
      response: Type.Array(SensorOutput),
      failures: [400, 404],
      async handler({ params, query, onClose }) {
        const { id } = service.get(params.ref_or_id)
        const limit = numberIn(query.limit, { name: 'limit', min: 1, max: MAX_RECORDS }) ?? MAX_RECORDS
        const after = numberIn(query.after, { name: 'after', min: 0, max: 2 ** 52 })
        const seconds = numberIn(query.wait, { name: 'wait', min: 0, max: MAX_WAIT_SECONDS }) ?? 0
        // Who has seen a state gets what was said of it before.
        await outputs.of(id).flush()
        const from = after ?? Math.max(0, outputs.lastSeq(id) - limit)
        const found = outputs.after(id, from, limit)
        if (found.length > 0 || seconds === 0) return found
        const over = new AbortController()
        const timer = setTimeout(() => over.abort(), seconds * 1000)
        const unwatch = onClose(() => over.abort())
        await outputs.wait(id, from, over.signal)
        clearTimeout(timer)
        unwatch()
        return outputs.after(id, from, limit)
      },
    }),
  ]
}
