import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ensureDebianPackage } from '../../../../tests/helpers/apt.ts'
import { makeFolder } from '../../../../tests/helpers/folders.ts'
import { fullOnly, rounds } from '../../../../tests/helpers/tiers.ts'
import { computedMs } from '../../../../tests/helpers/work.ts'
import { TextSink } from '../../../../tests/helpers/text-sink.ts'
import { createLog, type RootLog } from '../../../lib/log/log.ts'
import { hashPassword } from '../../../core/password-file.ts'
import type { Accounts, AuthBackend } from './backend.ts'
import { createDecoy } from './flat-file.ts'
import { createBackend } from './index.ts'
import { createPasswordVerifier, isUsableHash, type PasswordVerifier } from './password-hash.ts'

const HTPASSWD = '/usr/bin/htpasswd'
const OPENSSL = '/usr/bin/openssl'

const folder = makeFolder()
const logged = new TextSink()
let log: RootLog
const started: AuthBackend[] = []
let verifier: PasswordVerifier

beforeAll(async () => {
  await ensureDebianPackage('apache2-utils', HTPASSWD)
  await ensureDebianPackage('openssl', OPENSSL)
  log = createLog({ level: 'DEBUG', format: 'text', stream: logged })
  verifier = createPasswordVerifier()
}, 240_000)

afterAll(async () => {
  for (const backend of started) await backend.stop?.()
  await verifier.stop()
  await log.close()
  folder.remove()
})

let folders = 0
function newBasePath(): string {
  const path = join(folder.path, String((folders += 1)))
  mkdirSync(path)
  return path
}

async function create(kwargs: Record<string, unknown>, basePath = newBasePath()): Promise<AuthBackend> {
  const backend = await createBackend('flat_file', kwargs, { basePath, log })
  started.push(backend)
  return backend
}

/** The hash as the program prints it; the password goes over standard input, as it is. */
function htpasswd(flags: string[], password: string): string {
  const line = execFileSync(HTPASSWD, ['-n', '-i', ...flags, 'someone'], {
    input: password,
    encoding: 'utf8',
    stdio: 'pipe',
  })
  return line.trim().slice('someone:'.length)
}

function openssl(flag: string, password: string, more: string[] = []): string {
  const input = `${password}\n`
  return execFileSync(OPENSSL, ['passwd', flag, ...more, '-stdin'], { input, encoding: 'utf8' }).trim()
}

const forms: [name: string, prefix: string, make: (password: string) => string][] = [
  ['htpasswd -m', '$apr1$', (password) => htpasswd(['-m'], password)],
  ['htpasswd -s', '{SHA}', (password) => htpasswd(['-s'], password)],
  ['htpasswd -B', '$2y$05$', (password) => htpasswd(['-B'], password)],
  ['htpasswd -B -C 6', '$2y$06$', (password) => htpasswd(['-B', '-C', '6'], password)],
  ['htpasswd -B as $2b$', '$2b$', (password) => htpasswd(['-B'], password).replace('$2y$', '$2b$')],
  ['htpasswd -B as $2a$', '$2a$', (password) => htpasswd(['-B'], password).replace('$2y$', '$2a$')],
  ['htpasswd -2', '$5$', (password) => htpasswd(['-2'], password)],
  ['htpasswd -5', '$6$', (password) => htpasswd(['-5'], password)],
  ['htpasswd -2 -r 1234', '$5$rounds=1234$', (password) => htpasswd(['-2', '-r', '1234'], password)],
  ['htpasswd -5 -r 1234', '$6$rounds=1234$', (password) => htpasswd(['-5', '-r', '1234'], password)],
  ['openssl passwd -apr1', '$apr1$', (password) => openssl('-apr1', password)],
  ['openssl passwd -1', '$1$', (password) => openssl('-1', password)],
  ['openssl passwd -5', '$5$', (password) => openssl('-5', password)],
  ['openssl passwd -6', '$6$', (password) => openssl('-6', password)],
]

/** Each of these uses the algorithm of another form, which the daily run tries with every password. */
const variants = [
  'htpasswd -B -C 6',
  'htpasswd -B as $2b$',
  'htpasswd -B as $2a$',
  'htpasswd -2',
  'htpasswd -5',
  'openssl passwd -apr1',
  'openssl passwd -5',
  'openssl passwd -6',
]

