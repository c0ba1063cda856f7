/** The pane of the output as tests use it: what is to be seen of it, and what somebody does with it. */
import type { Locator, Page } from 'playwright-core'
import { run, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import type { TestBrowser, TestPage } from './browser.ts'

export const pane = (page: Page): Locator => page.getByRole('region', { name: 'Output', exact: true })
export const list = (page: Page): Locator => pane(page).getByRole('list', { name: 'Output lines' })
export const row = (page: Page, number: number): Locator => list(page).locator(`[aria-posinset="${number}"]`)
export const button = (page: Page, name: string): Locator => pane(page).getByRole('button', { name, exact: true })
export const searchField = (page: Page): Locator => pane(page).getByLabel('Search the output')
/** How it stands with the output: `Live`, `Complete` … */
export const phase = (page: Page): Locator => pane(page).locator('.output-state').getByRole('status')
/** What is found, as it is read out. */
export const found = (page: Page): Locator => pane(page).getByRole('search').getByRole('status')

/** A gigabyte in ten million lines, printed as fast as it can be stored. */
export const LARGE_LINES = 10_000_000
const filling = 'x'.repeat(92)
export const printLarge = `seq -s ' ${filling}\n' ${LARGE_LINES}`
export const largeLine = (number: number): string => (number === LARGE_LINES ? String(number) : `${number} ${filling}`)

/** @param query behind the address of the output, such as `?line=5` */
export async function openOutput(
  browser: TestBrowser,
  apiUrl: string,
  id: string,
  query = '',
  options?: Parameters<TestBrowser['open']>[1],
): Promise<TestPage> {
  const opened = await browser.open(`${apiUrl}/#/history/${id}/output${query}`, options)
  await pane(opened.page).waitFor()
  return opened
}

/** Runs a command. @returns the id of its execution, which need not have ended */
export async function begin(server: TestApp, cmd: string): Promise<string> {
  return (await run(server, { cmd, timeout: 0 })).id
}

export interface SeenRow {
  number: number
  text: string
}

/** Rows that are within the list's edges as a whole, from top to bottom. */
export function seenRows(page: Page): Promise<SeenRow[]> {
  return list(page).evaluate((element) => {
    const edges = element.getBoundingClientRect()
    return [...element.querySelectorAll('[aria-posinset]')].flatMap((one) => {
      const { top, bottom } = one.getBoundingClientRect()
      if (top < edges.top - 1 || bottom > edges.top + element.clientHeight + 1) return []
      const text = one.querySelector('.output-text')?.textContent ?? ''
      return { number: Number(one.getAttribute('aria-posinset')), text }
    })
  })
}

/** Rows that are seen once each has come, and they are as they are wanted. */
export function waitForRows(
  page: Page,
  what: string,
  areWanted: (rows: readonly SeenRow[]) => boolean,
): Promise<SeenRow[]> {
  return waitFor(what, async () => {
    const rows = await seenRows(page)
    return rows.length > 0 && rows.every(({ text }) => text !== '…') && areWanted(rows) && rows
  })
}

export function waitForRow(page: Page, number: number): Promise<SeenRow[]> {
  return waitForRows(page, `line ${number} to be seen`, (rows) => rows.some((one) => one.number === number))
}

/** Until nothing moves any more: browsers scroll smoothly. */
export async function waitForRest(page: Page): Promise<void> {
  let before: string | undefined
  await waitFor('the end of scrolling', async () => {
    const now = JSON.stringify(await seenRows(page))
    const isSame = now === before
    before = now
    await page.evaluate('new Promise((resolve) => requestAnimationFrame(resolve))')
    return isSame
  })
}

/** All of it, from the first line on, as it is read in the page. */
export async function readAll(page: Page): Promise<string[]> {
  const texts = new Map<number, string>()
  await list(page).evaluate((element) => {
    element.scrollTop = 0
  })
  let rows = await waitForRow(page, 1)
  for (;;) {
    for (const { number, text } of rows) texts.set(number, text)
    const last = rows.at(-1)?.number ?? 0
    if ((await row(page, last).getAttribute('aria-setsize')) === String(last)) break
    await list(page).evaluate((element) => {
      element.scrollTop += element.clientHeight / 2
    })
    rows = await waitForRows(page, `more than line ${last}`, (now) => (now.at(-1)?.number ?? 0) > last)
  }
  return Array.from({ length: Math.max(...texts.keys()) }, (_, i) => texts.get(i + 1) ?? '(not seen)')
}

/** Drags the scroll bar of the list from one share of its way to another. */
export async function dragScrollBar(page: Page, from: number, to: number): Promise<void> {
  const steps = 12
  /** From the edge to the middle of what is dragged: the arrow is between. */
  const end = 24
  const box = await list(page).boundingBox()
  if (box === null) throw new Error('there is no list')
  const height = await list(page).evaluate((element) => element.clientHeight)
  const x = box.x + box.width - 7
  const y = (share: number): number => box.y + end + share * (height - 2 * end)
  await page.mouse.move(x, y(from))
  await page.mouse.down()
  for (let step = 1; step <= steps; step++) await page.mouse.move(x, y(from + ((to - from) * step) / steps))
  await page.mouse.up()
}

/** What the tab keeps once its garbage is gone. */
export async function memoryOf(page: Page): Promise<{ bytes: number; nodes: number }> {
  const debug = await page.context().newCDPSession(page)
  await debug.send('HeapProfiler.collectGarbage')
  const { usedSize } = await debug.send('Runtime.getHeapUsage')
  await debug.send('Performance.enable')
  const { metrics } = await debug.send('Performance.getMetrics')
  await debug.detach()
  return { bytes: usedSize, nodes: metrics.find(({ name }) => name === 'Nodes')?.value ?? Infinity }
}
