import { sql, type Kysely } from 'kysely'

const statements = [
  `create table sensor_types (
    id text primary key not null, revision integer not null, ref text not null unique, pack text not null,
    class_name text not null, enabled integer not null, record text not null)`,
  `create index sensor_types_pack on sensor_types (pack)`,
  // Processes that run or are being started; what a crash leaves of them is found by "marker".
  `create table sensor_processes (
    marker text primary key not null, sensor_id text not null, pid integer not null, start_time text not null,
    boot_id text not null)`,
  // The newest dispatches of each sensor, so that a repetition has no effect.
  `create table sensor_dispatches (
    seq integer primary key autoincrement not null, sensor_id text not null, dispatch_id text not null,
    trigger_instance_id text not null)`,
  `create unique index sensor_dispatches_id on sensor_dispatches (sensor_id, dispatch_id)`,
  `create index sensor_dispatches_seq on sensor_dispatches (sensor_id, seq)`,
  // The newest output of each sensor.
  `create table sensor_output (
    sensor_id text not null, seq integer not null, timestamp text not null, type text not null, data text not null,
    primary key (sensor_id, seq)) without rowid`,
]

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}
