/** Contract 03, 3.6 to 3.10 and 02, 2.10: actions that run on other hosts, through a real server and real SSH servers. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { markedProcesses } from '../helpers/marked-processes.ts'
import { createTestApp } from '../helpers/app.ts'
import { run, runToEnd, waitForStatus, type TestApp } from '../helpers/server.ts'
import { openEvents } from '../helpers/sse.ts'
import { makeSshSite, type Sshd, type SshSite } from '../helpers/sshd.ts'
import { waitFor } from '../helpers/wait.ts'
import { fullOnly } from '../helpers/tiers.ts'

let site: SshSite
let hosts: [Sshd, Sshd]
let both: string
let server: TestApp

beforeAll(async () => {
  site = await makeSshSite()
  const key = site.makeKey('id_allowed')
  hosts = await Promise.all([site.start(), site.start({ host: '127.0.0.2' })])
  both = hosts.map(({ address }) => address).join()
  server = await createTestApp({
    settings: {
      'system_user.user': site.user,
      'system_user.ssh_key_file': key.path,
      'ssh_runner.ssh_connect_timeout': '20',
    },
  })
})
afterAll(async () => {
  await server.stop()
  await site.stop()
})

const remote = { action: 'core.remote' }
const ended = (stdout: string) => ({ failed: false, succeeded: true, return_code: 0, stdout, stderr: '' })

it('03.9 core.remote: a result for each host, whose keys are kept', async () => {
  const execution = await runToEnd(
    server,
    { hosts: both, cmd: 'echo "$SVC_ACTION_EXECUTION_ID $SVC_ACTION_PACK_NAME"' },
    remote,
  )
  expect(execution.status).toBe('succeeded')
  const line = `${execution.id} core`
  expect(execution.result).toEqual({ '127.0.0.1': ended(line), '127.0.0.2': ended(line) })
  const known = readFileSync(join(server.basePath, 'known_hosts'), 'utf8')
  for (const { host, port } of hosts) expect(known).toContain(`[${host}]:${port} ssh-ed25519 `)
})

it('03.10 output of several hosts is on the streams while it is written, with the host that it comes from', async () => {
  const { id } = await run(server, { hosts: both, cmd: 'echo one; echo two >&2' }, remote)
  const client = await openEvents(`${server.urls.stream}/v1/executions/${id}/output`)
  expect(await client.ended).toBe('end')
  const records = client.frames
    .filter(({ event }) => event === 'svc.execution.output__create')
    .map(({ data }) => JSON.parse(data) as { output_type: string; data: string; host: string })
  for (const host of ['127.0.0.1', '127.0.0.2']) {
    const of = records.filter((record) => record.host === host)
    expect(of.filter((record) => record.output_type === 'stdout').map(({ data }) => data)).toEqual(['one\n'])
    expect(of.filter((record) => record.output_type === 'stderr').map(({ data }) => data)).toEqual(['two\n'])
  }
})

it('03.4 cancel: what runs on the other hosts is ended there', async () => {
  const { id } = await run(server, { hosts: both, cmd: 'setsid sleep 1000 & sleep 1000', timeout: 0 }, remote)
  await waitFor('the command', () => markedProcesses(id).length >= 2)
  await server.call('DELETE', `/v1/executions/${id}`)
  expect((await waitForStatus(server, id)).status).toBe('canceled')
  expect(markedProcesses(id)).toEqual([])
})

fullOnly(it)(
  '03.4 cancel of an ended run: what it has left on the other hosts is ended, with the login of the run',
  async () => {
    const { text } = site.makeKey('id_ended', { passphrase: 'open sesame' })
    const login = { private_key: text, passphrase: 'open sesame', background_grace_seconds: 0.1 }
    const cmd = 'sleep 1000 & nohup setsid sleep 1000 & echo started'
    const { id, status, result } = await runToEnd(server, { hosts: both, cmd, ...login }, remote)
    const left = [0, 1].map((n) => ({
      stdout: 'started',
      background: { message: expect.stringContaining('still running') as unknown },
      host: hosts[n]?.host,
    }))
    expect([status, result]).toMatchObject([
      'succeeded',
      Object.fromEntries(left.map(({ host, ...answer }) => [host, answer])),
    ])
    expect(markedProcesses(id)).toHaveLength(4)
    const answers = await Promise.all([1, 2].map(() => server.call('DELETE', `/v1/executions/${id}`)))
    expect(answers.map(({ body }) => body)).toMatchObject([{ status: 'succeeded' }, { status: 'succeeded' }])
    expect(markedProcesses(id)).toEqual([])
    expect((await server.call('DELETE', `/v1/executions/${id}`)).body).toMatchObject({
      faultstring: 'Action cannot be canceled. State = succeeded.',
    })
  },
)

it('03.4 cancel of an ended run: says which host cannot be reached', async () => {
  const gone = await site.start()
  const cmd = 'sleep 1000 & echo started'
  const parameters = { hosts: gone.address, cmd, background_grace_seconds: 0.1 }
  const { id } = await runToEnd(server, parameters, remote)
  await gone.stop()
  const { status, body } = await server.call('DELETE', `/v1/executions/${id}`)
  expect([status, body]).toMatchObject([
    200,
    { faultstring: expect.stringContaining('Could not stop all background processes. 127.0.0.1: ') as unknown },
  ])
  for (const pid of markedProcesses(id)) process.kill(pid, 'SIGKILL')
})

it('03.6 private_key and passphrase: used, and shown to nobody', async () => {
  const own = site.makeKey('id_locked', { passphrase: 'open sesame' })
  const parameters = { hosts: hosts[0].address, cmd: 'true', private_key: own.text, passphrase: 'open sesame' }
  const execution = await runToEnd(server, parameters, remote)
  expect(execution.status).toBe('succeeded')
  expect(execution.parameters).toMatchObject({ private_key: '********', passphrase: '********' })
})

it('03.8 time-out: status and result', async () => {
  const execution = await runToEnd(
    server,
    { hosts: hosts[0].address, cmd: 'echo before; sleep 1000', timeout: 3 },
    remote,
  )
  expect(execution.status).toBe('timeout')
  expect(execution.result['127.0.0.1']).toMatchObject({
    timeout: true,
    return_code: -9,
    stdout: 'before',
    error: 'Action failed to complete in 3 seconds',
  })
  expect(markedProcesses(execution.id)).toEqual([])
})

it('03.9 no host that can be reached, no host at all', async () => {
  const unreachable = await runToEnd(server, { hosts: '127.0.0.9:9', cmd: 'true' }, remote)
  expect(unreachable.status).toBe('failed')
  expect(unreachable.result).toEqual({
    error: expect.stringMatching(/^Unable to connect to any one of the hosts: \[127\.0\.0\.9\]/),
    traceback: expect.any(String),
  })
  const none = await runToEnd(server, { hosts: '', cmd: 'true' }, remote)
  expect(none.result['error']).toMatch(/^No hosts specified to run action/)
})

it('02.10 core.remote and core.remote_sudo do not let sudo be chosen', async () => {
  for (const action of ['core.remote', 'core.remote_sudo']) {
    const answer = await server.call('POST', '/v1/executions', {
      action,
      parameters: { hosts: both, cmd: 'true', sudo: false },
    })
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('sudo')])
  }
})

it('03.6 runner parameters of both runners', async () => {
  for (const name of ['remote-shell-cmd', 'remote-shell-script']) {
    const { body } = await server.call<{ runner_parameters: Record<string, Record<string, unknown>> }>(
      'GET',
      `/v1/runnertypes/${name}`,
    )
    const parameters = body.runner_parameters
    expect(parameters['hosts']).toMatchObject({ type: 'string', required: true })
    for (const secret of ['password', 'private_key', 'passphrase', 'sudo_password']) {
      expect(parameters[secret]).toMatchObject({ type: 'string', secret: true })
    }
    expect(parameters['parallel']).toMatchObject({ default: false, immutable: true })
    expect([parameters['dir']?.['default'], parameters['cwd']?.['default']]).toEqual(['/tmp', '/tmp'])
    expect(parameters['dir']?.['immutable'] === true).toBe(name === 'remote-shell-cmd')
    expect(parameters['timeout']).toMatchObject({ type: 'integer', default: 60 })
  }
})
