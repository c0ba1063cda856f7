/** Tables `users` and `tokens`. */
import { sql, type Selectable } from 'kysely'
import {
  type Database,
  type Step,
  isAmong,
  columnsOf,
  prepared,
  type TokenTable,
  type UserTable,
} from '../../db/index.ts'
import type { TokenCheckRow } from './tokens.ts'

export type User = Selectable<UserTable>

/** What an update may change. */
export type UserChanges = Partial<Pick<User, 'is_service' | 'is_disabled' | 'nicknames'>>

export interface AuthStore {
  findToken(id: string): TokenCheckRow | undefined
  insertToken(token: TokenTable): Step
  /** Changes nothing if there is one of that id: a run cannot fail for it. */
  insertServiceToken(token: TokenTable): Step
  /** Fails with `Conflict` if it does not exist. */
  deleteToken(id: string): Step
  deleteTokenIfAny(id: string): Step
  prolongToken(id: string, expiry: string): Step
  /** @param exceptId id of a token to keep */
  deleteTokensOf(user: string, exceptId?: string): Step
  deleteServiceTokens(): Step
  /** Those that expired before a time, in the order in which they did, beginning behind one of them. */
  expiredBefore(
    before: string,
    after: Pick<TokenTable, 'expiry' | 'id'>,
    limit: number,
  ): { expiry: string; id: string }[]
  deleteTokens(ids: readonly string[]): Step

  findUser(name: string): User | undefined
  /** All of them, by name. */
  users(): Promise<User[]>
  /** Names of those with this nickname, at most two. */
  namesByNickname(origin: string, nickname: string): Promise<string[]>
  /** Changes nothing if there is one of that name. */
  insertUser(name: string, at: string): Step
  /** Changes nothing. Fails with `Conflict` if there is none of that name. */
  requireUser(name: string): Step
  /** Fails with `Conflict` if there is one of that name. */
  insertNewUser(user: User): Step
  /** Fails with `Conflict` if there is none of that name. */
  updateUser(name: string, changes: UserChanges): Step
  deleteUser(name: string): Step
}

export function createAuthStore(database: Database): AuthStore {
  const { build } = database
  const findToken = prepared<string>(
    build
      .selectFrom('tokens')
      .leftJoin('users', 'users.name', 'tokens.user')
      .select(['tokens.id', 'user', 'expiry', 'service', 'metadata', 'users.is_disabled'])
      .where('tokens.id', '=', ''),
    (id) => [id],
  )
  const sample: TokenTable = { id: '', user: '', expiry: '', service: 0, metadata: '' }
  const insertToken = prepared(build.insertInto('tokens').values(sample), columnsOf(sample))
  const insertServiceToken = prepared(
    build
      .insertInto('tokens')
      .values(sample)
      .onConflict((conflict) => conflict.column('id').doNothing()),
    columnsOf(sample),
  )
  const deleteToken = prepared<string>(build.deleteFrom('tokens').where('id', '=', ''), (id) => [id])
  const findUser = prepared<string>(build.selectFrom('users').selectAll().where('name', '=', ''), (name) => [name])
  return {
    findToken: (id) => database.first(findToken(id)) as TokenCheckRow | undefined, // as selected above
    insertToken: (token) => ({ query: insertToken(token) }),
    insertServiceToken: (token) => ({ query: insertServiceToken(token) }),
    deleteToken: (id) => ({ query: deleteToken(id), expect: 1 }),
    prolongToken: (id, expiry) => ({ query: build.updateTable('tokens').set({ expiry }).where('id', '=', id) }),
    deleteTokenIfAny: (id) => ({ query: deleteToken(id) }),
    deleteTokensOf: (user, exceptId = '') => ({
      query: build.deleteFrom('tokens').where('user', '=', user).where('id', '!=', exceptId),
    }),
    expiredBefore: (before, after, limit) =>
      database.all(
        build
          .selectFrom('tokens')
          .select(['expiry', 'id'])
          .where('expiry', '<', before)
          .where((on) =>
            on.or([
              on('expiry', '>', after.expiry),
              on.and([on('expiry', '=', after.expiry), on('id', '>', after.id)]),
            ]),
          )
          .orderBy('expiry')
          .orderBy('id')
          .limit(limit),
      ),
    deleteTokens: (ids) => ({ query: build.deleteFrom('tokens').where(isAmong('id', ids)) }),
    deleteServiceTokens: () => ({ query: build.deleteFrom('tokens').where('service', '=', 1) }),

    findUser: (name) => database.first(findUser(name)) as User | undefined, // as selected above
    users: () => database.scan(build.selectFrom('users').selectAll().orderBy('name')),
    async namesByNickname(origin, nickname) {
      const found = await database.scan(
        build
          .selectFrom('users')
          .select('name')
          .where(
            sql<boolean>`exists (select 1 from json_each(users.nicknames) where key = ${origin} and value = ${nickname})`,
          )
          .orderBy('name')
          .limit(2),
      )
      return found.map(({ name }) => name)
    },
    insertUser: (name, at) => ({
      query: build
        .insertInto('users')
        .values({ name, is_service: 0, created_at: at })
        .onConflict((conflict) => conflict.column('name').doNothing()),
    }),
    requireUser: (name) => ({
      query: build.updateTable('users').set({ name }).where('name', '=', name),
      expect: 1,
    }),
    insertNewUser: (user) => ({ query: build.insertInto('users').values(user) }),
    updateUser: (name, changes) => ({
      query: build.updateTable('users').set(changes).where('name', '=', name),
      expect: 1,
    }),
    deleteUser: (name) => ({ query: build.deleteFrom('users').where('name', '=', name) }),
  }
}
