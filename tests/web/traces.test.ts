/** The screen of traces: finding one, and the cascade as a graph and as a table, while it grows. */
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../src/core/ids.ts'
import { createTestApp } from '../helpers/app.ts'
import { run, runToEnd, waitForStatus, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { startBrowser, type TestBrowser, type TestPage } from './browser.ts'
import { fullOnly } from '../helpers/tiers.ts'

const ACTION_TRIGGER = 'core.svc.generic.actiontrigger'
const HOSTILE = `<img src=x onerror="alert(1)">'"$(id)\u202e`

let server: TestApp
let browser: TestBrowser

beforeAll(async () => {
  ;[server, browser] = await Promise.all([createTestApp(), startBrowser()])
  // Of what ends on the first level comes a second one.
  await makeRule('first', { type: 'core.svc.webhook', parameters: { url: 'cascade' } }, 'core.local', { cmd: 'exit 3' })
  await makeRule('second', { type: ACTION_TRIGGER }, 'core.echo', { message: 'after it' }, 'core.local')
  await makeRule('many', { type: 'core.svc.webhook', parameters: { url: 'many' } }, 'core.noop', {})
})

afterAll(async () => {
  await browser.close()
  await server.stop()
})

async function makeRule(
  name: string,
  trigger: Record<string, unknown>,
  action: string,
  parameters: Record<string, unknown>,
  ofAction?: string,
): Promise<void> {
  const criteria =
    ofAction === undefined
      ? {}
      : {
          'trigger.action_ref': { type: 'eq', pattern: ofAction },
          'trigger.status': { type: 'eq', pattern: 'failed' },
        }
  const rule = { name, enabled: true, trigger, criteria, action: { ref: action, parameters } }
  const { status, text } = await server.call('POST', '/v1/rules', rule)
  if (status !== 201) throw new Error(text)
}

/** @returns the id of the trace */
async function post(hook: string, tag: string): Promise<string> {
  const answer = await server.call('POST', `/v1/webhooks/${hook}`, { n: 1 }, { 'Svc-Trace-Tag': tag })
  if (answer.status !== 202) throw new Error(answer.text)
  return answer.headers.get('svc-trace-id') ?? ''
}

interface Member {
  seq: number
  kind: string
  object_id: string
  ref: string
  caused_by: { id?: string }
}

/** Once there are so many. */
function membersOf(trace: string, count: number): Promise<Member[]> {
  return waitFor(`${count} members`, async () => {
    const { body } = await server.call<Member[]>('GET', `/v1/traces/${trace}/components`)
    return body.length >= count && body
  })
}

const open = (address: string, options?: Parameters<TestBrowser['open']>[1]): Promise<TestPage> =>
  browser.open(`${server.urls.api}/#/traces${address}`, options)

const graphIn = (page: Page): Locator => page.getByRole('group', { name: 'Cascade' })
const nodesIn = (page: Page): Locator => graphIn(page).getByRole('link')
const rowsIn = (page: Page): Locator => page.getByRole('table', { name: 'Members' }).getByRole('row')
const widthOf = (page: Page): Promise<number> => page.evaluate(() => document.documentElement.scrollWidth)

describe('the graph', () => {
  it('has every member of a cascade of two levels as a link, and an edge for every cause', async () => {
    const trace = await post('cascade', 'two levels')
    const members = await membersOf(trace, 7)
    const { page, close } = await open(`/${trace}`)
    await page.getByRole('heading', { name: 'two levels' }).waitFor()
    await waitFor('all nodes', async () => (await nodesIn(page).count()) === 7)
    const hrefs = await nodesIn(page).evaluateAll((links) => links.map((link) => link.getAttribute('href')))
    const [event, , failed, ended, , after, last] = members.map(({ object_id: id }) => id)
    expect(hrefs).toEqual([
      `#/triggers/instances/${event}`,
      '#/rules/default.first',
      `#/history/${failed}/general`,
      `#/triggers/instances/${ended}`,
      '#/rules/default.second',
      `#/history/${after}/general`,
      `#/triggers/instances/${last}`,
    ])
    const edges = await graphIn(page)
      .locator('path')
      .evaluateAll((paths) => paths.map((path) => [path.getAttribute('data-from'), path.getAttribute('data-to')]))
    const keys = members.map(({ kind, object_id: id, caused_by: { id: cause = '' } }) =>
      kind === 'rule' ? `${id}:${cause}` : id,
    )
    expect(edges).toEqual(keys.slice(1).map((key, n) => [keys[n], key]))
    await nodesIn(page).nth(2).getByText('failed').waitFor()
    await nodesIn(page).nth(5).getByText('succeeded').waitFor()
    await nodesIn(page).nth(0).getByText('webhook cascade').waitFor()
    expect(await nodesIn(page).nth(3).textContent()).toMatch(/\+\d+ ms|\+\d/)
    await close()
  })

  fullOnly(it)('is gone through by keyboard: to the cause, to what it caused, and into each member', async () => {
    const trace = await post('cascade', 'keys')
    const members = await membersOf(trace, 7)
    const { page, close } = await open(`/${trace}`)
    await waitFor('all nodes', async () => (await nodesIn(page).count()) === 7)
    const focused = (): Promise<string | null> =>
      page.evaluate(() => document.activeElement?.getAttribute('href') ?? null)
    await graphIn(page).focus()
    for (let n = 0; n < 7; n += 1) {
      await page.keyboard.press('Tab')
      expect(await focused()).toBe(await nodesIn(page).nth(n).getAttribute('href'))
    }
    await page.keyboard.press('ArrowLeft')
    await page.keyboard.press('ArrowLeft')
    expect(await focused()).toBe('#/rules/default.second')
    await page.keyboard.press('ArrowRight')
    const size = page.getByRole('group', { name: 'Zoom' }).getByRole('status')
    const before = await size.textContent()
    await page.keyboard.press('+')
    await waitFor('a larger drawing', async () => (await size.textContent()) !== before)
    await page.keyboard.press('0')
    await page.keyboard.press('Enter')
    expect(page.url()).toContain(`#/history/${members[5]?.object_id}/general`)
    await close()
  })

  fullOnly(it)('grows while it is looked at, with what becomes of its executions', async () => {
    const execution = await run(server, { cmd: 'sleep 300' }, { context: { trace_context: { trace_tag: 'growing' } } })
    const { body } = await server.call<{ id: string }[]>('GET', '/v1/traces?trace_tag=growing')
    await waitForStatus(server, execution.id, ['running'])
    const { page, close } = await open(`/${body[0]?.id}`)
    await nodesIn(page).getByText('running').waitFor()
    expect(await nodesIn(page).count()).toBe(1)
    await server.call('DELETE', `/v1/executions/${execution.id}`)
    await nodesIn(page).first().getByText('canceled').waitFor()
    await nodesIn(page).nth(1).getByText('generic.actiontrigger').waitFor()
    await run(server, { cmd: 'true' }, { context: { trace_context: { trace_tag: 'growing' } } })
    // Nobody tells that this one belongs to the trace.
    await waitFor('four nodes', async () => (await nodesIn(page).count()) === 4)
    await page.getByText('2 succeeded').or(page.getByText('1 succeeded')).first().waitFor()
    await close()
  })

  fullOnly(it)('has what could not be loaded once that can be asked for again', async () => {
    const trace = await post('cascade', 'outage')
    await membersOf(trace, 7)
    const { page, close } = await browser.open('about:blank')
    let isOut = true
    await page.route(/api\/v1\/executions\?/, (route) =>
      isOut
        ? route.fulfill({ status: 503, json: { faultstring: 'Out for a while.', code: 'STORAGE_FAILED' } })
        : route.continue(),
    )
    await page.goto(`${server.urls.api}/#/traces/${trace}`)
    const problem = page.getByText('Could not load all of the trace: Out for a while.')
    await problem.waitFor()
    isOut = false
    await nodesIn(page).nth(2).getByText('failed').waitFor()
    await nodesIn(page).nth(5).getByText('succeeded').waitFor()
    await waitFor('no problem any more', async () => !(await problem.isVisible()))
    expect(await nodesIn(page).getByText('deleted or hidden').count()).toBe(0)
    await close()
  })

  fullOnly(it)('is dragged and made larger and smaller; a drag is no click', async () => {
    const trace = await post('cascade', 'drag')
    await membersOf(trace, 7)
    const { page, close } = await open(`/${trace}`, { viewport: { width: 900, height: 700 } })
    await waitFor('all nodes', async () => (await nodesIn(page).count()) === 7)
    const left = (): Promise<number> => graphIn(page).evaluate((element) => element.scrollLeft)
    const box = await nodesIn(page).nth(2).boundingBox()
    if (box === null) throw new Error('it is not to be seen')
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]
    await page.mouse.move(x, y)
    await page.mouse.down()
    await page.mouse.move(x - 60, y, { steps: 4 })
    await page.mouse.move(x - 120, y, { steps: 4 })
    await page.mouse.up()
    await waitFor('the drawing to be elsewhere', async () => (await left()) > 100)
    expect(page.url()).toContain(`/traces/${trace}`)
    const size = page.getByRole('group', { name: 'Zoom' })
    await size.getByRole('button', { name: '100 %' }).click()
    await size.getByRole('status').getByText('100 %').waitFor()
    await page.mouse.move(x, y)
    await page.keyboard.down('Control')
    await page.mouse.wheel(0, 100)
    await page.keyboard.up('Control')
    await size.getByRole('status').getByText('80 %').waitFor()
    await size.getByRole('button', { name: 'Fit' }).click()
    await waitFor('all of it', () => graphIn(page).evaluate((element) => element.scrollWidth <= element.clientWidth))
    await nodesIn(page).nth(2).click()
    expect(page.url()).toContain('/history/')
    await close()
  })

  fullOnly(it)(
    'of a thousand members puts equal ones together, draws each when it is asked to, and stays usable',
    async () => {
      const trace = await post('many', 'a thousand')
      for (let n = 0; n < 10; n += 1) await Promise.all(Array.from({ length: 25 }, () => post('many', 'a thousand')))
      await membersOf(trace, 1000)
      await waitFor('the end', async () => {
        const { body } = await server.call<unknown[]>('GET', '/v1/executions?action=core.noop&status=running&limit=1')
        return body.length === 0
      })
      const { page, close } = await open(`/${trace}`)
      const group = graphIn(page).getByRole('button', { name: /25\d × webhook many/ })
      await group.waitFor()
      expect(await graphIn(page).locator('.node').count()).toBeLessThan(20)
      await group.focus()
      await page.keyboard.press('Enter')
      await waitFor('each of them', async () => (await nodesIn(page).count()) > 900)
      // Whoever has no mouse goes on from there.
      expect(
        await nodesIn(page)
          .first()
          .evaluate((node) => node === document.activeElement),
      ).toBe(true)
      await page.getByRole('button', { name: 'Fit' }).click()
      await nodesIn(page).nth(500).focus()
      await page.keyboard.press('ArrowRight')
      expect(await page.evaluate(() => document.activeElement?.getAttribute('data-kind'))).toBe('rule')
      await page.getByText(/nodes shown, .* members not shown/).waitFor()
      await page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'Table' }).click()
      await rowsIn(page).nth(5).waitFor()
      expect(await rowsIn(page).count()).toBeLessThan(80)
      await close()
    },
  )
})

