import { expect, test } from 'vitest'
import { isAppError } from '../../core/errors.ts'
import { authCookie, readCredential } from './credentials.ts'

function read(headers: Record<string, string>, query = ''): unknown {
  try {
    return readCredential({ headers, originalUrl: `/v1/executions${query}` })
  } catch (error) {
    return isAppError(error) ? error.code : error
  }
}

const token = (value: string, location: string): unknown => ({ kind: 'token', value, location })
const key = (value: string, location: string): unknown => ({ kind: 'api-key', value, location })

test.for<[string, Record<string, string>, string, unknown]>([
  ['nothing', {}, '', 'CREDENTIALS_MISSING'],
  ['token in a header', { 'x-auth-token': 'T' }, '', token('T', 'header')],
  ['key in a header', { 'svc-api-key': 'K' }, '', key('K', 'header')],
  ['token in the query', {}, '?x-auth-token=T', token('T', 'query')],
  ['key in the query', {}, '?a=b&svc-api-key=K%2B', key('K+', 'query')],
  ['cookie', { cookie: 'a=b; auth-token=T; c=d' }, '', token('T', 'cookie')],
  ['header and query of a token', { 'x-auth-token': 'T' }, '?x-auth-token=Q', token('T', 'header')],
  ['header and query of a key', { 'svc-api-key': 'K' }, '?svc-api-key=Q', key('K', 'header')],
  ['token and key as headers', { 'x-auth-token': 'T', 'svc-api-key': 'K' }, '', 'TWO_CREDENTIALS'],
  ['token as header, key in the query', { 'x-auth-token': 'T' }, '?svc-api-key=K', 'TWO_CREDENTIALS'],
  ['key as header, token in the query', { 'svc-api-key': 'K' }, '?x-auth-token=T', 'TWO_CREDENTIALS'],
  ['token and key in the query', {}, '?svc-api-key=K&x-auth-token=T', 'TWO_CREDENTIALS'],
  ['an empty header is none', { 'x-auth-token': '', 'svc-api-key': 'K' }, '', key('K', 'header')],
  ['a blank header is none', { 'x-auth-token': '  ' }, '?x-auth-token=Q', token('Q', 'query')],
  ['an empty query value is none', { 'svc-api-key': 'K' }, '?x-auth-token=', key('K', 'header')],
  [
    'all empty',
    { 'x-auth-token': '', 'svc-api-key': '', cookie: 'auth-token=' },
    '?x-auth-token=',
    'CREDENTIALS_MISSING',
  ],
  ['the cookie does not count beside a key', { 'svc-api-key': 'K', cookie: 'auth-token=T' }, '', key('K', 'header')],
  ['the cookie does not count beside a token', { cookie: 'auth-token=C' }, '?x-auth-token=T', token('T', 'query')],
  ['a header given twice', { 'x-auth-token': 'T, T' }, '', token('T, T', 'header')],
  ['the same twice in the query', {}, '?x-auth-token=T&x-auth-token=T&x-auth-token=', token('T', 'query')],
  ['two tokens in the query', {}, '?x-auth-token=T&x-auth-token=U', 'TWO_CREDENTIALS'],
  ['two keys in the query', {}, '?svc-api-key=K&svc-api-key=L', 'TWO_CREDENTIALS'],
  ['two in the query after a header', { 'svc-api-key': 'H' }, '?svc-api-key=K&svc-api-key=L', key('H', 'header')],
  ['the same cookie twice', { cookie: 'auth-token=T; auth-token=T; auth-token=' }, '', token('T', 'cookie')],
  ['two cookies', { cookie: 'auth-token=T; auth-token=U' }, '', 'TWO_CREDENTIALS'],
  ['two cookies beside a key', { 'svc-api-key': 'K', cookie: 'auth-token=T; auth-token=U' }, '', key('K', 'header')],
  ['query names are lower case', {}, '?X-Auth-Token=T', 'CREDENTIALS_MISSING'],
  ['a cookie of another name', { cookie: 'xauth-token=T; auth-token2=U; auth-token' }, '', 'CREDENTIALS_MISSING'],
])('%s', ([, headers, query, expected]) => {
  expect(read(headers, query)).toEqual(expected)
})

const made = `svc_${'aB3-_'.repeat(8)}xyz`
const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` })

test.for<[string, Record<string, string>, string, unknown]>([
  ['a key as a bearer token', { authorization: `Bearer ${made}` }, '', key(made, 'header')],
  ['the scheme in any case', { authorization: ` bEARER  ${made} ` }, '', key(made, 'header')],
  ['a key as the password, whoever the user is', basic(`anybody:${made}`), '', key(made, 'header')],
  ['without a user', basic(`:${made}`), '', key(made, 'header')],
  ['a key before the cookie', { authorization: `Bearer ${made}`, cookie: 'auth-token=T' }, '', key(made, 'header')],
  ['beside a token it does not count', { ...basic(`a:${made}`), 'x-auth-token': 'T' }, '', token('T', 'header')],
  ['beside a key of the query it does not count', basic(`a:${made}`), '?svc-api-key=K', key('K', 'query')],
  ['a password is none', basic('admin:secret'), '', 'CREDENTIALS_MISSING'],
  ['a key as the user name is none', basic(`${made}:secret`), '', 'CREDENTIALS_MISSING'],
  ['a token of another system is none', { authorization: 'Bearer eyJhbGciOi' }, '', 'CREDENTIALS_MISSING'],
  ['a longer text is none', { authorization: `Bearer ${made}x` }, '', 'CREDENTIALS_MISSING'],
  ['another scheme is none', { authorization: `Token ${made}` }, '', 'CREDENTIALS_MISSING'],
  ['the bare key is none', { authorization: made }, '', 'CREDENTIALS_MISSING'],
])('Authorization: %s', ([, headers, query, expected]) => {
  expect(read(headers, query)).toEqual(expected)
})

test('the cookie', () => {
  const bare = 'auth-token=T; HttpOnly; Max-Age=12; Path=/'
  const local = { isSecure: false, isLocal: true }
  const remote = { isSecure: false, isLocal: false }
  const overTls = { isSecure: true, isLocal: false }
  const usual = { secure: true, sameSite: 'lax' } as const
  expect(authCookie('T', 12, usual, overTls)).toBe(`${bare}; SameSite=Lax; Secure`)
  expect(authCookie('T', 12, usual, { isSecure: true, isLocal: true })).toBe(`${bare}; SameSite=Lax; Secure`)
  expect(authCookie('T', 12, usual, local)).toBe(`${bare}; SameSite=Lax`)
  expect(authCookie('T', 12, usual, remote)).toBe(`${bare}; SameSite=Lax; Secure`)
  expect(authCookie('T', 12, { secure: false, sameSite: 'strict' }, overTls)).toBe(`${bare}; SameSite=Strict`)
  expect(authCookie('T', 12, { secure: true, sameSite: 'unset' }, local)).toBe(bare)
  // Browsers refuse None without Secure, and take Secure from their own machine.
  expect(authCookie('T', 12, { secure: true, sameSite: 'none' }, local)).toBe(`${bare}; SameSite=None; Secure`)
})
