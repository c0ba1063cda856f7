import { createSecretKey, generateKeyPairSync } from 'node:crypto'
import jwt from 'jsonwebtoken'
import { beforeEach, expect, test } from 'vitest'
import { microsOf } from '../../core/time.ts'
import { createTokens, type TokenCheckRow, type Tokens } from './tokens.ts'

const key = createSecretKey(Buffer.alloc(48, 7))
const start = microsOf('2030-01-01T10:00:00.123456Z')

let clock: number
let rows: Map<string, TokenCheckRow>
let reads: number
let tokens: Tokens

beforeEach(() => {
  clock = start
  rows = new Map()
  reads = 0
  tokens = createTokens({
    key,
    now: () => clock,
    findRow: (id) => {
      reads += 1
      return rows.get(id)
    },
  })
})

function issue(ttlSeconds = 60): { token: string; row: TokenCheckRow } {
  const { token, row: made } = tokens.make('alice', ttlSeconds)
  const row = { ...made, is_disabled: 0 }
  rows.set(row.id, row)
  return { token, row }
}

test('a token is one printable word that says nothing about its user', () => {
  const { token, row } = issue()
  expect(token).toMatch(/^[!-~]{32,1024}$/)
  expect(row).toEqual({
    id: expect.stringMatching(/^[0-9a-f]{24}$/),
    user: 'alice',
    expiry: '2030-01-01T10:01:00.123456Z',
    service: 0,
    metadata: '{}',
    is_disabled: 0,
  })
  const parts = token.split('.').map((part) => Buffer.from(part, 'base64url').toString('latin1'))
  expect(parts.join(' ')).not.toContain('alice')
})

test('it is refused from the microsecond of its expiry on', () => {
  const { token, row } = issue(60)
  const known = { id: row.id, user: 'alice', expiry: row.expiry, isService: false, isDisabled: false }
  clock = start + 60_000_000 - 1
  expect(tokens.check(token)).toEqual({ ...known, hasExpired: false })
  clock += 1
  expect(tokens.check(token)).toEqual({ ...known, hasExpired: true })
  clock += 1
  expect(tokens.check(token)).toEqual({ ...known, hasExpired: true })
})

test('it is worth nothing before its row is stored, and after the row is gone', () => {
  const made = tokens.make('alice', 60)
  expect(tokens.check(made.token)).toBeUndefined()
  rows.set(made.row.id, { ...made.row, is_disabled: null })
  expect(tokens.check(made.token)?.user).toBe('alice')
  rows.delete(made.row.id)
  tokens.forget(made.row.id)
  expect(tokens.check(made.token)).toBeUndefined()
})

test('verifications are kept, refusals are not', () => {
  const { token } = issue()
  for (let i = 0; i < 10; i++) tokens.check(token)
  expect(reads).toBe(1)
  const other = tokens.make('bob', 60)
  tokens.check(other.token)
  tokens.check(other.token)
  expect(reads).toBe(3)
})

test('whether the token of a caller still counts is remembered until it is forgotten', () => {
  const { token, row } = issue()
  tokens.check(token)
  for (let i = 0; i < 10; i++) expect(tokens.isValid({ tokenId: row.id })).toBe(true)
  expect(reads).toBe(1)
  rows.set(row.id, { ...row, is_disabled: 1 })
  tokens.forgetAll()
  expect(tokens.isValid({ tokenId: row.id })).toBe(false)
  rows.delete(row.id)
  expect(tokens.isValid({ tokenId: row.id })).toBe(false)
})

test('two tokens of one user are independent', () => {
  const [first, second] = [issue(), issue()]
  expect([tokens.check(first.token), tokens.check(second.token)].map((found) => found?.id)).toEqual([
    first.row.id,
    second.row.id,
  ])
  reads = 0
  rows.delete(first.row.id)
  tokens.forget(first.row.id)
  expect(tokens.check(first.token)).toBeUndefined()
  expect(tokens.check(second.token)?.id).toBe(second.row.id)
  // The other one is still remembered.
  expect(reads).toBe(1)
})

