/** The screen of webhooks: lines that work in a shell, requests as they come, and what each of them causes. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createRbacFiles } from '../helpers/rbac.ts'
import { createTestApp } from '../helpers/app.ts'
import { type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { startBrowser, type TestBrowser, type TestPage } from './browser.ts'
import { signInOn } from './session.ts'
import { fullOnly, tier } from '../helpers/tiers.ts'

const HOSTILE = `<img src=x onerror="alert(1)">'"$(id)\u202e`

let server: TestApp
let browser: TestBrowser

beforeAll(async () => {
  await ensureDebianPackage('curl', '/usr/bin/curl')
  await ensureDebianPackage('openssl', '/usr/bin/openssl')
  ;[server, browser] = await Promise.all([createTestApp(), startBrowser()])
})

afterAll(async () => {
  await browser.close()
  await server.stop()
})

interface RuleMore {
  criteria?: Record<string, unknown>
  action?: Record<string, unknown>
  enabled?: boolean
  name?: string
}

let made = 0
async function makeRule(
  parameters: Record<string, unknown>,
  { criteria = {}, action = { ref: 'core.noop' }, enabled = true, name = `rule${(made += 1)}` }: RuleMore = {},
  on = server,
  headers: Record<string, string> = {},
): Promise<{ id: string; trigger: { ref: string } }> {
  const trigger = { type: 'core.svc.webhook', parameters }
  const body = { name, enabled, trigger, criteria, action }
  const answer = await on.call<{ id: string; trigger: { ref: string } }>('POST', '/v1/rules', body, headers)
  if (answer.status !== 201) throw new Error(answer.text)
  return answer.body
}

async function post(hook: string, body: unknown, headers: Record<string, string> = {}): Promise<string> {
  const path = `/v1/webhooks/${hook.split('/').map(encodeURIComponent).join('/')}`
  const answer = await server.call('POST', path, body, headers)
  if (answer.status !== 202) throw new Error(answer.text)
  return answer.headers.get('svc-trigger-instance-id') ?? ''
}

const open = (address: string, options?: Parameters<TestBrowser['open']>[1]): Promise<TestPage> =>
  browser.open(`${server.urls.api}/#/webhooks${address}`, options)

const linesIn = (page: Page): Locator => page.getByLabel('Shell commands')
const requestsIn = (page: Page): Locator => page.getByRole('list', { name: 'Recent requests' }).getByRole('listitem')
const requestIn = (page: Page): Locator => page.getByRole('region', { name: 'Request', exact: true })

/** What a shell prints that is given these lines, and nothing else. The server is in this process, so it must not wait. */
async function runInShell(lines: string, variables: Record<string, string> = {}): Promise<string> {
  const env = { PATH: process.env['PATH'], ...variables }
  const shell = promisify(execFile)('sh', ['-c', lines], { env, timeout: 30_000 })
  shell.child.stdin?.end()
  return (await shell).stdout
}