const passwords = [
  'x',
  'secret',
  'a:b::c',
  'grüße:é€',
  '日本語のパスワード😀',
  ' blanks around ',
  '"quotes" $and \\ {SHA}',
  'exactly16bytes!!',
  'fifteen bytes ok',
  `${'long'.repeat(16)}$`,
  'ü'.repeat(36),
]

describe('hash forms of the real programs', () => {
  test.for(forms)('%s', async ([name, prefix, make]) => {
    const count = rounds({ daily: variants.includes(name) ? 2 : passwords.length, full: passwords.length })
    for (const password of passwords.slice(-count)) {
      const hash = make(password)
      expect(hash.slice(0, prefix.length)).toBe(prefix)
      // bcrypt itself reads no further than 72 bytes.
      const isCut = prefix.startsWith('$2') && Buffer.byteLength(password) >= 72
      const found = {
        password,
        hash,
        isUsable: isUsableHash(hash),
        right: await verifier.verify(hash, password),
        shorter: await verifier.verify(hash, password.slice(0, -1)),
        longer: await verifier.verify(hash, `${password}x`),
      }
      expect(found).toEqual({ password, hash, isUsable: true, right: true, shorter: false, longer: isCut })
    }
  })

  fullOnly(test)('openssl passwd -5 and -6 with lengths around the block sizes, as far as openssl reads', async () => {
    for (const length of [31, 32, 33, 63, 64, 65, 127, 128]) {
      const password = 'é'.repeat(length)
      for (const flag of ['-5', '-6']) {
        const hash = openssl(flag, password, ['-salt', 'rounds=1000$saltsalt'])
        expect({ hash, length, matches: await verifier.verify(hash, password) }).toEqual({
          hash,
          length,
          matches: true,
        })
      }
    }
  })

  test('argon2id, ours and in the order of the reference program', async () => {
    const hash = await hashPassword('grüße:é')
    expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,/)
    const reordered = hash.replace('m=19456,p=1,t=2', 'm=19456,t=2,p=1')
    for (const form of new Set([hash, reordered])) {
      expect(await verifier.verify(form, 'grüße:é')).toBe(true)
      expect(await verifier.verify(form, 'grüße:e')).toBe(false)
    }
  })

  test.for([
    ['', 'empty'],
    ['secret', 'plain text'],
    ['rqXexS6ZhobKA', 'DES crypt'],
    ['$2y$16$0123456789012345678901uKcJEaJ.CgMfcmxnIYJ6nBqSYsQtAGK', 'bcrypt that takes a minute'],
    ['$6$rounds=999999999$salt$' + 'a'.repeat(86), 'SHA-crypt that takes hours'],
    ['$5$salt$' + 'a'.repeat(86), 'SHA-256 with a digest of SHA-512'],
    [
      '$argon2id$v=19$m=4000000,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$b6q3KiiiAh4TY77YnFy6gsylSf2G1NJAQfC0J6atI3Q',
      'argon2 with 4 GB',
    ],
    ['$argon2i$v=19$m=4096,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$b6q3KiiiAh4TY77YnFy6gsylSf2G1NJAQfC0J6atI3Q', 'argon2i'],
    ['{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=x', 'something behind the digest'],
  ] as const)('not usable: %s (%s)', async ([hash]) => {
    expect(isUsableHash(hash)).toBe(false)
    expect(await verifier.verify(hash, 'secret')).toBe(false)
  })

  test('no password passes for another by what stands behind a NUL', async () => {
    for (const [, , make] of forms) expect(await verifier.verify(make('secret'), 'secret\0more')).toBe(false)
  })

  test('the event loop keeps turning while a slow hash is checked', async () => {
    const hash = htpasswd(['-B', '-C', '12'], 'secret')
    let turns = 0
    const timer = setInterval(() => (turns += 1), 1)
    const before = performance.now()
    const computedBefore = computedMs()
    expect(await verifier.verify(hash, 'secret')).toBe(true)
    clearInterval(timer)
    const computed = computedMs() - computedBefore
    expect(performance.now() - before).toBeGreaterThan(50)
    // A check on this thread would let the timer fire at the steps of 100 ms in between, at most.
    expect(turns).toBeGreaterThan(computed / 50)
  })
})

