/** What each channel sends, to receivers on loopback that check its form; hostile texts in each. */
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Webhook } from 'standardwebhooks'
import { SMTPServer } from 'smtp-server'
import { makeFolder, type TemporaryFolder } from '../../../../tests/helpers/folders.ts'
import { startReceiver, type Receiver } from '../../../../tests/helpers/receiver.ts'
import { fullOnly } from '../../../../tests/helpers/tiers.ts'
import { createLauncher } from '../../../runners/process/create-launcher.ts'
import type { Launcher } from '../../../runners/process/launcher.ts'
import { createHttpPost } from '../../../runners/http/post.ts'
import { createRunHelper } from '../../../runners/process/run-helper.ts'
import { createVerifier } from '../../webhooks/signatures.ts'
import { finishSettings } from '../definition.ts'
import { channels, findChannel, SendFailure, type Notice, type SendTools } from './index.ts'

let receiver: Receiver
let folder: TemporaryFolder
let launcher: Launcher
beforeAll(async () => {
  receiver = await startReceiver()
  ;({ launcher } = await createLauncher('child-process'))
})
afterAll(async () => {
  await receiver.close()
  await launcher.stop()
})
beforeEach(() => {
  folder = makeFolder()
  receiver.received.length = 0
  receiver.answer = () => ({ status: 200, text: 'ok' })
})
afterEach(() => folder.remove())

const tools = (signal = AbortSignal.timeout(10_000)): SendTools => ({
  post: createHttpPost({}),
  run: (program) => createRunHelper(launcher, { PATH: process.env['PATH'] ?? '' })({ ...program, signal }),
  now: () => Date.now() / 1000,
  signal,
})

/** Everything that a format could take for something else. */
const HOSTILE =
  '<!channel> <https://evil.example|click> [x](https://evil.example) **b** `c` ```\n@everyone @here\u202e <script>alert(1)</script> &amp; $$\r\nBcc: evil@example.org\u0007'

function notice(more: Partial<Notice> = {}): Notice {
  return {
    id: '67a1f0c2e4b0a1d2c3e4f521',
    condition: 'failed',
    level: 'error',
    job: 'shop.deploy',
    title: 'Failed: shop.deploy',
    text: '',
    facts: [
      ['Rule', 'shop.deploy'],
      ['Exit code', '3'],
    ],
    output: 'no space left',
    link: 'http://svc.example.com/#/history/1/general',
    timestamp: '2026-01-31T12:00:00.000000Z',
    to: [],
    data: { condition: 'failed', job: 'shop.deploy' },
    ...more,
  }
}
const hostile = notice({
  title: HOSTILE,
  facts: [['Rule', HOSTILE]],
  output: HOSTILE.repeat(100),
  data: { condition: 'failed', stderr: HOSTILE },
})

async function send(kind: string, settings: Record<string, unknown>, what = notice()): Promise<string> {
  const channel = findChannel(kind)
  if (channel === undefined) throw new Error(kind)
  const finished = finishSettings(channel, settings)
  if ('problem' in finished) throw new Error(finished.problem)
  return channel.send(what, finished.settings, tools())
}

const last = (): Record<string, unknown> => receiver.received.at(-1)?.body as Record<string, unknown>

/** Settings with which each channel reaches the receiver. */
const settingsOf = (kind: string): Record<string, unknown> => {
  switch (kind) {
    case 'ntfy':
      return { topic: 'jobs', server: receiver.url }
    case 'pagerduty':
      return { routing_key: 'R'.repeat(32), api_url: receiver.url }
    default:
      return { webhook_url: `${receiver.url}/hook` }
  }
}
const byHttp = channels.map(({ kind }) => kind).filter((kind) => kind !== 'email')

