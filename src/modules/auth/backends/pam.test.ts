import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createAccount, type Account } from '../../../../tests/helpers/accounts.ts'
import { makeFolder } from '../../../../tests/helpers/folders.ts'
import { markedProcesses } from '../../../../tests/helpers/marked-processes.ts'
import {
  buildPamModule,
  createBarrier,
  createPamService,
  ensurePam,
  throwawayName,
  type PamService,
} from '../../../../tests/helpers/pam.ts'
import { countListening } from '../../../../tests/helpers/resources.ts'
import { TextSink } from '../../../../tests/helpers/text-sink.ts'
import { fullOnly, rounds, variants } from '../../../../tests/helpers/tiers.ts'
import { waitFor } from '../../../../tests/helpers/wait.ts'
import { locateCode } from '../../../core/bundle.ts'
import { createLog, type RootLog } from '../../../lib/log/log.ts'
import type { AuthBackend } from './backend.ts'
import { createBackend } from './index.ts'
import { createPamPool, type PamPool, type PamPoolOptions } from './pam-pool.ts'
import { createPamBackend } from './pam.ts'

const PASSWORD = `pä:ss"w'örd\\n $HOME %s {} 🔑`
const folder = makeFolder()
const logged = new TextSink()
let log: RootLog
let module: string
let account: Account
/** Accepts everybody who gives a password. */
let anybody: string
const services: PamService[] = []
const accounts: Account[] = []
const started: { stop?(): Promise<void> }[] = []

beforeAll(async () => {
  await ensurePam()
  module = await buildPamModule(folder.path)
  log = createLog({ level: 'DEBUG', format: 'text', stream: logged })
  account = await addAccount(PASSWORD)
  anybody = `required ${module} answer 0`
}, 240_000)

afterEach(async () => {
  for (const one of started.splice(0)) await one.stop?.()
  for (const service of services.splice(0)) service.remove()
})

afterAll(async () => {
  for (const one of accounts) one.remove()
  await log.close()
  folder.remove()
})

async function addAccount(password?: string): Promise<Account> {
  const added = await createAccount(throwawayName(), password)
  accounts.push(added)
  return added
}

function addService(...lines: string[]): PamService {
  const service = createPamService(...lines)
  services.push(service)
  return service
}

/** One backend for all tests of a group. @returns it, after giving its service these lines */
function share(): (...lines: string[]) => AuthBackend {
  let service: PamService
  let backend: AuthBackend
  beforeAll(async () => {
    service = createPamService(anybody)
    backend = await createBackend('pam', { service: service.name }, { basePath: folder.path, log })
  })
  afterAll(async () => {
    await backend.stop?.()
    service.remove()
  })
  return (...lines) => {
    service.write(...lines)
    return backend
  }
}

/** A backend for a service of these lines. */
async function start(...lines: string[]): Promise<{ backend: AuthBackend; service: PamService }> {
  const service = addService(...lines)
  const backend = await createBackend('pam', { service: service.name }, { basePath: folder.path, log })
  started.push(backend)
  return { backend, service }
}

function startPool(service: PamService, limits: Pick<PamPoolOptions, 'checkLimitMs' | 'idleMs'> = {}): PamPool {
  const pool = createPamPool({ service: service.name, library: 'libpam.so.0', log, ...limits })
  started.push(pool)
  return pool
}

/** Pids of the processes that ask this service. */
function helpersOf(service: PamService): number[] {
  const helpers = markedProcesses(fileURLToPath(locateCode('./pam-helper', import.meta.url)))
  return markedProcesses(service.name).filter((pid) => helpers.includes(pid))
}

function helperOf(service: PamService): number {
  const [pid, ...more] = helpersOf(service)
  if (pid === undefined || more.length > 0) throw new Error(`${more.length + 1} helpers or none`)
  return pid
}