describe('the list of webhooks', () => {
  it('shows each with its address, its proof and its rules, with few requests', async () => {
    for (let n = 0; n < 30; n += 1) await makeRule({ url: `list/${n}` })
    await makeRule({ url: 'list/signed', signature: { scheme: 'github', secret: 'hidden-secret' } })
    await makeRule({ url: '/list/shared/' }, { enabled: false, name: 'first' })
    await makeRule({ url: 'list/shared' }, { name: 'second' })
    const { page, close } = await browser.open('about:blank')
    const asked: string[] = []
    page.on('request', (request) => {
      if (request.url().includes('/api/v1/')) asked.push(new URL(request.url()).pathname)
    })
    await page.goto(`${server.urls.api}/#/webhooks?search=list`)
    const row = (name: string): Locator =>
      page
        .getByRole('listitem')
        .filter({ has: page.getByRole('link', { name, exact: true }) })
        .first()
    await row('list/0').getByText(`${server.urls.api}/api/v1/webhooks/list/0`).waitFor()
    await row('list/0')
      .getByRole('link', { name: /^default\.rule/ })
      .waitFor()
    await row('list/0').getByText('No authentication').waitFor()
    // Once more when the stream of changes is open: something may have changed in between.
    expect(asked.filter((path) => path.endsWith('/webhooks')).length).toBeLessThan(3)
    expect(asked.filter((path) => path.endsWith('/rules')).length).toBeLessThan(7)
    await page.getByRole('searchbox', { name: 'Find a webhook' }).fill('list ed')
    await row('list/signed').getByText('GitHub signature').waitFor()
    const shared = row('list/shared')
    expect(await shared.getByRole('link', { name: 'default.first' }).getAttribute('href')).toBe('#/rules/default.first')
    await shared.getByText('disabled').waitFor()
    await shared.getByRole('link', { name: 'default.second' }).waitFor()
    expect(await page.getByRole('list', { name: 'Webhooks' }).getByRole('listitem').count()).toBe(2)
    expect(await page.content()).not.toContain('hidden-secret')
    await page.getByRole('link', { name: 'list/signed' }).click()
    await page.getByRole('heading', { name: 'list/signed' }).waitFor()
    await close()
  })

  fullOnly(it)('knows what becomes of the rules, also after they could not be read for a while', async () => {
    const { id } = await makeRule({ url: 'watched' }, { name: 'watched' })
    const { page, close } = await browser.open('about:blank')
    const rules = /\/api\/v1\/rules\?/
    await page.route(rules, (route) => route.fulfill({ status: 503, body: '' }))
    await page.goto(`${server.urls.api}/#/webhooks?search=watched`)
    await page.getByText('Could not load the rules').waitFor()
    await page.unroute(rules)
    const link = page.getByRole('link', { name: 'default.watched' })
    await link.waitFor()
    expect(await page.getByText('Could not load the rules').count()).toBe(0)
    const { body } = await server.call<Record<string, unknown>>('GET', `/v1/rules/${id}`)
    await server.call('PUT', `/v1/rules/${id}`, { ...body, enabled: false })
    await page.getByText('disabled', { exact: true }).waitFor()
    await close()
  })

  fullOnly(it)('says what to do when there is none, and that a name leads nowhere', async () => {
    const { page, close } = await open('/no%2Fsuch%20hook')
    await page.getByRole('heading', { name: 'Webhook not found' }).waitFor()
    expect(await page.getByRole('main').textContent()).toContain('no/such hook')
    await close()
  })
})

