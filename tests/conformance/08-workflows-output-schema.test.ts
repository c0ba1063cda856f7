/** Contract 00 and 02 (2.5): what the `output_schema` of a workflow marks secret is masked, and still passed on. */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createWorkflowApp, type WorkflowApp } from '../helpers/workflows.ts'

const secret = 'correct horse battery'
const digest = createHash('sha256').update(secret).digest('hex')
const outputSchema = {
  type: 'object',
  properties: { token: { type: 'string', secret: true }, rest: { type: 'string' } },
}
const outer = (inner: string, source: string): string => `
tasks:
  give:
    action: flow.${inner}
    next: [{publish: [{token: <% result().${source}.token %>}], do: use}]
  use:
    action: core.local
    input:
      cmd: printf %s "$S" | sha256sum | cut -d ' ' -f 1
      env: {S: <% ctx(token) %>}
output:
  - digest: <% task(use).result.stdout %>
  - token: <% ctx(token) %>
`

let app: WorkflowApp
beforeAll(async () => {
  app = await createWorkflowApp({
    workflow: {
      outputSchema,
      definition: `
tasks:
  make:
    action: core.noop
    next: [{publish: [{token: "${secret}"}]}]
output: [{token: <% ctx(token) %>}, {rest: open}]
`,
    },
    chain: {
      runner: 'action-chain',
      outputSchema,
      definition: `
vars: {word: battery}
chain:
  - {name: a, ref: core.noop, publish: {token: "correct horse {{ word }}", rest: open}}
`,
    },
    ofWorkflow: outer('workflow', 'output'),
    ofChain: outer('chain', 'published'),
  })
})
afterAll(() => app.stop())

it.each([
  ['workflow', 'output'],
  ['chain', 'published'],
])('of a %s', async (name, key) => {
  const { id, status, result } = await app.run(name)
  expect([status, (result as Record<string, unknown>)[key]]).toEqual(['succeeded', { token: '********', rest: 'open' }])
  for (const path of ['', '/result?raw=true', '/workflow/explain'])
    expect((await app.call('GET', `/v1/executions/${id}${path}`)).text).not.toContain(secret)
})

it.each(['ofWorkflow', 'ofChain'])('which the workflow above uses, and masks: %s', async (name) => {
  const { id, result } = await app.run(name)
  expect(result).toMatchObject({ output: { digest, token: '********' } })
  const answers = await Promise.all(
    ['', '/workflow', '/workflow/explain', '/output?output_format=raw'].map((path) =>
      app.call('GET', `/v1/executions/${id}${path}`),
    ),
  )
  expect(answers.map(({ text }) => text).join('\n')).not.toContain(secret)
  for (const child of await app.children(id)) expect(JSON.stringify(child)).not.toContain(secret)
  expect(app.log()).not.toContain(secret)
})