describe('the table', () => {
  it('tells in the order of time what was caused by what', async () => {
    const trace = await post('cascade', 'as a table')
    const members = await membersOf(trace, 7)
    const { page, close } = await open(`/${trace}`)
    await page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'Table' }).click()
    expect(page.url()).toContain('view=table')
    const row = (n: number): Locator => rowsIn(page).nth(n + 1)
    await row(6).waitFor()
    await row(0).getByRole('cell', { name: 'Trigger instance core.svc.webhook cascade' }).waitFor()
    await row(0).getByRole('cell', { name: 'external' }).waitFor()
    const failed = row(2)
    expect(await failed.getByRole('link', { name: 'core.local' }).getAttribute('href')).toBe(
      `#/history/${members[2]?.object_id}/general`,
    )
    await failed.getByRole('cell', { name: 'Rule default.first' }).waitFor()
    await failed.getByRole('cell', { name: 'failed', exact: true }).waitFor()
    expect(await row(5).getByRole('cell').nth(4).textContent()).toMatch(/^\d+(\.\d+)? m?s$/)
    const headers = await page.getByRole('columnheader').allTextContents()
    expect(headers).toEqual(['Time', 'Member', 'Caused by', 'Status', 'Duration', 'Timeline'])
    await close()
  })

  fullOnly(it)('is what a telephone begins with, and nothing is wider than it', async () => {
    const trace = await post('cascade', 'x'.repeat(1000))
    await membersOf(trace, 7)
    const { page, close } = await open(`/${trace}`, { viewport: { width: 375, height: 700 } })
    await rowsIn(page).getByRole('link', { name: 'default.second' }).first().waitFor()
    expect(await widthOf(page)).toBe(375)
    await page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'Graph' }).click()
    await nodesIn(page).first().waitFor()
    expect(await widthOf(page)).toBe(375)
    await page.goto(`${server.urls.api}/#/traces`)
    await page.getByRole('list', { name: 'Traces' }).getByRole('link').first().waitFor()
    expect(await widthOf(page)).toBe(375)
    await close()
  })
})

