/** What is left of a session when it ends, and several pages of one browser. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createTestApp, withApp } from '../helpers/app.ts'
import { call } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import {
  ofUsers,
  openAnother,
  signInDialog,
  signInOn,
  startGuarded,
  tokenOf,
  userIn,
  type GuardedServer,
} from './session.ts'
import { fullOnly } from '../helpers/tiers.ts'

let stage: GuardedServer

beforeAll(async () => {
  stage = await startGuarded({}, ['alice'])
})

afterAll(async () => {
  await stage.stop()
})

/** Every session of the user is over, as after the loss of a notebook. */
async function revoke(user: string): Promise<void> {
  const { status } = await call(`${stage.server.urls.auth}/tokens?user=${user}`, 'DELETE', undefined, stage.operator)
  expect(status).toBe(200)
}

async function keysUsedBy(text: string): Promise<{ user: string }[]> {
  const { body } = await stage.server.call<{ user: string; metadata: { used_by?: string } }[]>(
    'GET',
    '/v1/apikeys?limit=100',
    undefined,
    stage.operator,
  )
  return body.filter(({ metadata }) => metadata.used_by === text)
}

describe('a session that ends', () => {
  it('costs nothing that was typed: what was refused goes on, once', async () => {
    const { page, close } = await stage.open('/access/keys/new')
    await page.getByLabel('Used by').fill('typed before the end')
    await page.getByLabel('Expires').selectOption('7')
    await page.getByRole('button', { name: 'View executions' }).click()
    await revoke('admin')
    await page.getByRole('button', { name: 'Create key' }).click()
    await signInDialog(page).getByText('The session of admin ended').waitFor()
    expect(await page.getByLabel('Used by').inputValue()).toBe('typed before the end')
    expect(await signInDialog(page).getByLabel('User').inputValue()).toBe('admin')
    expect(await keysUsedBy('typed before the end')).toEqual([])
    await signInOn(page, 'admin', stage.password)
    await page.getByText('svc shows this key only once.').waitFor()
    expect(await keysUsedBy('typed before the end')).toHaveLength(1)
    await close()
  })

  fullOnly(it)('gives the keyboard back to where it was, also inside of another dialog', async () => {
    const { page, close } = await stage.open('/access/users')
    await page.getByRole('button', { name: 'Add user' }).click()
    await page.getByLabel('Name').fill('carol')
    await page.getByLabel('Password', { exact: true }).fill(ofUsers)
    await revoke('admin')
    await page.keyboard.press('Enter')
    await signInDialog(page).getByText('The session of admin ended').waitFor()
    await signInOn(page, 'admin', stage.password)
    await page.getByText('User carol added.').waitFor()
    await page.getByRole('rowheader', { name: 'carol' }).waitFor()
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Add user')
    await close()
  })

  fullOnly(it)('asks the server for nothing while nobody signs in, however long that takes', async () => {
    const { page, close } = await stage.open('/access')
    await page.clock.install()
    await page.reload()
    await userIn(page).waitFor()
    await revoke('admin')
    await page
      .getByRole('link', { name: 'API keys' })
      .click({ timeout: 2000 })
      .catch(() => undefined)
    await signInDialog(page).waitFor()
    const asked: string[] = []
    page.on('request', (request) => {
      if (!request.url().includes('/ui/')) asked.push(request.url())
    })
    // Whatever screen is behind the dialog, be it one with streams, or one that asks every few seconds.
    for (const name of ['history', 'status', 'triggers', 'webhooks', 'access']) {
      await page.evaluate((hash) => {
        location.hash = hash
      }, `#/${name}`)
      for (let minutes = 0; minutes < 30; minutes += 5) await page.clock.fastForward('05:00')
    }
    expect(asked).toEqual([])
    await signInOn(page, 'admin', stage.password)
    await waitFor('the page to ask again', () => asked.some((address) => address.includes('/api/v1/')))
    await close()
  })

  fullOnly(it)('says so some minutes before, and goes on without losing the page', () =>
    withApp({ settings: { 'auth.enable': 'True', 'auth.token_ttl': '3600' } }, async (short) => {
      const { page, close } = await stage.browser.open(`${short.urls.api}/#/access/keys/new`)
      await page.clock.install()
      await page.reload()
      await signInOn(page, 'admin', firstPassword(short.basePath))
      await page.getByLabel('Used by').fill('typed before the warning')
      const first = await tokenOf(page.context())
      await page.clock.fastForward('54:00')
      expect(await page.getByText('Your session ends at').count()).toBe(0)
      await page.clock.fastForward('02:00')
      await page.getByText('Your session ends at').waitFor()
      await page.getByRole('button', { name: 'Sign in again' }).click()
      await signInDialog(page).getByRole('button', { name: 'Not now' }).click()
      await signInDialog(page).waitFor({ state: 'hidden' })
      await page.getByRole('button', { name: 'Sign in again' }).click()
      await signInOn(page, 'admin', firstPassword(short.basePath))
      await page.getByText('Your session ends at').waitFor({ state: 'hidden' })
      expect(await tokenOf(page.context())).not.toBe(first)
      expect(await page.getByLabel('Used by').inputValue()).toBe('typed before the warning')
      await close()
    }),
  )

  fullOnly(it)('ends when its time has come, by the clock of the server', () =>
    withApp({ settings: { 'auth.enable': 'True', 'auth.token_ttl': '8' } }, async (short) => {
      const { page, close } = await stage.browser.open(`${short.urls.api}/#/access`)
      await signInOn(page, 'admin', firstPassword(short.basePath))
      await page.getByText('Your session ends at').waitFor()
      // While there is one: the cookie goes with the session, and to come without a token is not to come with one that is over.
      const token = (await tokenOf(page.context())) ?? ''
      expect(token).not.toBe('')
      await page.getByText('Your session ended at').waitFor()
      await waitFor('the token to expire', async () => {
        const { status } = await short.call('GET', '/v1/user', undefined, { 'X-Auth-Token': token })
        return status === 401
      })
      await page.getByRole('link', { name: 'API keys' }).click()
      await signInDialog(page).getByText('The session of admin ended').waitFor()
      await signInOn(page, 'admin', firstPassword(short.basePath))
      await page.getByText('No API keys yet').waitFor()
      expect(await tokenOf(page.context())).not.toBe(token)
      await close()
    }),
  )
})

