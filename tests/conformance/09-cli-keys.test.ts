/** Contract 09, 9.3, and 05, 5.11: the datastore on the command line, against a real server. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { cell, header, missing, names, rows, jsonOf, runCli, type CliExit } from '../helpers/cli.ts'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { startAtTerminal } from '../helpers/pty.ts'
import { createTestApp } from '../helpers/app.ts'
import { executable, type TestApp } from '../helpers/server.ts'

interface Pair {
  name: string
  value: string
  scope: string
  secret: boolean
  encrypted: boolean
  user?: string
  expire_timestamp?: string
}

const folder = makeFolder()
const base = makeFolder()
let server: TestApp
let token: string

const env = (more: Record<string, string> = {}): Record<string, string> => ({
  HOME: folder.path,
  SVC_API_URL: `${server.urls.api}/v1`,
  SVC_AUTH_TOKEN: token,
  ...more,
})
const svc = (...args: string[]): Promise<CliExit> => runCli(['key', ...args], env())
const svcWith = (input: string, ...args: string[]): Promise<CliExit> => runCli(['key', ...args], env(), { input })

const json = <T = Pair>(...args: string[]): Promise<T> => jsonOf<T>(svc, args)

const listed = async (...args: string[]): Promise<string[]> =>
  (await json<Pair[]>('list', ...args)).map(({ name }) => name)

const { write } = folder

beforeAll(async () => {
  server = await createTestApp({
    basePath: base.path,
    settings: { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' },
  })
  token = (await signIn(server, 'admin', firstPassword(base.path)))['X-Auth-Token']
})
afterAll(async () => {
  await server.stop()
  base.remove()
  folder.remove()
})

/** What is there without the client, which takes its time to start. */
const call = <T>(method: string, path: string, body?: unknown) =>
  server.call<T>(method, `/v1/keys${path}`, body, { 'X-Auth-Token': token })

async function put(name: string, more: Partial<Pair> = {}): Promise<void> {
  const { status, text } = await call('PUT', `/${encodeURIComponent(name)}`, {
    name,
    value: `value of ${name}`,
    ...more,
  })
  if (status !== 200) throw new Error(text)
}

const all = async (): Promise<Pair[]> => (await call<Pair[]>('GET', '?scope=all&limit=-1')).body
const stored = async (): Promise<string[]> => (await all()).map(({ name }) => name)

async function removeAll(): Promise<void> {
  for (const { name, scope } of await all()) await call('DELETE', `/${encodeURIComponent(name)}?scope=${scope}`)
}

beforeEach(removeAll)