test('a user who is disabled is noticed once all is forgotten', () => {
  const [first, second] = [issue(), issue()]
  for (const { token } of [first, second]) expect(tokens.check(token)?.isDisabled).toBe(false)
  for (const { row } of [first, second]) rows.set(row.id, { ...row, is_disabled: 1 })
  tokens.forgetAll()
  for (const { token } of [first, second]) expect(tokens.check(token)?.isDisabled).toBe(true)
})

test('one for an action has the id and the data it was given', () => {
  const id = 'abcdef0123456789abcdef01'
  const { token, row } = tokens.make('alice', 60, { id, isService: true, metadata: { live_action_id: id } })
  expect(row).toMatchObject({ id, service: 1, metadata: `{"live_action_id":"${id}"}` })
  rows.set(id, { ...row, is_disabled: null })
  expect(tokens.check(token)).toMatchObject({ id, isService: true, isDisabled: false })
})

test('what is remembered of a token helps nobody who only knows its id', () => {
  const { token, row } = issue()
  tokens.check(token)
  const [header = '', payload = '', signature = ''] = token.split('.')
  const other = signature.startsWith('A') ? 'B' : 'A'
  expect(tokens.check(`${header}.${payload}.${other}${signature.slice(1)}`)).toBeUndefined()
  expect(tokens.check(`x.${payload}.x`)).toBeUndefined()
  expect(tokens.check(token)?.id).toBe(row.id)
})

test('find knows expired tokens too, but none of a foreign key', () => {
  const { token, row } = issue(1)
  clock += 10_000_000
  expect(tokens.find(token)).toEqual(row)
  expect(tokens.find(jwt.sign({}, createSecretKey(Buffer.alloc(48, 8)), { jwtid: row.id }))).toBeUndefined()
})

test('no forgery of a stored id passes', () => {
  const { token, row } = issue()
  const [header = '', payload = '', signature = ''] = token.split('.')
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = { jti: row.id }
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const forgeries = [
    `${part({ alg: 'none', typ: 'JWT' })}.${payload}.`,
    `${part({ alg: 'none' })}.${payload}`,
    `${part({ alg: 'None' })}.${payload}.${signature}`,
    `${header}.${payload}.`,
    `${header}.${payload}`,
    `${header}.${payload}.${signature.slice(0, -4)}`,
    `${header}.${payload}.${signature}AAAA`,
    `${header}.${part({ jti: row.id, admin: true })}.${signature}`,
    ...[Buffer.alloc(48, 8), Buffer.alloc(1), 'secret', Buffer.alloc(48)].map((other) => jwt.sign(claims, other)),
    jwt.sign(claims, key, { algorithm: 'HS512' }),
    jwt.sign(claims, key, { algorithm: 'HS384' }),
    jwt.sign(claims, rsa.privateKey, { algorithm: 'RS256' }),
    jwt.sign({ sub: row.id }, key),
    jwt.sign({ jti: 7 }, key),
    jwt.sign({ jti: [row.id] }, key),
    jwt.sign({ jti: `${row.id} ` }, key),
    jwt.sign('text', key),
    row.id,
    '',
    '..',
    '.',
    'a.b.c',
    '{}',
    'null',
    '\u0000',
    '💥.💥.💥',
    `${token} `,
    ` ${token}`,
    `${token}.${token}`,
    token.toUpperCase(),
  ]
  for (const forgery of forgeries)
    expect({ forgery, found: tokens.check(forgery) }).toEqual({ forgery, found: undefined })
  expect(tokens.check(token)?.id).toBe(row.id)
})

test('of every length: refused, never thrown', () => {
  const { token } = issue()
  for (let length = 0; length < token.length; length++) expect(tokens.check(token.slice(0, length))).toBeUndefined()
  for (const length of [1023, 1024, 1025, 100_000]) expect(tokens.check('x'.repeat(length))).toBeUndefined()
})