describe('passwords of accounts', () => {
  const serve = share()

  test('only the right one is right', async () => {
    const backend = serve('required pam_unix.so nodelay')
    expect(await backend.authenticate(account.name, PASSWORD)).toBe(true)
    expect(await backend.authenticate(account.name, `${PASSWORD} `)).toBe(false)
    expect(await backend.authenticate(account.name, PASSWORD.toUpperCase())).toBe(false)
    expect(await backend.authenticate(account.name.toUpperCase(), PASSWORD)).toBe(false)
    expect(await backend.authenticate(throwawayName(), PASSWORD)).toBe(false)
    expect(await backend.authenticate(account.name, PASSWORD)).toBe(true)
  })

  test('the ends of accounts and of passwords are not consulted, a lock of the password is', async () => {
    const backend = serve('required pam_unix.so nodelay')
    const other = await addAccount('secret')
    execFileSync('/usr/bin/chage', ['--expiredate', '1', other.name])
    expect(await backend.authenticate(other.name, 'secret')).toBe(true)
    execFileSync('/usr/bin/chage', ['--lastday', '0', other.name])
    expect(await backend.authenticate(other.name, 'secret')).toBe(true)
    execFileSync('/usr/sbin/usermod', ['--lock', other.name])
    expect(await backend.authenticate(other.name, 'secret')).toBe(false)
  })

  test('an account without a password lets nobody in, also where the service allows that', async () => {
    const backend = serve('required pam_unix.so nodelay nullok')
    const other = await addAccount()
    execFileSync('/usr/bin/passwd', ['--delete', '--quiet', other.name])
    for (const password of ['', 'x', '\0']) expect(await backend.authenticate(other.name, password)).toBe(false)
  })

  test.for([
    ['nothing', ''],
    ['NUL', `${PASSWORD}\0`],
    ['something behind NUL', `${PASSWORD}\0x`],
    ['no text', `${PASSWORD}\ud800`],
  ])('%s is no password', async ([, password = '']) => {
    const backend = serve(anybody)
    expect(await backend.authenticate(account.name, password)).toBe(false)
    expect(await backend.authenticate(account.name, 'x')).toBe(true)
  })

  fullOnly(test)('a password may be long', async () => {
    const password = '0123456789abcde:'.repeat(30)
    const other = await addAccount(password)
    const backend = serve('required pam_unix.so nodelay')
    expect(await backend.authenticate(other.name, password)).toBe(true)
    expect(await backend.authenticate(other.name, password.slice(1))).toBe(false)
  })
})

describe('root', () => {
  const serve = share()

  test('is refused, whatever PAM says, under every name', async () => {
    const backend = serve(anybody)
    const alias = await addAccount('secret')
    expect(await backend.authenticate(alias.name, 'secret')).toBe(true)
    execFileSync('/usr/sbin/usermod', ['--non-unique', '--uid', '0', alias.name])
    expect(await backend.authenticate(alias.name, 'secret')).toBe(false)
    expect(await backend.authenticate('root', 'secret')).toBe(false)
  })

  test('is not even asked about', async () => {
    const backend = serve(`required ${module} crash root`, anybody)
    expect(await backend.authenticate('root', 'secret')).toBe(false)
  })
})

describe('names', () => {
  const serve = share()

  test.for([
    ['a path', '../../etc/passwd'],
    ['a folder', 'a/b'],
    ['dots', '..'],
    ['an option', '--help'],
    ['NUL', 'somebody\0'],
    ['a line', 'somebody\nroot:x:0:0'],
    ['an escape sequence', 'some\u001b[2Jbody'],
    ['a colon', 'some:body'],
    ['10 kB', 'x'.repeat(10_000)],
    ['no text', 'some\ud800body'],
    ['nothing', ''],
  ])('%s is nobody', async ([, name = '']) => {
    const backend = serve(anybody)
    expect(await backend.authenticate(name, 'x')).toBe(false)
    expect(await backend.groupsOf?.(name)).toEqual([])
    expect(await backend.authenticate('somebody', 'x')).toBe(true)
  })

  test.for(
    variants(
      ['DOMAIN\\somebody', '🔑', 'dörte', 'some.body@example.org', 'some body', '{{user}}', "o'brien", '1000'],
      2,
    ),
  )('%s may be one that a module knows', async (name) => {
    const { backend, service } = await start(`required ${module} converse`)
    expect(await backend.authenticate(name, PASSWORD)).toBe(true)
    service.write('required pam_unix.so nodelay')
    expect(await backend.authenticate(name, PASSWORD)).toBe(false)
  })
})

describe('an account under another name', () => {
  test('is refused when a module goes on with its name', async () => {
    const { backend, service } = await start(`required ${module} rename ${account.name}`)
    expect(await backend.authenticate(account.name, 'x')).toBe(true)
    logged.text = ''
    expect(await backend.authenticate('somebody', 'x')).toBe(false)
    expect(logged.text).toMatch(/ WARNING Login refused: the PAM service .* maps the name to another account/)
    service.write(`required ${module} rename root`)
    expect(await backend.authenticate('somebody', 'x')).toBe(false)
  })
})

