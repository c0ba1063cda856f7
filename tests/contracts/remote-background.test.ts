/** What becomes of processes that outlive a command on another host, and of what they write. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../src/core/ids.ts'
import { markedProcesses } from '../helpers/marked-processes.ts'
import { recordRun } from '../helpers/run-context.ts'
import { remoteRunners, runThere, type RemoteRunners, type RemoteSubject } from '../helpers/remote-runners.ts'
import { makeSshSite, type SshSite } from '../helpers/sshd.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

let site: SshSite
let made: RemoteRunners
let subject: RemoteSubject
let hosts: string

beforeAll(async () => {
  site = await makeSshSite()
  made = await remoteRunners(site, site.makeKey('id_allowed').path, 100_000)
  subject = await made.make()
  hosts = (await site.start()).address
})
afterAll(async () => {
  await made.stop()
  await site.stop()
})

/** Ends what a test has left behind. */
function endAll(executionId: string): void {
  for (const pid of markedProcesses(executionId)) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
}

interface Background {
  pids?: number[]
  stopped?: number
  message: string
}
const backgroundOf = (answer: Record<string, unknown>): Background | undefined =>
  answer['background'] as Background | undefined

/** Goes on until the file `go` exists, then writes more than a pipe holds, and the file `done`. */
function job(): { cmd: string; folder: string; go: string; done: string } {
  const folder = join(site.folder, newId())
  const [go, done] = [join(folder, 'go'), join(folder, 'done')]
  const text = `while [ ! -e ${go} ]; do sleep 0.05; done; yes | head -c 200000; echo late >&2; echo done > ${done}`
  return { cmd: `mkdir ${folder}; sh -c '${text}' & echo started`, folder, go, done }
}

describe.concurrent('output of processes that outlive a command', () => {
  test('is in the result while they write', async () => {
    const script =
      'exec > >(while read -r l; do echo "$l+"; done) 2>&1; for i in $(seq 300); do echo $i; done; echo all'
    const { status, answer } = await runThere(subject, { hosts, cmd: `bash -c '${script}'` })
    expect([status, answer['background']]).toEqual(['succeeded', undefined])
    expect(String(answer['stdout']).split('\n').at(-1)).toBe('all+')
    expect(String(answer['stdout']).split('\n')).toHaveLength(301)
  })

  test('is waited for while the own program of the command pauses', async () => {
    const cmd = `{ echo first; sleep 1.5; echo last; } 2>/dev/null | cat & (sleep 1.5; echo shell >&2) & echo main`
    const { status, answer } = await runThere(subject, { hosts, cmd, background_grace_seconds: 0.1 })
    expect([status, answer['background'], answer['stderr']]).toEqual(['succeeded', undefined, 'shell'])
    expect(String(answer['stdout']).split('\n').sort()).toEqual(['first', 'last', 'main'])
  })

  test('is not waited for while a program pauses that has subshells of its own', async () => {
    const cmd = `bash -c '(sleep 1000; :); :' & echo $!`
    const parameters = { hosts, cmd, background_grace_seconds: 0.1, timeout: 0 }
    const { context } = recordRun(parameters)
    const { status, answer } = await runThere(subject, parameters, { ...context })
    const pids = backgroundOf(answer)?.pids
    expect([status, pids?.length, pids?.includes(Number(answer['stdout']))]).toEqual(['succeeded', 3, true])
    endAll(context.executionId)
  })

  fullOnly(test)('is waited for up to the time limit, which is no time-out', async () => {
    const cmd = '(while :; do echo tick; sleep 0.2; done) & echo started'
    const { context } = recordRun({ hosts, cmd, timeout: 3 })
    const { status, result } = await subject.cmd.run(context)
    expect([status, JSON.stringify(result)]).toEqual([
      'succeeded',
      expect.stringContaining('still running in background'),
    ])
    endAll(context.executionId)
  })
})

describe.concurrent('processes that outlive a command', () => {
  test.each(['wait', 'detach'])('%s: go on when the run and its connection have ended', async (mode) => {
    const own = await made.make()
    const { cmd, go, done } = job()
    const { context } = recordRun({ hosts, cmd, background_jobs: mode })
    const { status, answer } = await runThere(own, context.runnerParameters, { ...context })
    const { pids, message } = backgroundOf(answer) ?? { message: '' }
    expect([status, answer['stdout'], message]).toEqual([
      'succeeded',
      'started',
      expect.stringMatching(/^still running in background: pid \d/),
    ])
    // Without the processes that pass their output on.
    const marked = markedProcesses(context.executionId)
    expect(pids?.filter((pid) => !marked.includes(pid) && existsSync(`/proc/${pid}`))).toEqual([])
    await own.runners.stop()
    await runThere(subject, { hosts, cmd: `touch ${go}` })
    // The shell creates the file before `echo` writes to it.
    await waitFor('the job to end by itself', () => existsSync(done) && readFileSync(done, 'utf8') === 'done\n')
    await waitFor('what passed its output on to end', () => markedProcesses(context.executionId).length === 0)
  })

  test('kill: are stopped, and counted', async () => {
    const { context } = recordRun({
      hosts,
      cmd: '(trap "" HUP; exec setsid sleep 1000) & echo started',
      background_jobs: 'kill',
    })
    const { status, answer } = await runThere(subject, context.runnerParameters, { ...context })
    expect([status, answer['stdout'], backgroundOf(answer)?.message]).toEqual([
      'succeeded',
      'started',
      expect.stringMatching(/^stopped in background: \d process/),
    ])
    expect(markedProcesses(context.executionId)).toEqual([])
  })

  test('are stopped by a cancel while svc waits for them', async () => {
    const abort = new AbortController()
    const cmd = '(while :; do echo tick; sleep 0.1; done) & echo $$ is over'
    const { context, output } = recordRun({ hosts, cmd }, { signal: abort.signal })
    const running = subject.cmd.run(context)
    await waitFor('the command to end', () => {
      const [, pid] = /^(\d+) is over$/m.exec(output.stdout) ?? []
      return pid !== undefined && !existsSync(`/proc/${pid}`) && markedProcesses(context.executionId).length > 0
    })
    abort.abort('cancel')
    await running
    expect(markedProcesses(context.executionId)).toEqual([])
  })

  fullOnly(test)('end with the connection while the command runs', async () => {
    const server = await site.start()
    const own = await made.make({}, [])
    const { context, output } = recordRun({ hosts: server.address, cmd: 'while echo tick; do sleep 0.1; done' })
    const running = own.cmd.run(context)
    await waitFor('the command', () => output.stdout.includes('tick'))
    await server.stop()
    await running
    await waitFor('the command to end by SIGPIPE', () => markedProcesses(context.executionId).length === 0)
  })

  fullOnly(test)('where the host has no mkfifo: are named, with what will happen', async () => {
    const bare = await site.start({ config: 'SetEnv PATH=/nonexistent SHLVL=1' })
    const cmd = 'export PATH=/usr/bin:/bin; sleep 1000 & echo started'
    const { context } = recordRun({ hosts: bare.address, cmd, background_jobs: 'detach' })
    const { answer } = await runThere(subject, context.runnerParameters, { ...context })
    expect([answer['stdout'], backgroundOf(answer)?.message]).toEqual(['started', expect.stringContaining('no mkfifo')])
    endAll(context.executionId)
  })
})
