import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { makeFolder } from '../../../tests/helpers/folders.ts'
import { loadTokenKey } from './token-key.ts'

const folder = makeFolder()
afterAll(() => folder.remove())

let n = 0
const newPath = (): string => join(folder.path, String((n += 1)), 'keys', 'token.key')

test('made once, kept, readable by nobody else', async () => {
  const path = newPath()
  const key = await loadTokenKey(path)
  expect(key.symmetricKeySize).toBe(48)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(statSync(join(path, '..')).mode & 0o777).toBe(0o700)
  expect(readdirSync(join(path, '..'))).toEqual(['token.key'])
  expect((await loadTokenKey(path)).equals(key)).toBe(true)
  expect((await loadTokenKey(newPath())).equals(key)).toBe(false)
})

test('several starts at once agree on one key', async () => {
  const path = newPath()
  const keys = await Promise.all(Array.from({ length: 8 }, () => loadTokenKey(path)))
  const [first] = keys
  expect(keys.every((key) => first?.equals(key) === true)).toBe(true)
  expect(readFileSync(path, 'utf8').trim()).toBe(first?.export().toString('base64url'))
})

test('a key that every account can read stops the start', async () => {
  const path = newPath()
  await loadTokenKey(path)
  chmodSync(path, 0o644)
  await expect(loadTokenKey(path)).rejects.toThrow(/token\.key has mode 0644.*chmod 600/)
})

test('a pipe stops the start, and does not hold it up', async () => {
  const path = newPath()
  mkdirSync(join(path, '..'), { recursive: true })
  execFileSync('mkfifo', ['-m', '600', path])
  await expect(loadTokenKey(path)).rejects.toThrow(/token\.key is not a file; remove it/)
})

test.for(['', 'short', 'not base64: äöü äöü äöü äöü äöü äöü äöü äöü äöü äöü'])('no key: "%s"', async (text) => {
  const path = newPath()
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, text, { mode: 0o600 })
  await expect(loadTokenKey(path)).rejects.toThrow(/token\.key holds no token key; remove it/)
  expect(readFileSync(path, 'utf8')).toBe(text)
})
