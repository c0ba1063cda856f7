/** Rules, triggers, webhooks, timers, traces, the datastore, and output that is followed. */
import { rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Scenario } from '../../helpers/scenarios.ts'
import type { TestApp } from '../../helpers/server.ts'
import { waitFor } from '../../helpers/wait.ts'

/** Definitions that are named on command lines. */
const cwd = join(import.meta.dirname, 'events')
const unknownId = '6000000000000000000000aa'

/** What has happened before. */
interface Story {
  /** An order that came by a webhook. */
  order: { instance: string; trace: string; execution: string; enforcement: string }
  /** The rule that took it. */
  rule: string
  /** Something that no rule has taken. */
  returned: string
  timer: string
  /** An execution with a child and a grandchild. */
  family: string
}

type Call = <T = unknown>(method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<T>

/** A scenario of a command that is known; its arguments are those after the command. */
type Play = Omit<Scenario, 'command' | 'args'> & { args?: () => string[] | Promise<string[]> }

export function eventScenarios(server: TestApp): Scenario[] {
  const call: Call = async <T>(method: string, path: string, body?: unknown, headers?: Record<string, string>) => {
    const answer = await server.call<T>(method, `/v1${path}`, body, headers)
    if (answer.status > 299) throw new Error(`${method} ${path}: ${answer.text}`)
    return answer.body
  }
  let told: Promise<Story> | undefined
  const story = (): Promise<Story> => (told ??= tellStory(server, call))
  const plays = (command: string, ...scenarios: Play[]): Scenario[] =>
    scenarios.map(({ args = () => [], before, ...scenario }) => ({
      ...scenario,
      command,
      cwd,
      before: async () => {
        await story()
        await before?.()
      },
      args: async () => [...command.split(' '), ...(await args())],
    }))

  const forget = async (): Promise<void> => {
    await server.call('DELETE', '/v1/rules/tried.on_order')
    await server.call('DELETE', '/v1/triggertypes/tried.deployed')
  }
  const make = async (enabled = true): Promise<void> => {
    await forget()
    const action = { ref: 'core.local', parameters: { cmd: 'date' } }
    await call('POST', '/rules', {
      name: 'on_order',
      pack: 'tried',
      enabled,
      trigger: { type: 'shop.ordered' },
      action,
    })
    await call('POST', '/triggertypes', { name: 'deployed', pack: 'tried' })
  }
  const set = async (...names: string[]): Promise<void> => {
    for (const name of names) await call('PUT', `/keys/${name}`, { name, value: `value of ${name}` })
  }

  return [
    ...plays(
      'rule list',
      { args: () => ['-p', 'shop'] },
      { about: 'if this then that', args: () => ['-p', 'shop', '--iftt'] },
      { about: 'as many as asked for, JSON', args: () => ['-p', 'shop', '-n', '1', '-j', '-a', 'ref', 'action.ref'] },
    ),
    ...plays(
      'rule get',
      { args: () => ['shop.on_order'] },
      { about: 'one unknown', args: () => ['shop.nope', 'shop.on_order', '-a', 'ref'] },
    ),
    ...plays(
      'rule create',
      { before: forget, args: () => ['on_order.yaml'] },
      { about: 'there is one', before: () => make(), args: () => ['on_order.yaml'] },
      { about: 'no file', args: () => ['nope.yaml'] },
    ),
    ...plays('rule update', { before: () => make(), args: () => ['tried.on_order', 'enabled.yaml'] }),
    ...plays('rule enable', { before: () => make(false), args: () => ['tried.on_order', '-a', 'ref', 'enabled'] }),
    ...plays('rule disable', { before: () => make(), args: () => ['tried.on_order', '-y'] }),
    ...plays('rule delete', { before: () => make(), args: () => ['tried.on_order', 'tried.nope'] }),
    ...plays(
      'rule test',
      { args: () => ['--rule', 'on_order.yaml', '--trigger-instance', 'order.yaml'] },
      { about: 'no match', args: () => ['--rule', 'on_order.yaml', '--trigger-instance', 'return.yaml'] },
      {
        about: 'what has happened',
        args: async () => ['--rule-ref', 'shop.on_order', '--trigger-instance-id', (await story()).order.instance],
      },
    ),
    ...plays('rule-type list', {}),
    ...plays('rule-type get', { args: () => ['backstop'] }, { about: 'unknown', args: () => ['nope'] }),

    ...plays('trigger list', { args: () => ['-p', 'shop'] }),
    ...plays('trigger get', { args: () => ['shop.ordered'] }, { about: 'unknown', args: () => ['shop.nope'] }),
    ...plays(
      'trigger create',
      { before: forget, args: () => ['deployed.yaml'] },
      { about: 'there is one', before: () => make(), args: () => ['deployed.yaml'] },
    ),
    ...plays('trigger update', {
      before: () => make(),
      args: () => ['tried.deployed', 'deployed.yaml', '-a', 'ref', 'description'],
    }),
    ...plays('trigger delete', { before: () => make(), args: () => ['tried.deployed'] }),
    ...plays('trigger getspecs', { args: () => ['core.svc.webhook'] }),

    ...plays('trigger-instance list', { args: () => ['--trigger', 'shop.ordered'] }),
    ...plays(
      'trigger-instance get',
      { args: async () => [(await story()).returned] },
      { about: 'unknown', args: () => [unknownId] },
    ),
    ...plays('trigger-instance re-emit', { args: async () => [await happen(server, 'shop.repeated', { n: 1 })] }),
    ...plays('trigger-instance refire', { args: async () => ['-t', await happen(server, 'shop.repeated', { n: 1 })] }),
    ...plays(
      'trigger-instance explain',
      { before: forget, args: async () => [(await story()).returned] },
      { about: 'it matched', args: async () => [(await story()).order.instance] },
    ),
    ...plays('rule-enforcement list', { args: () => ['--rule', 'shop.on_order'] }),
    ...plays(
      'rule-enforcement get',
      { args: async () => [(await story()).order.enforcement] },
      { about: 'unknown', args: () => [unknownId] },
    ),

    ...plays(
      'webhook list',
      {},
      { about: 'of a pack', args: () => ['-p', 'shop', '-a', 'url', 'rule'] },
      { about: 'of a pack without', args: () => ['-p', 'core'] },
    ),
    ...plays('webhook get', { args: () => ['shop/orders'] }, { about: 'unknown', args: () => ['nope'] }),
    ...plays(
      'webhook send',
      { args: () => ['shop/calls', '{"from": "alice"}'] },
      { about: 'waiting', args: () => ['shop/calls', '{"from": "alice"}', '--wait'] },
      { about: 'a form, as JSON', args: () => ['shop/calls', '--form', 'from=alice', '-j'] },
      { about: 'not JSON', args: () => ['shop/calls', '{from: alice}'] },
      { about: 'unknown', args: () => ['nope', '{}'] },
      { about: 'bad header', args: () => ['shop/calls', '-H', 'X-Kind'] },
    ),
    ...plays('timer list', {
      args: () => ['-ty', 'core.svc.DateTimer'],
      // Its name is too long for the terminal.
      unstable: [
        [/\btrigger:core:\S{28} \|/g, 'trigger:core:11111111-1111-4111-8111-1111 |'],
        [/ [0-9a-f]{8}:d9aaecf/g, ' 11111111:d9aaecf'],
      ],
    }),
    ...plays(
      'timer next',
      {
        args: () => ['0 2 * * mon', '--timezone', 'Asia/Kolkata', '-n', '2', '-j'],
        unstable: [[/20\d\d-\d\d-\d\dT20:30:00/g, '2030-01-06T20:30:00']],
      },
      { about: 'of a timer', args: async () => [(await story()).timer] },
      { about: 'of a rule', args: () => ['shop.on_new_century', '-n', '1'] },
      { about: 'of a rule without', args: () => ['shop.on_order'] },
      { about: 'not an expression', args: () => ['0 25 * * *'] },
      { about: 'unknown', args: () => ['nope'] },
    ),
    ...plays('job list', { args: () => ['-p', 'shop', '-c', 'core.noop'] }),
    ...plays('job get', { args: () => ['shop.on_order'] }, { about: 'unknown', args: () => ['shop.nope'] }),
    ...plays('timer get', { args: async () => [(await story()).timer] }, { about: 'unknown', args: () => ['nope'] }),

    ...plays(
      'trace list',
      {
        args: async () => ['-r', (await story()).rule],
        unstable: [[/\btrace:[0-9a-f]{32}\b/g, `trace:${'0'.repeat(32)}`]],
      },
      { about: 'one', args: () => ['-c', 'order-17'] },
      { about: 'nothing', args: () => ['-c', 'nope'] },
    ),
    ...plays(
      'trace get',
      { args: async () => [(await story()).order.trace, '-e', (await story()).order.execution] },
      { about: 'unknown', args: () => [unknownId] },
    ),

    ...plays(
      'key list',
      { before: () => set('web.url', 'web.limit'), args: () => ['--prefix', 'web.'] },
      { about: 'nothing', args: () => ['--prefix', 'nope.'] },
    ),
    ...plays(
      'key get',
      { before: () => set('web.url'), args: () => ['web.url'] },
      { about: 'unknown, JSON', args: () => ['web.nope', '-j'] },
    ),
    ...plays(
      'key set',
      { args: () => ['tried.url', 'https://example.com', '-l', '3600'] },
      {
        about: 'asked for',
        args: () => ['tried.word'],
        input: 'open sesame\n',
        typed: [['tried.word', 'open sesame\r']],
      },
    ),
    ...plays('key delete', { before: () => set('tried.c'), args: () => ['tried.c', 'tried.nope'] }),
    ...plays('key delete_by_prefix', {
      before: () => set('tried.d.1', 'tried.d.2'),
      args: () => ['-p', 'tried.d.'],
    }),
    ...keyFiles(plays),
    ...plays('key load', { args: () => ['keys.json'] }, { about: 'broken file', args: () => ['broken-keys.json'] }),

    ...plays(
      'execution tail',
      { args: async () => [(await story()).family] },
      { about: 'with all it has started', args: async () => [(await story()).family, '--nested'] },
      {
        about: 'errors, with metadata',
        args: async () => [(await story()).family, '--nested', '--type', 'stderr', '--include-metadata'],
      },
      { about: 'unknown', args: () => [unknownId] },
    ),
  ]
}

async function tellStory(server: TestApp, call: Call): Promise<Story> {
  for (const name of ['ordered', 'repeated']) {
    await call('POST', '/triggertypes', { name, pack: 'shop', description: `Something was ${name}.` })
  }
  const rule = async (name: string, trigger: object, more: object): Promise<string> => {
    const { id } = await call<{ id: string }>('POST', '/rules', { name, pack: 'shop', enabled: true, trigger, ...more })
    return id
  }
  const orders = await rule(
    'on_order',
    { type: 'core.svc.webhook', parameters: { url: 'shop/orders' } },
    {
      description: 'Says which order has come.',
      criteria: { 'trigger.body.kind': { type: 'equals', pattern: 'order' } },
      action: { ref: 'core.local', parameters: { cmd: 'echo "order $ID"', env: { ID: '{{ trigger.body.id }}' } } },
    },
  )
  await rule(
    'on_call',
    { type: 'core.svc.webhook', parameters: { url: 'shop/calls' } },
    { action: { ref: 'core.local', parameters: { cmd: 'echo called' } } },
  )
  await rule(
    'on_big_order',
    { type: 'shop.ordered' },
    { criteria: { 'trigger.count': { type: 'gt', pattern: 100 } }, action: { ref: 'core.noop' } },
  )
  const date = { date: '2099-01-01 00:00:00', timezone: 'UTC' }
  const timed = { type: 'core.svc.DateTimer', parameters: date }
  await rule('on_new_century', timed, { enabled: false, action: { ref: 'core.noop' } })
  const [timer] = await call<{ id: string }[]>('GET', '/timers?timer_type=core.svc.DateTimer')

  await takeOrder(server, call, 16)
  const order = await takeOrder(server, call, 17)
  const returned = await happen(server, 'shop.ordered', { count: 3 })

  const family = await run(call, 'echo asked')
  const child = await run(call, 'echo answered', family)
  await run(call, 'echo in vain >&2; exit 3', child)
  return { order, rule: orders, returned, timer: timer?.id ?? '', family }
}

async function takeOrder(server: TestApp, call: Call, id: number): Promise<Story['order']> {
  const headers = { 'Svc-Trace-Tag': `order-${id}` }
  const sent = await server.call('POST', '/v1/webhooks/shop/orders', { kind: 'order', id }, headers)
  const instance = sent.headers.get('svc-trigger-instance-id') ?? ''
  const trace = sent.headers.get('svc-trace-id') ?? ''
  // The end of the execution is something that happens, too.
  await waitFor('the trace', async () => {
    const { trigger_instances: all } = await call<{ trigger_instances: unknown[] }>('GET', `/traces/${trace}`)
    return all.length === 2
  })
  const [enforcement] = await call<{ id: string; execution_id: string }[]>(
    'GET',
    `/ruleenforcements?trigger_instance=${instance}`,
  )
  return {
    instance,
    trace,
    execution: enforcement?.execution_id ?? '',
    enforcement: enforcement?.id ?? '',
  }
}

/** @returns the trigger instance, once rules have looked at it */
async function happen(server: TestApp, trigger: string, payload: object): Promise<string> {
  const { headers } = await server.call('POST', '/v1/webhooks/svc', { trigger, payload })
  const id = headers.get('svc-trigger-instance-id') ?? ''
  await waitFor('the rules', async () => {
    const { body } = await server.call<{ status: string }>('GET', `/v1/triggerinstances/${id}`)
    return body.status === 'processed'
  })
  return id
}

/** @returns the execution, once it has ended */
async function run(call: Call, cmd: string, parent?: string): Promise<string> {
  const context = parent === undefined ? {} : { parent: { execution_id: parent } }
  const { id } = await call<{ id: string }>('POST', '/executions', {
    action: 'core.local',
    parameters: { cmd },
    context,
  })
  await waitFor('the end', async () => {
    const { status } = await call<{ status: string }>('GET', `/executions/${id}`)
    return ['succeeded', 'failed'].includes(status)
  })
  return id
}

/** In the folder of the process, since they ask no server. */
function keyFiles(plays: (command: string, ...scenarios: Play[]) => Scenario[]): Scenario[] {
  const path = join(tmpdir(), `svc-test-${process.pid}-secrets.json`)
  const unstable = [[/\/\S*-secrets\.json/g, '/etc/svc/secrets.json']] as const
  const of = (about: string, before: () => void, ...args: string[]): Play => ({
    about,
    unstable,
    before,
    args: () => ['--key-path', ...args],
  })
  return plays(
    'key generate-crypto-key',
    of('new', () => rmSync(path, { force: true }), path),
    of('there already', () => writeFileSync(path, 'kept'), path),
    of('there already, forced', () => writeFileSync(path, 'replaced'), path, '--force'),
    of('cannot be written', () => undefined, '/proc/nowhere/keys'),
  )
}