describe('every channel by HTTP', () => {
  fullOnly(test.each(byHttp))('%s sends JSON once, and says what failed', async (kind) => {
    await send(kind, settingsOf(kind))
    expect(receiver.received).toHaveLength(1)
    expect(receiver.received[0]?.headers['content-type']).toBe('application/json')
    expect(receiver.received[0]?.text).toContain('shop.deploy')
  })

  test.each(byHttp)('%s takes hostile texts of any size', async (kind) => {
    await send(kind, settingsOf(kind), hostile)
    expect(receiver.received[0]?.body).toBeTypeOf('object')
    expect(receiver.received[0]?.text.length).toBeLessThan(60_000)
  })

  fullOnly(test)('fails for a while, for ever, or as long as the receiver wants', async () => {
    const failure = async (status: number, headers: Record<string, string> = {}): Promise<SendFailure> => {
      receiver.answer = () => ({ status, text: 'why\n\tnot', headers })
      const error = await send('webhook', settingsOf('webhook')).catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(SendFailure)
      return error as SendFailure
    }
    expect(await failure(503)).toMatchObject({ isFinal: false, message: 'HTTP 503: why not' })
    expect(await failure(404)).toMatchObject({ isFinal: false })
    expect(await failure(400)).toMatchObject({ isFinal: true })
    expect(await failure(429, { 'retry-after': '7' })).toMatchObject({ isFinal: false, retryAfterSeconds: 7 })
    expect(await failure(307, { location: `${receiver.url}/elsewhere` })).toMatchObject({
      message: expect.stringMatching(/redirects/),
    })
    expect(receiver.received.some(({ path }) => path === '/elsewhere')).toBe(false)
  })

  fullOnly(test)('gives up a receiver that never answers, or says too much', async () => {
    receiver.answer = () => undefined
    const stopping = AbortSignal.timeout(200)
    await expect(findChannel('webhook')?.send(notice(), settingsOf('webhook'), tools(stopping))).rejects.toThrow(
      /in time/,
    )
    receiver.answer = () => ({ status: 200, text: 'x'.repeat(100_000) })
    await expect(send('webhook', settingsOf('webhook'))).rejects.toThrow(/longer than/)
  })
})

test('slack: blocks of plain text, in which nothing is a mention or a link but the link to svc', async () => {
  await send('slack', settingsOf('slack'), hostile)
  const { text, blocks } = last() as { text: string; blocks: { type: string; text?: { type: string; text: string } }[] }
  expect(text).not.toMatch(/[<>]/)
  const marked = blocks.filter((block) => block.text?.type === 'mrkdwn').map((block) => block.text?.text ?? '')
  expect(marked).toHaveLength(2)
  expect(marked[0]).toMatch(/^```[^<>]*```$/)
  expect(marked[0]?.slice(3, -3)).not.toContain('```')
  expect(marked[1]).toBe('<http://svc.example.com/#/history/1/general|Open in svc>')
  for (const block of blocks) expect(block.text?.text.length ?? 0).toBeLessThanOrEqual(3000)
  expect(blocks[0]).toMatchObject({ type: 'header', text: { type: 'plain_text' } })
  expect(blocks[0]?.text?.text.length).toBeLessThanOrEqual(150)
})

test('teams: an adaptive card without Markdown', async () => {
  await send('teams', settingsOf('teams'), hostile)
  const { type, attachments } = last() as {
    type: string
    attachments: { contentType: string; content: Record<string, unknown> }[]
  }
  expect(type).toBe('message')
  expect(attachments[0]).toMatchObject({
    contentType: 'application/vnd.microsoft.card.adaptive',
    content: { type: 'AdaptiveCard', actions: [{ type: 'Action.OpenUrl', url: notice().link }] },
  })
  const body = attachments[0]?.content['body'] as { type: string }[]
  expect(new Set(body.map((block) => block.type))).toEqual(new Set(['RichTextBlock']))
})

test('mattermost: an attachment that calls nobody', async () => {
  await send('mattermost', { ...settingsOf('mattermost'), to_channel: 'ops' }, hostile)
  expect(last()).toMatchObject({ channel: 'ops', attachments: [{ color: '#d24b4e', title_link: notice().link }] })
  expect(receiver.received[0]?.text).not.toMatch(/@(everyone|here)/)
  const { attachments } = last() as { attachments: { fields: { value: string }[] }[] }
  expect(attachments[0]?.fields[0]?.value).toContain('\\[x\\]')
})

test('discord: an embed within its limits that calls nobody', async () => {
  await send('discord', settingsOf('discord'), hostile)
  const { allowed_mentions: mentions, embeds } = last() as {
    allowed_mentions: unknown
    embeds: { title: string; description: string; timestamp: string; fields: { name: string; value: string }[] }[]
  }
  expect(mentions).toEqual({ parse: [] })
  const [embed] = embeds
  expect(embed?.title.length).toBeLessThanOrEqual(256)
  expect(embed?.description.length).toBeLessThanOrEqual(4096)
  expect(embed?.fields[0]?.value.length).toBeLessThanOrEqual(1024)
  expect(embed?.timestamp).toBe('2026-01-31T12:00:00.000Z')
  expect(embed?.description.slice(3, -3)).not.toContain('```')
})

