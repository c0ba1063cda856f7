import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { openDatabase } from '../../../tests/helpers/database.ts'
import { makeFolder } from '../../../tests/helpers/folders.ts'
import { TextSink } from '../../../tests/helpers/text-sink.ts'
import { loadEncryption, type Encryption } from '../../core/encryption.ts'
import { createCompanions, type Database } from '../../db/index.ts'
import type { KeyedRequest, ReadyAnswer } from '../../http/index.ts'
import { createLog } from '../../lib/log/index.ts'
import { createIdempotency, type Idempotency } from './index.ts'

const folder = makeFolder()
const { database } = await openDatabase(folder.path)
const logged = new TextSink()
const log = createLog({ level: 'DEBUG', format: 'text', stream: logged }).of('api')
let encryption: Encryption

const make = (limits?: { perUser: number; requests: number; answers: number }, on: Database = database): Idempotency =>
  createIdempotency({ companions: createCompanions(on), encryption, log }, limits)

beforeEach(async () => {
  encryption = await loadEncryption({ enabled: true, keyPath: '', ownKeyPath: join(folder.path, 'keys.json') })
  await database.write({ steps: [{ query: database.build.deleteFrom('idempotent_requests') }], facts: [] })
})
afterAll(async () => {
  await database.close()
  folder.remove()
})

const request = (keyHash: string, user = 'u'): KeyedRequest => ({ user, keyHash, parts: ['a', 'b', 'c', 'd'] })
const answer = (text?: string): ReadyAnswer => ({
  status: text === undefined ? 204 : 201,
  headers: { 'Content-Type': 'x' },
  bytes: text === undefined ? undefined : Buffer.from(text),
})
const keys = (): string[] =>
  database
    .all(database.build.selectFrom('idempotent_requests').select('key_hash').orderBy('number'))
    .map((row) => row.key_hash)

test.for([undefined, '', '{"a": "Grüße\n"}'])('an answer comes back as it was: %j', async (text) => {
  const { ledger } = make()
  await ledger.finish(request('k'), answer(text), false)
  expect(ledger.find('k')).toEqual({
    parts: ['a', 'b', 'c', 'd'],
    subject: undefined,
    status: answer(text).status,
    answer: answer(text),
  })
})

test('beyond the limits the oldest go: of the user, then of all', async () => {
  const { ledger } = make({ perUser: 3, requests: 5, answers: 1e6 })
  for (const n of [1, 2, 3, 4]) await ledger.finish(request(`u${n}`), answer('x'), false)
  expect(keys()).toEqual(['u2', 'u3', 'u4'])
  for (const n of [1, 2, 3]) await ledger.finish(request(`v${n}`, 'v'), answer('x'), false)
  expect(keys()).toEqual(['u3', 'u4', 'v1', 'v2', 'v3'])
  // One that is carried out anew is the newest.
  await ledger.finish(request('u3'), answer('x'), false)
  expect(keys()).toEqual(['u4', 'v1', 'v2', 'v3', 'u3'])
})

test('the oldest answers go before their requests', async () => {
  const length = encryption.encrypt(`{"Content-Type":"x"}\n${'x'.repeat(100)}`, '').length
  const { ledger } = make({ perUser: 100, requests: 100, answers: 3 * length })
  for (const n of [1, 2, 3, 4, 5]) await ledger.finish(request(`k${n}`), answer('x'.repeat(100)), false)
  const kept = keys().map((key) => ledger.find(key)?.answer !== undefined)
  expect(kept).toEqual([false, false, true, true, true])
  expect(ledger.find('k1')).toMatchObject({ status: 201, answer: undefined })
})

test('an answer above 1 MiB is not kept, nor one that no key decrypts any more', async () => {
  const { ledger } = make()
  await ledger.finish(request('long'), answer('x'.repeat(1024 * 1024 + 1)), false)
  expect(ledger.find('long')).toMatchObject({ status: 201, answer: undefined })
  await ledger.finish(request('k'), answer('x'), false)
  encryption = await loadEncryption({ enabled: true, keyPath: '', ownKeyPath: join(folder.path, 'others.json') })
  encryption.encrypt('makes the file', '')
  expect(make().ledger.find('k')).toMatchObject({ status: 201, answer: undefined })
  expect(logged.text).toContain('idempotency.answer_unreadable')
})

test('what is stored of keys and bodies cannot be found by trying, and outlives a rotation', async () => {
  const path = join(folder.path, 'rotated.json')
  const digestBy = async (keyPath: string, enabled = true): Promise<string> => {
    encryption = await loadEncryption({ enabled, keyPath: '', ownKeyPath: keyPath })
    return make().ledger.digest('text')
  }
  const first = await digestBy(path)
  const { keys: made, ...others } = JSON.parse(readFileSync(path, 'utf8')) as { keys: string[] }
  writeFileSync(path, JSON.stringify({ ...others, keys: [...made, randomBytes(32).toString('base64url')] }))
  expect(await digestBy(path)).toBe(first)
  expect(await digestBy(join(folder.path, 'others.json'))).not.toBe(first)
  expect(await digestBy(path, false)).toBe(createHash('sha256').update('text').digest('hex'))
})

test('while the disk is full, what still succeeds is not held up by its key', async () => {
  const { ledger } = make(undefined, { ...database, hasRoom: () => false })
  const begun = ledger.begin(request('k'), () => Promise.resolve(answer('x')))
  await ledger.finish(request('k'), await begun.result, begun.hasCommitted())
  expect([begun.hasCommitted(), keys()]).toEqual([false, []])
})

test('an answer that cannot be stored is told in the log, and does not fail the request', async () => {
  const { ledger } = make(undefined, { ...database, write: () => Promise.reject(new Error('disk')) })
  await ledger.finish(request('k'), answer('x'), false)
  expect(logged.text).toContain('idempotency.answer_not_stored')
})

test('the sweep deletes what has expired', async () => {
  const { ledger, maintenance } = make()
  const of = (n: number): string => `k${String(n).padStart(4, '0')}`
  await Promise.all(Array.from({ length: 1200 }, (_, n) => ledger.finish(request(of(n)), answer('x'), false)))
  const old = database.build
    .updateTable('idempotent_requests')
    .set({ created_at: '2020' })
    .where('key_hash', '<', of(1100))
  await database.write({ steps: [{ query: old }], facts: [] })
  expect(ledger.find(of(3))).toBeUndefined()
  await maintenance?.[0]?.run(new AbortController().signal)
  expect(keys().toSorted()).toEqual(Array.from({ length: 100 }, (_, n) => of(1100 + n)))
})
