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

const open = (address: string, options = {}) => browser.open(`${server.urls.api}/#${address}`, options)

async function makeRule(name: string, more: Record<string, unknown> = {}): Promise<string> {
  const { status, body, text } = await server.call<{ trigger: { ref: string } }>('POST', '/v1/rules', {
    name,
    pack: 'test',
    enabled: true,
    trigger: { type: 'core.svc.webhook', parameters: { url: name } },
    action: { ref: 'core.local', parameters: { cmd: 'echo {{ trigger.body.kind }}' } },
    ...more,
  })
  if (status !== 201) throw new Error(`the rule was not made: ${text}`)
  return body.trigger.ref
}

/** @returns the id of the trigger instance, which has been processed */
async function send(hook: string, sent: unknown): Promise<string> {
  const answer = await server.call('POST', `/v1/webhooks/${hook}`, sent)
  if (answer.status !== 202) throw new Error(`not accepted: ${answer.text}`)
  const id = answer.headers.get('svc-trigger-instance-id') ?? ''
  await waitFor('the trigger instance to be processed', async () => {
    const { body } = await server.call<{ status: string }>('GET', `/v1/triggerinstances/${id}`)
    return body.status === 'processed'
  })
  return id
}

describe('triggers', () => {
  it('are listed by type, with what they take, and lead to rules and trigger instances', async () => {
    const ref = await makeRule('listed')
    const { page, close } = await open('/triggers?search=webhook')
    await page.getByText('core.svc.webhook', { exact: true }).click()
    const pack = page.getByRole('region', { name: 'Pack core' })
    const row = pack.getByRole('row', { name: /listed/ })
    await row.waitFor()
    expect(await row.getByRole('cell').nth(1).textContent()).toBe('1')
    expect(await row.getByRole('link', { name: 'trigger instances' }).getAttribute('href')).toBe(
      `#/triggers/instances?trigger=${encodeURIComponent(ref)}`,
    )
    expect(await pack.textContent()).toContain('additionalProperties')
    await close()
  })

  it('of timers tell when they fire next', async () => {
    await makeRule('every_week', {
      trigger: { type: 'core.svc.IntervalTimer', parameters: { unit: 'weeks', delta: 2 } },
    })
    const { page, close } = await open('/triggers/timers')
    const row = page.getByRole('row', { name: /every 2 weeks/ })
    await row.waitFor()
    expect(await row.locator('time').count()).toBe(1)
    expect(await row.textContent()).toContain('not yet')
    await close()
  })
})

describe('trigger instances', () => {
  it('appear by themselves, and are narrowed down by what stands in the address', async () => {
    const ref = await makeRule('live', { enabled: false })
    const { page, close } = await open(`/triggers/instances?trigger=${ref}`)
    await page.getByText('No trigger instance fits.').waitFor()
    const id = await send('live', { kind: 'a' })
    const row = page.getByRole('link', { name: /core\.svc\.webhook live/ })
    await row.waitFor()
    expect(await row.getAttribute('href')).toBe(`#/triggers/instances/${id}`)
    await page.getByLabel('Status').selectOption('pending')
    await page.getByText('No trigger instance fits.').waitFor()
    expect(page.url()).toContain('status=pending')
    await close()
  })

  it('say why nothing happened: the criterion with the value that it saw, the rule that is disabled', async () => {
    await makeRule('why', { criteria: { 'trigger.body.kind': { type: 'equals', pattern: 'order' } } })
    const unmatched = await send('why', { kind: 'invoice' })
    const { page, close } = await open(`/triggers/instances/${unmatched}`)
    const came = page.getByRole('region', { name: 'What came of it' })
    await came.getByText('The only enabled rule does not match: test.why.').waitFor()
    await came.locator('dd', { hasText: 'trigger.body.kind is "order"' }).waitFor()
    expect(await came.textContent()).toContain('Value seen"invoice"')
    expect(await page.getByRole('region', { name: 'Payload' }).textContent()).toContain('kind: invoice')

    await page.goto(`${server.urls.api}/#/rules/test.why`)
    await page.getByRole('switch').click()
    await page.getByText('Rule test.why is disabled').waitFor()
    const disabled = await send('why', { kind: 'order' })
    await page.goto(`${server.urls.api}/#/triggers/instances/${disabled}`)
    await came.getByText('The only rule of the trigger is disabled.').waitFor()
    expect(await came.textContent()).toContain('A disabled rule reacts to nothing.')
    await close()
  })

  it('lead to the execution that came of them, and happen again on request', async () => {
    await makeRule('again')
    const id = await send('again', { kind: 'once' })
    const { page, close } = await open(`/triggers/instances/${id}`)
    const came = page.getByRole('region', { name: 'What came of it' })
    const execution = came.getByRole('link', { name: 'execution of core.local' })
    expect(await execution.getAttribute('href')).toMatch(/^#\/history\/[0-9a-f]{24}$/)
    await came.getByText('succeeded').waitFor()
    expect(await page.getByRole('link', { name: 'Trace', exact: true }).getAttribute('href')).toMatch(
      /^#\/traces\/[0-9a-f]{24}$/,
    )

    await page.getByRole('button', { name: 'Send it again' }).click()
    await page.getByRole('link', { name: 'See what came of the new one' }).click()
    await page.getByRole('link', { name: id }).waitFor()
    expect(page.url()).not.toContain(id)
    await came.getByText('1 rule started an execution: test.again.').waitFor()
    await close()
  })

  it('show what a stranger has sent as text, on a phone too', async () => {
    await makeRule('hostile', { criteria: { 'trigger.body.x': { type: 'equals', pattern: '<b>bold</b>' } } })
    const text = `<img src=x onerror="document.title='taken'">${'A'.repeat(3000)}\u202e{{ 1 }}`
    const id = await send('hostile', { x: text, [text.slice(0, 500)]: [text] })
    const { page, close } = await open(`/triggers/instances/${id}`, { viewport: { width: 375, height: 700 } })
    const came = page.getByRole('region', { name: 'What came of it' })
    await came.getByText('<b>bold</b>').waitFor()
    await page.getByText('onerror').first().waitFor()
    expect(await page.locator('main img').count()).toBe(0)
    expect(await page.title()).toBe('Triggers · svc')
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(375)
    await close()
  })
})
