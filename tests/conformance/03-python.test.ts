/** Contract 03, 3.9 (python-script), and the Python actions of contract 02, 2.10, as a server runs them. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createRunners, type Runners } from '../../src/runners/index.ts'
import { createLauncher } from '../../src/runners/process/create-launcher.ts'
import type { Launcher } from '../../src/runners/process/launcher.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { isRunning } from '../helpers/marked-processes.ts'
import { recordRun } from '../helpers/run-context.ts'
import { createTestApp } from '../helpers/app.ts'
import { type ExecutionAnswer, finalStatuses, type TestApp, startServer } from '../helpers/server.ts'
import { fullOnly, variants } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { action } from '../helpers/python-actions.ts'

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-([14])[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/

describe.each(variants([true, false]))('with authentication %s', (isAuthOn) => {
  let server: TestApp
  let headers: Record<string, string> = {}
  let launcher: Launcher
  let runners: Runners
  let folder: TemporaryFolder

  beforeAll(async () => {
    server = await createTestApp({
      settings: { 'auth.enable': isAuthOn ? 'True' : 'False', 'auth.mode': 'standalone' },
    })
    if (isAuthOn) headers = await signIn(server, 'admin', firstPassword(server.basePath))
    folder = makeFolder()
    ;({ launcher } = await createLauncher())
    runners = await createRunners({
      launcher,
      maxResultBytes: 100_000,
      basePath: folder.path,
      systemUser: 'svc-no-such-account',
      python: { maxPageSize: 2 },
    })
  })
  afterAll(async () => {
    await server.stop()
    await runners.stop()
    await launcher.stop()
    folder.remove()
  })

  async function run(ref: string, parameters: Record<string, unknown>): Promise<ExecutionAnswer> {
    const body = { action: ref, parameters }
    const answer = await server.call<ExecutionAnswer>('POST', '/v1/executions', body, headers)
    if (answer.status !== 201) throw new Error(`not accepted (${answer.status}): ${answer.text}`)
    return answer.body
  }

  async function runToEnd(ref: string, parameters: Record<string, unknown> = {}): Promise<ExecutionAnswer> {
    const { id } = await run(ref, parameters)
    return await waitFor(`the end of ${ref}`, async () => {
      const { body } = await server.call<ExecutionAnswer>('GET', `/v1/executions/${id}`, undefined, headers)
      return finalStatuses.includes(body.status) && body
    })
  }

  it('02.10 core.uuid', async () => {
    const [first, second] = await Promise.all([runToEnd('core.uuid'), runToEnd('core.uuid', { uuid_type: 'uuid1' })])
    for (const [execution, version] of [
      [first, '4'],
      [second, '1'],
    ] as const) {
      expect(execution.status).toBe('succeeded')
      expect(execution.result).toEqual({
        stdout: '',
        stderr: '',
        exit_code: 0,
        result: expect.stringMatching(uuidPattern),
      })
      expect(uuidPattern.exec(String(execution.result['result']))?.[1]).toBe(version)
    }
    expect(
      (await server.call('POST', '/v1/executions', { action: 'core.uuid', parameters: { uuid_type: 'x' } }, headers))
        .status,
    ).toBe(400)
  })

  it('02.10 core.pause', async () => {
    const [exact, random, wrong] = await Promise.all([
      runToEnd('core.pause', { max_pause: 1 }),
      runToEnd('core.pause', { max_pause: 1, random: true }),
      runToEnd('core.pause', { max_pause: -1 }),
    ])
    expect([exact.status, exact.result['result']]).toEqual(['succeeded', 1])
    expect(exact.elapsed_seconds).toBeGreaterThanOrEqual(1)
    expect(exact.result['stderr']).toMatch(/^svc\.actions\.python\.Pause: DEBUG    .*\n$/)
    expect([random.status, Number(random.result['result']) <= 1]).toEqual(['succeeded', true])
    expect([wrong.status, wrong.result['result']]).toEqual(['failed', 'None'])
    expect((await server.call('POST', '/v1/executions', { action: 'core.pause' }, headers)).status).toBe(400)
  })

  it('03.8 python-script: a time limit and a cancel end it', async () => {
    const timed = await runToEnd('core.pause', { max_pause: 1000, timeout: 1 })
    expect([timed.status, timed.result]).toMatchObject([
      'timeout',
      { exit_code: -9, result: 'None', error: 'Action failed to complete in 1 seconds' },
    ])
    const { id } = await run('core.pause', { max_pause: 1000 })
    await waitFor('it to run', async () => {
      const { body } = await server.call<ExecutionAnswer>('GET', `/v1/executions/${id}`, undefined, headers)
      return body.status === 'running'
    })
    expect((await server.call('DELETE', `/v1/executions/${id}`, undefined, headers)).status).toBe(200)
    await waitFor('its end', async () => {
      const { body } = await server.call<ExecutionAnswer>('GET', `/v1/executions/${id}`, undefined, headers)
      return body.status === 'canceled'
    })
  })

  it('02.10 core.inject_trigger', async () => {
    const type = { name: 'injected', pack: 'mine', payload_schema: { type: 'object' } }
    expect((await server.call('POST', '/v1/triggertypes', type, headers)).status).toBe(201)
    const rule = {
      name: 'on_injected',
      pack: 'mine',
      enabled: true,
      trigger: { type: 'mine.injected' },
      action: { ref: 'core.noop', parameters: {} },
    }
    expect((await server.call('POST', '/v1/rules', rule, headers)).status).toBe(201)
    const [plain, older, both, neither, foreign] = await Promise.all([
      runToEnd('core.inject_trigger', { trigger_name: 'mine.injected', payload: { a: 1 }, trace_tag: 'tag-of-mine' }),
      runToEnd('core.inject_trigger', { trigger: 'mine.injected' }),
      runToEnd('core.inject_trigger', { trigger_name: 'mine.injected', trigger: 'mine.injected' }),
      runToEnd('core.inject_trigger', { payload: {} }),
      runToEnd('core.inject_trigger', { trigger_name: 'mine.injected', trace_tag: '標' }),
    ])
    expect([plain, older, both, neither, foreign].map(({ status }) => status)).toEqual([
      'succeeded',
      'succeeded',
      'failed',
      'failed',
      'failed',
    ])
    expect(both.result['stderr']).toContain('not both')
    expect(neither.result['stderr']).toContain('"trigger_name" is missing')
    expect(foreign.result['stderr']).toContain('"trace_tag" can hold the characters of Latin-1 only')
    const path = '/v1/triggerinstances?trigger_type=mine.injected'
    const found = await waitFor('both events', async () => {
      const { body } = await server.call<{ payload: unknown }[]>('GET', path, undefined, headers)
      return body.length === 2 && body
    })
    expect(found.map(({ payload }) => payload)).toEqual(expect.arrayContaining([{ a: 1 }, {}]))
    const traces = await server.call<unknown[]>('GET', '/v1/traces?trace_tag=tag-of-mine', undefined, headers)
    expect(traces.body).toHaveLength(1)
  })

  /** Runs Python that has the server's API, as an action of the pack `mine`. */
  async function ask(body: string): Promise<unknown> {
    const runner = runners.list.find(({ definition }) => definition.name === 'python-script')
    if (runner === undefined) throw new Error('python-script is missing in the list')
    const token = headers['X-Auth-Token']
    const { context } = recordRun({}, { ...action(folder.path, body), pack: 'mine' })
    Object.assign(context.env, {
      SVC_ACTION_API_URL: `${server.urls.api}/v1`,
      ...(token === undefined ? {} : { SVC_ACTION_AUTH_TOKEN: token }),
    })
    const { status, result } = await runner.run(context)
    expect([status, result['stderr']]).toEqual(['succeeded', ''])
    return result['result']
  }

  it('03.9 action_service: keys, of the action and of the system', async () => {
    const found = await ask(`
s = self.action_service
out = [s.get_value("a"), s.delete_value("a"), s.set_value("a", 1), s.get_value("a"), s.set_value("ä/b:c?", "ü")]
s.set_value("plain", "system", local=False)
s.set_value("third", "3", ttl=1000)
out += [s.get_value("Example:a", local=False), s.get_value("mine.Example:a", local=False), s.get_value("ä/b:c?")]
out.append([[v.name, v.value] for v in s.list_values()])
out.append([v.name for v in s.list_values(limit=3)])
out.append([v.name for v in s.list_values(prefix="a")])
out.append([v.name for v in s.list_values(local=False, prefix="pl")])
out.append([v.name for v in s.list_values(limit=1, offset=1)])
out.append(s.delete_value("a"))
return out`)
    expect(found).toEqual([
      null,
      false,
      true,
      '1',
      true,
      null,
      '1',
      'ü',
      [
        ['a', '1'],
        ['third', '3'],
      ],
      ['a', 'third', 'ä/b:c?'],
      ['a'],
      ['plain'],
      ['third'],
      true,
    ])
  })

  it('03.9 action_service: secrets, the scope of the user, who is asking', async () => {
    const found = await ask(`
s = self.action_service
s.set_value("hidden", "s3cret", encrypt=True)
s.set_value("own", "mine", scope="user", local=False)
s.get_logger("other").debug
return [s.get_value("hidden") != "s3cret", s.get_value("hidden", decrypt=True), s.get_value("own", scope="user", local=False),
        s.get_value("own", local=False), s.get_user_info()["username"]]`)
    expect(found).toEqual([true, 's3cret', 'mine', null, isAuthOn ? 'admin' : 'svc'])
  })

  it('03.9 action_service: says why it was refused, and what it could not reach', async () => {
    const found = await ask(`
import os
from svc.action_service import ServiceError
said = []
for change in ({"scope": "nothing"}, {}):
    try:
        self.action_service.get_value("a", **change)
    except ServiceError as error:
        said.append([error.status, str(error)])
    os.environ["SVC_ACTION_API_URL"] = "http://127.0.0.1:1/v1"
return said`)
    expect(found).toEqual([
      [400, expect.stringMatching(/GET \/keys\/.*: the server answered 400: .*nothing/)],
      [null, expect.stringMatching(/could not reach the server/)],
    ])
  })

  fullOnly(it)('leaves no interpreter behind when the server is killed', async () => {
    const other = await startServer()
    await other.call('POST', '/v1/executions', { action: 'core.uuid' })
    const children = await waitFor('interpreters that wait', () => {
      const found = interpretersOf(other.pid)
      return found.length >= 2 && found
    })
    await other.stop('SIGKILL')
    expect(await waitFor('their ends', () => !children.some(isRunning))).toBe(true)
  })
})

function interpretersOf(server: number): number[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      const parent = readFileSync(join('/proc', name, 'stat'), 'latin1')
        .split(') ')[1]
        ?.split(' ')[1]
      const commandLine = readFileSync(join('/proc', name, 'cmdline'), 'latin1')
      return parent === String(server) && commandLine.includes('/python/lib/start.py') ? [Number(name)] : []
    } catch {
      return []
    }
  })
}
