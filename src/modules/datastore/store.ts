/** Table `key_value_pairs`. An expired item counts as absent even while its row exists. */
import { sql, type Expression, type ExpressionBuilder, type SelectQueryBuilder, type SqlBool } from 'kysely'
import {
  isAmong,
  type Compilable,
  type Database,
  type Step,
  columnsOf,
  prepared,
  type KeyValuePairTable,
  type Tables,
} from '../../db/index.ts'
import type { ItemKey, KeyScope, KeyValuePair } from './types.ts'

/** All items of a scope, and of a user in the user scope. */
export type Section = Pick<ItemKey, 'scope' | 'user'>

export interface NameFilter {
  /** Start of names. */
  prefix?: string | undefined
  /** The whole name. */
  name?: string | undefined
  /** Only these names. */
  names?: readonly string[] | undefined
}

export interface Head {
  name: string
  encrypted: boolean
}

export interface HeadPage {
  descending: boolean
  /** Only names after this one; undefined: from the first. */
  after: string | undefined
  offset: number
  limit: number
}

export interface KeyStore {
  /** @param at wire timestamp of now */
  find(key: ItemKey, at: string): KeyValuePair | undefined
  /** The item with this cipher text. */
  findByCipherText(cipherText: string, at: string): KeyValuePair | undefined
  /** Any item that is encrypted. */
  findEncrypted(): KeyValuePair | undefined
  /** Items by name, synchronously. No offset and no list of names. */
  heads(section: Section, filter: NameFilter, page: HeadPage, at: string): Head[]
  /** Like `heads` with an offset or a list of names. Long ones run on the scan thread. */
  findHeads(section: Section, filter: NameFilter, page: HeadPage, at: string): Promise<Head[]>
  count(section: Section, filter: NameFilter, at: string): Promise<number>

  /** Inserts an item or replaces an expired one. Fails with `Conflict` if the item exists. */
  insert(item: KeyValuePair, at: string): Step[]
  /** Fails with `Conflict` if the item is gone. */
  update(item: KeyValuePair, at: string): Step
  /** Fails with `Conflict` if the item is gone. */
  delete(id: string, at: string): Step
  /** Deletes expired items, oldest first. */
  deleteExpired(at: string, limit: number): Step
  /** All items in the user scope of this user. */
  deleteOfUser(user: string): Step
}

/** Hexadecimal digits of cipher text before its data; see the index in the migration. */
const CIPHER_TEXT_HEAD = 34

/** Rows that a query counts or skips synchronously. More run on the scan thread. */
const MAX_QUICK = 2000

const isShort = ({ names = [] }: NameFilter): boolean => names.length <= MAX_QUICK

type Where = ExpressionBuilder<Tables, 'key_value_pairs'>

