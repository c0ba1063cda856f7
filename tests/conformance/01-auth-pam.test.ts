/** Contract 01, 1.4 "pam": logins through a real server that asks the real PAM. */
import { execFileSync } from 'node:child_process'
import { chmodSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createAccount, type Account } from '../helpers/accounts.ts'
import { makeFolder } from '../helpers/folders.ts'
import { isRunning, markedProcesses } from '../helpers/marked-processes.ts'
import {
  buildPamModule,
  createBarrier,
  createPamService,
  ensurePam,
  throwawayName,
  type Barrier,
  type PamService,
} from '../helpers/pam.ts'
import { call, projectRoot, startServer, waitForLog, type Answer, type TestServer } from '../helpers/server.ts'
import { fullOnly, variants } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import type { ErrorAnswer } from './support.ts'

const PASSWORD = `p:ä:ss"w'örd\\n $HOME 🔑`
/** Can be looked for as bytes in files of any encoding. */
const CANARY = 'canary-of-01-auth-pam'
const folder = makeFolder()
const accounts: Account[] = []

let module: string
let account: Account
/** Waits at the barrier before the password is checked. */
let slow: Account
let alias: Account
/** The module crashes for this one. */
let crashing: Account
let barrier: Barrier
let service: PamService
let server: TestServer

beforeAll(async () => {
  await ensurePam()
  module = await buildPamModule(folder.path)
  account = await addAccount(PASSWORD)
  slow = await addAccount(CANARY)
  alias = await addAccount(PASSWORD)
  crashing = await addAccount(PASSWORD)
  service = createPamService()
  renewService()
  server = await start()
  execFileSync('/usr/sbin/usermod', ['--non-unique', '--uid', '0', alias.name])
}, 240_000)

afterEach(() => {
  barrier.open()
  renewService()
})

afterAll(async () => {
  barrier.open()
  await server.stop()
  for (const one of accounts) one.remove()
  service.remove()
  folder.remove()
})

async function addAccount(password: string): Promise<Account> {
  const added = await createAccount(throwawayName(), password)
  accounts.push(added)
  return added
}

/** With a barrier that is closed. */
function renewService(): void {
  barrier = createBarrier(folder.path, slow.name)
  service.write(`required ${module} crash ${crashing.name}`, barrier.line, 'required pam_unix.so nodelay')
}

function start(more: Record<string, string> = {}): Promise<TestServer> {
  return startServer({
    settings: {
      'auth.enable': 'True',
      'auth.backend': 'pam',
      'auth.backend_kwargs': JSON.stringify({ service: service.name }),
      ...more,
    },
  })
}

interface LoginAnswer extends ErrorAnswer {
  user: string
  token: string
}

function login(user: string, password: string, at = server): Promise<Answer<LoginAnswer>> {
  const credentials = Buffer.from(`${user}:${password}`).toString('base64')
  return call(`${at.urls.auth}/auth/v1/tokens`, 'POST', undefined, { Authorization: `Basic ${credentials}` })
}

async function expectLogin(): Promise<void> {
  expect((await login(account.name, PASSWORD)).status).toBe(201)
}

/** Processes that ask this service, of whichever server. */
function helperPids(): number[] {
  const helpers = markedProcesses(join(projectRoot, 'dist', 'pam-helper.js'))
  return markedProcesses(service.name).filter((pid) => helpers.includes(pid))
}

