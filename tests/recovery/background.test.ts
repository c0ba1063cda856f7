/** Processes that outlive their runs, when the server is stopped, killed and started again. */
import { execFileSync } from 'node:child_process'
import { appendFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { isRunning, markedProcesses } from '../helpers/marked-processes.ts'
import { run, runToEnd, startServer, waitForStatus, type ExecutionAnswer, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { fullOnly } from '../helpers/tiers.ts'

let folder: TemporaryFolder
let server: TestServer
const settings = { 'actionrunner.background_grace_seconds': '0.2', 'log.level': 'WARNING' }

beforeAll(async () => {
  folder = makeFolder()
  server = await startServer({ basePath: folder.path, settings })
})
afterAll(async () => {
  await server.stop()
  for (const pid of markedProcesses(folder.path)) process.kill(pid, 'SIGKILL')
  folder.remove()
})

async function restart(signal: NodeJS.Signals): Promise<void> {
  await server.stop(signal)
  server = await startServer({ basePath: folder.path, settings })
}

/** Leaves a process that waits for `go`, then writes more than a pipe holds. */
async function leave(name: string): Promise<{ id: string; pid: number; go(): void; done: string }> {
  const [fifo, done] = [join(folder.path, `${name}-go`), join(folder.path, `${name}-done`)]
  execFileSync('mkfifo', [fifo])
  const cmd = `sh -c 'read go < ${fifo}; head -c 200000 /dev/zero; echo more; echo done > ${done}' & echo $!`
  const { id, status, result } = await runToEnd(server, { cmd })
  const pid = Number(result['stdout'])
  const message = `still running in background: pid ${pid}`
  expect([status, result['background']]).toEqual(['succeeded', { pids: [pid], message }])
  return { id, pid, go: () => appendFileSync(fifo, '\n'), done }
}

fullOnly(test)('a process of an ended run outlives the server, and can still write', async () => {
  const jobs = [await leave('killed'), await leave('stopped')]
  await restart('SIGKILL')
  expect(jobs.map(({ pid }) => isRunning(pid))).toEqual([true, true])
  jobs[0]?.go()
  await waitFor('the end of the first', () => existsSync(jobs[0]?.done ?? ''))
  await restart('SIGTERM')
  jobs[1]?.go()
  await waitFor('the end of the second', () => existsSync(jobs[1]?.done ?? ''))
})

fullOnly(test)('a cancel of an ended run stops its process, also after a restart', async () => {
  const { id, pid } = await leave('canceled')
  await restart('SIGKILL')
  const answer = await server.call<ExecutionAnswer>('DELETE', `/v1/executions/${id}`)
  expect([answer.status, answer.body.status, isRunning(pid)]).toEqual([200, 'succeeded', false])
  const again = await server.call('DELETE', `/v1/executions/${id}`)
  expect(again.body).toMatchObject({ faultstring: 'Action cannot be canceled. State = succeeded.' })
})

test('a process of a run that still waits for it ends with the crash', async () => {
  // A fork of the command itself is waited for, however long it is silent.
  const cmd = `( while :; do echo ${folder.path}; sleep 0.05; done ) & echo main`
  const { id } = await run(server, { cmd })
  await waitFor('output of the process', async () => {
    const { text } = await server.call('GET', `/v1/executions/${id}/output`)
    return text.includes(`${folder.path}\n`)
  })
  await restart('SIGKILL')
  expect((await waitForStatus(server, id)).status).toBe('abandoned')
  expect(markedProcesses(id)).toEqual([])
})
