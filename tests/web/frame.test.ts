import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { type TestApp } from '../helpers/server.ts'
import { startBrowser, type TestBrowser } from './browser.ts'

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
})
