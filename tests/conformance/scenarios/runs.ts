/** Running actions, and what became of that. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Scenario } from '../../helpers/scenarios.ts'
import { run, runToEnd, waitForStatus, type TestApp } from '../../helpers/server.ts'
import { unknownId } from '../support.ts'

/** Where a run takes long, dots come, and how many depends on the machine. */
const withoutDots: NonNullable<Scenario['unstable']> = [[/^\.+\n/, '']]

export function runScenarios(server: TestApp): Scenario[] {
  const ended = async (cmd: string): Promise<string> => (await runToEnd(server, { cmd })).id
  const running = async (): Promise<string> => {
    const { id } = await run(server, { cmd: 'sleep 60' })
    await waitForStatus(server, id, ['running'])
    return id
  }
  const cancelAll = async (): Promise<void> => {
    const { body } = await server.call<{ id: string }[]>('GET', '/v1/executions?status=running')
    await Promise.all(body.map(({ id }) => server.call('DELETE', `/v1/executions/${id}`)))
  }
  /** Of a workflow that chooses between two ways. */
  const explained = async (): Promise<string> => {
    const content = `version: 1.0
input: [count]
tasks:
  look:
    action: core.local cmd="echo <% ctx(count) %>"
    next:
      - when: <% int(result().stdout) > 5 %>
        do: many
      - when: <% int(result().stdout) <= 5 %>
        publish: [{size: small}]
        do: few
  many: {action: core.noop}
  few: {action: core.local cmd="exit 1"}
`
    const file = 'workflows/choose.yaml'
    await server.call('POST', '/v1/actions', {
      name: 'choose',
      pack: 'default',
      runner_type: 'orquesta',
      entry_point: file,
      parameters: { count: { type: 'integer', default: 3 } },
      data_files: [{ file_path: file, content }],
    })
    const { body } = await server.call<{ id: string }>('POST', '/v1/executions', { action: 'default.choose' })
    await waitForStatus(server, body.id, ['failed'])
    return body.id
  }
  /** The first task of `gated` waits for this file. */
  const gate = (): string => join(server.basePath, 'gate')
  const waitingWorkflow = async (): Promise<string> => {
    rmSync(gate(), { force: true })
    const content = `version: 1.0
tasks:
  wait: {action: 'core.local cmd="until [ -e ${gate()} ]; do sleep 0.05; done"', next: [{do: last}]}
  last: {action: core.noop}
`
    const file = 'workflows/gated.yaml'
    const data = { name: 'gated', pack: 'default', runner_type: 'orquesta', entry_point: file }
    await server.call('POST', '/v1/actions', { ...data, data_files: [{ file_path: file, content }] })
    const { body } = await server.call<{ id: string }>('POST', '/v1/executions', { action: 'default.gated' })
    await waitForStatus(server, body.id, ['running'])
    return body.id
  }
  const pausedWorkflow = async (): Promise<string> => {
    const id = await waitingWorkflow()
    await server.call('PUT', `/v1/executions/${id}`, { status: 'pausing' })
    writeFileSync(gate(), '')
    await waitForStatus(server, id, ['paused'])
    return id
  }
  const scenarios: Scenario[] = [
    { command: 'pack search', about: 'no index', args: () => ['pack', 'search', 'network'] },
    { command: 'run', args: () => ['run', 'core.local', 'echo', 'hello'] },
    { command: 'run', about: 'failed', args: () => ['run', 'core.local', 'cmd=echo no >&2; exit 3'] },
    { command: 'run', about: 'one key', args: () => ['run', 'core.local', '-k', 'stdout', 'echo', 'hello'] },
    {
      command: 'run',
      about: 'JSON',
      args: () => ['run', '-j', '--attr', 'status', 'result.stdout', '--', 'core.local', 'echo', 'hello'],
    },
    { command: 'run', about: 'YAML', args: () => ['run', '-y', 'core.local', '-k', 'succeeded', 'true'] },
    { command: 'run', about: 'no such key', args: () => ['run', 'core.local', '-k', 'body', 'true'] },
    { command: 'run', about: 'unknown', args: () => ['run', 'core.nope'] },
    { command: 'run', about: 'wrong value', args: () => ['run', 'core.local', 'timeout=soon', 'cmd=true'] },
    { command: 'run', about: 'refused', args: () => ['run', 'core.local', 'depth=1', 'cmd=true'] },
    { command: 'run', about: 'without waiting', args: () => ['run', '-a', 'core.noop'] },
    { command: 'run', about: 'help of an action', args: () => ['run', 'core.local', '-h'] },
    {
      command: 'run',
      about: 'in a trace',
      args: () => ['run', '--trace-tag', 'release 7', 'core.noop', '--attr', 'status', 'context.trace_context'],
    },
    {
      command: 'run',
      about: 'in a trace, as StackStorm spells it',
      args: () => ['run', '--trace_tag', 'release 8', 'core.noop', '--attr', 'context.trace_context'],
    },
    { command: 'run', about: 'following', args: () => ['run', '--tail', 'core.local', 'echo one; exit 4'] },
    { command: 'run', about: 'with a schema', args: () => ['run', '--with-schema', 'core.local', 'echo', 'hello'] },
    { command: 'action execute', args: () => ['action', 'execute', 'core.local', 'cmd=true'] },
    { command: 'action execute', about: 'unknown', args: () => ['action', 'execute', 'core.nope'] },
    {
      command: 'execution list',
      before: async () => {
        await ended('echo one')
        await ended('exit 2')
      },
      args: () => ['execution', 'list', '-n', '2', '-a', 'id', 'action.ref', 'status', 'start_timestamp'],
    },
    { command: 'execution list', about: 'nothing', args: () => ['execution', 'list', '--action', 'core.nope'] },
    {
      command: 'execution list',
      about: 'JSON',
      before: () => ended('echo one'),
      args: () => ['execution', 'list', '-n', '1', '-j', '-a', 'id', 'status', 'action.ref'],
    },
    {
      command: 'execution grep',
      before: async () => {
        await ended('echo "a tree"; echo "the NEEDLE in it"')
        await ended('printf "\\033[1mneedle\\033[0m %% _\\n"; sleep 0.1; echo "needle again" >&2; exit 2')
      },
      args: () => ['execution', 'grep', '-i', 'needle', '--action', 'core.local', '-n', '2'],
    },
    { command: 'execution grep', about: 'nothing', args: () => ['execution', 'grep', 'nowhere at all'] },
    {
      command: 'execution grep',
      about: 'JSON',
      before: () => ended('echo a needle as JSON'),
      args: () => ['execution', 'grep', '-j', 'needle as JSON', '--lines', '1', '--since', '1h'],
    },
    {
      command: 'execution grep',
      about: 'count',
      before: () => ended('echo a needle to be counted'),
      args: () => ['execution', 'grep', '-c', 'needle to be counted'],
    },
    {
      command: 'execution grep',
      about: 'no time',
      args: () => ['execution', 'grep', 'x', '--since', 'yesterday'],
    },
    { command: 'execution get', args: async () => ['execution', 'get', await ended('echo hello')] },
    {
      command: 'execution get',
      about: 'several',
      args: async () => [
        'execution',
        'get',
        await ended('exit 2'),
        unknownId,
        'last',
        '-a',
        'status',
        'result.return_code',
      ],
    },
    {
      command: 'execution get',
      about: 'following',
      args: async () => [
        'execution',
        'get',
        '--tail',
        '--auto-dict',
        '--delay',
        '5',
        await ended('echo hello'),
        '-a',
        'status',
      ],
    },
    { command: 'execution cancel', args: async () => ['execution', 'cancel', await running()] },
    {
      command: 'execution cancel',
      about: 'several',
      args: async () => ['execution', 'cancel', await ended('true'), unknownId, await running()],
    },
    { command: 'execution re-run', args: async () => ['execution', 're-run', await ended('echo again')] },
    {
      command: 'execution re-run',
      about: 'otherwise',
      args: async () => ['execution', 're-run', await ended('echo again'), '-k', 'stdout', 'cmd=echo otherwise'],
    },
    { command: 'execution re-run', about: 'unknown', args: () => ['execution', 're-run', unknownId] },
    { command: 'execution pause', args: async () => ['execution', 'pause', await running()], before: cancelAll },
    {
      command: 'execution pause',
      about: 'several',
      args: async () => ['execution', 'pause', unknownId, await running(), await ended('true')],
    },
    { command: 'execution resume', args: async () => ['execution', 'resume', await running()] },
    { command: 'workflow explain', args: async () => ['workflow', 'explain', await explained()] },
    {
      command: 'workflow explain',
      about: 'no workflow',
      args: async () => ['workflow', 'explain', await ended('true')],
    },
    { command: 'execution explain', args: async () => ['execution', 'explain', '--task', 'few', 'last'] },
    {
      command: 'execution pause',
      about: 'a workflow, with chosen attributes',
      args: async () => ['execution', 'pause', await waitingWorkflow(), '-a', 'action.ref', 'status'],
    },
    {
      command: 'execution resume',
      about: 'a workflow, with chosen attributes',
      args: async () => ['execution', 'resume', await pausedWorkflow(), '-j', '-a', 'action.ref', 'status'],
    },
    { command: 'execution resume', about: 'unknown', args: () => ['execution', 'resume', unknownId] },
  ]
  return scenarios.map((scenario) => ({ ...scenario, unstable: [...withoutDots, ...(scenario.unstable ?? [])] }))
}
