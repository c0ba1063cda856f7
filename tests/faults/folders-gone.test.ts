/** Folders that are deleted, moved or made inaccessible under a running server: noticed, said everywhere, and used again. */
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { withApp, type InProcessApp } from '../helpers/app.ts'
import { runCli } from '../helpers/cli.ts'
import { askBySocket } from '../helpers/control-socket.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { runToEnd, startServer, writeConfig, type TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

const OTHER_ACCOUNT = 65534

let folder: TemporaryFolder
let basePath = ''
let packs = ''
let away = ''

beforeEach(() => {
  folder = makeFolder()
  basePath = join(folder.path, 'data')
  packs = join(basePath, 'packs')
  away = join(folder.path, 'away')
  mkdirSync(join(packs, 'mine', 'actions'), { recursive: true })
  writeFileSync(
    join(packs, 'mine', 'pack.yaml'),
    'ref: mine\nname: mine\ndescription: Mine\nversion: 1.0.0\nauthor: me\n',
  )
  for (const [name, runner] of [
    ['shell', 'local-shell-script'],
    ['python', 'python-script'],
    ['remote', 'remote-shell-script'],
  ] as const) {
    addAction(packs, name, runner)
  }
  writeFileSync(join(packs, 'mine', 'actions', 'file'), '#!/bin/sh\necho hello\n', { mode: 0o755 })
})
afterEach(() => folder.remove())

function addAction(at: string, name: string, runner: string): void {
  const text = `name: ${name}\nrunner_type: ${runner}\nentry_point: file\nenabled: true\n`
  writeFileSync(join(at, 'mine', 'actions', `${name}.yaml`), text)
}

/** The words of `/readyz`. */
async function reasons(app: TestApp): Promise<unknown> {
  const answer = await fetch(`${app.urls.api}/readyz`)
  const body = (await answer.json()) as { reasons?: unknown }
  expect(answer.status).toBe(body.reasons === undefined ? 200 : 503)
  return body.reasons ?? []
}

async function waitForReasons(app: TestApp, wanted: readonly string[]): Promise<void> {
  await waitFor(`/readyz to say [${wanted.join()}]`, async () => {
    const found = await reasons(app)
    return JSON.stringify(found) === JSON.stringify(wanted)
  })
}

/** What `svc doctor` finds wrong. */
async function wrong(configFile: string, check: string): Promise<string[]> {
  const { stdout } = await runCli(['doctor', check, '--config-file', configFile, '-j'], { LANG: 'C.UTF-8' })
  const { findings } = JSON.parse(stdout) as { findings: { state: string; message: string }[] }
  return findings.filter(({ state }) => state === 'problem').map(({ message }) => message)
}

async function resultOf(app: TestApp, action: string, parameters = {}): Promise<{ status: string; said: string }> {
  const { status, result } = await runToEnd(app, parameters, { action })
  return { status, said: JSON.stringify(result) }
}

const linesWith = (app: TestApp, event: string): string[] =>
  app
    .log()
    .split('\n')
    .filter((line) => line.includes(`event=${event},`))

