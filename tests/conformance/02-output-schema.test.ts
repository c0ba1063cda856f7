/** `output_schema` (contract 02, 2.5): results that do not fit, on a running server. Masking: `08-workflows-output-schema`. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import { openEvents } from '../helpers/sse.ts'
import { waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'

const person = {
  type: 'object',
  properties: {
    name: { type: 'string', required: true },
    age: { type: 'integer' },
    token: { type: 'string', secret: true },
  },
  additionalProperties: false,
}
const actions: Record<string, { runner: string; schema: unknown; entry: string; text: string }> = {
  python: {
    runner: 'python-script',
    schema: person,
    entry: 'give.py',
    text: `import json
from st2common.runners.base_action import Action
class Give(Action):
    def run(self, give=None):
        return json.loads(give)
`,
  },
  flat: { runner: 'python-script', schema: { name: { type: 'integer' } }, entry: 'give.py', text: '' },
  broken: {
    runner: 'python-script',
    schema: { type: 'object', properties: { name: { type: 'nonsense' } } },
    entry: 'give.py',
    text: '',
  },
  required: { runner: 'python-script', schema: { type: 'object', required: ['name'] }, entry: 'give.py', text: '' },
  list: { runner: 'python-script', schema: { type: 'array', items: { type: 'integer' } }, entry: 'give.py', text: '' },
  flow: {
    runner: 'orquesta',
    schema: person,
    entry: 'workflows/flow.yaml',
    text: `input: [give]
tasks:
  a: {action: core.noop}
output: [{name: <% from_json_string(ctx(give)).name %>}]
`,
  },
  open: {
    runner: 'orquesta',
    schema: person,
    entry: 'workflows/open.yaml',
    text: `input: [give]
tasks:
  a: {action: core.noop}
output: [{name: <% from_json_string(ctx(give)).name %>}, {token: <% from_json_string(ctx(give)).token %>}]
`,
  },
  chain: {
    runner: 'action-chain',
    schema: person,
    entry: 'chains/chain.yaml',
    text: `chain:
  - {name: a, ref: core.noop, publish: {name: "{{ (give | from_json_string).name }}"}}
`,
  },
  counting: {
    runner: 'action-chain',
    schema: { type: 'object', properties: { name: { type: 'object' } } },
    entry: 'chains/chain.yaml',
    text: '',
  },
  shell: { runner: 'local-shell-cmd', schema: person, entry: '', text: '' },
}

const folder = makeFolder()
const write = (path: string, text: string): void => {
  mkdirSync(dirname(join(folder.path, path)), { recursive: true })
  writeFileSync(join(folder.path, path), text)
}
let server: TestApp
beforeAll(async () => {
  write('packs/shape/pack.yaml', 'name: shape\ndescription: d\nversion: 1.0.0\nauthor: a\n')
  for (const [name, { runner, schema, entry, text }] of Object.entries(actions)) {
    const parameters = runner === 'local-shell-cmd' ? { cmd: { default: 'true' } } : { give: { type: 'string' } }
    const definition = { name, runner_type: runner, entry_point: entry, parameters, output_schema: schema }
    write(`packs/shape/actions/${name}.yaml`, JSON.stringify(definition))
    if (text !== '') write(`packs/shape/actions/${entry}`, text)
  }
  server = await createTestApp({
    basePath: folder.path,
    settings: { 'system.validate_output_schema': 'True' },
  })
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

async function run(name: string, give: unknown, on = server): Promise<ExecutionAnswer> {
  const parameters = name === 'shell' ? {} : { give: JSON.stringify(give) }
  const { body, text } = await on.call<ExecutionAnswer>('POST', '/v1/executions', {
    action: `shape.${name}`,
    parameters,
  })
  if (body.id === undefined) throw new Error(text)
  return waitForStatus(on, body.id, ['succeeded', 'failed', 'timeout'])
}

test.each([
  ['python', { name: 'Ada', age: 36 }],
  ['python', { name: 'Ada', token: 'secret' }],
  ['required', { name: 1 }],
  ['list', [1, 2]],
  ['list', []],
  ['flow', { name: 'Ada' }],
  ['chain', { name: 'Ada' }],
  // The older form is only for masking, an ill-formed schema for nothing.
  ['flat', { name: 'Ada' }],
  ['broken', { name: 'Ada' }],
  ['shell', {}],
])('%s accepts %j', async (name, give) => {
  expect(await run(name, give)).toMatchObject({ status: 'succeeded' })
})

test.each([
  ['flow', "OutputSchemaError: name: 5 is not of type 'string'"],
  ['counting', "OutputSchemaError: name: '5' is not of type 'object'"],
])('a workflow whose output does not fit has failed everywhere: %s', async (name, error) => {
  const { id } = await run(name, { name: 5 })
  for (const path of ['workflow', 'workflow/explain']) {
    const { body } = await server.call<{ status: string }>('GET', `/v1/executions/${id}/${path}`)
    expect([path, body.status]).toEqual([path, 'failed'])
  }
  const { text: explanation } = await server.call('GET', `/v1/executions/${id}/workflow/explain`)
  expect(explanation).toContain(error)
  const { text } = await server.call('GET', `/v1/executions/${id}/output`)
  const last = text.trim().split('\n').at(-1)
  expect(last).toMatch(/^Workflow shape\.\w+: failed after [\d.]+ s: OutputSchemaError/)
  expect(last).toContain(error)
  // Whoever follows it reads the reason too, before the end.
  const client = await openEvents(`${server.urls.stream}/v1/executions/${id}/output`)
  await client.ended
  expect(JSON.stringify(client.frames.at(-2)?.data)).toContain('OutputSchemaError')
})

test('a secret that does not fit is not repeated by the workflow', async () => {
  const { id } = await run('open', { name: 'Ada', token: 4711081512 })
  for (const path of ['', '/output', '/workflow', '/workflow/explain']) {
    const { text } = await server.call('GET', `/v1/executions/${id}${path}`)
    expect(text.replace(/"parameters":\{"give".*?\}"?\}/g, '')).not.toContain('4711081512')
  }
})

test.each<[string, unknown, RegExp]>([
  ['python', { age: 36 }, /'name' is a required property/],
  ['python', { name: 5 }, /5 is not of type 'string'/],
  ['python', { name: 'Ada', age: 1.5 }, /not of type 'integer'/],
  ['python', { name: 'Ada', more: 1 }, /Additional properties are not allowed \('more' was unexpected\)/],
  ['python', null, /not of type 'object'/],
  ['python', [], /not of type 'object'/],
  ['required', {}, /'name' is a required property/],
  ['list', [1, 'x'], /'x' is not of type 'integer'/],
  ['flow', { name: 5 }, /not of type 'string'/],
])('%s fails with %j', async (name, give, message) => {
  const { status, result } = await run(name, give)
  expect([status, result]).toEqual([
    'failed',
    {
      error: expect.stringMatching(message) as unknown,
      message: 'Error validating output. See error output for more details.',
    },
  ])
})

test('a secret that does not fit is not repeated', async () => {
  const { status, result, id } = await run('python', { name: 'Ada', token: 4711081512 })
  expect([status, JSON.stringify(result)]).toEqual(['failed', expect.stringContaining('token')])
  const { text } = await server.call('GET', `/v1/executions/${id}`)
  expect(JSON.stringify(result)).not.toContain('4711081512')
  expect(text.replace(/"parameters".*?}/, '')).toContain('Error validating output')
})

test('an execution that failed keeps its result', async () => {
  const { body } = await server.call<ExecutionAnswer>('POST', '/v1/executions', {
    action: 'shape.python',
    parameters: { give: 'no JSON' },
  })
  const { status, result } = await waitForStatus(server, body.id, ['failed'])
  expect([status, result]).toMatchObject(['failed', { exit_code: 1 }])
})

test('without the option results are not compared', async () => {
  const place = await createTestApp({ settings: { 'content.packs_base_paths': join(folder.path, 'packs') } })
  try {
    expect(await run('python', { age: 'no' }, place)).toMatchObject({ status: 'succeeded' })
  } finally {
    await place.stop()
  }
})
