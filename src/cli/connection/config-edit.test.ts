import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { makeFolder } from '../../../tests/helpers/folders.ts'
import { changeConfigFile, changeOptions } from './config-edit.ts'
import { CliFailure } from '../failures.ts'

const temporary = makeFolder()
const folder = temporary.path
afterAll(() => temporary.remove())

const login = { username: 'bob', password: undefined }

describe('options of a file', () => {
  test.each<[string, string, Record<string, string | undefined>, string]>([
    ['an empty file', '', login, '[credentials]\nusername = bob\n'],
    [
      'no such section',
      '# mine\n[api]\nurl = http://x\n',
      login,
      '# mine\n[api]\nurl = http://x\n\n[credentials]\nusername = bob\n',
    ],
    [
      'no line end at the end',
      '[api]\nurl = http://x',
      login,
      '[api]\nurl = http://x\n\n[credentials]\nusername = bob\n',
    ],
    ['a section alone', '[credentials]', login, '[credentials]\nusername = bob\n'],
    [
      'another value',
      '; top\n[credentials]\n# who\nUsername:alice\napi_key = k ; no comment\n[cli]\ndebug=False\n',
      login,
      '; top\n[credentials]\n# who\nUsername:bob\napi_key = k ; no comment\n[cli]\ndebug=False\n',
    ],
    [
      'a password to remove',
      '[credentials]\npassword = old\nusername = alice\n',
      login,
      '[credentials]\nusername = bob\n',
    ],
    [
      'a value of several lines',
      '[credentials]\npassword = old\n   more\n# kept\n\n   still\nusername = a\n',
      login,
      '[credentials]\n# kept\n\nusername = bob\n',
    ],
    [
      'indented options',
      '[credentials]\n\n  # x\n  password = old\n  api_key = k\n',
      login,
      '[credentials]\n  username = bob\n\n  # x\n  api_key = k\n',
    ],
    [
      'line ends of DOS',
      '[cli]\r\ndebug = True\r\n[credentials]\r\n',
      login,
      '[cli]\r\ndebug = True\r\n[credentials]\r\nusername = bob\r\n',
    ],
    ['a byte order mark', '\uFEFF[credentials]\nusername = a\n', login, '\uFEFF[credentials]\nusername = bob\n'],
    [
      'a section in two parts',
      '[credentials]\napi_key = k\n[cli]\n[credentials]\npassword = p\n',
      { password: 'q' },
      '[credentials]\napi_key = k\n[cli]\n[credentials]\npassword = q\n',
    ],
    [
      'characters that mean something elsewhere',
      '[credentials]\n',
      { password: '#;=:[%(x)s] "a" ü' },
      '[credentials]\npassword = #;=:[%(x)s] "a" ü\n',
    ],
    ['what is so already', '[credentials]\nusername=bob\n', login, '[credentials]\nusername=bob\n'],
  ])('%s', (_what, before, changes, after) => {
    expect(changeOptions(before, 'credentials', changes)).toBe(after)
  })

  test.each([' x', 'x ', 'a\nb', 'a\n[api]\nurl = http://evil', 'a\u0000b', 'a\rb', 'a\u001bb'])(
    'the value %j, which a file cannot hold, is refused',
    (password) => {
      expect(() => changeOptions('[api]\nurl = http://x\n', 'credentials', { password })).toThrow(CliFailure)
    },
  )

  test('a value that only looks like a section header is not taken for one', () => {
    const before = '[cli]\ntimezone =\n [credentials]\n'
    expect(changeOptions(before, 'credentials', login)).toBe(`${before}\n[credentials]\nusername = bob\n`)
  })
})

describe('a configuration file', () => {
  const file = (path: string, isOurs = true) => ({ path, isExplicit: true, isOurs })

  test('a new one is of the owner alone, in a folder of the owner alone', async () => {
    const path = join(folder, 'new', 'config')
    await changeConfigFile(file(path), folder, 'credentials', { username: 'bob', password: 'secret' })
    expect(readFileSync(path, 'utf8')).toBe('[credentials]\nusername = bob\npassword = secret\n')
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(statSync(join(folder, 'new')).mode & 0o777).toBe(0o700)
  })

  test('an old one keeps its mode, and a link stays a link', async () => {
    const target = join(folder, 'target')
    const link = join(folder, 'link')
    writeFileSync(target, '[cli]\ndebug = False\n')
    chmodSync(target, 0o640)
    symlinkSync(target, link)
    await changeConfigFile(file(link), folder, 'credentials', login)
    expect(lstatSync(link).isSymbolicLink()).toBe(true)
    expect(readFileSync(target, 'utf8')).toBe('[cli]\ndebug = False\n\n[credentials]\nusername = bob\n')
    expect(statSync(target).mode & 0o777).toBe(0o640)
    expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([])
  })

  test('a link to a file that is not there yet makes that one, and stays a link', async () => {
    const links = join(folder, 'links')
    mkdirSync(links)
    symlinkSync('../dotfiles/svc', join(links, 'to-file'))
    symlinkSync('to-file', join(links, 'to-link'))
    await changeConfigFile(file(join(links, 'to-link')), folder, 'credentials', login)
    expect(lstatSync(join(links, 'to-link')).isSymbolicLink()).toBe(true)
    expect(lstatSync(join(links, 'to-file')).isSymbolicLink()).toBe(true)
    expect(readFileSync(join(folder, 'dotfiles', 'svc'), 'utf8')).toBe('[credentials]\nusername = bob\n')
  })

  test("the client's own folder is closed, another one is left as it is", async () => {
    const home = join(folder, 'home')
    mkdirSync(join(home, '.svc'), { recursive: true })
    mkdirSync(join(home, 'other'))
    chmodSync(join(home, '.svc'), 0o755)
    chmodSync(join(home, 'other'), 0o755)
    await changeConfigFile(file(join(home, '.svc', 'config')), join(home, '.svc'), 'credentials', login)
    await changeConfigFile(file(join(home, 'other', 'config')), join(home, '.svc'), 'credentials', login)
    expect(statSync(join(home, '.svc')).mode & 0o777).toBe(0o700)
    expect(statSync(join(home, 'other')).mode & 0o777).toBe(0o755)
  })

  test('what the server may read as its own is left alone', async () => {
    const path = join(folder, 'svc.conf')
    const before = '[auth]\nenable = True\n'
    writeFileSync(path, before)
    await expect(changeConfigFile(file(path, false), folder, 'credentials', login)).rejects.toThrow(
      /not only for the client[^]*\[auth\] enable/,
    )
    expect(readFileSync(path, 'utf8')).toBe(before)
  })

  test('a refusal of the file system says which file', async () => {
    writeFileSync(join(folder, 'plain'), '')
    const path = join(folder, 'plain', 'config')
    await expect(changeConfigFile(file(path), folder, 'credentials', login)).rejects.toThrow(
      `Cannot write the configuration file ${path}: `,
    )
  })
})

test("nothing but a file is replaced: /dev/null, say, is everybody's", async () => {
  const path = join(folder, 'pipe')
  execFileSync('mkfifo', [path])
  const change = changeConfigFile({ path, isExplicit: true, isOurs: true }, folder, 'credentials', login)
  await expect(change).rejects.toThrow('is not a regular file')
  expect(lstatSync(path).isFIFO()).toBe(true)
})
