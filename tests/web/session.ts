/** A server that people have to sign in to, and signing in as they do. */
import type { BrowserContext, Locator, Page } from 'playwright-core'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createTestApp } from '../helpers/app.ts'
import { type ServerOptions, type TestApp } from '../helpers/server.ts'
import { startBrowser, type TestBrowser, type TestPage } from './browser.ts'

export interface GuardedServer {
  server: TestApp
  browser: TestBrowser
  /** Of `admin`. */
  password: string
  /** Credential of an API key of the administrator, which no session has to do with. */
  operator: Record<string, string>
  /** Opens the web client there, signed in; default as the administrator. @param address behind the `#` */
  readonly open: (address: string, user?: string, password?: string) => Promise<TestPage>
  readonly stop: () => Promise<void>
}

/** @param users names, whose password is `ofUsers` */
export async function startGuarded(options: ServerOptions = {}, users: readonly string[] = []): Promise<GuardedServer> {
  const settings = { 'auth.enable': 'True', 'auth.failures_per_user': '0', ...options.settings }
  const [server, browser] = await Promise.all([createTestApp({ ...options, settings }), startBrowser()])
  const password = firstPassword(server.basePath)
  const admin = await signIn(server, 'admin', password)
  const { body } = await server.call<{ key: string }>('POST', '/v1/apikeys', {}, admin)
  const operator = { 'Svc-Api-Key': body.key }
  for (const name of users) {
    const { status, text } = await server.call('POST', '/v1/users', { name, password: ofUsers }, operator)
    if (status !== 201) throw new Error(`"${name}" was not added (${status}): ${text}`)
  }
  return {
    server,
    browser,
    password,
    operator,
    async open(address, user = 'admin', secret = user === 'admin' ? password : ofUsers) {
      const opened = await browser.open(`${server.urls.api}/#${address}`)
      await signInOn(opened.page, user, secret)
      await userIn(opened.page).waitFor()
      return opened
    },
    async stop() {
      await browser.close()
      await server.stop()
    },
  }
}

export const ofUsers = 'a long enough password'

/** That asks for signing in. */
export const signInDialog = (page: Page): Locator => page.getByRole('dialog', { name: /^Sign in to svc/ })

/** Who is signed in, as the page shows it. */
export const userIn = (page: Page): Locator => page.locator('.user-menu a')

/** In the dialog that is shown, or comes to be. */
export async function signInOn(page: Page, user: string, password: string): Promise<void> {
  const dialog = signInDialog(page)
  await dialog.getByLabel('User').fill(user)
  await dialog.getByLabel('Password').fill(password)
  await dialog.getByRole('button', { name: 'Sign in', exact: true }).click()
  await dialog.waitFor({ state: 'hidden' })
}

/** In the cookie; undefined: there is none. */
export async function tokenOf(context: BrowserContext): Promise<string | undefined> {
  return (await context.cookies()).find(({ name }) => name === 'auth-token')?.value
}

/** Another page of the same browser. What is wrong with it nobody finds: that is for pages of their own. @param address behind the `#` */
export async function openAnother(page: Page, address: string): Promise<Page> {
  const other = await page.context().newPage()
  await other.goto(`${new URL(page.url()).origin}/#${address}`)
  return other
}
