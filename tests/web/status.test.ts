/** The status of the server as operators see it: now, and in plots. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { createTestApp } from '../helpers/app.ts'
import { run, type TestApp, startServer } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { startBrowser, type TestBrowser, type TestPage } from './browser.ts'
import { startGuarded } from './session.ts'
import { writeHistory } from './status-history.ts'

const folder = makeFolder()
const hostile = '<img src=x onerror=alert(1)>'
let server: TestApp
let browser: TestBrowser

beforeAll(async () => {
  const settings = { 'actionrunner.actions_pool_size': '1' }
  browser = await startBrowser()
  // The tables are there after the first start.
  await (await createTestApp({ basePath: folder.path, settings })).stop()
  writeHistory(folder.path, 1440, (ago) => {
    // Ten minutes without a server, half an hour ago.
    if (ago > 30 && ago <= 40) return undefined
    return {
      gauges: { request: ago === 20 ? 42 : 1, slots_used: 1, slots_size: 1, resident_bytes: 2e8 },
      counts: { started: 4, succeeded: 3, failed: 1, webhooks: ago === 20 ? 90 : 0 },
      // Four runs of a millisecond or less.
      runs: [4],
    }
  })
  const pack = join(folder.path, 'packs', 'broken', 'actions')
  mkdirSync(pack, { recursive: true })
  writeFileSync(join(pack, '..', 'pack.yaml'), 'name: broken\ndescription: d\nversion: 1.0.0\nauthor: a\n')
  writeFileSync(join(pack, `${hostile.replace('/', '')}.yaml`), `name: ${hostile}\nrunner_type: none\n`)
  server = await createTestApp({ basePath: folder.path, settings })
})

afterAll(async () => {
  await browser.close()
  await server.stop()
  folder.remove()
})

const plotOf = (page: Page, title: string) => page.getByRole('figure', { name: title, exact: true })
const cursorOf = (page: Page, title: string) => page.getByRole('slider', { name: `Time in ${title}`, exact: true })
const textAt = (page: Page, title: string): Promise<string> =>
  cursorOf(page, title)
    .getAttribute('aria-valuetext')
    .then((text) => text ?? '')

/** The page asks again at once, and not in some seconds. */
const soon = (page: Page): Promise<void> => page.clock.fastForward(6000)

/** Whose timers can be hurried. */
async function openHurried(url: string): Promise<TestPage> {
  const opened = await browser.open(url)
  await opened.page.clock.install()
  await opened.page.reload()
  return opened
}

describe('now', () => {
  it('shows what needs attention as it comes and goes', async () => {
    const { page, close } = await openHurried(`${server.urls.api}/#/status`)
    await page.getByText('No problems.').waitFor()
    await page.getByText(`process ${process.pid}`).waitFor()
    const runs = await Promise.all(Array.from({ length: 11 }, () => run(server, { cmd: 'sleep 1000', timeout: 0 })))
    await soon(page)
    await page.getByText('The queue "request" has 10 messages; the recommended limit is 10.').waitFor()
    await page.getByText('needs attention', { exact: true }).waitFor()
    await page.getByText('1 of 1 slots').waitFor()
    const meter = page.getByRole('meter', { name: 'Queued' })
    expect(await meter.evaluate((element) => (element as HTMLMeterElement).value)).toBe(10)
    await Promise.all(runs.map(({ id }) => server.call('DELETE', `/v1/executions/${id}`)))
    await soon(page)
    await page.getByText('No problems.').waitFor()
    await close()
  })

  it('has listeners, components, storage and the gauges', async () => {
    const { page, close } = await browser.open(`${server.urls.api}/#/status`)
    for (const url of Object.values(server.urls)) await page.getByText(url, { exact: true }).waitFor()
    await page.getByText('svcrulesengine').waitFor()
    await page.getByText('No backups yet. Run').waitFor()
    await server.call('POST', '/v1/backups')
    await page.getByText('All gauges').click()
    await page.getByText('database.waiting_scans').waitFor()
    await page.reload()
    await page.getByRole('heading', { name: 'Backups' }).waitFor()
    expect(await page.getByText('No backups yet. Run').count()).toBe(0)
    await close()
  })

  it('tells the last problems, whatever is in them', async () => {
    const { page, close } = await browser.open(`${server.urls.api}/#/status`)
    const row = page.getByRole('row').filter({ hasText: hostile }).first()
    await row.getByText('Log line').click()
    expect(await row.locator('pre').textContent()).toContain('WARNING')
    expect(await page.locator('main img').count()).toBe(0)
    await close()
  })

  fullOnly(it)('keeps what it knows while the server is away, says so, and goes on when it is back', async () => {
    const away = makeFolder()
    const first = await startServer({ basePath: away.path })
    const settings = { 'api.port': new URL(first.urls.api).port }
    const { page, close } = await openHurried(`${first.urls.api}/#/status`)
    await page.getByText(`process ${first.pid}`).waitFor()
    await first.stop()
    await soon(page)
    await page.getByText('Could not reach the server. Check the connection.').first().waitFor()
    await page.getByText('Last answer:').waitFor()
    expect(await page.getByText(`process ${first.pid}`).isVisible()).toBe(true)
    const second = await startServer({ basePath: away.path, settings })
    await soon(page)
    await page.getByText(`process ${second.pid}`).waitFor()
    expect(await page.getByText('Last answer:').count()).toBe(0)
    await close()
    await second.stop()
    away.remove()
  })
})

