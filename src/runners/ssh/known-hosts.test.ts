import { createHmac, randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { createKnownHosts, fingerprint } from './known-hosts.ts'

let folder: TemporaryFolder
let path: string
beforeEach(() => {
  folder = makeFolder()
  path = join(folder.path, 'known_hosts')
})
afterEach(() => folder.remove())

function makeKey(type = 'ssh-ed25519'): Buffer {
  const name = Buffer.from(type)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(name.length)
  return Buffer.concat([length, name, Buffer.from([0, 0, 0, 32]), randomBytes(32)])
}
const text = (key: Buffer, type = 'ssh-ed25519'): string => `${type} ${key.toString('base64')}`
const hashed = (name: string): string => {
  const salt = randomBytes(20)
  return `|1|${salt.toString('base64')}|${createHmac('sha1', salt).update(name).digest('base64')}`
}
const verify = async (key: Buffer, host = 'h.example', port = 22, checking: 'strict' | 'accept-new' = 'strict') =>
  (await createKnownHosts(path, checking).checkFor(host, port)).verify(key)

it.each([
  ['h.example', 'h.example', 22, true],
  ['H.Example', 'h.exAMPLE', 22, true],
  ['a,h.example,b', 'h.example', 22, true],
  ['*.example', 'h.example', 22, true],
  ['?.example', 'h.example', 22, true],
  ['*.example,!h.example', 'h.example', 22, false],
  ['!h.example,*', 'h.example', 22, false],
  ['h.example', 'h.example', 2222, false],
  ['[h.example]:2222', 'h.example', 2222, true],
  ['[h.example]:2222', 'h.example', 22, false],
  ['[::1]:2222', '::1', 2222, true],
  ['::1', '::1', 22, true],
  ['h.example2', 'h.example', 22, false],
  [hashed('h.example'), 'h.example', 22, true],
  [hashed('[h.example]:2222'), 'h.example', 2222, true],
  [hashed('other.example'), 'h.example', 22, false],
  ['|1|broken', 'h.example', 22, false],
  ['|2|AAAA|AAAA', 'h.example', 22, false],
])('a line for %s is about %s at port %i: %s', async (names, host, port, isKnown) => {
  const key = makeKey()
  writeFileSync(path, `# comment\n\n  ${names}\t${text(key)} somebody\n`)
  const problem = await verify(key, host, port)
  expect(problem === undefined).toBe(isKnown)
})

it('compares a hostile pattern without running away', async () => {
  const key = makeKey()
  writeFileSync(path, `${'*a'.repeat(2000)}b ${text(key)}\n`)
  expect(await verify(key, 'a'.repeat(5000))).toMatch(/is unknown/)
})

it('refuses a changed key and names both', async () => {
  const [before, now] = [makeKey(), makeKey()]
  writeFileSync(path, `h.example ${text(before)}\n`)
  for (const checking of ['strict', 'accept-new'] as const) {
    const problem = await verify(now, 'h.example', 22, checking)
    expect(problem).toContain('has changed')
    expect(problem).toContain(fingerprint(before))
    expect(problem).toContain(fingerprint(now))
    expect(problem).not.toContain(folder.path)
  }
})

it('refuses a revoked key, whatever else says that it is good', async () => {
  const key = makeKey()
  writeFileSync(path, `h.example ${text(key)}\n@revoked * ${text(key)}\n`)
  expect(await verify(key)).toMatch(/revoked/)
})

it('takes no authority for a key, and nobody for known whose keys are left to one', async () => {
  const key = makeKey()
  writeFileSync(path, `@cert-authority *.example ${text(key)}\n`)
  expect(await verify(key, 'h.example', 22, 'accept-new')).toMatch(/@cert-authority/)
  expect(await verify(key, 'h.other', 22, 'accept-new')).toBeUndefined()
})

it('believes no line that is damaged', async () => {
  const key = makeKey()
  writeFileSync(path, `h.example ssh-rsa ${key.toString('base64')}\nh.example ssh-ed25519\nh.example\n\0\n`)
  expect(await verify(key)).toMatch(/is unknown/)
})

it('asks for the kinds of key that are known first', async () => {
  writeFileSync(path, `h.example ${text(makeKey('ssh-rsa'), 'ssh-rsa')}\n`)
  const { algorithms } = await createKnownHosts(path, 'strict').checkFor('h.example', 22)
  expect(algorithms.slice(0, 3)).toEqual(['rsa-sha2-512', 'rsa-sha2-256', 'ssh-ed25519'])
})

it('keeps new keys of many hosts at once, each a line, for its own eyes', async () => {
  const known = createKnownHosts(join(folder.path, 'new', 'known_hosts'), 'accept-new')
  const keys = Array.from({ length: 50 }, () => makeKey())
  await Promise.all(
    keys.map(async (key, i) => {
      const check = await known.checkFor(`h${i % 25}.example`, 2200 + (i % 25))
      expect(check.verify(key)).toBeUndefined()
      await check.accept(key).catch(() => undefined)
    }),
  )
  const file = join(folder.path, 'new', 'known_hosts')
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  // Two keys for each host: the second one has changed by then.
  expect(new Set(lines.map((line) => line.split(' ')[0])).size).toBe(25)
  expect(lines).toHaveLength(25)
  expect(statSync(file).mode & 0o777).toBe(0o600)
})

it('adds to a file without an end of line', async () => {
  const [one, two] = [makeKey(), makeKey()]
  writeFileSync(path, `a ${text(one)}`)
  await (await createKnownHosts(path, 'accept-new').checkFor('b', 22)).accept(two)
  expect(readFileSync(path, 'utf8')).toBe(`a ${text(one)}\nb ${text(two)}\n`)
})

it('refuses to go on without a file that is there and cannot be used', async () => {
  mkdirSync(path)
  await expect(createKnownHosts(path, 'accept-new').checkFor('h', 22)).rejects.toThrow(/is not a file/)
  chmodSync(path, 0o700)
})

it('keeps nothing when told not to check', async () => {
  const check = await createKnownHosts(path, 'off').checkFor('h', 22)
  expect(check.verify(makeKey())).toBeUndefined()
  await check.accept(makeKey())
  expect(() => statSync(path)).toThrow(/ENOENT/)
})
