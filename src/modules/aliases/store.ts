/** Table `action_aliases`. Records are stored as JSON; filters have columns. */
import type { Database, Step } from '../../db/index.ts'
import type { Page } from '../../http/index.ts'
import { readJson, writeJson } from '../../lib/json/index.ts'
import type { AliasRecord } from './types.ts'

export interface AliasFilter {
  pack?: string | undefined
  name?: string | undefined
}

export interface AliasStore {
  find(id: string): AliasRecord | undefined
  findByRef(ref: string): AliasRecord | undefined
  ofPack(pack: string): AliasRecord[]
  /** In any pack. */
  named(name: string): AliasRecord[]
  /** In the order of pack and name. */
  list(filter: AliasFilter, page: Page): AliasRecord[]
  count(filter: AliasFilter): number
  insert(alias: AliasRecord): Step
  /** Fails with `Conflict` unless the row is as it was seen. */
  update(alias: AliasRecord, seen: AliasRecord): Step
  /** Fails with `Conflict` likewise. */
  delete(seen: AliasRecord): Step
}

export function createAliasStore(database: Pick<Database, 'build' | 'first' | 'all'>): AliasStore {
  const { build } = database

  function matching({ pack, name }: AliasFilter) {
    let query = build.selectFrom('action_aliases')
    if (pack !== undefined) query = query.where('pack', '=', pack)
    if (name !== undefined) query = query.where('name', '=', name)
    return query
  }
  const inOrder = (filter: AliasFilter) => matching(filter).select('record').orderBy('pack').orderBy('name')

  return {
    find: (id) => parsed(database.first(build.selectFrom('action_aliases').select('record').where('id', '=', id))),
    findByRef: (ref) =>
      parsed(database.first(build.selectFrom('action_aliases').select('record').where('ref', '=', ref))),
    ofPack: (pack) => database.all(inOrder({ pack })).map((row) => parsed(row)),
    named: (name) => database.all(inOrder({ name })).map((row) => parsed(row)),
    list: (filter, page) =>
      database
        .all(
          inOrder(filter)
            .limit(page.limit ?? -1)
            .offset(page.offset),
        )
        .map((row) => parsed(row)),
    count: (filter) =>
      database.first(matching(filter).select((eb) => eb.fn.countAll<number>().as('total')))?.total ?? 0,
    insert: (alias) => ({ query: build.insertInto('action_aliases').values(rowOf(alias)) }),
    update: (alias, seen) => ({
      query: build
        .updateTable('action_aliases')
        .set(rowOf(alias))
        .where('id', '=', seen.id)
        .where('record', '=', writeJson(seen)),
      expect: 1,
    }),
    delete: (seen) => ({
      query: build.deleteFrom('action_aliases').where('id', '=', seen.id).where('record', '=', writeJson(seen)),
      expect: 1,
    }),
  }
}

function rowOf(alias: AliasRecord) {
  const { id, ref, pack, name } = alias
  return { id, ref, pack, name, record: writeJson(alias) }
}

function parsed(row: { record: string }): AliasRecord
function parsed(row: { record: string } | undefined): AliasRecord | undefined
function parsed(row: { record: string } | undefined): AliasRecord | undefined {
  return row === undefined ? undefined : (readJson(row.record) as AliasRecord) // written by `rowOf`
}
