/** A gigabyte of output in the browser: any of its ten million lines, with little in memory. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startServer, waitForStatus, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { startBrowser, type TestBrowser } from './browser.ts'
import {
  begin,
  dragScrollBar,
  found,
  LARGE_LINES,
  largeLine,
  list,
  memoryOf,
  openOutput,
  pane,
  phase,
  printLarge,
  row,
  searchField,
  seenRows,
  waitForRow,
  waitForRows,
  type SeenRow,
} from './output-pane.ts'

const MAX_BYTES = 150e6
const MAX_NODES = 10_000

let server: TestServer
let browser: TestBrowser
let id: string

beforeAll(async () => {
  ;[server, browser] = await Promise.all([
    startServer({ settings: { 'log.level': 'WARNING' } }),
    startBrowser({ showsScrollBars: true }),
  ])
  id = await begin(server, printLarge)
})

afterAll(async () => {
  await browser.close()
  await server.stop('SIGKILL')
})

const areRight = (rows: readonly SeenRow[]): boolean => rows.every(({ number, text }) => text === largeLine(number))

async function expectLittle(page: Page): Promise<void> {
  const { bytes, nodes } = await memoryOf(page)
  expect(bytes).toBeLessThan(MAX_BYTES)
  expect(nodes).toBeLessThan(MAX_NODES)
}

it('is followed while it is printed, and its end is there at once', async () => {
  const { page, close } = await openOutput(browser, server.urls.api, id)
  let seen = 0
  await waitFor('the lines that come', async () => {
    const rows = await seenRows(page)
    const last = rows.at(-1)?.number ?? 0
    // The last one may have come in part.
    const wrong = rows.filter(({ number, text }) => text !== '…' && !largeLine(number).startsWith(text))
    expect(wrong).toEqual([])
    seen = Math.max(seen, last)
    return seen > 1_000_000
  })
  await waitForStatus(server, id, ['succeeded'], 500_000)
  await phase(page).getByText('Complete').waitFor()
  await pane(page).getByText('10,000,000 lines, 1.0 GB').waitFor()
  expect(areRight(await waitForRow(page, LARGE_LINES))).toBe(true)
  await expectLittle(page)
  await close()
})

it('is scrolled by wheel, keys and scroll bar, line by line and anywhere', async () => {
  const { page, close } = await openOutput(browser, server.urls.api, id)
  await waitForRow(page, LARGE_LINES)
  await list(page).focus()
  await page.keyboard.press('Home')
  await waitForRow(page, 1)

  await list(page).hover()
  let before = 1
  for (const delta of [240, 480, 960, 240]) {
    await page.mouse.wheel(0, delta)
    const rows = await waitForRows(page, `lines below ${before}`, ([first]) => (first?.number ?? 0) > before)
    expect(areRight(rows)).toBe(true)
    before = rows[0]?.number ?? 0
  }
  for (let i = 0; i < 10; i++) {
    await page.keyboard.press('PageDown')
    const rows = await waitForRows(page, `lines below ${before}`, ([first]) => (first?.number ?? 0) > before)
    expect(areRight(rows)).toBe(true)
    before = rows[0]?.number ?? 0
  }
  // Row by row: whatever is pressed leads to lines that are near.
  expect(before).toBeLessThan(1000)

  let at = 0
  // At both ends the scroll bar is slower, so that they are reached row by row.
  for (const [share, wanted] of [
    [0.5, 5_000_000],
    [0.25, 1_700_000],
    [0.9, 9_960_000],
    [0.6, 6_300_000],
  ] as const) {
    await dragScrollBar(page, at, share)
    const rows = await waitForRows(page, `lines near ${wanted}`, ([first]) => {
      return Math.abs((first?.number ?? 0) - wanted) < 700_000
    })
    expect(areRight(rows)).toBe(true)
    at = await list(page).evaluate((element) => element.scrollTop / (element.scrollHeight - element.clientHeight))
  }
  await list(page).focus()
  await page.keyboard.press('End')
  expect(areRight(await waitForRow(page, LARGE_LINES))).toBe(true)
  await page.keyboard.press('PageUp')
  const rows = await waitForRows(page, 'lines before the end', (all) => (all.at(-1)?.number ?? 0) < LARGE_LINES)
  expect(areRight(rows)).toBe(true)
  await page.keyboard.press('Home')
  expect(areRight(await waitForRow(page, 1))).toBe(true)
  await expectLittle(page)
  await close()
})

it('is opened at any line by its address, and searched from there', async () => {
  const { page, close } = await openOutput(browser, server.urls.api, id, '?line=7654321')
  expect(areRight(await waitForRow(page, 7_654_321))).toBe(true)
  expect(await list(page).locator('[data-chosen] .output-text').allInnerTexts()).toEqual([largeLine(7_654_321)])

  await searchField(page).fill('9999990 x')
  await searchField(page).press('Enter')
  expect(areRight(await waitForRow(page, 9_999_990))).toBe(true)
  expect(await row(page, 9_999_990).locator('mark').innerText()).toBe('9999990 x')
  await pane(page).getByText('1 of 1 line').waitFor()
  // The rest is searched, too, unless nobody wants that.
  await pane(page).getByRole('button', { name: 'Stop' }).click()
  await found(page).getByText('stopped at').waitFor()
  await expectLittle(page)
  await close()
})
