/** What load balancers and supervisors ask. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { askBySocket } from '../helpers/control-socket.ts'
import { withApp } from '../helpers/app.ts'
import { run, waitForStatus, startServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { makeFolder } from '../helpers/folders.ts'
import { send } from './support.ts'

test('10 health: every listener answers anybody, by whatever name it is called, without a word in the log', () =>
  withApp({ settings: { 'auth.enable': 'True', 'log.level': 'INFO' } }, async (server) => {
    const before = server.log()
    for (const url of Object.values(server.urls)) {
      for (const path of ['/healthz', '/readyz', '/readyz?verbose=1']) {
        const answer = await send(url, { path, headers: { Host: 'whatever.example.com' } })
        expect(answer.status).toBe(200)
        expect(JSON.parse(answer.text)).toEqual({ status: 'ok' })
        expect(answer.headers).toMatchObject({
          'cache-control': 'no-store',
          'content-type': 'application/json; charset=UTF-8',
        })
        const head = await send(url, { method: 'HEAD', path })
        expect([head.status, head.text, head.headers['content-length']]).toEqual([
          200,
          '',
          answer.headers['content-length'],
        ])
      }
      const posted = await send(url, { method: 'POST', path: '/readyz' })
      expect([posted.status, posted.headers['allow']]).toEqual([405, 'GET'])
    }
    expect(server.log()).toBe(before)
    // It has no version, and nothing below it.
    expect((await send(server.urls.api, { path: '/v1/healthz' })).status).toBe(404)
    expect((await send(server.urls.api, { path: '/healthz/x' })).status).toBe(404)
  }))

test('10 health: a server that stops is alive and not ready, until its last action has ended', async () => {
  const folder = makeFolder()
  const server = await startServer({
    basePath: folder.path,
    settings: { 'actionrunner.shutdown_grace_seconds': '600' },
  })
  try {
    const go = join(folder.path, 'go')
    const { id } = await run(server, { cmd: `until [ -e ${go} ]; do sleep 0.02; done` })
    await waitForStatus(server, id, ['running'])
    const socket = join(server.basePath, 'svc.sock')
    expect(await askBySocket(socket, 'GET', '/readyz')).toMatchObject({ status: 200, body: { status: 'ok' } })
    process.kill(server.pid, 'SIGTERM')
    const stopping = await waitFor('the server to be not ready', async () => {
      const answer = await askBySocket(socket, 'GET', '/readyz')
      return answer.status === 503 && answer
    })
    expect(stopping.body).toEqual({ status: 'unavailable', reasons: ['stopping'] })
    expect(await askBySocket(socket, 'GET', '/healthz')).toMatchObject({ status: 200, body: { status: 'ok' } })
    expect(await askBySocket(socket, 'GET', '/v1/executions')).toMatchObject({
      status: 503,
      body: { code: 'SHUTTING_DOWN' },
    })
    writeFileSync(go, '')
    expect(await server.exited).toEqual({ code: 0, signal: null })
  } finally {
    await server.stop('SIGKILL')
    folder.remove()
  }
})
