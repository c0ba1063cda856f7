import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import type { TestApp } from '../helpers/server.ts'
import { startBrowser, type TestBrowser } from './browser.ts'

/**
 * A form that the server refuses shows a banner and moves the focus: to the field that `details.path` of the answer names,
 * else to the banner.
 */

let server: TestApp
let browser: TestBrowser

beforeAll(async () => {
  ;[server, browser] = await Promise.all([createTestApp(), startBrowser()])
})

afterAll(async () => {
  await browser.close()
  await server.stop()
})

const open = (address: string) => browser.open(`${server.urls.api}/#${address}`)

/** Refuses the next such request, as a proxy or a busy server would. */
async function refuseNext(page: Page, path: string, status: number, body: Record<string, unknown> | undefined) {
  await page.route(
    `**/${path}`,
    (route) =>
      body === undefined
        ? route.abort('connectionrefused')
        : route.fulfill({ status, contentType: 'application/json', body: JSON.stringify(body) }),
    { times: 1 },
  )
}

const focusedId = (page: Page) => page.evaluate<string>('document.activeElement.id')
const focusedClass = (page: Page) => page.evaluate<string>('document.activeElement.className')
const invalid = (page: Page) => page.locator('[aria-invalid="true"]')

async function fillTimerRule(page: Page, name: string, zone: string): Promise<void> {
  await page.getByLabel('Name').fill(name)
  await page.getByLabel('Pack').fill('test')
  await page.getByLabel('Trigger type').fill('core.svc.IntervalTimer')
  const when = page.getByRole('region', { name: 'When' })
  await when.getByLabel('delta', { exact: true }).fill('5')
  await when.getByLabel('unit', { exact: true }).selectOption('minutes')
  await when.getByLabel('timezone', { exact: true }).fill(zone)
  await page.getByLabel('Action', { exact: true }).fill('core.noop')
}