describe('09.3 key set and get', () => {
  it('09.3 a value is set, shown and set anew', async () => {
    const set = await svc('set', 'web.url', 'https://example.com')
    expect([set.code, set.stderr]).toEqual([0, ''])
    expect(names(set.stdout).slice(0, 6)).toEqual(['Property', 'name', 'value', 'secret', 'encrypted', 'scope'])
    expect(set.stdout).toMatch(cell('https://example.com'))
    expect((await svc('get', 'web.url')).stdout).toBe(set.stdout)
    await svc('set', 'web.url', 'another value')
    expect(await json('get', 'web.url')).toMatchObject({
      name: 'web.url',
      value: 'another value',
      scope: 'svckv.system',
      secret: false,
      encrypted: false,
    })
    expect(await json('get', 'web.url', '-a', 'value')).toEqual({ value: 'another value' })
  })

  it.each(['', 'a/b', '..', '%2f', 'ä€😀 {{ 1 }}', 'a?b#c'])('09.3 a name can be any text: %j', async (name) => {
    const isName = name !== ''
    const { code, stdout } = await svc('set', name, `value of ${name}`)
    expect([stdout.slice(0, 200), code]).toEqual([expect.any(String), isName ? 0 : 2])
    expect((await svc('get', name)).code).toBe(isName ? 0 : 2)
    expect(await stored()).toEqual(isName ? [name] : [])
    expect((await svc('delete', name)).code).toBe(isName ? 0 : 2)
  })

  it('09.3 a value with blanks may begin with a dash, as those of key files do', async () => {
    const value = '-----BEGIN KEY-----\nb3Bl=\n-----END KEY-----'
    for (const [text, args] of [
      [value, [value, '-e']],
      [value, ['-l', '100', value, '-e']],
      [value, ['-e', '--', value]],
      ['- item', ['-e', '- item']],
    ] as const) {
      expect((await svc('set', 'dashed', ...args)).code).toBe(0)
      expect(await json('get', 'dashed', '-d')).toMatchObject({ value: text, secret: true })
    }
    const unknown = await svc('set', 'dashed', '--bogus', value)
    expect(unknown).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/^error: unknown option '--bogus'\n/),
    })
  })

  it('09.3 -e: kept encrypted, and shown with -d alone', async () => {
    const { code, stdout } = await svc('set', '-e', 'password', 'a plain secret')
    expect([code, stdout]).toEqual([0, expect.not.stringContaining('a plain secret')])
    const stored = await json('get', 'password')
    expect(stored).toMatchObject({ secret: true, encrypted: true, value: expect.stringMatching(/^[0-9A-F]{32,}$/) })
    expect(await json('get', 'password', '-d')).toMatchObject({
      value: 'a plain secret',
      secret: true,
      encrypted: false,
    })
    expect((await svc('get', '--decrypt', 'password')).stdout).toMatch(cell('a plain secret'))
    expect(readFileSync(join(base.path, 'svc.db')).includes('a plain secret')).toBe(false)
  })

  it('09.3 --encrypted: a value that is encrypted already', async () => {
    await put('password', { value: 'first', secret: true })
    const { value } = await json('get', 'password')
    await put('password', { value: 'second', secret: true })
    const { code } = await svc('set', '--encrypted', 'password', value)
    expect(code).toBe(0)
    expect(await json('get', 'password', '-d')).toMatchObject({ value: 'first' })
    const other = value.replace(/.$/, (digit: string) => (digit === '0' ? '1' : '0'))
    const damaged = await svc('set', '--encrypted', 'password', other)
    expect([damaged.code, damaged.stdout]).toEqual([1, expect.stringMatching(/^ERROR: 400 Client Error/)])
  })

  it('09.3 -l: it disappears', async () => {
    expect((await svc('set', 'brief', 'x', '-l', '3600')).stdout).toMatch(
      /\| expire_timestamp +\| \w{3}, \d\d \w{3} .* UTC/,
    )
    const { expire_timestamp: expiry = '' } = await json('get', 'brief')
    const seconds = (Date.parse(expiry) - Date.now()) / 1000
    expect(seconds).toBeGreaterThan(3500)
    expect(seconds).toBeLessThanOrEqual(3601)
    expect(await json('set', 'brief', 'x')).not.toHaveProperty('expire_timestamp')
    for (const ttl of ['0', '-1', 'x', '1.5']) expect((await svc('set', 'brief', 'x', '-l', ttl)).code).toBe(2)
  })

  it('09.3 -s and -u: keys of users are apart', async () => {
    await put('both', { value: 'of the system' })
    await svc('set', 'both', 'of mine', '-s', 'user')
    expect(await json('get', 'both')).toMatchObject({ value: 'of the system', scope: 'svckv.system' })
    expect(await json('get', 'both', '-s', 'user')).toMatchObject({
      value: 'of mine',
      scope: 'svckv.user',
      user: 'admin',
    })
    expect((await svc('set', 'both', 'of hers', '-u', 'alice')).code).toBe(0)
    expect(await json('get', 'both', '-u', 'alice')).toMatchObject({ value: 'of hers', user: 'alice' })
    expect((await svc('list')).stdout.match(/\| both /g)).toHaveLength(2)
    expect((await svc('delete', 'both', '-u', 'alice')).code).toBe(0)
    expect(await svc('get', 'both', '-u', 'alice')).toEqual(missing('Key Value Pair', 'both'))
    expect(await json('get', 'both', '-s', 'user')).toMatchObject({ value: 'of mine' })
    const wrong = await svc('get', 'both', '-s', 'nowhere')
    expect([wrong.code, wrong.stdout]).toEqual([
      1,
      expect.stringContaining('Scope nowhere is not in allowed scopes list'),
    ])
  })

  it('09.3 a value that is left out is read from standard input', async () => {
    const { code, stderr } = await svcWith('typed value\nmore', 'set', '-e', 'password')
    expect([code, stderr]).toEqual([0, ''])
    expect(await json('get', 'password', '-d')).toMatchObject({ value: 'typed value' })
    const none = await svc('set', 'password')
    expect([none.code, none.stdout]).toEqual([1, expect.stringMatching(/^ERROR: Value of password: standard input/)])
    expect((await svc('set', 'empty', '')).code).toBe(0)
    expect(await json('get', 'empty')).toMatchObject({ value: '' })
  })

  it('09.3 at a terminal it is asked for, and not shown', async () => {
    const terminal = await startAtTerminal([process.execPath, executable, 'key', 'set', '-e', 'typed'], env())
    await terminal.typeAt('Value of typed: ', 'hidden words\r')
    expect([await terminal.exit, terminal.screen()]).toEqual([0, expect.not.stringContaining('hidden words')])
    expect(await json('get', 'typed', '-d')).toMatchObject({ value: 'hidden words' })
  })

  it('09.2 what is not found: 2, and the others are shown', async () => {
    await put('there')
    expect(await svc('get', 'absent')).toEqual(missing('Key Value Pair', 'absent'))
    const both = await svc('get', 'absent', 'there')
    expect([both.code, both.stdout]).toEqual([
      2,
      `${missing('Key Value Pair', 'absent').stdout}${(await svc('get', 'there')).stdout}`,
    ])
    expect((await svc('get')).code).toBe(2)
    expect((await svc('set')).code).toBe(2)
  })

  it('--debug shows no value', async () => {
    const secret = 'never to be shown'
    for (const args of [
      ['set', '-e', 'password', secret],
      ['get', 'password', '-d', '-a', 'name'],
      ['list', '-d', '-a', 'name'],
    ]) {
      const { code, stdout, stderr } = await svc(...args, '--debug')
      expect([code, stderr]).toEqual([0, expect.stringContaining('curl')])
      expect(`${stdout}${stderr}`).not.toContain(secret)
    }
  })
})

