/** The screen of triggers: what can happen, what has happened, and why something came of it, or did not. */
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { idBound } from '../../src/core/ids.ts'
import { formatMicros } from '../../src/core/time.ts'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createRbacFiles } from '../helpers/rbac.ts'
import { createTestApp } from '../helpers/app.ts'
import { waitForStatus, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { startBrowser, type TestBrowser, type TestPage } from './browser.ts'
import { fullOnly } from '../helpers/tiers.ts'

let server: TestApp
let browser: TestBrowser

beforeAll(async () => {
  ;[server, browser] = await Promise.all([createTestApp(), startBrowser()])
})

afterAll(async () => {
  await browser.close()
  await server.stop()
})

const open = (address: string, options = {}): Promise<TestPage> =>
  browser.open(`${server.urls.api}/#/triggers${address}`, options)

async function make(name: string, more: Record<string, unknown> = {}, pack = 'test'): Promise<{ id: string }> {
  const { status, body, text } = await server.call<{ id: string }>('POST', '/v1/rules', {
    name,
    pack,
    enabled: true,
    trigger: { type: 'core.svc.webhook', parameters: { url: name } },
    action: { ref: 'core.local', parameters: { cmd: 'true' } },
    ...more,
  })
  if (status !== 201) throw new Error(`the rule was not made: ${text}`)
  return body
}

/** @returns the id of the trigger instance, once its rules have been looked at */
async function send(hook: string, body: unknown): Promise<string> {
  const answer = await server.call('POST', `/v1/webhooks/${hook}`, body)
  const id = answer.headers.get('svc-trigger-instance-id') ?? ''
  if (answer.status !== 202) throw new Error(`not accepted: ${answer.text}`)
  await waitFor('the trigger instance to be processed', async () => {
    const { body: record } = await server.call<{ status: string }>('GET', `/v1/triggerinstances/${id}`)
    return record.status === 'processed'
  })
  return id
}

const why = (page: Page) => page.getByRole('region', { name: 'Outcome' })
const fits = (page: Page): Promise<boolean> =>
  page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)

fullOnly(describe)('trigger types', () => {
  it('are found by what their triggers wait for, with what they carry and which rules use them', async () => {
    await make('found_by_its_url')
    await make('off', {
      enabled: false,
      trigger: { type: 'core.svc.webhook', parameters: { url: 'found_by_its_url' } },
    })
    const { page, close } = await open('')
    await page.getByRole('link', { name: /core\.svc\.webhook/ }).waitFor()
    await page.getByRole('searchbox').fill('found_by_its_url')
    await page.getByText('1 of 14 trigger types').waitFor()
    await waitFor('the address to follow', () => page.url().endsWith('#/triggers?search=found_by_its_url'))
    await page.getByRole('link', { name: /core\.svc\.webhook/ }).click()
    await page.getByRole('heading', { name: 'core.svc.webhook' }).waitFor()

    const row = page.getByRole('table', { name: 'Triggers' }).getByRole('row', { name: /found_by_its_url/ })
    expect(await row.getByRole('link').allTextContents()).toEqual(['test.found_by_its_url', 'test.off', 'instances'])
    expect(await row.textContent()).toContain('disabled')
    const parameters = page.getByRole('table', { name: 'Parameters' })
    expect(await parameters.getByRole('row', { name: /^url/ }).textContent()).toContain('string, required')
    const payload = page.getByRole('table', { name: 'Payload' })
    expect(await payload.getByRole('row', { name: /^body/ }).textContent()).toContain('required')
    await row.getByRole('link', { name: 'instances' }).click()
    await page.getByText('No trigger instances match the filters.').waitFor()
    expect(await page.getByRole('search').textContent()).toContain('core.svc.webhook found_by_its_url')
    await close()
  })

  it('says when nothing fits, and when there is no such type', async () => {
    const { page, close } = await open('?search=there-is-no-such-type')
    await page.getByText('No trigger types match all of these words. Change the search.').waitFor()
    await page.goto(`${server.urls.api}/#/triggers/types/core.nothing`)
    expect(await page.getByRole('alert').textContent()).toContain('core.nothing')
    await page.goto(`${server.urls.api}/#/triggers/nothing`)
    await page.getByRole('heading', { name: 'Page not found' }).waitFor()
    await close()
  })
})

