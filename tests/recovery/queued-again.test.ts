/** A server that is killed after it has taken an execution, and before the action begins. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { run, startServer, waitForStatus, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

let folder: TemporaryFolder
let server: TestServer

const pack = (): string => join(folder.path, 'packs', 'slow')

beforeAll(async () => {
  folder = makeFolder()
  mkdirSync(join(pack(), 'actions'), { recursive: true })
  writeFileSync(
    join(pack(), 'pack.yaml'),
    'ref: slow\nname: slow\ndescription: x\nversion: 1.0.0\nauthor: x\nemail: a@b.c\n',
  )
  writeFileSync(
    join(pack(), 'actions', 'do.yaml'),
    'name: do\nrunner_type: python-script\nentry_point: do.py\nenabled: true\ndescription: x\nparameters: {}\n',
  )
  writeFileSync(
    join(pack(), 'actions', 'do.py'),
    'from svc.action import Action\n\n\nclass Do(Action):\n    def run(self):\n        return 1\n',
  )
  // Python waits at its start for as long as the fifo has no writer.
  execFileSync('mkfifo', [join(folder.path, 'gate')])
  const python = execFileSync('sh', ['-c', 'command -v python3'], { encoding: 'utf8' }).trim()
  const wrapper = join(folder.path, 'python')
  writeFileSync(
    wrapper,
    `#!/bin/sh\necho asked >> ${folder.path}/asked\nread line < ${folder.path}/gate\nexec ${python} "$@"\n`,
  )
  chmodSync(wrapper, 0o755)
  server = await start(wrapper)
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

const start = (python: string): Promise<TestServer> =>
  startServer({ basePath: folder.path, settings: { 'actionrunner.python_binary': python, 'log.level': 'WARNING' } })

test('the execution is queued again and runs once', async () => {
  const { id } = await run(server, {}, { action: 'slow.do' })
  await waitFor('the interpreter to be asked for', () => {
    try {
      return readFileSync(join(folder.path, 'asked'), 'utf8') !== ''
    } catch {
      return false
    }
  })
  await waitForStatus(server, id, ['running'])
  await server.stop('SIGKILL')
  server = await start('')
  const ended = await waitForStatus(server, id)
  expect([ended.status, ended.result['result']]).toEqual(['succeeded', 1])
  const statuses = ended.log.map(({ status }) => status).join(' ')
  expect(statuses).toBe('requested scheduled running requested scheduled running succeeded')
  expect(server.log()).toContain('queued_again')
})

test('an execution whose command has begun is abandoned', async () => {
  const { id } = await run(server, { cmd: `echo begun >> ${folder.path}/begun; sleep 1000` })
  await waitFor('the command to begin', () => {
    try {
      return readFileSync(join(folder.path, 'begun'), 'utf8') === 'begun\n'
    } catch {
      return false
    }
  })
  await server.stop('SIGKILL')
  server = await start('')
  expect((await waitForStatus(server, id)).status).toBe('abandoned')
  expect(readFileSync(join(folder.path, 'begun'), 'utf8')).toBe('begun\n')
})
