/** The graph of a workflow definition, from a running server. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/server.ts'
import { send, type ErrorAnswer } from './support.ts'

let server: TestApp
beforeAll(async () => {
  server = await createTestApp()
})
afterAll(async () => {
  await server.stop()
})

const post = (definition: string): ReturnType<typeof send> =>
  send(server.urls.api, {
    method: 'POST',
    path: '/v1/workflows/graph',
    headers: { 'Content-Type': 'text/plain' },
    body: definition,
  })

const names = (text: string): string[] =>
  (JSON.parse(text) as { tasks: { name: string }[] }).tasks.map(({ name }) => name)

it('08.13 the graph of a definition, also of a long one, which a thread reads', async () => {
  const short = await post('tasks: {a: {action: core.noop, next: [{do: b}]}, b: {join: all}}')
  expect([short.status, names(short.text)]).toEqual([200, ['a', 'b']])
  const many = Array.from({ length: 2_000 }, (_, index) => `t${index}`)
  const long = await post(`tasks:\n${many.map((name) => `  ${name}: {action: core.noop}\n`).join('')}`)
  expect([long.status, names(long.text)]).toEqual([200, many])
})

it('08.13 a text that is no definition: 400 with the reason', async () => {
  for (const [text, reason] of [
    ['tasks: 1', 'tasks is 1'],
    ['chain: []', 'chain'],
    ['', 'it is empty'],
    [`tasks: 1 # ${'x'.repeat(20_000)}`, 'tasks is 1'],
  ] as const) {
    const { status, text: answer } = await post(text)
    expect([status, (JSON.parse(answer) as ErrorAnswer).faultstring]).toEqual([
      400,
      expect.stringMatching(`^Failed to load workflow definition because .*${reason}`) as string,
    ])
  }
})
