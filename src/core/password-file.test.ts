import { execFile, execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ensureDebianPackage } from '../../tests/helpers/apt.ts'
import { makeFolder } from '../../tests/helpers/folders.ts'
import { createPasswordVerifier, type PasswordVerifier } from '../modules/auth/backends/password-hash.ts'
import { MAX_FILE_BYTES, parsePasswordLine, removeUser, setPassword, userNames } from './password-file.ts'
import { fullOnly } from '../../tests/helpers/tiers.ts'

const HTPASSWD = '/usr/bin/htpasswd'
const folder = makeFolder()
let verifier: PasswordVerifier
let files = 0

beforeAll(async () => {
  await ensureDebianPackage('apache2-utils', HTPASSWD)
  verifier = createPasswordVerifier()
}, 240_000)

afterAll(async () => {
  await verifier.stop()
  folder.remove()
})

/** In a folder of its own. */
function newFile(content?: string | Buffer): string {
  const own = join(folder.path, String((files += 1)))
  mkdirSync(own)
  const file = join(own, 'htpasswd')
  if (content !== undefined) writeFileSync(file, content, { mode: 0o600 })
  return file
}

function htpasswd(args: string[], password: string): void {
  execFileSync(HTPASSWD, ['-i', ...args], { input: password, stdio: 'pipe' })
}

const hashesOf = (file: string, user: string): string[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => parsePasswordLine(line) ?? [])
    .flatMap((line) => (line.user === user ? [line.hash] : []))

async function verify(file: string, user: string, password: string): Promise<boolean> {
  return verifier.verify(hashesOf(file, user).at(-1) ?? '', password)
}

const others = Buffer.concat([
  Buffer.from('# staff, do not sort\n\n  indented:$apr1$abcdefgh$0000000000000000000000\nno colon here\r\n'),
  Buffer.from([0x6c, 0xe9, 0x6f, 0x6e, 0x3a, 0x78, 0x0a]),
  Buffer.from('# bob:commented out\nanna:{SHA}0000000000000000000000000000=\n'),
])

describe('setting a password', () => {
  test('makes the file, for its owner only', async () => {
    const file = newFile()
    await setPassword(file, 'bob', 'grüße:é')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).toMatch(/^bob:\$argon2id\$v=19\$m=19456,p=1,t=2\$[^\n]+\n$/)
    expect(await verify(file, 'bob', 'grüße:é')).toBe(true)
    expect(await verify(file, 'bob', 'grüße:')).toBe(false)
    expect(readdirSync(join(file, '..'))).toEqual(['htpasswd'])
  })

  test('adds a line and leaves all others as they are, byte by byte', async () => {
    const file = newFile(others)
    await setPassword(file, 'bob', 'secret')
    const content = readFileSync(file)
    expect(content.subarray(0, others.length).equals(others)).toBe(true)
    expect(content.subarray(others.length).toString()).toMatch(/^bob:\$argon2id\$[^\n]+\n$/)
    expect(await userNames(file)).toEqual(['indented', 'l\ufffdon', 'anna', 'bob'])
  })

  test('ends a last line that has no line break', async () => {
    const file = newFile('anna:x')
    await setPassword(file, 'bob', 'secret')
    expect(readFileSync(file, 'utf8')).toMatch(/^anna:x\nbob:\$argon2id\$[^\n]+\n$/)
  })

  test('replaces every line of the user by one in the place of the first', async () => {
    const file = newFile('# top\nbob:first\r\nanna:x\n bob:second\nbobby:y\nbob:third')
    await setPassword(file, 'bob', 'secret')
    expect(readFileSync(file, 'utf8')).toMatch(/^# top\nbob:\$argon2id\$[^\r\n]+\r\nanna:x\nbobby:y$/)
    expect(await verify(file, 'bob', 'secret')).toBe(true)
  })

  test('leaves a file that htpasswd goes on with', async () => {
    const file = newFile()
    htpasswd(['-c', '-m', file, 'anna'], 'one')
    await setPassword(file, 'bob', 'two')
    htpasswd(['-B', file, 'carol'], 'three')
    htpasswd(['-v', file, 'anna'], 'one')
    htpasswd(['-v', file, 'carol'], 'three')
    expect(() => htpasswd(['-v', file, 'anna'], 'wrong')).toThrow('Command failed')
    for (const [user, password] of Object.entries({ anna: 'one', bob: 'two', carol: 'three' })) {
      expect(await verify(file, user, password)).toBe(true)
    }
    htpasswd(['-5', file, 'bob'], 'four')
    expect(await verify(file, 'bob', 'four')).toBe(true)
    execFileSync(HTPASSWD, ['-D', file, 'bob'], { stdio: 'pipe' })
    expect(await userNames(file)).toEqual(['anna', 'carol'])
  })

  test('keeps mode and owner', async () => {
    const file = newFile('anna:x\n')
    chmodSync(file, 0o640)
    if (process.getuid?.() === 0) chownSync(file, 12_345, 23_456)
    const before = statSync(file)
    await setPassword(file, 'bob', 'secret')
    await removeUser(file, 'anna')
    const { mode, uid, gid } = statSync(file)
    expect({ mode, uid, gid }).toEqual({ mode: before.mode, uid: before.uid, gid: before.gid })
  })

  test('writes through links, also to a file that does not exist yet', async () => {
    const file = newFile('anna:x\n')
    const link = `${file}.link`
    symlinkSync('htpasswd', link)
    const dangling = `${file}.dangling`
    symlinkSync('../new', dangling)
    await setPassword(link, 'bob', 'secret')
    await setPassword(dangling, 'carol', 'secret')
    expect(readlinkSync(link)).toBe('htpasswd')
    expect(await userNames(file)).toEqual(['anna', 'bob'])
    expect(readlinkSync(dangling)).toBe('../new')
    expect(await userNames(join(folder.path, 'new'))).toEqual(['carol'])
  })

  test.each([
    ['', 'secret', 'The user name must not be empty.'],
    ['a:b', 'secret', 'The user name must not contain a colon.'],
    ['a\nroot', 'secret', 'The user name must not contain control characters.'],
    ['a\0', 'secret', 'The user name must not contain control characters.'],
    ['\ud800', 'secret', 'The user name must not contain control characters.'],
    ['#bob', 'secret', 'The user name must not start with "#".'],
    [' bob', 'secret', 'The user name must not start or end with a blank.'],
    ['x'.repeat(257), 'secret', 'The user name must have at most 256 characters.'],
    ['bob', '', 'The password must not be empty.'],
    ['bob', 'a\0b', 'The password must be text without NUL characters.'],
    ['bob', 'é'.repeat(513), 'The password must have at most 1024 bytes.'],
  ])('refuses %j with %j', async (user, password, message) => {
    const file = newFile('anna:x\n')
    await expect(setPassword(file, user, password)).rejects.toThrow(message)
    expect(readFileSync(file, 'utf8')).toBe('anna:x\n')
  })

  test('the longest name and password there can be are taken', async () => {
    const file = newFile()
    const [user, password] = ['ü'.repeat(256), 'é'.repeat(512)]
    await setPassword(file, user, password)
    expect(await verify(file, user, password)).toBe(true)
  })
})

