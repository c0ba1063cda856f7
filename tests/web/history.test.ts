/** The list of executions: what is in it, as it changes, narrowed down, by keyboard alone, on a phone. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startCuttingProxy } from '../helpers/cutting-proxy.ts'
import { makeFolder } from '../helpers/folders.ts'
import { createRbacFiles } from '../helpers/rbac.ts'
import { createTestApp, withApp } from '../helpers/app.ts'
import { run, runToEnd, waitForStatus, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { startBrowser, type TestBrowser, type TestPage } from './browser.ts'
import { startGuarded } from './session.ts'
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

const phone = { viewport: { width: 375, height: 700 } }

function open(address = '', options?: Parameters<TestBrowser['open']>[1], on = server): Promise<TestPage> {
  return browser.open(`${on.urls.api}/#/history${address}`, options)
}

const grid = (page: Page) => page.getByRole('grid', { name: 'Executions' })
/** Of an execution, by its parameters. */
const row = (page: Page, text: string) => grid(page).getByRole('row').filter({ hasText: text })
const search = (page: Page) => page.getByRole('searchbox', { name: 'Search' })

/** The commands in the list, from the top. */
async function commands(page: Page): Promise<string[]> {
  const texts = await grid(page).locator('.parameters').allTextContents()
  return texts.slice(1)
}

async function showsAll(page: Page, ...expected: string[]): Promise<void> {
  await waitFor(`the list to be ${expected.join(', ')}`, async () => {
    const shown = await commands(page)
    return JSON.stringify(shown) === JSON.stringify(expected)
  })
}

