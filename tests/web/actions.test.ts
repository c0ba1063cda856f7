/** The screen of actions: finding one, running it, answering what waits; on a phone, with many, and without rights. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { createRbacFiles } from '../helpers/rbac.ts'
import { run, waitForStatus } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { panelOf, runButton, startActionPlace, writePack, type ActionPlace } from './actions.ts'
import { startGuarded, type GuardedServer } from './session.ts'
import { fullOnly } from '../helpers/tiers.ts'

let place: ActionPlace

beforeAll(async () => {
  place = await startActionPlace()
})

afterAll(() => place.stop())

describe('finding an action', () => {
  fullOnly(it)('and running it takes a keyboard alone', async () => {
    const { page, sent, close } = await place.open('')
    await page
      .getByRole('link', { name: /core\.local\b/ })
      .first()
      .waitFor()
    await page.getByRole('searchbox', { name: 'Find an action' }).focus()
    await page.keyboard.type('command host of the server')
    await page.getByRole('status').filter({ hasText: 'of' }).first().waitFor()
    await page.keyboard.press('Control+a')
    await page.keyboard.type('core.local')
    await waitFor('the address to follow', () => page.url().includes('search=core.local'))
    // The first of the list is below the field.
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'core.local', exact: true }).waitFor()
    const cmd = page.getByRole('textbox', { name: 'cmd' })
    await waitFor('the first field to have the focus', () => cmd.evaluate((it) => it === document.activeElement))
    await page.keyboard.type('for i in 1 2 3; do echo "line $i of three"; sleep 0.1; done; exit 3')
    expect(sent).toEqual([])
    await page.keyboard.press('Control+Enter')

    const panel = panelOf(page)
    await panel.getByText('line 1 of three').first().waitFor()
    await panel.getByText('failed', { exact: true }).waitFor()
    await panel.getByRole('list', { name: 'Output lines' }).getByText('line 3 of three').waitFor()
    await panel.getByText('return_code').waitFor()
    expect(sent).toEqual([{ action: 'core.local', parameters: { cmd: expect.stringContaining('line $i') as string } }])
    expect((await place.ended(page)).result['return_code']).toBe(3)
    // It is in the list of what ran, too, without loading anything again.
    const recent = page.getByRole('region', { name: 'Recent executions' })
    await recent.getByText('failed').waitFor()
    expect(await recent.getByRole('link', { name: 'Show all' }).getAttribute('href')).toBe(
      '#/history?action=core.local',
    )
    await close()
  })

  fullOnly(it)('goes through the list by arrows, back into the search, and opens what has the focus', async () => {
    const { page, close } = await place.open('?search=core.re')
    await page
      .getByRole('link', { name: /core\.remote\b/ })
      .first()
      .waitFor()
    expect(await page.getByRole('searchbox').inputValue()).toBe('core.re')
    await page.getByRole('searchbox').focus()
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowUp', 'ArrowDown', 'Enter']) await page.keyboard.press(key)
    await page.getByRole('heading', { name: 'core.remote_sudo' }).waitFor()
    await close()
  })

  fullOnly(it)('says when nothing fits, and when an address leads to none', async () => {
    const { page, close } = await place.open('')
    await page.getByRole('searchbox').fill('no action is called this')
    await page.getByText('No action matches all of these words').waitFor()
    await page.goto(`${place.server.urls.api}/#/actions/core.nothing`)
    const alert = page.getByRole('alert')
    expect(await alert.textContent()).toContain('core.nothing')
    await close()
  })

  it('shows what there is to know of it', async () => {
    const { page, close } = await place.open('/web.script')
    await page.getByText('Source', { exact: true }).click()
    await page.getByText("<img src=x onerror='alert(1)'>").waitFor()
    await page.getByText(/^Parameters \d+$/).click()
    const row = page.getByRole('row', { name: /^timeout/ })
    expect(await row.textContent()).toMatch(/integer.*60.*runner/)
    await close()
  })
})

describe('what has been started', () => {
  it('can be cancelled, and run again', async () => {
    const { page, close } = await place.open('/core.local?cmd=sleep%20300')
    await runButton(page).click()
    const panel = panelOf(page)
    await panel.getByText('running', { exact: true }).waitFor()
    await panel.getByRole('button', { name: 'Cancel' }).click()
    const canceled = await place.ended(page)
    expect(canceled.status).toBe('canceled')
    await panel.getByText('Action canceled by user.').waitFor()
    await panel.getByRole('button', { name: 'Re-run' }).click()
    await panel.getByText('running', { exact: true }).waitFor()
    const link = await panel.getByRole('link', { name: 'Open execution' }).getAttribute('href')
    expect(link).not.toContain(canceled.id)
    await panel.getByRole('button', { name: 'Cancel' }).click()
    expect((await place.ended(page)).parameters).toEqual({ cmd: 'sleep 300' })
    await close()
  })

  fullOnly(it)('does not put a large result into the page', async () => {
    const { page, close } = await place.open(
      '/core.local?cmd=head%20-c%20400000%20/dev/zero%20%7C%20tr%20%27%5C0%27%20x',
    )
    await runButton(page).click()
    const panel = panelOf(page)
    expect((await place.ended(page)).result_size).toBeGreaterThan(400_000)
    await panel.getByRole('link', { name: 'Open the execution to see it' }).waitFor()
    await close()
  })
})

describe('what waits for an answer', () => {
  it('is told, answered by its form, and gone', async () => {
    const schema = {
      type: 'object',
      properties: {
        go_on: { type: 'boolean', required: true, description: 'Whether to deploy.' },
        pin: { type: 'string', secret: true, minLength: 4 },
      },
    }
    const { page, close } = await place.open('')
    await page.getByRole('link', { name: /core\.ask/ }).waitFor()
    expect(await page.getByRole('link', { name: /Inquiries/ }).count()).toBe(0)
    const { id } = await run(place.server, { schema, ttl: 60 }, { action: 'core.ask' })
    // It comes without loading the page again.
    await page.getByRole('link', { name: 'Inquiries 1' }).click()
    const inquiry = page.getByRole('region', { name: `Inquiry ${id}` })
    await inquiry.getByText('Expires').waitFor()
    await inquiry.getByRole('button', { name: 'Answer' }).click()
    await inquiry.getByText('Enter a value: this parameter is required.').waitFor()
    await inquiry.getByRole('combobox', { name: 'go_on' }).selectOption('true')
    await inquiry.getByLabel('pin', { exact: true }).fill('12345')
    await inquiry.getByRole('button', { name: 'Answer' }).click()
    await page.getByText('No pending inquiries.').waitFor()
    const { status, result } = await waitForStatus(place.server, id)
    expect(status).toBe('succeeded')
    expect(result['response']).toEqual({ go_on: true, pin: '********' })
    await close()
  })

  fullOnly(it)('is answered where it was started, and a refusal is shown', async () => {
    const { page, close } = await place.open('/core.ask')
    await page.getByRole('textbox', { name: 'users' }).fill('somebody-else')
    await runButton(page).click()
    const panel = panelOf(page)
    await panel.getByText('Only somebody-else can answer.').waitFor()
    await panel.getByRole('combobox', { name: 'continue' }).selectOption('true')
    await panel.getByRole('button', { name: 'Answer' }).click()
    await panel.getByRole('alert').filter({ hasText: 'respond' }).waitFor()
    expect(await panel.getByRole('combobox', { name: 'continue' }).inputValue()).toBe('0')
    await close()
  })
})

fullOnly(it)('is usable on a phone', async () => {
  const phone = { viewport: { width: 375, height: 700 }, hasTouch: true }
  const { page, close } = await place.open('?search=web', phone)
  // Clicks, which taps become: where the machine is busy, a tap may last long enough to become none.
  const fits = (): Promise<boolean> => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)
  await page.getByRole('link', { name: /web\.hostile/ }).waitFor()
  expect(await fits()).toBe(true)
  await page.getByRole('link', { name: /web\.hostile/ }).click()
  await page.getByRole('heading', { name: 'web.hostile' }).waitFor()
  expect(await page.getByRole('searchbox').isVisible()).toBe(false)
  await runButton(page).click()
  await place.ended(page)
  await page.getByText(/^Parameters \d+$/).click()
  await page.getByRole('table').waitFor()
  expect(await fits()).toBe(true)
  await page.getByRole('link', { name: '← All actions' }).click()
  await page.getByRole('searchbox').waitFor()
  expect(await fits()).toBe(true)
  await close()
})

fullOnly(it)('has a list of five thousand actions that is searched while one types', async () => {
  const noop = { runner_type: 'noop', description: 'One of very many.' }
  writePack(
    place.server.basePath,
    'crowd',
    Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`action_${i}`, noop])),
  )
  const { status, text } = await place.server.call('POST', '/v1/packs/register', {
    packs: ['crowd'],
    types: ['actions'],
  })
  expect({ status, text }).toMatchObject({ status: 200 })
  const { page, close } = await place.open('')
  await page.getByText(/50\d\d actions/).waitFor()
  expect(await page.locator('.split-row').count()).toBeLessThan(100)
  await page.getByRole('searchbox').fill('action_4999')
  await page.getByText(/^1 of 50\d\d actions/).waitFor()
  await page.getByRole('searchbox').press('Enter')
  await page.getByRole('heading', { name: 'crowd.action_4999' }).waitFor()
  await page.reload()
  // The list goes to where the address leads.
  await page.getByRole('link', { name: /crowd\.action_4999/ }).waitFor()
  await close()
})

describe('with access control', () => {
  const folder = makeFolder()
  let guarded: GuardedServer

  beforeAll(async () => {
    const rbac = createRbacFiles(folder.path)
    rbac.assign('admin', 'system_admin')
    const seen = { types: ['action_view'], on: 'pack:core' }
    rbac.define('reader', [{ types: ['action_list'] }, seen])
    rbac.define('runner', [{ types: ['action_view', 'action_execute'], on: 'action:core:noop' }])
    const settings = { 'rbac.enable': 'True', 'rbac.backend': 'default' }
    guarded = await startGuarded({ basePath: folder.path, settings }, ['reader', 'runner'])
  })
  afterAll(async () => {
    await guarded.stop()
    folder.remove()
  })

  it('who may not run an action is told why, and loses nothing', async () => {
    const { page, close } = await guarded.open('/actions/core.local?cmd=date', 'reader')
    await runButton(page).click()
    const alert = page.getByRole('form', { name: 'Run core.local' }).getByRole('alert')
    expect(await alert.textContent()).toMatch(/reader.*action_execute.*core/)
    expect(await page.getByRole('textbox', { name: 'cmd' }).inputValue()).toBe('date')
    // Only administrators may run in the name of others.
    expect(await page.getByText('Trace tag and user').count()).toBe(0)
    await close()
  })

  fullOnly(it)('who may run one action and see nothing else can do that by its address', async () => {
    const { page, close } = await guarded.open('/actions/core.noop', 'runner')
    await page.getByRole('region', { name: 'Actions' }).getByRole('alert').waitFor()
    await runButton(page).click()
    const link = panelOf(page).getByRole('link', { name: 'Open execution' })
    expect(await link.getAttribute('href')).toMatch(/^#\/history\/\w+$/)
    await close()
  })
})
