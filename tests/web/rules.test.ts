import { createHmac } from 'node:crypto'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { createRbacFiles } from '../helpers/rbac.ts'
import { createTestApp } from '../helpers/app.ts'
import { type TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { startBrowser, type TestBrowser } from './browser.ts'
import { startGuarded } from './session.ts'

let server: TestApp
let browser: TestBrowser

beforeAll(async () => {
  ;[server, browser] = await Promise.all([createTestApp(), startBrowser()])
})

afterAll(async () => {
  await browser.close()
  await server.stop()
})

interface Stored {
  id: string
  ref: string
  enabled: boolean
  criteria: Record<string, unknown>
  trigger: { type: string; parameters: Record<string, unknown> }
  action: { ref: string; parameters: Record<string, unknown> }
}

const open = (address: string, options = {}) => browser.open(`${server.urls.api}/#${address}`, options)

async function stored(ref: string, query = ''): Promise<Stored> {
  return (await server.call<Stored>('GET', `/v1/rules/${ref}${query}`)).body
}

async function make(rule: Record<string, unknown>): Promise<Stored> {
  const { status, body, text } = await server.call<Stored>('POST', '/v1/rules', {
    pack: 'test',
    enabled: true,
    ...rule,
  })
  if (status !== 201) throw new Error(`the rule was not made: ${text}`)
  return body
}

const webhookRule = (name: string, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  name,
  trigger: { type: 'core.svc.webhook', parameters: { url: name } },
  action: { ref: 'core.local', parameters: { cmd: 'echo {{ trigger.body.kind }}' } },
  ...more,
})

const signature = { scheme: 'github', secret: 'shared-with-the-sender' }

const secretAction = {
  ref: 'core.http',
  parameters: { url: 'http://127.0.0.1:9/', username: 'me', password: 'the-password-itself' },
}

/** @returns the id of the trigger instance */
async function send(hook: string, body: unknown): Promise<string> {
  const answer = await server.call('POST', `/v1/webhooks/${hook}`, body)
  if (answer.status !== 202) throw new Error(`not accepted: ${answer.text}`)
  return answer.headers.get('svc-trigger-instance-id') ?? ''
}

function sendSigned(hook: string, secret: string): Promise<Response> {
  const body = '{"kind":"signed"}'
  return fetch(`${server.urls.api}/v1/webhooks/${hook}`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'X-Hub-Signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
    },
    body,
  })
}

async function processed(instance: string): Promise<void> {
  await waitFor('the trigger instance to be processed', async () => {
    const { body } = await server.call<{ status: string }>('GET', `/v1/triggerinstances/${instance}`)
    return body.status === 'processed'
  })
}

const field = (page: Page, name: string, within?: string) =>
  (within === undefined ? page : page.getByRole('region', { name: within })).getByLabel(name, { exact: true })

