/** What protects the server from its actions, and its environment from them. */
import { readFileSync, readdirSync, readlinkSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runToEnd, startServer, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({
    settings: { 'actionrunner.pass_environment': 'PASSED_*' },
    env: { DATABASE_PASSWORD: 'secret', PASSED_ON: 'yes', TZ: 'UTC' },
  })
})
afterAll(() => server.stop())

test('the kernel takes an action before the server when memory runs out', async () => {
  const own = Number(readFileSync(`/proc/${server.pid}/oom_score_adj`, 'utf8'))
  const { result } = await runToEnd(server, { cmd: 'cat /proc/self/oom_score_adj' })
  expect(Number(result['stdout'])).toBe(Math.min(own + 500, 1000))
  expect(Number(readFileSync(`/proc/${server.pid}/oom_score_adj`, 'utf8'))).toBe(own)
})

test('an action gets those variables of the server that are named, and those that every program needs', async () => {
  const { result } = await runToEnd(server, { cmd: 'echo "[$DATABASE_PASSWORD] $PASSED_ON $TZ"' })
  expect(result['stdout']).toBe('[] yes UTC')
})

/** Inodes of the sockets of a process. */
function socketsOf(pid: number): Set<string> {
  const found = new Set<string>()
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    try {
      const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1]
      if (inode !== undefined) found.add(inode)
    } catch {
      // Closed in between.
    }
  }
  return found
}

function listening(pid: number): number {
  const sockets = socketsOf(pid)
  const rows = readFileSync(`/proc/${pid}/net/tcp`, 'utf8').trim().split('\n').slice(1)
  return rows.filter((row) => {
    const words = row.trim().split(/\s+/)
    return words[3] === '0A' && sockets.has(words[9] ?? '')
  }).length
}

test('SIGUSR1 opens no debugger', async () => {
  const before = listening(server.pid)
  expect(before).toBeGreaterThan(0)
  for (let n = 0; n < 3; n++) process.kill(server.pid, 'SIGUSR1')
  await waitFor('an answer after the signals', async () => (await server.call('GET', '/healthz')).status === 200)
  expect([listening(server.pid), server.log().includes('Debugger')]).toEqual([before, false])
})
