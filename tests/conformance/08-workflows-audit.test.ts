/** Contract 10, 10.3: who has changed a workflow, in the audit log. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { waitFor } from '../helpers/wait.ts'
import { createWorkflowApp, type WorkflowApp } from '../helpers/workflows.ts'

const definitions = {
  flaky: {
    parameters: { file: { type: 'string', required: true } },
    definition: `
input: [file]
tasks:
  each:
    with: word in <% [a, b, c] %>
    action: core.local cmd="[ <% item(word) %> != b ] || test -e <% ctx(file) %>"
`,
  },
  asks: 'tasks: {ask: {action: core.ask, next: [{when: <% succeeded() %>, do: after}]}, after: {action: core.noop}}',
  outer: 'tasks: {inner: {action: flow.asks}}',
} as const

type Line = Record<string, unknown> & { _event: string; _execution_id?: string }

let app: WorkflowApp
beforeAll(async () => {
  app = await createWorkflowApp(definitions)
})
afterAll(() => app.stop())

const readLines = (): Line[] =>
  readFileSync(join(app.basePath, 'logs', 'svc.audit.log'), 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line)

/** The lines about an execution, once the last one of them is there. */
async function linesOf(id: string, last: string): Promise<Line[]> {
  return waitFor(`${last} of ${id}`, () => {
    const lines = readLines().filter((line) => line._execution_id === id)
    return lines.some(({ _event }) => _event === last) && lines
  })
}

const changesOf = (lines: readonly Line[]): unknown[] =>
  lines.filter(({ _event }) => _event === 'execution.status_changed').map((line) => line['_to'])

describe('the audit log', () => {
  it('has a re-run from tasks: who asked for it, and each item that runs again', async () => {
    const file = join(app.basePath, 'go')
    const { id } = await app.run('flaky', { file })
    writeFileSync(file, '')
    const { body } = await app.call<{ id: string }>('POST', `/v1/executions/${id}/re_run`, {
      tasks: ['each'],
      reset: ['each'],
    })
    expect((await app.ended(body.id)).status).toBe('succeeded')
    const lines = await linesOf(body.id, 'execution.completed')
    expect(lines[0]).toMatchObject({ _event: 'execution.requested', _action: 'flow.flaky', _user: 'svc' })
    expect(changesOf(lines)).toEqual(['scheduled', 'running', 'succeeded'])
    const children = await app.children(body.id)
    expect(children).toHaveLength(3)
    for (const child of children) {
      const own = await linesOf(child.id, 'execution.completed')
      expect(own[0]).toMatchObject({ _event: 'execution.requested', _action: 'core.local' })
      expect(own.at(-1)).toMatchObject({ _event: 'execution.completed', _status: 'succeeded' })
    }
    // The run before has no further line.
    expect(changesOf(await linesOf(id, 'execution.completed'))).toEqual(['scheduled', 'running', 'failed'])
  })

  it('has an answer, and that the workflow went on', async () => {
    const { id } = await app.begin('asks')
    await app.reaches(id, 'paused')
    const [asked] = await app.children(id)
    const answer = await app.call('PUT', `/v1/inquiries/${asked?.id}`, { response: { continue: true } })
    expect(answer.status).toBe(200)
    await app.ended(id)
    const lines = await linesOf(id, 'execution.completed')
    expect(changesOf(lines)).toEqual(['scheduled', 'running', 'paused', 'running', 'succeeded'])
    const responded = readLines().filter(({ _event }) => _event === 'inquiry.responded')
    expect(responded).toEqual([expect.objectContaining({ _execution_id: asked?.id, _user: 'svc' })])
    // What was answered may be a secret.
    expect(JSON.stringify(responded)).not.toContain('continue')
  })

  it('has a cancel: one request, and what became of the workflows and inquiries in it', async () => {
    const { id } = await app.begin('outer')
    await app.reaches(id, 'paused')
    const [inner] = await app.children(id)
    const [asked] = await app.children(inner?.id ?? '')
    await app.call('DELETE', `/v1/executions/${id}`)
    await app.ended(id)
    for (const each of [id, inner?.id ?? '', asked?.id ?? '']) {
      const lines = await linesOf(each, 'execution.completed')
      expect(lines.at(-1)).toMatchObject({ _event: 'execution.completed', _status: 'canceled' })
      const requests = lines.filter(({ _event }) => _event === 'execution.canceled')
      expect(requests).toHaveLength(each === id ? 1 : 0)
    }
    const refused = await app.call('DELETE', `/v1/executions/${id}`)
    expect(refused.status).toBe(200)
    expect(
      readLines().filter(({ _event, _execution_id }) => _event === 'execution.canceled' && _execution_id === id),
    ).toHaveLength(1)
  })
})
