/** Tables `packs`, `config_schemas` and `configs`. Records are stored as JSON; filters have columns. */
import type { Database, Step } from '../../db/index.ts'
import type { FileProblem } from '../../lib/text/index.ts'
import { slicePage, type Page } from '../../http/index.ts'
import type { ConfigAttributes, ConfigSchemaRecord, PackRecord } from './types.ts'
import { readJson, writeJson } from '../../lib/json/index.ts'

/** The facts that detect a change of a pack. */
export interface KnownPack {
  ref: string
  folder: string
  /** Empty: it has to be read again. */
  fingerprint: string
  /** Something of it could not be registered. */
  hasProblems: boolean
}

/** A problem or a warning of a registration. */
export type PackRemark = FileProblem

/** What is kept of a registration, beside the record. */
export interface RegistrationFacts {
  fingerprint: string
  remarks: readonly PackRemark[]
  disabledFiles: readonly string[]
}

export interface PackFilter {
  ref?: string | undefined
  name?: string | undefined
}

/** `values` as they are stored: JSON text, or the cipher text of it. */
export interface StoredConfig {
  id: string
  pack: string
  values: string
}

export interface PackStore {
  findPack(id: string): PackRecord | undefined
  findPackByRef(ref: string): PackRecord | undefined
  knownPacks(): KnownPack[]
  fingerprintOf(ref: string): string | undefined
  /** Of the last registration, warnings too. */
  remarksOf(ref: string): PackRemark[]
  /** Metadata files that disabled what they define at the last registration; undefined: not known. */
  disabledFilesOf(ref: string): ReadonlySet<string> | undefined
  /** In the order of their references. */
  listPacks(filter: PackFilter, page: Page): PackRecord[]
  countPacks(filter: PackFilter): number
  insertPack(record: PackRecord, facts: RegistrationFacts): Step
  updatePack(record: PackRecord, facts: RegistrationFacts): Step
  setFingerprint(ref: string, fingerprint: string): Step
  setRemarks(ref: string, remarks: readonly PackRemark[]): Step
  deletePack(ref: string): Step

  findConfigSchema(pack: string): ConfigSchemaRecord | undefined
  /** In the order of the packs. */
  listConfigSchemas(packs: readonly string[], page: Page): ConfigSchemaRecord[]
  configSchemaPacks(): string[]
  putConfigSchema(record: ConfigSchemaRecord): Step
  deleteConfigSchema(pack: string): Step

  findConfig(pack: string): StoredConfig | undefined
  /** In the order of the packs. */
  listConfigs(packs: readonly string[], page: Page): StoredConfig[]
  configPacks(): string[]
  putConfig(config: StoredConfig): Step
  deleteConfig(pack: string): Step
}