describe('09.3 key list', () => {
  beforeEach(async () => {
    for (const name of ['web.b', 'other']) await put(name)
    await put('web.a', { secret: true })
    await put('mine', { scope: 'user' })
  })

  it('09.3 the columns, and both scopes unless one is asked for', async () => {
    const { code, stdout, stderr } = await svc('list')
    expect([code, stderr]).toEqual([0, ''])
    expect(header(stdout)).toEqual(['name', 'value', 'secret', 'encrypted', 'scope', 'user', 'expire_timestamp'])
    expect(rows(stdout).map(([name, , , , scope, user]) => [name, scope, user])).toEqual([
      ['other', 'svckv.system', ''],
      ['web.a', 'svckv.system', ''],
      ['web.b', 'svckv.system', ''],
      ['mine', 'svckv.user', 'admin'],
    ])
    expect(await listed('-s', 'system')).toEqual(['other', 'web.a', 'web.b'])
    expect(await listed('--scope', 'user')).toEqual(['mine'])
    expect(await listed('-s', 'svckv.system', '--prefix', 'web.')).toEqual(['web.a', 'web.b'])
    expect(await listed('-u', 'alice')).toEqual([])
    expect((await svc('list', '--prefix', 'nothing')).stdout).toBe('No matching items found\n')
  })

  it('09.3 -d, -n, -a', async () => {
    expect((await svc('list')).stdout).not.toContain('value of web.a')
    expect((await svc('list', '-d')).stdout).toMatch(cell('value of web.a'))
    const two = await svc('list', '-n', '2', '-a', 'name')
    expect(rows(two.stdout)).toEqual([['other'], ['web.a']])
    expect(two.stderr).toContain('Note: Only first 2 Key Value Pairs are displayed.')
  })

  it('09.2 the beginning of a list is not taken for the whole, where nobody has said how much is wanted', async () => {
    for (let count = 0; count < 50; count += 1) await put(`many.${count}`)
    const note = expect.stringContaining('Note: Only first 50 Key Value Pairs are displayed.')
    expect((await svc('list', '-a', 'name')).stderr).toEqual(note)
    expect((await svc('list', '-j')).stderr).toEqual(note)
    expect((await svc('list', '-j', '-n', '50')).stderr).toBe('')
    expect((await svc('list', '-y', '--prefix', 'many.')).stderr).toBe('')
  })
})