export function createKeyStore(database: Database): KeyStore {
  const { build } = database
  const isCurrent = (on: Where, at: string): Expression<SqlBool> =>
    on.or([on('expire_timestamp', 'is', null), on('expire_timestamp', '>', at)])

  const findQuery = prepared<{ key: ItemKey; at: string }, KeyValuePairTable>(
    build
      .selectFrom('key_value_pairs')
      .selectAll()
      .where('scope', '=', '')
      .where('user', '=', '')
      .where('name', '=', '')
      .where((on) => isCurrent(on, '')),
    ({ key: { scope, user, name }, at }) => [scope, user, name, at],
  )
  const findByCipherTextQuery = prepared<{ cipherText: string; at: string }, KeyValuePairTable>(
    build
      .selectFrom('key_value_pairs')
      .selectAll()
      .where(sql<SqlBool>`encrypted = 1 and substr(value, 1, 34) = ${''}`)
      .where('value', '=', '')
      .where((on) => isCurrent(on, '')),
    ({ cipherText, at }) => [cipherText.slice(0, CIPHER_TEXT_HEAD), cipherText, at],
  )
  const sample: KeyValuePairTable = {
    id: '',
    scope: '',
    user: '',
    name: '',
    description: null,
    secret: 0,
    encrypted: 0,
    expire_timestamp: null,
    value: '',
  }
  const insert = prepared(build.insertInto('key_value_pairs').values(sample), columnsOf(sample))

  /** @param scopeColumn `+scope` keeps SQLite from the index that starts with scope */
  const matching = ({ scope, user }: Section, { prefix, name, names }: NameFilter, scopeColumn = sql`scope`) => {
    const end = prefix === undefined ? undefined : afterPrefix(prefix)
    return build
      .selectFrom('key_value_pairs')
      .where(sql<SqlBool>`${scopeColumn} = ${scope}`)
      .where('user', '=', user)
      .$if(name !== undefined, (query) => query.where('name', '=', name ?? ''))
      .$if(prefix !== undefined, (query) => query.where('name', '>=', prefix ?? ''))
      .$if(end !== undefined, (query) => query.where('name', '<', end ?? ''))
      .$if(names !== undefined, (query) => query.where(isAmong('name', names ?? [])))
  }
  const pageQuery = (section: Section, filter: NameFilter, page: HeadPage, at: string) =>
    matching(section, filter)
      .select(['name', 'encrypted'])
      .where((on) => isCurrent(on, at))
      .$if(page.after !== undefined, (query) => query.where('name', page.descending ? '<' : '>', page.after ?? ''))
      .orderBy('name', page.descending ? 'desc' : 'asc')
      .limit(page.limit)
      .offset(page.offset)

  const counted = (on: Where) => on.fn.countAll<number>().as('n')
  const countOnThread = async (query: Compilable<{ n: number }>): Promise<number> =>
    (await database.scan(query))[0]?.n ?? 0
  /** Undefined: too many to count synchronously. */
  function countUpTo(query: SelectQueryBuilder<Tables, 'key_value_pairs', unknown>): number | undefined {
    const some = query.limit(MAX_QUICK + 1).as('some')
    const n = database.first(build.selectFrom(some).select((on) => on.fn.countAll<number>().as('n')))?.n ?? 0
    return n > MAX_QUICK ? undefined : n
  }

  return {
    find(key, at) {
      const row = database.first(findQuery({ key, at }))
      return row && toItem(row)
    },
    findByCipherText(cipherText, at) {
      const row = database.first(findByCipherTextQuery({ cipherText, at }))
      return row && toItem(row)
    },
    findEncrypted() {
      const row = database.first(
        build
          .selectFrom('key_value_pairs')
          .selectAll()
          .where(sql<SqlBool>`encrypted = 1`)
          .limit(1),
      )
      return row && toItem(row)
    },
    heads: (...args) => database.all(pageQuery(...args)).map(toHead),
    async findHeads(section, filter, page, at) {
      const query = pageQuery(section, filter, page, at)
      const isQuick = page.offset <= MAX_QUICK && isShort(filter)
      return (isQuick ? database.all(query) : await database.scan(query)).map(toHead)
    },
    async count(section, filter, at) {
      // All rows are counted in the index alone; the few expired ones are subtracted.
      const ofAll = matching(section, filter).select(counted)
      const expired = build.selectFrom('key_value_pairs').where('expire_timestamp', '<=', at)
      const ofExpired = matching(section, filter, sql`+scope`)
        .select(counted)
        .where('expire_timestamp', '<=', at)
      const atMost = isShort(filter) ? countUpTo(matching(section, filter).select('name')) : undefined
      const anyExpired = countUpTo(expired.select('id'))
      if (anyExpired === 0) return atMost ?? (await countOnThread(ofAll))
      if (atMost !== undefined && anyExpired !== undefined) return atMost - (database.first(ofExpired)?.n ?? 0)
      // One statement, because expired rows can be deleted between two.
      return await countOnThread(build.selectNoFrom(sql<number>`(${ofAll}) - (${ofExpired})`.as('n')))
    },

    insert: (item, at) => [
      {
        query: build
          .deleteFrom('key_value_pairs')
          .where('scope', '=', item.scope)
          .where('user', '=', item.user)
          .where('name', '=', item.name)
          .where('expire_timestamp', '<=', at),
      },
      { query: insert(toRow(item)) },
    ],
    update(item, at) {
      const { description, secret, encrypted, expire_timestamp, value } = toRow(item)
      return {
        query: build
          .updateTable('key_value_pairs')
          .set({ description, secret, encrypted, expire_timestamp, value })
          .where('id', '=', item.id)
          .where((on) => isCurrent(on, at)),
        expect: 1,
      }
    },
    delete: (id, at) => ({
      query: build
        .deleteFrom('key_value_pairs')
        .where('id', '=', id)
        .where((on) => isCurrent(on, at)),
      expect: 1,
    }),
    deleteExpired: (at, limit) => ({
      query: build
        .deleteFrom('key_value_pairs')
        .where('id', 'in', (on) =>
          on
            .selectFrom('key_value_pairs')
            .select('id')
            .where('expire_timestamp', '<=', at)
            .orderBy('expire_timestamp')
            .limit(limit),
        ),
    }),
    deleteOfUser: (user) => ({
      query: build.deleteFrom('key_value_pairs').where('scope', '=', 'svckv.user').where('user', '=', user),
    }),
  }
}

function toHead({ name, encrypted }: Pick<KeyValuePairTable, 'name' | 'encrypted'>): Head {
  return { name, encrypted: encrypted === 1 }
}

function toItem(row: KeyValuePairTable): KeyValuePair {
  // svc writes only the two scopes.
  return { ...row, scope: row.scope as KeyScope, secret: row.secret === 1, encrypted: row.encrypted === 1 }
}

/** In the order of the columns. */
function toRow(item: KeyValuePair): KeyValuePairTable {
  return {
    id: item.id,
    scope: item.scope,
    user: item.user,
    name: item.name,
    description: item.description,
    secret: item.secret ? 1 : 0,
    encrypted: item.encrypted ? 1 : 0,
    expire_timestamp: item.expire_timestamp,
    value: item.value,
  }
}

const LAST_CODE_POINT = 0x10ffff

/** The first text after all texts that start with `prefix`, in UTF-8 order; undefined: none. */
export function afterPrefix(prefix: string): string | undefined {
  const characters = Array.from(prefix)
  for (;;) {
    const code = characters.pop()?.codePointAt(0)
    if (code === undefined) return undefined
    if (code === LAST_CODE_POINT) continue
    // Skips surrogates, which are not characters.
    const next = code === 0xd7ff ? 0xe000 : code + 1
    return characters.join('') + String.fromCodePoint(next)
  }
}
