import { expect, test } from 'vitest'
import { readRemoteUser } from './proxy.ts'

/** As Node.js hands over the bytes that a web server wrote. */
const wire = (text: string): string => Buffer.from(text).toString('latin1')

function read(headers: Record<string, string | string[]>): unknown {
  const headersDistinct = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value].flat()]))
  return readRemoteUser({ headersDistinct })
}

test.for<[string, Record<string, string>, string]>([
  ['Remote-User', { 'remote-user': 'alice' }, 'alice'],
  ['X-Remote-User', { 'x-remote-user': 'alice' }, 'alice'],
  ['X-Forwarded-User', { 'x-forwarded-user': 'alice' }, 'alice'],
  ['the first of all', { 'x-forwarded-user': 'c', 'x-remote-user': 'b', 'remote-user': 'a' }, 'a'],
  ['the first of two', { 'x-forwarded-user': 'c', 'x-remote-user': 'b' }, 'b'],
  ['a name of any spelling', { 'remote-user': 'EXAMPLE\\Alice B. <a@b>' }, 'EXAMPLE\\Alice B. <a@b>'],
  ['UTF-8', { 'remote-user': wire('zoë 日本') }, 'zoë 日本'],
  ['256 characters', { 'remote-user': 'a'.repeat(256) }, 'a'.repeat(256)],
])('%s', ([, headers, user]) => {
  expect(read(headers)).toEqual({ user })
})

test('the header that is named counts, and no other', () => {
  const headers = { 'remote-user': ['root'], 'x-remote-user': ['root', 'root'], 'x-forwarded-user': ['alice'] }
  expect(readRemoteUser({ headersDistinct: headers }, 'X-Forwarded-User')).toEqual({ user: 'alice' })
  expect(readRemoteUser({ headersDistinct: headers }, 'X-Other')).toEqual({ problem: 'No remote user provided' })
})

const given = expect.any(String) as unknown

test.for<[string, Record<string, string | string[]>, RegExp, unknown]>([
  ['nothing', {}, /^No remote user/, undefined],
  ['others', { remote_user: 'alice', authorization: 'Basic YTpi', 'x-user': 'b' }, /^No remote user/, undefined],
  ['an empty one', { 'remote-user': '' }, /empty/, ''],
  ['an empty one before a good one', { 'remote-user': '', 'x-forwarded-user': 'alice' }, /remote-user is empty/, ''],
  ['the same twice', { 'remote-user': ['alice', 'alice'] }, /more than once/, 'alice, alice'],
  ['two names', { 'x-forwarded-user': ['alice', 'root'] }, /more than once/, 'alice, root'],
  ['joined', { 'x-forwarded-user': 'alice, root' }, /comma/, 'alice, root'],
  ['Latin-1', { 'remote-user': 'zo\u00eb' }, /not UTF-8/, given],
  ['cut UTF-8', { 'remote-user': wire('é').slice(0, 1) }, /not UTF-8/, given],
  ['a surrogate in UTF-8', { 'remote-user': '\u00ed\u00a0\u0080' }, /not UTF-8/, given],
  ['too long', { 'remote-user': 'a'.repeat(257) }, /256 characters/, given],
  ['a tab', { 'remote-user': 'a\tb' }, /unprintable/, 'a\tb'],
  ['DEL', { 'remote-user': 'a\u007f' }, /unprintable/, given],
  ['a control character in UTF-8', { 'remote-user': wire('a\u0085b') }, /unprintable/, given],
  ['a line separator in UTF-8', { 'remote-user': wire('a\u2028b') }, /unprintable/, given],
])('nobody: %s', ([, headers, problem, tried]) => {
  expect(read(headers)).toEqual({ problem: expect.stringMatching(problem) as unknown, given: tried })
})
