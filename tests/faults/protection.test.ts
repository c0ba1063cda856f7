/** What protects the server from its actions, and its environment from them. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { countListening } from '../helpers/resources.ts'
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

test('SIGUSR1 opens no debugger', async () => {
  const before = countListening(server.pid)
  expect(before).toBeGreaterThan(0)
  for (let n = 0; n < 3; n++) process.kill(server.pid, 'SIGUSR1')
  await waitFor('an answer after the signals', async () => (await server.call('GET', '/healthz')).status === 200)
  expect([countListening(server.pid), server.log().includes('Debugger')]).toEqual([before, false])
})