describe('lines for a shell', () => {
  it('send what the rules take, as they stand; the request and what it causes appear by themselves', async () => {
    await makeRule(
      { url: 'orders' },
      {
        criteria: {
          'trigger.body.kind': { type: 'equals', pattern: `it's "$(id)" \`id\` \\ ${HOSTILE}` },
          "trigger.headers['X-Source']": { type: 'iequals', pattern: "Tom's $shop" },
        },
        action: { ref: 'core.local', parameters: { cmd: 'echo done', env: { ID: '{{ trigger.body.id }}' } } },
      },
    )
    const { page, close } = await open('/orders', { permissions: ['clipboard-read', 'clipboard-write'] })
    await page.getByText('No requests yet').waitFor()
    await waitFor('the example to have what the rule asks for', async () =>
      (await linesIn(page).textContent())?.includes('X-Source'),
    )
    await page.getByRole('button', { name: 'Copy commands' }).click()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    const lines = await page.evaluate(() => navigator.clipboard.readText())
    expect(lines).toBe(await linesIn(page).textContent())
    expect(lines).not.toContain('\u202e')
    const printed = await runInShell(lines)
    expect(printed).toContain('202 Accepted')
    const id = /Svc-Trigger-Instance-Id: (\w+)/i.exec(printed)?.[1] ?? ''
    const row = requestsIn(page).first()
    await row.getByRole('link', { name: 'succeeded core.local' }).waitFor()
    expect(await row.textContent()).toContain('"kind":"it\'s')
    await row.getByRole('link').first().click()
    expect(page.url()).toContain(`request=${id}`)
    const request = requestIn(page)
    await request.getByRole('cell', { name: "Tom's $shop" }).waitFor()
    await request.getByText('kind:').waitFor()
    expect(await request.getByRole('link', { name: 'Explain' }).getAttribute('href')).toBe(`#/triggers/instances/${id}`)
    expect(await request.getByRole('link', { name: 'Trace' }).getAttribute('href')).toMatch(/^#\/traces\/[0-9a-f]{24}$/)
    await close()
  })

  const senders: [name: string, url: string, scheme: Record<string, string>][] = [
    ['what GitHub signs', 'signed/github', { scheme: 'github' }],
    ['a name of the worst kind', `ü/it's "$(id)" [a]{b} % &;| \\`, {}],
    [
      'what somebody signs in a way of their own',
      'signed/own',
      {
        scheme: 'hmac',
        header: 'X-Shop-Signature',
        prefix: 'v1=',
        template: "{timestamp}.it's.{body}",
        timestamp_header: 'X-Shop-Time',
        id_header: 'X-Shop-Id',
        encoding: 'base64',
      },
    ],
  ]
  it.each(tier === 'full' ? senders : senders.slice(0, 1))('work for %s', async (_, url, scheme) => {
    const secret = `it's a "$secret"`
    const isSigned = Object.keys(scheme).length > 0
    await makeRule({ url, ...(isSigned && { signature: { ...scheme, secret } }) })
    const { page, close } = await open(`/${encodeURIComponent(url)}`)
    await page.getByRole('heading', { level: 1, name: url }).waitFor()
    const lines = (await linesIn(page).textContent()) ?? ''
    expect(await runInShell(lines, { SECRET: secret })).toContain('202 Accepted')
    // One that is refused leaves nothing.
    const refused = isSigned ? await runInShell(lines, { SECRET: 'another' }) : 'SIGNATURE_INVALID'
    expect(refused).toContain('SIGNATURE_INVALID')
    await requestsIn(page)
      .getByRole('link', { name: /core\.noop/ })
      .waitFor()
    expect(await requestsIn(page).count()).toBe(1)
    await close()
  })
})

fullOnly(describe)('with authentication on', () => {
  let guarded: TestApp
  let admin: Record<string, string>
  let password: string
  beforeAll(async () => {
    guarded = await createTestApp({ settings: { 'auth.enable': 'True' } })
    password = firstPassword(guarded.basePath)
    admin = await signIn(guarded, 'admin', password)
  })
  afterAll(async () => {
    await guarded.stop()
  })

  async function openGuarded(address: string): Promise<TestPage> {
    const opened = await browser.open(`${guarded.urls.api}/#/webhooks${address}`)
    await signInOn(opened.page, 'admin', password)
    return opened
  }

  it('the lines take an API key from the environment', async () => {
    await makeRule({ url: 'keyed' }, {}, guarded, admin)
    const { body } = await guarded.call<{ key: string }>('POST', '/v1/apikeys', {}, admin)
    const { page, close } = await openGuarded('/keyed')
    await page.getByText('Senders need an API key').waitFor()
    const lines = (await linesIn(page).textContent()) ?? ''
    expect(lines).not.toContain(body.key)
    expect(await runInShell(lines)).toContain('401 Unauthorized')
    expect(await runInShell(lines, { SVC_API_KEY: body.key })).toContain('202 Accepted')
    await requestsIn(page).getByRole('link', { name: 'succeeded core.noop' }).waitFor()
    await close()
  })

  it('a signed webhook needs no more than its secret, from a shell and from the page', async () => {
    const signature = { scheme: 'standard', secret: `whsec_${btoa('sixteen bytes or more')}` }
    await makeRule({ url: 'standard', signature }, {}, guarded, admin)
    const { page, close } = await openGuarded('/standard')
    await linesIn(page).waitFor()
    const lines = (await linesIn(page).textContent()) ?? ''
    expect(lines).not.toContain('Svc-Api-Key')
    expect(await runInShell(lines, { SECRET: signature.secret })).toContain('202 Accepted')
    await requestsIn(page).getByRole('link', { name: 'succeeded core.noop' }).waitFor()

    const form = page.locator('form')
    await form.getByLabel('Secret', { exact: true }).fill(`whsec_${btoa('another one, just as long')}`)
    await form.getByRole('button', { name: 'Send' }).click()
    // Refused is the signature, not the session.
    await form.getByRole('alert').filter({ hasText: 'The signature is not valid' }).waitFor()
    await form.getByLabel('Secret', { exact: true }).fill(signature.secret)
    await form.getByRole('button', { name: 'Send' }).click()
    await page.getByText('The server accepted the request').waitFor()
    await waitFor('both requests', async () => (await requestsIn(page).count()) === 2)
    expect(page.url()).not.toContain('whsec')
    await close()
  })

  it('a signature has the time of the server, whatever the clock of the browser says', async () => {
    const signature = { scheme: 'stripe', secret: 'whose clock is it' }
    await makeRule({ url: 'clock', signature }, {}, guarded, admin)
    const { page, close } = await browser.open('about:blank')
    await page.clock.setSystemTime(Date.now() - 86_400_000)
    await page.goto(`${guarded.urls.api}/#/webhooks/clock`)
    await signInOn(page, 'admin', password)
    await page.getByLabel('Secret', { exact: true }).fill(signature.secret)
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByText('The server accepted the request').waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
    await close()
  })
})

fullOnly(describe)('whoever may see little', () => {
  const folder = makeFolder()
  let place: TestApp
  let operator: Record<string, string>
  beforeAll(async () => {
    const rbac = createRbacFiles(folder.path)
    rbac.assign('admin', 'system_admin')
    rbac.define('sender', [
      { types: ['webhook_list'] },
      { types: ['webhook_view', 'webhook_send'], on: 'webhook:allowed' },
    ])
    place = await createTestApp({
      basePath: folder.path,
      settings: { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' },
    })
    operator = await signIn(place, 'admin', firstPassword(folder.path))
    const user = { name: 'sender', password: 'a long enough password' }
    const { status, text } = await place.call('POST', '/v1/users', user, operator)
    if (status !== 201) throw new Error(text)
    for (const url of ['allowed', 'forbidden']) await makeRule({ url }, { name: url }, place, operator)
  })
  afterAll(async () => {
    await place.stop()
    folder.remove()
  })

  it('sees those webhooks, sends to them, and is told what else is not to be seen', async () => {
    const { page, close } = await browser.open(`${place.urls.api}/#/webhooks`)
    await signInOn(page, 'sender', 'a long enough password')
    await page.getByRole('link', { name: 'allowed', exact: true }).waitFor()
    await page.getByText(/^Could not load the rules: /).waitFor()
    expect(await page.getByRole('main').textContent()).not.toContain('forbidden')
    await page.getByRole('link', { name: 'allowed', exact: true }).click()
    await page.getByText(/^Could not load the rules: /).waitFor()
    await page.getByRole('region', { name: 'Recent requests' }).getByRole('alert').waitFor()
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByText('The server accepted the request').waitFor()
    await page.getByText(/^Could not load the outcome: /).waitFor()
    await page.goto(`${place.urls.api}/#/webhooks/forbidden`)
    await page.getByRole('alert').waitFor()
    const { body } = await place.call<unknown[]>('GET', '/v1/executions?rule=allowed', undefined, operator)
    expect(body).toHaveLength(1)
    await close()
  })
})

describe('the form that sends', () => {
  it('sends body, headers, trace tag and key; waits; tells a repetition; keeps what was typed', async () => {
    await makeRule(
      { url: 'form' },
      {
        criteria: { "trigger.headers['X-Kind']": { type: 'eq', pattern: 'b' } },
        action: { ref: 'core.local', parameters: { cmd: 'echo from the form' } },
      },
    )
    const { page, close } = await open('/form')
    const form = page.locator('form')
    await form.getByLabel('Name of header 1').waitFor()
    await form.getByLabel('Body', { exact: true }).fill('{"n": 1,}')
    await form.getByRole('button', { name: 'Send' }).click()
    await form.getByRole('alert').filter({ hasText: 'The body is not valid JSON. Line 1' }).waitFor()
    await form.getByLabel('Body', { exact: true }).fill('{"n": [1, "ü"]}')
    await form.getByRole('button', { name: 'Add header' }).click()
    await form.getByLabel('Name of header 2').fill('Cookie')
    await form.getByLabel('Value of header 2').fill('a=b')
    await form.getByRole('button', { name: 'Send' }).click()
    await form.getByRole('alert').filter({ hasText: 'Cookie: Browsers cannot send this header' }).waitFor()
    await form.getByRole('button', { name: 'Remove header 2' }).click()
    await form.getByLabel('Trace tag').fill('from-the-form')
    await form.getByLabel('Idempotency key').fill('once')
    await form.getByLabel('Seconds to wait').fill('20')
    await form.getByRole('button', { name: 'Send' }).click()
    await page.getByText('The server accepted the request').waitFor()
    await page.getByText('from the form', { exact: true }).waitFor()
    const { body } = await server.call<{ id: string }[]>('GET', '/v1/traces?trace_tag=from-the-form')
    expect(await page.getByRole('status').getByRole('link', { name: 'Trace' }).getAttribute('href')).toBe(
      `#/traces/${body[0]?.id}`,
    )
    await form.getByRole('button', { name: 'Send' }).click()
    await page.getByText('The server already has this request').waitFor()
    expect(await form.getByLabel('Body', { exact: true }).inputValue()).toBe('{"n": [1, "ü"]}')
    await form.getByLabel('Body', { exact: true }).fill('{"n": 2}')
    await form.getByRole('button', { name: 'Send' }).click()
    await form.getByRole('alert').waitFor()
    await waitFor('one request', async () => (await requestsIn(page).count()) === 1)
    await close()
  })

  fullOnly(it)('announces events of one’s own at the generic webhook', async () => {
    const schema = { type: 'object', properties: { version: { type: 'string' }, n: { type: 'integer' } } }
    await server.call('POST', '/v1/triggertypes', { name: 'deployed', pack: 'shop', payload_schema: schema })
    await server.call('POST', '/v1/rules', {
      name: 'on_deployed',
      enabled: true,
      trigger: { type: 'shop.deployed' },
      action: { ref: 'core.noop' },
    })
    const { page, close } = await open('/svc')
    await page.getByLabel('Trigger type').selectOption('shop.deployed')
    expect(page.url()).toContain('trigger=shop.deployed')
    const lines = (await linesIn(page).textContent()) ?? ''
    expect(lines).toContain('{"trigger":"shop.deployed","payload":{"version":"example","n":1}}')
    expect(await runInShell(lines)).toContain('202 Accepted')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('link', { name: 'succeeded core.noop' }).waitFor()
    await close()
  })
})

describe('requests', () => {
  it('that nothing came of lead to why; a rule that failed shows, too; one is sent again', async () => {
    await makeRule(
      { url: 'why' },
      { criteria: { 'trigger.body.a': { type: 'eq', pattern: 1 } }, action: { ref: 'core.nothing' } },
    )
    const unmatched = await post('why', { a: 2 })
    await post('why', { a: 1 })
    const { page, close } = await open('/why')
    const [failed, nothing] = [requestsIn(page).nth(0), requestsIn(page).nth(1)]
    await failed.getByRole('link', { name: /rule failed/ }).waitFor()
    await nothing.getByText('no rule matched').waitFor()
    expect(await nothing.getByRole('link', { name: 'Why?' }).getAttribute('href')).toBe(
      `#/triggers/instances/${unmatched}`,
    )
    await nothing.getByRole('button', { name: 'Replay' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Show replay' }).waitFor()
    await waitFor('the new one', async () => (await requestsIn(page).count()) === 3)
    // It is said of the one that was sent, which has moved.
    expect(await requestsIn(page).filter({ hasText: 'Show replay' }).allTextContents()).toEqual([
      expect.stringContaining('no rule matched'),
    ])
    await requestsIn(page).nth(2).getByRole('link', { name: 'Show replay' }).waitFor()
    await page.getByRole('link', { name: 'Show replay' }).click()
    await requestIn(page).getByRole('link', { name: 'an earlier request' }).click()
    await waitFor('the first one', () => page.url().includes(`request=${unmatched}`))
    await requestIn(page).getByText('no rule matched').waitFor()
    await requestIn(page).getByRole('link', { name: 'Close' }).click()
    await linesIn(page).waitFor()
    await close()
  })

  fullOnly(it)('of many rules show some of what came of each, what failed first', async () => {
    const RULES = 110
    const folder = makeFolder()
    const ended = join(folder.path, 'ended')
    const commands = new Map([
      [50, 'exit 1'],
      // Too late to be listed: what is known of it comes by events.
      [RULES - 1, `until [ -e ${ended} ]; do sleep 0.1; done; exit 1`],
    ])
    for (let n = 0; n < RULES; n += 1) {
      const cmd = commands.get(n)
      await makeRule({ url: 'crowd' }, cmd === undefined ? {} : { action: { ref: 'core.local', parameters: { cmd } } })
    }
    for (let n = 0; n < 10; n += 1) await post('crowd', { n })
    const { page, close } = await open('/crowd')
    const rows = Array.from({ length: 10 }, (_, n) => requestsIn(page).nth(n))
    for (const row of rows) {
      await row.getByRole('link', { name: 'failed core.local' }).waitFor()
      await row.getByRole('link', { name: `and ${RULES - 2} more` }).waitFor()
    }
    folder.write('ended', '')
    for (const row of rows) {
      await waitFor('both failures', async () => {
        return (await row.getByRole('link', { name: 'failed core.local' }).count()) === 2
      })
      await row.getByRole('link', { name: `and ${RULES - 2} more` }).waitFor()
    }
    expect(await requestsIn(page).getByText('no rule matched').count()).toBe(0)
    await close()
    folder.remove()
  })

  fullOnly(it)(
    'have what came of them once that can be asked for again; meanwhile nobody is asked without end',
    async () => {
      await makeRule({ url: 'outage' })
      await post('outage', { n: 1 })
      const { page, close } = await browser.open('about:blank')
      let asked = 0
      await page.route(/ruleenforcements/, (route) => {
        asked += 1
        return route.fulfill({ status: 503, json: { faultstring: 'Out for a while.', code: 'STORAGE_FAILED' } })
      })
      await page.goto(`${server.urls.api}/#/webhooks/outage`)
      await page.getByText('Could not load the outcomes: Out for a while.').waitFor()
      // Each is drawn by itself, and each time it is wanted what came of it.
      for (const n of [2, 3]) {
        await post('outage', { n })
        await requestsIn(page).first().getByText(`{"n":${n}}`).waitFor()
      }
      expect(asked).toBeLessThan(5)
      await page.unroute(/ruleenforcements/)
      await waitFor('what came of all of them', async () => {
        return (await requestsIn(page).getByRole('link', { name: 'succeeded core.noop' }).count()) === 3
      })
      expect(await page.getByText('Could not load the outcomes').count()).toBe(0)
      await close()
    },
  )

  fullOnly(it)('appear without a reload, also those that no rule is interested in', async () => {
    await makeRule({ url: 'quiet' }, { enabled: false })
    const { page, close } = await open('/quiet')
    await page.getByText('No requests yet').waitFor()
    await post('quiet', { n: 1 })
    await requestsIn(page).first().getByText('{"n":1}').waitFor()
    await post('quiet', { n: 2 })
    await requestsIn(page).first().getByText('{"n":2}').waitFor()
    expect(await requestsIn(page).count()).toBe(2)
    await close()
  })

  fullOnly(it)('are text, whatever is in them, and long values are shown in parts', async () => {
    const hook = `hostile ${HOSTILE}`
    await makeRule({ url: hook }, { name: 'hostile' })
    const long = await post(
      hook,
      { [HOSTILE]: HOSTILE, list: Array.from({ length: 500 }, (_, n) => n) },
      {
        'X-Long': 'x'.repeat(5000),
        'X-Markup': '<script>alert(1)</script>',
      },
    )
    const { page, close } = await open(`/${encodeURIComponent(hook)}?request=${long}`)
    await page.getByRole('heading', { level: 1 }).filter({ hasText: 'onerror' }).waitFor()
    const request = requestIn(page)
    await request.getByRole('cell', { name: '<script>alert(1)</script>' }).waitFor()
    await request.getByRole('button', { name: /more characters/ }).waitFor()
    expect(await request.locator('img, script').count()).toBe(0)
    await close()
  })

  fullOnly(it)('of megabytes are loaded on demand, and shown in parts', async () => {
    await makeRule({ url: 'large' })
    const large = await post('large', { text: 'y'.repeat(2_000_000) })
    const { page, close } = await open(`/large?request=${large}`)
    const request = requestIn(page)
    await request.getByText('The request has 2.0 MB').waitFor()
    await request.getByRole('button', { name: 'Load' }).click()
    await request.getByRole('button', { name: /more characters/ }).waitFor()
    expect(((await page.content()) ?? '').length).toBeLessThan(200_000)
    await close()
  })

  fullOnly(it)('of a busy webhook are loaded where they are looked at', async () => {
    await makeRule({ url: 'busy' }, { enabled: false })
    for (let n = 0; n < 350; n += 50) {
      await Promise.all(Array.from({ length: 50 }, (_, i) => post('busy', { n: n + i })))
    }
    const { page, close } = await open('/busy')
    await requestsIn(page).first().waitFor()
    await page.getByText('350', { exact: true }).waitFor()
    expect(await requestsIn(page).count()).toBeLessThan(60)
    const list = page.getByRole('list', { name: 'Recent requests' })
    await list.evaluate((element) => (element.scrollTop = element.scrollHeight))
    await list
      .locator('[aria-posinset="350"]')
      .getByText(/^\{"n":\d+\}$/)
      .waitFor()
    // What comes meanwhile does not move what is looked at.
    const bodyAt = (place: number): Promise<string | null> =>
      list
        .locator(`[aria-posinset="${place}"]`)
        .getByText(/^\{"n"/)
        .textContent()
    const shown = await bodyAt(345)
    await post('busy', { n: 'new' })
    await page.getByText('351', { exact: true }).waitFor()
    await waitFor('the same row one further down', async () => (await bodyAt(346)) === shown)
    await close()
  })

  fullOnly(it)('fit a telephone', async () => {
    await makeRule({ url: `phone-${'long'.repeat(60)}` }, { name: 'phone' })
    const hook = `phone-${'long'.repeat(60)}`
    const id = await post(hook, { text: 'word'.repeat(100) })
    const { page, close } = await open(`/${hook}`, { viewport: { width: 375, height: 700 } })
    await requestsIn(page)
      .getByRole('link', { name: /core\.noop/ })
      .waitFor()
    const width = (): Promise<number> => page.evaluate(() => document.documentElement.scrollWidth)
    expect(await width()).toBe(375)
    await page.getByText('Shell', { exact: true }).click()
    await page.getByText('Send a request').click()
    await linesIn(page).waitFor()
    expect(await width()).toBe(375)
    await requestsIn(page).getByRole('link').first().click()
    await requestIn(page).getByRole('cell').first().waitFor()
    expect(page.url()).toContain(id)
    expect(await width()).toBe(375)
    await page.goto(`${server.urls.api}/#/webhooks`)
    await page.getByRole('heading', { name: 'Webhooks' }).waitFor()
    expect(await width()).toBe(375)
    await close()
  })
})
