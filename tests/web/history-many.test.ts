/** The history with more executions than anybody can look at, and with more events than anybody can read. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { makeExecutions, type MadeExecution } from '../helpers/many-executions.ts'
import { createTestApp } from '../helpers/app.ts'
import { run, waitForStatus, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { startBrowser, type TestBrowser } from './browser.ts'

const COUNT = 120_000

let folder: TemporaryFolder
let server: TestApp
let browser: TestBrowser
let made: (number: number) => MadeExecution

beforeAll(async () => {
  folder = makeFolder()
  const browserStart = startBrowser()
  made = await makeExecutions(folder.path, COUNT)
  server = await createTestApp({ basePath: folder.path })
  browser = await browserStart
})

afterAll(async () => {
  await browser.close()
  await server.stop()
  folder.remove()
})

interface Lists {
  page: Page
  /** Queries of requests for lists so far. */
  asked: URLSearchParams[]
  close: () => Promise<void>
}

async function open(address: string): Promise<Lists> {
  const asked: URLSearchParams[] = []
  // Whose requests nobody counts.
  const { page, close } = await browser.open(`${server.urls.api}/#/status`)
  page.on('request', (request) => {
    const url = new URL(request.url())
    if (url.pathname.endsWith('/executions')) asked.push(url.searchParams)
  })
  await page.goto(`${server.urls.api}/#/history${address}`)
  // Before the list is known to be long there is nowhere to scroll to.
  await rows(page).nth(1).getByRole('link').first().waitFor()
  return { page, asked, close }
}

const grid = (page: Page) => page.getByRole('grid', { name: 'Executions' })
const rows = (page: Page) => grid(page).getByRole('row')

/** Rows that have come, as the numbers of their executions, by their places. */
async function seen(page: Page): Promise<Map<number, string>> {
  const found = await rows(page).evaluateAll((all) =>
    all.map((row): [number, string] => [
      Number(row.getAttribute('aria-rowindex')) - 2,
      /echo (\d+)/.exec(row.textContent ?? '')?.[1] ?? '',
    ]),
  )
  return new Map(found.filter(([, text]) => text !== ''))
}

/** Brings a share of the list to be seen, as dragging the scroll bar does. */
async function scrollTo(page: Page, share: number): Promise<void> {
  await grid(page)
    .locator('.virtual-list')
    .evaluate((list, to) => {
      list.scrollTop = to * (list.scrollHeight - list.clientHeight)
    }, share)
}

/** Waits until all rows that are drawn have come, at this share of the list. */
async function settled(page: Page, share?: number): Promise<Map<number, string>> {
  return waitFor(`the rows at ${share}`, async () => {
    const isLoading = (await grid(page).locator('.bone').count()) > 0
    const found = await seen(page)
    const places = [...found.keys()].toSorted((a, b) => a - b)
    const middle = (places[Math.floor(places.length / 2)] ?? 0) / COUNT
    const isThere = share === undefined || Math.abs(middle - share) < 0.01
    return !isLoading && found.size > 5 && isThere && found
  })
}

describe('scrolling', () => {
  it('leads anywhere in the list, with few rows in the page and few requests', async () => {
    const { page, asked, close } = await open('')
    const total = COUNT + 1
    await page.getByText(`${total.toLocaleString('en-GB')} executions`).waitFor()
    expect(await grid(page).getAttribute('aria-rowcount')).toBe(String(total + 1))
    for (const share of [0.5, 0.25, 0.999, 1, 0]) {
      await scrollTo(page, share)
      const found = await settled(page, share)
      // The row before these is the one that really ran.
      for (const [index, number] of found) expect(Number(number)).toBe(COUNT - index)
      expect(await rows(page).count()).toBeLessThan(60)
    }
    // A page for each place, two where it is at the seam of two, and the first ones.
    expect(asked.length).toBeLessThan(20)
    for (const query of asked) expect(Number(query.get('limit'))).toBeLessThanOrEqual(50)
    await close()
  })

  it('goes on from what is known, without an offset', async () => {
    const { page, asked, close } = await open('')
    await scrollTo(page, 0.5)
    await settled(page, 0.5)
    asked.length = 0
    await grid(page).focus()
    for (let i = 0; i < 8; i++) {
      await page.keyboard.press('PageDown')
      await settled(page)
    }
    expect(asked.length).toBeGreaterThan(0)
    for (const query of asked) expect([query.get('offset'), query.has('before_id')]).toEqual([null, true])
    await close()
  })

  it('stays where it is while others begin, and shows them when asked to', async () => {
    const { page, close } = await open('')
    await scrollTo(page, 0.3)
    const before = await settled(page, 0.3)
    const { id } = await run(server, { cmd: 'echo new' })
    await run(server, { cmd: 'echo newer' })
    await page.getByRole('button', { name: '2 new' }).waitFor()
    await waitForStatus(server, id)
    expect(await seen(page)).toEqual(before)
    await page.getByRole('button', { name: '2 new' }).click()
    await rows(page).nth(1).getByText('echo newer').waitFor()
    await rows(page).nth(2).getByText('succeeded').waitFor()
    await expect.poll(() => page.getByRole('button', { name: 'new' }).count()).toBe(0)
    await close()
  })

  it('is where it was for whoever comes back from an execution', async () => {
    const { page, close } = await open('')
    await page.setViewportSize({ width: 1000, height: 700 })
    await scrollTo(page, 0.4)
    const before = await settled(page, 0.4)
    await rows(page).nth(12).getByRole('link').first().click()
    await page.getByRole('heading', { name: 'core.local' }).waitFor()
    await page.getByRole('link', { name: '← History' }).click()
    const after = await settled(page)
    const first = Math.min(...before.keys())
    expect(Math.abs(Math.min(...after.keys()) - first)).toBeLessThan(3)
    await close()
  })
})