describe('groups', () => {
  const serve = share()

  test('are those the system gives the account', async () => {
    const group = throwawayName()
    execFileSync('/usr/sbin/groupadd', [group])
    try {
      execFileSync('/usr/sbin/usermod', ['--append', '--groups', `${group},games`, account.name])
      const backend = serve(anybody)
      const groups = await backend.groupsOf?.(account.name)
      expect(groups?.toSorted()).toEqual([account.name, group, 'games'].toSorted())
      const told = execFileSync('/usr/bin/id', ['-Gn', account.name], { encoding: 'utf8' })
      expect(groups?.toSorted()).toEqual(told.trim().split(' ').toSorted())
    } finally {
      execFileSync('/usr/sbin/groupdel', [group])
    }
    const backend = serve(anybody)
    expect(await backend.groupsOf?.(throwawayName())).toEqual([])
  })

  fullOnly(test)(
    'may be many',
    async () => {
      const names = Array.from({ length: 100 }, throwawayName)
      const other = await addAccount()
      try {
        for (const name of names) execFileSync('/usr/sbin/groupadd', [name])
        execFileSync('/usr/sbin/usermod', ['--append', '--groups', names.join(','), other.name])
        const backend = serve(anybody)
        expect((await backend.groupsOf?.(other.name))?.toSorted()).toEqual([other.name, ...names].toSorted())
      } finally {
        for (const name of names) execFileSync('/usr/sbin/groupdel', [name])
      }
    },
    240_000,
  )
})

describe('what PAM answers', () => {
  const serve = share()

  test.for([6, 7, 10, 11, 12, 13, 16, 27])('%i: not this user with this password', async (code) => {
    const backend = serve(`required ${module} answer ${code}`)
    expect(await backend.authenticate(account.name, PASSWORD)).toBe(false)
  })

  test.for([3, 4, 5, 8, 9, 14, 19, 20, 24, 26])('%i: it could not be found out', async (code) => {
    const backend = serve(`required ${module} answer ${code}`)
    await expect(backend.authenticate(account.name, PASSWORD)).rejects.toThrow(
      new RegExp(`^the PAM service "[^"]+" answered: [^(]+ \\(code ${code}\\)$`),
    )
  })

  fullOnly(test)('a module that is not there is a failure, and the next login is checked anew', async () => {
    const { backend, service } = await start('required pam_nonexistent.so')
    const told = expect.objectContaining({ message: expect.stringMatching(/Module is unknown/) })
    await expect(backend.authenticate(account.name, PASSWORD)).rejects.toEqual(told)
    service.write('required pam_nonexistent.so', 'required pam_unix.so nodelay')
    await expect(backend.authenticate(account.name, PASSWORD)).rejects.toEqual(told)
    service.write('required pam_unix.so nodelay')
    expect(await backend.authenticate(account.name, PASSWORD)).toBe(true)
  })

  test('a service that has gone is a failure, and none of "other" is asked in its place', async () => {
    const { backend, service } = await start(anybody)
    service.remove()
    await expect(backend.authenticate(account.name, PASSWORD)).rejects.toThrow(`/etc/pam.d/${service.name} is gone`)
    service.write(anybody)
    expect(await backend.authenticate(account.name, PASSWORD)).toBe(true)
  })

  test.for(['sufficient pam_rootok.so', 'required pam_permit.so'])(
    'who is accepted without being asked for the password is refused: %s',
    async (line) => {
      const backend = serve(line)
      logged.text = ''
      expect(await backend.authenticate(account.name, PASSWORD)).toBe(false)
      expect(logged.text).toMatch(/ WARNING Login refused: the PAM service .* accepts logins without requesting/)
    },
  )

  fullOnly(test)('messages of every known kind are answered, and others are not', async () => {
    const { backend, service } = await start(`required ${module} converse`)
    expect(await backend.authenticate('somebody', PASSWORD)).toBe(true)
    service.write(`required ${module} misuse`)
    expect(await backend.authenticate('somebody', PASSWORD)).toBe(true)
  })

  test('what modules print is logged without the password, and disturbs nothing', async () => {
    const { backend } = await start(`required ${module} talk`)
    logged.text = ''
    const password = 'canary of pam.test'
    expect(await backend.authenticate(account.name, password)).toBe(true)
    const line = await waitFor('the words', () => logged.text.split('\n').find((text) => text.includes('password is')))
    expect(line).toContain('the password is ********')
    for (let i = 0; i < rounds({ daily: 15, full: 200 }); i++) {
      expect(await backend.authenticate(account.name, `${password} ${i}`)).toBe(true)
    }
    await backend.stop?.()
    expect(logged.text).not.toContain(password)
    expect(logged.text.length).toBeLessThan(200_000)
  })
})