fullOnly(describe)('the directory of packs', () => {
  fullOnly(test)('is missed within seconds, its actions fail in words, and it is used again when it is back', () =>
    withApp({ basePath, settings: { 'content.watch': 'True' } }, async (app) => {
      expect(await resultOf(app, 'mine.shell')).toMatchObject({ status: 'succeeded' })
      renameSync(packs, away)
      await waitForReasons(app, ['packs_gone'])
      const sentence = `${packs} was deleted or moved while the server runs: actions of its packs fail. Put it back`
      expect(linesWith(app, 'packs.gone')).toEqual([expect.stringContaining(sentence)])
      expect(await wrong(app.configFile, 'server')).toEqual([
        expect.stringMatching(/^Process \d+ is not ready \(packs_gone\): content\.system_packs_base_path .*moved/),
      ])
      const { stdout } = await runCli(['status', '--config-file', app.configFile], {})
      expect(stdout).toContain(`Not ready (packs_gone): content.system_packs_base_path`)

      const gone = 'The folder of the pack \\"mine\\" was deleted or moved. Put it back, or install the pack again.'
      for (const [action, parameters] of [
        ['mine.shell', {}],
        ['mine.python', {}],
        ['mine.remote', { hosts: '127.0.0.1' }],
      ] as const) {
        const { status, said } = await resultOf(app, action, parameters)
        expect([action, status, said]).toEqual([action, 'failed', expect.stringContaining(gone)])
        expect(said).not.toContain('ENOENT')
      }
      expect(await resultOf(app, 'core.local', { cmd: 'true' })).toMatchObject({ status: 'succeeded' })
      // A new directory would stand in the way of the one that is moved back.
      expect(await resultOf(app, 'packs.install', { packs: ['examples'] })).toMatchObject({
        status: 'failed',
        said: expect.stringContaining('the directory of packs (content.system_packs_base_path) cannot be used'),
      })
      expect(existsSync(packs)).toBe(false)

      addAction(away, 'later', 'local-shell-script')
      renameSync(away, packs)
      await waitForReasons(app, [])
      expect(await resultOf(app, 'mine.shell')).toMatchObject({ status: 'succeeded' })
      await waitFor('the change of the meantime', async () => await isThere(app, 'mine.later'))
      addAction(packs, 'last', 'local-shell-script')
      await waitFor('a change after that', async () => await isThere(app, 'mine.last'))
      expect(linesWith(app, 'packs.back')).toHaveLength(1)
      // Not a line for each pack.
      expect(linesWith(app, 'pack.gone')).toEqual([])
    }),
  )

  fullOnly(test)('one pack of it is missed alone, and so are the configurations', () =>
    withApp({ basePath }, async (app) => {
      await waitFor('the configurations', () => existsSync(join(basePath, 'configs')))
      await waitForReasons(app, [])
      renameSync(join(packs, 'mine'), away)
      expect(await resultOf(app, 'mine.shell')).toMatchObject({
        status: 'failed',
        said: expect.stringContaining('was deleted or moved'),
      })
      expect(await reasons(app)).toEqual([])
      rmSync(join(basePath, 'configs'), { recursive: true })
      await waitForReasons(app, ['packs_gone'])
      expect(linesWith(app, 'packs.gone')).toEqual([
        expect.stringContaining(`${basePath}/configs was deleted or moved while the server runs: packs have no`),
      ])
      mkdirSync(join(basePath, 'configs'))
      await waitForReasons(app, [])
    }),
  )
})

async function isThere(app: TestApp, action: string): Promise<boolean> {
  return (await app.call('GET', `/v1/actions/${action}`)).status === 200
}

describe('the base path', () => {
  const withDatabaseElsewhere = (use: (app: InProcessApp) => Promise<void>): Promise<void> =>
    withApp({ basePath, settings: { 'database.path': join(folder.path, 'db', 'svc.db') } }, use)

  fullOnly(test)('is missed with all that is in it', () =>
    withApp({ basePath }, async (app) => {
      renameSync(basePath, away)
      await waitForReasons(app, ['database_gone', 'base_path_gone', 'log_not_writable', 'packs_gone'])
      const answer = await app.call('POST', '/v1/executions', { action: 'core.noop' })
      expect(answer).toMatchObject({ status: 503, body: { code: 'DATABASE_GONE' } })
      expect(answer.text).not.toContain(folder.path)
      renameSync(away, basePath)
      await waitForReasons(app, [])
      expect(await resultOf(app, 'mine.shell')).toMatchObject({ status: 'succeeded' })
    }),
  )

  fullOnly(test)('is missed also where the database is elsewhere; doctor finds the server by its port', () =>
    withDatabaseElsewhere(async (app) => {
      await waitForReasons(app, [])
      renameSync(basePath, away)
      await waitForReasons(app, ['base_path_gone', 'log_not_writable', 'packs_gone'])
      expect(linesWith(app, 'base_path.gone')).toEqual([
        expect.stringContaining(
          `system.base_path: ${basePath} was deleted or moved while the server runs. Put it back`,
        ),
      ])
      const configFile = join(folder.path, 'doctor.conf')
      writeConfig(configFile, { 'system.base_path': basePath, 'api.port': new URL(app.urls.api).port })
      expect(await wrong(configFile, 'server')).toEqual([
        `A server runs at ${app.urls.api}, and its base path was deleted, moved or is not accessible. It reports: base_path_gone, log_not_writable, packs_gone.`,
      ])
      // Another directory is not it.
      mkdirSync(basePath)
      await waitFor('the difference', async () => {
        const { problem } = await notReadyOf(app)
        return problem?.includes('was replaced by another directory')
      })
      rmSync(basePath, { recursive: true })
      renameSync(away, basePath)
      await waitForReasons(app, [])
      expect(linesWith(app, 'base_path.back')).toHaveLength(1)
    }),
  )

  test('gets the files anew by which tools find the server', () =>
    withDatabaseElsewhere(async (app) => {
      const socket = join(basePath, 'svc.sock')
      const runFile = join(basePath, 'svc.run')
      const before = readFileSync(runFile, 'utf8')
      rmSync(runFile)
      rmSync(socket)
      await waitFor('the files', () => read(runFile) === before && existsSync(socket))
      expect(await askBySocket(socket, 'GET', '/readyz')).toMatchObject({ status: 200 })
      expect(statSync(socket).mode & 0o777).toBe(0o600)
      expect(await wrong(app.configFile, 'server')).toEqual([])
    }))
})

