/** `svc chat` in Mattermost. A real bot, a Mattermost of our own. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { makeChatBot, makePostMessage, type ChatBot } from '../helpers/chat-bot.ts'
import { MATTERMOST_BOT, startFakeMattermost, type FakeMattermost } from '../helpers/fake-mattermost.ts'
import { waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { fullOnly } from '../helpers/tiers.ts'

let server: TestApp
let chat: FakeMattermost
let bot: ChatBot

beforeAll(async () => {
  server = await createTestApp()
  const alias = (name: string, more: Record<string, unknown>) =>
    server.call('POST', '/v1/actionalias', { name, pack: 'chat', ack: { enabled: false }, ...more })
  await alias('echo', {
    action_ref: 'core.echo',
    formats: ['echo {{ message }}'],
    result: { format: 'It said {{ execution.result.stdout }}' },
  })
  await alias('run', {
    action_ref: 'core.local',
    formats: ['run {{ cmd }}'],
    result: { format: 'Ran: {{ execution.result.stdout }}' },
  })
})
afterAll(async () => {
  await server.stop()
})

beforeEach(async () => {
  bot = makeChatBot()
  chat = await startFakeMattermost()
  bot.configure(`[chat]\nusers =\n  ann ann\n[mattermost]\nurl = ${chat.url}/\ntoken = ${chat.token}\n`)
})
afterEach(async () => {
  await bot.stop()
  await chat.stop()
  bot.remove()
})

const messages = (): string[] => chat.posts.map(({ message }) => message)

const startBot = () => bot.start(bot.env(server), (started) => started.stderr().includes('mattermost: connected'))

it('a command is carried out once, its result is posted in the thread, and calls nobody', async () => {
  await startBot()
  const said = chat.say('!echo "@all good morning"')
  const post = await chat.waitForPost(/good morning/)
  chat.repeat(said)
  chat.say('!echo last')
  await chat.waitForPost('It said last')
  expect(post).toMatchObject({ channel_id: 'ops', root_id: said.id, message: 'It said @\u200ball good morning' })
  expect(messages()).toHaveLength(2)
  expect(chat.calls.filter((call) => call.endsWith('/thread'))).toEqual([])
})

it('mentions and direct messages need no prefix; posts of bots, webhooks and the system are left alone', async () => {
  await startBot()
  chat.say('echo nothing')
  chat.say('!echo nothing', { user_id: MATTERMOST_BOT })
  chat.say('!echo nothing', { props: { from_bot: 'true' } })
  chat.say('!echo nothing', { props: { from_webhook: 'true' } })
  chat.say('!echo nothing', { type: 'system_join_channel' })
  chat.sendRaw('{')
  chat.sendRaw('{"event":"posted","data":{"post":"{"}}')
  chat.sendRaw('{"event":"posted"}')
  chat.say('@svcx echo nothing')
  chat.say('@Svc echo mentioned')
  await chat.waitForPost('It said mentioned')
  chat.say('echo direct', { channel_id: 'ann__bot0', channelType: 'D' })
  expect((await chat.waitForPost('It said direct')).channel_id).toBe('ann__bot0')
  chat.say('!echo x', { user_id: 'eve' })
  await chat.waitForPost(/eve is not known/)
  expect(messages().join('\n')).not.toContain('nothing')
})

it('extra is an attachment, whose texts call nobody; an announcement for a user calls or reaches that user alone', async () => {
  await startBot()
  const announce = await makePostMessage(server)
  await announce({
    channel: 'ops',
    message: '@all a',
    user: 'ann',
    extra: { mattermost: { color: '#0a0', footer: '@here' } },
  })
  await waitFor('the first post', () => chat.posts.length === 1)
  await announce({ channel: 'ops', message: 'b', user: 'stranger' })
  await chat.waitForPost('stranger: b')
  await announce({ channel: 'ops', message: 'c', user: 'ann', whisper: true })
  expect((await chat.waitForPost('c')).channel_id).toBe('bot0__ann')
  expect(chat.posts[0]).toMatchObject({
    message: '@ann.smith ',
    props: {
      attachments: [{ color: '#0a0', footer: '@\u200bhere', text: '@\u200ball a', fallback: '@\u200ball a' }],
    },
  })
})

fullOnly(it)('waits when the server says so, and asks for what it missed when the connection was lost', async () => {
  await startBot()
  chat.answerNext('POST /posts', 429, '{}', { headers: { 'Retry-After': '0' } })
  chat.answerNext('POST /posts', 500, '<html>')
  chat.say('!echo patient')
  await chat.waitForPost('It said patient')
  chat.answerNext('GET /users/me', 503, 'no JSON')
  chat.cut()
  chat.say('!echo missed')
  await chat.waitForPost('It said missed')
  await bot.settled()
  expect(messages()).toEqual(['It said patient', 'It said missed'])
})

it('a post whose answer was lost is there once', async () => {
  await startBot()
  chat.answerNext('POST /posts', 502, '<html>', { isDone: true })
  chat.say('!echo once')
  await chat.waitForPost('It said once')
  await bot.settled()
  expect(messages()).toEqual(['It said once'])
  expect(chat.calls.some((call) => call.endsWith('/thread'))).toBe(true)
})

it('after a kill, what was said and what has ended meanwhile is dealt with once', async () => {
  await startBot()
  const go = join(bot.folder, 'go')
  chat.say(`!run "until [ -e ${go} ]; do sleep 0.05; done; echo done"`)
  await waitFor('the execution to be known', () => /"executions":\["/.test(bot.stateText()))
  await bot.stop()
  writeFileSync(go, '')
  await waitForStatus(
    server,
    /[0-9a-f]{24}/.exec(bot.stateText().slice(bot.stateText().indexOf('"executions"')))?.[0] ?? '',
  )
  chat.say('!echo overslept', { isQuiet: true })
  await startBot()
  await chat.waitForPost('Ran: done')
  await chat.waitForPost('It said overslept')
  await bot.settled()
  await bot.stop('SIGTERM')
  await startBot()
  chat.say('!echo end')
  await chat.waitForPost('It said end')
  expect(messages().toSorted()).toEqual(['It said end', 'It said overslept', 'Ran: done'])
  const { body } = await server.call<ExecutionAnswer[]>('GET', '/v1/executions?limit=100')
  expect(body.filter(({ parameters }) => parameters['message'] === 'overslept')).toHaveLength(1)
})

it('what was carried out before a restart is not carried out again when it is changed, or was posted at the same time', async () => {
  await startBot()
  const at = Date.now()
  const first = chat.say('!echo first', { create_at: at })
  const help = chat.say('!help', { create_at: at })
  await chat.waitForPost('It said first')
  await chat.waitForPost(/\{\{ message \}\}/)
  await bot.settled()
  await bot.stop()
  for (const post of [first, help]) post.update_at = Date.now() + 1_000
  chat.say('!echo old', { create_at: at - 120_000, update_at: Date.now() + 1_000, isQuiet: true })
  chat.say('!echo deleted', { delete_at: Date.now(), isQuiet: true })
  chat.say('!echo same time', { create_at: at, isQuiet: true })
  chat.say('!echo end', { isQuiet: true })
  await startBot()
  await chat.waitForPost('It said end')
  await bot.settled()
  // The last two run at the same time.
  const results = messages().filter((text) => text.startsWith('It said'))
  expect(results.toSorted()).toEqual(['It said end', 'It said first', 'It said same time'])
  expect(messages()).toHaveLength(4)
})