describe('processes', () => {
  test('one is used again, and none is left after the stop', async () => {
    const { backend, service } = await start(anybody)
    const pid = helperOf(service)
    for (let i = 0; i < 20; i++) await backend.authenticate(account.name, 'x')
    expect(helperOf(service)).toBe(pid)
    await Promise.all([backend.stop?.(), backend.stop?.()])
    await backend.stop?.()
    expect(helpersOf(service)).toEqual([])
    await expect(backend.authenticate(account.name, 'x')).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
    expect(helpersOf(service)).toEqual([])
  })

  fullOnly(test)('who waits for a slow module holds up nobody else, and the event loop goes on', async () => {
    const slow = throwawayName()
    const barrier = createBarrier(folder.path, slow)
    const { backend } = await start(barrier.line, anybody)
    const waiting = [1, 2, 3].map(() => backend.authenticate(slow, 'x'))
    await waitFor('all three to wait', () => barrier.reached() === 3)
    for (let i = 0; i < 5; i++) expect(await backend.authenticate(account.name, 'x')).toBe(true)
    barrier.open()
    expect(await Promise.all(waiting)).toEqual([true, true, true])
  })

  fullOnly(test)('who is refused waits as long as the service wants, and holds up nobody', async () => {
    const { backend } = await start('optional pam_faildelay.so delay=60000000', 'required pam_unix.so')
    let answered = 0
    const waiting = Array.from({ length: 8 }, () =>
      backend
        .authenticate(account.name, 'wrong')
        .catch(String)
        .finally(() => (answered += 1)),
    )
    for (let i = 0; i < 8; i++) expect(await backend.authenticate(account.name, PASSWORD)).toBe(true)
    expect(answered).toBe(0)
    await backend.stop?.()
    expect(new Set(await Promise.all(waiting))).toEqual(
      new Set(['AppError: The server is shutting down; try again in a moment.']),
    )
  })

  test('four at a time; more than 64 others are turned away; the stop ends all', async () => {
    const barrier = createBarrier(folder.path)
    const { backend, service } = await start(barrier.line, anybody)
    const waiting = Array.from({ length: 68 }, () => backend.authenticate(account.name, 'x').catch(String))
    await waitFor('four to wait', () => barrier.reached() === 4)
    await expect(backend.authenticate(account.name, 'x')).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    expect(helpersOf(service)).toHaveLength(4)
    await backend.stop?.()
    expect(new Set(await Promise.all(waiting))).toEqual(
      new Set(['AppError: The server is shutting down; try again in a moment.']),
    )
    expect(helpersOf(service)).toEqual([])
    await waitFor('the end of what it had started', () => markedProcesses(barrier.program).length === 0)
    expect(barrier.reached()).toBe(4)
  })

  test('SIGUSR1 opens no debugger in them, through which passwords could be read', async () => {
    const { backend, service } = await start(anybody)
    const pid = helperOf(service)
    const before = countListening(pid)
    for (let n = 0; n < 3; n++) process.kill(pid, 'SIGUSR1')
    expect(await backend.authenticate(account.name, 'x')).toBe(true)
    expect([helperOf(service), countListening(pid)]).toEqual([pid, before])
    await backend.stop?.()
    expect(logged.text).not.toContain('Debugger listening')
  })

  test('programs that modules start cannot hear the questions', async () => {
    const { service } = await start(anybody)
    const flags = /^flags:\s+([0-7]+)$/m.exec(readFileSync(`/proc/${helperOf(service)}/fdinfo/3`, 'latin1'))?.[1]
    expect(Number.parseInt(flags ?? '', 8) & 0o2000000).toBe(0o2000000)
  })

  fullOnly(test)('one that nobody needs is ended, and the next check has another', async () => {
    const service = addService(anybody)
    const pool = startPool(service, { idleMs: 50 })
    for (let i = 0; i < 2; i++) {
      expect(await pool.check(account.name, 'x')).toBe('accepted')
      await waitFor('its end', () => helpersOf(service).length === 0)
    }
  })

  fullOnly(test)('one that is stopped while it starts leaves nothing', async () => {
    const service = addService(anybody)
    const pool = startPool(service)
    const starting = pool.start().catch((why: unknown) => why)
    await setImmediate()
    await pool.stop()
    expect(await starting).toMatchObject({ code: 'SHUTTING_DOWN' })
    expect(helpersOf(service)).toEqual([])
  })

  fullOnly(test)('a check that takes too long fails, and all that it had started is ended', async () => {
    const slow = throwawayName()
    const barrier = createBarrier(folder.path, slow)
    const service = addService(barrier.line, anybody)
    const pool = startPool(service, { checkLimitMs: 3000 })
    await pool.start()
    const pid = helperOf(service)
    await expect(pool.check(slow, 'x')).rejects.toThrow('the PAM helper did not answer within 3 seconds')
    expect(barrier.reached()).toBe(1)
    expect(helpersOf(service)).toEqual([])
    await waitFor('the end of what it had started', () => markedProcesses(barrier.program).length === 0)
    expect(await pool.check(account.name, 'x')).toBe('accepted')
    expect(helperOf(service)).not.toBe(pid)
  })

  fullOnly(test)('one that dies during a check fails it, and the next check has another', async () => {
    const slow = throwawayName()
    const barrier = createBarrier(folder.path, slow)
    const { backend, service } = await start(barrier.line, anybody)
    const failed = backend.authenticate(slow, 'x').catch(String)
    await waitFor('the check to be under way', () => barrier.reached() === 1)
    process.kill(helperOf(service), 'SIGKILL')
    expect(await failed).toBe('Error: the PAM helper ended (SIGKILL)')
    expect(await backend.authenticate(account.name, 'x')).toBe(true)
    barrier.open()
  })

  fullOnly(test)('one that dies between two checks is replaced', async () => {
    const { backend, service } = await start(anybody)
    const pid = helperOf(service)
    process.kill(pid, 'SIGKILL')
    await waitFor('its end', () => helpersOf(service).length === 0)
    // A zombie is gone when this process was told of it.
    await waitFor('its burial', () => !existsSync(`/proc/${pid}`))
    await setImmediate()
    expect(await backend.authenticate(account.name, 'x')).toBe(true)
  })

  fullOnly(test)('a module that crashes fails its check alone', async () => {
    const { backend } = await start(`required ${module} crash ${account.name}`, anybody)
    for (let i = 0; i < 3; i++) {
      await expect(backend.authenticate(account.name, 'x')).rejects.toThrow('the PAM helper ended (SIGSEGV)')
      expect(await backend.authenticate('somebody', 'x')).toBe(true)
    }
  })
})