describe('09.3 key delete', () => {
  it('09.3 delete', async () => {
    await put('a')
    await put('b')
    expect(await svc('delete', 'a', 'b')).toEqual({
      code: 0,
      stdout: 'Key Value Pair "a" is deleted.\nKey Value Pair "b" is deleted.\n',
      stderr: '',
    })
    expect(await stored()).toEqual([])
    expect(await svc('delete', 'a')).toEqual(missing('Key Value Pair', 'a'))
  })

  it('09.3 delete_by_prefix: those of one scope, and no others', async () => {
    for (const name of ['web.a', 'web.b', 'web', 'WEB.c', 'web%', 'other']) await put(name)
    await put('web.mine', { scope: 'user' })
    const { code, stdout } = await svc('delete_by_prefix', '-p', 'web.')
    expect([code, stdout]).toEqual([0, 'Key Value Pair "web.a" is deleted.\nKey Value Pair "web.b" is deleted.\n'])
    expect(await stored()).toEqual(['WEB.c', 'other', 'web', 'web%', 'web.mine'])
    expect(await json('delete_by_prefix', '--prefix', 'web%')).toEqual(['web%'])
    expect(await json('delete_by_prefix', '-p', 'web', '-s', 'user')).toEqual(['web.mine'])
    expect((await svc('delete_by_prefix', '-p', 'nothing')).stdout).toBe('No matching items found\n')
    for (const args of [[], ['-p', '']]) expect((await svc('delete_by_prefix', ...args)).code).toBe(2)
    expect(await stored()).toEqual(['WEB.c', 'other', 'web'])
  })

  it('09.3 delete_by_prefix: of all scopes, and of more than one page', async () => {
    const entries = Array.from({ length: 130 }, (_, n) => ({ name: `many.${n}`, value: 'x' }))
    await svc('load', write('many.json', entries))
    await put('many.mine', { scope: 'user' })
    expect(await json<string[]>('delete_by_prefix', '-p', 'many.', '-s', 'all')).toHaveLength(131)
    expect(await stored()).toEqual([])
  })
})

describe('09.3 key load', () => {
  it('09.3 what list has printed is taken back', async () => {
    await put('plain')
    await put('password', { value: 'secret words', secret: true })
    await svc('set', 'mine', 'own', '-s', 'user', '-l', '3600')
    const before = await all()
    for (const form of ['-j', '-y']) {
      const { stdout } = await svc('list', '--scope=all', '-n', '-1', form)
      const file = write(form === '-j' ? 'keys.json' : 'keys.yaml', stdout)
      await removeAll()
      const loaded = await svc('load', file)
      expect([loaded.stderr, loaded.code]).toEqual(['', 0])
      expect(header(loaded.stdout)).toEqual([
        'name',
        'value',
        'secret',
        'encrypted',
        'scope',
        'user',
        'expire_timestamp',
      ])
      expect(rows(loaded.stdout)).toHaveLength(3)
      const comparable = ({ name, value, scope, secret, encrypted, user }: Pair) => ({
        name,
        value,
        scope,
        secret,
        encrypted,
        user,
      })
      expect((await all()).map(comparable)).toEqual(before.map(comparable))
    }
    expect(await json('get', 'password', '-d')).toMatchObject({ value: 'secret words' })
    expect(await json('get', 'mine', '-s', 'user')).toHaveProperty('expire_timestamp')
  })

  it('09.3 -c: what is no text becomes JSON; without it nothing is sent', async () => {
    const file = write('mixed.yaml', '- name: list\n  value: [1, two]\n- name: text\n  value: three\n')
    const refused = await svc('load', file)
    expect([refused.code, refused.stdout]).toEqual([2, expect.stringContaining('entry 1: value is not text')])
    expect(await stored()).toEqual([])
    expect((await svc('load', '-c', file)).code).toBe(0)
    expect(await json('get', 'list')).toMatchObject({ value: '[1,"two"]' })
  })

  it('09.3 an entry that the server refuses ends it, and is named', async () => {
    const file = write('refused.json', [
      { name: 'first', value: 'x' },
      { name: 'second', value: 'x', scope: 'nowhere' },
      { name: 'third', value: 'x' },
    ])
    const { code, stdout } = await svc('load', file)
    expect([code, stdout]).toEqual([
      2,
      expect.stringContaining('entry 2 of 3 failed; it and later entries were not loaded'),
    ])
    expect(stdout).toMatch(cell('first'))
    expect(await stored()).toEqual(['first'])
  })

  it('09.3 entries that have expired are left out', async () => {
    const past = '2020-01-01T00:00:00.000000Z'
    const file = write('old.json', [
      { name: 'old', value: 'x', expire_timestamp: past },
      { name: 'new', value: 'x' },
    ])
    const { code, stderr } = await svc('load', file)
    expect([code, stderr]).toEqual([0, 'Note: Skipped 1 expired entry.\n'])
    expect(await stored()).toEqual(['new'])
  })

  it.each(['/nowhere/keys.json', '/etc/passwd'])('09.1 %s: 2', async (file) => {
    expect((await svc('load', file)).code).toBe(2)
  })
})
