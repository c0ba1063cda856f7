/** The pack `chatops` (contract 02, 2.8): what it says reaches those who follow the stream. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { createTestApp } from '../helpers/app.ts'
import { waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { openEvents, type EventClient } from '../helpers/sse.ts'
import { waitFor } from '../helpers/wait.ts'

let server: TestApp
let chat: EventClient
let installation: ExecutionAnswer

beforeAll(async () => {
  await ensureDebianPackage('python3', '/usr/bin/python3')
  server = await createTestApp()
  installation = await run('packs.install', { packs: ['chatops'] })
  for (const [name, result] of [
    ['repeat', { format: 'It said {{ execution.result.stdout }}', extra: { colour: 'green' } }],
    ['hush', { enabled: false }],
  ] as const) {
    const alias = { name, pack: 'chat', action_ref: 'core.echo', formats: [`${name} {{ message }}`], result }
    await server.call('POST', '/v1/actionalias', alias)
  }
  chat = await openEvents(`${server.urls.stream}/v1/stream?events=svc.announcement__chatops`)
  await waitFor('the stream', () => chat.raw() !== '')
}, 120_000)
afterAll(async () => {
  chat.close()
  await server.stop()
})

async function run(action: string, parameters: Record<string, unknown>): Promise<ExecutionAnswer> {
  const { status, body, text } = await server.call<ExecutionAnswer>('POST', '/v1/executions', { action, parameters })
  if (status !== 201) throw new Error(text)
  return waitForStatus(server, body.id)
}

const said = (): unknown[] => chat.frames.map(({ data }) => (JSON.parse(data) as { payload: unknown }).payload)

async function command(text: string): Promise<string> {
  const body = {
    command: text,
    user: 'ann',
    source_channel: 'ops',
    source_context: { thread: 't1' },
    notification_route: 'chatops',
  }
  const answer = await server.call<{ results: { execution: { id: string } }[] }>(
    'POST',
    '/v1/aliasexecution/match_and_execute',
    body,
  )
  return answer.body.results[0]?.execution.id ?? answer.text
}

/** Executions of the rule for a notification. */
async function posted(id: string): Promise<ExecutionAnswer> {
  return waitFor('the post of the result', async () => {
    const { body } = await server.call<ExecutionAnswer[]>('GET', '/v1/executions?action=chatops.post_result&limit=100')
    return body.find(({ status, parameters }) => parameters['execution_id'] === id && status === 'succeeded')
  })
}

it('is installed by its name, without a problem', () => {
  const registered = { actions: 5, rules: 1 }
  expect([installation.status, installation.result]).toMatchObject([
    'succeeded',
    { packs: { chatops: { registered, problems: [] } } },
  ])
})

it('tells the chat the result of a command, once, and nothing where the alias wants that', async () => {
  const before = said().length
  const hushed = await command('hush now')
  await posted(hushed)
  const id = await command('repeat "good morning"')
  await posted(id)
  await waitFor('the announcement', () => said().length > before)
  expect(said().slice(before)).toEqual([
    {
      channel: 'ops',
      user: 'ann',
      message: 'It said good morning',
      extra: { colour: 'green' },
      context: { thread: 't1', execution_id: id },
      whisper: false,
    },
  ])
})

it('says what workflows want to say', async () => {
  const before = said().length
  const { status } = await run('chatops.post_message', { channel: 'ops', message: 'Hello' })
  await waitFor('the announcement', () => said().length > before)
  expect([status, said().at(-1)]).toMatchObject(['succeeded', { channel: 'ops', message: 'Hello' }])
})

it('matches commands and runs them', async () => {
  const match = await run('chatops.match', { text: 'repeat it' })
  expect(match.result['result']).toMatchObject({
    alias: { ref: 'chat.repeat', action_ref: 'core.echo' },
    representation: 'repeat {{ message }}',
  })
  const started = await run('chatops.match_and_execute', { text: 'repeat it', user: 'ann' })
  expect(started.result['result']).toMatchObject({ results: [{ alias: 'chat.repeat' }] })
  const refused = await run('chatops.match', { text: 'nothing of the kind' })
  expect([refused.status, JSON.stringify(refused.result)]).toEqual([
    'failed',
    expect.stringContaining('matched no patterns'),
  ])
})
