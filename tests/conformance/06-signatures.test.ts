/** Senders that sign, at a real server with authentication: who gets in, who does not, and what nobody gets to see. */
import { createHmac } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createTestApp } from '../helpers/app.ts'
import { type Answer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { auditRecords, rowsOf, send, type ErrorAnswer, type RawAnswer } from './support.ts'

const folder = makeFolder()
let server: TestApp
let token: Record<string, string>

beforeAll(async () => {
  server = await createTestApp({
    basePath: folder.path,
    settings: { 'auth.enable': 'True', 'log.level': 'DEBUG', 'api.max_body_bytes': '200000' },
  })
  token = await signIn(server, 'admin', firstPassword(folder.path))
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

let made = 0
const fresh = (): string => `signed${++made}`

interface Rule {
  id: string
  trigger: { ref: string; parameters: Record<string, unknown> }
}

/** A rule on a signed hook of its own. @returns the name of the hook */
async function makeHook(signature: Record<string, unknown> | undefined, more: Record<string, unknown> = {}) {
  const url = fresh()
  const answer = await server.call<Rule>(
    'POST',
    '/v1/rules',
    {
      name: url,
      enabled: true,
      trigger: {
        type: 'core.svc.webhook',
        parameters: { url, ...(signature === undefined ? {} : { signature }), ...more },
      },
      action: { ref: 'core.local', parameters: { cmd: 'echo out' } },
    },
    token,
  )
  if (answer.status !== 201) throw new Error(answer.text)
  return { hook: url, rule: answer.body }
}

const post = (
  hook: string,
  body: string | Buffer,
  headers: Record<string, string | string[]> = {},
): Promise<RawAnswer> =>
  send(server.urls.api, {
    method: 'POST',
    path: `/v1/webhooks/${hook}`,
    headers: { 'Content-Type': 'application/json', ...headers },
    body,
  })

const codeOf = ({ text }: RawAnswer): string => (JSON.parse(text) as ErrorAnswer).code
const countInstances = (): number =>
  rowsOf<{ n: number }>(
    server,
    "select count(*) as n from trigger_instances where trigger_type = 'core.svc.webhook'",
  )[0]?.n ?? -1

/** The code of a refusal with 401 after which nothing was stored; else what happened. */
async function refusal(request: () => Promise<RawAnswer>): Promise<string> {
  const before = countInstances()
  const answer = await request()
  if (answer.status !== 401) return `${answer.status} ${answer.text}`
  return countInstances() === before ? codeOf(answer) : 'something was stored'
}

const seconds = (): number => Math.floor(Date.now() / 1000)
const hexOf = (secret: string, text: string, algorithm = 'sha256'): string =>
  createHmac(algorithm, secret).update(text).digest('hex')

const standardSecret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const standardKey = Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64')

type Headers = Record<string, string>

interface Sender {
  signature: Record<string, unknown>
  /** Header of the signature. */
  header: string
  /** What the sender sends for a body, at a time, as a delivery. */
  readonly sign: (body: string, at: number, id: string) => Headers
  hasTime: boolean
  /** Whether a repetition of the same request is known by itself. */
  knowsRepetitions: boolean
}

const senders: Record<string, Sender> = {
  github: {
    signature: { scheme: 'github', secret: "It's a Secret to Everybody" },
    header: 'X-Hub-Signature-256',
    sign: (body, _, id) => ({
      'X-Hub-Signature-256': `sha256=${hexOf("It's a Secret to Everybody", body)}`,
      'X-GitHub-Delivery': id,
    }),
    hasTime: false,
    knowsRepetitions: true,
  },
  gitlab: {
    signature: { scheme: 'gitlab', secret: 'the-token-of-gitlab' },
    header: 'X-Gitlab-Token',
    sign: () => ({ 'X-Gitlab-Token': 'the-token-of-gitlab' }),
    hasTime: false,
    knowsRepetitions: false,
  },
  stripe: {
    signature: { scheme: 'stripe', secret: 'whsec_of_stripe' },
    header: 'Stripe-Signature',
    sign: (body, at) => ({ 'Stripe-Signature': `t=${at},v1=${hexOf('whsec_of_stripe', `${at}.${body}`)}` }),
    hasTime: true,
    knowsRepetitions: true,
  },
  slack: {
    signature: { scheme: 'slack', secret: '8f742231b10e8888abcd99yyyzzz85a5' },
    header: 'X-Slack-Signature',
    sign: (body, at) => ({
      'X-Slack-Signature': `v0=${hexOf('8f742231b10e8888abcd99yyyzzz85a5', `v0:${at}:${body}`)}`,
      'X-Slack-Request-Timestamp': String(at),
    }),
    hasTime: true,
    knowsRepetitions: true,
  },
  zoom: {
    signature: { scheme: 'zoom', secret: 'secret of zoom' },
    header: 'X-Zm-Signature',
    sign: (body, at) => ({
      'X-Zm-Signature': `v0=${hexOf('secret of zoom', `v0:${at}:${body}`)}`,
      'X-Zm-Request-Timestamp': String(at),
    }),
    hasTime: true,
    knowsRepetitions: true,
  },
  standard: {
    signature: { scheme: 'standard', secret: standardSecret },
    header: 'webhook-signature',
    sign: (body, at, id) => ({
      'webhook-id': id,
      'webhook-timestamp': String(at),
      'webhook-signature': `v1,${createHmac('sha256', standardKey).update(`${id}.${at}.${body}`).digest('base64')}`,
    }),
    hasTime: true,
    knowsRepetitions: true,
  },
  hmac: {
    signature: {
      scheme: 'hmac',
      secret: 'the secret of anybody',
      header: 'X-Sum',
      algorithm: 'sha512',
      prefix: 'hmac ',
      template: '{timestamp}/{id}/{body}',
      timestamp_header: 'X-At',
      id_header: 'X-Nr',
    },
    header: 'X-Sum',
    sign: (body, at, id) => ({
      'X-At': String(at),
      'X-Nr': id,
      'X-Sum': `hmac ${hexOf('the secret of anybody', `${at}/${id}/${body}`, 'sha512')}`,
    }),
    hasTime: true,
    knowsRepetitions: true,
  },
}

describe.each(Object.entries(senders))('%s', (_, sender) => {
  let hook: string
  beforeAll(async () => {
    hook = (await makeHook(sender.signature)).hook
  })
  const signed = (): Headers => sender.sign(body, seconds(), fresh())

  it('a valid signature is all that is needed', async () => {
    const answer = await post(hook, body, signed())
    expect([answer.status, JSON.parse(answer.text)]).toEqual([202, { kind: 'order', text: 'ää' }])
  })

  it('none, with or without a credential → 401; a credential is no signature', async () => {
    expect(await refusal(() => post(hook, body))).toBe('SIGNATURE_MISSING')
    expect(await refusal(() => post(hook, body, token))).toBe('SIGNATURE_MISSING')
    const { [sender.header]: _, ...others } = signed()
    expect(await refusal(() => post(hook, body, others))).toBe('SIGNATURE_MISSING')
  })

  it('a wrong credential beside a valid signature is refused as anywhere', async () => {
    expect(await refusal(() => post(hook, body, { ...signed(), 'Svc-Api-Key': 'wrong' }))).toBe('API_KEY_UNKNOWN')
  })

  it('changed, malformed, empty, given twice → 401, nothing is dispatched', async () => {
    const good = signed()
    const value = good[sender.header] ?? ''
    const flip = (text: string, at: number): string =>
      text.slice(0, at) + (text.charAt(at) === 'a' ? 'b' : 'a') + text.slice(at + 1)
    const codes = ['SIGNATURE_INVALID', 'SIGNATURE_MALFORMED', 'SIGNATURE_EXPIRED']
    for (let at = 0; at < value.length; at += 5) {
      expect(codes).toContain(await refusal(() => post(hook, body, { ...good, [sender.header]: flip(value, at) })))
    }
    for (const text of ['', 'x', value.slice(1), `${value}0`, value.slice(0, -1), '='.repeat(8000), '\u00e4\u00ff']) {
      expect(codes).toContain(await refusal(() => post(hook, body, { ...good, [sender.header]: text })))
    }
    expect(await refusal(() => post(hook, body, { ...good, [sender.header]: [value, value] }))).toBe(
      'SIGNATURE_MALFORMED',
    )
  })

  it('secrets are in no payload, list, record, log line, error, database or audit file', async () => {
    const secret = [sender.signature['secret']].flat().map(String)[0] ?? ''
    const answer = await post(hook, body, signed())
    const id = String(answer.headers['svc-trigger-instance-id'])
    const refused = await post(hook, body, { ...signed(), [sender.header]: 'x' })
    const texts = [
      refused.text,
      ...(await Promise.all(
        [
          `/v1/triggerinstances/${id}`,
          '/v1/webhooks',
          `/v1/webhooks/${hook}`,
          '/v1/triggers',
          '/v1/rules',
          '/v1/rules?show_secrets=true',
        ].map(async (path) => (await server.call('GET', path, undefined, token)).text),
      )),
      server.log(),
      ...files(server.basePath),
    ]
    for (const text of texts) expect(text.includes(secret)).toBe(false)
    expect(texts[2]).toContain('********')
  })
})

/** Of the senders that have this property. */
function describeSenders(title: string, which: (sender: Sender, name: string) => boolean, tests: (use: Use) => void) {
  describe.each(Object.entries(senders).filter(([name, sender]) => which(sender, name)))(
    `%s: ${title}`,
    (_, sender) => {
      let hook: string
      beforeAll(async () => {
        hook = (await makeHook(sender.signature)).hook
      })
      tests({
        sender,
        hook: () => hook,
        signed: (more = {}) => sender.sign(body, more.at ?? seconds(), more.id ?? fresh()),
      })
    },
  )
}

interface Use {
  sender: Sender
  hook: () => string
  signed: (more?: { at?: number; id?: string }) => Headers
}

const body = '{"kind": "order",\t"text": "ä\\u00e4"}'

describeSenders(
  'the body is signed',
  (_, name) => name !== 'gitlab',
  ({ hook, signed }) => {
    it('one changed byte of the body → 401', async () => {
      const good = signed()
      for (const changed of [body.replace('order', 'Order'), `${body} `, body.slice(1), '', body.replace('\t', ' ')]) {
        expect(await refusal(() => post(hook(), changed, good))).toBe('SIGNATURE_INVALID')
      }
    })
  },
)

describeSenders(
  'the time is signed',
  ({ hasTime }) => hasTime,
  ({ hook, signed }) => {
    it('a stale time, either way → 401', async () => {
      for (const away of [-301, -100_000, 330, 100_000]) {
        expect(await refusal(() => post(hook(), body, signed({ at: seconds() + away })))).toBe('SIGNATURE_EXPIRED')
      }
      expect((await post(hook(), body, signed({ at: seconds() - 270 }))).status).toBe(202)
    })
  },
)

describeSenders(
  'repetitions',
  ({ knowsRepetitions }) => knowsRepetitions,
  ({ sender, hook, signed }) => {
    it('the same request again causes nothing, whoever changed the rest of it', async () => {
      const headers = signed()
      const first = await post(hook(), body, headers)
      const before = countInstances()
      const again = await post(hook(), body, { ...headers, 'X-Other': 'changed' })
      expect([again.status, again.text, again.headers['idempotent-replayed']]).toEqual([202, first.text, 'true'])
      expect(again.headers['svc-trigger-instance-id']).toBe(first.headers['svc-trigger-instance-id'])
      // What is not signed can be changed by anybody; GitHub signs no more than the body.
      const tricked = sender.hasTime
        ? await post(hook(), body, { ...headers, 'Idempotency-Key': 'new', 'X-GitHub-Delivery': 'new' })
        : again
      expect([tricked.status, tricked.headers['idempotent-replayed']]).toEqual([202, 'true'])
      expect(countInstances()).toBe(before)
    })
  },
)

/** What stands in every file below a folder. */
function files(path: string): string[] {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
}

describe('raw bytes', () => {
  it('what is signed is what came, not what can be read out of it', async () => {
    const { hook } = await makeHook({ scheme: 'github', secret: 's' })
    const sign = (bytes: string | Buffer) => ({
      'X-Hub-Signature-256': `sha256=${createHmac('sha256', 's').update(bytes).digest('hex')}`,
    })
    for (const [type, text] of [
      ['application/json', ' [ 1.0 , "\\u0041" ]\r\n'],
      ['application/x-www-form-urlencoded', 'payload=%7B%22a%22%3A1%7D&b=%e4'.replace('%e4', '%C3%A4')],
      ['multipart/form-data; boundary=x', '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--\r\n'],
    ] as const) {
      const answer = await post(hook, text, { ...sign(text), 'Content-Type': type })
      expect([type, answer.status]).toEqual([type, 202])
    }
    // A signature makes nothing of what is not a body.
    const answer = await post(hook, 'Hello, World!', sign('Hello, World!'))
    expect([answer.status, codeOf(answer)]).toEqual([400, 'BODY_MALFORMED'])
    expect(await refusal(() => post(hook, 'Hello, World?', sign('Hello, World!')))).toBe('SIGNATURE_INVALID')
  })

  it('the signature is checked before anything is parsed', async () => {
    const { hook } = await makeHook({ scheme: 'github', secret: 's' })
    const wrong = { 'X-Hub-Signature-256': `sha256=${'0'.repeat(64)}` }
    for (const [type, text] of [
      ['application/json', '{'.repeat(1000)],
      ['application/xml', '<a/>'],
      ['multipart/form-data', 'x'],
    ] as const) {
      expect(await refusal(() => post(hook, text, { ...wrong, 'Content-Type': type }))).toBe('SIGNATURE_INVALID')
    }
    const large = await post(hook, 'x'.repeat(200_001), wrong)
    expect(large.status).toBe(413)
  })
})

describe('what a rule says', () => {
  it('two secrets while one replaces the other', async () => {
    const { hook } = await makeHook({ scheme: 'github', secret: ['new secret', 'old secret'] })
    const sign = (secret: string) => ({ 'X-Hub-Signature-256': `sha256=${hexOf(secret, '{}')}` })
    expect((await post(hook, '{}', sign('new secret'))).status).toBe(202)
    expect((await post(hook, '{}', sign('old secret'))).status).toBe(202)
    expect(await refusal(() => post(hook, '{}', sign('older secret')))).toBe('SIGNATURE_INVALID')
  })

  it('tolerance_seconds', async () => {
    const { hook } = await makeHook({ scheme: 'slack', secret: 's', tolerance_seconds: 1000 })
    const sign = (at: number) => ({
      'X-Slack-Signature': `v0=${hexOf('s', `v0:${at}:{}`)}`,
      'X-Slack-Request-Timestamp': String(at),
    })
    expect((await post(hook, '{}', sign(seconds() - 900))).status).toBe(202)
    expect(await refusal(() => post(hook, '{}', sign(seconds() - 1010)))).toBe('SIGNATURE_EXPIRED')
  })

  it('a secret of the datastore is read when it is needed; one that is missing lets nobody in', async () => {
    const put = (value: string): Promise<Answer<unknown>> =>
      server.call('PUT', '/v1/keys/hook_secret', { name: 'hook_secret', value, secret: true }, token)
    const { hook } = await makeHook({ scheme: 'github', secret: '{{ svckv.system.hook_secret | decrypt_kv }}' })
    const sign = (secret: string) => ({ 'X-Hub-Signature-256': `sha256=${hexOf(secret, '{}')}` })
    const missing = await post(hook, '{}', sign(''))
    expect([missing.status, codeOf(missing)]).toEqual([503, 'SIGNATURE_UNCHECKABLE'])
    expect(missing.text).not.toContain('hook_secret')
    expect((await put('first secret of the store')).status).toBe(200)
    expect((await post(hook, '{}', sign('first secret of the store'))).status).toBe(202)
    expect(await refusal(() => post(hook, '{}', sign('{{ svckv.system.hook_secret | decrypt_kv }}')))).toBe(
      'SIGNATURE_INVALID',
    )
    // As `svc key set` stores it from a file.
    expect((await put(' second secret of the store\n')).status).toBe(200)
    expect((await post(hook, '{}', sign('second secret of the store'))).status).toBe(202)
    expect(await refusal(() => post(hook, '{}', sign('first secret of the store')))).toBe('SIGNATURE_INVALID')
    for (const text of [server.log(), ...files(server.basePath)]) {
      expect(text.includes('secret of the store')).toBe(false)
    }
  })

  it('each trigger of a hook states its own protection', async () => {
    const name = fresh()
    const rule = (signature?: object) =>
      server.call<Rule>(
        'POST',
        '/v1/rules',
        {
          name: fresh(),
          trigger: { type: 'core.svc.webhook', parameters: { url: name, ...(signature && { signature }) } },
          action: { ref: 'core.noop' },
        },
        token,
      )
    const [one, two, open] = [
      (await rule({ scheme: 'github', secret: 'one' })).body.trigger.ref,
      (await rule({ scheme: 'github', secret: 'two' })).body.trigger.ref,
      (await rule()).body.trigger.ref,
    ]
    const sign = (secret: string) => ({ 'X-Hub-Signature-256': `sha256=${hexOf(secret, '{}')}` })
    const reached = async (headers: Record<string, string>): Promise<unknown[]> => {
      const answer = await post(name, '{}', headers)
      if (answer.status !== 202) return [answer.status, codeOf(answer)]
      const ids = String(answer.headers['svc-trigger-instance-id']).split(',')
      return ids.flatMap((id) =>
        rowsOf<{ trigger: string }>(server, 'select "trigger" from trigger_instances where id = ?', id).map(
          (row) => row.trigger,
        ),
      )
    }
    expect(await reached(sign('one'))).toEqual([one])
    expect(await reached(sign('two'))).toEqual([two])
    expect(await reached(token)).toEqual([open])
    expect(await reached({ ...token, ...sign('two') })).toEqual([two, open])
    expect(await reached({ ...token, ...sign('three') })).toEqual([open])
    expect(await reached(sign('three'))).toEqual([401, 'SIGNATURE_INVALID'])
    expect(await reached({})).toEqual([401, 'CREDENTIALS_MISSING'])
  })

  it('a signature can be added to a rule, and taken away', async () => {
    const { hook, rule } = await makeHook(undefined)
    const change = (parameters: object) =>
      server.call<Rule>(
        'PUT',
        `/v1/rules/${rule.id}`,
        { name: hook, enabled: true, trigger: { type: 'core.svc.webhook', parameters }, action: { ref: 'core.noop' } },
        token,
      )
    expect((await post(hook, '{}', token)).status).toBe(202)
    const signature = { scheme: 'github', secret: 'added' }
    const changed = await change({ url: hook, signature })
    expect(changed.body.trigger.parameters).toEqual({ url: hook, signature: { scheme: 'github', secret: '********' } })
    expect(await refusal(() => post(hook, '{}', token))).toBe('SIGNATURE_MISSING')
    const sign = { 'X-Hub-Signature-256': `sha256=${hexOf('added', '{}')}` }
    expect((await post(hook, '{}', sign)).status).toBe(202)
    // What was masked on the way is what it was.
    expect((await change(changed.body.trigger.parameters)).status).toBe(200)
    expect((await post(hook, '{}', sign)).status).toBe(202)
    await change({ url: hook })
    expect(await refusal(() => post(hook, '{}', sign))).toBe('CREDENTIALS_MISSING')
  })

  it.each([
    [{ scheme: 'md5', secret: 'x' }, 'is not one of'],
    [{ scheme: 'github' }, "'secret' is a required property"],
    [{ scheme: 'github', secret: '' }, 'non-empty'],
    [{ scheme: 'github', secret: [] }, 'non-empty'],
    [{ scheme: 'github', secret: ['a', 'b', 'c'] }, 'at most 2 items'],
    [{ scheme: 'github', secret: 'x', tolerance_seconds: 0 }, 'less than the minimum'],
    [{ scheme: 'github', secret: 'x', other: 1 }, "('other' was unexpected)"],
    [{ scheme: 'hmac', secret: 'x' }, "'header' is a required property"],
    [{ scheme: 'standard', secret: 'x' }, 'base64'],
    ['github', "is not of type 'object'"],
  ])('%j → 400', async (signature, text) => {
    const answer = await server.call<ErrorAnswer>(
      'POST',
      '/v1/rules',
      {
        name: fresh(),
        trigger: { type: 'core.svc.webhook', parameters: { url: 'x', signature } },
        action: { ref: 'core.noop' },
      },
      token,
    )
    expect([answer.status, answer.body.faultstring]).toEqual([400, expect.stringContaining(text)])
  })
})

describe('who gets what', () => {
  it('who has only signed gets no results, and may do nothing else', async () => {
    const { hook } = await makeHook({ scheme: 'github', secret: 's' })
    const sign = { 'X-Hub-Signature-256': `sha256=${hexOf('s', '{}')}` }
    const answer = await post(hook, '{}', { ...sign, Prefer: 'wait=20' })
    const { executions } = JSON.parse(answer.text) as { executions: { status: string; result?: unknown }[] }
    expect([answer.status, executions.map(({ status, result }) => [status, result])]).toEqual([
      200,
      [['succeeded', undefined]],
    ])
    for (const path of ['/v1/webhooks', `/v1/webhooks/${hook}`, '/v1/executions', '/v1/triggerinstances']) {
      expect([path, (await send(server.urls.api, { path, headers: sign })).status]).toEqual([path, 401])
    }
  })

  it('the generic hook does not take what others have to sign', async () => {
    const { rule } = await makeHook({ scheme: 'github', secret: 's' })
    const answer = await post('svc', JSON.stringify({ trigger: rule.trigger.ref, payload: { body: {} } }), token)
    expect([answer.status, codeOf(answer)]).toEqual([403, 'PERMISSION_DENIED'])
  })

  it('a template in what was sent stays text', async () => {
    const { hook } = await makeHook({ scheme: 'github', secret: 's' })
    const body = JSON.stringify({ text: '{{ 7 * 7 }}', '{{ key }}': 1 })
    const answer = await post(hook, body, { 'X-Hub-Signature-256': `sha256=${hexOf('s', body)}`, 'X-T': '{{ 7 * 7 }}' })
    expect(answer.text).toBe(body)
    const id = String(answer.headers['svc-trigger-instance-id'])
    const { text } = await server.call('GET', `/v1/triggerinstances/${id}`, undefined, token)
    expect(text).toContain('"text":"{{ 7 * 7 }}"')
    expect(text).toContain('"X-T":"{{ 7 * 7 }}"')
  })

  it('Slack asks whether the address is right: its word is given back, nothing is dispatched', async () => {
    const { hook } = await makeHook(senders['slack']?.signature ?? {})
    const sign = (text: string): Headers => senders['slack']?.sign(text, seconds(), fresh()) ?? {}
    const question = JSON.stringify({ token: 'old', challenge: 'a "word"', type: 'url_verification' })
    const before = countInstances()
    const answer = await post(hook, question, sign(question))
    expect([answer.status, JSON.parse(answer.text)]).toEqual([200, { challenge: 'a "word"' }])
    expect(await refusal(() => post(hook, question))).toBe('SIGNATURE_MISSING')
    expect(await refusal(() => post(hook, question, sign(`${question} `)))).toBe('SIGNATURE_INVALID')
    expect(countInstances()).toBe(before)

    for (const event of [{ type: 'url_verification' }, { type: 'event_callback', challenge: 'x' }]) {
      const text = JSON.stringify(event)
      expect((await post(hook, text, sign(text))).status).toBe(202)
    }
    const { hook: other } = await makeHook({ scheme: 'github', secret: 's' })
    expect((await post(other, question, { 'X-Hub-Signature-256': `sha256=${hexOf('s', question)}` })).status).toBe(202)
    expect(countInstances()).toBe(before + 3)
  })

  it('Zoom asks for a signature of its text: nothing is dispatched', async () => {
    const { hook } = await makeHook(senders['zoom']?.signature ?? {})
    const question = JSON.stringify({ event: 'endpoint.url_validation', payload: { plainToken: 'a "word"' } })
    const before = countInstances()
    const answer = await post(hook, question, senders['zoom']?.sign(question, seconds(), ''))
    const wanted = { plainToken: 'a "word"', encryptedToken: hexOf('secret of zoom', 'a "word"') }
    expect([answer.status, JSON.parse(answer.text)]).toEqual([200, wanted])
    expect(await refusal(() => post(hook, question))).toBe('SIGNATURE_MISSING')
    expect(countInstances()).toBe(before)
  })

  it('GitHub and Gitea may send their events in a form: the event is the body', async () => {
    const { hook } = await makeHook({ scheme: 'github', secret: 's' })
    const event = '{"ref":"refs/heads/ä","n":[1]}'
    const asForm = { 'Content-Type': 'application/x-www-form-urlencoded' }
    const form = `payload=${encodeURIComponent(event)}`
    const ofGitHub = await post(hook, form, { ...asForm, 'X-Hub-Signature-256': `sha256=${hexOf('s', form)}` })
    const ofGitea = await post(hook, form, { ...asForm, 'X-Gitea-Signature': hexOf('s', event) })
    expect([ofGitHub, ofGitea].map(({ status, text }) => [status, JSON.parse(text)])).toEqual(
      Array(2).fill([202, JSON.parse(event)]),
    )
    const { text } = await send(server.urls.api, {
      path: String(ofGitea.headers['location']),
      headers: token,
    })
    expect(JSON.parse(text)).toMatchObject({ payload: { body: JSON.parse(event) } })

    expect(await refusal(() => post(hook, `${form}&x=1`, { ...asForm, 'X-Gitea-Signature': hexOf('s', '') }))).toBe(
      'SIGNATURE_INVALID',
    )
    const plain = await post(hook, 'a=1', { ...asForm, 'X-Gitea-Signature': hexOf('s', 'a=1') })
    expect([plain.status, JSON.parse(plain.text)]).toEqual([202, { a: ['1'] }])
    for (const broken of ['payload=%7B', 'payload=7']) {
      const answer = await post(hook, broken, { ...asForm, 'X-Gitea-Signature': hexOf('s', broken) })
      expect(answer.status).toBe(400)
    }
  })

  it.each([
    ['stripe', { id: 'evt_1', object: 'event', type: 'charge.succeeded' }],
    ['slack', { type: 'event_callback', event_id: 'Ev1', event: { type: 'message' } }],
  ])('%s signs a repetition anew: the event causes nothing twice all the same', async (name, event) => {
    const sender = senders[name]
    const { hook } = await makeHook(sender?.signature ?? {})
    const send = async (sent: object, at: number): Promise<unknown> => {
      const text = JSON.stringify(sent)
      const { status, headers } = await post(hook, text, sender?.sign(text, at, ''))
      return [status, headers['idempotent-replayed']]
    }
    const before = countInstances()
    expect(await send(event, seconds() - 200)).toEqual([202, undefined])
    expect(await send(event, seconds())).toEqual([202, 'true'])
    expect(countInstances()).toBe(before + 1)
    expect(await send({ ...event, id: 'evt_2', event_id: 'Ev2' }, seconds())).toEqual([202, undefined])
    expect(countInstances()).toBe(before + 2)
  })

  it('the token of GitLab is in no payload, also of other triggers of the hook', async () => {
    const { hook } = await makeHook({ scheme: 'gitlab', secret: 'plain token' })
    const open = await server.call(
      'POST',
      '/v1/rules',
      { name: fresh(), trigger: { type: 'core.svc.webhook', parameters: { url: hook } }, action: { ref: 'core.noop' } },
      token,
    )
    expect(open.status).toBe(201)
    const answer = await post(hook, '{}', { ...token, 'X-Gitlab-Token': 'plain token', 'X-Gitlab-Event': 'Push Hook' })
    const ids = String(answer.headers['svc-trigger-instance-id']).split(',')
    expect(ids).toHaveLength(2)
    for (const id of ids) {
      const { text } = await server.call('GET', `/v1/triggerinstances/${id}`, undefined, token)
      expect(text).toContain('"X-Gitlab-Event":"Push Hook"')
      expect(text).not.toMatch(/plain token|gitlab-token/i)
    }
  })

  it('refusals are in the audit file, without what was sent; many alike are few lines', async () => {
    const { hook } = await makeHook({ scheme: 'github', secret: 's' })
    const sent = { 'X-Hub-Signature-256': `sha256=${'5'.repeat(64)}` }
    for (let i = 0; i < 40; i += 1) await post(hook, '{"canary": "body-of-the-refused"}', sent)
    const records = await waitFor('the lines', () => {
      const found = auditRecords(server, 'webhook.refused').filter((record) => record['_webhook'] === hook)
      return found.length > 0 && found
    })
    // Ten in ten seconds.
    expect(records.length).toBeLessThan(40)
    expect(records[0]).toMatchObject({ _code: 'SIGNATURE_INVALID', _remote_address: '127.0.0.1' })
    const text = JSON.stringify(records)
    expect(text).not.toContain('555555')
    expect(text).not.toContain('body-of-the-refused')
  })

  it('with authentication off, signed hooks ask for the signature all the same', async () => {
    const open = await createTestApp()
    try {
      const make = (url: string, more: object) =>
        open.call('POST', '/v1/rules', {
          name: url,
          trigger: { type: 'core.svc.webhook', parameters: { url, ...more } },
          action: { ref: 'core.noop' },
        })
      await make('a', { signature: { scheme: 'github', secret: 's' } })
      await make('b', {})
      const sign = { 'X-Hub-Signature-256': `sha256=${hexOf('s', '{}')}` }
      const statuses = await Promise.all([
        open.call('POST', '/v1/webhooks/a', '{}'),
        open.call('POST', '/v1/webhooks/a', '{}', sign),
        open.call('POST', '/v1/webhooks/b', '{}'),
      ])
      expect(statuses.map(({ status }) => status)).toEqual([401, 202, 202])
    } finally {
      await open.stop()
    }
  })
})
