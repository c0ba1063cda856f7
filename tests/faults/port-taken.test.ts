/** Somebody else has a port: the start fails with a line that says which, and what waits is neither touched nor lost. */
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { findDamage, readRows } from '../helpers/audit.ts'
import { makeFolder } from '../helpers/folders.ts'
import { run, startServer, waitForStatus, type TestServer } from '../helpers/server.ts'

const folder = makeFolder()
let server: TestServer | undefined
afterEach(async () => {
  await server?.stop('SIGKILL')
  folder.remove()
})

describe('a port that is taken', () => {
  it('stops the start before anything is touched, whichever it is', async () => {
    const basePath = folder.path
    const pool = { 'actionrunner.actions_pool_size': '1' }
    server = await startServer({ basePath, settings: pool })
    const running = await run(server, { cmd: 'exec sleep 1000', timeout: 0 })
    await waitForStatus(server, running.id, ['running'])
    const waiting = await Promise.all([1, 2, 3].map((n) => run(server as TestServer, { cmd: `echo ${n}` })))
    await server.stop('SIGKILL')
    const before = [...readRows(basePath).values()]

    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo // a TCP server has one
    for (const name of ['auth', 'api', 'stream']) {
      const failure = await startServer({ basePath, settings: { ...pool, [`${name}.port`]: String(port) } }).then(
        () => undefined,
        (error: Error) => error.message,
      )
      expect(failure).toContain('before it was ready (1)')
      expect(failure).toContain(
        `svc: cannot start the server: ${name}.port: cannot listen on 127.0.0.1:${port} (the port is in use): process ${process.pid} (`,
      )
      expect(failure).toContain(`--${name}-port`)
      expect([...readRows(basePath).values()]).toEqual(before)
    }
    other.close()
    await once(other, 'close')

    server = await startServer({ basePath, settings: { ...pool, 'api.port': String(port) } })
    expect(server.urls.api).toBe(`http://127.0.0.1:${port}`)
    for (const { id } of waiting) expect(await waitForStatus(server, id)).toMatchObject({ status: 'succeeded' })
    expect(await waitForStatus(server, running.id)).toMatchObject({ status: 'abandoned' })
    const otherFolder = makeFolder()
    const second = await startServer({ basePath: otherFolder.path, settings: { 'api.port': String(port) } }).then(
      () => undefined,
      (error: Error) => error.message,
    )
    expect(second).toContain(`svc with the base path ${basePath} (process ${server.pid}) has it.`)
    otherFolder.remove()
    expect(await server.stop()).toEqual({ code: 0, signal: null })
    server = undefined
    expect(findDamage(basePath)).toEqual([])
  })
})
