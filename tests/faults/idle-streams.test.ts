/** Ten thousand streams on which nothing happens, and more of them than files can be opened for. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { findDamage } from '../helpers/audit.ts'
import { withFileLimit } from '../helpers/flood.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { countFiles, readMemory } from '../helpers/resources.ts'
import { projectRoot, run, runToEnd, startServer, waitForStatus, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

interface Seen {
  open: number
  refused: number
  cut: number
  bytes: number
}

interface Streams {
  seen(): Seen
  /** Closes all of them. */
  close(): Promise<void>
}

let folder: TemporaryFolder
let server: TestServer
const clients: ChildProcess[] = []

afterEach(async () => {
  for (const client of clients.splice(0)) client.kill('SIGKILL')
  await server.stop('SIGKILL')
  folder.remove()
})

/** In a process of their own, since they are as many files again. */
function openStreams(count: number, paths: readonly string[]): Streams {
  const program = join(projectRoot, 'tests', 'fixtures', 'idle-streams.mjs')
  const words = [process.execPath, program, new URL(server.urls.stream).port, String(count), ...paths]
  const client = spawn('/bin/sh', ['-c', 'ulimit -n $(ulimit -Hn); exec "$@"', 'sh', ...words], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  clients.push(client)
  let text = ''
  client.stdout.setEncoding('utf8').on('data', (part: string) => (text = (text + part).slice(-1000)))
  return {
    seen: () => JSON.parse(text.trim().split('\n').at(-1) || '{"open":0,"refused":0,"cut":0,"bytes":0}') as Seen, // as written there
    async close() {
      const ended = once(client, 'exit')
      client.stdin.end()
      await ended
    },
  }
}

describe('idle streams', () => {
  it('by the ten thousand are kept, and the server goes on as without', async () => {
    const count = 10_000
    folder = makeFolder()
    server = await startServer({ basePath: folder.path, settings: { 'stream.heartbeat': '3', 'log.level': 'ERROR' } })
    const waiting = await run(server, { cmd: `until [ -e ${folder.path}/go ]; do sleep 0.1; done`, timeout: 0 })
    await waitForStatus(server, waiting.id, ['running'])
    const [files, memory] = [countFiles(server.pid), readMemory(server.pid)]
    const streams = openStreams(count, [`/v1/executions/${waiting.id}/output`, '/v1/stream?events=svc.nothing'])
    await waitFor('all to be open', () => streams.seen().open === count, 300_000)
    const each = ((readMemory(server.pid) - memory) * 1024) / count
    console.log(`an idle stream takes ${each.toFixed(1)} KiB`)
    expect(each).toBeLessThan(100)

    const { bytes } = streams.seen()
    for (const n of [1, 2, 3])
      expect(await runToEnd(server, { cmd: `echo ${n}` })).toMatchObject({ status: 'succeeded' })
    await waitFor('heartbeats', () => streams.seen().bytes > bytes + count)
    expect(streams.seen()).toMatchObject({ open: count, refused: 0, cut: 0 })
    expect((await server.call('GET', '/v1/executions?limit=10')).status).toBe(200)

    await streams.close()
    await waitFor('all to be closed', () => countFiles(server.pid) <= files + 20)
    expect(await server.call('DELETE', `/v1/executions/${waiting.id}`)).toMatchObject({ status: 200 })
    expect(await server.stop()).toEqual({ code: 0, signal: null })
    expect(findDamage(folder.path)).toEqual([])
  })

  it('for which no files can be opened are refused, and leave room for requests', async () => {
    folder = makeFolder()
    server = await startServer({ basePath: folder.path, through: withFileLimit(1024) })
    const files = countFiles(server.pid)
    const streams = openStreams(2000, ['/v1/stream'])
    await waitFor('all to be answered', () => {
      const { open, refused, cut } = streams.seen()
      return open + refused + cut === 2000
    })
    const seen = streams.seen()
    expect(seen).toMatchObject({ cut: 0 })
    expect(seen.open).toBeGreaterThan(300)
    expect(await runToEnd(server, { cmd: 'echo 1' })).toMatchObject({ status: 'succeeded' })
    expect(streams.seen().open).toBe(seen.open)
    await streams.close()
    await waitFor('all to be closed', () => countFiles(server.pid) <= files + 20)
    const again = openStreams(10, ['/v1/stream'])
    await waitFor('room for streams', () => again.seen().open === 10)
    await again.close()
    expect(await server.stop()).toEqual({ code: 0, signal: null })
  })
})
