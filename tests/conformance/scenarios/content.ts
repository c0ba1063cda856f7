/** Actions, packs and what else is registered. */
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Scenario } from '../../helpers/scenarios.ts'
import { projectRoot, run, waitForStatus, type TestApp } from '../../helpers/server.ts'
import { unknownId } from '../support.ts'

const script = '#!/bin/sh\necho "hello $1"\n'
const greet = {
  name: 'greet',
  pack: 'default',
  description: 'Greets.',
  runner_type: 'local-shell-script',
  entry_point: 'greet.sh',
  parameters: { who: { type: 'string', required: true, position: 0 } },
}
const greetWithScript = { ...greet, data_files: [{ file_path: 'greet.sh', content: script }] }

const wrongWorkflow = `input: [target]
tasks:
  build:
    action: core.echoo
    next:
      - do: pubish
  publish:
    action: core.echo
    input: {message: <% ctx(target) %> <% ctx(version) %>}
`
const deploy = {
  name: 'deploy',
  pack: 'default',
  runner_type: 'local-shell-script',
  entry_point: 'deploy.yaml',
  parameters: { target: { type: 'string' } },
  data_files: [
    { file_path: 'deploy.yaml', content: 'input:\n  - target: here\ntasks:\n  build: {action: core.noop}\n' },
  ],
}

const flow = `input: [hosts, {tries: 1}]
tasks:
  build:
    action: ci.build
    retry: {count: <% ctx(tries) %>, delay: 5}
    next:
      - {when: <% succeeded() %>, publish: [{image: <% result().image %>}], do: [install, approve]}
      - {when: <% failed() %>, do: fail}
  install:
    with: h in <% ctx(hosts) %>
    action: ci.install host=<% item(h) %> image=<% ctx(image) %>
    next: [{do: announce}]
  approve: {action: core.ask, next: [{when: <% result().response.yes_please %>, do: announce}]}
  announce: {join: all, action: core.announcement}
output: [{image: <% ctx(image) %>}]
`
const flowMocks = `input: {hosts: [a, b]}
tasks:
  build: [{status: failed, result: {stderr: no space}}, {result: {image: i7}}]
  install: {result: {code: 0}, items: {1: {takes: 3}}}
  approve: {answer: {yes_please: true}}
expect:
  tasks: [build, approve, {task: install, runs: 2}, announce]
  output: {image: i7}
`

const hail = {
  name: 'hail',
  action_ref: 'core.echo',
  formats: ['hail {{ message }}'],
  ack: { format: 'Hailing.' },
  result: { format: 'Hailed: {{ execution.result.stdout }}' },
}

const oneDeploy = {
  name: 'one_deploy',
  resource_ref: 'core.local',
  policy_type: 'action.concurrency',
  parameters: { threshold: 1 },
}

/** Attributes of every kind that is asked for in its own way. */
const shopConfig = `region: {type: string, description: Where it is., required: true, enum: [north, south], default: north}
token: {type: string, description: What it signs in with., secret: true}
port: {type: integer, default: 8080, maximum: 65535}
account:
  type: object
  description: Who it is.
  properties:
    user: {type: string, required: true}
    password: {type: string, secret: true}
hosts:
  type: array
  description: Where it sells.
  items: {type: object, properties: {name: {type: string, required: true}, key: {type: string, secret: true}}}
labels: {type: object, additionalProperties: {type: string}}
`

const stockSensor = `class_name: StockSensor
entry_point: stock.py
description: Watches the stock.
enabled: false
poll_interval: 30
trigger_types: [{name: stock_low, description: Something runs out., payload_schema: {type: object}}]
`

const question = {
  type: 'object',
  properties: {
    go: { type: 'boolean', description: 'Whether to go on.', required: true },
    count: { type: 'integer', default: 3 },
    password: { type: 'string', secret: true },
  },
}