describe('01.4 pam: who may log in', () => {
  it('01.4 the right password gives a token, which works', async () => {
    const { status, body } = await login(account.name, PASSWORD)
    expect(status).toBe(201)
    expect(body.user).toBe(account.name)
    // `admin` is in the password file of our own alone.
    expect(server.printed()).toContain(' -u "$USER" ')
    const me = await server.call('GET', '/v1/user', undefined, { 'X-Auth-Token': body.token })
    expect(me.body['username']).toBe(account.name)
  })

  it.each([
    ['a wrong password', () => login(account.name, `${PASSWORD}x`)],
    ['a password cut at its colon', () => login(account.name, 'p')],
    ['an empty password', () => login(account.name, '')],
    ['an unknown user', () => login(throwawayName(), PASSWORD)],
    ['root', () => login('root', PASSWORD)],
    ['another name of root, with its password', () => login(alias.name, PASSWORD)],
    ['a path', () => login('../../etc/shadow', PASSWORD)],
    ['a line break', () => login(`${account.name}\nroot`, PASSWORD)],
    ['NUL', () => login(`${account.name}\0`, PASSWORD)],
    ['NUL in the password', () => login(account.name, `${PASSWORD}\0`)],
    ['10 kB of user', () => login('x'.repeat(10_000), PASSWORD)],
  ])('01.4 refused: %s', async (_, attempt) => {
    const { status, body } = await attempt()
    expect(status).toBe(401)
    expect(body.faultstring).toBe('Invalid or missing credentials')
  })
})

describe('01.4 pam: what goes wrong', () => {
  it('01.4 a broken service is 500 and says why in the log; once mended, logins work', async () => {
    service.write('required pam_nonexistent.so')
    const { status, body } = await login(account.name, PASSWORD)
    expect(status).toBe(500)
    expect(body.faultstring).toBe('Internal Server Error')
    await waitForLog(server, /the PAM service .*Module is unknown/)
    service.remove()
    expect((await login(account.name, PASSWORD)).status).toBe(500)
    await waitForLog(server, `/etc/pam.d/${service.name} is gone`)
    renewService()
    await expectLogin()
  })

  it('01.4 a module that crashes is 500 for who crashes it, and nothing to others', async () => {
    for (let i = 0; i < 3; i++) {
      expect((await login(crashing.name, PASSWORD)).status).toBe(500)
      await expectLogin()
    }
    await waitForLog(server, 'SIGSEGV')
  })

  it('01.4 a process that is killed during a check is 500, and the next login works', async () => {
    const waiting = login(slow.name, CANARY)
    await waitFor('the check to be under way', () => barrier.reached() === 1)
    for (const pid of helperPids()) process.kill(pid, 'SIGKILL')
    expect((await waiting).status).toBe(500)
    await expectLogin()
  })
})

describe('01.4 pam: a slow check', () => {
  it('01.4 holds up neither requests nor other logins', async () => {
    const { body } = await login(account.name, PASSWORD)
    const waiting = Promise.all([1, 2, 3].map(() => login(slow.name, CANARY)))
    await waitFor('the checks to be under way', () => barrier.reached() === 3)
    for (let i = 0; i < 5; i++) await expectLogin()
    expect((await login(account.name, 'wrong')).status).toBe(401)
    expect((await server.call('GET', '/v1/user', undefined, { 'X-Auth-Token': body.token })).status).toBe(200)
    barrier.open()
    expect((await waiting).map(({ status }) => status)).toEqual([201, 201, 201])
  })

  it('01.4 refusals that the service makes slow hold up nobody either', async () => {
    service.write('optional pam_faildelay.so delay=60000000', 'required pam_unix.so')
    const cut = new AbortController()
    const waiting = Array.from({ length: 8 }, (_, i) =>
      fetch(`${server.urls.auth}/tokens`, {
        method: 'POST',
        headers: { Authorization: `Basic ${btoa(`${throwawayName()}:${i}`)}` },
        signal: cut.signal,
      }).then(
        ({ status }) => status,
        () => 'no answer',
      ),
    )
    for (let i = 0; i < 8; i++) await expectLogin()
    cut.abort()
    expect(await Promise.all(waiting)).toEqual(waiting.map(() => 'no answer'))
  })

  it('01.4 shows the password to nobody: not in arguments, environments or the log', async () => {
    const waiting = login(slow.name, CANARY)
    await waitFor('the check to be under way', () => barrier.reached() === 1)
    // They can be seen at all: the program that waits has the user in its environment.
    expect(markedProcesses(slow.name)).not.toEqual([])
    expect(markedProcesses(CANARY)).toEqual([])
    barrier.open()
    expect((await waiting).status).toBe(201)
    expect((await login(slow.name, `${CANARY}-wrong`)).status).toBe(401)
    await waitForLog(server, slow.name)
    expect(server.log()).not.toContain(CANARY)
  })

  it('01.4 the process that asks has no environment and no file of the server', async () => {
    await expectLogin()
    const [pid = 0] = helperPids()
    expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).toBe('')
    expect(readlinkSync(`/proc/${pid}/cwd`)).toBe('/')
    // Without those that whoever started all this has left open, its sources among them.
    const inherited = filesOf(process.pid)
    const isOwn = (file: string): boolean => !inherited.includes(file) && !file.startsWith(projectRoot)
    const own = new Set(filesOf(server.pid).filter(isOwn))
    expect(own.size).toBeGreaterThan(3)
    expect(filesOf(pid).filter((file) => own.has(file))).toEqual([])
  })
})

