import { createHmac } from 'node:crypto'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startServer, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { startBrowser, type TestBrowser } from './browser.ts'

let server: TestServer
let browser: TestBrowser

beforeAll(async () => {
  ;[server, browser] = await Promise.all([startServer(), startBrowser()])
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
    await page.getByRole('link', { name: 'New rule' }).click()
    await page.getByLabel('Name').fill('on_order')
    await page.getByLabel('Pack').fill('test')
    await page.getByLabel('Description').fill('Runs what an order says.')
    await page.getByLabel('Trigger type').fill('core.svc.webhook')
    await field(page, 'url', 'When').fill('orders')
    await page.getByRole('button', { name: 'Add a criterion' }).click()
    await page.getByLabel('Key').fill('trigger.body.kind')
    await page.getByLabel('Pattern', { exact: true }).fill('order')
    await page.getByLabel('Action', { exact: true }).fill('core.local')
    await field(page, 'cmd', 'Then').fill('echo order {{ trigger.body.id }}')
    await page.getByRole('button', { name: 'Create the rule' }).click()
    await page.getByRole('heading', { name: 'test.on_order', level: 1 }).waitFor()
    expect(await stored('test.on_order')).toMatchObject({
      enabled: true,
      trigger: { type: 'core.svc.webhook', parameters: { url: 'orders' } },
      criteria: { 'trigger.body.kind': { type: 'equals', pattern: 'order' } },
      action: { ref: 'core.local', parameters: { cmd: 'echo order {{ trigger.body.id }}' } },
    })
    const does = page.getByRole('region', { name: 'What it does' })
    await does.getByRole('listitem').filter({ hasText: 'trigger.body.kind is "order"' }).waitFor()

    await page.getByText('Nothing yet.').waitFor()
    await send('orders', { kind: 'order', id: 7 })
    const started = page.getByRole('region', { name: 'What it has started' })
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
    await page.getByText('Rule test.keeper is disabled').waitFor()
    expect(await rule.getAttribute('aria-checked')).toBe('false')
    expect(await stored('test.keeper', '?show_secrets=true')).toMatchObject({ ...before, enabled: false })
    await rule.click()
    await page.getByText('Rule test.keeper is enabled').waitFor()
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
    await test.getByRole('button', { name: 'Test the rule' }).click()
    await test.getByText('does not match').first().waitFor()
    await test.getByRole('listitem').filter({ hasText: 'trigger.body.kind is "order"' }).waitFor()
    expect(await test.textContent()).toContain('Value seen: "invoice"')
    await test.getByLabel('Recorded event').selectOption('a payload that I paste')
    await test.getByLabel('Payload').fill('{"body": {"kind": "order"}, "headers": {}}')
    await test.getByRole('button', { name: 'Test the rule' }).click()
    await test.getByText('Nothing has been run.').waitFor()
    expect(await test.textContent()).toContain('cmd: echo order')
    await close()
  })
})