describe('the file', () => {
  test('comments, lines without colon, repeated users, blank lines, no newline at the end', async () => {
    const basePath = newBasePath()
    const [first, second] = [htpasswd(['-m'], 'first'), htpasswd(['-m'], 'second')]
    writeFileSync(
      join(basePath, 'users'),
      `# a comment\n#commented:${first}\nno colon here\n\nalice:${first}\r\nbob:${first}\nalice:${second}\nzoë:${first}`,
    )
    const backend = await create({ file_path: 'users' }, basePath)
    expect(await backend.authenticate('alice', 'second')).toBe(true)
    expect(await backend.authenticate('alice', 'first')).toBe(false)
    expect(await backend.authenticate('bob', 'first')).toBe(true)
    expect(await backend.authenticate('zoë', 'first')).toBe(true)
    expect(await backend.authenticate('#commented', 'first')).toBe(false)
    expect(await backend.authenticate('no colon here', '')).toBe(false)
    expect(await backend.authenticate('Alice', 'second')).toBe(false)
    expect(await backend.authenticate('__proto__', 'first')).toBe(false)
  })

  test('an edit by htpasswd counts from the next login, whatever the clock of the file says', async () => {
    const file = join(newBasePath(), 'users')
    const set = (user: string, password: string): Buffer =>
      execFileSync(HTPASSWD, ['-i', '-m', ...(user === 'a' ? ['-c'] : []), file, user], {
        input: password,
        stdio: 'pipe',
      })
    set('a', 'one')
    const backend = await create({ file_path: file })
    expect(await backend.authenticate('a', 'one')).toBe(true)
    for (let i = 0; i < rounds({ daily: 2, full: 20 }); i++) {
      set('b', `password ${i}`)
      expect(await backend.authenticate('b', `password ${i}`)).toBe(true)
      expect(await backend.authenticate('b', `password ${i - 1}`)).toBe(false)
    }
    execFileSync(HTPASSWD, ['-D', file, 'a'], { stdio: 'pipe' })
    expect(await backend.authenticate('a', 'one')).toBe(false)

    // Old enough to be kept, then changed without a change of size or of its own time.
    const old = new Date(Date.now() - 3_600_000)
    writeFileSync(file, `c:${htpasswd(['-s'], 'old')}\n`)
    utimesSync(file, old, old)
    expect(await backend.authenticate('c', 'old')).toBe(true)
    writeFileSync(file, `c:${htpasswd(['-s'], 'new')}\n`)
    utimesSync(file, old, old)
    expect(await backend.authenticate('c', 'new')).toBe(true)
    expect(await backend.authenticate('c', 'old')).toBe(false)
  })

  test('a user whose hash cannot be used is refused and named in the log, once', async () => {
    const basePath = newBasePath()
    writeFileSync(join(basePath, 'users'), 'legacy:rqXexS6ZhobKA\nplain:secret\n')
    logged.text = ''
    const backend = await create({ file_path: 'users' }, basePath)
    expect(await backend.authenticate('plain', 'secret')).toBe(false)
    expect(await backend.authenticate('legacy', 'secret')).toBe(false)
    expect(logged.text.match(/auth\.hash_unsupported.*legacy.*plain/g)).toHaveLength(1)
    expect(logged.text).not.toContain('rqXexS6ZhobKA')
  })

  test('missing or unreadable after the start: an error, not a refusal', async () => {
    const basePath = newBasePath()
    const file = join(basePath, 'users')
    writeFileSync(file, `alice:${htpasswd(['-m'], 'secret')}\n`)
    const backend = await create({ file_path: file }, basePath)
    expect(await backend.authenticate('alice', 'secret')).toBe(true)
    execFileSync('rm', [file])
    await expect(backend.authenticate('alice', 'secret')).rejects.toThrow(/ENOENT/)
    mkdirSync(file)
    await expect(backend.authenticate('alice', 'secret')).rejects.toThrow(/not a file/)
  })

  test('a stranger is checked against the hash of somebody, for the same name always of the same one', () => {
    const users = new Map(['alice', 'bob', 'carol'].map((user) => [user, `$hash of ${user}`]))
    const decoy = createDecoy()
    const strangers = Array.from({ length: 100 }, (_, i) => `stranger ${i}`)
    const hashes = strangers.map((stranger) => decoy(stranger, users))
    expect(new Set(hashes)).toEqual(new Set(users.values()))
    expect(strangers.map((stranger) => decoy(stranger, users))).toEqual(hashes)
    expect(decoy('anybody', new Map())).toBeUndefined()
  })
})