describe('plots', () => {
  fullOnly(it)('have a gap where the server was down, and the values at the place that is looked at', async () => {
    const { page, close } = await browser.open(`${server.urls.api}/#/status`)
    await cursorOf(page, 'Queues').waitFor()
    const line = plotOf(page, 'Slots').locator('path.series').first()
    expect(((await line.getAttribute('d')) ?? '').split('M')).toHaveLength(3)

    // By keyboard: to the rush, and from there one minute on.
    const queues = cursorOf(page, 'Queues')
    await queues.focus()
    await page.keyboard.press('Home')
    const first = await textAt(page, 'Queues')
    expect(first).toMatch(/^\d\d:\d\d: queued 1, starting 0, canceling 0, trigger instances 0$/)
    const rush = (): Promise<boolean> => textAt(page, 'Queues').then((text) => text.includes('queued 42'))
    for (let i = 0; i < 60 && !(await rush()); i++) await page.keyboard.press('ArrowRight')
    expect(await rush()).toBe(true)
    expect(await plotOf(page, 'Queues').getByRole('list').textContent()).toContain('queued 42')
    // All plots are of one time.
    expect(await textAt(page, 'Events')).toContain('webhook requests 90')
    const at = (await textAt(page, 'Queues')).slice(0, 5)
    expect(await textAt(page, 'Memory')).toBe(`${at}: resident 200 MB, heap 0 bytes`)
    await page.keyboard.press('ArrowRight')
    expect(await textAt(page, 'Events')).toContain('webhook requests 0')

    // By pointer: at the left edge is the first minute.
    await waitFor('the first minute, unless it is another one meanwhile', async () => {
      await cursorOf(page, 'Executions').hover({ position: { x: 1, y: 20 } })
      const hovered = await textAt(page, 'Executions')
      await cursorOf(page, 'Executions').focus()
      await page.keyboard.press('Home')
      return hovered === (await textAt(page, 'Executions'))
    })
    expect(await textAt(page, 'Executions')).toMatch(/: succeeded 3, failed 1, canceled 0$/)
    await close()
  })

  it('can be read as tables', async () => {
    const { page, close } = await browser.open(`${server.urls.api}/#/status`)
    const plot = plotOf(page, 'Run time')
    await plot.getByText('Table').click()
    await plot.getByRole('columnheader', { name: 'p95' }).waitFor()
    const rows = await plot.getByRole('row').count()
    // An hour without ten minutes, and the row of titles.
    expect(rows).toBeGreaterThan(45)
    expect(rows).toBeLessThan(54)
    expect(await plot.getByRole('row').last().textContent()).toMatch(/^\d\d:\d\d1 ms1 ms$/)
    await close()
  })

  fullOnly(it)('of a day have their address, and join minutes', async () => {
    const { page, close } = await browser.open(`${server.urls.api}/#/status`)
    await page.getByRole('link', { name: 'Last day' }).click()
    await page.waitForURL(/range=day$/)
    await page.reload()
    await cursorOf(page, 'Executions').focus()
    await page.keyboard.press('Home')
    for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowRight')
    // Still so many a minute, whatever is joined.
    expect(await textAt(page, 'Executions')).toMatch(/^\d\d:\d[05]: succeeded 3, failed 1, canceled 0$/)
    const count = Number(await cursorOf(page, 'Executions').getAttribute('max'))
    expect(count).toBeGreaterThan(270)
    expect(count).toBeLessThanOrEqual(289)
    await close()
  })

  fullOnly(it)('fit a phone', async () => {
    const { page, close } = await browser.open(`${server.urls.api}/#/status`, { viewport: { width: 375, height: 700 } })
    await cursorOf(page, 'Memory').waitFor()
    await page.getByText('svcscheduler').waitFor()
    const size = await page.evaluate(() => [
      document.documentElement.scrollWidth,
      document.querySelector('main')?.scrollWidth,
      document.documentElement.scrollHeight,
    ])
    expect(size).toEqual([375, 375, 700])
    await close()
  })
})

fullOnly(it)('who is no administrator is told where to look instead, and the server is not asked', async () => {
  const stage = await startGuarded({ settings: { 'rbac.enable': 'True', 'rbac.backend': 'default' } }, ['alice'])
  const { page, close } = await stage.open('/status', 'alice')
  const asked: string[] = []
  page.on('request', (request) => asked.push(new URL(request.url()).pathname))
  await page.getByText('Only administrators see the status').waitFor()
  await page.reload()
  await page.getByText('Only administrators see the status').waitFor()
  expect(asked.filter((path) => path.includes('/status'))).toEqual(
    asked.filter((path) => path.startsWith('/ui/status')),
  )
  expect(asked).toContain('/api/v1/user')
  await close()
  await stage.stop()
})