test('ntfy: JSON to the root, small enough to stay a message, with the credentials', async () => {
  await send('ntfy', { ...settingsOf('ntfy'), token: 'tk_1' }, hostile)
  expect(receiver.received[0]).toMatchObject({ path: '/', headers: { authorization: 'Bearer tk_1' } })
  expect(last()).toMatchObject({ topic: 'jobs', priority: 4, click: notice().link })
  expect(Buffer.byteLength(String(last()['message']))).toBeLessThan(4096)
  await send('ntfy', { ...settingsOf('ntfy'), user: 'u', password: 'p', priority: 5 })
  expect(receiver.received[1]?.headers.authorization).toBe(`Basic ${Buffer.from('u:p').toString('base64')}`)
  expect(last()).toMatchObject({ priority: 5, title: 'Failed: shop.deploy' })
})

test('pagerduty: a failure opens the alert of its job, a recovery closes it', async () => {
  await send('pagerduty', settingsOf('pagerduty'))
  expect(receiver.received[0]?.path).toBe('/v2/enqueue')
  const opened = last()
  expect(opened).toMatchObject({
    routing_key: 'R'.repeat(32),
    event_action: 'trigger',
    payload: { summary: 'Failed: shop.deploy', severity: 'error', source: 'shop.deploy' },
    links: [{ href: notice().link }],
  })
  await send('pagerduty', settingsOf('pagerduty'), notice({ condition: 'recovered', level: 'success' }))
  expect(last()).toEqual({ routing_key: 'R'.repeat(32), event_action: 'resolve', dedup_key: opened['dedup_key'] })
  await send('pagerduty', settingsOf('pagerduty'), hostile)
  expect(String((last()['payload'] as { summary: string }).summary).length).toBeLessThanOrEqual(1024)
})

describe('webhook', () => {
  const secrets = ['whsec_' + Buffer.alloc(24, 7).toString('base64'), 'whsec_' + Buffer.alloc(32, 9).toString('base64')]

  test('signs so that two independent receivers accept it, with each of its secrets', async () => {
    await send('webhook', { ...settingsOf('webhook'), secrets, headers: { 'X-Team': 'ops' } }, hostile)
    const [{ headers, text } = { headers: {}, text: '' }] = receiver.received
    expect(headers).toMatchObject({ 'webhook-id': notice().id, 'x-team': 'ops' })
    for (const secret of secrets) {
      expect(new Webhook(secret).verify(text, headers as Record<string, string>)).toMatchObject({
        type: 'svc.notification.failed',
        data: { id: notice().id, stderr: HOSTILE },
      })
      const own = createVerifier({ scheme: 'standard', secret: 'x' }, () => secret)
      const sent = new Map(Object.entries(headers).map(([name, value]) => [name, [String(value)]]))
      expect(() => own.verify({ headers: sent as never, body: Buffer.from(text) }, Date.now() / 1000)).not.toThrow()
    }
    expect(() =>
      new Webhook('whsec_' + Buffer.alloc(24, 1).toString('base64')).verify(text, headers as Record<string, string>),
    ).toThrow('No matching signature found')
  })

  test('sends unsigned without a secret, and nothing with one that is none', async () => {
    await send('webhook', settingsOf('webhook'))
    expect(receiver.received[0]?.headers['webhook-signature']).toBeUndefined()
    await expect(send('webhook', { ...settingsOf('webhook'), secret: 'short' })).rejects.toThrow(/whsec_/)
    await expect(send('webhook', { ...settingsOf('webhook'), headers: { a: 'b\nc: d' } })).rejects.toThrow(/header "a"/)
    expect(receiver.received).toHaveLength(1)
  })
})