describe('the start', () => {
  test.for([
    [{ file_path: 'nowhere' }, /^auth\.backend_kwargs: file_path .*nowhere does not exist$/],
    [{ file_path: '.' }, /^auth\.backend_kwargs: file_path .* cannot be read \(it is not a file\)$/],
    [{ file_path: 'pipe' }, /^auth\.backend_kwargs: file_path .*pipe cannot be read \(it is not a file\)$/],
    [{ file_path: '' }, /^auth\.backend_kwargs: file_path must be a path/],
    [{ file_path: 7 }, /^auth\.backend_kwargs: file_path must be a path/],
    [{ file_path: null }, /^auth\.backend_kwargs: file_path must be a path/],
    [{ path: '/etc/htpasswd' }, /^auth\.backend_kwargs: flat_file has no argument "path"/],
  ] as const)('%j stops it', async ([kwargs, message]) => {
    const basePath = newBasePath()
    execFileSync('mkfifo', [join(basePath, 'pipe')])
    const error: unknown = await create(kwargs, basePath).catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(Error)
    const text = error instanceof Error ? error.message : ''
    expect(text).toMatch(message)
    expect(text).not.toContain('\n')
  })

  test('an unknown backend lists those there are', async () => {
    await expect(createBackend('keystone', {}, { basePath: folder.path, log })).rejects.toThrow(
      /^auth\.backend: no authentication backend is named "keystone"; available: flat_file, [a-z, ]+$/,
    )
  })

  test('the first one makes an administrator with a password of its own, which no log has', async () => {
    const basePath = newBasePath()
    logged.text = ''
    const backend = await create({}, basePath)
    const password = readFileSync(join(basePath, 'initial-admin-password'), 'utf8').trim()
    expect(password).toMatch(/^[\w-]{24}$/)
    const line = readFileSync(join(basePath, 'htpasswd'), 'utf8')
    expect(line).toMatch(/^admin:\$argon2id\$[^\n]+\n$/)
    for (const name of ['htpasswd', 'initial-admin-password']) {
      expect(statSync(join(basePath, name)).mode & 0o777).toBe(0o600)
    }
    expect(logged.text).toContain(join(basePath, 'initial-admin-password'))
    expect(logged.text).not.toContain(password)
    expect(await backend.authenticate('admin', password)).toBe(true)
    expect(await backend.authenticate('admin', `${password}x`)).toBe(false)

    logged.text = ''
    const again = await create({}, basePath)
    expect(readFileSync(join(basePath, 'htpasswd'), 'utf8')).toBe(line)
    expect(logged.text).toBe('')
    expect(await again.authenticate('admin', password)).toBe(true)

    const elsewhere = newBasePath()
    await create({}, elsewhere)
    expect(readFileSync(join(elsewhere, 'initial-admin-password'), 'utf8').trim()).not.toBe(password)
  })

  test('a start that ended between the two files is made good by the next', async () => {
    const basePath = newBasePath()
    writeFileSync(join(basePath, 'initial-admin-password'), 'of a start that failed\n')
    chmodSync(join(basePath, 'initial-admin-password'), 0o644)
    const backend = await create({}, basePath)
    const password = readFileSync(join(basePath, 'initial-admin-password'), 'utf8').trim()
    expect(statSync(join(basePath, 'initial-admin-password')).mode & 0o777).toBe(0o600)
    expect(await backend.authenticate('admin', password)).toBe(true)
  })

  test('an empty file of the operator is left alone', async () => {
    const basePath = newBasePath()
    appendFileSync(join(basePath, 'htpasswd'), '')
    const backend = await create({}, basePath)
    expect(readFileSync(join(basePath, 'htpasswd'), 'utf8')).toBe('')
    expect(await backend.authenticate('admin', 'admin')).toBe(false)
  })
})