describe('finding a trace', () => {
  it('by the beginning of its tag, by its id, and by what belongs to it', async () => {
    const execution = await runToEnd(server, { cmd: 'true' }, { context: { trace_context: { trace_tag: 'find-17' } } })
    await runToEnd(server, { cmd: 'true' }, { context: { trace_context: { trace_tag: 'find-18' } } })
    const { body } = await server.call<{ id: string }[]>('GET', '/v1/traces?trace_tag=find-17')
    const id = body[0]?.id ?? ''
    const { page, close } = await open('')
    const list = page.getByRole('list', { name: 'Traces' }).getByRole('link')
    const search = page.getByRole('searchbox')
    await search.fill('find-')
    await page.getByText('2 traces').waitFor()
    expect(await list.first().textContent()).toContain('find-18')
    expect(await list.first().textContent()).toContain('Execution core.local')
    await search.fill(id)
    await page.getByText('1 trace', { exact: true }).waitFor()
    await search.fill('')
    await page.getByText('By member').click()
    await page.getByLabel('Execution id').fill(execution.id)
    await page.keyboard.press('Enter')
    await page.getByText('1 trace', { exact: true }).waitFor()
    expect(page.url()).toContain(`execution=${execution.id}`)
    await list.first().click()
    await page.getByRole('heading', { name: 'find-17' }).waitFor()
    await page.goto(`${server.urls.api}/#/traces?tag=nothing%20of%20this%20kind`)
    await page.getByText('No traces match').waitFor()
    await page.goto(`${server.urls.api}/#/traces/${newId()}`)
    await page.getByRole('heading', { name: 'Trace not found' }).waitFor()
    await close()
  })

  fullOnly(it)('shows new ones without a reload, and tags as text', async () => {
    const { page, close } = await open('')
    const list = page.getByRole('list', { name: 'Traces' }).getByRole('link')
    await list.first().waitFor()
    await run(server, { cmd: 'true' }, { context: { trace_context: { trace_tag: HOSTILE } } })
    await list.first().filter({ hasText: 'onerror' }).waitFor()
    await list.first().click()
    await page.getByRole('heading', { level: 1 }).filter({ hasText: 'onerror' }).waitFor()
    await nodesIn(page).first().waitFor()
    expect(await page.getByRole('main').locator('img').count()).toBe(0)
    await close()
  })
})