describe('email', () => {
  interface Got {
    from: string
    to: string[]
    text: string
    user: string | undefined
    secure: boolean
  }
  const got: Got[] = []
  let port = 0
  let server: SMTPServer
  beforeAll(async () => {
    server = new SMTPServer({
      authOptional: true,
      onAuth(auth, _session, done) {
        if (auth.password === 'right') done(null, { user: auth.username })
        else done(new Error('wrong password'))
      },
      onRcptTo({ address }, _session, done) {
        if (address.startsWith('nobody')) done(Object.assign(new Error('no such user'), { responseCode: 550 }))
        else done()
      },
      onData(stream, { envelope, user, secure }, done) {
        const chunks: Buffer[] = []
        stream.on('data', (chunk: Buffer) => chunks.push(chunk))
        stream.on('end', () => {
          const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address
          const to = envelope.rcptTo.map(({ address }) => address)
          got.push({ from, to, text: Buffer.concat(chunks).toString(), user: user as string | undefined, secure })
          done()
        })
      },
    })
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve)
    })
    ;({ port } = server.server.address() as { port: number })
  })
  afterAll(() => new Promise<void>((resolve) => server.close(resolve)))
  beforeEach(() => void (got.length = 0))

  const smtp = (more: Record<string, unknown> = {}) => ({
    host: '127.0.0.1',
    port,
    to: 'ops@example.org',
    from: 'svc@example.org',
    ...more,
  })

  test('by SMTP with STARTTLS and an account, with a stable id', async () => {
    const answer = await send('email', smtp({ verify_certificate: false, user: 'svc', password: 'right' }))
    expect(answer).toMatch(/^250/)
    expect(got).toMatchObject([{ from: 'svc@example.org', to: ['ops@example.org'], user: 'svc', secure: true }])
    expect(got[0]?.text).toContain(`Message-ID: <${notice().id}@example.org>`)
    expect(got[0]?.text).toMatch(/^Subject: Failed: shop\.deploy\r$/m)
  })

  fullOnly(test)(
    'refuses a server without a trusted certificate, a wrong password and unknown recipients',
    async () => {
      await expect(send('email', smtp())).rejects.toMatchObject({ isFinal: false })
      const wrong = smtp({ verify_certificate: false, user: 'svc', password: 'wrong' })
      await expect(send('email', wrong)).rejects.toMatchObject({ isFinal: false })
      const unknown = smtp({ security: 'none', to: ['nobody@example.org'] })
      await expect(send('email', unknown)).rejects.toMatchObject({ isFinal: true })
      expect(got).toEqual([])
    },
  )

  test('lets no text become a header, a recipient or markup', async () => {
    await send('email', smtp({ security: 'none' }), hostile)
    const [mail] = got
    const [head = ''] = mail?.text.split('\r\n\r\n') ?? []
    expect(head).not.toMatch(/^bcc:/im)
    expect(mail?.to).toEqual(['ops@example.org'])
    const [, html = ''] = mail?.text.split('Content-Type: text/html') ?? []
    expect(html).toContain('Open in svc')
    expect(html).not.toMatch(/<script/)
    for (const to of [
      'a@example.org\r\nBcc: b@example.org',
      'Ops <ops@example.org>',
      'a@example.org,b@example.org',
      '-oX@x',
    ]) {
      await expect(send('email', smtp(), notice({ to: [to] }))).rejects.toThrow(/is not an address/)
    }
  })

  fullOnly(test)('goes to the recipients of the rule instead of those of the destination', async () => {
    await send('email', smtp({ security: 'none' }), notice({ to: ['dev@example.org', 'qa@example.org'] }))
    expect(got[0]?.to).toEqual(['dev@example.org', 'qa@example.org'])
  })

  fullOnly(test)('is handed to a sendmail program, whose failure is told', async () => {
    const program = join(folder.path, 'sendmail')
    const out = join(folder.path, 'mail')
    writeFileSync(program, `#!/bin/sh\necho "$@" > ${out}.args\ncat > ${out}\n`)
    chmodSync(program, 0o755)
    const settings = { sendmail: program, to: ['ops@example.org'], from: 'svc@example.org' }
    expect(await send('email', settings, hostile)).toBe(`handed to ${program}`)
    expect(readFileSync(`${out}.args`, 'utf8')).toBe('-i -f svc@example.org -- ops@example.org\n')
    expect(readFileSync(out, 'utf8')).toContain(`Message-ID: <${notice().id}@example.org>`)
    writeFileSync(program, '#!/bin/sh\necho "queue is full" >&2\nexit 75\n')
    await expect(send('email', settings)).rejects.toThrow(/exit code 75: queue is full/)
    await expect(send('email', { ...settings, sendmail: '/bin/sh' })).rejects.toThrow(/must be one of sendmail/)
  })
})
