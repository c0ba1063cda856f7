import { createSecretKey } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeFolder } from '../../../tests/helpers/folders.ts'
import { TextSink } from '../../../tests/helpers/text-sink.ts'
import { createMemoryBus } from '../../bus/memory.ts'
import type { Database } from '../../db/database.ts'
import { openSqlite } from '../../db/sqlite/open.ts'
import { isAppError } from '../../errors.ts'
import { createLog, type RootLog } from '../../log.ts'
import { nowMicros } from '../../time.ts'
import { createTokenService, type Caller, type TokenService } from './service.ts'
import { createAuthStore, type AuthStore } from './store.ts'
import { createTokens, type Tokens } from './tokens.ts'

const folder = makeFolder()
let log: RootLog
const logged = new TextSink()
let database: Database
let store: AuthStore
let tokens: Tokens
let service: TokenService

beforeAll(async () => {
  log = createLog({ level: 'INFO', format: 'text', stream: logged })
  const bus = createMemoryBus((error) => {
    throw error
  })
  database = await openSqlite({
    path: join(folder.path, 'svc.db'),
    synchronous: 'normal',
    announce: (facts) => facts.forEach((fact) => bus.publish(fact)),
  })
  store = createAuthStore(database)
  tokens = createTokens({
    key: createSecretKey(Buffer.alloc(48, 1)),
    findRow: (id) => store.findToken(id),
    now: nowMicros,
  })
  bus.subscribe('token.revoked', () => tokens.forget())
  service = createTokenService({ database, store, tokens, maxTtlSeconds: 100, log, now: nowMicros })
})

afterAll(async () => {
  await database.close()
  await log.close()
  folder.remove()
})

const caller = (user: string, isAdmin = false): Caller => ({
  principal: { user, isAdmin, method: 'token' },
  requestId: 'r1',
  remoteAddress: '192.0.2.1',
})

const codeOf = (error: unknown): unknown => (isAppError(error) ? error.code : error)

test('only the owner and administrators can revoke, by value or by id; then it is gone at once', async () => {
  for (const [revoker, isAdmin] of [
    ['alice', false],
    ['root', true],
  ] as const) {
    for (const by of ['token', 'id'] as const) {
      const issued = await service.issue({}, caller('alice'))
      expect(tokens.check(issued.token)?.user).toBe('alice')
      await expect(service.revoke(issued[by], caller('mallory'))).rejects.toMatchObject({ code: 'PERMISSION_DENIED' })
      expect(tokens.check(issued.token)?.user).toBe('alice')
      await service.revoke(issued[by], caller(revoker, isAdmin))
      expect(tokens.check(issued.token)).toBeUndefined()
      await expect(service.revoke(issued[by], caller('root', true))).rejects.toMatchObject({ code: 'TOKEN_UNKNOWN' })
    }
  }
})

test('two revocations at once: one wins, the other finds nothing', async () => {
  const { token } = await service.issue({}, caller('alice'))
  const revoke = (): Promise<unknown> => service.revoke(token, caller('alice')).then(() => 'revoked', codeOf)
  const outcomes = await Promise.all([revoke(), revoke(), revoke()])
  expect(outcomes.toSorted()).toEqual(['TOKEN_UNKNOWN', 'TOKEN_UNKNOWN', 'revoked'])
})

test('the first login registers the user, later ones do not', async () => {
  logged.text = ''
  for (let i = 0; i < 3; i++) await service.issue({}, caller('carol'))
  expect(logged.text.match(/Registered new user ."?carol/g)).toHaveLength(1)
  expect(logged.text.match(/token\.issued/g)).toHaveLength(3)
})

test('neither the database nor the log holds a token', async () => {
  logged.text = ''
  const { token, id } = await service.issue({ ttl: 5 }, caller('dave'))
  service.validate(token, caller('dave'))
  const rows = database.all(database.build.selectFrom('tokens').selectAll())
  const signature = token.split('.')[2] ?? ''
  expect(JSON.stringify(rows)).toContain(id)
  expect(JSON.stringify(rows)).not.toContain(signature)
  await service.revoke(token, caller('dave'))
  expect(logged.text).toContain(id)
  expect(logged.text).not.toContain(signature)
})

test.for([{ user: 'admin' }, { impersonate_user: 'admin', nickname_origin: 'chat' }, { user: 7 }, { user: ['admin'] }])(
  'nobody gets a token of somebody else: %j',
  async (request) => {
    logged.text = ''
    await expect(service.issue(request, caller('alice', true))).rejects.toMatchObject({ code: 'IMPERSONATION_REFUSED' })
    expect(logged.text).toContain('AUDIT')
  },
)