fullOnly(describe)('a very long trace', () => {
  const COUNT = 100_000
  let long: TestApp
  let id = ''

  beforeAll(async () => {
    long = await createTestApp()
    const { id: execution } = await run(long, { cmd: 'true' }, { context: { trace_context: { trace_tag: 'long' } } })
    await waitForStatus(long, execution)
    const database = new Sqlite(join(long.basePath, 'svc.db'))
    // The server is at work beside it.
    database.pragma('busy_timeout = 10000')
    const row = database.prepare(`select id from traces where trace_tag = 'long'`).get() as { id: string } // just made
    id = row.id
    const insert = database.prepare(
      `insert into trace_components (trace_id, kind, object_id, ref, updated_at, caused_by_type, caused_by_id)
        values (?, 'execution', ?, 'core.x', '2030-01-01T00:00:00.000000Z', null, null)`,
    )
    database.transaction(() => {
      for (let n = 0; n < COUNT; n += 1) insert.run(id, newId())
    })()
    database.close()
  })
  afterAll(async () => {
    await long.stop()
  })

  it('is loaded further after a failure in the middle', async () => {
    const { page, close } = await browser.open('about:blank')
    let isOut = true
    await page.route(/components\?.*after_seq/, (route) => (isOut ? route.abort() : route.continue()))
    await page.goto(`${long.urls.api}/#/traces/${id}?view=table`)
    await page.getByText('Could not load all of the trace').waitFor()
    await rowsIn(page).nth(1).getByRole('link', { name: 'core.local' }).waitFor()
    isOut = false
    await page.getByText('Showing the first 5,000').waitFor()
    await waitFor('no problem', async () => !(await page.getByText('Could not load all of the trace').isVisible()))
    expect(await page.getByRole('table', { name: 'Members' }).getAttribute('aria-rowcount')).toBe('5001')
    await close()
  })

  it('is cut, which is said, and shown from either end', async () => {
    const { page, close } = await browser.open(`${long.urls.api}/#/traces/${id}?view=table`)
    await page.getByText(/This trace has 100,00\d members\. Showing the first 5,000\./).waitFor()
    await rowsIn(page).nth(1).getByRole('link', { name: 'core.local' }).waitFor()
    await rowsIn(page).nth(4).getByText('deleted').waitFor()
    await page.getByRole('link', { name: 'Show the last members' }).click()
    await page.getByText('Showing the last 5,000').waitFor()
    expect(page.url()).toContain('part=last')
    await page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'Graph' }).click()
    await graphIn(page)
      .getByRole('button', { name: /× core\.x/ })
      .waitFor()
    expect(await graphIn(page).locator('.node').count()).toBeLessThan(1001)
    await close()
  })
})
