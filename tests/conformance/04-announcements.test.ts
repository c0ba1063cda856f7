/** Contract 04, 4.2; 03, 3.9; 02, 2.10: announcements. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { runToEnd, type TestApp } from '../helpers/server.ts'
import { openEvents, type EventClient } from '../helpers/sse.ts'
import { waitFor } from '../helpers/wait.ts'

let server: TestApp
beforeAll(async () => {
  server = await createTestApp()
})
afterAll(async () => {
  await server.stop()
})

const announce = (parameters: Record<string, unknown>, more: Record<string, unknown> = {}) =>
  runToEnd(server, parameters, { action: 'core.announcement', ...more })

it('04.2 core.announcement reaches those who follow; with execution_ids it does not', async () => {
  const queries = [
    '',
    '?events=svc.announcement__chat*',
    '?execution_ids=000000000000000000000000',
    '?action_refs=core.noop',
  ]
  const clients: EventClient[] = []
  for (const query of queries) clients.push(await openEvents(`${server.urls.stream}/v1/stream${query}`))
  for (const client of clients) await waitFor('the first byte', () => client.raw() !== '')

  const traced = { context: { trace_context: { trace_tag: 'a tag' } } }
  const { status, result, context } = await announce({ route: 'chat.ops', message: { text: 'hello' } }, traced)
  expect([status, result]).toEqual([
    'succeeded',
    { output: { message: { text: 'hello' } }, message: { text: 'hello' } },
  ])
  expect(context).toMatchObject({ trace_context: { trace_tag: 'a tag' } })
  await announce({ message: { text: 'second' } })

  const heard = (client: EventClient): string[] =>
    client.frames.map(({ event }) => event).filter((event) => event.startsWith('svc.announcement'))
  const [all] = clients
  await waitFor('both announcements', () => all !== undefined && heard(all).length === 2)
  expect(clients.map(heard)).toEqual([
    ['svc.announcement__chat.ops', 'svc.announcement__general'],
    ['svc.announcement__chat.ops'],
    [],
    [],
  ])
  const frame = all?.frames.find(({ event }) => event === 'svc.announcement__chat.ops')
  expect(JSON.parse(frame?.data ?? '')).toEqual({
    payload: { message: { text: 'hello' } },
    trace_context: { id_: expect.stringMatching(/^[0-9a-f]{24}$/), trace_tag: 'a tag' },
  })
  for (const client of clients) client.close()
})

it('03.6 a route is one word of 1 to 255 characters', async () => {
  for (const route of ['', 'x'.repeat(256)]) {
    const { status } = await server.call('POST', '/v1/executions', {
      action: 'core.announcement',
      parameters: { route },
    })
    expect([route.length, status]).toEqual([route.length, 400])
  }
  const forged = await announce({ route: 'a\nevent: svc.execution__update' })
  expect([forged.status, forged.result]).toEqual([
    'failed',
    { error: expect.stringContaining('"route"'), traceback: expect.any(String) },
  ])
})
