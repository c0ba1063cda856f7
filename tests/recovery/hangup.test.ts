/** SIGHUP: files are read again, unless it means that the terminal of the server has gone. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { readRows } from '../helpers/audit.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { isRunning, markedProcesses } from '../helpers/marked-processes.ts'
import { run, startServer, waitForStatus, type ServerOptions, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

const SCRIPT = '/usr/bin/script'
const RELOADED = 'event=server.reloading'

let folder: TemporaryFolder
let server: TestServer | undefined

beforeAll(() => ensureDebianPackage('bsdutils', SCRIPT), 120_000)
beforeEach(() => {
  folder = makeFolder()
})
afterEach(async () => {
  for (const pid of markedProcesses(folder.path)) kill(pid, 'SIGKILL')
  await server?.stop('SIGKILL')
  server = undefined
  folder.remove()
})

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended already.
  }
}

async function start(through?: ServerOptions['through']): Promise<TestServer> {
  server = await startServer({
    basePath: folder.path,
    settings: { 'actionrunner.shutdown_grace_seconds': '0' },
    ...(through === undefined ? {} : { through }),
  })
  return server
}

const quoted = (command: string[]): string => command.map((word) => `'${word}'`).join(' ')

/** Runs a shell command in a terminal of its own, which is closed when `script` ends. */
const inTerminal =
  (line: (command: string) => string) =>
  (command: string[]): [string, ...string[]] => [SCRIPT, '-qefc', line(quoted(command)), '/dev/null']

/**
 * The process that has the port, not one that it was started through. A command that it starts looks like it for a moment,
 * until the program of the command has taken its place.
 */
function serverPid(): Promise<number> {
  return waitFor('the server to be the only one of its kind', () => {
    const pids = markedProcesses(join(folder.path, 'test.conf')).filter((pid) => {
      const [program = ''] = commandLine(pid).split('\0')
      return program === process.execPath
    })
    return pids.length === 1 && pids[0]
  })
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
  } catch {
    return ''
  }
}

async function isAnswering(): Promise<boolean> {
  const answer = await server?.call('GET', '/v1/executions?limit=1')
  return answer?.status === 200
}

describe('without a terminal', () => {
  it('files are read again, as often as it is asked for, and the server goes on', async () => {
    const started = await start()
    for (let times = 1; times <= 3; times += 1) {
      process.kill(started.pid, 'SIGHUP')
      await waitFor('the reload', () => started.log().split(RELOADED).length > times)
    }
    expect(await isAnswering()).toBe(true)
  })

  it('SIGTERM still stops it after that', async () => {
    const started = await start()
    process.kill(started.pid, 'SIGHUP')
    await waitFor('the reload', () => started.log().includes(RELOADED))
    expect(await server?.stop('SIGTERM')).toEqual({ code: 0, signal: null })
    server = undefined
  })
})

describe('in a terminal', () => {
  it('that is there: files are read again', async () => {
    const started = await start(inTerminal((command) => `exec ${command}`))
    process.kill(await serverPid(), 'SIGHUP')
    await waitFor('the reload', () => started.printed().includes(RELOADED))
    expect(await isAnswering()).toBe(true)
  })

  it.each([
    ['the server is what the terminal was opened for', (command: string) => `exec ${command}`],
    ['the server runs in a shell', (command: string) => `${command}; true`],
  ])('that is closed: the server stops in order (%s)', async (_what, line) => {
    const started = await start(inTerminal(line))
    const { id } = await run(started, { cmd: 'sleep 1000', timeout: 0 })
    await waitForStatus(started, id, ['running'])
    const pid = await serverPid()
    await started.stop('SIGKILL')
    await waitFor('the end of the server', () => !isRunning(pid))
    expect(readRows(folder.path).get(id)?.status).toBe('abandoned')
  })

  it('whose shell is killed: the server stops in order', async () => {
    const started = await start(inTerminal((command) => `echo "shell $$"; ${command}; true`))
    const shell = Number(/shell (\d+)/.exec(started.printed())?.[1])
    const { id } = await run(started, { cmd: 'sleep 1000', timeout: 0 })
    await waitForStatus(started, id, ['running'])
    const pid = await serverPid()
    process.kill(shell, 'SIGKILL')
    await waitFor('the end of the server', () => !isRunning(pid))
    expect(readRows(folder.path).get(id)?.status).toBe('abandoned')
  })

  it('that is closed, under nohup: the server goes on', async () => {
    const output = join(folder.path, 'nohup.out')
    // What it prints goes to a file; it is shown here so that the test finds the addresses.
    const started = await start(
      inTerminal((command) => `nohup ${command} & tail --pid=$! -n +1 -F '${output}' 2>/dev/null`),
    )
    const pid = await serverPid()
    await started.stop('SIGKILL')
    process.kill(pid, 'SIGHUP')
    await waitFor('the reload', () => readFileSync(output, 'utf8').includes(RELOADED))
    expect(await isAnswering()).toBe(true)
  })
})