export function contentScenarios(server: TestApp): Scenario[] {
  const file = (name: string, text: string): string => {
    const path = join(server.basePath, 'files', name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
    return path
  }
  const call = async (method: string, path: string, body?: unknown): Promise<Record<string, unknown>> => {
    const { status, text, body: answer } = await server.call(method, `/v1${path}`, body)
    if (status >= 400 && status !== 404) throw new Error(`${method} ${path}: ${text}`)
    return answer
  }
  const testFlow = ['workflow', 'test']
  const flowFile = (): string => file('flow.yaml', flow)
  const noGreet = (): Promise<unknown> => call('DELETE', '/actions/default.greet', { remove_files: true })
  const newGreet = async (): Promise<unknown> => (await noGreet(), call('POST', '/actions', greetWithScript))
  const newDeploy = async (): Promise<unknown> => {
    await call('DELETE', '/actions/default.deploy', { remove_files: true })
    return call('POST', '/actions', deploy)
  }
  const noAlias = (): Promise<unknown> => call('DELETE', '/actionalias/default.hail')
  const newAlias = async (): Promise<unknown> => (await noAlias(), call('POST', '/actionalias', hail))
  const noPolicy = (): Promise<unknown> => call('DELETE', '/policies/default.one_deploy')
  const newPolicy = async (): Promise<unknown> => (await noPolicy(), call('POST', '/policies', oneDeploy))

  const manage = async (doing: 'install' | 'uninstall', pack: string, more = {}): Promise<unknown> => {
    const { execution_id: id } = await call('POST', `/packs/${doing}`, { packs: [pack], ...more })
    return waitForStatus(server, String(id), ['succeeded', 'failed'])
  }
  /** The folder of a pack that can be installed. */
  const source = (name: string, action = 'name: sell\nrunner_type: noop\n'): string => {
    file(`${name}/pack.yaml`, `name: ${name}\ndescription: Sells.\nversion: 1.2.0\nauthor: somebody\n`)
    file(`${name}/config.schema.yaml`, shopConfig)
    const folder = dirname(dirname(file(`${name}/actions/sell.yaml`, action)))
    cpSync(join(projectRoot, 'tests/fixtures/packs/everything/icon.png'), join(folder, 'icon.png'))
    return folder
  }
  const wrong = (): string => source('wrong', 'name: sell\nrunner_type: unheard-of\n')
  const newShop = async (): Promise<unknown> => {
    rmSync(join(server.basePath, 'configs', 'shop.yaml'), { force: true })
    return manage('install', source('shop'))
  }
  const newWatch = async (): Promise<unknown> => {
    const folder = source('watch')
    file(
      'watch/sensors/stock.py',
      'class StockSensor:\n    def __init__(self, *given): pass\n    def poll(self): pass\n',
    )
    file('watch/sensors/stock.yaml', stockSensor)
    return manage('install', folder)
  }
  const configuredShop = async (): Promise<unknown> => (
    await newShop(),
    call('PUT', '/configs/shop', { region: 'south', token: 's3cret', hosts: [{ name: 'fair', key: 'k3y' }] })
  )

  let asked = ''
  const ask = async (): Promise<void> => {
    const { id } = await run(server, { route: 'ops', users: ['svc'], schema: question }, { action: 'core.ask' })
    await waitForStatus(server, id, ['pending'])
    asked = id
  }
  const askAlone = async (): Promise<void> => {
    if (asked === '') await ask()
  }

  return [
    { command: 'action list', args: () => ['action', 'list', '-p', 'core', '-a', 'ref', 'runner_type'] },
    { command: 'action list', about: 'nothing', args: () => ['action', 'list', '-p', 'nope'] },
    { command: 'action list', about: 'truncated', args: () => ['action', 'list', '-n', '2', '-w', '20'] },
    { command: 'action list', about: 'as YAML', args: () => ['action', 'list', '-n', '1', '-y', '-a', 'ref,enabled'] },
    { command: 'action get', args: () => ['action', 'get', 'core.noop'] },
    { command: 'action get', about: 'unknown', args: () => ['action', 'get', 'core.nope', 'core.noop', '-a', 'ref'] },
    {
      command: 'action create',
      before: noGreet,
      args: () => ['action', 'create', file('greet.json', JSON.stringify(greetWithScript))],
    },
    {
      command: 'action create',
      about: 'exists already',
      before: newGreet,
      args: () => ['action', 'create', file('greet.json', JSON.stringify(greet))],
    },
    {
      command: 'action create',
      about: 'refused',
      args: () => ['action', 'create', file('greet.yaml', 'name: greet\nrunner_type: unheard-of\n')],
    },
    {
      command: 'action update',
      before: newGreet,
      args: () => [
        'action',
        'update',
        'default.greet',
        file('greet.json', JSON.stringify({ ...greet, description: 'Says hello.' })),
      ],
    },
    {
      command: 'action disable',
      before: newGreet,
      args: () => ['action', 'disable', 'default.greet', '-a', 'enabled'],
    },
    { command: 'action enable', args: () => ['action', 'enable', 'default.greet', '-j', '-a', 'enabled'] },
    { command: 'action enable', about: 'unknown', args: () => ['action', 'enable', 'default.nope'] },
    {
      command: 'action clone',
      before: async () => (await call('DELETE', '/actions/default.welcome', { remove_files: true }), newGreet()),
      args: () => ['action', 'clone', 'default.greet', 'default', 'welcome', '-a', 'ref,entry_point'],
    },
    {
      command: 'action clone',
      about: 'existing',
      args: () => ['action', 'clone', 'default.greet', 'default', 'welcome', '-a', 'ref'],
      typed: [['(y/n) [n]', 'y\r']],
    },
    {
      command: 'action clone',
      about: 'replaced',
      args: () => ['action', 'clone', 'default.greet', 'default', 'welcome', '--force', '-j', '-a', 'ref'],
    },
    {
      command: 'action clone',
      about: 'unknown',
      args: () => ['action', 'clone', 'default.nope', 'default', 'welcome'],
    },
    { command: 'action entry-point', before: newGreet, args: () => ['action', 'entry-point', 'default.greet'] },
    {
      command: 'action entry-point',
      about: 'that a terminal would obey',
      before: async () => {
        await noGreet()
        const content = '#!/bin/sh\nprintf "\u001b[31m"\r\n'
        await call('POST', '/actions', { ...greet, data_files: [{ file_path: 'greet.sh', content }] })
      },
      args: () => ['action', 'entry-point', 'default.greet'],
    },
    { command: 'action entry-point', about: 'none', args: () => ['action', 'entry-point', 'core.noop'] },
    { command: 'action entry-point', about: 'unknown', args: () => ['action', 'entry-point', 'core.nope'] },
    {
      command: 'workflow inspect',
      args: () => ['workflow', 'inspect', file('deploy.yaml', 'tasks:\n  build: {action: core.noop}\n')],
    },
    {
      command: 'workflow inspect',
      about: 'with mistakes',
      args: () => ['workflow', 'inspect', '--file', file('wrong.yaml', wrongWorkflow)],
    },
    {
      command: 'workflow inspect',
      about: 'as JSON',
      args: () => ['workflow', 'inspect', '-j', file('wrong.yaml', 'tasks:\n  build: {delay: -1}\n')],
    },
    {
      command: 'workflow inspect',
      about: 'unreadable',
      args: () => ['workflow', 'inspect', file('twice.yaml', 'tasks:\n  a: {delay: 1}\n  a: {delay: 2}\n')],
    },
    {
      command: 'workflow inspect',
      about: 'of an action',
      before: newDeploy,
      args: () => ['workflow', 'inspect', '--action', 'default.deploy'],
    },
    {
      command: 'workflow inspect',
      about: 'of an unknown action',
      args: () => ['workflow', 'inspect', '--action', 'core.nope'],
    },
    { command: 'workflow inspect', about: 'of nothing', args: () => ['workflow', 'inspect'] },
    { command: 'workflow test', args: () => [...testFlow, flowFile(), '--mock', file('mocks.yaml', flowMocks)] },
    {
      command: 'workflow test',
      about: 'not as expected',
      args: () => [...testFlow, flowFile(), '--input', 'hosts=["a"]', '--mock', file('mocks.yaml', flowMocks)],
    },
    {
      command: 'workflow test',
      about: 'without mocks, as YAML',
      args: () => [...testFlow, '-y', file('flow.yaml', 'tasks:\n  build: {action: core.noop}\n')],
    },
    {
      command: 'workflow test',
      about: 'a mock of no task',
      args: () => [...testFlow, flowFile(), '--mock', file('mocks.yaml', 'tasks:\n  biuld: failed\n')],
    },
    {
      command: 'workflow test',
      about: 'with warnings',
      args: () => [
        ...testFlow,
        file('flow.yaml', 'tasks:\n  build:\n    action: core.noop\n    next: [{when: succeeded(), do: noop}]\n'),
      ],
    },
    { command: 'workflow graph', args: () => ['workflow', 'graph', flowFile()] },
    {
      command: 'workflow graph',
      about: 'for Graphviz',
      args: () => ['workflow', 'graph', flowFile(), '--format', 'dot'],
    },
    {
      command: 'workflow graph',
      about: 'for Mermaid',
      args: () => ['workflow', 'graph', flowFile(), '--format', 'mermaid'],
    },
    {
      command: 'workflow graph',
      about: 'of an action, as JSON',
      before: newDeploy,
      args: () => ['workflow', 'graph', 'default.deploy', '-j'],
    },
    { command: 'workflow graph', about: 'of an unknown action', args: () => ['workflow', 'graph', 'core.nope'] },
    { command: 'workflow graph', about: 'of a missing file', args: () => ['workflow', 'graph', 'nope.yaml'] },
    { command: 'workflow test', about: 'with mistakes', args: () => [...testFlow, file('wrong.yaml', wrongWorkflow)] },

    { command: 'action delete', before: newGreet, args: () => ['action', 'delete', '-r', 'default.greet'] },
    { command: 'action delete', about: 'unknown', args: () => ['action', 'delete', 'default.greet'] },
    { command: 'action delete', about: 'refused', args: () => ['action', 'delete', 'core.noop'] },

    { command: 'runner list', args: () => ['runner', 'list'] },
    { command: 'runner get', args: () => ['runner', 'get', 'local-shell-cmd', '-a', 'name', 'enabled', 'uid'] },
    { command: 'runner get', about: 'unknown', args: () => ['runner', 'get', 'nope'] },
    { command: 'runner disable', args: () => ['runner', 'disable', 'announcement', '-a', 'name', 'enabled'] },
    { command: 'runner enable', args: () => ['runner', 'enable', 'announcement', '-y', '-a', 'name', 'enabled'] },

    {
      command: 'policy create',
      before: noPolicy,
      args: () => ['policy', 'create', file('one_deploy.json', JSON.stringify(oneDeploy))],
    },
    {
      command: 'policy list',
      before: newPolicy,
      args: () => ['policy', 'list', '-r', 'core.local', '-pt', 'action.concurrency', '-p', 'default'],
    },
    { command: 'policy get', args: () => ['policy', 'get', 'default.one_deploy'] },
    { command: 'policy get', about: 'unknown', args: () => ['policy', 'get', 'default.nope'] },
    {
      command: 'policy update',
      before: newPolicy,
      args: () => [
        'policy',
        'update',
        'default.one_deploy',
        file('one_deploy.json', JSON.stringify({ ...oneDeploy, parameters: { threshold: 2 } })),
        '-j',
      ],
    },
    { command: 'policy delete', before: newPolicy, args: () => ['policy', 'delete', 'default.one_deploy'] },
    { command: 'policy-type list', args: () => ['policy-type', 'list'] },
    { command: 'policy-type list', about: 'of nothing', args: () => ['policy-type', 'list', '-r', 'sensor'] },
    { command: 'policy-type get', args: () => ['policy-type', 'get', 'action.concurrency'] },

    { command: 'pack list', args: () => ['pack', 'list'] },
    { command: 'pack get', args: () => ['pack', 'get', 'core', 'nope', '-a', 'ref', 'version'] },
    {
      command: 'pack install',
      before: () => manage('uninstall', 'examples'),
      args: () => ['pack', 'install', 'examples'],
    },
    {
      command: 'pack install',
      about: 'several as JSON',
      before: () => manage('uninstall', 'shop'),
      args: () => ['pack', 'install', 'examples', source('shop'), '-j', '-a', 'ref,version'],
    },
    {
      command: 'pack install',
      about: 'one in detail',
      before: () => manage('uninstall', 'examples'),
      args: () => ['pack', 'install', 'examples', '-d', '-w', '40'],
      unstable: [[/\/tmp\/svc-test-\w{6}/, '/tmp/svc-test-000000']],
    },
    {
      command: 'pack install',
      about: 'several in narrow columns',
      before: () => manage('uninstall', 'shop'),
      args: () => ['pack', 'install', 'examples', source('shop'), '-w', '8', '4', '-a', 'ref', 'version', 'author'],
    },
    { command: 'pack install', about: 'unknown', args: () => ['pack', 'install', 'unheard_of'] },
    {
      command: 'pack install',
      about: 'with a problem',
      args: () => ['pack', 'install', wrong()],
    },
    {
      command: 'pack install',
      about: 'with a problem, by force',
      before: () => manage('uninstall', 'wrong'),
      args: () => ['pack', 'install', '--force', wrong()],
    },
    {
      command: 'pack register',
      before: () => manage('install', 'examples'),
      args: () => ['pack', 'register', 'examples'],
    },
    {
      command: 'pack register',
      about: 'with a problem',
      before: () => manage('install', wrong(), { force: true }),
      args: () => ['pack', 'register', 'wrong', '--types', 'action', 'rule'],
    },
    { command: 'pack register', about: 'unknown', args: () => ['pack', 'register', 'unheard_of'] },
    { command: 'pack search', args: () => ['pack', 'search', 'network'] },
    { command: 'pack search', about: 'nothing', args: () => ['pack', 'search', 'no', 'such', 'words', '-j'] },
    { command: 'pack show', args: () => ['pack', 'show', 'network'] },
    { command: 'pack show', about: 'unknown', args: () => ['pack', 'show', 'nope'] },
    { command: 'action-alias list', args: () => ['action-alias', 'list', '-p', 'examples'] },
    { command: 'action-alias get', args: () => ['action-alias', 'get', 'examples.greet'] },
    { command: 'action-alias get', about: 'unknown', args: () => ['action-alias', 'get', 'examples.nope'] },
    {
      command: 'action-alias create',
      before: noAlias,
      args: () => ['action-alias', 'create', file('hail.json', JSON.stringify(hail))],
    },
    {
      command: 'action-alias create',
      about: 'with a broken format',
      args: () => ['action-alias', 'create', file('bad.json', JSON.stringify({ ...hail, formats: ['hail {{ who'] }))],
    },
    {
      command: 'action-alias update',
      before: newAlias,
      args: () => ['action-alias', 'update', 'default.hail', file('hail.json', JSON.stringify(hail))],
    },
    { command: 'action-alias delete', before: newAlias, args: () => ['action-alias', 'delete', 'default.hail'] },
    { command: 'action-alias match', before: newAlias, args: () => ['action-alias', 'match', 'hail', 'Ann'] },
    { command: 'action-alias match', about: 'none', args: () => ['action-alias', 'match', 'hide', 'Ann'] },
    { command: 'action-alias execute', before: newAlias, args: () => ['action-alias', 'execute', 'hail', 'Ann'] },
    { command: 'action-alias test', before: newAlias, args: () => ['action-alias', 'test', 'hail', 'Ann'] },
    {
      command: 'action-alias test',
      about: 'as JSON',
      before: newAlias,
      args: () => ['action-alias', 'test', 'hail', 'Ann', '-u', 'bob', '-j'],
    },
    { command: 'chat', about: 'without its file', args: () => ['chat', 'none.conf'] },
    { command: 'pack files', before: newShop, args: () => ['pack', 'files', 'shop'] },
    { command: 'pack files', about: 'unknown', args: () => ['pack', 'files', 'unheard_of'] },
    { command: 'pack file', args: () => ['pack', 'file', 'shop', 'pack.yaml'] },
    { command: 'pack file', about: 'as JSON', args: () => ['pack', 'file', 'shop', 'actions/sell.yaml', '-j'] },
    { command: 'pack file', about: 'unknown', args: () => ['pack', 'file', 'shop', 'nope/../../pack.yaml'] },
    { command: 'pack file', about: 'of no pack', args: () => ['pack', 'file', 'unheard_of', 'pack.yaml'] },
    { command: 'pack config', about: 'list', before: configuredShop, args: () => ['pack', 'config'] },
    { command: 'pack config', about: 'schema', args: () => ['pack', 'config', 'shop', '--schema'] },
    { command: 'pack config', about: 'show', args: () => ['pack', 'config', 'shop', '--show'] },
    { command: 'pack config', about: 'show nothing', args: () => ['pack', 'config', 'examples', '--show'] },
    {
      command: 'pack config',
      before: newShop,
      args: () => ['pack', 'config', 'shop'],
      input: 'south\ns3cret\n\ny\nann\nhunter2\n1\nfair\nk3y\ncolour=red\n',
      typed: [
        ['region (north, south): Where it is [north]: ', 'west\r'],
        ['must be one of: north, south', 'south\r'],
        ['token (string): What it signs in with [none]: ', 's3cret\r'],
        ['port (integer) [8080]: ', '\r'],
        ['account (object): Who it is. Set it? (y/n) [n]: ', 'y\r'],
        ['account.user (string): ', 'ann\r'],
        ['account.password (string) [none]: ', 'hunter2\r'],
        ['hosts (array): Where it sells; how many? [0]: ', '1\r'],
        ['hosts[0].name (string): ', 'fair\r'],
        ['hosts[0].key (string) [none]: ', 'k3y\r'],
        ['labels (object) [none]: ', 'colour=red\r'],
        ['Save it? (y/n) [y]: ', '\r'],
      ],
    },
    {
      command: 'pack config',
      about: 'what is there stays',
      before: configuredShop,
      args: () => ['pack', 'config', 'shop'],
      input: '\n',
      typed: [
        ['region (north, south): Where it is [south]: ', '\r'],
        ['token (string): What it signs in with [********]: ', '\r'],
        ['port (integer) [8080]: ', '\r'],
        ['account (object): Who it is. Set it? (y/n) [n]: ', '\r'],
        ['hosts (array): Where it sells; how many? [1]: ', '\r'],
        ['hosts[0].name (string) [fair]: ', '\r'],
        ['hosts[0].key (string) [********]: ', '\r'],
        ['labels (object) [none]: ', '\r'],
        ['Save it? (y/n) [y]: ', 'n\r'],
      ],
    },
    {
      command: 'pack config',
      about: 'refused',
      before: configuredShop,
      args: () => ['pack', 'config', 'shop'],
      input: '\n\n70000\n',
      typed: [
        ['[south]: ', '\r'],
        ['token (string): What it signs in with [********]: ', '\r'],
        ['port (integer) [8080]: ', '70000\r'],
        ['Set it? (y/n) [n]: ', '\r'],
        ['how many? [1]: ', '0\r'],
        ['labels (object) [none]: ', '\r'],
        ['Save it? (y/n) [y]: ', '\r'],
        ['Change the answers? (y/n) [y]: ', 'n\r'],
      ],
    },
    {
      command: 'pack config',
      about: 'from a file',
      before: configuredShop,
      args: () => ['pack', 'config', 'shop', '--file', file('shop.yaml', 'region: north\ntoken: "********"\n')],
    },
    {
      command: 'pack config',
      about: 'of no schema',
      args: () => ['pack', 'config', 'packs'],
      input: '\n',
    },
    { command: 'pack config', about: 'unknown', args: () => ['pack', 'config', 'unheard_of'], input: '\n' },
    { command: 'pack uninstall', before: newShop, args: () => ['pack', 'uninstall', 'shop'] },
    { command: 'pack uninstall', about: 'unknown', args: () => ['pack', 'uninstall', 'shop'] },
    { command: 'pack uninstall', about: 'refused', args: () => ['pack', 'remove', 'core'] },

    { command: 'inquiry list', before: askAlone, args: () => ['inquiry', 'list'] },
    { command: 'inquiry get', args: () => ['inquiry', 'get', asked] },
    { command: 'inquiry get', about: 'unknown', args: () => ['inquiry', 'get', unknownId] },
    {
      command: 'inquiry respond',
      before: ask,
      args: () => ['inquiry', 'respond', asked],
      input: 'perhaps\n',
      typed: [
        ['go (boolean): Whether to go on: ', 'perhaps\r'],
        ['Valid values are: true, false', 'yes\r'],
        ['count (integer) [3]: ', '\r'],
        ['password (string) [none]: ', 'hunter2\r'],
      ],
    },
    {
      command: 'inquiry respond',
      about: 'at once',
      before: ask,
      args: () => ['inquiry', 'respond', asked, '-j', '-r', '{"go": true}'],
    },
    {
      command: 'inquiry respond',
      about: 'unknown',
      args: () => ['inquiry', 'respond', unknownId],
      input: 'true\n',
    },
    { command: 'sensor list', before: newWatch, args: () => ['sensor', 'list', '-p', 'watch', '--disabled'] },
    {
      command: 'sensor get',
      args: () => ['sensor', 'get', 'watch.StockSensor'],
      unstable: [[/\/tmp\/svc-test-\w{6}/, '/tmp/svc-test-000000']],
    },
    { command: 'sensor get', about: 'unknown', args: () => ['sensor', 'get', 'watch.Nope'] },
    { command: 'sensor tail', args: () => ['sensor', 'tail', 'watch.StockSensor', '--no-follow'] },
    { command: 'sensor tail', about: 'unknown', args: () => ['sensor', 'tail', 'watch.Nope'] },
    {
      command: 'sensor enable',
      before: newWatch,
      args: () => ['sensor', 'enable', 'watch.StockSensor', '-a', 'enabled'],
    },
    { command: 'sensor disable', args: () => ['sensor', 'disable', 'watch.StockSensor', '-a', 'ref', 'enabled'] },
  ]
}
