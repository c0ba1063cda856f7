import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { makeFolder } from '../../../tests/helpers/folders.ts'
import { CliFailure } from '../failures.ts'
import { readCachedToken, tokenPath, writeCachedToken } from './token-cache.ts'

const temporary = makeFolder()
const home = temporary.path
afterAll(() => temporary.remove())

const authUrl = 'http://127.0.0.1:9100'
const folder = join(home, '.svc')
const placeOf = (user: string, url = authUrl) => ({ folder, user, authUrl: url })
const pathOf = (user: string): string => tokenPath({ folder, user })
const silent = (): void => undefined

function put(user: string, content: string, mode = 0o600): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  writeFileSync(pathOf(user), content)
  chmodSync(pathOf(user), mode)
}

test('a token is kept for its owner alone, in the form others read', async () => {
  expect(readCachedToken(placeOf('alice'), silent)).toBeUndefined()
  await writeCachedToken(placeOf('alice'), 'abc', 2_000_000_000)
  const path = join(home, '.svc', 'token-alice')
  expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({
    token: 'abc',
    expire_timestamp: 2_000_000_000,
    auth_url: authUrl,
  })
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(statSync(dirname(path)).mode & 0o777).toBe(0o700)
  expect(readCachedToken(placeOf('alice'), silent, 1_999_999_000)).toBe('abc')
})

test('15 seconds before its end it counts as expired', () => {
  put('late', '{"token": "abc", "expire_timestamp": 1000}')
  expect(readCachedToken(placeOf('late'), silent, 984)).toBe('abc')
  expect(readCachedToken(placeOf('late'), silent, 985)).toBeUndefined()
  expect(readCachedToken(placeOf('late'), silent, 2000)).toBeUndefined()
})

test('no other server gets to see it', () => {
  put('far', JSON.stringify({ token: 'abc', expire_timestamp: 1000, auth_url: 'https://svc.example.com:9100' }))
  expect(readCachedToken(placeOf('far'), silent, 0)).toBeUndefined()
  expect(readCachedToken(placeOf('far', 'https://svc.example.com:9100'), silent, 0)).toBe('abc')
})

test.each([
  '',
  '{',
  'null',
  '[]',
  '"abc"',
  '{"token": "abc"}',
  '{"expire_timestamp": 1}',
  '{"token": "", "expire_timestamp": 9}',
  '{"token": "a\\nb", "expire_timestamp": 9}',
  '{"token": "a", "expire_timestamp": "9"}',
  '{"token": "a", "expire_timestamp": 9, "auth_url": 1}',
])('a damaged file, %j, is to be deleted', (content) => {
  put('bad', content)
  const read = (): unknown => readCachedToken(placeOf('bad'), silent, 0)
  expect(read).toThrow(CliFailure)
  expect(read).toThrow(`${pathOf('bad')} is damaged. Delete it and try again: rm ${pathOf('bad')}`)
})

test('one that others may read is warned of', () => {
  const warnings: string[] = []
  put('open', '{"token": "abc", "expire_timestamp": 1000}', 0o660)
  expect(readCachedToken(placeOf('open'), (text) => warnings.push(text), 0)).toBe('abc')
  expect(warnings).toEqual([`${pathOf('open')} is open to other users; close it with: chmod 600 ${pathOf('open')}`])
})

test('one that cannot be read is as good as none, and gives way to the next', async () => {
  const warnings: string[] = []
  symlinkSync(pathOf('loop'), pathOf('loop'))
  expect(readCachedToken(placeOf('loop'), (text) => warnings.push(text), 0)).toBeUndefined()
  expect(warnings).toEqual([expect.stringContaining(`${pathOf('loop')} cannot be read (ELOOP)`)])
  await writeCachedToken(placeOf('loop'), 'abc', 1000)
  expect(readCachedToken(placeOf('loop'), silent, 0)).toBe('abc')
})

test('every name is a file of its own in the folder', async () => {
  const names = [
    '..',
    '.',
    '../x',
    '../../etc/passwd',
    'a/b',
    'a\\b',
    'a%2Fb',
    'ü😀',
    '\u0000',
    '\ud800',
    ' ',
    'x'.repeat(256),
    'ü'.repeat(256),
    `${'ü'.repeat(255)}x`,
  ]
  const paths = names.map(pathOf)
  expect(new Set(paths).size).toBe(names.length)
  for (const [index, name] of names.entries()) {
    expect(dirname(paths[index] ?? '')).toBe(join(home, '.svc'))
    expect(basename(paths[index] ?? '')).toMatch(/^token-[^/]{1,248}$/)
    await writeCachedToken(placeOf(name), `t${index}`, 1000)
  }
  for (const [index, name] of names.entries()) expect(readCachedToken(placeOf(name), silent, 0)).toBe(`t${index}`)
  expect(existsSync(join(home, 'x'))).toBe(false)
  expect(basename(pathOf('al.ice-1_x'))).toBe('token-al.ice-1_x')
})