fullOnly(describe)('several pages of one browser', () => {
  fullOnly(it)('signing out on one means all, and signing in again too', async () => {
    const { page, close } = await stage.open('/access/keys/new')
    const other = await openAnother(page, '/access/keys/new')
    await other.getByLabel('Used by').fill('typed on the other page')
    const token = (await tokenOf(page.context())) ?? ''
    await page.getByRole('button', { name: 'Sign out' }).click()
    await signInDialog(page).waitFor()
    expect(await page.context().cookies()).toEqual([])
    const { status } = await stage.server.call('GET', '/v1/user', undefined, { 'X-Auth-Token': token })
    expect(status).toBe(401)

    await signInDialog(other).getByText('you signed out on another page').waitFor()
    expect(await other.getByLabel('Used by').isVisible()).toBe(false)
    await signInOn(page, 'admin', stage.password)
    await signInDialog(other).waitFor({ state: 'hidden' })
    expect(await other.getByLabel('Used by').inputValue()).toBe('typed on the other page')
    expect(await other.getByLabel('Used by').isVisible()).toBe(true)
    await close()
  })

  fullOnly(it)('one that heard of nothing is signed out at its next request', async () => {
    const { page, close } = await stage.open('/access')
    const other = await page.context().newPage()
    await other.addInitScript(() => {
      BroadcastChannel.prototype.postMessage = () => undefined
      BroadcastChannel.prototype.addEventListener = () => undefined
    })
    await other.goto(`${stage.server.urls.api}/#/access`)
    await userIn(other).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await signInDialog(page).waitFor()
    // Unless something on it has asked before.
    await other
      .getByRole('link', { name: 'API keys' })
      .click({ timeout: 2000 })
      .catch(() => undefined)
    await signInDialog(other).getByText('The session of admin ended').waitFor()
    expect(await other.getByText('you signed out on another page').count()).toBe(0)
    await close()
  })

  fullOnly(it)('none of them acts as somebody who has signed in on another', async () => {
    const { page, close } = await stage.open('/access/keys/new')
    const other = await openAnother(page, '/access/keys/new')
    await other.getByLabel('Used by').fill('meant to be of admin')
    await other.getByRole('button', { name: 'View executions' }).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await signInOn(page, 'alice', ofUsers)
    await waitFor('the page of alice', async () => (await userIn(page).textContent()) === 'alice')
    const dialog = signInDialog(other)
    await dialog.getByText('alice signed in with this browser').waitFor()
    await signInOn(other, 'admin', stage.password)
    await other.getByRole('button', { name: 'Create key' }).click()
    await other.getByText('svc shows this key only once.').waitFor()
    expect((await keysUsedBy('meant to be of admin')).map(({ user }) => user)).toEqual(['admin'])

    // The cookie is of admin now, and the page that shows alice knows.
    await signInDialog(page).or(page.getByLabel('Used by')).first().waitFor()
    await page
      .getByRole('link', { name: 'Account' })
      .click({ force: true })
      .catch(() => undefined)
    await signInDialog(page).getByRole('button', { name: 'Continue as admin' }).click()
    await waitFor('the page of admin', async () => (await userIn(page).textContent()) === 'admin')
    await close()
  })

  fullOnly(it)('one that nobody had to sign in to does not act as somebody who has to since', async () => {
    const folder = makeFolder()
    const open = await createTestApp({ basePath: folder.path, settings: { 'auth.enable': 'False' } })
    const { page, close } = await stage.browser.open(`${open.urls.api}/#/access`)
    await page.getByText('off (auth.enable)').waitFor()
    await open.stop()
    const settings = { 'auth.enable': 'True', 'api.port': new URL(open.urls.api).port }
    const guarded = await createTestApp({ basePath: folder.path, settings })
    const other = await openAnother(page, '/access')
    await signInOn(other, 'admin', firstPassword(folder.path))
    await userIn(other).waitFor()
    await page.getByRole('link', { name: 'API keys' }).click()
    await signInDialog(page).getByRole('button', { name: 'Continue as admin' }).click()
    await userIn(page).filter({ hasText: 'admin' }).waitFor()
    expect(await userIn(page).textContent()).toBe('admin')
    await close()
    await guarded.stop()
    folder.remove()
  })

  fullOnly(it)('all of them end with all tokens of the user', async () => {
    const { page, close } = await stage.open('/access')
    const other = await openAnother(page, '/access')
    await userIn(other).waitFor()
    const elsewhere = await signIn(stage.server, 'admin', stage.password)
    await page.getByRole('button', { name: 'Revoke all tokens' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke all tokens' }).click()
    await signInDialog(page).waitFor()
    await signInDialog(other).waitFor()
    expect((await stage.server.call('GET', '/v1/user', undefined, elsewhere)).status).toBe(401)
    await close()
  })
})