describe('removing a user', () => {
  test('takes out every line of it and no other', async () => {
    const file = newFile(Buffer.concat([others, Buffer.from('bob:1\nbobby:2\nbob:3\n')]))
    expect(await removeUser(file, 'bob')).toBe(true)
    expect(readFileSync(file).equals(Buffer.concat([others, Buffer.from('bobby:2\n')]))).toBe(true)
    expect(await removeUser(file, 'bob')).toBe(false)
  })

  test('changes nothing for a user who is not there, nor makes a file', async () => {
    const file = newFile()
    expect(await removeUser(file, 'bob')).toBe(false)
    expect(await userNames(file)).toEqual([])
    expect(readdirSync(join(file, '..'))).toEqual([])
  })
})

describe('several writers', () => {
  test('in one process lose nothing', async () => {
    const file = newFile(others)
    const names = Array.from({ length: 6 }, (_, i) => `user${i}`)
    await Promise.all([...names.map((name) => setPassword(file, name, `of ${name}`)), removeUser(file, 'anna')])
    expect((await userNames(file)).toSorted()).toEqual(['indented', 'l\ufffdon', ...names].toSorted())
    for (const name of names) expect(await verify(file, name, `of ${name}`)).toBe(true)
  })

  fullOnly(test)(
    'in processes of their own lose nothing',
    async () => {
      const file = newFile('anna:x\n')
      const fixture = join(import.meta.dirname, '..', '..', 'tests', 'fixtures', 'sets-passwords.ts')
      const run = promisify(execFile)
      await Promise.all(['a', 'b', 'c'].map((prefix) => run(process.execPath, [fixture, file, prefix, '3'])))
      const expected = ['a', 'b', 'c'].flatMap((prefix) => Array.from({ length: 3 }, (_, i) => `${prefix}${i}`))
      expect((await userNames(file)).toSorted()).toEqual(['anna', ...expected].toSorted())
      expect(await verify(file, 'b2', 'secret of b2')).toBe(true)
      expect(readdirSync(join(file, '..'))).toEqual(['htpasswd'])
    },
    240_000,
  )

  fullOnly(test)('one that died while it wrote holds up the others for a while only', async () => {
    const file = newFile('anna:x\n')
    writeFileSync(join(file, '..', '.htpasswd.lock'), 'somebody')
    await Promise.all([setPassword(file, 'bob', 'secret'), removeUser(file, 'anna')])
    expect(await userNames(file)).toEqual(['bob'])
    expect(readdirSync(join(file, '..'))).toEqual(['htpasswd'])
  })
})

describe('what cannot be done is said in one line, and leaves the file alone', () => {
  test('no folder', async () => {
    const file = join(folder.path, 'missing', 'htpasswd')
    await expect(setPassword(file, 'bob', 'x')).rejects.toThrow(`${file} cannot be changed (there is no such folder)`)
  })

  test('a folder in its place, and a named pipe', async () => {
    const file = newFile()
    mkdirSync(file)
    await expect(setPassword(file, 'bob', 'x')).rejects.toThrow(`${file} cannot be read (it is not a file)`)
    const pipe = newFile()
    execFileSync('mkfifo', [pipe])
    await expect(userNames(pipe)).rejects.toThrow(`${pipe} cannot be read (it is not a file)`)
  })

  test('a file beyond all bounds', async () => {
    const file = newFile('anna:x\n')
    truncateSync(file, MAX_FILE_BYTES)
    await expect(setPassword(file, 'bob', 'x')).rejects.toThrow(
      `${file} cannot be changed (it would be larger than ${MAX_FILE_BYTES} bytes)`,
    )
    truncateSync(file, MAX_FILE_BYTES + 1)
    await expect(userNames(file)).rejects.toThrow(`cannot be read (it is larger than ${MAX_FILE_BYTES} bytes)`)
  })

  test('links that lead round in a circle', async () => {
    const file = newFile()
    symlinkSync('htpasswd', file)
    await expect(setPassword(file, 'bob', 'x')).rejects.toThrow('too many levels of symbolic links')
  })
})
