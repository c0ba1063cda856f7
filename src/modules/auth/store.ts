/** Tables `users` and `tokens`. */
import type { Selectable } from 'kysely'
import type { Database, Step } from '../../db/database.ts'
import type { TokenTable, UserTable } from '../../db/tables.ts'

export type User = Selectable<UserTable>

export interface AuthStore {
  findUser(name: string): User | undefined
  findToken(id: string): TokenTable | undefined
  insertToken(token: TokenTable): Step
  deleteToken(id: string): Step
  /** Changes nothing if there is one of that name. */
  insertUser(name: string, at: string): Step
}

export function createAuthStore(database: Database): AuthStore {
  const { build } = database
  return {
    findUser: (name) => database.first(build.selectFrom('users').selectAll().where('name', '=', name)),
    findToken: (id) => database.first(build.selectFrom('tokens').selectAll().where('id', '=', id)),
    insertToken: (token) => ({ query: build.insertInto('tokens').values(token) }),
    deleteToken: (id) => ({ query: build.deleteFrom('tokens').where('id', '=', id), expect: 1 }),
    insertUser: (name, at) => ({
      query: build
        .insertInto('users')
        .values({ name, is_service: 0, created_at: at })
        .onConflict((conflict) => conflict.column('name').doNothing()),
    }),
  }
}
