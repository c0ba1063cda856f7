/** `svc chat` in Slack: Socket Mode, slash commands, signed requests. A real bot, a Slack of our own. */
import { createHmac, randomUUID } from 'node:crypto'
import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { makeChatBot, makePostMessage, type ChatBot } from '../helpers/chat-bot.ts'
import { runCli } from '../helpers/cli.ts'
import { SLACK_BOT, startFakeSlack, type FakeSlack } from '../helpers/fake-slack.ts'
import { waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { fullOnly } from '../helpers/tiers.ts'

let server: TestApp
let chat: FakeSlack
let bot: ChatBot

beforeAll(async () => {
  server = await createTestApp()
  const alias = (name: string, more: Record<string, unknown>) =>
    server.call('POST', '/v1/actionalias', { name, pack: 'chat', action_ref: 'core.echo', ...more })
  await alias('echo', {
    formats: ['echo {{ message }}'],
    ack: { format: 'On it.', append_url: false },
    result: { format: 'It said {{ execution.result.stdout }}' },
  })
  await alias('painted', {
    formats: ['paint {{ message }}'],
    ack: { format: 'Painting.', append_url: false, extra: { slack: { color: 'warning' } } },
    result: {
      format: 'Painted {{ execution.result.stdout }}',
      extra: {
        slack: {
          color: 'good',
          title: '{{ execution.result.stdout }}',
          title_link: 'https://svc.example/x',
          fields: [{ title: 'Status', value: '{{ execution.status }}', short: true }],
        },
      },
    },
  })
  await alias('run', {
    action_ref: 'core.local',
    formats: ['run {{ cmd }}'],
    ack: { enabled: false },
    result: { format: 'Ran: {{ execution.result.stdout }}' },
  })
})
afterAll(async () => {
  await server.stop()
})

beforeEach(async () => {
  bot = makeChatBot()
  chat = await startFakeSlack()
})
afterEach(async () => {
  await bot.stop()
  await chat.stop()
  bot.remove()
})

function configure(more = `app_token = ${chat.appToken}\n`, chatOptions = ''): void {
  const users = 'users =\n  U0ANN ann\n  U0BOB bob\n'
  bot.configure(`[chat]\n${users}${chatOptions}[slack]\nurl = ${chat.url}\ntoken = ${chat.token}\n${more}`)
}

const startBot = (ready = /slack: connected/) => bot.start(bot.env(server), (started) => ready.test(started.stderr()))

const texts = (): string[] => chat.posts.map(({ text }) => text)
const executionsWith = async (message: string): Promise<ExecutionAnswer[]> => {
  const { body } = await server.call<ExecutionAnswer[]>('GET', '/v1/executions?limit=200')
  return body.filter(({ parameters }) => parameters['message'] === message)
}

describe('Socket Mode', () => {
  it('a command is carried out once, and its result is posted in the thread, however often it is delivered', async () => {
    configure()
    await startBot()
    const ts = chat.say('!echo "good morning"')
    await chat.waitForPost('It said good morning')
    chat.repeat(ts)
    // The same message as a mention, which Slack delivers besides.
    chat.say('!echo "good morning"', { type: 'app_mention', ts })
    chat.say('!echo last')
    await chat.waitForPost('It said last')
    expect(texts()).toEqual(['On it.', 'It said good morning', 'On it.', 'It said last'])
    expect(chat.posts[1]).toMatchObject({ channel: 'C0OPS', thread: ts })
    await waitFor('all to be confirmed', () => chat.waiting() === 0)
    expect(await executionsWith('good morning')).toHaveLength(1)
    expect(chat.calls).not.toContain('conversations.replies')
  })

  it('a command that could not be kept is not confirmed, and is carried out when it comes again, once', async () => {
    configure()
    const started = await startBot()
    const obstacle = `${bot.configFile}.state.new`
    mkdirSync(obstacle)
    const ts = chat.say('!echo unkept')
    await waitFor('the failure to be said', () => started.stderr().includes('chat.conf.state cannot be written'))
    expect(chat.waiting()).toBe(1)
    rmdirSync(obstacle)
    chat.repeat(ts)
    await chat.waitForPost('It said unkept')
    await bot.settled()
    await bot.stop()
    await startBot()
    chat.repeat(ts)
    chat.say('!echo last')
    await chat.waitForPost('It said last')
    expect(texts()).toEqual(['On it.', 'It said unkept', 'On it.', 'It said last'])
    expect(await executionsWith('unkept')).toHaveLength(1)
  })

  it('mentions, direct messages and slash commands need no prefix; other messages are left alone', async () => {
    configure()
    await startBot()
    chat.say('echo nothing')
    chat.say('!echo nothing', { bot_id: 'B1' })
    chat.say('!echo nothing', { subtype: 'message_changed' })
    chat.say('!echo nothing', { user: SLACK_BOT })
    chat.say('!echo', { text: 7 })
    chat.sendRaw('{')
    chat.sendRaw('{"type":"other","envelope_id":"x"}')
    chat.say(`<@${SLACK_BOT}> echo mentioned`, { type: 'app_mention' })
    await chat.waitForPost('It said mentioned')
    chat.say('echo direct', { channel: 'D0ANN', channel_type: 'im' })
    expect((await chat.waitForPost('It said direct')).channel).toBe('D0ANN')
    chat.slash('echo slashed')
    expect((await chat.waitForPost('It said slashed')).thread).toBeUndefined()
    chat.slash('')
    await chat.waitForPost(/echo \{\{ message \}\}/)
    expect(texts().join('\n')).not.toContain('nothing')
  })

  it('is read as it was typed; markup of an output calls nobody', async () => {
    configure()
    await startBot()
    chat.say(`!run 'echo "&lt;!channel&gt; a" &amp;&amp; echo <http://x.example|x.example>'`)
    await chat.waitForPost('Ran: &lt;!channel&gt; a\nx.example')
    chat.say('!echo x', { user: 'U0EVE' })
    await chat.waitForPost(/U0EVE is not known/)
    expect(texts().join('\n')).not.toContain('<')
  })

  fullOnly(it)('waits when Slack says so, and connects again when the connection is lost or refused', async () => {
    configure()
    await startBot()
    chat.answerNext('chat.postMessage', 429, '', { headers: { 'Retry-After': '1' } })
    chat.answerNext('chat.postMessage', 200, { ok: false, error: 'internal_error' })
    chat.say('!echo patient')
    await chat.waitForPost('It said patient')
    chat.answerNext('apps.connections.open', 500, '<html>')
    chat.cut()
    chat.say('!echo back')
    await chat.waitForPost('It said back')
    chat.sendRaw('{"type":"disconnect","reason":"refresh_requested"}')
    await waitFor('the old connection to end', () => chat.connections() === 0)
    chat.say('!echo again')
    await chat.waitForPost('It said again')
    expect(texts().filter((text) => text.startsWith('It said'))).toEqual([
      'It said patient',
      'It said back',
      'It said again',
    ])
  })

  it('a post whose answer was lost is there once', async () => {
    configure()
    await startBot()
    chat.answerNext('chat.postMessage', 502, '<html>', { isDone: true })
    chat.say('!run "echo once"')
    await chat.waitForPost('Ran: once')
    await bot.settled()
    expect(texts()).toEqual(['Ran: once'])
    expect(chat.calls).toContain('conversations.replies')
  })

  it('after a kill the command is carried out once and its result posted once', async () => {
    configure()
    await startBot()
    const go = join(bot.folder, 'go')
    chat.say(`!run "until [ -e ${go} ]; do sleep 0.05; done; echo done"`)
    await waitFor('the execution to be known', () => /"executions":\["/.test(bot.stateText()))
    await bot.stop()
    writeFileSync(go, '')
    await waitForStatus(server, /[0-9a-f]{24}/.exec(bot.stateText())?.[0] ?? '')
    chat.say('!echo missed')
    await startBot()
    await chat.waitForPost('Ran: done')
    await chat.waitForPost('It said missed')
    await bot.stop('SIGTERM')
    expect(texts().filter((text) => text === 'Ran: done')).toHaveLength(1)
  })
})

describe('what comes with a text', () => {
  it('extra is an attachment, whose texts call nobody', async () => {
    configure()
    await startBot()
    chat.say('!paint "&lt;!here&gt;"')
    await waitFor('both posts', () => chat.posts.length === 2)
    const shown = ['text', 'pretext', 'fields']
    expect(chat.posts.map(({ text, attachments }) => [text, attachments])).toEqual([
      ['', [{ color: 'warning', text: 'Painting.', fallback: 'Painting.', mrkdwn_in: shown }]],
      [
        '',
        [
          {
            color: 'good',
            title: '&lt;!here&gt;',
            title_link: 'https://svc.example/x',
            text: 'Painted &lt;!here&gt;',
            fallback: 'Painted &lt;!here&gt;',
            fields: [{ title: 'Status', value: 'succeeded', short: true }],
            mrkdwn_in: shown,
          },
        ],
      ],
    ])
  })

  it('an announcement for a user calls that user; a whisper goes to the user alone', async () => {
    configure()
    await startBot()
    const announce = await makePostMessage(server)
    await announce({ channel: 'C0OPS', message: '<!channel> a', user: 'bob' })
    expect((await chat.waitForPost(/ a$/)).text).toBe('<@U0BOB> &lt;!channel&gt; a')
    await announce({ channel: 'C0OPS', message: 'b', user: 'nobody' })
    expect((await chat.waitForPost(/ b$/)).text).toBe('nobody: b')
    await announce({ channel: 'C0OPS', message: 'c', user: 'U0ANN', whisper: true, context: { thread: '1.2' } })
    expect(await chat.waitForPost('c')).toMatchObject({ channel: 'D-U0ANN', thread: undefined })
    await announce({ channel: 'C0OPS', message: 'to nobody', whisper: true })
    await announce({ channel: 'C0OPS', message: 'elsewhere', context: { adapter: 'matrix' } })
    await announce({ channel: 'C0OPS', extra: { title: 'Only a title' } })
    await waitFor('the attachment', () =>
      chat.posts.some(({ attachments }) => attachments[0]?.['title'] === 'Only a title'),
    )
    expect(texts().filter((text) => /nobody$|elsewhere/.test(text))).toEqual([])
  })
})

describe('signed requests', () => {
  const secret = 'signing-canary'
  async function start(): Promise<string> {
    configure(`signing_secret = ${secret}\nlisten = 127.0.0.1:0\n`)
    const started = await startBot(/are taken at/)
    return /http:\S+commands/.exec(started.stderr())?.[0] ?? ''
  }
  const bodyOf = (text: string): string =>
    new URLSearchParams({ text, user_id: 'U0ANN', channel_id: 'C0OPS', trigger_id: randomUUID() }).toString()
  const send = (url: string, body: string, more: { at?: number; key?: string; signature?: string } = {}) => {
    const at = String(more.at ?? Math.floor(Date.now() / 1000))
    const signature = `v0=${createHmac('sha256', more.key ?? secret)
      .update(`v0:${at}:${body}`)
      .digest('hex')}`
    return fetch(url, {
      method: 'POST',
      body,
      headers: { 'X-Slack-Request-Timestamp': at, 'X-Slack-Signature': more.signature ?? signature },
    })
  }

  it('run a command; unsigned, foreign, old, repeated and oversized ones run none', async () => {
    const url = await start()
    const body = bodyOf('echo signed')
    const at = Math.floor(Date.now() / 1000)
    expect((await send(url, body, { at })).status).toBe(200)
    expect((await chat.waitForPost('It said signed')).channel).toBe('C0OPS')
    expect((await send(url, body, { at })).status).toBe(200)
    expect((await send(url, bodyOf('echo no'), { key: 'other' })).status).toBe(401)
    expect((await send(url, bodyOf('echo no'), { signature: '' })).status).toBe(401)
    expect((await send(url, bodyOf('echo no'), { at: at - 301 })).status).toBe(401)
    expect((await send(url, bodyOf('echo no'), { at: at + 900 })).status).toBe(401)
    expect((await send(url, 'x=1')).status).toBe(400)
    expect((await send(url, 'ssl_check=1')).status).toBe(200)
    expect((await fetch(url)).status).toBe(404)
    expect((await send(url, bodyOf('x'.repeat(70_000))).catch(() => ({ status: 413 }))).status).toBe(413)
    expect((await send(url, bodyOf('echo last'))).status).toBe(200)
    await chat.waitForPost('It said last')
    expect(await executionsWith('signed')).toHaveLength(1)
    expect(texts().join('\n')).not.toContain('It said no')
    expect(chat.calls).not.toContain('apps.connections.open')
  })
})

describe('a configuration that cannot be used', () => {
  it.each<[what: string, text: string, says: RegExp]>([
    ['nothing to listen to', '[slack]\ntoken = xoxb-1\n', /needs app_token/],
    ['no token', '[slack]\napp_token = xapp-1\n', /\[slack\] needs token/],
    ['a place that is none', '[slack]\ntoken = x\nsigning_secret = y\nlisten = here\n', /address:port/],
    ['no place', '[slack]\ntoken = x\nsigning_secret = y\n', /needs listen/],
    ['two systems', '[slack]\ntoken = x\napp_token = y\n[matrix]\nurl = http://x\ntoken = y\n', /a file each/],
  ])('%s is named', async (_, text, says) => {
    bot.configure(text)
    const { code, stdout, stderr } = await runCli(['chat', bot.configFile], bot.env(server))
    expect(code).not.toBe(0)
    expect(stdout + stderr).toMatch(says)
  })
})
