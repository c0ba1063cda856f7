/** Contract 08, 8.12 and 03, 3.10: lines in the output of a workflow that say what happens in it; 04, 4.3: its stream while it pauses. */
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openEvents, outputOf, type EventClient } from '../helpers/sse.ts'
import { makeFolder } from '../helpers/folders.ts'
import { waitFor } from '../helpers/wait.ts'
import { createWorkflowApp, type WorkflowActions, type WorkflowApp } from '../helpers/workflows.ts'

const gate = { gate: { type: 'string' } }
const untilOpen = 'core.local cmd="until [ -e <% ctx(gate) %> ]; do sleep 0.02; done; echo through" timeout=0'

const actions: WorkflowActions = {
  retries: `
version: 1.0
tasks:
  begin:
    action: core.noop
    next: [{publish: [{code: 3}], do: [check, quiet]}]
  quiet:
    next: [{publish: [{n: 1}]}]
  check:
    action: core.local cmd="exit <% ctx(code) %>"
    retry: {count: 1, delay: 1}
    next: [{when: <% failed() %>, do: after}]
  after:
    action: core.noop
`,
  many: `
version: 1.0
tasks:
  each:
    with: {items: <% range(100) %>, concurrency: 4}
    action: flow.unknown
`,
  items: {
    definition: `
version: 1.0
input: [codes]
tasks:
  each:
    with: {items: code in <% ctx(codes) %>, concurrency: 4}
    action: core.local cmd="exit <% item(code) %>"
`,
    parameters: { codes: { type: 'array' } },
  },
  asks: `
version: 1.0
tasks:
  ask:
    action: core.ask
    next: [{do: after}]
  after:
    action: core.noop
`,
  refused: `
version: 1.0
vars: [{action: core.gone}]
tasks:
  a:
    action: <% ctx(action) %>
`,
  unknown: `
version: 1.0
tasks:
  a:
    action: core.gone
`,
  late: `
version: 1.0
timeout: 1
tasks:
  slow:
    action: core.local cmd="sleep 60"
`,
  held: {
    definition: `
version: 1.0
input: [gate]
tasks:
  hold:
    action: ${untilOpen}
    next: [{do: after}]
  after:
    action: core.noop
`,
    parameters: gate,
  },
  outer: {
    definition: `
version: 1.0
input: [gate]
tasks:
  inner:
    action: flow.held gate=<% ctx(gate) %>
`,
    parameters: gate,
  },
  chain: {
    runner: 'action-chain',
    definition: `
chain:
  - name: first
    ref: core.noop
    on-success: second
  - name: second
    ref: core.local
    params: {cmd: "exit 2"}
default: first
`,
  },
  secret: {
    parameters: { password: { type: 'string', secret: true } },
    definition: `
version: 1.0
input: [password]
tasks:
  a:
    action: core.http url="http://127.0.0.1:1/<% ctx(password) %>"
    next:
      - when: <% failed() %>
        do: b
  b:
    action: core.echo
    input: {message: "<% [1, 2][ctx(password)] %>"}
`,
  },
  echoes: {
    parameters: { text: { type: 'string' } },
    definition: `
version: 1.0
input: [text]
tasks:
  a:
    action: core.echo
    input: {message: "<% int(ctx(text)) %>"}
`,
  },
}

const folder = makeFolder()
const clients: EventClient[] = []
let app: WorkflowApp
beforeAll(async () => {
  app = await createWorkflowApp(actions)
})
afterAll(async () => {
  for (const client of clients) client.close()
  await app.stop()
  folder.remove()
})

const textOf = async (id: string, query = '', at = app): Promise<string> =>
  (await at.call('GET', `/v1/executions/${id}/output${query}`)).text
/** Lines with `<id>` and `<s>` in the place of ids and times. */
const plain = (text: string): string[] =>
  text
    .replace(/\b[0-9a-f]{24}\b/g, '<id>')
    .replace(/\b\d+\.\d s\b/g, '<s>')
    .split('\n')
    .slice(0, -1)
