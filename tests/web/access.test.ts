/** Who one is, API keys, and users. */
import type { CDPSession, Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { signIn } from '../helpers/logins.ts'
import { createRbacFiles } from '../helpers/rbac.ts'
import { withApp } from '../helpers/app.ts'
import { call } from '../helpers/server.ts'
import { fullOnly, tier } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { startBrowser } from './browser.ts'
import { ofUsers, signInDialog, startGuarded, userIn, type GuardedServer } from './session.ts'

const hostile = `"><img src=x onerror=alert(1)> \u202Egnp ${'long '.repeat(60)}`

interface Key {
  id: string
  user: string
  enabled: boolean
  metadata: Record<string, unknown>
  expires_at?: string
  scopes?: { permission_types: string[]; resource_uid?: string }[]
}

const keysOf = async ({ server, operator }: GuardedServer, user: string): Promise<Key[]> =>
  (await server.call<Key[]>('GET', `/v1/apikeys?limit=100&user=${user}`, undefined, operator)).body

const allPermissions = (page: Page): Locator => page.getByRole('radio', { name: /^everything its owner may do/ })

/** Whoever waits sees the dialog gone. */
async function makeKey(page: Page, usedBy: string): Promise<string> {
  await page.getByLabel('Used by').fill(usedBy)
  await page.getByRole('button', { name: 'Create key' }).click()
  const dialog = page.getByRole('dialog', { name: /^The key/ })
  const key = (await dialog.getByLabel('API key').textContent()) ?? ''
  await dialog.getByRole('button', { name: 'Done' }).click()
  await dialog.waitFor({ state: 'hidden' })
  return key
}

describe('without access control', () => {
  let stage: GuardedServer

  beforeAll(async () => {
    stage = await startGuarded({}, ['alice'])
  })

  afterAll(async () => {
    await stage.stop()
  })

  fullOnly(it)('says who one is, and that everybody may do everything', async () => {
    const { page, close } = await stage.open('/access')
    const who = page.getByRole('region', { name: 'User' })
    expect(await who.textContent()).toMatch(/Nameadmin.*browser session.*Session expires.*Administratoryes/)
    await page.getByText('access control is off (rbac.enable)').waitFor()
    await page.getByRole('link', { name: 'admin' }).click()
    expect(page.url()).toMatch(/#\/access$/)
    await close()
  })

  fullOnly(it)('a new key is limited as it was said, works, and its value is shown once and then nowhere', async () => {
    const { page, close } = await stage.open('/access/keys/new')
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url(), request.postData() ?? ''))
    await page.getByLabel('Used by').fill('the deploy job')
    await page.getByRole('textbox', { name: 'Owner' }).fill('alice')
    // Nobody gets a key that may do everything for ever without choosing that.
    const expires = page.getByLabel('Expires', { exact: true })
    expect(await expires.inputValue()).toBe('90')
    await expires.selectOption('30')
    expect(await allPermissions(page).isChecked()).toBe(false)
    const create = page.getByRole('button', { name: 'Create key' })
    await create.click()
    const first = page.getByRole('group', { name: 'Grant 1' })
    await first.getByText('Choose at least one permission type.').waitFor()
    await page.getByRole('button', { name: 'Run one action' }).click()
    await create.click()
    await first.getByText('Replace <pack>.').waitFor()
    const resource = first.getByRole('textbox', { name: 'Resource', exact: true })
    await waitFor('its field to have the focus', () => resource.evaluate((it) => it === document.activeElement))
    await resource.fill('action:core:noop')
    await page.getByRole('button', { name: 'Add resource' }).click()
    const second = page.getByRole('group', { name: 'Grant 2' })
    await second.getByLabel('Permission types').selectOption('execution_list')
    await second.getByLabel('Permission types').selectOption('execution_view')
    await second.getByRole('button', { name: 'Remove execution_view' }).click()
    await create.click()

    const dialog = page.getByRole('dialog', { name: 'The key “the deploy job”' })
    const key = (await dialog.getByLabel('API key').textContent()) ?? ''
    expect(key.length).toBeGreaterThan(42)
    expect(await dialog.locator('pre').textContent()).toBe(
      `curl -H 'Svc-Api-Key: ${key}' ${stage.server.urls.api}/api/v1/user`,
    )
    // Not by a slip. The second Escape closes it whatever anybody says, and it opens again.
    await page.keyboard.press('Escape')
    await page.keyboard.press('Escape')
    await page.mouse.click(5, 5)
    await dialog.getByLabel('API key').waitFor()
    expect(await dialog.getByLabel('API key').textContent()).toBe(key)
    const memory = await page.context().newCDPSession(page)
    // It would be found.
    expect(await isInMemory(memory, key)).toBe(true)
    await dialog.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('link', { name: 'the deploy job' }).waitFor()
    expect(await page.content()).not.toContain(key)
    // The browser takes a moment to let go of what it has drawn.
    await waitFor('the value to be forgotten', async () => !(await isInMemory(memory, key)))
    for (const text of [...asked, page.url()]) expect(text).not.toContain(key)

    const [made] = await keysOf(stage, 'alice')
    expect(made).toMatchObject({
      user: 'alice',
      enabled: true,
      metadata: { used_by: 'the deploy job' },
      scopes: [
        { permission_types: ['action_execute'], resource_uid: 'action:core:noop' },
        { permission_types: ['execution_list'] },
      ],
    })
    const days = (Date.parse(made?.expires_at ?? '') - Date.now()) / 86_400_000
    expect(days).toBeGreaterThan(29.9)
    expect(days).toBeLessThan(30.1)
    const headers = { 'Svc-Api-Key': key }
    const run = (action: string) => stage.server.call('POST', '/v1/executions', { action }, headers)
    expect((await run('core.noop')).status).toBe(201)
    expect((await run('core.local')).status).toBe(403)

    // The list knows when it was used last, and takes it away.
    await page.reload()
    const row = page.getByRole('row').filter({ hasText: 'the deploy job' })
    await row.getByText('action_execute on action:core:noop; execution_list').waitFor()
    expect(await row.getByText('never').count()).toBe(0)
    await row.getByRole('button', { name: 'Disable the deploy job' }).click()
    await row.getByText('disabled', { exact: true }).waitFor()
    expect((await run('core.noop')).status).toBe(401)
    await row.getByRole('button', { name: 'Enable the deploy job' }).click()
    await row.getByText('enabled', { exact: true }).waitFor()
    expect((await run('core.noop')).status).toBe(201)
    await row.getByRole('button', { name: 'Delete the deploy job' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Go back' }).click()
    await row.getByRole('button', { name: 'Delete the deploy job' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete key' }).click()
    await row.waitFor({ state: 'hidden' })
    expect((await run('core.noop')).status).toBe(401)
    await close()
  })

  fullOnly(it)('a key is changed without what was not touched', async () => {
    const { body } = await stage.server.call<Key>(
      'POST',
      '/v1/apikeys',
      { metadata: { used_by: 'before', team: ['web'] }, expires_at: '2100-01-01T00:00:00Z' },
      stage.operator,
    )
    const { page, close } = await stage.open(`/access/keys/${body.id}`)
    const save = page.getByRole('button', { name: 'Save' })
    await page.getByText('********').waitFor()
    expect(await save.isDisabled()).toBe(true)
    expect(await page.getByLabel('Metadata, as JSON').inputValue()).toBe('{\n  "team": [\n    "web"\n  ]\n}')
    await page.getByLabel('Metadata, as JSON').fill('{"team": ')
    await save.click()
    await page.getByText('Enter JSON.').waitFor()
    await page.getByLabel('Metadata, as JSON').fill('{"team": "ops"}')
    await page.getByText('Enter JSON.').waitFor({ state: 'hidden' })
    await page.getByLabel('Used by').fill('after')
    await page.getByRole('radio', { name: /^only the following/ }).check()
    await page.getByLabel('Permission types').selectOption('webhook_send')
    await page.getByRole('textbox', { name: 'Resource', exact: true }).fill('nonsense')
    await save.click()
    await page.getByText('Invalid resource "nonsense"').waitFor()
    expect(await page.getByLabel('Used by').inputValue()).toBe('after')
    await page.getByRole('textbox', { name: 'Resource', exact: true }).fill('webhook:deploy')
    await save.click()
    await page.getByText('“after” is saved.').waitFor()
    const changed = (await keysOf(stage, 'admin')).find(({ id }) => id === body.id)
    expect(changed).toMatchObject({
      metadata: { used_by: 'after', team: 'ops' },
      expires_at: '2100-01-01T00:00:00.000000Z',
      scopes: [{ permission_types: ['webhook_send'], resource_uid: 'webhook:deploy' }],
    })
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.getByText(/^[0-9a-f]{128}$/).waitFor()
    await close()
  })

  fullOnly(it)('whatever is written into a key, it is text', async () => {
    const { page, close } = await stage.open('/access/keys/new')
    await allPermissions(page).check()
    await makeKey(page, hostile)
    await page.getByRole('button', { name: /^Delete "><img/ }).waitFor()
    expect(await page.locator('main img').count()).toBe(0)
    await page.setViewportSize({ width: 375, height: 700 })
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(375)
    await page.getByRole('link', { name: /^"><img/ }).click()
    expect(await page.getByLabel('Used by').inputValue()).toBe(hostile.trim())
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(375)
    await close()
  })

  it('users are added, locked out, let in and deleted', async () => {
    const { page, close } = await stage.open('/access/users')
    await page.getByRole('button', { name: 'Add user' }).click()
    const dialog = page.getByRole('dialog', { name: 'New user' })
    await dialog.getByLabel('Name').fill('alice')
    await dialog.getByLabel('Password', { exact: true }).fill(ofUsers)
    await dialog.getByRole('button', { name: 'Add user' }).click()
    await dialog.getByRole('alert').getByText('A user "alice"').waitFor()
    // The refusal is about this field.
    const name = dialog.getByLabel('Name')
    expect(await name.getAttribute('aria-invalid')).toBe('true')
    expect(await page.evaluate<string>('document.activeElement.id')).toBe(await name.getAttribute('id'))
    await dialog.getByLabel('Name').fill('bob')
    await dialog.getByRole('button', { name: 'Add user' }).click()
    await dialog.waitFor({ state: 'hidden' })
    const row = page.getByRole('row').filter({ hasText: 'bob' })
    const token = await signIn(stage.server, 'bob', ofUsers)
    const statusOfBob = async (): Promise<number> =>
      (await stage.server.call('GET', '/v1/user', undefined, token)).status
    expect(await statusOfBob()).toBe(200)
    await row.getByRole('button', { name: 'Disable bob' }).click()
    await row.getByText('disabled', { exact: true }).waitFor()
    expect(await statusOfBob()).toBe(401)
    await row.getByRole('button', { name: 'Enable bob' }).click()
    await row.getByText('enabled', { exact: true }).waitFor()
    await row.getByRole('button', { name: 'Set password of bob' }).click()
    const form = page.getByRole('dialog', { name: 'Password of bob' })
    await form.getByLabel('New password', { exact: true }).fill('another long password')
    await form.getByLabel('Repeat new password').fill('another')
    await form.getByRole('button', { name: 'Change password' }).click()
    await form.getByText('The new passwords differ. Enter the same password twice.').waitFor()
    await form.getByLabel('Repeat new password').fill('another long password')
    await form.getByRole('button', { name: 'Change password' }).click()
    await form.waitFor({ state: 'hidden' })
    await signIn(stage.server, 'bob', 'another long password')
    await row.getByRole('button', { name: 'Delete bob' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete bob' }).click()
    await row.waitFor({ state: 'hidden' })
    // Nobody does that to oneself.
    const own = page.getByRole('row').filter({ hasText: '(you)' })
    expect(await own.getByRole('button').count()).toBe(0)
    await close()
  })

  fullOnly(it)('the own password is changed, and this session goes on', async () => {
    const { page, close } = await stage.open('/access', 'alice')
    const elsewhere = await signIn(stage.server, 'alice', ofUsers)
    const form = page.getByRole('region', { name: 'Password' })
    const change = form.getByRole('button', { name: 'Change password' })
    await form.getByLabel('Current password').fill('wrong')
    await form.getByLabel('New password', { exact: true }).fill('a new password of alice')
    await form.getByLabel('Repeat new password').fill('a new password of alice')
    await change.click()
    await form.getByText('The current password is wrong.').waitFor()
    await form.getByLabel('Current password').fill(ofUsers)
    await change.click()
    await page.getByText('Password changed. svc ended your other sessions.').waitFor()
    expect(await form.getByLabel('New password', { exact: true }).inputValue()).toBe('')
    expect((await stage.server.call('GET', '/v1/user', undefined, elsewhere)).status).toBe(401)
    await page.getByRole('link', { name: 'API keys' }).click()
    await page.getByRole('link', { name: 'Create API key' }).waitFor()
    expect(await signInDialog(page).count()).toBe(0)
    await signIn(stage.server, 'alice', 'a new password of alice')
    await close()
  })
})

describe('with access control', () => {
  let stage: GuardedServer
  const folder = makeFolder()

  beforeAll(async () => {
    const files = createRbacFiles(folder.path)
    files.assign('admin', 'system_admin')
    files.assign('olga', 'observer')
    files.define('alice', [{ types: ['api_key_create', 'api_key_list'] }])
    stage = await startGuarded(
      { basePath: folder.path, settings: { 'rbac.enable': 'True', 'rbac.backend': 'default' } },
      ['alice', 'olga', 'nobody'],
    )
  })

  afterAll(async () => {
    await stage.stop()
    folder.remove()
  })

  const accounts: [user: string, facts: RegExp, text: string][] = [
    ['alice', /Administratorno.*Rolesalice/, 'The grants of your role'],
    ['admin', /Administratoryes.*Rolessystem_admin/, 'Everything: you are an administrator.'],
    ['olga', /Administratorno.*Rolesobserver/, 'View everything, by the role observer.'],
    ['nobody', /Administratorno.*Rolesnone/, 'Nothing yet: you have no role.'],
  ]
  it.each(tier === 'full' ? accounts : accounts.slice(0, 1))('%s reads what that means', async (user, facts, text) => {
    const { page, close } = await stage.open('/access', user)
    expect(await page.getByRole('region', { name: 'User' }).textContent()).toMatch(facts)
    await page.getByText(text).waitFor()
    const users = page.getByRole('link', { name: 'Users', exact: true })
    expect(await users.count()).toBe(user === 'admin' ? 1 : 0)
    await close()
  })

  fullOnly(it)('whoever may only see the own keys makes them, limited by words that were told', async () => {
    const { page, close } = await stage.open('/access/keys', 'alice')
    await page.getByText('No API keys yet.').waitFor()
    expect(await page.getByLabel('Owner').count()).toBe(0)
    await page.getByRole('link', { name: 'Create API key' }).click()
    expect(await page.getByRole('textbox', { name: 'Owner' }).count()).toBe(0)
    const types = page.getByLabel('Permission types')
    await types.fill('execution_view, nonsense_view')
    await page.keyboard.press('Enter')
    await page.getByLabel('Used by').fill('of alice')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByText('Invalid permission type "nonsense_view"').waitFor()
    await page.getByRole('button', { name: 'Remove nonsense_view' }).click()
    await makeKey(page, 'of alice')
    await page.getByRole('rowheader', { name: 'of alice' }).waitFor()
    expect(await page.getByRole('row').count()).toBe(2)
    expect((await keysOf(stage, 'alice'))[0]).toMatchObject({ scopes: [{ permission_types: ['execution_view'] }] })
    await close()
  })

  fullOnly(it)('what is still being typed counts, and nothing moves away from under the pointer', async () => {
    const { page, close } = await stage.open('/access/keys/new', 'alice')
    await page.getByLabel('Used by').fill('typed')
    await page.getByLabel('Permission types').click()
    await page.keyboard.type('execution_list, execution_view')
    const make = page.getByRole('button', { name: 'Create key' })
    await make.hover()
    await page.mouse.down()
    // Nobody lets go within the same frame.
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))))
    await page.mouse.up()
    await page.getByRole('dialog', { name: /^The key/ }).waitFor()
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('rowheader', { name: 'typed' }).waitFor()
    const made = (await keysOf(stage, 'alice')).find(({ metadata }) => metadata['used_by'] === 'typed')
    expect(made?.scopes).toEqual([{ permission_types: ['execution_list', 'execution_view'] }])
    await close()
  })

  it('whoever may not, is told which permission is missing, and loses nothing that was typed', async () => {
    const { page, close } = await stage.open('/access/keys', 'nobody')
    await page.getByText('You cannot list API keys').waitFor()
    await page.getByText('"api_key_list"').waitFor()
    await page.getByRole('link', { name: 'Create API key' }).click()
    await page.getByLabel('Used by').fill('in vain')
    await allPermissions(page).check()
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByText('"api_key_create"').waitFor()
    expect(await page.getByLabel('Used by').inputValue()).toBe('in vain')
    await page.goto(`${stage.server.urls.api}/#/access/users`)
    await page.getByText('Only administrators see users.').waitFor()
    await close()
  })
})

fullOnly(it)('while authentication is off keys can be prepared, and the page says that they mean nothing yet', () =>
  withApp({}, async (server) => {
    const browser = await startBrowser()
    const { page, close } = await browser.open(`${server.urls.api}/#/access`)
    await page.getByText('Everything: authentication is off').waitFor()
    expect(await userIn(page).textContent()).toBe('svc')
    expect(await page.getByRole('button', { name: 'Sign out' }).count()).toBe(0)
    expect(await page.getByRole('link', { name: 'Users', exact: true }).count()).toBe(0)
    await page.getByRole('link', { name: 'API keys' }).click()
    await page.getByText('svc ignores API keys').waitFor()
    await page.getByRole('link', { name: 'Create API key' }).click()
    await allPermissions(page).check()
    const key = await makeKey(page, 'for later')
    await page.getByRole('rowheader', { name: 'for later' }).waitFor()
    await close()
    await browser.close()
    expect(key).not.toBe('')
    const { body } = await call<Key[]>(`${server.urls.api}/v1/apikeys`, 'GET')
    expect(body).toMatchObject([{ user: 'svc', metadata: { used_by: 'for later' } }])
  }),
)

/** Whether a text is anywhere among what the scripts of a page keep. */
async function isInMemory(session: CDPSession, text: string): Promise<boolean> {
  let isFound = false
  let before = ''
  const look = ({ chunk }: { chunk: string }): void => {
    isFound ||= (before + chunk).includes(text)
    before = chunk.slice(-text.length)
  }
  session.on('HeapProfiler.addHeapSnapshotChunk', look)
  await session.send('HeapProfiler.collectGarbage')
  await session.send('HeapProfiler.takeHeapSnapshot', { reportProgress: false })
  session.off('HeapProfiler.addHeapSnapshotChunk', look)
  return isFound
}