describe('rules', () => {
  it('are made by the form alone, react, and show what they have started', async () => {
    const { page, close } = await open('/rules')
    await page.getByRole('link', { name: 'Create rule' }).click()
    await page.getByLabel('Name').fill('on_order')
    await page.getByLabel('Pack').fill('test')
    await page.getByLabel('Description').fill('Runs what an order says.')
    await page.getByLabel('Trigger type').fill('core.svc.webhook')
    await field(page, 'url', 'When').fill('orders')
    await page.getByRole('button', { name: 'Add criterion' }).click()
    await page.getByLabel('Key').fill('trigger.body.kind')
    await page.getByLabel('Pattern', { exact: true }).fill('order')
    await page.getByLabel('Action', { exact: true }).fill('core.local')
    await field(page, 'cmd', 'Then').fill('echo order {{ trigger.body.id }}')
    await page.getByRole('button', { name: 'Create rule' }).click()
    await page.getByRole('heading', { name: 'test.on_order', level: 1, exact: true }).waitFor()
    expect(await stored('test.on_order')).toMatchObject({
      enabled: true,
      trigger: { type: 'core.svc.webhook', parameters: { url: 'orders' } },
      criteria: { 'trigger.body.kind': { type: 'equals', pattern: 'order' } },
      action: { ref: 'core.local', parameters: { cmd: 'echo order {{ trigger.body.id }}' } },
    })
    const does = page.getByRole('region', { name: 'Rule' })
    await does.getByRole('listitem').filter({ hasText: 'trigger.body.kind is "order"' }).waitFor()

    await page.getByText('No enforcements yet.').waitFor()
    await send('orders', { kind: 'order', id: 7 })
    const started = page.getByRole('region', { name: 'Enforcements' })
    // Without a reload.
    await started.getByText('succeeded').waitFor()
    expect(await started.getByRole('link', { name: 'execution' }).getAttribute('href')).toMatch(
      /^#\/history\/[0-9a-f]{24}$/,
    )
    await close()
  })

  it('are switched in place, and keep the secrets of their action and trigger', async () => {
    await make(
      webhookRule('keeper', {
        trigger: { type: 'core.svc.webhook', parameters: { url: 'keeper', signature } },
        action: secretAction,
      }),
    )
    const before = await stored('test.keeper', '?show_secrets=true')
    const { page, close } = await open('/rules?search=keeper')
    const rule = page.getByRole('switch', { name: 'Rule test.keeper enabled' })
    await rule.click()
    await page.getByText('Rule test.keeper disabled').waitFor()
    expect(await rule.getAttribute('aria-checked')).toBe('false')
    expect(await stored('test.keeper', '?show_secrets=true')).toMatchObject({ ...before, enabled: false })
    await rule.click()
    await page.getByText('Rule test.keeper enabled.').waitFor()
    expect(await stored('test.keeper', '?show_secrets=true')).toMatchObject({ ...before, enabled: true })
    // The secret of a trigger is never shown: a signature by it is still taken.
    expect((await sendSigned('keeper', 'shared-with-the-sender')).status).toBe(202)
    await close()
  })

  it('tell in a test which criterion does not hold, and the value that it saw', async () => {
    await make(webhookRule('tested', { criteria: { 'trigger.body.kind': { type: 'equals', pattern: 'order' } } }))
    await processed(await send('tested', { kind: 'invoice' }))
    const { page, close } = await open('/rules/test.tested')
    const test = page.getByRole('region', { name: 'Test against a recorded event' })
    await test.getByText('Payload of').waitFor()
    await test.getByRole('button', { name: 'Test rule' }).click()
    await test.getByText('does not match').first().waitFor()
    await test.getByRole('listitem').filter({ hasText: 'trigger.body.kind is "order"' }).waitFor()
    expect(await test.textContent()).toContain('Actual value: "invoice"')
    await test.getByLabel('Recorded event').selectOption('Pasted payload')
    await test.getByLabel('Payload').fill('{"body": {"kind": "order"}, "headers": {}}')
    await test.getByRole('button', { name: 'Test rule' }).click()
    await test.getByText('The test ran no action.').waitFor()
    expect(await test.textContent()).toContain('cmd: echo order')
    await close()
  })

  fullOnly(it)('keep a secret of their action that nobody touches, and say where one would be lost', async () => {
    await make(webhookRule('kept', { action: secretAction }))
    const { page, close } = await open('/rules/test.kept/edit')
    await field(page, 'url', 'Then').fill('http://127.0.0.1:9/changed')
    await page.getByLabel('Description').fill('Changed.')
    await page.getByRole('button', { name: 'Save rule' }).click()
    await page.getByRole('heading', { name: 'test.kept', level: 1, exact: true }).waitFor()
    expect((await stored('test.kept', '?show_secrets=true')).action.parameters).toMatchObject({
      url: 'http://127.0.0.1:9/changed',
      password: 'the-password-itself',
    })
    expect(await page.content()).not.toContain('the-password-itself')

    await page.getByRole('link', { name: 'Copy as new' }).click()
    await page.getByText('Secrets are not copied. Enter these where they are needed: password.').waitFor()
    // As JSON nothing keeps anybody from writing a mask.
    await page.getByRole('button', { name: 'JSON', exact: true }).click()
    const text = page.getByLabel('Definition')
    await text.fill((await text.inputValue()).replace('"username"', '"password": "********", "username"'))
    await page.getByRole('button', { name: 'Create rule' }).click()
    await page.getByRole('alert').filter({ hasText: 'Enter or remove the secret of password' }).waitFor()
    await text.fill('null')
    await page.getByRole('button', { name: 'Create rule' }).click()
    await page.getByText('Enter a rule as an object').waitFor()
    expect((await server.call('GET', '/v1/rules/test.kept_copy')).status).toBe(404)
    await close()
  })

  fullOnly(it)('show at the row of a criterion what the server finds wrong with it, and lose nothing', async () => {
    const { page, close } = await open('/rules/new')
    await page.getByLabel('Name').fill('wrong')
    // It is no single line: nothing is saved before somebody says so.
    await page.getByLabel('Name').press('Enter')
    expect(await page.getByRole('alert').count()).toBe(0)
    await page.getByLabel('Pack').fill('test')
    await page.getByLabel('Trigger type').fill('core.svc.webhook')
    await field(page, 'url', 'When').fill('wrong')
    await page.getByLabel('Action', { exact: true }).fill('core.noop')
    await page.getByRole('button', { name: 'Add criterion' }).click()
    await page.getByRole('button', { name: 'Add criterion' }).click()
    const second = page.getByRole('group', { name: 'Criterion 2' })
    await page.getByRole('group', { name: 'Criterion 1' }).getByLabel('Key').fill('trigger.body.a')
    await page.getByRole('group', { name: 'Criterion 1' }).getByLabel('Pattern', { exact: true }).fill('a')
    await second.getByLabel('Key').fill('trigger.body[')
    await second.getByLabel('Operator').selectOption('regex')
    await second.getByLabel('Pattern', { exact: true }).fill('(')
    const create = page.getByRole('button', { name: 'Create rule' })
    await create.click()
    await second.getByRole('alert').filter({ hasText: 'the key is not a path' }).waitFor()
    expect(await page.getByRole('group', { name: 'Criterion 1' }).getByRole('alert').count()).toBe(0)

    // What could never match is asked about.
    await second.getByLabel('Key').fill('trigger.body.b')
    await create.click()
    await second.getByRole('alert').filter({ hasText: 'The rule can never match.' }).waitFor()
    await second.getByLabel('Pattern', { exact: true }).fill('^b')
    expect(await page.getByRole('button', { name: 'Save anyway' }).count()).toBe(0)

    await make(webhookRule('taken'))
    await page.getByLabel('Name').fill('taken')
    await create.click()
    await page.getByText('Rule "test.taken" already exists.').waitFor()
    await page.getByLabel('Name').fill('right')
    await page.getByLabel('Name').press('Control+Enter')
    await page.getByRole('heading', { name: 'test.right', level: 1, exact: true }).waitFor()
    expect((await stored('test.right')).criteria).toEqual({
      'trigger.body.a': { type: 'equals', pattern: 'a' },
      'trigger.body.b': { type: 'regex', pattern: '^b' },
    })
    await close()
  })

  fullOnly(it)('go from the form to JSON and back without losing anything, half-written things included', async () => {
    const criteria = {
      'trigger.body.count': { type: 'greaterthan', pattern: 3 },
      'trigger.body.items': {
        type: 'search',
        condition: 'any',
        pattern: { 'item.kind': { type: 'equals', pattern: '12' }, 'item.there': { type: 'exists', pattern: true } },
      },
    }
    const tags = [{ name: 'team', value: 'shop' }]
    await make(webhookRule('round', { criteria, tags, description: 'Round trip.', type: { ref: 'backstop' } }))
    const before = await stored('test.round')
    const { page, close } = await open('/rules/test.round/edit')
    await field(page, 'cmd', 'Then').waitFor()
    const [asForm, asJson] = [
      page.getByRole('button', { name: 'Form', exact: true }),
      page.getByRole('button', { name: 'JSON', exact: true }),
    ]
    await page.getByLabel('Key').first().fill('trigger.body.half')
    await page.getByLabel('Pattern', { exact: true }).first().fill('[1, ')
    // A number that is none yet.
    await page.getByText('More parameters').click()
    await field(page, 'timeout', 'Then').fill('soon')
    await asJson.click()
    const text = page.getByLabel('Definition')
    expect(JSON.parse(await text.inputValue())).toMatchObject({
      criteria: { 'trigger.body.half': { pattern: '[1, ' }, 'trigger.body.items': criteria['trigger.body.items'] },
      action: { parameters: { timeout: 'soon' } },
      tags,
    })
    await text.fill((await text.inputValue()).slice(0, -1))
    await asForm.click()
    await page.getByText(/^Line \d+, column \d+: /).waitFor()
    await text.fill(`${await text.inputValue()}}`)
    await asForm.click()
    expect(await field(page, 'timeout', 'Then').inputValue()).toBe('soon')
    await field(page, 'timeout', 'Then').fill('')
    await page.getByLabel('Key').first().fill('trigger.body.count')
    await page.getByLabel('Kind of pattern').first().selectOption('json')
    await page.getByLabel('Pattern', { exact: true }).first().fill('3')
    await page.getByRole('button', { name: 'Save rule' }).click()
    await page.getByRole('heading', { name: 'test.round', level: 1, exact: true }).waitFor()
    expect(await stored('test.round')).toEqual(before)
    await close()
  })

  fullOnly(it)(
    'are not left with changes, nor overwritten when somebody else has changed them, without asking',
    async () => {
      // A number as a text is kept as it is.
      await make(webhookRule('shared', { action: { ref: 'core.local', parameters: { cmd: 'echo', timeout: '060' } } }))
      const { page, close } = await open('/rules/test.shared/edit')
      page.setDefaultTimeout(5000)
      await field(page, 'cmd', 'Then').waitFor()
      // Nothing has been changed yet.
      await page.getByRole('link', { name: '← The rule' }).click()
      await page.getByRole('link', { name: 'Edit' }).click()
      await page.getByLabel('Description').fill('Mine.')
      await page.getByRole('link', { name: 'Actions' }).click()
      const dialog = page.getByRole('dialog', { name: 'Leave without saving?' })
      await dialog.getByRole('button', { name: 'Continue editing' }).click()
      expect(page.url()).toContain('#/rules/test.shared/edit')
      expect(await page.getByLabel('Description').inputValue()).toBe('Mine.')

      const { body } = await server.call<Record<string, unknown>>('GET', '/v1/rules/test.shared')
      await server.call('PUT', '/v1/rules/test.shared', { ...body, description: 'Theirs.' })
      await page.getByRole('button', { name: 'Save rule' }).click()
      await page.getByRole('alert').filter({ hasText: 'was changed by' }).waitFor()
      expect(await stored('test.shared')).toMatchObject({ description: 'Theirs.' })
      await page.getByRole('button', { name: 'Overwrite the other change' }).click()
      await page.getByRole('heading', { name: 'test.shared', level: 1, exact: true }).waitFor()
      expect(await stored('test.shared')).toMatchObject({
        description: 'Mine.',
        action: { parameters: { timeout: '060' } },
      })

      await page.getByRole('link', { name: 'Edit' }).click()
      await page.getByLabel('Description').fill('Forgotten.')
      await page.goBack()
      await dialog.getByRole('button', { name: 'Leave without saving' }).click()
      await page.getByRole('heading', { name: 'test.shared', level: 1, exact: true }).waitFor()
      await page.getByRole('button', { name: 'Delete' }).click()
      await page.getByRole('button', { name: 'Delete rule' }).click()
      await page.getByText('Rule test.shared deleted.').waitFor()
      expect((await server.call('GET', '/v1/rules/test.shared')).status).toBe(404)
      await close()
    },
  )

  fullOnly(it)('offer the values of a recorded event for keys and templates', async () => {
    await make(webhookRule('offers', { action: { ref: 'core.local', parameters: { cmd: 'echo ' } } }))
    await processed(await send('offers', { 'odd key': { id: 7 } }))
    const { page, close } = await open('/rules/test.offers/edit')
    const cmd = field(page, 'cmd', 'Then')
    await cmd.focus()
    await cmd.press('End')
    await page.getByText('Insert an event value').click()
    await page.getByRole('button', { name: "trigger.body['odd key'].id 7" }).click()
    expect(await cmd.inputValue()).toBe("echo {{ trigger.body['odd key'].id }}")
    await page.getByRole('button', { name: 'Add criterion' }).click()
    await page.getByLabel('Key').focus()
    await page.getByRole('button', { name: "trigger.body['odd key'].id 7" }).click()
    expect(await page.getByLabel('Key').inputValue()).toBe("trigger.body['odd key'].id")
    await page.getByLabel('Pattern', { exact: true }).fill('7')
    await page.getByRole('button', { name: 'Compare with the value 7 instead' }).click()
    const test = page.getByRole('region', { name: 'Test against a recorded event' })
    await test.getByRole('button', { name: 'Test rule' }).click()
    await test.getByText('The test ran no action.').waitFor()
    expect(await test.textContent()).toContain('cmd: echo 7')
    // Nothing was stored.
    expect((await stored('test.offers')).criteria).toEqual({})
    await close()
  })

  fullOnly(it)('show hostile texts as text, on a phone too', async () => {
    const text = `<img src=x onerror="document.title='taken'">${'A'.repeat(1500)}\u202e{{ 1 }}`
    const long = `n${'a'.repeat(250)}`
    await make({
      ...webhookRule('hostile'),
      name: long,
      description: text,
      criteria: { [`trigger.body['${text.slice(0, 300).replaceAll("'", '')}']`]: { type: 'equals', pattern: text } },
      action: { ref: 'core.local', parameters: { cmd: text } },
    })
    for (const address of ['/rules', `/rules/test.${long}`, `/rules/test.${long}/edit`]) {
      const { page, close } = await open(address, { viewport: { width: 375, height: 700 } })
      await page.getByText('onerror').or(page.getByLabel('Description')).first().waitFor()
      const written = address.endsWith('/edit') ? await page.getByLabel('Description').inputValue() : text
      expect(written).toBe(text)
      expect(await page.locator('main img').count()).toBe(0)
      expect(await page.title()).toBe('Rules · svc')
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(375)
      await close()
    }
  })
})