describe('the list', () => {
  it('of nothing says what to do, and has the first execution as soon as that begins', async () => {
    await withApp({}, async (own) => {
      const { page, close } = await open('', {}, own)
      await page.getByText('No executions yet.').waitFor()
      expect(await page.getByRole('link', { name: 'Run an action' }).getAttribute('href')).toBe('#/actions')
      const { id } = await runToEnd(own, { cmd: 'echo first' })
      await row(page, 'echo first').getByText('succeeded').waitFor()
      await row(page, 'echo first').getByRole('link', { name: 'core.local' }).click()
      await page.getByText(id).first().waitFor()
      await close()
    })
  })

  fullOnly(it)('of one stays at the newest when many come in one moment', async () => {
    await withApp({}, async (own) => {
      const { page, close } = await open('', {}, own)
      // Nothing is drawn, and so nothing becomes a row, until all of them have been told.
      await page.addInitScript(() => {
        const [draw, parse] = [requestAnimationFrame, JSON.parse.bind(JSON)]
        const held: FrameRequestCallback[] = []
        const hold = { isOn: false, told: 0, release: () => held.splice(0).forEach((one) => draw(one)) }
        JSON.parse = (text: string): unknown => {
          if (hold.isOn) hold.told += 1
          return parse(text)
        }
        window.requestAnimationFrame = (one) => (hold.isOn ? held.push(one) : draw(one))
        Object.assign(window, { hold })
      })
      await page.reload()
      await page.getByText('No executions yet.').waitFor()
      await page.getByText('Live', { exact: true }).waitFor()
      await runToEnd(own, { cmd: 'echo one' })
      await row(page, 'echo one').getByText('succeeded').waitFor()
      await page.evaluate('hold.isOn = true')
      for (let number = 0; number < 40; number++) await run(own, { cmd: `echo ${number}.` })
      await waitFor('the page to be told', () => page.evaluate<boolean>('hold.told >= 100'))
      await page.evaluate('hold.isOn = false; hold.release()')
      await page.getByText('41 executions').waitFor()
      await row(page, 'echo 39.').getByText('succeeded').waitFor()
      expect(await page.locator('.virtual-list').evaluate(({ scrollTop }) => scrollTop)).toBe(0)
      await close()
    })
  })

  it('is newest first, with what an execution is known by; children only when they are asked for', async () => {
    const parent = await runToEnd(server, { cmd: 'echo parent' }, { user: 'ada' })
    const child = { context: { parent: { execution_id: parent.id } } }
    await runToEnd(server, { cmd: 'echo child', timeout: 5 }, child)
    const last = await runToEnd(server, { cmd: 'exit 3' })
    const { page, close } = await open()
    await showsAll(page, 'cmd="exit 3"', 'cmd="echo parent"')
    const cells = await row(page, 'exit 3').getByRole('gridcell').allTextContents()
    expect(cells.slice(1, 6)).toEqual(['failed', 'core.local', 'cmd="exit 3"', 'svc', ''])
    expect(await row(page, 'exit 3').getByRole('link').getAttribute('href')).toBe(`#/history/${last.id}/general`)
    const time = row(page, 'exit 3').locator('time')
    expect(await time.getAttribute('title')).toBe(last.start_timestamp)
    await page.getByText('2 executions').waitFor()
    await page.getByLabel('Include children').check()
    await showsAll(page, 'cmd="exit 3"', 'cmd="echo child" timeout=5', 'cmd="echo parent"')
    await row(page, 'echo child').getByRole('link', { name: 'another execution' }).click()
    await page.getByRole('heading', { name: 'core.local' }).waitFor()
    expect(page.url()).toContain(`/history/${parent.id}/general`)
    await close()
  })

  it('changes as executions begin, run and end', async () => {
    const { page, close } = await open()
    await grid(page).waitFor()
    const { id } = await run(server, { cmd: 'echo live; sleep 600', timeout: 600 })
    await row(page, 'echo live').getByText('running').waitFor()
    const elapsed = (): Promise<string> => row(page, 'echo live').locator('.elapsed').innerText()
    const before = await elapsed()
    await waitFor('the time to go on', async () => (await elapsed()) !== before)
    await server.call('DELETE', `/v1/executions/${id}`)
    await row(page, 'echo live').getByText('canceled', { exact: true }).waitFor()
    const after = await elapsed()
    expect(await waitForStatus(server, id)).toMatchObject({ status: 'canceled' })
    expect(after).toMatch(/^\d+(\.\d)? s$/)
    await close()
  })

  fullOnly(it)('changes in a browser that does not iterate over streams, too', async () => {
    const { page, close } = await open()
    await page.addInitScript({
      content: 'delete ReadableStream.prototype.values; delete ReadableStream.prototype[Symbol.asyncIterator]',
    })
    await page.reload()
    await page.getByText('Live', { exact: true }).waitFor()
    await runToEnd(server, { cmd: 'echo older browser' })
    await row(page, 'echo older browser').getByText('succeeded').waitFor()
    expect(await page.getByText('Live', { exact: true }).count()).toBe(1)
    await close()
  })

  fullOnly(it)('knows after a lost connection what has happened meanwhile', async () => {
    const proxy = await startCuttingProxy(server.urls.api, Infinity)
    const { id } = await run(server, { cmd: 'sleep 599', timeout: 600 })
    const { page, close } = await browser.open(`http://127.0.0.1:${proxy.port}/#/history`)
    await row(page, 'sleep 599').getByText('running').waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    const { page: ofRunning, close: closeOther } = await browser.open(
      `http://127.0.0.1:${proxy.port}/#/history?status=running`,
    )
    await ofRunning.getByText('Live', { exact: true }).waitFor()
    const later = await run(server, { cmd: 'sleep 598', timeout: 600 })
    await row(ofRunning, 'sleep 598').getByText('running').waitFor()
    proxy.shut()
    await page.getByText('Reconnecting').waitFor()
    await server.call('DELETE', `/v1/executions/${id}`)
    await waitForStatus(server, id)
    await server.call('DELETE', `/v1/executions/${later.id}`)
    await waitForStatus(server, later.id)
    await runToEnd(server, { cmd: 'echo meanwhile' })
    expect(await row(page, 'sleep 599').getByText('running').count()).toBe(1)
    proxy.open()
    await row(page, 'sleep 599').getByText('canceled', { exact: true }).waitFor()
    await row(page, 'echo meanwhile').getByText('succeeded').waitFor()
    // Also where what has ended does not belong.
    await waitFor('what runs', async () => (await row(ofRunning, 'sleep 59').count()) === 0)
    await closeOther()
    await close()
    await proxy.stop()
  })

  fullOnly(it)('says when it cannot be loaded, and loads when it can', async () => {
    const { page, close } = await open('?user=nobody')
    await page.getByText('No executions match the filters.').waitFor()
    await page.route('**/api/v1/executions?*', (route) => route.abort())
    await page.getByRole('link', { name: 'Show all executions' }).click()
    await page.getByRole('alert').getByText('Could not reach the server. Check the connection.').waitFor()
    await page.unroute('**/api/v1/executions?*')
    await page.getByRole('button', { name: 'Retry' }).click()
    await grid(page).getByRole('gridcell').first().waitFor()
    await waitFor('the alert to go', async () => (await page.getByRole('alert').count()) === 0)
    expect(await grid(page).getByRole('row').count()).toBeGreaterThan(2)
    await close()
  })

  it('shows text as text, however hostile and long', async () => {
    const hostile = '<img src=x onerror=alert(1)>'
    const user = `<b>${'x'.repeat(1000)}`
    await runToEnd(server, { cmd: `true '${hostile}' "\u202eabc" ${'y'.repeat(1500)}` }, { user })
    await runToEnd(server, { cmd: `true ${'z'.repeat(100_000)}` })
    const { page, close } = await open()
    await row(page, hostile).waitFor()
    expect(await page.locator('.executions img, .executions b').count()).toBe(0)
    await row(page, '100 kB of parameters').waitFor()
    const width = await page.evaluate(() => document.documentElement.scrollWidth)
    expect(width).toBeLessThanOrEqual(page.viewportSize()?.width ?? 0)
    await close()
  })
})