const linesOf = async (id: string): Promise<string[]> => plain(await textOf(id))
const streamOf = async (id: string): Promise<EventClient> => {
  const client = await openEvents(`${app.urls.stream}/v1/executions/${id}/output`)
  clients.push(client)
  return client
}
let gates = 0
const newGate = (): { gate: string; open: () => void } => {
  const path = join(folder.path, `gate-${(gates += 1)}`)
  return { gate: path, open: () => writeFileSync(path, '') }
}
const request = async (method: string, path: string, body?: object): Promise<void> => {
  const answer = await app.call(method, path, body)
  expect(answer).toMatchObject({ status: 200 })
}
const set = (id: string, status: string): Promise<void> => request('PUT', `/v1/executions/${id}`, { status })

describe('08.12 lines of a workflow', () => {
  it('tell of starts, ends, retries and delays, as output of the type other', async () => {
    const { id } = await app.run('retries')
    const [begin] = await app.children(id)
    expect(await linesOf(id)).toEqual([
      'Task begin: starts core.noop (<id>)',
      'Task begin: succeeded after <s> (<id>)',
      'Task quiet: succeeded',
      'Task check: starts core.local (<id>)',
      'Task check: failed after <s> (<id>): exit code 3; attempt 2 of 2 follows',
      'Task check attempt 2: starts core.local in 1 s (<id>)',
      'Task check attempt 2: failed after <s> (<id>): exit code 3',
      'Task after: starts core.noop (<id>)',
      'Task after: succeeded after <s> (<id>)',
    ])
    const text = await textOf(id)
    expect(text).toContain(`Task begin: starts core.noop (${begin?.id ?? ''})\n`)
    expect(await textOf(id, '?output_type=other')).toBe(text)
    expect(await textOf(id, '?output_type=stdout')).toBe('')
  })

  it('sum up items: the first failures, each tenth of many, the end', async () => {
    const { id } = await app.run('items', { codes: [0, 1, 0, 2] })
    const [start, ...rest] = await linesOf(id)
    expect(start).toBe('Task each: starts core.local, 4 items')
    expect(rest.slice(0, 2).toSorted()).toEqual([
      'Task each item 1: failed after <s> (<id>): exit code 1',
      'Task each item 3: failed after <s> (<id>): exit code 2',
    ])
    expect(rest.slice(2)).toEqual([
      'Task each: failed after <s>, 4 items, 2 failed',
      'Workflow flow.items: failed after <s>: task each failed',
    ])
    const many = await linesOf((await app.run('many')).id)
    expect(many.filter((line) => line.startsWith('Task each item'))).toHaveLength(10)
    expect(many.filter((line) => line.includes(' have ended, '))).toEqual(
      [10, 20, 30, 40, 50, 60, 70, 80, 90].map((n) => `Task each: ${n} of 100 items have ended, ${n} failed`),
    )
    expect(many[0]).toBe('Task each: starts flow.unknown, 100 items, 4 at once')
    expect(many.at(-2)).toBe('Task each: failed after <s>, 100 items, 100 failed')
  })

  it('say what a workflow waits for, and that it goes on', async () => {
    const { id } = await app.begin('asks')
    await app.reaches(id, 'paused')
    const [ask] = await app.children(id)
    const inquiry = ask?.id ?? ''
    expect(await textOf(id)).toContain(`Task ask: waits for an answer: svc inquiry respond ${inquiry}\n`)
    await request('PUT', `/v1/inquiries/${inquiry}`, { id: inquiry, response: { continue: true } })
    await app.ended(id)
    expect((await linesOf(id)).slice(1)).toEqual([
      'Task ask: waits for an answer: svc inquiry respond <id>',
      'Workflow flow.asks: paused',
      'Workflow flow.asks: goes on',
      'Task ask: succeeded after <s> (<id>)',
      'Task after: starts core.noop (<id>)',
      'Task after: succeeded after <s> (<id>)',
    ])
  })

  it('go on where they were when old ones have been removed meanwhile', async () => {
    const { id } = await app.begin('asks')
    await app.reaches(id, 'paused')
    const client = await streamOf(id)
    await waitFor('the stored lines', () => plain(outputOf(client.frames)).length === 3)
    await request('POST', '/v1/purge/output', { before: '2999-01-01T00:00:00Z' })
    expect(await textOf(id)).toBe('')
    const inquiry = (await app.children(id))[0]?.id ?? ''
    await request('PUT', `/v1/inquiries/${inquiry}`, { id: inquiry, response: { continue: true } })
    await client.ended
    await app.ended(id)
    const rest = ['Workflow flow.asks: goes on', expect.anything(), expect.anything(), expect.anything()]
    expect(await linesOf(id)).toEqual(rest)
    const { body } = await app.call<object>('GET', `/v1/executions/${id}/output/lines`)
    expect(body).toMatchObject({ total: 4, is_beginning_removed: true })
    // A client that comes back with the id of its last event gets what it does not have.
    const last = client.frames.findLast(({ id: at }) => at !== undefined)?.id ?? ''
    const again = await openEvents(`${app.urls.stream}/v1/executions/${id}/output`, { 'Last-Event-ID': last })
    clients.push(again)
    await again.ended
    expect(plain(outputOf(client.frames) + outputOf(again.frames)).slice(3)).toEqual(rest)
  })

  it('give the reason of a failure, also of a workflow that does not start', async () => {
    const reason = 'InvalidActionReferencedException: Unable to find action "core.gone".'
    expect(await linesOf((await app.run('refused')).id)).toEqual([
      `Task a: failed: ${reason}`,
      `Workflow flow.refused: failed after <s>: in task a: ${reason}`,
    ])
    expect(await linesOf((await app.run('unknown')).id)).toEqual([
      'Workflow flow.unknown: failed: The action "core.gone" is not registered in the database.',
    ])
    const { id, status } = await app.run('late')
    expect(status).toBe('timeout')
    expect((await linesOf(id)).at(-1)).toBe('Workflow flow.late: timeout after <s>')
  })

  it('are also those of a chain', async () => {
    expect(await linesOf((await app.run('chain')).id)).toEqual([
      'Task first: starts core.noop (<id>)',
      'Task first: succeeded after <s> (<id>)',
      'Task second: starts core.local (<id>)',
      'Task second: failed after <s> (<id>): exit code 2',
      'Workflow flow.chain: failed after <s>: task second failed',
    ])
  })

  it('begin anew in a re-run', async () => {
    const { id } = await app.run('items', { codes: [1] })
    const again = await app.call<{ id: string }>('POST', `/v1/executions/${id}/re_run`, { tasks: ['each'] })
    expect(again.status).toBe(201)
    await app.ended(again.body.id)
    expect(await linesOf(again.body.id)).toEqual([
      'Workflow flow.items: repeats each',
      'Task each: starts core.local, 1 items',
      'Task each item 0: failed after <s> (<id>): exit code 1',
      'Task each: failed after <s>, 1 items, 1 failed',
      'Workflow flow.items: failed after <s>: task each failed',
    ])
  })

  it('have no secrets, and one line for each text of a stranger', async () => {
    const password = `s3cr3t-${randomBytes(8).toString('hex')}`
    const { id } = await app.run('secret', { password })
    const lines = await linesOf(id)
    expect(lines.at(-1)).toMatch(/^Workflow flow\.secret: failed after <s>: in task b: .*/)
    expect(lines.join('\n')).not.toContain(password)
    const text = `\u001b[31mTask a: starts core.noop\nTask b: succeeded\u202e${'x'.repeat(5000)}`
    const [end = '', ...more] = await linesOf((await app.run('echoes', { text })).id)
    expect(more).toEqual([])
    expect(end).toMatch(/^Workflow flow\.echoes: failed /)
    expect(end.length).toBeLessThan(600)
    expect(end).not.toMatch(/\p{C}/u)
  })

  it('are not stored where actionrunner.stream_output is off', async () => {
    const quiet = await createWorkflowApp(actions, { settings: { 'actionrunner.stream_output': 'False' } })
    try {
      const { id } = await quiet.run('chain')
      expect(await textOf(id, '', quiet)).toBe('')
    } finally {
      await quiet.stop()
    }
  })
})