describe('looking for something', () => {
  it('by several statuses, far away, and by the beginning of an id', async () => {
    const { page, close } = await open('?status=failed,timeout')
    await page.getByText(`${(COUNT / 3).toLocaleString('en-GB')} executions`).waitFor()
    await scrollTo(page, 0.8)
    await settled(page)
    const statuses = await rows(page).locator('.badge').allTextContents()
    expect(new Set(statuses)).toEqual(new Set(['failed', 'timeout']))
    // It was canceled.
    const { id } = made(12_347)
    await page.getByRole('searchbox', { name: 'Search' }).fill(id)
    await page.getByRole('link', { name: 'Show all executions' }).waitFor()
    await page.goto(`${server.urls.api}/#/history?q=${id.slice(0, 14)}`)
    await rows(page).getByText('echo 12347').waitFor()
    expect(await rows(page).count()).toBe(2)
    await close()
  })

  it('by words that nothing has says so, and what else can be done', async () => {
    const { page, close } = await open('')
    await page.getByRole('searchbox', { name: 'Search' }).fill('nothing-like-this')
    await page.getByText('No executions match the filters.').waitFor()
    expect(await page.getByRole('link', { name: /trace with the tag/ }).getAttribute('href')).toBe(
      '#/traces?tag=nothing-like-this',
    )
    await page.getByRole('link', { name: 'Show all executions' }).click()
    await rows(page).nth(1).waitFor()
    await close()
  })
})

describe('many events', () => {
  it('leave the page at work: each execution ends in the list as it ended', async () => {
    const { page, close } = await open('')
    await page.evaluate(() => {
      const global = globalThis as unknown as { longest: number } // read below
      global.longest = 0
      let last = performance.now()
      const look = (): void => {
        const now = performance.now()
        global.longest = Math.max(global.longest, now - last)
        last = now
        setTimeout(look, 10)
      }
      look()
    })
    const many = 300
    const answers = await Promise.all(
      Array.from({ length: many }, (_, i) =>
        server.call<{ id: string }>('POST', '/v1/executions', { action: 'core.noop', context: { number: i } }),
      ),
    )
    expect(answers.filter(({ status }) => status !== 201)).toEqual([])
    const newest = answers
      .map(({ body }) => body.id)
      .toSorted()
      .toReversed()
    await waitForStatus(server, newest[0] ?? '')
    await waitFor('all of them to have ended in the list', async () => {
      const badges = await rows(page).locator('.badge').allTextContents()
      const refs = await rows(page).locator('.action').allTextContents()
      return refs.slice(1, 11).every((ref) => ref === 'core.noop') && badges.every((one) => one === 'succeeded')
    })
    const order = await rows(page).evaluateAll((all) => all.map((row) => row.querySelector('a')?.getAttribute('href')))
    const ids = order.flatMap((href) => /history\/(\w{24})/.exec(href ?? '')?.[1] ?? [])
    expect(ids.slice(0, 20)).toEqual(newest.slice(0, 20))
    const longest = await page.evaluate(() => (globalThis as unknown as { longest: number }).longest) // as above
    // Far more than a page that draws each event would need, far less than one that hangs.
    expect(longest).toBeLessThan(2000)
    await close()
  })
})