describe('a refused form shows a banner, and moves the focus', () => {
  it('to a parameter of the trigger of a rule', async () => {
    const { page, close } = await open('/rules/new')
    await fillTimerRule(page, 'zoned', 'Mars/Base')
    await page.getByRole('button', { name: 'Create rule' }).click()
    await page.getByRole('alert').filter({ hasText: 'timezone' }).first().waitFor()
    await expect.poll(() => page.locator('.failure[role="alert"]').count()).toBe(1)
    const zone = page.getByRole('region', { name: 'When' }).getByLabel('timezone', { exact: true })
    await expect.poll(() => focusedId(page)).toBe(await zone.getAttribute('id'))
    const describedBy = (await zone.getAttribute('aria-describedby')) ?? ''
    const texts = await Promise.all(
      describedBy.split(' ').map(async (id) => (await page.locator(`[id="${id}"]`).allTextContents()).join('')),
    )
    expect(texts.join(' ')).toContain('"Mars/Base" is not a time zone')
    await zone.fill('Europe/Berlin')
    await page.getByRole('button', { name: 'Create rule' }).click()
    await page.getByRole('heading', { name: 'test.zoned', level: 1, exact: true }).waitFor()
    await close()
  })

  it('of a rule to the banner, if no field is refused', async () => {
    const { page, close } = await open('/rules/new')
    await fillTimerRule(page, 'busy', 'UTC')
    const answers: (readonly [status: number, body: Record<string, unknown> | undefined, text: string])[] = [
      [
        503,
        { faultstring: 'Too many requests are waiting; try again later.', code: 'QUEUE_FULL' },
        'Too many requests',
      ],
      [401, { faultstring: 'Unauthorized - API key is disabled.', code: 'API_KEY_DISABLED' }, 'API key is disabled'],
      [403, { faultstring: 'The server is for others.', code: 'PERMISSION_DENIED' }, 'for others'],
      [409, { faultstring: 'The first request has no answer yet.', code: 'IDEMPOTENCY_KEY_IN_USE' }, 'no answer yet'],
      [429, { faultstring: 'Too many failed logins; wait.', code: 'LOGINS_THROTTLED' }, 'Too many failed logins'],
      [413, { faultstring: 'The request body is larger than 5 bytes.', code: 'BODY_TOO_LARGE' }, 'larger than 5'],
      [502, { error: 'bad gateway' }, 'The server answered 502'],
      [0, undefined, 'Could not reach the server'],
    ]
    for (const [status, body, text] of answers) {
      await refuseNext(page, 'api/v1/rules', status, body)
      await page.getByRole('button', { name: 'Create rule' }).click()
      await page.locator('.failure[role="alert"]').filter({ hasText: text }).waitFor()
      await expect.poll(() => focusedClass(page)).toContain('failure')
    }
    await close()
  })

  it('to the part of a rule that a 403 or a 409 names', async () => {
    const { page, close } = await open('/rules/new')
    await fillTimerRule(page, 'denied', 'UTC')
    const create = page.getByRole('button', { name: 'Create rule' })
    const denied = { faultstring: 'You may not use this action.', code: 'PERMISSION_DENIED' }
    await refuseNext(page, 'api/v1/rules', 403, { ...denied, details: { path: ['action', 'ref'] } })
    await create.click()
    await page.locator('.failure[role="alert"]').filter({ hasText: 'refused action.ref' }).waitFor()
    const action = await page.getByLabel('Action', { exact: true }).getAttribute('id')
    await expect.poll(() => focusedId(page)).toBe(action)
    const taken = { name: 'taken', pack: 'test', trigger: { type: 'core.svc.webhook', parameters: { url: 'taken' } } }
    const { status } = await server.call('POST', '/v1/rules', { ...taken, action: { ref: 'core.noop' } })
    expect(status).toBe(201)
    await page.getByLabel('Name').fill('taken')
    await create.click()
    await page.locator('.failure[role="alert"]').filter({ hasText: 'refused name' }).waitFor()
    await expect.poll(() => focusedId(page)).toBe(await page.getByLabel('Name').getAttribute('id'))
    await close()
  })

  it('to a criterion, also within a search', async () => {
    const { page, close } = await open('/rules/new')
    await fillTimerRule(page, 'searching', 'UTC')
    await page.getByRole('button', { name: 'Add criterion' }).click()
    const outer = page.getByRole('group', { name: 'Criterion 1', exact: true })
    await outer.getByLabel('Key').first().fill('trigger.items')
    await outer.getByLabel('Operator').first().selectOption('search')
    await page.getByRole('button', { name: 'Add item criterion' }).click()
    const inner = page.getByRole('group', { name: 'Item criterion 1' })
    await inner.getByLabel('Key').fill('item.name')
    await inner.getByLabel('Operator').selectOption('regex')
    await inner.getByLabel('Pattern', { exact: true }).fill('(')
    await page.getByRole('button', { name: 'Create rule' }).click()
    await inner.getByRole('alert').waitFor()
    expect(await outer.getByRole('alert').count()).toBe(1)
    await expect.poll(() => focusedId(page)).toBe(await inner.getByLabel('Key').getAttribute('id'))
    await close()
  })

  it('to a parameter of an action, also within an object', async () => {
    const { page, close } = await open('/actions/core.local')
    await page.getByLabel('cmd', { exact: true }).fill('true')
    await page.getByText('More parameters').click()
    await page.getByLabel('env', { exact: true }).fill('{"A": 5}')
    await refuseNext(page, 'api/v1/executions', 400, {
      faultstring: 'The value is refused.',
      code: 'PARAMETERS_INVALID',
      details: { path: ['parameters', 'env', 'A'] },
    })
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await page.locator('.failure[role="alert"]').filter({ hasText: 'env' }).waitFor()
    expect(await invalid(page).count()).toBe(1)
    const env = page.getByLabel('env', { exact: true })
    await expect.poll(() => focusedId(page)).toBe(await env.getAttribute('id'))
    await close()
  })

  it('to the trace tag of a run, which is folded', async () => {
    const { page, close } = await open('/actions/core.local')
    await page.getByLabel('cmd', { exact: true }).fill('true')
    await page.getByText('Trace tag').first().click()
    await page.getByLabel('Trace tag', { exact: true }).fill('x'.repeat(2000))
    await page.getByText('Trace tag').first().click()
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await page.locator('.failure[role="alert"]').filter({ hasText: 'trace_tag' }).waitFor()
    const tag = page.getByLabel('Trace tag', { exact: true })
    await expect.poll(() => focusedId(page)).toBe(await tag.getAttribute('id'))
    expect(await tag.isVisible()).toBe(true)
    await close()
  })

  it('to a field of an API key', async () => {
    const { page, close } = await open('/access/keys/new')
    await page.getByLabel('Owner', { exact: true }).fill('a'.repeat(300))
    await page.getByRole('button', { name: 'View executions' }).click()
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.locator('.failure[role="alert"]').waitFor()
    await expect.poll(() => focusedId(page)).toBe(await page.getByLabel('Owner', { exact: true }).getAttribute('id'))
    await close()
  })
})
