/** Inspection of workflow definitions (contract 08, 8.13) on a running server. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/server.ts'
import { send, type ErrorAnswer } from './support.ts'

interface Entry {
  type: string
  message: string
  spec_path: string | null
  hint?: string
}

let server: TestApp
beforeAll(async () => {
  server = await createTestApp()
})
afterAll(async () => {
  await server.stop()
})

const post = (definition: string, query = ''): ReturnType<typeof send> =>
  send(server.urls.api, {
    method: 'POST',
    path: `/v1/workflows/inspect${query}`,
    headers: { 'Content-Type': 'text/plain' },
    body: definition,
  })

async function inspect(definition: string, query?: string): Promise<Entry[]> {
  const { status, text } = await post(definition, query)
  expect([status, text]).toEqual([200, expect.any(String)])
  return JSON.parse(text) as Entry[]
}

describe('08.13 POST /v1/workflows/inspect', () => {
  it('answers an empty list for a definition without mistakes', async () => {
    const definition = 'version: 1.0\ntasks:\n  a: {action: core.echo message="hi"}\n'
    expect(await inspect(definition)).toEqual([])
  })

  it('checks actions and their parameters against what is registered', async () => {
    const definition =
      'tasks:\n  a: {action: core.local}\n  b: {action: core.nope}\n  c: {action: core.local, input: {cmd: x, foo: 1}}\n'
    expect((await inspect(definition)).map(({ message }) => message)).toEqual([
      'The action "core.nope" is not registered in the database.',
      'Action "core.local" is missing required input "cmd".',
      'Action "core.local" has unexpected input "foo".',
    ])
  })

  it('gives hints and warnings when asked', async () => {
    const definition =
      'input: [{message: hello}]\ntasks:\n  a: {action: core.nop, next: [{do: finnish}]}\n  finish: {delay: 1}\n'
    const entries = await inspect(definition, '?hints=true&action=core.echo')
    expect(entries.map(({ type, hint }) => [type, hint])).toEqual([
      ['content', 'Did you mean "core.noop"?'],
      ['semantic', 'Did you mean "finish"?'],
      ['warning', undefined],
    ])
    expect(entries.at(-1)?.message).toContain('The default of "message" has no effect')
    expect((await post(definition, '?action=core.nope')).status).toBe(400)
  })

  it.each([
    ['', 'it is empty'],
    ['text', `it is 'text'`],
    ['a: [', 'See line 1'],
    ['tasks: {a: {}, a: {}}', 'found duplicate key "a"'],
  ])('refuses %j', async (definition, why) => {
    const { status, text } = await post(definition)
    const { faultstring } = JSON.parse(text) as ErrorAnswer
    expect([status, faultstring]).toEqual([400, expect.stringContaining(why)])
    expect(faultstring).toMatch(/^Failed to load workflow definition because /)
  })

  it('inspects action chains', async () => {
    const definition =
      'chain:\n  - {name: a, ref: core.local, on-success: b}\n  - {name: b, ref: core.nope, on-success: c}\n  - {name: c, ref: core.local, parameters: {cmd: "{{ x", foo: 1}, on-failure: aa}\n'
    expect(
      (await inspect(definition, '?hints=true')).map(({ type, spec_path, hint }) => [type, spec_path, hint]),
    ).toEqual([
      ['content', 'chain[0].parameters', undefined],
      ['content', 'chain[2].parameters.foo', undefined],
      ['content', 'chain[1].ref', 'Did you mean "core.noop"?'],
      ['expression', 'chain[2].parameters.cmd', undefined],
      ['semantic', 'chain[2].on-failure', undefined],
    ])
    expect(await inspect('chain: [{name: a, ref: core.noop}]')).toEqual([])
  })

  it('reads a large definition too, and definitions with aliases', async () => {
    const tasks = Array.from(
      { length: 2_000 },
      (_, index) => `  t${index}: {action: core.noop, next: [{do: t${index + 1}}]}\n`,
    )
    expect(await inspect(`tasks:\n${tasks.join('')}`)).toEqual([
      expect.objectContaining({ message: 'The task "t2000" is not defined.' }),
    ])
    expect(await inspect('tasks:\n  a: &a {action: core.noop}\n  b: *a\n')).toEqual([])
  })
})
