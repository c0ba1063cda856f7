/** Table `sensor_types`. Reads, and functions that return steps. */
import { sql } from 'kysely'
import type { Database, SensorTypeTable, Step } from '../../db/index.ts'
import type { Page } from '../../http/index.ts'
import { readJson, writeJson } from '../../lib/json/index.ts'
import type { Sensor } from './types.ts'

export interface SensorFilter {
  ids?: readonly string[] | undefined
  name?: string | undefined
  pack?: string | undefined
  enabled?: boolean | undefined
  /** Reference of a trigger type that the sensor dispatches. */
  trigger?: string | undefined
}

export interface SensorStore {
  find(id: string): Sensor | undefined
  findByRef(ref: string): Sensor | undefined
  /** In the order in which they were registered first. */
  list(filter: SensorFilter, page: Page): Promise<Sensor[]>
  count(filter: SensorFilter): number
  ofPack(pack: string): Sensor[]
  all(): Sensor[]
  insert(sensor: Sensor): Step
  /** Fails with `Conflict` unless the row is as it was seen. */
  update(sensor: Sensor, seenRevision: number): Step
  /** Fails with `Conflict` likewise. */
  delete(sensor: Sensor): Step
}

/** More rows are read on the scan thread, whose queue is bounded. */
const MAX_QUICK_ROWS = 1000

export function createSensorStore(database: Database): SensorStore {
  const { build } = database

  function matching({ ids, name, pack, enabled, trigger }: SensorFilter) {
    let query = build.selectFrom('sensor_types')
    if (ids !== undefined) query = query.where('id', 'in', [...ids])
    if (name !== undefined) query = query.where('class_name', '=', name)
    if (pack !== undefined) query = query.where('pack', '=', pack)
    if (enabled !== undefined) query = query.where('enabled', '=', Number(enabled))
    if (trigger !== undefined) {
      query = query.where(
        sql<boolean>`exists (select 1 from json_each(record, '$.trigger_types') as type where type.value = ${trigger})`,
      )
    }
    return query
  }

  const count = (filter: SensorFilter): number =>
    database.first(matching(filter).select((on) => on.fn.countAll<number>().as('total')))?.total ?? 0

  const parsed = (row: { record: string }): Sensor => readJson(row.record) as Sensor // written by `rowOf`
  const first = (row: { record: string } | undefined): Sensor | undefined =>
    row === undefined ? undefined : parsed(row)

  return {
    find: (id) => first(database.first(build.selectFrom('sensor_types').select('record').where('id', '=', id))),
    findByRef: (ref) => first(database.first(build.selectFrom('sensor_types').select('record').where('ref', '=', ref))),
    async list(filter, { limit, offset }) {
      const pageOf = matching(filter)
        .select('record')
        .orderBy('id')
        .limit(limit ?? -1)
        .offset(offset)
      const isShort = (limit ?? Infinity) <= MAX_QUICK_ROWS || count(filter) <= MAX_QUICK_ROWS
      return (isShort ? database.all(pageOf) : await database.scan(pageOf)).map(parsed)
    },
    count,
    ofPack: (pack) =>
      database
        .all(build.selectFrom('sensor_types').select('record').where('pack', '=', pack).orderBy('id'))
        .map(parsed),
    all: () => database.all(build.selectFrom('sensor_types').select('record').orderBy('id')).map(parsed),
    insert: (sensor) => ({ query: build.insertInto('sensor_types').values(rowOf(sensor)) }),
    update: (sensor, seenRevision) => ({
      query: build
        .updateTable('sensor_types')
        .set(rowOf(sensor))
        .where('id', '=', sensor.id)
        .where('revision', '=', seenRevision),
      expect: 1,
    }),
    delete: ({ id, revision }) => ({
      query: build.deleteFrom('sensor_types').where('id', '=', id).where('revision', '=', revision),
      expect: 1,
    }),
  }
}

function rowOf(sensor: Sensor): SensorTypeTable {
  const { id, revision, ref, pack, class_name, enabled } = sensor
  return { id, revision, ref, pack, class_name, enabled: Number(enabled), record: writeJson(sensor) }
}