async function notReadyOf(app: TestApp): Promise<{ problem?: string }> {
  const { body } = await app.call<{ not_ready: { problem: string }[] }>('GET', '/v1/status')
  return body.not_ready[0] ?? {}
}

describe('the log', () => {
  const logs = (): string => join(basePath, 'logs')
  const settings = (): Record<string, string> => ({
    'database.path': join(folder.path, 'db', 'svc.db'),
    'log.file': join(logs(), 'svc.log'),
    'log.audit_file': join(folder.path, 'audit', 'audit.log'),
  })

  test('gets its file and its directory anew without a line that asks for them', () =>
    withApp({ basePath, settings: settings() }, async (app) => {
      const audit = join(folder.path, 'audit', 'audit.log')
      await waitForReasons(app, [])
      rmSync(audit)
      await waitFor('the file', () => existsSync(audit))
      await waitFor('the words', () => linesWith(app, 'log.file_gone').length > 0)
      rmSync(logs(), { recursive: true })
      await waitFor('the directory', () => existsSync(join(logs(), 'svc.log')))
      await waitForReasons(app, [])
      expect(linesWith(app, 'log.folder_gone')).toEqual([
        expect.stringContaining(`${logs()} was deleted or moved while`),
      ])
      expect(await resultOf(app, 'core.local', { cmd: 'true' })).toMatchObject({ status: 'succeeded' })
      await waitFor('the audit lines', () => read(audit).includes('execution.completed'))
    }))

  test('does not stand in the way of a base path that is moved back', () =>
    withApp({ basePath, settings: settings() }, async (app) => {
      await waitForReasons(app, [])
      renameSync(basePath, away)
      await waitForReasons(app, ['base_path_gone', 'log_not_writable', 'packs_gone'])
      expect(existsSync(basePath)).toBe(false)
      renameSync(away, basePath)
      await waitForReasons(app, [])
      // Nothing of the meantime is lost.
      await waitFor('the lines', () => read(join(logs(), 'svc.log')).includes('base_path.back'))
      expect(read(join(logs(), 'svc.log'))).toContain('base_path.gone')
    }))
})

fullOnly(describe.skipIf(process.getuid?.() !== 0))('permissions that the account of the server loses', () => {
  test('on each folder and file are noticed, and so is their return', async () => {
    chmodSync(folder.path, 0o755)
    const give = (path: string): void => chownSync(path, OTHER_ACCOUNT, OTHER_ACCOUNT)
    give(basePath)
    for (const path of ['', 'mine', 'mine/pack.yaml', 'mine/actions']) give(join(packs, path))
    const account = ['--reuid', String(OTHER_ACCOUNT), '--regid', String(OTHER_ACCOUNT), '--clear-groups']
    const log = join(basePath, 'logs', 'svc.log')
    const server = await startServer({
      basePath,
      settings: { 'log.file': log },
      through: (command) => ['setpriv', ...account, ...command],
    })
    try {
      await waitForReasons(server, [])
      const database = join(basePath, 'svc.db')
      const said: string[] = []
      for (const [path, lostMode, reason, event, words] of [
        [database, 0o400, 'database_gone', 'database.gone', `the permission to read or write ${database}. Permit it`],
        [packs, 0o000, 'packs_gone', 'packs.gone', `${packs} cannot be used: permission denied while the server runs`],
        [log, 0o400, 'log_not_writable', 'log.file_locked', `${log} may not be written by the account of the server`],
        [
          join(log, '..'),
          0o500,
          'log_not_writable',
          'log.folder_gone',
          `${join(log, '..')} cannot be used: permission denied`,
        ],
        [
          basePath,
          0o500,
          'base_path_gone',
          'base_path.gone',
          `system.base_path: ${basePath} cannot be used: permission denied while the server runs`,
        ],
      ] as const) {
        const mode = statSync(path).mode & 0o777
        chmodSync(path, lostMode)
        await waitFor(`${reason} in /readyz`, async () => JSON.stringify(await reasons(server)).includes(reason))
        await waitFor('the log', () => linesWith(server, event).length > 0)
        expect(linesWith(server, event)).toEqual([expect.stringContaining(words)])
        expect((await wrong(server.configFile, 'server')).join('\n')).toContain(words)
        if (reason === 'packs_gone') said.push((await resultOf(server, 'mine.shell')).said)
        chmodSync(path, mode)
        await waitForReasons(server, [])
      }
      expect(said).toEqual([expect.stringContaining('\\"mine\\" cannot be used. Permit the account')])
      expect(await resultOf(server, 'mine.shell')).toMatchObject({ status: 'succeeded' })
      expect((await server.stop()).code).toBe(0)
    } finally {
      await server.stop('SIGKILL')
    }
  })
})

function read(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8') : ''
}