describe('what cannot be used stops the start with one line', () => {
  test.for<[kwargs: Record<string, unknown>, line: RegExp]>([
    [
      { service: 'svc-no-such-service' },
      /^auth\.backend_kwargs: there is no PAM service "svc-no-such-service": no file \/etc\/pam\.d\/svc-no-such-service; /,
    ],
    [{ service: '' }, /^auth\.backend_kwargs: service must be the name of a file in \/etc\/pam\.d such as "login"/],
    [{ service: '..' }, /^auth\.backend_kwargs: service must be /],
    [{ service: '../passwd' }, /^auth\.backend_kwargs: service must be /],
    [{ service: 'login\0' }, /^auth\.backend_kwargs: service must be /],
    [{ service: 'login\n' }, /^auth\.backend_kwargs: service must be /],
    [{ service: ['login'] }, /^auth\.backend_kwargs: service must be /],
    [{ service: null }, /^auth\.backend_kwargs: service must be /],
    [{ services: 'login' }, /^auth\.backend_kwargs: pam has no argument "services"; use \{"service": "login"\}$/],
  ])('%j', async ([kwargs, line]) => {
    const error: unknown = await createPamBackend(kwargs, { basePath: folder.path, log }).catch((why: unknown) => why)
    expect(error).toBeInstanceOf(Error)
    const text = error instanceof Error ? error.message : ''
    expect(text).toMatch(line)
    expect(text).not.toContain('\n')
  })

  fullOnly(test)('a service counts as the library looks for it, in small letters', async () => {
    const { service } = await start(anybody)
    const backend = await createPamBackend({ service: service.name.toUpperCase() }, { basePath: folder.path, log })
    started.push(backend)
    expect(await backend.authenticate(account.name, 'x')).toBe(true)
  })

  fullOnly(test)('a library that is not installed', async () => {
    const { service } = await start(anybody)
    await expect(
      createPamBackend({ service: service.name }, { basePath: folder.path, log }, 'libpam-nonexistent.so.0'),
    ).rejects.toThrow(/^auth\.backend: pam cannot use libpam-nonexistent\.so\.0 \(Debian package libpam0g\): [^\n]+$/)
    expect(markedProcesses('libpam-nonexistent')).toEqual([])
  })

  test('"login" is the service when none is named', async () => {
    const backend = await createPamBackend({}, { basePath: folder.path, log })
    started.push(backend)
    expect(await backend.authenticate(account.name, PASSWORD)).toBe(true)
  })
})
