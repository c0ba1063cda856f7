/** Decision 35 on longer ways: content of packs, events about executions, other hosts, and the command line. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { runCli } from '../helpers/cli.ts'
import { waitForStatus, type TestApp } from '../helpers/server.ts'
import { makeSshSite, type SshSite } from '../helpers/sshd.ts'
import { waitFor } from '../helpers/wait.ts'

const BIG = '820982911946154508'
const DOCUMENT = `{"z":${BIG},"a":[21.0,1.10,-9007199254740993],"10":18446744073709551616,"2":1e3}`

const pack: Record<string, string> = {
  'pack.yaml': 'ref: numbers\nname: numbers\ndescription: x\nversion: 1.0.0\nauthor: A\nemail: a@example.org\n',
  'config.schema.yaml': `
account: {type: integer, default: ${BIG}, minimum: 9007199254740993}
rate: {type: number, default: 21.0}
limits: {type: object}
`,
  'actions/show.yaml': `
name: show
runner_type: local-shell-script
entry_point: show.sh
enabled: true
parameters:
  document: {type: object, default: {z: ${BIG}, a: [21.0, 1.10, -9007199254740993], '10': 18446744073709551616, '2': 1.e+3}, position: 1.0}
  account: {type: integer, default: "{{ config_context.account }}", position: 0.0}
  rate: {type: number, default: 21.0}
`,
  'actions/show.sh': '#!/bin/sh\nfor value; do echo "$value"; done\n',
  'actions/python.yaml': `
name: python
runner_type: python-script
entry_point: python.py
enabled: true
parameters: {document: {type: object, position: 0}}
`,
  'actions/python.py': `
import json
from svc.action import Action

class Example(Action):
    def run(self, document):
        return {"document": document, "limits": self.config["limits"], "account": self.config["account"] + 1}
`,
  'rules/order.yaml': `
name: order
enabled: true
trigger: {type: core.svc.webhook, parameters: {url: numbers/order}}
criteria:
  trigger.body.id: {type: equals, pattern: ${BIG}}
  trigger.body.rate: {type: inside, pattern: [21.0, ${BIG}]}
action: {ref: core.local, parameters: {cmd: "true", env: {ID: ${BIG}, RATE: 21.0, BODY: "{{ trigger.body }}"}}}
`,
}

let site: SshSite
let server: TestApp
let hosts: string

beforeAll(async () => {
  site = await makeSshSite()
  server = await createTestApp({
    settings: { 'system_user.user': site.user, 'system_user.ssh_key_file': site.makeKey('id_allowed').path },
  })
  hosts = (await site.start()).address
  for (const [name, text] of Object.entries(pack)) {
    const path = join(server.basePath, 'packs', 'numbers', name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text, { mode: name.endsWith('.sh') ? 0o755 : 0o644 })
  }
  mkdirSync(join(server.basePath, 'configs'), { recursive: true })
  writeFileSync(join(server.basePath, 'configs', 'numbers.yaml'), `limits: {id: ${BIG}, rate: 21.0}\n`)
  const registered = await send('POST', '/packs/register', '{"packs":["numbers"],"fail_on_failure":true}')
  if (!registered.includes('"actions":2')) throw new Error(registered)
})
afterAll(async () => {
  await server.stop()
  await site.stop()
})

/** Sends JSON text as it is. */
async function send(method: string, path: string, body?: string, headers: object = {}): Promise<string> {
  const response = await fetch(`${server.urls.api}/v1${path}`, {
    method,
    headers: { 'Content-Type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body }),
  })
  return response.text()
}

async function runText(action: string, parameters: string, more = ''): Promise<{ id: string; text: string }> {
  const created = await send('POST', '/executions', `{"action":"${action}","parameters":${parameters}${more}}`)
  const { id } = JSON.parse(created) as { id?: string }
  if (id === undefined) throw new Error(created)
  await waitForStatus(server, id, ['succeeded', 'failed'])
  return { id, text: await send('GET', `/executions/${id}`) }
}

const cli = (args: string[]) => runCli(args, { HOME: server.basePath, SVC_API_URL: `${server.urls.api}/v1` })

const stdoutOf = (text: string): string => (JSON.parse(text) as { result: { stdout: string } }).result.stdout

describe('35 packs in YAML', () => {
  // As the file writes it: JSON has no form for `1.e+3`.
  const written = DOCUMENT.replace('1e3', '1e+3')

  it('defaults and positions of parameters, down to the arguments of a script', async () => {
    const action = await send('GET', '/actions/numbers.show')
    expect(action).toContain(`"document":{"type":"object","default":${written},"position":1.0}`)
    const { text } = await runText('numbers.show', '{}')
    expect(stdoutOf(text)).toBe(`--rate=21.0\n${BIG}\n${written}`)
  })

  it('positions are compared as numbers', async () => {
    const action = (first: string, second: string): Promise<string> =>
      send(
        'POST',
        '/actions',
        `{"name":"placed","pack":"default","runner_type":"noop","entry_point":"","parameters":{"a":{"position":${first}},"b":{"position":${second}}}}`,
      )
    expect(await action('1.0', '1')).toContain('Parameters a and b have same position 1.')
    expect(await action('0', '2.0')).toContain('Positions supplied [0, 2] for parameters are not contiguous.')
    expect(await action('1', '0.0')).toContain('"parameters":{"a":{"position":1},"b":{"position":0.0}}')
  })

  it('configurations, as records and in Python', async () => {
    expect(await send('GET', '/config_schemas/numbers')).toContain(
      `"account":{"type":"integer","default":${BIG},"minimum":9007199254740993},"rate":{"type":"number","default":21.0}`,
    )
    expect(await send('GET', '/configs/numbers')).toContain(`"limits":{"id":${BIG},"rate":21.0}`)
    const { text } = await runText('numbers.python', `{"document":${DOCUMENT}}`)
    // Python's own floats write 1.1 and 1000.0.
    expect(text).toContain(
      `"result":{"document":${DOCUMENT.replace('1.10', '1.1').replace('1e3', '1000.0')},"limits":{"id":${BIG},"rate":21.0},"account":820982911946154509}`,
    )
  })

  it('a configuration that changes the form of a number alone is stored', async () => {
    const put = (rate: string) =>
      send('PUT', '/configs/numbers', `{"values":{"limits":{"id":${BIG},"rate":${rate}}}}`).then(() =>
        send('GET', '/configs/numbers'),
      )
    expect(await put('21')).toContain('"rate":21}')
    expect(await put('21.0')).toContain('"rate":21.0}')
  })

  it('criteria and parameters of rules', async () => {
    const ran = async (body: string): Promise<{ id: string }[]> =>
      (
        JSON.parse(await send('POST', '/webhooks/numbers/order', body, { Prefer: 'wait=10' })) as {
          executions: { id: string }[]
        }
      ).executions
    expect(await ran('{"id":820982911946154511,"rate":21}')).toEqual([])
    const [execution] = await ran(`{"id":${BIG},"rate":21.0}`)
    expect(await send('GET', `/executions/${execution?.id}`)).toContain(
      `"env":{"ID":${BIG},"RATE":21.0,"BODY":{"id":${BIG},"rate":21.0}}`,
    )
  })
})

describe('35 events about executions', () => {
  it('ActionTrigger and notifications, their rules, and the command line', async () => {
    await send(
      'POST',
      '/rules',
      `{"name":"seen","enabled":true,"trigger":{"type":"core.svc.generic.actiontrigger"},"criteria":{"trigger.parameters.env.D.z":{"type":"eq","pattern":${BIG}}},"action":{"ref":"core.noop"}}`,
    )
    const message = '{{ action_parameters.env.D.z }} {{ action_results.stdout }} {{ action_parameters.env.D.a[0] }}'
    const data = `{"whole":"{{ action_parameters.env.D }}","given":${DOCUMENT}}`
    const notify = `,"notify":{"on-complete":{"routes":["numbers"],"message":"${message}","data":${data}}}`
    const run = async (z: string): Promise<string> =>
      (await runText('core.local', `{"cmd":"echo ${BIG}","env":{"D":${DOCUMENT.replace(BIG, z)}}}`, notify)).id
    const other = await run('820982911946154511')
    const id = await run(BIG)
    const instanceOf = async (execution: string, type: string): Promise<string> =>
      waitFor(`the ${type} of ${execution}`, async () => {
        const path = `/triggerinstances?trigger_type=core.svc.generic.${type}&status=processed`
        const list = JSON.parse(await send('GET', path)) as { id: string; payload: { execution_id: string } }[]
        return list.find(({ payload }) => payload.execution_id === execution)?.id
      })
    const ended = await instanceOf(id, 'actiontrigger')
    expect(await send('GET', `/triggerinstances/${ended}`)).toContain(
      `"parameters":{"cmd":"echo ${BIG}","env":{"D":${DOCUMENT}}}`,
    )
    const told = await send('GET', `/triggerinstances/${await instanceOf(id, 'notifytrigger')}`)
    expect(told).toContain(`"message":"${BIG} ${BIG} 21.0","data":{"whole":${DOCUMENT},"given":${DOCUMENT},`)

    const enforced = async (execution: string): Promise<number> =>
      (
        JSON.parse(
          await send('GET', `/ruleenforcements?trigger_instance=${await instanceOf(execution, 'actiontrigger')}`),
        ) as unknown[]
      ).length
    expect([await enforced(id), await enforced(other)]).toEqual([1, 0])

    const sorted = `{"2":1e3,"10":18446744073709551616,"a":[21.0,1.10,-9007199254740993],"z":${BIG}}`
    for (const args of [
      ['trigger-instance', 'get', ended, '-j'],
      ['trigger-instance', 'list', '--trigger-type', 'core.svc.generic.actiontrigger', '-j', '-a', 'all'],
    ]) {
      const { stdout } = await cli(args)
      expect([args, stdout.replaceAll(/\s/g, '')]).toEqual([args, expect.stringContaining(`"D":${sorted}`)])
    }
  })
})

it('35 values for commands on other hosts', async () => {
  const { text } = await runText(
    'core.remote',
    `{"hosts":"${hosts}","cmd":"echo \\"$D\\" $N $F {{ env.D.z }} {{ env.F }}","env":{"D":${DOCUMENT},"N":${BIG},"F":21.0}}`,
  )
  const { result } = JSON.parse(text) as { result: Record<string, { stdout: string }> }
  expect(result['127.0.0.1']?.stdout).toBe(`${DOCUMENT} ${BIG} 21.0 ${BIG} 21.0`)
})

describe('35 the command line', () => {
  it('arguments of svc run, by the types of the action', async () => {
    const given = ['run', 'numbers.show', `document=${DOCUMENT}`, `account=${BIG}`, 'rate=21.0', '-j']
    const { stdout } = await cli(given)
    const { id } = JSON.parse(stdout) as { id: string }
    expect(await send('GET', `/executions/${id}`)).toContain(
      `"parameters":{"document":${DOCUMENT},"account":${BIG},"rate":21.0}`,
    )
  })

  it('the help of an action: parameters by position, defaults as written', async () => {
    const { stdout } = await cli(['run', 'numbers.show', '-h'])
    expect(stdout.match(/^ {4}\w+$/gm)?.slice(0, 2)).toEqual(['    account', '    document'])
    expect(stdout).toContain('Default: 21.0')
    expect((await cli(['action', 'get', 'numbers.show', '-y'])).stdout).toMatch(/default: 21\.0\n/)
  })
})
