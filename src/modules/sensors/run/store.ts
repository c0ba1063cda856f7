/** Tables `sensor_processes`, `sensor_dispatches` and `sensor_output`. Reads, and functions that return steps. */
import { sql } from 'kysely'
import type { Database, Step } from '../../../db/index.ts'
import type { RecordedProcess } from '../../../runners/index.ts'
import type { SensorOutput } from '../types.ts'

export interface RunStore {
  /** Before the process starts. */
  insertProcess(marker: string, sensorId: string): Step
  updateProcess(marker: string, process: RecordedProcess): Step
  deleteProcess(marker: string): Step
  processes(): { marker: string; process: RecordedProcess | undefined }[]

  /** The trigger instance of a dispatch that is stored. */
  findDispatch(sensorId: string, dispatchId: string): string | undefined
  /** Those of the ids that are stored; a greater `seq` is newer. */
  dispatchesOf(sensorId: string, dispatchIds: readonly string[]): { id: string; seq: number }[]
  /** Whether any is stored. */
  hasDispatches(sensorId: string): boolean
  /** `seq` of the newest dispatch of all sensors; 0: none. */
  newestDispatch(): number
  /** Makes it the newest. */
  rememberAgain(sensorId: string, dispatchId: string): Step
  /** Fails with `Conflict` if it is stored already. */
  insertDispatch(sensorId: string, dispatchId: string, instanceId: string): Step
  /** All but the newest. */
  deleteOldDispatches(sensorId: string, kept: number): Step

  insertOutput(sensorId: string, output: SensorOutput): Step
  /** In order. */
  outputAfter(sensorId: string, seq: number, limit: number): SensorOutput[]
  /** Sizes of all chunks, in order. */
  outputSizes(sensorId: string): { seq: number; bytes: number }[]
  deleteOutputUpTo(sensorId: string, seq: number): Step

  /** Ids of sensors that are gone, of which dispatches or output are left. */
  goneSensors(): string[]
  /** All of a sensor that is gone. */
  deleteAll(sensorId: string): Step[]
}

export function createRunStore(database: Database): RunStore {
  const { build } = database
  return {
    insertProcess: (marker, sensorId) => ({
      query: build
        .insertInto('sensor_processes')
        .values({ marker, sensor_id: sensorId, pid: 0, start_time: '', boot_id: '' }),
    }),
    updateProcess: (marker, { pid, startTime, bootId }) => ({
      query: build
        .updateTable('sensor_processes')
        .set({ pid, start_time: startTime, boot_id: bootId })
        .where('marker', '=', marker),
    }),
    deleteProcess: (marker) => ({ query: build.deleteFrom('sensor_processes').where('marker', '=', marker) }),
    processes: () =>
      database
        .all(build.selectFrom('sensor_processes').selectAll())
        .map(({ marker, pid, start_time: startTime, boot_id: bootId }) => ({
          marker,
          process: pid === 0 ? undefined : { pid, startTime, bootId },
        })),

    findDispatch: (sensorId, dispatchId) =>
      database.first(
        build
          .selectFrom('sensor_dispatches')
          .select('trigger_instance_id')
          .where('sensor_id', '=', sensorId)
          .where('dispatch_id', '=', dispatchId),
      )?.trigger_instance_id,
    dispatchesOf: (sensorId, dispatchIds) =>
      database.all(
        build
          .selectFrom('sensor_dispatches')
          .select(['dispatch_id as id', 'seq'])
          .where('sensor_id', '=', sensorId)
          .where('dispatch_id', 'in', [...dispatchIds]),
      ),
    hasDispatches: (sensorId) =>
      database.first(build.selectFrom('sensor_dispatches').select('seq').where('sensor_id', '=', sensorId).limit(1)) !==
      undefined,
    newestDispatch: () =>
      database.first(build.selectFrom('sensor_dispatches').select((on) => on.fn.max('seq').as('seq')))?.seq ?? 0,
    rememberAgain: (sensorId, dispatchId) => ({
      query: build
        .updateTable('sensor_dispatches')
        .set({ seq: sql<number>`(select max(seq) + 1 from sensor_dispatches)` })
        .where('sensor_id', '=', sensorId)
        .where('dispatch_id', '=', dispatchId),
    }),
    insertDispatch: (sensorId, dispatchId, instanceId) => ({
      query: build
        .insertInto('sensor_dispatches')
        .values({ sensor_id: sensorId, dispatch_id: dispatchId, trigger_instance_id: instanceId }),
    }),
    deleteOldDispatches: (sensorId, kept) => ({
      query: build
        .deleteFrom('sensor_dispatches')
        .where('sensor_id', '=', sensorId)
        .where(
          'seq',
          '<=',
          sql<number>`ifnull((select seq from sensor_dispatches where sensor_id = ${sensorId} order by seq desc limit 1 offset ${kept}), -1)`,
        ),
    }),

    insertOutput: (sensorId, output) => ({
      query: build.insertInto('sensor_output').values({ sensor_id: sensorId, ...output }),
    }),
    outputAfter: (sensorId, seq, limit) =>
      database.all(
        build
          .selectFrom('sensor_output')
          .select(['seq', 'timestamp', 'type', 'data'])
          .where('sensor_id', '=', sensorId)
          .where('seq', '>', seq)
          .orderBy('seq')
          .limit(limit),
      ) as SensorOutput[], // written above
    outputSizes: (sensorId) =>
      database.all(
        build
          .selectFrom('sensor_output')
          .select('seq')
          .select(sql<number>`octet_length(data)`.as('bytes'))
          .where('sensor_id', '=', sensorId)
          .orderBy('seq'),
      ),
    deleteOutputUpTo: (sensorId, seq) => ({
      query: build.deleteFrom('sensor_output').where('sensor_id', '=', sensorId).where('seq', '<=', seq),
    }),

    goneSensors() {
      const left = (['sensor_dispatches', 'sensor_output'] as const).flatMap((table) =>
        database.all(
          build
            // From one id to the next in the index: a sensor has thousands of rows.
            .withRecursive('ids(id)', (query) =>
              query
                .selectFrom(table)
                .select(sql<string | null>`min(sensor_id)`.as('id'))
                .unionAll(
                  query
                    .selectFrom('ids')
                    .select(
                      sql<string | null>`(select min(sensor_id) from ${sql.table(table)} where sensor_id > ids.id)`.as(
                        'id',
                      ),
                    )
                    .where('ids.id', 'is not', null),
                ),
            )
            .selectFrom('ids')
            .select('id')
            .where('id', 'is not', null)
            .where('id', 'not in', build.selectFrom('sensor_types').select('id')),
        ),
      )
      return [...new Set(left.map(({ id }) => id ?? ''))]
    },
    deleteAll: (sensorId) => [
      { query: build.deleteFrom('sensor_dispatches').where('sensor_id', '=', sensorId) },
      { query: build.deleteFrom('sensor_output').where('sensor_id', '=', sensorId) },
    ],
  }
}