export function createPackStore(database: Database): PackStore {
  const { build } = database

  function packsMatching({ ref, name }: PackFilter) {
    let query = build.selectFrom('packs')
    if (ref !== undefined) query = query.where('ref', '=', ref)
    if (name !== undefined) query = query.where('name', '=', name)
    return query
  }

  const toSchema = ({
    id,
    pack,
    attributes,
  }: {
    id: string
    pack: string
    attributes: string
  }): ConfigSchemaRecord => ({
    id,
    pack,
    attributes: readJson(attributes) as ConfigAttributes, // written by `putConfigSchema`
  })

  return {
    findPack: (id) =>
      parsed<PackRecord>(database.first(build.selectFrom('packs').select('record').where('id', '=', id))),
    findPackByRef: (ref) =>
      parsed<PackRecord>(database.first(build.selectFrom('packs').select('record').where('ref', '=', ref))),
    knownPacks: () =>
      database
        .all(build.selectFrom('packs').select(['ref', 'folder', 'fingerprint', 'remarks']).orderBy('ref'))
        .map(({ remarks, ...pack }) => ({ ...pack, hasProblems: hasProblems(parseRemarks(remarks)) })),
    fingerprintOf: (ref) =>
      database.first(build.selectFrom('packs').select('fingerprint').where('ref', '=', ref))?.fingerprint,
    remarksOf: (ref) =>
      parseRemarks(database.first(build.selectFrom('packs').select('remarks').where('ref', '=', ref))?.remarks ?? '[]'),
    disabledFilesOf(ref) {
      const text = database.first(
        build.selectFrom('packs').select('disabled_files').where('ref', '=', ref),
      )?.disabled_files
      return typeof text === 'string' ? new Set(readJson(text) as string[]) : undefined // written by `packRow`
    },
    listPacks: (filter, page) =>
      database
        .all(
          packsMatching(filter)
            .select('record')
            .orderBy('ref')
            .limit(page.limit ?? -1)
            .offset(page.offset),
        )
        .map((row) => parsed<PackRecord>(row)),
    countPacks: (filter) =>
      database.first(packsMatching(filter).select((eb) => eb.fn.countAll<number>().as('total')))?.total ?? 0,
    insertPack: (record, facts) => ({ query: build.insertInto('packs').values(packRow(record, facts)) }),
    updatePack: (record, facts) => ({
      query: build.updateTable('packs').set(packRow(record, facts)).where('id', '=', record.id),
      expect: 1,
    }),
    setFingerprint: (ref, fingerprint) => ({
      query: build.updateTable('packs').set({ fingerprint }).where('ref', '=', ref),
    }),
    setRemarks: (ref, remarks) => ({
      query: build
        .updateTable('packs')
        .set({ remarks: writeJson(remarks) })
        .where('ref', '=', ref),
    }),
    deletePack: (ref) => ({ query: build.deleteFrom('packs').where('ref', '=', ref) }),

    findConfigSchema(pack) {
      const row = database.first(build.selectFrom('config_schemas').selectAll().where('pack', '=', pack))
      return row && toSchema(row)
    },
    listConfigSchemas: (packs, page) =>
      database
        .all(build.selectFrom('config_schemas').selectAll().where('pack', 'in', slicePage(packs, page)).orderBy('pack'))
        .map(toSchema),
    configSchemaPacks: () =>
      database.all(build.selectFrom('config_schemas').select('pack').orderBy('pack')).map(({ pack }) => pack),
    putConfigSchema({ id, pack, attributes }) {
      const text = writeJson(attributes)
      return {
        query: build
          .insertInto('config_schemas')
          .values({ id, pack, attributes: text })
          .onConflict((conflict) => conflict.column('pack').doUpdateSet({ attributes: text })),
      }
    },
    deleteConfigSchema: (pack) => ({ query: build.deleteFrom('config_schemas').where('pack', '=', pack) }),

    findConfig: (pack) => database.first(build.selectFrom('configs').selectAll().where('pack', '=', pack)),
    listConfigs: (packs, page) =>
      database.all(build.selectFrom('configs').selectAll().where('pack', 'in', slicePage(packs, page)).orderBy('pack')),
    configPacks: () => database.all(build.selectFrom('configs').select('pack').orderBy('pack')).map(({ pack }) => pack),
    putConfig: ({ id, pack, values }) => ({
      query: build
        .insertInto('configs')
        .values({ id, pack, values })
        .onConflict((conflict) => conflict.column('pack').doUpdateSet({ values })),
    }),
    deleteConfig: (pack) => ({ query: build.deleteFrom('configs').where('pack', '=', pack) }),
  }
}

function packRow(record: PackRecord, { fingerprint, remarks, disabledFiles }: RegistrationFacts) {
  const { id, ref, name, path } = record
  return {
    id,
    ref,
    name,
    folder: path,
    fingerprint,
    remarks: writeJson(remarks),
    disabled_files: writeJson(disabledFiles),
    record: writeJson(record),
  }
}

const parseRemarks = (text: string): PackRemark[] => readJson(text) as PackRemark[] // written by `packRow`

/** Whether one of them is more than a warning. */
export const hasProblems = (remarks: readonly PackRemark[]): boolean =>
  remarks.some(({ isWarning }) => isWarning !== true)

function parsed<R>(row: { record: string }): R
function parsed<R>(row: { record: string } | undefined): R | undefined
function parsed<R>(row: { record: string } | undefined): R | undefined {
  return row === undefined ? undefined : (readJson(row.record) as R) // written by `packRow`
}
