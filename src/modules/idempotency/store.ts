/** Table `idempotent_requests`. Reads, and functions that return steps. */
import { sql } from 'kysely'
import { prepared, type Database, type IdempotentRequestTable, type Step } from '../../db/index.ts'

export type StoredRequest = Pick<IdempotentRequestTable, 'parts' | 'subject' | 'created_at' | 'status' | 'answer'>
export type NewRequest = Pick<IdempotentRequestTable, 'key_hash' | 'user' | 'parts' | 'subject' | 'created_at'>

export interface RequestLimits {
  /** Of one user, and of all. */
  perUser: number
  requests: number
  /** Length of all stored answers together. */
  answers: number
}

export interface RequestStore {
  find(keyHash: string): StoredRequest | undefined
  /** Replaces a request with the same key. */
  begin(request: NewRequest): Step[]
  /** @param answer null: it is not kept */
  finish(keyHash: string, status: number, answer: string | null): Step
  /**
   * Deletes a few of the requests before this wire timestamp, and all beyond the limits: first the oldest answers, then
   * the oldest requests of the user and of all.
   */
  tidy(user: string, before: string): Step[]
  /** Deletes the oldest requests, at most so many. */
  deleteOld(before: string, limit: number): Step
  deleteOfUser(user: string): Step
}

/** Expired requests that one new request deletes. */
const DELETED_TOGETHER = 5

export function createRequestStore(database: Database, limits: RequestLimits): RequestStore {
  const { build } = database
  const table = 'idempotent_requests'
  const find = prepared(
    build.selectFrom(table).select(['parts', 'subject', 'created_at', 'status', 'answer']).where('key_hash', '=', ''),
    (keyHash: string) => [keyHash],
  )
  const remove = prepared(build.deleteFrom(table).where('key_hash', '=', ''), (keyHash: string) => [keyHash])
  const insert = prepared(
    build
      .insertInto(table)
      .columns(['key_hash', 'user', 'parts', 'subject', 'created_at', 'ordinal'])
      .expression(
        sql<IdempotentRequestTable>`select ${''}, ${''}, ${''}, ${''}, ${''},
          coalesce((select max(ordinal) from idempotent_requests where user = ${''}), 0) + 1`,
      ),
    ({ key_hash, user, parts, subject, created_at }: NewRequest) => [key_hash, user, parts, subject, created_at, user],
  )
  const lastPosition = sql<number>`coalesce((select max(position) from idempotent_requests where answer is not null), 0)`
  const finish = prepared(
    build
      .updateTable(table)
      .set({ status: 0, answer: '', position: sql<number>`${lastPosition} + ${0}` })
      .where('key_hash', '=', ''),
    ({ keyHash, status, answer }: { keyHash: string; status: number; answer: string | null }) => [
      status,
      answer,
      answer?.length ?? 0,
      keyHash,
    ],
  )
  const forgetAnswers = build
    .updateTable(table)
    .set({ answer: null })
    .where('answer', 'is not', null)
    .where('position', '<=', sql<number>`${lastPosition} - ${sql.lit(limits.answers)}`)
    .compile()
  const deleteOfUserBeyond = prepared(
    build
      .deleteFrom(table)
      .where('user', '=', '')
      .where(
        'ordinal',
        '<=',
        sql<number>`(select max(ordinal) from idempotent_requests where user = ${''}) - ${sql.lit(limits.perUser)}`,
      ),
    (user: string) => [user, user],
  )
  const deleteBeyond = build
    .deleteFrom(table)
    .where('number', '<=', sql<number>`(select max(number) from idempotent_requests) - ${sql.lit(limits.requests)}`)
    .compile()
  const deleteOld = prepared(
    build
      .deleteFrom(table)
      .where('number', 'in', build.selectFrom(table).select('number').orderBy('number').limit(DELETED_TOGETHER))
      .where('created_at', '<', ''),
    ({ before, limit }: { before: string; limit: number }) => [limit, before],
  )
  const deleteOfUser = prepared(build.deleteFrom(table).where('user', '=', ''), (user: string) => [user])
  return {
    find: (keyHash) => database.first(find(keyHash)) as StoredRequest | undefined, // its columns
    begin: (request) => [{ query: remove(request.key_hash) }, { query: insert(request), expect: 1 }],
    finish: (keyHash, status, answer) => ({ query: finish({ keyHash, status, answer }) }),
    tidy: (user, before) => [
      { query: { compile: () => forgetAnswers } },
      { query: deleteOfUserBeyond(user) },
      { query: { compile: () => deleteBeyond } },
      { query: deleteOld({ before, limit: DELETED_TOGETHER }) },
    ],
    deleteOld: (before, limit) => ({ query: deleteOld({ before, limit }) }),
    deleteOfUser: (user) => ({ query: deleteOfUser(user) }),
  }
}
