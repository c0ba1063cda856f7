/** Table `api_keys`. */
import { type Database, type Step, columnsOf, prepared, type ApiKeyTable } from '../../../db/index.ts'
/** What deciding about a request takes. */
export type ApiKeyCheckRow = Pick<ApiKeyTable, 'id' | 'user' | 'enabled' | 'expires_at' | 'scopes'> & {
  /** 1: of the owner. Null: there is no record of the owner. */
  is_disabled: number | null
}

/** What the right to see a key depends on. */
export type ApiKeyHead = Pick<ApiKeyTable, 'id' | 'user' | 'key_hash'>

/** What an update may change. */
export type ApiKeyChanges = Partial<Pick<ApiKeyTable, 'user' | 'metadata' | 'enabled' | 'expires_at' | 'scopes'>>

export interface ApiKeyStore {
  find(id: string): ApiKeyTable | undefined
  findByHash(keyHash: string): ApiKeyTable | undefined
  findByIds(ids: readonly string[]): ApiKeyTable[]
  findForCheck(keyHash: string): ApiKeyCheckRow | undefined
  findForCheckById(id: string): ApiKeyCheckRow | undefined
  /** In the order in which they were stored. @param user only keys of this one */
  pageOfIds(user: string | undefined, offset: number, limit: number | undefined): Promise<string[]>
  count(user: string | undefined): Promise<number>
  /** In the order in which they were stored. @param user only keys of this one */
  heads(user: string | undefined): Promise<ApiKeyHead[]>

  insert(key: ApiKeyTable): Step
  /** Fails with `Conflict` unless the key is still `owner`'s. */
  update(id: string, owner: string, changes: ApiKeyChanges): Step
  /** Fails with `Conflict` unless the key is still `owner`'s. */
  delete(id: string, owner: string): Step
  deleteOfUser(user: string): Step
  /** No change if the key was deleted, or used later. */
  markUsed(id: string, at: string): Step
}

export function createApiKeyStore(database: Database): ApiKeyStore {
  const { build } = database
  const checkQuery = build
    .selectFrom('api_keys')
    .leftJoin('users', 'users.name', 'api_keys.user')
    .select([
      'api_keys.id',
      'api_keys.user',
      'api_keys.enabled',
      'api_keys.expires_at',
      'api_keys.scopes',
      'users.is_disabled',
    ])
  const check = prepared<string>(checkQuery.where('api_keys.key_hash', '=', ''), (keyHash) => [keyHash])
  const checkById = prepared<string>(checkQuery.where('api_keys.id', '=', ''), (id) => [id])
  const sample: ApiKeyTable = {
    id: '',
    user: '',
    key_hash: '',
    metadata: '',
    created_at: '',
    enabled: 0,
    expires_at: null,
    scopes: null,
    last_used_at: null,
  }
  const insert = prepared(build.insertInto('api_keys').values(sample), columnsOf(sample))
  const markUsed = prepared<{ id: string; at: string }>(
    build
      .updateTable('api_keys')
      .set({ last_used_at: '' })
      .where('id', '=', '')
      .where((on) => on.or([on('last_used_at', 'is', null), on('last_used_at', '<', '')])),
    ({ id, at }) => [at, id, at],
  )
  const inOrder = (user: string | undefined) =>
    build
      .selectFrom('api_keys')
      .$if(user !== undefined, (query) => query.where('user', '=', user ?? ''))
      .orderBy('created_at')
      .orderBy('id')
  return {
    find: (id) => database.first(build.selectFrom('api_keys').selectAll().where('id', '=', id)),
    findByHash: (keyHash) => database.first(build.selectFrom('api_keys').selectAll().where('key_hash', '=', keyHash)),
    findByIds: (ids) => database.all(build.selectFrom('api_keys').selectAll().where('id', 'in', ids)),
    findForCheck: (keyHash) => database.first(check(keyHash)) as ApiKeyCheckRow | undefined, // as selected above
    findForCheckById: (id) => database.first(checkById(id)) as ApiKeyCheckRow | undefined, // as selected above
    async pageOfIds(user, offset, limit) {
      // SQLite takes -1 for no limit.
      const query = inOrder(user)
        .select('id')
        .limit(limit ?? -1)
        .offset(offset)
      return (await database.scan(query)).map(({ id }) => id)
    },
    async count(user) {
      const query = build
        .selectFrom('api_keys')
        .select((on) => on.fn.countAll<number>().as('n'))
        .$if(user !== undefined, (all) => all.where('user', '=', user ?? ''))
      return (await database.scan(query))[0]?.n ?? 0
    },
    heads: (user) => database.scan(inOrder(user).select(['id', 'user', 'key_hash'])),

    insert: (key) => ({ query: insert(key) }),
    update: (id, owner, changes) => ({
      query: build.updateTable('api_keys').set(changes).where('id', '=', id).where('user', '=', owner),
      expect: 1,
    }),
    delete: (id, owner) => ({
      query: build.deleteFrom('api_keys').where('id', '=', id).where('user', '=', owner),
      expect: 1,
    }),
    deleteOfUser: (user) => ({ query: build.deleteFrom('api_keys').where('user', '=', user) }),
    markUsed: (id, at) => ({ query: markUsed({ id, at }) }),
  }
}
