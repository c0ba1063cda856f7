/** How operators reach the server of their own machine: the control socket, and the run file that names the process. */
import { startServer } from '../helpers/server.ts'
import { once } from 'node:events'
import { existsSync, lstatSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { openFolder } from '../../src/lib/files/folder-handle.ts'
import { readRunFile } from '../../src/core/run-file.ts'
import { askBySocket as ask } from '../helpers/control-socket.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { createTestApp, withApp } from '../helpers/app.ts'
import { fullOnly } from '../helpers/tiers.ts'

const folders: TemporaryFolder[] = []
afterEach(() => folders.splice(0).forEach((folder) => folder.remove()))

function newFolder(): string {
  const folder = makeFolder()
  folders.push(folder)
  return folder.path
}

describe('10 control socket', () => {
  test('whoever can open it is an administrator without a credential, and nobody else can open it', () =>
    withApp(
      { settings: { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' } },
      async (server) => {
        const path = join(server.basePath, 'svc.sock')
        expect(lstatSync(path).isSocket()).toBe(true)
        expect(lstatSync(path).mode & 0o777).toBe(0o600)
        expect((await server.call('GET', '/v1/apikeys')).status).toBe(401)
        const made = await ask(path, 'POST', '/v1/users', { name: 'ada', password: 'a long enough password' })
        expect(made.status).toBe(201)
        expect((await ask(path, 'GET', '/v1/user')).body['username']).toBe('svc')
        // The address is the same as by the ports, and what a request is refused for, too.
        expect((await ask(path, 'GET', '/v1/nothing')).status).toBe(404)
        expect((await ask(path, 'POST', '/v1/executions', { action: 'core.nothing' })).status).toBe(400)
        expect(
          (await ask(path, 'POST', '/v1/executions', { action: 'core.local', parameters: { cmd: 'true' } })).status,
        ).toBe(201)
      },
    ))

  test('its operator makes API keys without a record of the system user, and reads and writes the keys of every user', () =>
    withApp({}, async (server) => {
      const path = join(server.basePath, 'svc.sock')
      expect((await ask(path, 'POST', '/v1/apikeys', { user: 'ada' })).status).toBe(201)
      const mine = { name: 'mine', value: 'of ada', scope: 'user', user: 'ada' }
      expect((await ask(path, 'PUT', '/v1/keys/mine', mine)).status).toBe(200)
      expect((await ask(path, 'GET', '/v1/keys/mine?user=ada')).body).toMatchObject({ value: 'of ada', user: 'ada' })
      // By the port it stays what it was: nobody but the user himself.
      expect((await server.call('GET', '/v1/keys/mine?user=ada')).status).toBe(403)
      expect((await server.call('PUT', '/v1/keys/mine', mine)).status).toBe(403)
    }))

  test('it has a path of any length, takes the place of what a killed server has left, and goes with the server', async () => {
    const basePath = join(newFolder(), 'long'.repeat(40))
    mkdirSync(basePath)
    const killed = await startServer({ basePath })
    await killed.stop('SIGKILL')
    const path = join(basePath, 'svc.sock')
    expect(existsSync(path)).toBe(true)
    expect(readRunFile(basePath)).toBeUndefined()

    const server = await createTestApp({ basePath })
    const folder = await openFolder(basePath)
    try {
      expect((await ask(join(folder.path, 'svc.sock'), 'GET', '/v1/')).status).toBe(200)
    } finally {
      await folder.release()
    }
    expect(statSync(join(basePath, 'svc.run')).mode & 0o777).toBe(0o644)
    expect(readRunFile(basePath)).toMatchObject({ pid: process.pid, urls: server.urls })
    await server.stop()
    expect(existsSync(path)).toBe(false)
    expect(existsSync(join(basePath, 'svc.run'))).toBe(false)
  })

  fullOnly(test)('a second server with a database elsewhere does not take it away', () =>
    withApp({}, async (server) => {
      const { basePath } = server
      const second = { basePath, settings: { 'database.path': join(newFolder(), 'svc.db') } }
      await expect(createTestApp(second)).rejects.toThrow(`is in use by another running server, process ${process.pid}`)
      expect(readRunFile(basePath)).toMatchObject({ pid: process.pid })
      expect((await ask(join(basePath, 'svc.sock'), 'GET', '/v1/')).status).toBe(200)
    }),
  )

  fullOnly(test)('a connection on which nothing comes does not hold up the end of the server', async () => {
    const server = await startServer()
    const silent = connect(join(server.basePath, 'svc.sock'))
    silent.on('error', () => undefined)
    await once(silent, 'connect')
    expect(await server.stop()).toEqual({ code: 0, signal: null })
    silent.destroy()
  })

  test('a run file that tells of another process with the same pid is not believed', () => {
    const folder = newFolder()
    expect(readRunFile(folder)).toBeUndefined()
    for (const content of [
      '',
      '[]',
      'null',
      '{"pid": -1}',
      JSON.stringify({ pid: process.pid, process_start_time: 1 }),
    ]) {
      writeFileSync(join(folder, 'svc.run'), content)
      expect(readRunFile(folder)).toBeUndefined()
    }
    expect(readFileSync(join(folder, 'svc.run'), 'utf8')).toContain('pid')
  })
})
