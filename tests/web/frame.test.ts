import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { type TestApp } from '../helpers/server.ts'
import { hiddenIn, startBrowser, type TestBrowser } from './browser.ts'

let server: TestApp
let browser: TestBrowser

beforeAll(async () => {
  ;[server, browser] = await Promise.all([createTestApp(), startBrowser()])
})

afterAll(async () => {
  await browser.close()
  await server.stop()
})

describe('the page of the web client', () => {
  it('is at the address of the API listener, and opens on the history', async () => {
    const { page, close } = await browser.open(server.urls.api)
    await page.getByRole('heading', { name: 'History' }).waitFor()
    expect(page.url()).toBe(`${server.urls.api}/#/history`)
    await close()
  })

  it('leads to every screen by keyboard alone', async () => {
    const { page, close } = await browser.open(server.urls.api)
    const links = page.getByRole('navigation', { name: 'Screens' }).getByRole('link')
    await links.first().waitFor()
    const titles = await links.allTextContents()
    expect(titles.length).toBeGreaterThan(5)
    for (const title of titles) {
      await page.getByRole('link', { name: title, exact: true }).focus()
      await page.keyboard.press('Enter')
      await page.locator('nav a[aria-current="page"]', { hasText: new RegExp(`^${title}$`) }).waitFor()
      await page.getByRole('heading', { level: 1 }).first().waitFor()
      expect(await page.title()).toBe(`${title} · svc`)
    }
    await close()
  })

  it('says that an address leads nowhere', async () => {
    const { page, close } = await browser.open(`${server.urls.api}/#/nowhere/at/all`)
    await page.getByRole('heading', { name: 'Page not found' }).waitFor()
    expect(await page.getByRole('main').textContent()).toContain('#/nowhere/at/all')
    await close()
  })

  it('fits on a phone: every screen is in reach, and no column of a table is out of sight', async () => {
    await server.call('POST', '/v1/apikeys', { metadata: { used_by: 'the deploy job of the shop' } })
    const { page, close } = await browser.open(`${server.urls.api}/#/access/keys`, {
      viewport: { width: 360, height: 740 },
    })
    await page.getByRole('link', { name: 'the deploy job of the shop' }).waitFor()
    expect(await hiddenIn(page)).toEqual([])
    // Each cell of a row names its column.
    await page.getByRole('button', { name: 'Delete the deploy job of the shop' }).waitFor()
    expect(await page.locator('td[data-title="Expires"]').innerText()).toBe('never')
    await page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: 'Status' }).click()
    await page.getByRole('heading', { name: 'Status', level: 1 }).waitFor()
    await close()
  })
})
