import { createSecretKey } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDatabase } from '../../../tests/helpers/database.ts'
import { makeFolder } from '../../../tests/helpers/folders.ts'
import { TextSink } from '../../../tests/helpers/text-sink.ts'
import type { Database } from '../../db/database.ts'
import { isAppError } from '../../core/errors.ts'
import type { Caller } from '../../http/caller.ts'
import { createLog, type RootLog } from '../../lib/log/log.ts'
import { nowMicros } from '../../core/time.ts'
import { createImpersonation } from './impersonation.ts'
import { createLogins, type Logins } from './logins.ts'
import { createTokenService, type TokenService } from './service.ts'
import { createAuthStore, type AuthStore } from './store.ts'
import { createTokens, type Tokens } from './tokens.ts'

const folder = makeFolder()
let log: RootLog
const logged = new TextSink()
let database: Database
let store: AuthStore
let tokens: Tokens
let logins: Logins
let service: TokenService
const admins = new Set(['root'])

beforeAll(async () => {
  log = createLog({ level: 'INFO', format: 'text', stream: logged })
  const opened = await openDatabase(folder.path)
  const { bus } = opened
  database = opened.database
  store = createAuthStore(database)
  tokens = createTokens({
    key: createSecretKey(Buffer.alloc(48, 1)),
    findRow: (id) => store.findToken(id),
    now: nowMicros,
  })
  bus.subscribe('token.revoked', ({ id }) => tokens.forget(id))
  bus.subscribe('user.changed', () => tokens.forgetAll())
  logins = createLogins()
  service = createTokenService({
    database,
    store,
    tokens,
    impersonate: createImpersonation(store, { isAdmin: (user) => admins.has(user) }),
    logins,
    maxTtlSeconds: 100,
    log,
    now: nowMicros,
  })
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

const asService = async (name: string): Promise<Caller> => {
  await service.issue({}, caller(name))
  await database.write({ steps: [store.updateUser(name, { is_service: 1 })], facts: [] })
  return caller(name)
}

const withNickname = async (name: string, nicknames: Record<string, string>): Promise<void> => {
  await service.issue({}, caller(name))
  await database.write({ steps: [store.updateUser(name, { nicknames: JSON.stringify(nicknames) })], facts: [] })
}

test.for([{ user: 'bob' }, { user: 'alice' }, { impersonate_user: 'bob', nickname_origin: 'chat' }])(
  'who is no service account gets a token in no other name: %j',
  async (request) => {
    await service.issue({}, caller('alice'))
    logged.text = ''
    await expect(service.issue(request, caller('alice', true))).rejects.toMatchObject({ code: 'IMPERSONATION_REFUSED' })
    expect(logged.text).toMatch(/AUDIT .*is not a service/)
    expect(logged.text).toMatch(/owner="?(bob|alice)|nickname="?bob/)
    await expect(service.issue(request, caller('stranger'))).rejects.toMatchObject({
      code: 'USER_NOT_LOCATED',
      message: 'Could not locate user stranger',
    })
  },
)

test('a service account gets a token for whom it names, and the account is made', async () => {
  const bot = await asService('bot')
  logged.text = ''
  const issued = await service.issue({ user: 'newcomer', impersonate_user: 'ignored' }, bot)
  expect(issued.user).toBe('newcomer')
  expect(tokens.check(issued.token)?.user).toBe('newcomer')
  expect(store.findUser('newcomer')).toMatchObject({ is_service: 0, is_disabled: 0, nicknames: '{}' })
  expect(logged.text).toMatch(/Registered new user ."?newcomer/)
  expect(logged.text).toMatch(/token\.issued.*bot.*newcomer|Access granted to ."?newcomer/)
  expect(logged.text).toMatch(/user="?bot/)
  expect(logged.text).toMatch(/owner="?newcomer/)
})

test('by nickname it is whom the chat system knows under it', async () => {
  const bot = await asService('bot')
  await withNickname('erin', { chat: 'e"rin', 'other.chat': 'shared' })
  await withNickname('frank', { chat: 'frank', 'other.chat': 'shared', nested: 'x' })
  const nickname = (nick: unknown, origin?: unknown): Promise<unknown> =>
    service.issue({ impersonate_user: nick, nickname_origin: origin }, bot).then(
      ({ user }) => user,
      (error: unknown) => (isAppError(error) ? `${error.code} ${error.message}` : error),
    )
  expect(await nickname('e"rin', 'chat')).toBe('erin')
  expect(await nickname('frank', 'chat')).toBe('frank')
  expect(await nickname('erin', 'chat')).toBe('USER_NOT_LOCATED Could not locate user erin@chat')
  expect(await nickname('frank', '$.chat')).toBe('USER_NOT_LOCATED Could not locate user frank@$.chat')
  expect(await nickname('shared', 'other.chat')).toBe(
    'NICKNAME_AMBIGUOUS shared@other.chat matched more than one username',
  )
  expect(await nickname('frank')).toMatch(
    /^NICKNAME_ORIGIN_MISSING Nickname origin is not provided for nickname 'frank'/,
  )
  expect(await nickname('frank', ['chat'])).toMatch(/^BODY_INVALID nickname_origin/)
})

test('a service account that is no administrator gets no token of one, whichever way it asks', async () => {
  const bot = await asService('bot')
  await withNickname('root', { chat: 'boss' })
  for (const request of [{ user: 'root' }, { impersonate_user: 'boss', nickname_origin: 'chat' }]) {
    await expect(service.issue(request, bot)).rejects.toMatchObject({ code: 'PERMISSION_DENIED' })
    admins.add('bot')
    expect((await service.issue(request, bot)).user).toBe('root')
    admins.delete('bot')
    // It was one when it logged in, and has taken its time over the body.
    const late = { ...bot, principal: { ...bot.principal, isAdmin: true } }
    await expect(service.issue(request, late)).rejects.toMatchObject({ code: 'PERMISSION_DENIED' })
  }
})

test.for([{ user: 7 }, { user: ['admin'] }, { user: 'a:b' }, { user: ' ' }, { user: 'x'.repeat(257) }])(
  'what can be no name is refused: %j',
  async (request) => {
    await expect(service.issue(request, await asService('bot'))).rejects.toMatchObject({ code: 'BODY_INVALID' })
  },
)

test('nobody gets a token for a disabled user', async () => {
  const bot = await asService('bot')
  await withNickname('gone', { chat: 'gone' })
  await database.write({ steps: [store.updateUser('gone', { is_disabled: 1 })], facts: [] })
  for (const request of [{ user: 'gone' }, { impersonate_user: 'gone', nickname_origin: 'chat' }]) {
    await expect(service.issue(request, bot)).rejects.toThrow('user: "gone" is disabled')
  }
})

test('a login that has begun before the account was changed ends without a token', async () => {
  const late = caller('heidi')
  logins.remember(late.principal, logins.epochOf('heidi'))
  logins.endAll('heidi')
  await expect(service.issue({}, late)).rejects.toMatchObject({ code: 'LOGIN_REFUSED' })
  expect(store.findUser('heidi')).toBeUndefined()
  const next = caller('heidi')
  logins.remember(next.principal, logins.epochOf('heidi'))
  expect((await service.issue({}, next)).user).toBe('heidi')
})

test('all tokens of a user are revoked by the user or an administrator, and no others', async () => {
  const issue = async (user: string): Promise<string> => (await service.issue({}, caller(user))).token
  const counted = (): boolean[] => all.map((token) => tokens.check(token) !== undefined)
  const all = [await issue('ivan'), await issue('ivan'), await issue('judy')]
  expect(counted()).toEqual([true, true, true])
  await expect(service.revokeAll('ivan', caller('judy'))).rejects.toMatchObject({ code: 'PERMISSION_DENIED' })
  expect(await service.revokeAll('ivan', caller('root', true))).toBe(2)
  expect(counted()).toEqual([false, false, true])
  expect(await service.revokeAll(undefined, caller('judy'))).toBe(1)
  expect(await service.revokeAll('judy', caller('judy'))).toBe(0)
  expect(counted()).toEqual([false, false, false])
})
