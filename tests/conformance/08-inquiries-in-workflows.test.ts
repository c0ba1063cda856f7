/** Inquiries of workflows that end before somebody responds (contract 08, 8.3 and 8.15). */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { WorkflowRun } from '../../src/modules/workflows/types.ts'
import { makeFolder } from '../helpers/folders.ts'
import type { ExecutionAnswer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { createWorkflowApp, type WorkflowApp } from '../helpers/workflows.ts'

const gates = makeFolder()
const gate = (name: string): string => join(gates.path, name)
/** A command that waits for the file. */
const after = (name: string): string => `while [ ! -e ${gate(name)} ]; do sleep 0.05; done`

const actions = {
  beside: `
version: 1.0
tasks:
  ask:
    action: core.ask
    next: [{when: <% not succeeded() %>, publish: [{seen: <% result() %>}], do: never}]
  never:
    action: core.noop
  bad:
    action: core.local cmd="${after('beside')}; exit 1"
`,
  items: `
version: 1.0
tasks:
  ask:
    with: {items: <% range(3) %>}
    action: core.ask
  bad:
    action: core.local cmd="${after('items')}; exit 1"
`,
  late: `
version: 1.0
tasks:
  ask:
    delay: 1
    action: core.ask
  bad:
    action: core.local cmd="exit 1"
`,
  cleanup: `
version: 1.0
tasks:
  bad:
    action: core.local cmd="exit 1"
    next: [{when: <% failed() %>, do: [confirm, fail]}]
  confirm:
    action: core.ask
`,
  halted: `
version: 1.0
tasks:
  inner:
    action: flow.inner
  own:
    action: flow.asks
  bad:
    action: core.local cmd="${after('halted')}; exit 1"
`,
  inner: `
version: 1.0
tasks:
  first:
    action: core.local cmd="${after('inner')}"
    next: [{do: second}]
  second:
    action: core.noop
`,
  asks: `
version: 1.0
tasks:
  ask:
    action: core.ask
`,
  nested: `
version: 1.0
tasks:
  inner:
    action: flow.asks
  bad:
    action: core.local cmd="${after('nested')}; exit 1"
`,
}

let app: WorkflowApp
beforeAll(async () => {
  app = await createWorkflowApp(actions)
})
afterAll(async () => {
  for (const name of ['beside', 'items', 'halted', 'inner', 'nested'])
    if (!existsSync(gate(name))) writeFileSync(gate(name), '')
  await app.stop()
  gates.remove()
})

async function inquiriesOf(id: string): Promise<ExecutionAnswer[]> {
  const children = await app.children(id)
  return children.filter(({ action }) => action['ref'] === 'core.ask')
}

const pending = (id: string, count: number): Promise<ExecutionAnswer[]> =>
  waitFor('its inquiries', async () => {
    const found = (await inquiriesOf(id)).filter(({ status }) => status === 'pending')
    return found.length === count && found
  })

const listed = async (): Promise<string[]> =>
  (await app.call<{ id: string }[]>('GET', '/v1/inquiries')).body.map(({ id }) => id)

const respond = (id: string) => app.call<object>('PUT', `/v1/inquiries/${id}`, { id, response: { continue: true } })

describe('when a workflow fails, its inquiries', () => {
  it('are canceled, say so, and are not listed any more', async () => {
    const { id } = await app.begin('beside')
    const [inquiry] = await pending(id, 1)
    writeFileSync(gate('beside'), '')
    const ended = await app.ended(id)
    expect(ended).toMatchObject({ status: 'failed', result: { output: null } })
    const ofTasks = (ended.result as { errors: { task_id: string }[] }).errors.map(({ task_id }) => task_id)
    expect(ofTasks).toEqual(['bad'])
    const inquiryId = inquiry?.id ?? ''
    expect(await app.execution(inquiryId)).toMatchObject({
      status: 'canceled',
      result: { message: 'Its workflow has ended: nobody needs the response any more.' },
    })
    expect(await listed()).not.toContain(inquiryId)
    const text = `Inquiry "${inquiryId}" has been canceled and cannot be responded to: the workflow that asked has ended.`
    expect(await respond(inquiryId)).toMatchObject({ status: 400, body: { faultstring: text } })
    expect(await app.call('GET', `/v1/inquiries/${inquiryId}`)).toMatchObject({
      status: 400,
      body: { faultstring: text },
    })
    const { body } = await app.call<WorkflowRun>('GET', `/v1/executions/${id}/workflow`)
    expect(body.tasks.map(({ name, status }) => `${name} ${status}`)).toEqual(['ask canceled', 'bad failed'])
  })

  it('of a task with items too', async () => {
    const { id } = await app.begin('items')
    await pending(id, 3)
    writeFileSync(gate('items'), '')
    expect(await app.ended(id)).toMatchObject({ status: 'failed' })
    expect((await inquiriesOf(id)).map(({ status }) => status)).toEqual(['canceled', 'canceled', 'canceled'])
  })

  it('are canceled as soon as they ask, if that is later', async () => {
    const { id } = await app.run('late')
    const [inquiry] = await inquiriesOf(id)
    await app.reaches(inquiry?.id ?? '', 'canceled')
    expect(await listed()).not.toContain(inquiry?.id)
  })

  it('stay when they clean up', async () => {
    const { id } = await app.run('cleanup')
    const [inquiry] = await pending(id, 1)
    expect(await respond(inquiry?.id ?? '')).toMatchObject({ status: 200 })
    expect(await app.execution(id)).toMatchObject({ status: 'failed' })
    const { body } = await app.call<WorkflowRun>('GET', `/v1/executions/${id}/workflow`)
    expect(body.tasks.map(({ name, status }) => `${name} ${status}`)).toContain('confirm succeeded')
  })

  it('stay when they belong to a workflow in it, which goes on', async () => {
    const { id } = await app.begin('nested')
    const inner = (): Promise<ExecutionAnswer> =>
      waitFor('the workflow in it', async () =>
        (await app.children(id)).find(({ action, status }) => action['ref'] === 'flow.asks' && status === 'paused'),
      )
    const { id: innerId } = await inner()
    writeFileSync(gate('nested'), '')
    expect(await app.ended(id)).toMatchObject({ status: 'failed' })
    const [inquiry] = await pending(innerId, 1)
    expect(await respond(inquiry?.id ?? '')).toMatchObject({ status: 200 })
    expect(await app.ended(innerId)).toMatchObject({ status: 'succeeded' })
    expect(await app.execution(id)).toMatchObject({ status: 'failed' })
  })
})

describe('a workflow that was asked to pause, and fails', () => {
  it('cancels the workflows in it that have paused with it', async () => {
    const { id } = await app.begin('halted')
    const child = (ref: string) =>
      waitFor(ref, async () => (await app.children(id)).find(({ action }) => action['ref'] === ref))
    const [inner, own] = [await child('flow.inner'), await child('flow.asks')]
    await app.reaches(own.id, 'paused')
    await waitFor('the first action', async () => (await app.children(inner.id)).length === 1)
    await app.call('PUT', `/v1/executions/${id}`, { status: 'pausing' })
    writeFileSync(gate('inner'), '')
    await app.reaches(inner.id, 'paused')
    writeFileSync(gate('halted'), '')
    expect(await app.ended(id)).toMatchObject({ status: 'failed' })
    for (const { id: childId } of [inner, own]) expect(await app.ended(childId)).toMatchObject({ status: 'canceled' })
    expect((await inquiriesOf(own.id)).map(({ status }) => status)).toEqual(['canceled'])
  })
})
