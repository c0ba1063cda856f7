/** What others change appears on open pages, and pages recover by themselves when the server is back. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import type { TestApp } from '../helpers/server.ts'
import { fullOnly, variants } from '../helpers/tiers.ts'
import { writePack } from './actions.ts'
import { startBrowser, waitForText, type TestBrowser } from './browser.ts'

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

async function change(method: string, path: string, body?: Record<string, unknown>): Promise<void> {
  const { status, text } = await server.call(method, path, body)
  if (status >= 300) throw new Error(text)
}

const registerPack = async (pack: string, names: readonly string[]): Promise<void> => {
  writePack(server.basePath, pack, Object.fromEntries(names.map((name) => [name, { runner_type: 'noop' }])))
  await change('POST', '/v1/packs/register', { packs: [pack] })
}

/** Resolves once the page follows changes: loaded before that, it may only have been in time. */
const followed = (page: Page) => page.locator('.live-mark[data-connection="open"]').waitFor()

const hookRule = (name: string, url: string) => ({
  name,
  pack: 'fresh',
  trigger: { type: 'core.svc.webhook', parameters: { url } },
  action: { ref: 'core.noop' },
})

describe('a change that somebody else makes appears', () => {
  fullOnly(it)('in the list of actions and in the form of one, which keeps what was typed', async () => {
    await registerPack('fresh', ['first'])
    const { page, close } = await open('/actions/fresh.first')
    await followed(page)
    await page.getByText('Trace tag').first().click()
    await page.getByLabel('Trace tag', { exact: true }).fill('kept')
    await registerPack('fresh', ['first', 'second'])
    await page.getByRole('link', { name: 'fresh.second' }).waitFor()
    const parameters = { size: { type: 'integer' } }
    await change('PUT', '/v1/actions/fresh.first', { name: 'first', pack: 'fresh', runner_type: 'noop', parameters })
    await page.getByLabel('size', { exact: true }).waitFor()
    expect(await page.getByLabel('Trace tag', { exact: true }).inputValue()).toBe('kept')
    await close()
  })

  const lists: readonly (readonly [address: string, text: string, make: () => Promise<void>])[] = [
    ['/rules', 'by_hook', () => change('POST', '/v1/rules', hookRule('by_hook', 'fresh/one'))],
    ['/webhooks', 'fresh/two', () => change('POST', '/v1/rules', hookRule('hook_two', 'fresh/two'))],
    [
      '/triggers/types',
      'fresh.push',
      () => change('POST', '/v1/triggertypes', { name: 'push', pack: 'fresh', payload_schema: {} }),
    ],
    [
      '/triggers/timers',
      'fresh.hourly',
      () =>
        change('POST', '/v1/rules', {
          name: 'hourly',
          pack: 'fresh',
          trigger: { type: 'core.svc.IntervalTimer', parameters: { unit: 'hours', delta: 7 } },
          action: { ref: 'core.noop' },
        }),
    ],
    [
      '/access/keys',
      'a key of another',
      () => change('POST', '/v1/apikeys', { metadata: { used_by: 'a key of another' } }),
    ],
  ]
  it.each(variants(lists))('on the page %s', async (address, text, make) => {
    const { page, close } = await open(address)
    if (address === '/access/keys') await waitForText(page, 'No API keys yet')
    else await followed(page)
    await make()
    expect(await waitForText(page, text)).toBe(true)
    await close()
  })

  it('among the rules of a webhook, and in a rule', async () => {
    await change('POST', '/v1/rules', hookRule('third', 'fresh/three'))
    const [hook, rule] = await Promise.all([open('/webhooks/fresh/three'), open('/rules/fresh.third')])
    await Promise.all([followed(hook.page), followed(rule.page)])
    await change('PUT', '/v1/rules/fresh.third', {
      ...hookRule('third', 'fresh/three'),
      enabled: false,
      description: 'now off',
    })
    await hook.page.getByRole('main').getByText('disabled').waitFor()
    expect(await waitForText(rule.page, 'now off')).toBe(true)
    await Promise.all([hook.close(), rule.close()])
  })
})

/** Lets no request of the page through, or answers it as a proxy would without its server. @returns ends that */
async function cutOff(page: Page, status?: number): Promise<() => Promise<void>> {
  const requests = /\/(api|auth|stream)\/v1\//
  await page.route(requests, (route) =>
    status === undefined ? route.abort('connectionrefused') : route.fulfill({ status, body: 'no server' }),
  )
  return () => page.unroute(requests)
}

describe('when the server answers again', () => {
  it('a page that could not be loaded is, without anybody doing something', async () => {
    const { page, close } = await open('/access')
    await page.getByRole('heading', { name: 'Access', level: 1 }).waitFor()
    const reconnect = await cutOff(page)
    await page.getByRole('link', { name: 'Actions', exact: true }).click()
    const banner = page.locator('.failure').filter({ hasText: 'Could not reach the server' })
    await banner.waitFor()
    await reconnect()
    await page.getByRole('link', { name: 'core.local', exact: false }).first().waitFor()
    expect(await banner.count()).toBe(0)
    await close()
  })

  fullOnly(
    it.each([
      ['/history', 502, 'No executions'],
      ['/triggers/types', 503, 'core.svc.webhook'],
      ['/webhooks', undefined, 'the generic webhook'],
      ['/status', 504, 'Queues'],
      ['/traces', 503, 'No traces'],
    ] as const),
  )('the page %s goes on, which was opened meanwhile (%s)', async (address, status, text) => {
    const { page, close } = await browser.open('about:blank')
    const reconnect = await cutOff(page, status)
    await page.goto(`${server.urls.api}/#${address}`)
    await page.locator('.failure').waitFor()
    await reconnect()
    await page.getByRole('main').getByText(text).first().waitFor()
    expect(await page.locator('.failure').count()).toBe(0)
    await close()
  })

  fullOnly(it)('a page outlives the server, with a screen that was not loaded before', async () => {
    const folder = makeFolder()
    const first = await createTestApp({ basePath: folder.path })
    const portOf = (url: string): string => new URL(url).port
    const { api, auth, stream } = first.urls
    const settings = { 'api.port': portOf(api), 'auth.port': portOf(auth), 'stream.port': portOf(stream) }
    const { page, close } = await browser.open(`${api}/#/rules`)
    await page.getByText('No rules').waitFor()
    await first.stop()
    await page.getByRole('link', { name: 'Triggers', exact: true }).click()
    await page.locator('.failure').waitFor()
    const second = await createTestApp({ basePath: folder.path, settings })
    try {
      await page.getByRole('link', { name: 'core.svc.webhook' }).first().waitFor()
      await followed(page)
      expect(await page.locator('.failure').count()).toBe(0)
      await close()
    } finally {
      await second.stop()
      folder.remove()
    }
  })
})
