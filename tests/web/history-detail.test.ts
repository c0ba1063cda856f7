/** One execution: its parts, while it runs and afterwards. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { unknownId } from '../conformance/support.ts'
import { createTestApp, withApp } from '../helpers/app.ts'
import { run, runToEnd, waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { startBrowser, type TestBrowser, type TestPage } from './browser.ts'
import { fillServer, type Demo } from './demo.ts'

let server: TestApp
let browser: TestBrowser
let demo: Demo

beforeAll(async () => {
  ;[server, browser] = await Promise.all([createTestApp(), startBrowser()])
  demo = await fillServer(server)
})

afterAll(async () => {
  await browser.close()
  await server.stop()
})

function open(address: string, options?: Parameters<TestBrowser['open']>[1], on = server): Promise<TestPage> {
  return browser.open(`${on.urls.api}/#/history/${address}`, options)
}

const detail = (page: Page) => page.getByRole('region', { name: 'Execution', exact: true })
const part = (page: Page, name: string) => detail(page).getByRole('region', { name })
const badge = (page: Page) => detail(page).locator('.execution-head').getByRole('status')
const facts = (page: Page) => page.getByRole('complementary', { name: 'Details' })

describe('what it was', () => {
  it('and why it has run: from the rule to the trigger instance and the trace', async () => {
    const { page, close } = await open(`${demo.deployed}/general`)
    await badge(page).getByText('succeeded').waitFor()
    await detail(page).getByRole('heading', { name: 'shop.deploy' }).waitFor()
    const href = (name: string): Promise<string | null> => facts(page).getByRole('link', { name }).getAttribute('href')
    expect(await href('shop.on_push')).toBe('#/rules/shop.on_push')
    expect(await href(demo.matched)).toBe(`#/triggers/instances/${demo.matched}`)
    expect(
      await facts(page)
        .getByRole('link', { name: /^webhook-push/ })
        .getAttribute('href'),
    ).toBe(`#/traces/${demo.traceId}`)
    expect(await detail(page).getByRole('link', { name: 'Trace', exact: true }).getAttribute('href')).toBe(
      `#/traces/${demo.traceId}`,
    )
    await facts(page).getByText('local-shell-script').waitFor()
    // As a terminal would show it, without what makes colours there.
    await part(page, 'Result').getByText('[build] running').waitFor()
    await part(page, 'Parameters').getByText('staging').waitFor()
    await close()
  })

  fullOnly(it)('is told in the tab of the browser, and its id and link are there to be copied', async () => {
    const { page, close } = await open(`${demo.failed}/general`, { permissions: ['clipboard-read', 'clipboard-write'] })
    await waitFor('the title', async () => (await page.title()) === 'core.local failed · svc')
    await detail(page).getByRole('button', { name: 'Copy id' }).click()
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(demo.failed)
    await detail(page).getByRole('button', { name: 'Copy link' }).click()
    expect(await page.evaluate(() => navigator.clipboard.readText())).toContain(`/#/history/${demo.failed}/general`)
    await close()
  })

  it('that has failed begins with what went wrong', async () => {
    const { page, close } = await open(`${demo.failed}/general`)
    const problem = part(page, 'Problem')
    await problem.getByRole('heading', { name: 'Failed: exit code 3' }).waitFor()
    await problem.getByText('/dev/sdb: no such device').waitFor()
    const order = await detail(page)
      .locator('.general-main > section')
      .evaluateAll((all) => all.map((one) => one.getAttribute('aria-label')))
    expect(order).toEqual(['Problem', 'Result', 'Parameters'])
    await close()
  })

  fullOnly(it)('with a hostile result and hostile parameters is text', async () => {
    const hostile = '<script>alert(1)</script><img src=x onerror=alert(2)>'
    const { id } = await runToEnd(server, {
      cmd: `echo '${hostile}'; echo '${hostile}' >&2; exit 1`,
      env: { '<b>': hostile },
    })
    const { page, close } = await open(`${id}/general`)
    await part(page, 'Result').getByText(hostile).first().waitFor()
    expect(await detail(page).locator('script, img, b').count()).toBe(0)
    for (const tab of ['Raw', 'Timeline', 'Children', 'Output']) {
      await detail(page).getByRole('link', { name: tab, exact: true }).click()
      await waitFor(tab, () => page.url().endsWith(`/${tab.toLowerCase()}`))
    }
    await page.getByText(hostile).first().waitFor()
    expect(await detail(page).locator('script, img, b').count()).toBe(0)
    await close()
  })

  fullOnly(it)('with a large result shows it on demand, and hands it out as a file', async () => {
    const { id, result_size: size } = await runToEnd(server, { cmd: 'seq 1 100000' })
    expect(size).toBeGreaterThan(256 * 1024)
    const { page, close } = await open(`${id}/general`)
    await part(page, 'Result').getByText('Not loaded: it is large.').waitFor()
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      part(page, 'Result').getByRole('button', { name: 'Download' }).click(),
    ])
    expect(file.suggestedFilename()).toBe(`execution_${id}_result.json`)
    let text = ''
    for await (const chunk of await file.createReadStream()) text += String(chunk)
    expect((JSON.parse(text) as { stdout: string }).stdout).toMatch(/\n100000$/)
    await part(page, 'Result').getByRole('button', { name: 'Show', exact: true }).click()
    await part(page, 'Result').getByText('99999\n100000').waitFor()
    const shown = await part(page, 'Result').locator('pre').innerText()
    expect(shown.length).toBeLessThan(10_000)
    await part(page, 'Result')
      .getByRole('button', { name: /earlier characters not shown/ })
      .click()
    await waitFor('all of it', async () =>
      (await part(page, 'Result').locator('pre').innerText()).startsWith('1\n2\n3'),
    )
    await close()
  })
})

fullOnly(describe)('an address', () => {
  it('of the last execution shows it, and becomes its own', async () => {
    await withApp({}, async (own) => {
      const nothing = await open('last/general', {}, own)
      await nothing.page.getByRole('heading', { name: 'No executions yet' }).waitFor()
      await nothing.close()
      const { id } = await runToEnd(own, { cmd: 'echo last' })
      const { page, close } = await open('last/timeline', {}, own)
      await part(page, 'Timeline').waitFor()
      await waitFor('the address', () => page.url().endsWith(`#/history/${id}/timeline`))
      expect(await detail(page).locator('code').first().innerText()).toBe(id)
      await close()
    })
  })

  it('without a part shows the general one', async () => {
    const { page, close } = await open(demo.failed)
    await part(page, 'Problem').waitFor()
    expect(await detail(page).getByRole('link', { name: 'General' }).getAttribute('aria-current')).toBe('page')
    await close()
  })

  it('of no execution says so, whatever it is', async () => {
    const { page, close } = await open('', { viewport: { width: 1000, height: 700 } })
    for (const id of [unknownId, 'nonsense', '<img src=x onerror=alert(1)>', 'a/b', 'x'.repeat(3000)]) {
      await page.goto(`${server.urls.api}/#/history/${encodeURIComponent(id)}/general`)
      await page.getByRole('heading', { name: 'Execution not found' }).waitFor()
      await detail(page).getByText(id).waitFor()
      expect(await detail(page).locator('img').count()).toBe(0)
    }
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(1000)
    await page.getByRole('link', { name: 'Open the history' }).click()
    await page.getByRole('grid', { name: 'Executions' }).waitFor()
    await close()
  })

  it('of a part that does not exist leads to one that does', async () => {
    const { page, close } = await open(`${demo.failed}/nothing`)
    await page.getByText('An execution has no view “nothing”.').waitFor()
    expect(await page.getByRole('link', { name: 'General' }).last().getAttribute('href')).toContain('/general')
    await close()
  })

  it('keeps what the list was narrowed down by, on the way there and back', async () => {
    const { page, close } = await open('?status=failed', { viewport: { width: 1000, height: 700 } })
    await page.getByRole('row').filter({ hasText: 'checking disks' }).getByRole('link').first().click()
    await part(page, 'Problem').waitFor()
    expect(page.url()).toContain(`/history/${demo.failed}/general?status=failed`)
    await detail(page).getByRole('link', { name: 'Timeline' }).click()
    await part(page, 'Timeline').waitFor()
    await page.getByRole('link', { name: '← History' }).click()
    await page.getByRole('grid', { name: 'Executions' }).waitFor()
    expect(page.url()).toMatch(/#\/history\?status=failed$/)
    await close()
  })

  it('is shown beside the list where there is room', async () => {
    const { page, close } = await open(`${demo.failed}/general`, { viewport: { width: 1400, height: 800 } })
    await part(page, 'Problem').waitFor()
    const row = page.getByRole('row').filter({ hasText: 'branch=feature/cart' })
    const current = page.locator('[aria-current=page]').filter({ hasText: 'checking disks' })
    await current.waitFor()
    expect(await current.count()).toBe(1)
    await row.first().getByRole('link').first().click()
    await detail(page).getByRole('heading', { name: 'shop.deploy' }).waitFor()
    await page.getByRole('link', { name: 'Close' }).click()
    await waitFor('the address', () => page.url().endsWith('#/history'))
    await detail(page).waitFor({ state: 'detached' })
    await close()
  })
})

describe('while it runs', () => {
  it('everything changes with it, and it can be cancelled', async () => {
    const { id } = await run(server, { cmd: 'echo begun; sleep 600', timeout: 600 })
    await waitForStatus(server, id, ['running'])
    const { page, close } = await open(`${id}/timeline`)
    await badge(page).getByText('running').waitFor()
    await part(page, 'Timeline')
      .getByRole('heading', { name: /so far$/ })
      .waitFor()
    await detail(page).getByRole('button', { name: 'Cancel' }).click()
    await badge(page).getByText('canceled', { exact: true }).waitFor()
    await part(page, 'Timeline')
      .getByRole('heading', { name: /in total$/ })
      .waitFor()
    const statuses = await part(page, 'Timeline').getByRole('rowheader').allTextContents()
    expect(statuses).toEqual(['requested', 'scheduled', 'running', 'canceling', 'canceled'])
    await detail(page).getByRole('link', { name: 'General' }).click()
    await part(page, 'Problem').getByRole('heading', { name: 'Canceled by svc' }).waitFor()
    expect(await detail(page).getByRole('button', { name: 'Cancel' }).count()).toBe(0)
    await close()
  })

  fullOnly(it)('a refusal to cancel, which comes with the status of a success, is told', async () => {
    const { id } = await run(server, { cmd: 'sleep 600', timeout: 600 })
    const { page, close } = await open(`${id}/general`)
    await badge(page).getByText('running').waitFor()
    // It ends, and the page has not heard of that yet.
    await page.route('**/stream/v1/stream*', (route) => route.abort())
    await page.route(`**/api/v1/executions/${id}`, async (route) => {
      if (route.request().method() !== 'DELETE') return route.continue()
      const answer = { faultstring: 'Action cannot be canceled. State = succeeded.' }
      return route.fulfill({ json: answer })
    })
    await detail(page).getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('Could not cancel the execution: Action cannot be canceled. State = succeeded.').waitFor()
    expect(await detail(page).getByRole('button', { name: 'Cancel' }).isEnabled()).toBe(true)
    await server.call('DELETE', `/v1/executions/${id}`)
    await close()
  })

  it('its result comes at the end', async () => {
    const flag = join(server.basePath, 'let-go')
    const { id } = await run(server, { cmd: `until [ -e ${flag} ]; do sleep 0.05; done; echo the end` })
    const { page, close } = await open(`${id}/general`)
    await part(page, 'Result').getByText('No result yet: the execution has not ended.').waitFor()
    writeFileSync(flag, '')
    await part(page, 'Result').getByText('the end', { exact: true }).waitFor()
    expect(await badge(page).innerText()).toBe('succeeded')
    await close()
  })

  fullOnly(it)('children become a tree as they come', async () => {
    const { id } = await run(server, { cmd: 'sleep 600', timeout: 600 })
    const { page, close } = await open(`${id}/children`)
    await part(page, 'Children').getByText('No child executions so far.').waitFor()
    const under = (parent: string) => ({ context: { parent: { execution_id: parent } } })
    const child = await run(server, { cmd: 'echo child' }, under(id))
    await part(page, 'Children').getByText('cmd="echo child"').waitFor()
    await run(server, { cmd: 'exit 4' }, under(child.id))
    const grandchild = part(page, 'Children').locator('li li').filter({ hasText: 'exit 4' })
    await grandchild.getByText('failed').waitFor()
    await part(page, 'Children').getByRole('link', { name: 'Show as list' }).click()
    await page.getByText(`Children of ${id}`).waitFor()
    await page.getByRole('row').filter({ hasText: 'echo child' }).waitFor()
    expect(await page.getByRole('row').filter({ hasText: 'exit 4' }).count()).toBe(0)
    await server.call('DELETE', `/v1/executions/${id}`)
    await close()
  })

  fullOnly(it)('output is shown as it comes', async () => {
    const { page, close } = await open(`${demo.running}/output`)
    await detail(page)
      .getByText(/node-1 of 12 checked/)
      .first()
      .waitFor()
    expect(await badge(page).innerText()).toBe('running')
    await close()
  })
})

