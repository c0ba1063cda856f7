/** Contract 02 (2.10) and 03 (3.6 to 3.9): commands and scripts on Windows hosts, on a WinRM service of our own. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { runPowershell } from '../helpers/fake-powershell.ts'
import { startFakeWinrm, type FakeWinrm } from '../helpers/fake-winrm.ts'
import { makeFolder } from '../helpers/folders.ts'
import { runToEnd, waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

const base = makeFolder()
const pack = join(base.path, 'packs/windows')
const PASSWORD = 'Pa$$wörd'
let fake: FakeWinrm
let texts: string[]
let server: TestApp

const SCRIPT = 'echo "one $0"; for word in "$@"; do echo "$word"; done\n'

beforeAll(async () => {
  fake = await startFakeWinrm()
  texts = runPowershell(fake)
  mkdirSync(join(pack, 'actions'), { recursive: true })
  const write = (name: string, text: string): void => writeFileSync(join(pack, name), text)
  const git = (...args: string[]): unknown =>
    execFileSync('git', ['-C', pack, '-c', 'user.name=t', '-c', 'user.email=t@example.test', ...args])
  write('pack.yaml', 'name: windows\ndescription: x\nversion: 1.0.0\nauthor: t\nemail: t@example.test\n')
  write(
    'actions/job.yaml',
    'name: job\nrunner_type: winrm-ps-script\nentry_point: job.ps1\nparameters:\n' +
      '  Name: {type: string}\n  Force: {type: boolean, default: true}\n  Unset: {type: string}\n' +
      '  pin: {type: string, secret: true}\n  items: {type: array, position: 0}\n',
  )
  write('actions/job.ps1', SCRIPT.replace('one', 'zero'))
  git('init', '-q', '-b', 'main')
  git('add', '-A')
  git('commit', '-qm', 'x')
  git('tag', 'v0')
  write('actions/job.ps1', SCRIPT)
  server = await createTestApp({ basePath: base.path })
  const { status, text } = await server.call('POST', '/v1/packs/register', { packs: ['windows'] })
  if (status !== 200) throw new Error(text)
})
afterAll(async () => {
  await server.stop()
  await fake.stop()
  base.remove()
})

const login = (): Record<string, unknown> => ({
  host: '127.0.0.1',
  port: fake.port,
  scheme: 'http',
  username: 'admin',
  password: PASSWORD,
})

function run(action: string, parameters: Record<string, unknown>): Promise<ExecutionAnswer> {
  return runToEnd(server, { ...login(), ...parameters }, { action })
}

it.each([
  ['core.winrm_cmd', 'echo "hi & bye"; echo wrong >&2; exit 3', 'wrong'],
  ['core.winrm_ps_cmd', 'echo "hi & bye"; echo wrong >&2; exit 3', 'wrong'],
])('02.10 %s has the result of a local command, and records of its output', async (action, cmd, stderr) => {
  const { id, status, result } = await run(action, { cmd })
  expect([status, result]).toEqual([
    'failed',
    { failed: true, succeeded: false, return_code: 3, stdout: 'hi & bye', stderr },
  ])
  const output = await server.call('GET', `/v1/executions/${id}/output?output_type=stdout`)
  expect(output.text).toBe('hi & bye\n')
})

it('03.6 the runners have the parameters of the contract', async () => {
  for (const name of ['winrm-cmd', 'winrm-ps-cmd', 'winrm-ps-script']) {
    const { body } = await server.call<{ runner_parameters: Record<string, unknown> }>('GET', `/v1/runnertypes/${name}`)
    const { cmd, ...others } = body.runner_parameters
    expect(cmd === undefined).toBe(name === 'winrm-ps-script')
    expect(others).toMatchObject({
      host: { type: 'string', required: true },
      username: { type: 'string', required: true },
      password: { type: 'string', required: true, secret: true },
      port: { type: 'integer', default: 5986 },
      scheme: { default: 'https' },
      transport: { default: 'ntlm' },
      timeout: { default: 60 },
      kwarg_op: { default: '-' },
      cwd: { type: 'string' },
      env: { type: 'object' },
      verify_ssl_cert: { type: 'boolean', default: true },
    })
  }
})

it('03.6 a script of a pack gets the parameters of its action, named and by position', async () => {
  const { status, result } = await run('windows.job', { Name: `"$(x)" ’'`, items: ['a b', 1, null] })
  expect([status, result['stdout']]).toEqual([
    'succeeded',
    ['one sh', '-Name', `"$(x)" ’'`, '-Force:', 'true', '["a b",1,null]'].join('\n'),
  ])
})

it('03.6 a script runs as of another revision of its pack', async () => {
  const { result } = await run('windows.job', { content_version: 'v0', Force: false })
  expect(result['stdout']).toBe('zero sh\n-Force:\nfalse')
})

it('03.10 secrets are masked, and on no command line of the host', async () => {
  const { id } = await run('windows.job', { pin: 'hunter22', Force: null })
  const { text } = await server.call('GET', `/v1/executions/${id}`)
  const output = await server.call('GET', `/v1/executions/${id}/output`)
  expect(texts.at(-1)).toContain("-pin 'hunter22'")
  for (const seen of [text, output.text, ...fake.lines, ...fake.lines.map((line) => decoded(line))]) {
    expect(seen).not.toContain('hunter22')
    expect(seen).not.toContain(PASSWORD)
  }
  expect(output.text).toContain('-pin\n')
})

const decoded = (line: string): string => Buffer.from(line.split(' ').at(-1) ?? '', 'base64').toString('utf16le')

it('03.4 and 03.8: what is canceled or has no more time leaves no shell on the host', async () => {
  const late = await run('core.winrm_ps_cmd', { cmd: 'echo before; sleep 600', timeout: 1 })
  expect([late.status, late.result]).toEqual([
    'timeout',
    {
      failed: true,
      succeeded: false,
      return_code: -9,
      stdout: 'before',
      stderr: '',
      error: 'Action failed to complete in 1 seconds',
    },
  ])
  const parameters = { ...login(), cmd: 'echo before; sleep 600' }
  const { body } = await server.call<ExecutionAnswer>('POST', '/v1/executions', {
    action: 'core.winrm_ps_cmd',
    parameters,
  })
  await waitFor('the command', () => fake.shells.size === 1 && fake.actions.at(-1) === 'Receive')
  await server.call('DELETE', `/v1/executions/${body.id}`)
  expect((await waitForStatus(server, body.id)).status).toBe('canceled')
  expect(fake.actions.slice(-2)).toEqual(['Signal', 'Delete'])
  expect(fake.shells.size).toBe(0)
})
