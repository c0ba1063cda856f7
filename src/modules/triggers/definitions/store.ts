/** Tables `trigger_types` and `triggers`: reads, and functions that return steps. */
import { sql } from 'kysely'
import { columnsOf, prepared, type Database, type Step, type TriggerTable } from '../../../db/index.ts'
import type { TriggerRecord, TriggerTypeRecord } from '../types.ts'
import { readJson, writeJson } from '../../../lib/json/index.ts'

/** A trigger as stored. */
export interface StoredTrigger {
  /** Secrets in its parameters are masked. */
  record: TriggerRecord
  /** All parameters, encrypted; absent if none is secret. */
  sealed?: string
  /** Digest of the parameters. */
  identity: string
  /** Created for rules and deleted with the last of them. */
  isManaged: boolean
}

export interface DefinitionStore {
  types(): TriggerTypeRecord[]
  findType(ref: string): TriggerTypeRecord | undefined
  insertType(type: TriggerTypeRecord): Step
  updateType(type: TriggerTypeRecord): Step
  /** Fails with `Conflict` if the type has triggers. */
  deleteType(type: TriggerTypeRecord): Step

  /** Oldest first. */
  triggers(): StoredTrigger[]
  find(id: string): StoredTrigger | undefined
  findByIdentity(type: string, identity: string): StoredTrigger | undefined
  /** Number of rules that use the trigger. */
  usesOf(id: string): number
  /** Fails with `Conflict` if its name or parameters are taken, or its type does not exist. */
  insert(trigger: StoredTrigger, uses: number): Step
  update(trigger: StoredTrigger): Step
  /** Fails with `Conflict` if a rule uses it. */
  updateUnused(trigger: StoredTrigger): Step
  /** Fails with `Conflict` if a rule uses it. */
  deleteUnused(id: string): Step
  use(id: string): Step
  release(id: string): Step
  /** Fails with `Conflict` if another rule uses it. */
  releaseAndDelete(id: string): Step
}

export function createDefinitionStore(database: Database): DefinitionStore {
  const { build } = database
  const insertTrigger = prepareInsert(database)

  const triggersWhere = (column: 'id' | 'type', value: string) =>
    build.selectFrom('triggers').selectAll().where(column, '=', value)

  return {
    types: () =>
      database
        .all(build.selectFrom('trigger_types').select('record').orderBy('id'))
        .map(({ record }) => readJson(record) as TriggerTypeRecord), // written by `typeRow`
    findType(ref) {
      const row = database.first(build.selectFrom('trigger_types').select('record').where('ref', '=', ref))
      return row === undefined ? undefined : (readJson(row.record) as TriggerTypeRecord) // written by `typeRow`
    },
    insertType: (type) => ({ query: build.insertInto('trigger_types').values(typeRow(type)) }),
    updateType: (type) => ({
      query: build.updateTable('trigger_types').set(typeRow(type)).where('id', '=', type.id),
      expect: 1,
    }),
    deleteType: ({ id, ref }) => ({
      query: build
        .deleteFrom('trigger_types')
        .where('id', '=', id)
        .where((on) => on.not(on.exists(triggersWhere('type', ref)))),
      expect: 1,
    }),

    triggers: () => database.all(build.selectFrom('triggers').selectAll().orderBy('id')).map(toTrigger),
    find(id) {
      const row = database.first(triggersWhere('id', id))
      return row === undefined ? undefined : toTrigger(row)
    },
    findByIdentity(type, identity) {
      const row = database.first(triggersWhere('type', type).where('identity', '=', identity))
      return row === undefined ? undefined : toTrigger(row)
    },
    usesOf: (id) => database.first(build.selectFrom('triggers').select('uses').where('id', '=', id))?.uses ?? 0,
    insert: (trigger, uses) => ({ query: insertTrigger({ ...triggerRow(trigger), uses }), expect: 1 }),
    update: (trigger) => ({
      query: build.updateTable('triggers').set(triggerRow(trigger)).where('id', '=', trigger.record.id),
      expect: 1,
    }),
    updateUnused: (trigger) => ({
      query: build
        .updateTable('triggers')
        .set(triggerRow(trigger))
        .where('id', '=', trigger.record.id)
        .where('uses', '=', 0),
      expect: 1,
    }),
    deleteUnused: (id) => ({
      query: build.deleteFrom('triggers').where('id', '=', id).where('uses', '=', 0),
      expect: 1,
    }),
    use: (id) => ({
      query: build
        .updateTable('triggers')
        .set((on) => ({ uses: on('uses', '+', 1) }))
        .where('id', '=', id),
      expect: 1,
    }),
    release: (id) => ({
      query: build
        .updateTable('triggers')
        .set((on) => ({ uses: on('uses', '-', 1) }))
        .where('id', '=', id)
        .where('uses', '>', sql<number>`is_managed`),
      expect: 1,
    }),
    releaseAndDelete: (id) => ({
      query: build.deleteFrom('triggers').where('id', '=', id).where('uses', '=', 1).where('is_managed', '=', 1),
      expect: 1,
    }),
  }
}

/** The values here only shape the statement. */
function prepareInsert({ build }: Database) {
  const trigger: TriggerTable = {
    id: '',
    ref: '',
    type: '',
    identity: '',
    uses: 0,
    is_managed: 0,
    record: '',
  }
  const triggerColumns = Object.keys(trigger) as (keyof TriggerTable)[] // the literal has exactly these
  const triggerValues = columnsOf(trigger)
  // A trigger whose type is deleted concurrently would never be deleted.
  return prepared(
    build
      .insertInto('triggers')
      .columns(triggerColumns)
      .expression(
        build
          .selectNoFrom((on) => triggerColumns.map((column) => on.val('').as(column)))
          .where((on) => on.exists(build.selectFrom('trigger_types').select('id').where('ref', '=', ''))),
      ),
    (row: TriggerTable) => [...triggerValues(row), row.type],
  )
}

function typeRow(type: TriggerTypeRecord) {
  const { id, ref } = type
  return { id, ref, record: writeJson(type) }
}

function triggerRow({ record, sealed, identity, isManaged }: StoredTrigger): Omit<TriggerTable, 'uses'> {
  const { id, ref, type } = record
  const text = writeJson(sealed === undefined ? record : { ...record, sealed })
  return { id, ref, type, identity, is_managed: Number(isManaged), record: text }
}

function toTrigger(row: TriggerTable): StoredTrigger {
  const { sealed, ...record } = readJson(row.record) as TriggerRecord & { sealed?: string } // written by `triggerRow`
  const trigger: StoredTrigger = { record, identity: row.identity, isManaged: row.is_managed === 1 }
  if (sealed !== undefined) trigger.sealed = sealed
  return trigger
}