describe('who may not change a rule', () => {
  it('sees why, and loses nothing', async () => {
    const folder = makeFolder()
    const rbac = createRbacFiles(folder.path)
    rbac.assign('admin', 'system_admin')
    rbac.define('viewer', [{ types: ['rule_list'] }, { types: ['rule_view'], on: 'rule:test:guarded' }])
    rbac.assign('viewer', 'viewer')
    const place = await startGuarded(
      {
        basePath: folder.path,
        settings: { 'rbac.enable': 'True', 'rbac.backend': 'default' },
      },
      ['viewer'],
    )
    try {
      const rule = { ...webhookRule('guarded'), pack: 'test', enabled: true }
      expect((await place.server.call('POST', '/v1/rules', rule, place.operator)).status).toBe(201)
      const { page, close } = await place.open('/rules', 'viewer')
      await page.getByRole('switch', { name: 'Rule test.guarded enabled' }).click()
      await page.getByText(/Could not disable rule test\.guarded: .*rule_modify/).waitFor()
      await page.goto(`${place.server.urls.api}/#/rules/test.guarded/edit`)
      await page.getByLabel('Description').fill('Not allowed.')
      await page.getByRole('button', { name: 'Save rule' }).click()
      await page.getByRole('alert').filter({ hasText: 'rule_modify' }).waitFor()
      expect(await page.getByLabel('Description').inputValue()).toBe('Not allowed.')
      await close()
    } finally {
      await place.stop()
      folder.remove()
    }
  })
})