describe('04.3 the output stream of a workflow', () => {
  it('brings its lines as they come, then EOF; the general stream has them before the end', async () => {
    const { gate, open } = newGate()
    const general = await openEvents(
      `${app.urls.stream}/v1/stream?events=svc.execution__update,svc.execution.output__create`,
    )
    clients.push(general)
    await waitFor('the first byte', () => general.raw() !== '')
    const { id } = await app.begin('held', { gate })
    const client = await streamOf(id)
    await waitFor('the first line', () => plain(outputOf(client.frames)).length === 1)
    open()
    expect(await client.ended).toBe('end')
    expect(client.frames.at(-1)?.event).toBe('EOF')
    expect(outputOf(client.frames)).toBe(await textOf(id))
    await general.frame(({ data }) => data.includes(`"id":"${id}"`) && data.includes('"status":"succeeded"'))
    const own = general.frames.filter(({ data }) => data.includes(`"execution_id":"${id}"`))
    expect(outputOf(own)).toBe(await textOf(id))
  })

  it('ends at pausing and at resuming, and stays open while it is paused', async () => {
    const { gate, open } = newGate()
    const { id } = await app.begin('outer', { gate })
    const inner = await waitFor('the inner workflow', async () => (await app.children(id))[0])
    await app.reaches(inner.id, 'running')
    const hold = await waitFor('its action', async () => (await app.children(inner.id))[0])
    await app.reaches(hold.id, 'running')
    const [ofOuter, ofInner, ofAction] = [await streamOf(id), await streamOf(inner.id), await streamOf(hold.id)]
    await set(id, 'pausing')
    // A nested workflow pauses with it; a plain action does not.
    expect(await Promise.all([ofOuter.ended, ofInner.ended])).toEqual(['end', 'end'])
    expect(plain(outputOf(ofOuter.frames)).at(-1)).toMatch(/^Workflow flow\.outer: pausing, requested by /)
    const whilePausing = await streamOf(id)
    await whilePausing.ended
    expect(whilePausing.raw()).toBe(ofOuter.raw())
    open()
    await ofAction.ended
    expect(outputOf(ofAction.frames)).toBe('through\n')
    await app.reaches(id, 'paused')
    const paused = await Promise.all([streamOf(id), streamOf(inner.id)])
    await Promise.all(
      paused.map((client) => waitFor('the stored lines', () => outputOf(client.frames).includes(': paused'))),
    )
    expect(paused.flatMap(({ frames }) => frames).filter(({ event }) => event === 'EOF')).toEqual([])
    await set(id, 'resuming')
    await Promise.all(paused.map(({ ended }) => ended))
    await app.ended(id)
    expect((await linesOf(inner.id)).slice(1)).toEqual([
      expect.stringMatching(/^Workflow flow\.held: pausing, requested by \S+$/),
      'Task hold: succeeded after <s> (<id>)',
      'Workflow flow.held: paused',
      expect.stringMatching(/^Workflow flow\.held: resumed, requested by \S+$/),
      'Task after: starts core.noop (<id>)',
      'Task after: succeeded after <s> (<id>)',
    ])
    expect((await linesOf(id)).slice(1)).toEqual([
      expect.stringMatching(/^Workflow flow\.outer: pausing, requested by \S+$/),
      'Task inner: paused (<id>)',
      'Workflow flow.outer: paused',
      expect.stringMatching(/^Workflow flow\.outer: resumed, requested by \S+$/),
      'Task inner: goes on (<id>)',
      'Task inner: succeeded after <s> (<id>)',
    ])
  })

  it('ends with the cancel, which it tells of', async () => {
    const { gate, open } = newGate()
    const { id } = await app.begin('held', { gate })
    const hold = await waitFor('its action', async () => (await app.children(id))[0])
    await app.reaches(hold.id, 'running')
    const client = await streamOf(id)
    await request('DELETE', `/v1/executions/${id}`)
    open()
    await client.ended
    expect(plain(outputOf(client.frames)).slice(1)).toEqual([
      expect.stringMatching(/^Workflow flow\.held: canceling, requested by \S+$/),
      'Task hold: succeeded after <s> (<id>)',
      'Workflow flow.held: canceled after <s>',
    ])
  })
})
