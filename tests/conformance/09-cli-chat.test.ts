/** `svc chat`: commands from a Matrix room, their results, and what survives a crash. A real bot, a homeserver of our own. */
import { mkdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { makeChatBot, makePostMessage, type ChatBot } from '../helpers/chat-bot.ts'
import { runCli, type RunningCli } from '../helpers/cli.ts'
import { startFakeMatrix, type FakeMatrix } from '../helpers/fake-matrix.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { basicAuth, firstPassword } from '../helpers/logins.ts'
import { createRbacFiles } from '../helpers/rbac.ts'
import { waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

let server: TestApp
let chat: FakeMatrix
let bot: ChatBot

beforeAll(async () => {
  server = await createTestApp()
  const alias = (name: string, more: Record<string, unknown> = {}) =>
    server.call('POST', '/v1/actionalias', {
      name,
      pack: 'chat',
      action_ref: 'core.echo',
      formats: [`${name} {{ message }}`],
      ...more,
    })
  await alias('echo', {
    description: 'Says it again.',
    ack: { format: 'On it.', append_url: false },
    result: { format: 'It said {{ execution.result.stdout }}' },
  })
  await alias('plain', { ack: { enabled: false } })
  await alias('hush', { ack: { enabled: false }, result: { enabled: false } })
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
  chat = await startFakeMatrix()
})
afterEach(async () => {
  await bot.stop()
  await chat.stop()
  bot.remove()
})

const users = 'users =\n  @ann:fake ann\n  @bob:fake bob\n'

const configure = (more = users): void =>
  bot.configure(`[chat]\n${more}[matrix]\nurl = ${chat.url}\ntoken = ${chat.token}\n`)

function startBot(variables = bot.env(server)): Promise<RunningCli> {
  const before = bot.stateText()
  // Without a place in the stream of events it has not begun to listen.
  return bot.start(variables, () => bot.stateText().includes(before === '' ? 'matrix' : 'positions'))
}

const bodies = (): string[] => chat.posts.map(({ body }) => body)
describe('commands', () => {
  beforeEach(async () => {
    configure()
    await startBot()
  })

  it('run, are acknowledged, and their results are posted in the thread, each once', async () => {
    const id = chat.say('!echo "good morning"')
    await chat.waitForPost('It said good morning')
    chat.repeat(id)
    chat.say('!hush now')
    chat.say('!plain x')
    const plain = await chat.waitForPost(/core\.echo is succeeded/)
    await bot.settled()
    expect(bodies()).toEqual(['On it.', 'It said good morning', plain.body])
    expect(chat.posts.slice(0, 2).map(({ room, thread }) => [room, thread])).toEqual([
      ['!ops:fake', id],
      ['!ops:fake', id],
    ])
    expect(plain.formatted).toContain('<pre><code>x\n</code></pre>')
    const { body } = await server.call<(ExecutionAnswer & { context: Record<string, unknown> })[]>(
      'GET',
      '/v1/executions?limit=100',
    )
    const [execution, ...others] = body.filter(({ parameters }) => parameters['message'] === 'good morning')
    expect(others).toEqual([])
    expect(execution?.context).toMatchObject({
      action_alias_ref: { id: expect.any(String) as unknown, name: 'echo' },
      api_user: '@ann:fake',
      source_channel: '!ops:fake',
    })
  })

  it('what is none is left alone', async () => {
    chat.say('echo no prefix')
    chat.say('!')
    chat.say('!echo from the bot itself', { sender: '@svc:fake' })
    chat.say('!echo a notice', { content: { msgtype: 'm.notice' } })
    chat.say('!echo an edit', { content: { 'm.relates_to': { rel_type: 'm.replace', event_id: '$x' } } })
    chat.say('!echo a picture', { content: { msgtype: 'm.image' } })
    chat.say('!echo', { content: { body: 7 } })
    chat.say('!echo last')
    await chat.waitForPost('It said last')
    expect(bodies()).toEqual(['On it.', 'It said last'])
  })

  it('unknown people, unknown commands and old ones are told why', async () => {
    chat.say('!echo x', { sender: '@eve:fake' })
    expect((await chat.waitForPost(/@eve:fake is not known/)).thread).toBeDefined()
    chat.say('!ecko x')
    expect((await chat.waitForPost(/matched no patterns/)).body).toMatch(/There is: |!help lists/)
    chat.say('!echo late', { at: Date.now() - 3_600_000 })
    await chat.waitForPost(/was said while svc chat was away/)
    chat.say('!help echo')
    expect((await chat.waitForPost(/^```\n!echo/)).body).toBe('```\n!echo {{ message }} - Says it again.\n```')
    expect(bodies().join('\n')).not.toContain(server.urls.api)
  })

  fullOnly(it)('more than a person can mean wait a minute, and are answered once', async () => {
    for (let i = 0; i < 23; i += 1) {
      chat.say(`!hush ${i}`)
      chat.say('!echo x', { sender: '@eve:fake' })
      chat.say('!echo x', { sender: '@old:fake', at: 0 })
    }
    chat.say('!echo still here', { sender: '@bob:fake' })
    expect((await chat.waitForPost('It said still here')).room).toBe('!ops:fake')
    await bot.settled()
    const answered = (text: RegExp): number => bodies().filter((body) => text.test(body)).length
    expect([answered(/more than 20 commands/), answered(/@eve:fake is not known/), answered(/was away/)]).toEqual([
      3, 20, 20,
    ])
  })

  it('what is longer than a command is refused before it is kept', async () => {
    chat.say(`!echo ${'x'.repeat(1024 * 1024)}`)
    expect((await chat.waitForPost(/longer than the 10000 characters/)).room).toBe('!ops:fake')
    expect(bot.stateText().length).toBeLessThan(1_000)
  })

  it('results fit the chat, markup in them is text', async () => {
    chat.say('!run seq 1 20000')
    const long = await chat.waitForPost(/^Ran: 1\n/)
    expect(long.body.length).toBeLessThanOrEqual(12_000)
    expect(long.body.endsWith('…')).toBe(true)
    chat.say(`!run 'echo "<b>&</b>"'`)
    expect((await chat.waitForPost(/<b>/)).formatted).toBe('Ran: &lt;b&gt;&amp;&lt;/b&gt;')
  })

  fullOnly(it)('waits as long as the homeserver says, and goes on after it was away', async () => {
    chat.answerNext('/send/', 429, '{"errcode":"M_LIMIT_EXCEEDED","retry_after_ms":20}')
    chat.answerNext('/send/', 429, 'busy', { 'Retry-After': '0' })
    chat.answerNext('/send/', 502, '<html>')
    chat.say('!plain patient')
    await chat.waitForPost(/patient/)
    chat.answerNext('/sync', 500, 'x')
    chat.answerNext('/sync', 200, 'no JSON')
    chat.cut()
    chat.say('!echo back again')
    await chat.waitForPost('It said back again')
    await bot.settled()
    expect(bodies().filter((body) => body.includes('back again'))).toHaveLength(1)
  })

  it('accepts invitations of people it knows', async () => {
    chat.invite('!strange:fake', '@eve:fake')
    chat.invite('!known:fake', '@ann:fake')
    await waitFor('the room to be joined', () => chat.joined.length > 0)
    expect(chat.joined).toEqual(['!known:fake'])
  })
})

describe('announcements', () => {
  let announce: Awaited<ReturnType<typeof makePostMessage>>
  beforeAll(async () => {
    announce = await makePostMessage(server)
  })
  const said = (text: string): number => bodies().filter((body) => body === text).length

  it('on its route are posted, with what comes with them, to everybody or to one user', async () => {
    configure()
    await startBot()
    chat.say('!echo ready')
    await chat.waitForPost('It said ready')
    await announce({
      channel: '!ops:fake',
      message: 'Disk is full',
      extra: { title: 'web1', fields: [{ title: 'Free', value: 0 }] },
    })
    expect((await chat.waitForPost(/Disk/)).body).toBe('Disk is full\nweb1\nFree: 0')
    await announce({ channel: '!ops:fake', message: 'for you', user: 'bob' })
    expect(await chat.waitForPost('@bob:fake: for you')).toMatchObject({ room: '!ops:fake', mentions: ['@bob:fake'] })
    for (const message of ['one', 'two']) await announce({ channel: '!ops:fake', message, user: 'ann', whisper: true })
    expect((await chat.waitForPost('one')).room).toBe('!private0:fake')
    expect((await chat.waitForPost('two')).room).toBe('!private0:fake')
    await bot.settled()
  })

  fullOnly(it)('that were made while the bot was away are posted once, those before its time not at all', async () => {
    await announce({ channel: '!ops:fake', message: 'too early' })
    configure()
    await startBot()
    await announce({ channel: '!ops:fake', message: 'heard' })
    await chat.waitForPost('heard')
    await bot.settled()
    await bot.stop()
    for (let i = 0; i < 3; i += 1) await announce({ channel: '!ops:fake', message: `missed ${i}` })
    await startBot()
    await chat.waitForPost('missed 2')
    await bot.settled()
    expect(bodies()).toEqual(['heard', 'missed 0', 'missed 1', 'missed 2'])
  })

  fullOnly(it)(
    'that the chat refuses for a while are posted later, also by the next process; a final refusal ends them',
    async () => {
      configure()
      await startBot()
      chat.answerNext('/send/', 502, '<html>')
      await announce({ channel: '!ops:fake', message: 'patient' })
      await chat.waitForPost('patient')
      chat.answerNext('/send/', 403, '{"error":"not in the room"}')
      await announce({ channel: '!other:fake', message: 'refused' })
      await bot.settled()
      for (let i = 0; i < 20; i += 1) chat.answerNext('/send/', 502, '<html>')
      await announce({ channel: '!ops:fake', message: 'survives' })
      await waitFor('an attempt', () => chat.planned() < 20)
      await bot.stop()
      expect(bot.stateText()).toContain('survives')
      chat.answerAgain()
      await startBot()
      await chat.waitForPost('survives')
      await bot.settled()
      expect([said('patient'), said('refused'), said('survives')]).toEqual([1, 0, 1])
    },
  )
})

describe('encrypted rooms', () => {
  it('are named once, whether they were so before the bot came or became so', async () => {
    configure()
    chat.say('', { room: '!old:fake', type: 'm.room.encryption' })
    const started = await startBot()
    for (let i = 0; i < 3; i += 1) chat.say('', { room: '!secret:fake', type: 'm.room.encrypted' })
    chat.say('', { room: '!old:fake', type: 'm.room.encrypted' })
    chat.invite('!closed:fake', '@ann:fake', ['m.room.encryption'])
    await waitFor('the room to be joined', () => chat.joined.length > 0)
    chat.say('!echo readable')
    await chat.waitForPost('It said readable')
    const named = started.stderr().match(/!\w+:fake is encrypted/g) ?? []
    expect(named.toSorted()).toEqual(
      ['!closed:fake', '!old:fake', '!secret:fake'].map((room) => `${room} is encrypted`),
    )
  })
})

describe('inquiries', () => {
  it('are told once, and answered from the chat', async () => {
    configure(`${users}inquiry_channel = !ops:fake\ninquiry_route = ops\n`)
    await startBot()
    const schema = {
      type: 'object',
      properties: { go: { type: 'boolean', description: 'Go on?' }, count: { type: 'integer' } },
    }
    const ask = async (route = 'ops'): Promise<string> => {
      const body = { action: 'core.ask', parameters: { route, schema } }
      const { id } = (await server.call<{ id: string }>('POST', '/v1/executions', body)).body
      await waitForStatus(server, id, ['pending'])
      return id
    }
    await ask('elsewhere')
    const id = await ask()
    const told = await chat.waitForPost(/An execution asks/)
    expect(told.body).toContain('go (boolean): Go on?')
    expect(told.body).toContain(`!approve ${id}`)
    await bot.stop()
    await startBot()
    chat.say(`!respond ${id} go=perhaps`)
    await chat.waitForPost(/go/)
    chat.say(`!approve ${id} count=3`)
    await chat.waitForPost(`Answered: ${id}.`)
    expect((await waitForStatus(server, id)).result).toMatchObject({ response: { go: true, count: 3 } })
    chat.say(`!deny ${id}`)
    await chat.waitForPost(/not found|cannot be found|no inquiry|already/i)
    chat.say('!approve')
    await chat.waitForPost(/Which inquiry/)
    expect(bodies().filter((body) => body.startsWith('An execution asks'))).toHaveLength(1)
  })
})

describe('the state of the bot', () => {
  it('belongs to one bot at a time', async () => {
    configure()
    await startBot()
    const second = await runCli(['chat', bot.configFile], bot.env(server))
    expect([second.code, second.stdout + second.stderr]).toEqual([
      1,
      expect.stringMatching(/chat\.conf\.state is in use by another svc chat\..*--state|state of its own/),
    ])
    chat.say('!echo still here')
    await chat.waitForPost('It said still here')
    const elsewhere = join(bot.folder, 'none', 'state')
    const homeless = await runCli(['chat', bot.configFile, '--state', elsewhere], bot.env(server))
    expect([homeless.code, homeless.stdout + homeless.stderr]).toEqual([1, expect.stringMatching(/cannot be locked/)])
  })
})

fullOnly(describe)('a state that cannot be written', () => {
  fullOnly(it)('keeps no command from being carried out, and no announcement from being posted, later', async () => {
    configure()
    const started = await startBot()
    const announce = await makePostMessage(server)
    const obstacle = `${bot.configFile}.state.new`
    const failures = (): number => started.stderr().split('chat.conf.state cannot be written').length - 1
    mkdirSync(obstacle)
    chat.say('!echo kept')
    await waitFor('the failure to be said', () => failures() > 0)
    const before = failures()
    await announce({ channel: '!ops:fake', message: 'announced' })
    await waitFor('a further failure', () => failures() > before)
    rmdirSync(obstacle)
    await announce({ channel: '!ops:fake', message: 'next' })
    await chat.waitForPost('It said kept')
    await chat.waitForPost('announced')
    await chat.waitForPost('next')
    await bot.settled()
    expect(bodies().toSorted()).toEqual(['It said kept', 'On it.', 'announced', 'next'])
  })
})

fullOnly(describe)('after a long absence', () => {
  const chatter = (count: number): void => {
    for (let i = 0; i < count; i += 1) chat.say('no command')
  }

  fullOnly(it)('commands are found behind any number of messages up to a bound', async () => {
    configure()
    chat.say('!echo before its time')
    await startBot()
    await bot.stop()
    chat.say('!echo first')
    chatter(250)
    chat.say('!echo second')
    chatter(150)
    chat.say('!echo elsewhere', { room: '!other:fake' })
    await startBot()
    await chat.waitForPost('It said first')
    await chat.waitForPost('It said second')
    await chat.waitForPost('It said elsewhere')
    await bot.settled()
    expect(bodies()).toHaveLength(6)
  })

  fullOnly(it)('what lies behind the bound, or may not be read, is said', async () => {
    configure()
    await startBot()
    await bot.stop()
    chat.say('!echo out of reach')
    chatter(1200)
    chat.say('!echo within reach')
    const started = await startBot()
    await chat.waitForPost('It said within reach')
    expect(started.stderr()).toMatch(/older messages of !ops:fake are not read/)
    await bot.stop()
    chat.say('!echo out of reach')
    chatter(150)
    chat.say('!echo last')
    chat.answerNext('/messages', 502, '<html>')
    chat.answerNext('/messages', 403, '{"error":"not for you"}')
    const again = await startBot()
    await chat.waitForPost('It said last')
    expect(again.stderr()).toMatch(/older messages of !ops:fake are not read.*not for you/)
    expect(bodies().join()).not.toContain('out of reach')
  })

  fullOnly(it)('nothing from before the bot joined a room is a command', async () => {
    configure()
    await startBot()
    await bot.stop()
    for (const [room, count] of [
      ['!near:fake', 0],
      ['!far:fake', 120],
    ] as const) {
      chat.say('!echo before', { room })
      chat.say('', { room, type: 'm.room.member', state: '@svc:fake', content: { membership: 'join' } })
      for (let i = 0; i < count; i += 1) chat.say('no command', { room })
    }
    chat.say('!echo after', { room: '!far:fake' })
    await startBot()
    await chat.waitForPost('It said after')
    await bot.settled()
    expect(bodies()).toEqual(['On it.', 'It said after'])
  })
})

describe('after a crash', () => {
  fullOnly(it)('a result that came while the bot was away is posted once', async () => {
    configure()
    await startBot()
    const go = join(bot.folder, 'go')
    chat.say(`!run "until [ -e ${go} ]; do sleep 0.05; done; echo done"`)
    await waitFor('the execution to be known', () => /"executions":\["/.test(bot.stateText()))
    await bot.stop()
    writeFileSync(go, '')
    const [id = ''] = /[0-9a-f]{24}/.exec(bot.stateText()) ?? []
    await waitForStatus(server, id)
    expect(bodies()).toEqual([])
    await startBot()
    await chat.waitForPost('Ran: done')
    await bot.settled()
    await bot.stop()
    await startBot()
    chat.say('!echo after')
    await chat.waitForPost('It said after')
    expect(bodies().filter((body) => body === 'Ran: done')).toHaveLength(1)
  })

  fullOnly(it)('a command is carried out once, wherever the bot was killed', async () => {
    configure()
    await startBot()
    for (let round = 0; round < 4; round += 1) {
      chat.say(`!echo round ${round}`)
      await waitFor(
        'it to be owed or done',
        () => bot.stateText().includes(`echo round ${round}`) || bodies().includes(`It said round ${round}`),
      )
      await bot.stop()
      await startBot()
      await chat.waitForPost(`It said round ${round}`)
    }
    await bot.settled()
    const { body } = await server.call<ExecutionAnswer[]>('GET', '/v1/executions?limit=200')
    for (let round = 0; round < 4; round += 1) {
      expect(body.filter(({ parameters }) => parameters['message'] === `round ${round}`)).toHaveLength(1)
      expect(bodies().filter((text) => text === `It said round ${round}`)).toHaveLength(1)
    }
  })

  it('a command that is said while the bot is away is carried out when it is back', async () => {
    configure()
    await startBot()
    await bot.stop()
    chat.say('!echo missed')
    await startBot()
    expect((await chat.waitForPost('It said missed')).room).toBe('!ops:fake')
  })
})

describe('with access control', () => {
  const password = 'a long password of a bot'
  let base: TemporaryFolder
  let guarded: TestApp
  let admin: Record<string, string>
  let key: string

  beforeAll(async () => {
    base = makeFolder()
    const files = createRbacFiles(base.path)
    files.assign('admin', 'system_admin')
    const inquiries = { types: ['inquiry_list', 'inquiry_view', 'inquiry_respond'] }
    const words = { types: ['action_alias_match', 'action_alias_help'] }
    files.define('ann', [
      { types: ['action_execute'], on: 'action:core:echo' },
      { types: ['action_execute'], on: 'action:core:local' },
      words,
      inquiries,
    ])
    files.define('bob', [words, inquiries])
    guarded = await createTestApp({
      basePath: base.path,
      settings: { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' },
    })
    const login = await guarded.call<{ token: string }>(
      'POST',
      '/auth/v1/tokens',
      {},
      { Authorization: basicAuth('admin', firstPassword(base.path)) },
    )
    admin = { 'X-Auth-Token': login.body.token }
    const ann = { name: 'ann', nicknames: { matrix: '@annie:fake', slack: '@other:fake' } }
    for (const user of [{ name: 'chatbot', password, is_service: true }, ann]) {
      const created = await guarded.call('POST', '/v1/users', user, admin)
      if (created.status !== 201) throw new Error(created.text)
    }
    key = (await guarded.call<{ key: string }>('POST', '/v1/apikeys', {}, admin)).body.key
    const alias = {
      name: 'echo',
      pack: 'chat',
      action_ref: 'core.echo',
      formats: ['echo {{ message }}'],
      ack: { enabled: false },
    }
    await guarded.call('POST', '/v1/actionalias', alias, admin)
    const run = { ...alias, name: 'run', action_ref: 'core.local', formats: ['run {{ cmd }}'] }
    await guarded.call('POST', '/v1/actionalias', run, admin)
  })
  afterAll(async () => {
    await guarded.stop()
    base.remove()
  })

  const start = (more: string): Promise<RunningCli> => {
    configure(`${more}username = chatbot\npassword = ${password}\n`)
    return startBot(bot.env(guarded, { SVC_API_KEY: key }))
  }
  async function ran(message: string): Promise<unknown[]> {
    const { body } = await guarded.call<(ExecutionAnswer & { context: Record<string, unknown> })[]>(
      'GET',
      '/v1/executions?limit=50',
      undefined,
      admin,
    )
    return body.filter(({ parameters }) => parameters['message'] === message).map(({ context }) => context['user'])
  }

  it('a command runs in the name of the user that the chat user is', async () => {
    const started = await start(users)
    chat.say('!echo allowed')
    await chat.waitForPost(/allowed/)
    chat.say('!echo forbidden', { sender: '@bob:fake' })
    await chat.waitForPost(/permission/i)
    expect([await ran('allowed'), await ran('forbidden')]).toEqual([['ann'], []])
    const all = [...bodies(), started.stdout(), started.stderr(), bot.stateText()].join('\n')
    for (const secret of [password, key, chat.token]) expect(all).not.toContain(secret)
  })

  fullOnly(it)('a token that the server has revoked is replaced at once, whatever it was wanted for', async () => {
    await start(users)
    const revoke = () => guarded.call('DELETE', '/auth/v1/tokens?user=ann', undefined, admin)
    const go = join(bot.folder, 'go')
    chat.say(`!run "until [ -e ${go} ]; do sleep 0.05; done; echo done"`)
    await waitFor('the execution to be known', () => /"executions":\["/.test(bot.stateText()))
    await revoke()
    writeFileSync(go, '')
    await chat.waitForPost(/done/)
    await revoke()
    chat.say('!help')
    await chat.waitForPost(/!echo \{\{ message/)
    await revoke()
    chat.say('!approve 0123456789abcdef01234567')
    await waitFor('the inquiry to be looked for', () => bodies().length === 3)
    await revoke()
    chat.say('!echo renewed')
    await chat.waitForPost(/renewed/)
    await bot.settled()
    expect(bodies().join('\n')).not.toMatch(/token/i)
  })

  it('the server knows chat users by their nicknames in that chat', async () => {
    await start('')
    chat.invite('!eve:fake', '@eve:fake')
    chat.invite('!annie:fake', '@annie:fake')
    chat.say('!echo by nickname', { sender: '@annie:fake' })
    await chat.waitForPost(/by nickname/)
    for (const sender of ['@other:fake', '@bob:fake']) {
      chat.say('!echo stranger', { sender })
      await chat.waitForPost(new RegExp(`${sender} is not known here`))
      chat.say('!help', { sender })
    }
    await waitFor(
      'both to be refused twice',
      () => bodies().filter((body) => body.includes('not known here')).length === 4,
    )
    chat.say('!help', { sender: '@annie:fake' })
    await chat.waitForPost(/!echo \{\{ message/)
    await bot.settled()
    expect([await ran('by nickname'), await ran('stranger'), chat.joined]).toEqual([['ann'], [], ['!annie:fake']])
  })

  it('an inquiry for one user is answered by that user, not by another', async () => {
    await start(`${users}inquiry_channel = !ops:fake\n`)
    const schema = { type: 'object', properties: { go: { type: 'boolean' } } }
    const body = { action: 'core.ask', parameters: { route: 'chatops', schema, users: ['ann'] } }
    const { id } = (await guarded.call<{ id: string }>('POST', '/v1/executions', body, admin)).body
    expect((await chat.waitForPost(/An execution asks/)).body).toContain(`!approve ${id}`)
    chat.say(`!approve ${id}`, { sender: '@bob:fake' })
    await chat.waitForPost(/bob/)
    const pending = await guarded.call<ExecutionAnswer>('GET', `/v1/executions/${id}`, undefined, admin)
    expect(pending.body.status).toBe('pending')
    chat.say(`!deny ${id}`)
    await chat.waitForPost(`Answered: ${id}.`)
    const answered = await waitFor('the end', async () => {
      const execution = await guarded.call<ExecutionAnswer>('GET', `/v1/executions/${id}`, undefined, admin)
      return execution.body.status === 'succeeded' && execution.body
    })
    expect(answered.result).toMatchObject({ response: { go: false } })
  })
})

describe('a configuration that cannot be used', () => {
  const refused = async (text: string): Promise<string> => {
    bot.configure(text)
    const { code, stdout, stderr } = await runCli(['chat', bot.configFile], bot.env(server))
    expect(code).not.toBe(0)
    return stdout + stderr
  }

  it.each<[what: string, text: string, says: RegExp]>([
    ['no chat system', '[chat]\nprefix = !\n', /name a chat system/],
    ['an unknown section', '[hipchat]\ntoken = x\n', /no section \[hipchat\]/],
    ['an unknown option', '[matrix]\nurl = http://x\ntoken = y\ncolour = red\n', /line 4: \[matrix\] has no colour/],
    ['no token', '[matrix]\nurl = http://x\n', /\[matrix\] needs token/],
    ['an address without a scheme', '[matrix]\nurl = matrix.org\ntoken = y\n', /must begin with https/],
    [
      'a user without a name',
      '[chat]\nusers = @ann:fake\n[matrix]\nurl = http://x\ntoken = y\n',
      /"chat-user svc-user"/,
    ],
    ['a user twice', '[chat]\nusers =\n  @a:f a\n  @a:f b\n[matrix]\nurl = http://x\ntoken = y\n', /@a:f twice/],
    [
      'an account without a password',
      '[chat]\nusername = bot\n[matrix]\nurl = http://x\ntoken = y\n',
      /\[chat\] needs password/,
    ],
  ])('%s is named', async (_, text, says) => {
    expect(await refused(text)).toMatch(says)
  })

  it('a file that is none is named, and so is a state of something else', async () => {
    expect((await runCli(['chat', join(bot.folder, 'none.conf')], bot.env(server))).stdout).toMatch(/none\.conf/)
    configure()
    writeFileSync(`${bot.configFile}.state`, '[1, 2]')
    expect((await runCli(['chat', bot.configFile], bot.env(server))).stdout).toMatch(/not a state file of svc chat/)
    rmSync(`${bot.configFile}.state`)
  })
})
