/** Packs of StackStorm with `[compat] stackstorm` on and off: rules, workflows, chains and their names. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import { runToEnd, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

type Json = Record<string, unknown>

const files: Record<string, string> = {
  'pack.yaml':
    'name: legacy\ndescription: Of another server.\nversion: 1.0.0\nauthor: us\nemail: us@example.com\nstackstorm_version: ">=3.0.0"\n',
  'actions/tell.yaml': `name: tell
runner_type: orquesta
entry_point: workflows/tell.yaml
parameters: {plant: {type: string, default: "{{ st2kv.system.plant }}"}}
`,
  'actions/workflows/tell.yaml': `version: 1.0
input: [plant]
output:
  - user: <% ctx().st2.user %>
  - same: <% ctx(st2).user %>
  - api: "{{ ctx().st2.api_url }}"
  - key: <% st2kv('system.plant') %>
  - jinja: "{{ st2kv('system.plant') }}"
  - plant: <% ctx().plant %>
tasks:
  one: {action: core.noop}
`,
  'actions/wrong.yaml': 'name: wrong\nrunner_type: orquesta\nentry_point: workflows/wrong.yaml\n',
  'actions/workflows/wrong.yaml':
    'version: 1.0\noutput:\n  - a: <% ctx().st2.user + ctx().gone %>\ntasks:\n  one: {action: core.noop}\n',
  'actions/chain.yaml': 'name: chain\nrunner_type: action-chain\nentry_point: chains/chain.yaml\n',
  'actions/chains/chain.yaml': `chain:
  - name: one
    ref: core.echo
    parameters: {message: "{{ st2kv.system.plant }}"}
default: one
`,
  'rules/hook.yaml': `name: hook
enabled: true
trigger: {type: core.st2.webhook, parameters: {url: legacy}}
criteria: {trigger.body.plant: {type: eq, pattern: "{{ st2kv.system.plant }}"}}
action: {ref: core.echo, parameters: {message: "{{ trigger.body.plant }} {{ st2kv.system.plant }}"}}
`,
  'rules/tick.yaml': `name: tick
enabled: true
trigger: {type: core.st2.IntervalTimer, parameters: {unit: seconds, delta: 1}}
action: {ref: core.noop}
`,
  'rules/kept.yaml': `name: kept
enabled: true
trigger: {type: core.st2.key_value_pair.create}
criteria: {trigger.object.name: {type: eq, pattern: made}}
action: {ref: core.echo, parameters: {message: "{{ trigger.object.value }}"}}
`,
}

const folders = [makeFolder(), makeFolder()]
let on: TestApp
let off: TestApp
beforeAll(async () => {
  for (const { path } of folders) {
    for (const [name, text] of Object.entries(files)) {
      const file = join(path, 'packs', 'legacy', name)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, text)
    }
  }
  const [first, second] = folders.map(({ path }) => path)
  ;[on, off] = await Promise.all([
    createTestApp({ basePath: first ?? '', settings: { 'compat.stackstorm': 'True' } }),
    createTestApp({ basePath: second ?? '' }),
  ])
  for (const app of [on, off]) {
    await app.call('POST', '/v1/packs/register', { packs: ['legacy'], fail_on_failure: false })
    await app.call('PUT', '/v1/keys/plant', { name: 'plant', value: 'tree' })
  }
})
afterAll(async () => {
  await Promise.all([on, off].map((app) => app.stop()))
  for (const folder of folders) folder.remove()
})

/** The executions that a rule has started. */
const startedBy = async (app: TestApp, rule: string): Promise<Json[]> =>
  (await app.call<(Json & { rule?: { ref: string } })[]>('GET', '/v1/executions?limit=100')).body.filter(
    (execution) => execution.rule?.ref === rule,
  )

it('on: a workflow reads ctx().st2, ctx(st2) and st2kv()', async () => {
  const { status, result } = await runToEnd(on, {}, { action: 'legacy.tell' })
  const { output } = result as { output: Json }
  expect([status, output]).toEqual([
    'succeeded',
    {
      user: expect.any(String) as unknown,
      same: output['user'],
      api: `${on.urls.api}/v1`,
      key: 'tree',
      jinja: 'tree',
      plant: 'tree',
    },
  ])
  const inspect = await on.call('POST', '/v1/workflows/inspect', files['actions/workflows/tell.yaml'], {
    'Content-Type': 'text/plain',
  })
  expect(inspect.body).toEqual([])
})

it('on: what is said of a definition quotes it as it is written', async () => {
  const text = `version: 1.0
vars:
  - a: <% st2kv('system.x' %>
tasks:
  one:
    action: core.noop
    next:
      - when: <% ctx().st2.user = ctx().gone %>
        do: two
  two:
    action: core.noop
    with: <% ctx(st2).items %>
`
  const ask = (path: string): Promise<{ text: string }> =>
    on.call('POST', `/v1/workflows/${path}`, text, { 'Content-Type': 'text/plain' })
  const inspected = (await ask('inspect')).text
  expect(inspected).toContain("<% st2kv('system.x' %>")
  expect(inspected).toContain('<% ctx().st2.user = ctx().gone %>')
  const graph = (await ask('graph')).text
  expect(graph).toContain('<% ctx().st2.user = ctx().gone %>')
  expect(graph).toContain('<% ctx(st2).items %>')
  expect(inspected + graph).not.toMatch(/svc/)

  const { status, result } = await runToEnd(on, {}, { action: 'legacy.wrong' })
  expect([status, JSON.stringify(result)]).toEqual([
    'failed',
    expect.stringContaining('<% ctx().st2.user + ctx().gone %>'),
  ])
})

it('off: the workflow says the names', async () => {
  const { status, result } = await runToEnd(off, { plant: 'x' }, { action: 'legacy.tell' })
  expect(status).toBe('failed')
  expect(JSON.stringify(result)).toContain('Its name here is \\"svc\\"')
})

it('an action chain reads st2kv', async () => {
  const { status, result } = await runToEnd(on, {}, { action: 'legacy.chain' })
  expect([status, JSON.stringify(result)]).toEqual(['succeeded', expect.stringContaining('tree')])
})

it('on: webhook, timer and key-value rules run end to end under old names', async () => {
  const sent = await on.call('POST', '/v1/webhooks/legacy', { plant: 'tree' })
  expect(sent.status).toBe(202)
  await on.call('PUT', '/v1/keys/made', { name: 'made', value: 'kept value' })
  for (const [rule, text] of [
    ['legacy.hook', 'tree tree'],
    ['legacy.kept', 'kept value'],
    ['legacy.tick', ''],
  ] as const) {
    const [execution] = await waitFor(`the execution of ${rule}`, async () => {
      const started = await startedBy(on, rule)
      return (
        started.some(({ status }) => status === 'succeeded') && started.filter(({ status }) => status === 'succeeded')
      )
    })
    expect([rule, JSON.stringify(execution?.['result'] ?? '')]).toEqual([rule, expect.stringContaining(text)])
    const stored = await on.call('GET', `/v1/rules/${rule}`)
    expect(JSON.stringify(stored.body['trigger'])).toContain('core.svc.')
  }
})

it('off: registration says the names of the triggers', async () => {
  const { text } = await off.call('POST', '/v1/packs/register', { packs: ['legacy'], fail_on_failure: true })
  for (const name of ['core.svc.webhook', 'core.svc.IntervalTimer', 'core.svc.key_value_pair.create']) {
    expect(off.log() + text).toContain(name)
  }
  expect((await off.call('GET', '/v1/rules/legacy.hook')).status).toBe(404)
})