describe('accounts', () => {
  const accountsOf = ({ accounts }: AuthBackend): Accounts => {
    if (accounts === undefined) throw new Error('flat_file keeps accounts')
    return accounts
  }

  test('are added, given another password and removed, each from the next login on', async () => {
    const basePath = newBasePath()
    const content = `# staff\nalice:${htpasswd(['-m'], 'secret')}\nbroken:rqXexS6ZhobKA\n`
    writeFileSync(join(basePath, 'users'), content)
    const backend = await create({ file_path: 'users' }, basePath)
    const accounts = accountsOf(backend)
    expect(await accounts.names()).toEqual(['alice', 'broken'])
    await accounts.setPassword('bob', 'one')
    expect(await backend.authenticate('bob', 'one')).toBe(true)
    await accounts.setPassword('bob', 'two')
    expect(await backend.authenticate('bob', 'one')).toBe(false)
    expect(await backend.authenticate('bob', 'two')).toBe(true)
    expect(await accounts.remove('bob')).toBe(true)
    expect(await accounts.remove('bob')).toBe(false)
    expect(await backend.authenticate('bob', 'two')).toBe(false)
    expect(await backend.authenticate('alice', 'secret')).toBe(true)
    expect(readFileSync(join(basePath, 'users'), 'utf8')).toBe(content)
  })

  test('of a file that has gone are not taken for none', async () => {
    const basePath = newBasePath()
    writeFileSync(join(basePath, 'users'), `alice:${htpasswd(['-m'], 'secret')}\n`)
    const accounts = accountsOf(await create({ file_path: 'users' }, basePath))
    execFileSync('rm', [join(basePath, 'users')])
    const failure = expect.objectContaining({
      code: 'STORAGE_FAILED',
      message: expect.stringMatching(/^The password file could not be read or written/),
      cause: expect.objectContaining({ code: 'ENOENT' }),
    })
    await expect(accounts.names()).rejects.toEqual(failure)
    await expect(accounts.setPassword('bob', 'x')).rejects.toEqual(failure)
    expect(existsSync(join(basePath, 'users'))).toBe(false)
  })
})

describe('the file with the first password', () => {
  const keptIn = (basePath: string): string => join(basePath, 'initial-admin-password')
  const setByHand = (basePath: string, password: string): void => {
    execFileSync(HTPASSWD, ['-i', '-B', join(basePath, 'htpasswd'), 'admin'], { input: password, stdio: 'pipe' })
  }

  async function install(): Promise<{ basePath: string; backend: AuthBackend; first: string }> {
    const basePath = newBasePath()
    const backend = await create({}, basePath)
    const first = readFileSync(keptIn(basePath), 'utf8').trim()
    logged.text = ''
    return { basePath, backend, first }
  }

  test('stays through logins, starts and changes of others', async () => {
    const { basePath, backend, first } = await install()
    await backend.authenticate('admin', first)
    await backend.authenticate('admin', 'wrong')
    await backend.accounts?.setPassword('bob', 'one')
    await backend.authenticate('bob', 'one')
    await backend.accounts?.remove('bob')
    await create({}, basePath)
    expect(readFileSync(keptIn(basePath), 'utf8')).toBe(`${first}\n`)
  })

  test.for<[string, (backend: AuthBackend, basePath: string) => Promise<unknown>]>([
    ['with the server', async (backend) => backend.accounts?.setPassword('admin', 'new')],
    [
      'with htpasswd, at the next login',
      async (backend, basePath) => {
        setByHand(basePath, 'new')
        expect(existsSync(keptIn(basePath))).toBe(true)
        await backend.authenticate('admin', 'new')
      },
    ],
    [
      'with htpasswd, at the next start',
      async (_, basePath) => {
        setByHand(basePath, 'new')
        await create({}, basePath)
      },
    ],
    ['and the user removed', async (backend) => backend.accounts?.remove('admin')],
  ])('goes when the password is changed %s', async ([, change]) => {
    const { basePath, backend, first } = await install()
    await change(backend, basePath)
    expect(existsSync(keptIn(basePath))).toBe(false)
    expect(logged.text.match(/auth\.initial_password_removed/g)).toHaveLength(1)
    expect(logged.text).not.toContain(first)
    expect(await backend.authenticate('admin', first)).toBe(false)
  })

  test('is none of a server with a file elsewhere', async () => {
    const { basePath, first } = await install()
    writeFileSync(join(basePath, 'users'), `admin:${htpasswd(['-m'], 'secret')}\n`)
    const backend = await create({ file_path: 'users' }, basePath)
    await backend.authenticate('admin', 'secret')
    expect(readFileSync(keptIn(basePath), 'utf8')).toBe(`${first}\n`)
  })
})