fullOnly(describe)('the raw record', () => {
  it('is a tree, JSON to be copied, and commands that tell the same', async () => {
    const { page, close } = await open(`${demo.failed}/raw`, { permissions: ['clipboard-read', 'clipboard-write'] })
    await part(page, 'Record').getByText('start_timestamp').waitFor()
    await part(page, 'Record').getByRole('button', { name: 'Copy as JSON' }).click()
    const copied = await page.evaluate(() => navigator.clipboard.readText())
    const { body } = await server.call<ExecutionAnswer>('GET', `/v1/executions/${demo.failed}`)
    expect(JSON.parse(copied)).toEqual(body)
    await part(page, 'Commands').getByText(`svc execution get ${demo.failed} --json`).waitFor()
    await part(page, 'Commands')
      .getByText(/^svc run core\.local cmd='echo "checking disks"/)
      .waitFor()
    await close()
  })
})

fullOnly(describe)('numbers that JavaScript would change', () => {
  it('are shown and copied as they are', async () => {
    const env = '{"order":820982911946154508,"price":21.0}'
    const response = await fetch(`${server.urls.api}/v1/executions`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: `{"action":"core.local","parameters":{"cmd":"true","env":${env}}}`,
    })
    const { id } = (await response.json()) as { id: string }
    await waitForStatus(server, id, ['succeeded'])
    const { page, close } = await open(`${id}/raw`, { permissions: ['clipboard-read', 'clipboard-write'] })
    await part(page, 'Record').getByRole('button', { name: 'Copy as JSON' }).click()
    const copied = await page.evaluate(() => navigator.clipboard.readText())
    expect(copied.replaceAll(/\s/g, '')).toContain(env)
    await part(page, 'Commands').getByText('820982911946154508').waitFor()
    await detail(page).getByRole('link', { name: 'General', exact: true }).click()
    await part(page, 'Parameters').getByText('820982911946154508').waitFor()
    await part(page, 'Parameters').getByText('21.0').waitFor()
    await close()
  })
})

fullOnly(describe)('on a phone', () => {
  it('no part is wider than the screen', async () => {
    const { page, close } = await open(`${demo.deployed}/general`, { viewport: { width: 375, height: 700 } })
    for (const tab of ['General', 'Output', 'Timeline', 'Children', 'Raw']) {
      await detail(page).getByRole('link', { name: tab, exact: true }).click()
      await detail(page).locator(`[data-part=${tab.toLowerCase()}]`).getByRole('region').first().waitFor()
      for (const element of [page.locator('html'), page.getByRole('main')]) {
        expect([tab, await element.evaluate((it) => it.scrollWidth - it.clientWidth)]).toEqual([tab, 0])
      }
    }
    await close()
  })
})