it('timers tell when they fire, and for which rules', async () => {
  const interval = { type: 'core.svc.IntervalTimer', parameters: { unit: 'hours', delta: 5 } }
  const past = { type: 'core.svc.DateTimer', parameters: { date: '2001-01-01T00:00:00Z' } }
  await make('often', { trigger: interval })
  await make('once', { trigger: past })
  const { page, close } = await open('/timers')
  const table = page.getByRole('table', { name: 'Timers' })
  await table.getByRole('link', { name: 'test.often' }).waitFor()
  const rows = await table.getByRole('row').allTextContents()
  // The soonest first.
  expect(rows.slice(1)).toEqual([
    expect.stringMatching(/every 5 hours.*20\d\d.*never.*test\.often/) as string,
    expect.stringMatching(/on 2001-01-01T00:00:00Z.*never.*test\.once/) as string,
  ])
  await close()
})

describe('a trigger instance', () => {
  it('tells the criterion that did not hold, and the value that it saw', async () => {
    await make('orders', { criteria: { 'trigger.body.kind': { type: 'equals', pattern: 'order' } } })
    const { page, close } = await open(`/instances/${await send('orders', { kind: 'Invoice', lines: [1, 2] })}`)
    await why(page).getByText('The only enabled rule does not match: test.orders.').waitFor()
    const rule = why(page).getByRole('listitem').filter({ hasText: 'test.orders' })
    // Its words come from the server.
    await rule.getByText('trigger.body.kind is "order"').waitFor()
    expect(await rule.textContent()).toMatch(/does not match.*Actual value"Invoice"/)
    expect(await rule.getByRole('link', { name: 'Test rule' }).getAttribute('href')).toMatch(
      /^#\/rules\/test\.orders\?instance=\w{24}$/,
    )
    expect(await page.getByRole('region', { name: 'Payload' }).textContent()).toContain('kind: Invoice')
    await close()
  })

  fullOnly(it)('tells that its only rule is disabled', async () => {
    await make('asleep', { enabled: false })
    const { page, close } = await open(`/instances/${await send('asleep', {})}`)
    await why(page).getByText('The only rule of the trigger is disabled.').waitFor()
    expect(await why(page).textContent()).toContain('A disabled rule never fires.')
    await close()
  })

  it('leads to what it has started, as it changes, and tells what could not be started', async () => {
    await make('starter', {
      action: {
        ref: 'core.local',
        parameters: { cmd: 'while [ ! -e go ]; do sleep 0.05; done', cwd: server.basePath },
      },
    })
    await make('broken', {
      trigger: { type: 'core.svc.webhook', parameters: { url: 'starter' } },
      action: { ref: 'core.missing' },
    })
    await make('uncomparable', {
      trigger: { type: 'core.svc.webhook', parameters: { url: 'starter' } },
      criteria: { 'trigger.body.n': { type: 'greaterthan', pattern: 5 } },
    })
    const { page, close } = await open(`/instances/${await send('starter', { n: 'five' })}`)
    await why(page).getByText('Failed enforcements: test.broken, test.uncomparable.').waitFor()
    const started = why(page).getByRole('listitem').filter({ hasText: 'test.starter' })
    await started.getByText('running', { exact: true }).waitFor()
    const link = started.getByRole('link', { name: 'core.local' })
    const [, id = ''] = /^#\/history\/(\w{24})$/.exec((await link.getAttribute('href')) ?? '') ?? []
    await server.call('DELETE', `/v1/executions/${id}`)
    await waitForStatus(server, id, ['canceled'])
    // Without a reload.
    await started.getByText('canceled', { exact: true }).waitFor()
    const broken = why(page).getByRole('listitem').filter({ hasText: 'test.broken' })
    expect(await broken.textContent()).toContain(`Action "core.missing" doesn't exist`)
    // Once, though both the verdict and the enforcement say it.
    const uncomparable = why(page).getByRole('listitem').filter({ hasText: 'test.uncomparable' })
    expect(await uncomparable.getByText('not supported between instances').count()).toBe(1)
    await page.getByRole('link', { name: 'show everything this event caused' }).waitFor()
    await close()
  })

  it('can happen again, in a trace of its own, once that is confirmed', async () => {
    await make('again')
    const first = await send('again', { n: 7 })
    const { page, close } = await open(`/instances/${first}`)
    await page.getByRole('button', { name: 'Replay' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Go back' }).click()
    const count = async (): Promise<number> =>
      (await server.call<object[]>('GET', `/v1/ruleenforcements?rule_ref=test.again`)).body.length
    expect(await count()).toBe(1)
    await page.getByRole('button', { name: 'Replay' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click()
    const made = page.getByRole('status').getByRole('link', { name: /^[0-9a-f]{24}$/ })
    const second = (await made.textContent()) ?? ''
    expect(second).not.toBe(first)
    await made.click()
    await page.getByText('Replay of').waitFor()
    await why(page).getByText('1 rule started an execution: test.again.').waitFor()
    expect(await count()).toBe(2)
    await page.getByRole('link', { name: first }).click()
    await waitFor('the first one', () => page.url().endsWith(first))
    await page.getByText('Replay of').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Replay' }).waitFor()
    await close()
  })

  fullOnly(it)('shows a payload of megabytes only when asked', async () => {
    await make('large', { criteria: { 'trigger.body.text': { type: 'equals', pattern: 'small' } } })
    const id = await send('large', { text: 'x'.repeat(3_000_000) })
    const { page, close } = await open(`/instances/${id}`)
    const payload = page.getByRole('region', { name: 'Payload' })
    await payload.getByText(/It has 3,0\d\d,\d{3} bytes\./).waitFor()
    await payload.getByRole('button', { name: 'Show anyway' }).click()
    await payload.getByText('more characters').waitFor()
    // The value that the criterion saw is cut by the server.
    expect((await why(page).textContent())?.length).toBeLessThan(3000)
    expect(await page.evaluate(() => document.body.textContent.length)).toBeLessThan(20_000)
    await close()
  })

  fullOnly(it)('that is not there says so', async () => {
    const { page, close } = await open('/instances/0123456789abcdef01234567')
    expect(await page.getByRole('alert').textContent()).toMatch(
      /0123456789abcdef01234567.*Retention deletes old trigger instances/,
    )
    await page.goto(`${server.urls.api}/#/triggers/instances/..%2F..%2Fuser`)
    expect(await page.getByRole('alert').textContent()).toContain('../../user')
    await close()
  })
})

describe('trigger instances', () => {
  it('come to the list without a reload, with what came of them, and stand in its address', async () => {
    await make('live', { criteria: { 'trigger.body.n': { type: 'greaterthan', pattern: 1 } } })
    await send('live', { n: 2 })
    const { body: triggers } = await server.call<{ ref: string; parameters: { url?: string } }[]>(
      'GET',
      '/v1/triggers?type=core.svc.webhook',
    )
    const ref = triggers.find(({ parameters }) => parameters.url === 'live')?.ref ?? ''
    const { page, close } = await open(`/instances?trigger=${ref}`)
    const rows = page.getByRole('list', { name: /^Trigger instances/ }).getByRole('listitem')
    await rows.getByText('succeeded').waitFor()
    expect(await rows.count()).toBe(1)
    await send('live', { n: 0 })
    await page.getByText('2 trigger instances').waitFor()
    // The newest first.
    await rows.first().getByText('no rule matched').waitFor()
    expect(await rows.nth(1).textContent()).toContain('core.local')
    await rows.first().getByRole('link', { name: 'Why?' }).click()
    await why(page).getByText('trigger.body.n is greater than 1').waitFor()
    await page.goBack()
    await page.getByRole('combobox', { name: 'Status' }).selectOption('processing failed')
    await page.getByText('No trigger instances match the filters.').waitFor()
    expect(page.url()).toContain(`trigger=${ref}&status=processing_failed`)
    await page.getByRole('combobox', { name: 'Status' }).selectOption('processed')
    await page.getByLabel('Before').fill('2001-02-03T04:05:06')
    await page.getByText('No trigger instances match the filters.').waitFor()
    expect(page.url()).toContain('before=2001-02-03T04')
    await page.getByRole('link', { name: 'Show all trigger instances' }).click()
    await page.getByText(/^\d+ trigger instances$/).waitFor()
    await close()
  })

  fullOnly(it)('of many thousands are as quick as few, and keep their place while newer ones come', async () => {
    const folder = makeFolder()
    const first = await createTestApp({ basePath: folder.path })
    await first.stop()
    const database = new Sqlite(join(folder.path, 'svc.db'))
    const insert = database.prepare(
      `insert into trigger_instances (id, trigger, trigger_id, trigger_type, occurrence_time, status, trace_id, payload)
       values (?, 'core.svc.generic.inquiry', 'none', 'core.svc.generic.inquiry', ?, 'processed', '', '{}')`,
    )
    const began = (Date.now() - 100_000_000) * 1000
    database.transaction(() => {
      for (let n = 0; n < 20_000; n += 1)
        insert.run(idBound(began + n * 1_000_000), formatMicros(began + n * 1_000_000))
    })()
    database.close()
    const place = await createTestApp({ basePath: folder.path })
    try {
      const { page, close } = await browser.open(`${place.urls.api}/#/triggers/instances`)
      await page.getByText('20,000 trigger instances').waitFor()
      const rows = page.getByRole('list', { name: /^Trigger instances/ })
      expect(await rows.getByRole('listitem').count()).toBeLessThan(100)
      await rows.focus()
      await page.keyboard.press('End')
      const oldest = rows.locator(`[aria-posinset="20000"] .instances-link[href$="${idBound(began)}"]`)
      await oldest.waitFor()
      await place.call('POST', '/v1/triggertypes', { name: 'late', pack: 'test' })
      const { status } = await place.call('POST', '/v1/webhooks/svc', { trigger: 'test.late', payload: {} })
      expect(status).toBe(202)
      await page.getByText('20,001 trigger instances').waitFor()
      await rows.locator(`[aria-posinset="20001"] .instances-link[href$="${idBound(began)}"]`).waitFor()
      await page.keyboard.press('Home')
      await rows.locator('[aria-posinset="1"]').getByText('test.late').waitFor()
      await close()
    } finally {
      await place.stop()
      folder.remove()
    }
  })
})

fullOnly(it)('shows what others have written as text, whatever it is', async () => {
  const markup = `<img src=x onerror="alert(1)"><script>alert(2)</script>{{ 7*7 }}\u202e`
  const type = {
    name: 'hostile',
    pack: 'test',
    description: markup,
    payload_schema: { type: 'object', properties: { [markup]: { type: 'string', description: markup } } },
  }
  const { status, text } = await server.call('POST', '/v1/triggertypes', type)
  expect({ status, text }).toMatchObject({ status: 201 })
  await make('hostile', {
    description: markup,
    trigger: { type: 'test.hostile' },
    criteria: { "trigger['<b>x</b>']": { type: 'equals', pattern: markup } },
  })
  const payload = { '<b>x</b>': `${markup} seen`, __proto__x: markup, ['n'.repeat(1000)]: 'y'.repeat(1000) }
  const sent = await server.call('POST', '/v1/webhooks/svc', { trigger: 'test.hostile', payload })
  const id = sent.headers.get('svc-trigger-instance-id') ?? ''

  const phone = { viewport: { width: 375, height: 700 } }
  const { page, close } = await open('/types/test.hostile', phone)
  await page.getByRole('heading', { name: 'test.hostile' }).waitFor()
  expect(await page.getByRole('table', { name: 'Payload' }).textContent()).toContain(markup)
  expect(await fits(page)).toBe(true)
  await page.goto(`${server.urls.api}/#/triggers/instances/${id}`)
  await why(page).getByText(`does not match`).first().waitFor()
  await why(page).getByText('onerror').first().waitFor()
  expect(await why(page).textContent()).toContain(JSON.stringify(`${markup} seen`))
  expect(await page.locator('main :is(img, script, b)').count()).toBe(0)
  expect(await fits(page)).toBe(true)
  await close()
})

fullOnly(it.each(['', '/types/core.svc.webhook', '/timers', '/instances']))(
  '#/triggers%s is usable on a phone',
  async (address) => {
    await make(`phone${address.length}`, {
      trigger: { type: 'core.svc.webhook', parameters: { url: `${'w'.repeat(300)}${address.length}` } },
    })
    const { page, close } = await open(address, { viewport: { width: 375, height: 700 }, hasTouch: true })
    await page.getByRole('heading', { level: 1 }).waitFor()
    await waitFor('all of it', async () => (await page.locator('.loading').count()) === 0)
    expect(await fits(page)).toBe(true)
    await close()
  },
)

fullOnly(describe)('with access control', () => {
  const folder = makeFolder()
  let place: TestApp
  let instance: string

  beforeAll(async () => {
    const rbac = createRbacFiles(folder.path)
    rbac.assign('admin', 'system_admin')
    rbac.define('watcher', [{ types: ['trigger_list'] }, { types: ['trigger_view'], on: 'trigger:core:svc.webhook' }])
    rbac.define('stranger', [])
    place = await createTestApp({
      basePath: folder.path,
      settings: { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' },
    })
    const admin = await signIn(place, 'admin', firstPassword(folder.path))
    for (const name of ['watcher', 'stranger']) {
      const { status, text } = await place.call('POST', '/v1/users', { name, password: `${name}-password` }, admin)
      if (status !== 201) throw new Error(text)
    }
    const rule = {
      name: 'unseen',
      enabled: false,
      trigger: { type: 'core.svc.webhook', parameters: { url: 'unseen' } },
      action: { ref: 'core.noop' },
    }
    const made = await place.call('POST', '/v1/rules', rule, admin)
    if (made.status !== 201) throw new Error(made.text)
    const sent = await place.call('POST', '/v1/webhooks/unseen', { n: 1 }, admin)
    instance = sent.headers.get('svc-trigger-instance-id') ?? ''
  })
  afterAll(async () => {
    await place.stop()
    folder.remove()
  })

  async function openAs(name: string, address: string): Promise<TestPage> {
    const opened = await browser.open(`${place.urls.api}/#/triggers${address}`)
    await opened.page.getByLabel('User').fill(name)
    await opened.page.getByLabel('Password').fill(`${name}-password`)
    await opened.page.getByRole('button', { name: 'Sign in' }).click()
    return opened
  }

  it('who may look but not send again is told why, and of the rules only how many there are', async () => {
    const { page, close } = await openAs('watcher', `/instances/${instance}`)
    await why(page).getByText('1 more rule of the trigger is hidden from you.').waitFor()
    await page.getByRole('button', { name: 'Replay' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click()
    const alert = page.getByRole('alert')
    expect(await alert.textContent()).toMatch(/watcher.*trigger_all.*trigger:core:svc\.webhook/)
    await page.goto(`${place.urls.api}/#/triggers/types/core.svc.webhook`)
    await page.getByText('hidden from you').waitFor()
    // Nothing of what they may not view is in a list, either.
    await page.getByText('1 trigger type', { exact: true }).waitFor()
    await close()
  })

  it('who may see nothing is told what is missing', async () => {
    const { page, close } = await openAs('stranger', '/instances')
    await page.getByRole('alert').filter({ hasText: 'trigger_list' }).waitFor()
    expect(await page.getByRole('list', { name: /^Trigger instances/ }).count()).toBe(0)
    await close()
  })
})