describe('narrowing it down', () => {
  it('is in the address, which shows a colleague the same, and typing leaves nothing to go back through', async () => {
    await runToEnd(server, { cmd: 'exit 9' }, { user: 'grace' })
    await runToEnd(server, { cmd: 'echo fine' }, { user: 'grace' })
    const { page, close } = await open()
    await grid(page).waitFor()
    await page.getByText('Any status').click()
    await page.getByRole('checkbox', { name: 'failed', exact: true }).check()
    await page.getByRole('checkbox', { name: 'timeout', exact: true }).check()
    await page.keyboard.press('Escape')
    await waitFor('the address', () => page.url().endsWith('#/history?status=failed%2Ctimeout'))
    const length = await page.evaluate(() => history.length)
    await page.getByLabel('User', { exact: true }).pressSequentially('grace')
    await showsAll(page, 'cmd="exit 9"')
    await search(page).pressSequentially('local grace')
    await waitFor('the address', () => page.url().includes('q=local+grace'))
    await showsAll(page, 'cmd="exit 9"')
    expect(await page.evaluate(() => history.length)).toBe(length)

    const other = await browser.open(page.url())
    await showsAll(other.page, 'cmd="exit 9"')
    expect(await search(other.page).inputValue()).toBe('local grace')
    expect(await other.page.getByLabel('User', { exact: true }).inputValue()).toBe('grace')
    await other.page.getByText('failed, timeout').waitFor()
    await other.close()

    await page.goBack()
    await waitFor('the address', () => !page.url().includes('timeout'))
    await page.goForward()
    await page.getByRole('button', { name: 'Clear' }).click()
    await waitFor('the address', () => page.url().endsWith('#/history'))
    await row(page, 'echo fine').waitFor()
    expect(await search(page).inputValue()).toBe('')
    await close()
  })

  fullOnly(it)('by a text in the output, which is in the address and a chip', async () => {
    await runToEnd(server, { cmd: 'printf dee; sleep 0.1; echo P Needle' })
    await runToEnd(server, { cmd: 'echo deep hay' })
    await runToEnd(server, { cmd: 'echo deep needle >&2; : two' })
    const { page, close } = await open()
    await grid(page).waitFor()
    const field = page.getByLabel('Text in output', { exact: true })
    await field.fill('deep needle')
    await field.press('Enter')
    await waitFor('the address', () => page.url().endsWith('#/history?output=deep+needle'))
    await page.getByText('2 executions', { exact: true }).waitFor()
    await row(page, 'printf dee').waitFor()
    await row(page, 'echo deep needle').waitFor()

    await field.fill('no such needle')
    await field.press('Enter')
    await page.getByText('Stored output was searched, in which secrets are masked.').waitFor()
    await page.getByRole('button', { name: 'Remove the output filter' }).click()
    await waitFor('the address', () => page.url().endsWith('#/history'))
    await row(page, 'echo deep hay').waitFor()
    expect(await field.inputValue()).toBe('')
    await close()
  })

  fullOnly(it)('offers the values that executions have', async () => {
    const { page, close } = await open()
    await grid(page).waitFor()
    await page.getByLabel('Action', { exact: true }).focus()
    const list = await page.getByLabel('Action', { exact: true }).getAttribute('list')
    const offered = page.locator(`[id="${list}"] option`)
    await waitFor('the values', async () => (await offered.count()) > 0)
    expect(await offered.evaluateAll((all) => all.map((one) => one.getAttribute('value')))).toContain('core.local')
    // A part of one is looked for when somebody is sure of it.
    await page.getByLabel('Action', { exact: true }).fill('core')
    await page.keyboard.press('Enter')
    await page.getByText('No executions match the filters.').waitFor()
    expect(page.url()).toContain('action=core')
    await close()
  })

  fullOnly(it)('by a time of one’s own, and by the last hour', async () => {
    const { page, close } = await open('', { timezoneId: 'Asia/Tokyo' })
    await grid(page).waitFor()
    await page.getByLabel('Time', { exact: true }).selectOption('Between…')
    await page.getByLabel('To', { exact: true }).fill('2020-01-01T09:00:00')
    await page.getByText('No executions match the filters.').waitFor()
    expect(decodeURIComponent(page.url())).toContain('until=2020-01-01T00:00:00.000Z')
    await page.getByLabel('Time', { exact: true }).selectOption('Last hour')
    await grid(page).waitFor()
    expect(page.url()).toMatch(/#\/history\?since=1h$/)
    await close()
  })

  fullOnly(it)('by a time that is typed leaves nothing to go back through', async () => {
    const { page, close } = await open()
    await page.getByRole('combobox', { name: 'Time' }).selectOption({ label: 'Between…' })
    const from = page.getByLabel('From', { exact: true })
    const before = await page.evaluate(() => history.length)
    await from.focus()
    // The same in whatever order the browser asks for it, and for the half of the day if it does.
    await page.keyboard.type('01012030121212A')
    await page.waitForURL(/since=2030-01-01/)
    const typed = page.url()
    await page.keyboard.press('ArrowUp')
    await waitFor('another time in the address', () => page.url() !== typed)
    expect(await page.evaluate(() => history.length)).toBe(before)
    await close()
  })

  fullOnly(it)('by a value inside waits for Enter, because the server looks at every execution', async () => {
    await runToEnd(server, { cmd: 'echo $COLOUR', env: { COLOUR: 'blue' } })
    const { page, close } = await open()
    await grid(page).waitFor()
    await search(page).pressSequentially('parameters.env.COLOUR:blue')
    await page.getByText('Press Enter to search all executions.').waitFor()
    expect(page.url()).not.toContain('COLOUR')
    await page.keyboard.press('Enter')
    await showsAll(page, 'cmd="echo $COLOUR" env={"COLOUR":"blue"}')
    await close()
  })

  fullOnly(it)('to a status keeps what has ended until the list is loaded again, which is soon', async () => {
    const { id } = await run(server, { cmd: 'sleep 598', timeout: 600 })
    const { page, close } = await open('?status=running,scheduled,requested')
    await row(page, 'sleep 598').waitFor()
    await server.call('DELETE', `/v1/executions/${id}`)
    await waitFor('the row to go', async () => (await row(page, 'sleep 598').count()) === 0)
    expect((await waitForStatus(server, id)).status).toBe('canceled')
    await close()
  })
})

fullOnly(describe)('for somebody who may see little', () => {
  it('says so, and neither that nothing has run nor that it is still coming', async () => {
    const folder = makeFolder()
    const rbac = createRbacFiles(folder.path)
    rbac.assign('admin', 'system_admin')
    rbac.define('nobody', [])
    rbac.define('lister', [{ types: ['execution_list'] }])
    const settings = { 'rbac.enable': 'True', 'rbac.backend': 'default' }
    const stage = await startGuarded({ basePath: folder.path, settings }, ['nobody', 'lister'])
    await stage.server.call('POST', '/v1/executions', { action: 'core.noop' }, stage.operator)
    const none = await stage.open('/history', 'nobody')
    await none.page.getByRole('alert').getByText('"execution_list"').waitFor()
    expect(await none.page.locator('.bone').count()).toBe(0)
    await none.close()
    const { page, close } = await stage.open('/history', 'lister')
    await page.getByText('No executions that you may see.').waitFor()
    await close()
    await stage.stop()
    folder.remove()
  })
})

describe('by keyboard alone', () => {
  it('rows are walked through, chosen, cancelled and opened', async () => {
    const ids: string[] = []
    for (const seconds of [597, 596, 595]) {
      ids.push((await run(server, { cmd: `sleep ${seconds}`, timeout: 600 })).id)
    }
    const [, , newest = ''] = ids
    const { page, close } = await open()
    await row(page, 'sleep 597').getByText('running').waitFor()
    // Nothing has the focus yet.
    await page.keyboard.press('j')
    await waitFor('the grid', () => grid(page).evaluate((it) => it === document.activeElement))
    const active = (): Promise<string> =>
      grid(page).evaluate(
        (it) => document.getElementById(it.getAttribute('aria-activedescendant') ?? '')?.innerText ?? '',
      )
    expect(await active()).toContain('sleep 595')
    await page.keyboard.press('Space')
    await page.keyboard.press('ArrowDown')
    expect(await active()).toContain('sleep 596')
    await page.keyboard.press('x')
    await page.keyboard.press('j')
    await page.keyboard.press('k')
    expect(await active()).toContain('sleep 596')
    await page.getByText('2 selected').waitFor()
    expect(await row(page, 'sleep 596').getAttribute('aria-selected')).toBe('true')
    await page.getByRole('button', { name: 'Cancel 2', exact: true }).focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Cancel 2 executions?' })
    await dialog.getByRole('button', { name: 'Cancel 2 executions' }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('Canceled 2 executions.').waitFor()
    await row(page, 'sleep 595').getByText('canceled', { exact: true }).waitFor()
    await row(page, 'sleep 596').getByText('canceled', { exact: true }).waitFor()
    await row(page, 'sleep 597').getByText('running').waitFor()
    await grid(page).focus()
    await page.keyboard.press('Home')
    expect(await active()).toContain('sleep 595')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'core.local' }).waitFor()
    expect(page.url()).toContain(`/history/${newest}/general`)
    await server.call('DELETE', `/v1/executions/${ids[0]}`)
    await close()
  })

  fullOnly(it)('a range of rows is chosen with Shift, and what has ended is not cancelled again', async () => {
    for (const text of ['one', 'two', 'three']) await runToEnd(server, { cmd: `echo ${text}` })
    const { page, close } = await open()
    await row(page, 'echo three').getByRole('checkbox').check()
    await row(page, 'echo one')
      .getByRole('checkbox')
      .click({ modifiers: ['Shift'] })
    await page.getByText('3 selected').waitFor()
    expect(await page.getByRole('button', { name: 'None to cancel' }).isDisabled()).toBe(true)
    await page.getByRole('button', { name: 'Clear selection' }).click()
    expect(await page.getByText('3 selected').count()).toBe(0)
    await close()
  })
})

fullOnly(describe)('on a phone', () => {
  it('rows have two lines, filters open on request, and nothing is wider than the screen', async () => {
    await runToEnd(server, { cmd: `echo ${'wide '.repeat(50)}` }, { user: 'somebody-with-a-long-name' })
    const { page, close } = await open('', phone)
    await row(page, 'wide wide').first().waitFor()
    const box = await row(page, 'wide wide').first().boundingBox()
    expect(box?.height).toBe(60)
    const widest = (): Promise<number> => page.evaluate(() => document.documentElement.scrollWidth)
    expect(await widest()).toBeLessThanOrEqual(375)
    expect(await page.getByLabel('Runner', { exact: true }).isVisible()).toBe(false)
    await page.getByText('Filters', { exact: true }).click()
    await page.getByLabel('Runner', { exact: true }).fill('noop')
    await page.keyboard.press('Enter')
    await page.getByText('No executions match the filters.').waitFor()
    await page.getByText('Filters (1)').waitFor()
    expect(await widest()).toBeLessThanOrEqual(375)
    await close()
  })
})