/** Open files, sockets and pipes of a process; not devices. */
function filesOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/${pid}/fd/${fd}`)
      return /^(?:socket:|pipe:|\/(?!dev\/))/.test(target) ? [target] : []
    } catch {
      // Closed between the two looks.
      return []
    }
  })
}

describe('01.4 pam: the end of the server', () => {
  it.each(variants(['SIGKILL', 'SIGTERM']))(
    '01.4 %s leaves no process behind, in the middle of checks',
    async (signal) => {
      const other = await start()
      try {
        const before = helperPids()
        const waiting = login(slow.name, CANARY, other).then(
          ({ status }) => status,
          () => 'cut off',
        )
        await waitFor('the check to be under way', () => barrier.reached() === 1)
        const own = helperPids().filter((pid) => isChildOf(pid, other.pid))
        expect(own).not.toEqual([])
        expect(before).toEqual(expect.arrayContaining(own))
        await other.stop(signal)
        expect([500, 503, 'cut off']).toContain(await waiting)
        await waitFor('the end of its processes', () => own.every((pid) => !isRunning(pid)))
      } finally {
        await other.stop('SIGKILL')
      }
    },
  )
})

function isChildOf(pid: number, parent: number): boolean {
  return new RegExp(`^PPid:\\s+${parent}$`, 'm').test(readFileSync(`/proc/${pid}/status`, 'latin1'))
}

describe('01.4 pam: settings that stop the start, each in one line', () => {
  const noService = 'auth.backend_kwargs: there is no PAM service "svc-no-such-service"'

  it.each(
    variants([
      ['a service that does not exist', { 'auth.backend_kwargs': '{"service": "svc-no-such-service"}' }, noService],
      [
        'a service that is a path',
        { 'auth.backend_kwargs': '{"service": "../x"}' },
        'auth.backend_kwargs: service must',
      ],
      [
        'an unknown argument',
        { 'auth.backend_kwargs': '{"svc": "x"}' },
        'auth.backend_kwargs: pam has no argument "svc"',
      ],
    ]),
  )('01.4 %s', async (_, settings, line) => {
    expect(await failedStart(start(settings))).toEqual([expect.stringContaining(line)])
  })

  fullOnly(it)('01.4 an account that is not root', async () => {
    const base = makeFolder()
    chmodSync(base.path, 0o777)
    try {
      const preload = join(projectRoot, 'tests/packaging/ordinary-account.cjs')
      const starting = startServer({
        basePath: base.path,
        settings: { 'auth.enable': 'True', 'auth.backend': 'pam' },
        env: { NODE_OPTIONS: `--require ${preload}` },
      })
      const line = 'auth.backend: pam requires root to check passwords of other accounts'
      expect(await failedStart(starting)).toEqual([expect.stringContaining(line)])
    } finally {
      base.remove()
    }
  })
})

/** What a server that does not start says about its backend, and lines of stacks, which it should not show. */
async function failedStart(starting: Promise<TestServer>): Promise<string[]> {
  const said = await starting.then(
    (started) => started.stop().then(() => 'auth.backend was no reason not to start'),
    (failure: unknown) => (failure instanceof Error ? failure.message : String(failure)),
  )
  return said.split('\n').filter((line) => /auth\.backend|^\s+at /.test(line))
}
