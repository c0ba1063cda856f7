/** Signing in, and what others can make of it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeAuthority } from '../helpers/certificates.ts'
import { makeFolder } from '../helpers/folders.ts'
import { passOn, startFront } from '../helpers/front.ts'
import { firstPassword } from '../helpers/logins.ts'
import { withApp } from '../helpers/app.ts'
import { call } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { startBrowser } from './browser.ts'
import { openAnother, signInDialog, signInOn, startGuarded, tokenOf, userIn, type GuardedServer } from './session.ts'

const hostileName = `Zoë <img src=x onerror=alert(1)> ${'long '.repeat(30)}end`

let stage: GuardedServer

beforeAll(async () => {
  stage = await startGuarded({}, [hostileName])
})

afterAll(async () => {
  await stage.stop()
})

describe('signing in', () => {
  it('keeps the token in a cookie that no script can read, and nowhere else', async () => {
    const { page, close } = await stage.browser.open(`${stage.server.urls.api}/#/access`)
    const addresses: string[] = []
    const headersOf = new Map<string, string>()
    page.on('request', (request) => {
      addresses.push(request.url(), request.headers()['referer'] ?? '')
      headersOf.set(new URL(request.url()).pathname, JSON.stringify(request.headers()))
    })
    await signInOn(page, 'admin', stage.password)
    await page.getByRole('heading', { name: 'User' }).waitFor()
    await page.getByRole('link', { name: 'API keys' }).click()
    await page.getByRole('row').first().waitFor()

    const [cookie, ...others] = await page.context().cookies()
    expect(others).toEqual([])
    expect(cookie).toMatchObject({ name: 'auth-token', httpOnly: true, sameSite: 'Lax', path: '/' })
    const token = cookie?.value ?? ''
    expect(token.length).toBeGreaterThan(50)
    // It is what the page sends, so this would find it.
    expect(headersOf.get('/api/v1/apikeys')).toContain(token)
    const kept = await page.evaluate(async () => ({
      cookie: document.cookie,
      local: JSON.stringify(localStorage),
      session: JSON.stringify(sessionStorage),
      state: JSON.stringify(history.state),
      databases: await indexedDB.databases(),
      caches: await caches.keys(),
      name: window.name,
      markup: document.documentElement.outerHTML,
    }))
    expect(kept).toMatchObject({
      cookie: '',
      local: '{}',
      session: '{}',
      state: 'null',
      databases: [],
      caches: [],
      name: '',
    })
    for (const place of [...addresses, page.url(), kept.markup]) {
      expect(place).not.toContain(token)
      expect(place).not.toContain(token.split('.')[2])
      expect(place).not.toContain(stage.password)
    }
    expect(addresses.length).toBeGreaterThan(4)
    await close()
  })

  fullOnly(it)('is asked for by a form whose labels are to be read', async () => {
    const { page, close } = await stage.browser.open(`${stage.server.urls.api}/`)
    const dialog = signInDialog(page)
    for (const name of ['User', 'Password']) {
      const label = await dialog.getByText(name, { exact: true }).boundingBox()
      const field = await dialog.getByLabel(name).boundingBox()
      expect(label?.height).toBeGreaterThan(10)
      expect((label?.y ?? 0) + (label?.height ?? 0)).toBeLessThanOrEqual(field?.y ?? 0)
    }
    await close()
  })

  fullOnly(it)('goes on after a reload, on another page, and where it was', async () => {
    const { page, close } = await stage.open('/access/keys?user=nobody')
    await page.reload()
    await page.getByText('No keys of nobody').waitFor()
    expect(await userIn(page).textContent()).toBe('admin')
    const other = await openAnother(page, '/status')
    await other.getByRole('heading', { name: 'Status' }).first().waitFor()
    expect(await signInDialog(other).count()).toBe(0)
    await close()
  })

  it('says what is wrong, empties the password, and no browser asks for one by itself', async () => {
    const { page, close } = await stage.browser.open(stage.server.urls.api)
    const refused: string[] = []
    page.on('response', (response) => {
      if (response.status() === 401) refused.push(response.headers()['www-authenticate'] ?? 'none')
    })
    const dialog = signInDialog(page)
    const button = dialog.getByRole('button', { name: 'Sign in', exact: true })
    await button.click()
    await dialog.getByText('Enter the user name.').waitFor()
    await dialog.getByLabel('User').fill('admin')
    await button.click()
    await dialog.getByText('Enter the password.').waitFor()
    await dialog.getByLabel('Password').fill('wrong')
    await page.keyboard.press('Enter')
    await dialog.getByText('Wrong user or password.').waitFor()
    expect(await dialog.getByLabel('Password').inputValue()).toBe('')
    expect(await dialog.getByLabel('User').inputValue()).toBe('admin')
    await dialog.getByRole('button', { name: 'Use proxy sign-in' }).click()
    await dialog.getByText('No trusted proxy identified you').waitFor()
    expect(refused.length).toBeGreaterThanOrEqual(2)
    expect(new Set(refused)).toEqual(new Set(['none']))
    // Neither once nor twice is there a way around it, and nothing is behind it.
    for (let i = 0; i < 3; i++) await page.keyboard.press('Escape')
    await signInOn(page, 'admin', stage.password)
    await page.waitForURL(/#\/history$/)
    await close()
  })

  fullOnly(it)('knows names of any kind', async () => {
    const { page, close } = await stage.open('/access', hostileName)
    expect(await userIn(page).textContent()).toBe(hostileName)
    await page.reload()
    await userIn(page).waitFor()
    await page.setViewportSize({ width: 375, height: 700 })
    const wide = await page.evaluate(() => document.documentElement.scrollWidth)
    expect(wide).toBe(375)
    await close()
  })

  fullOnly(it)('tells how long to wait after too many failures', () =>
    withApp(
      { settings: { 'auth.enable': 'True', 'auth.failures_per_user': '2', 'auth.max_failure_wait': '2' } },
      async (strict) => {
        const { page, close } = await stage.browser.open(strict.urls.api)
        const dialog = signInDialog(page)
        await dialog.getByLabel('User').fill('admin')
        const waiting = dialog.getByRole('button', { name: /^Sign in \(in [12] s\)$/ })
        const tooMany = dialog.getByText('Too many failed logins')
        const outcome = tooMany.or(dialog.getByText('Wrong user or password.'))
        for (let i = 0; i < 5 && !(await tooMany.isVisible()); i++) {
          await dialog.getByLabel('Password').fill(`wrong ${i}`)
          const answered = page.waitForResponse(/\/tokens$/)
          await page.keyboard.press('Enter')
          await answered
          await outcome.waitFor()
        }
        await waiting.waitFor()
        expect(await waiting.isDisabled()).toBe(true)
        await signInOn(page, 'admin', firstPassword(strict.basePath))
        await close()
      },
    ),
  )

  fullOnly(it)('says what to do where it is offered over TLS alone', async () => {
    const folder = makeFolder()
    const { certFile, keyFile } = (await makeAuthority(folder.path, 'own')).issue('server', 'IP:127.0.0.1')
    const settings = { 'auth.enable': 'True', 'auth.use_ssl': 'True', 'auth.cert': certFile, 'auth.key': keyFile }
    try {
      await withApp({ settings }, async (secure) => {
        const { page, close } = await stage.browser.open(secure.urls.api)
        const dialog = signInDialog(page)
        await dialog.getByLabel('User').fill('admin')
        await dialog.getByLabel('Password').fill(firstPassword(secure.basePath))
        await page.keyboard.press('Enter')
        await dialog.getByText('use the https:// address of the server').waitFor()
        expect(await page.context().cookies()).toEqual([])
        await close()
      })
    } finally {
      folder.remove()
    }
  })

  fullOnly(it)(
    'needs no password where a web server in front says who it is, and does not sign in who has signed out',
    async () => {
      const settings = { 'auth.enable': 'True', 'auth.mode': 'proxy' }
      await withApp({ settings }, async (behind) => {
        let name = 'ada'
        const front = await startFront((request, response) => {
          request.headers['x-forwarded-user'] = name
          passOn(request, response, new URL(request.url ?? '/', behind.urls.api))
        })
        try {
          const { page, close } = await stage.browser.open(`${front.url}/#/access`)
          const end = async (): Promise<void> => {
            const headers = { 'X-Auth-Token': (await tokenOf(page.context())) ?? '' }
            expect((await call(`${behind.urls.auth}/tokens`, 'DELETE', undefined, headers)).status).toBe(200)
          }
          await signInDialog(page).getByRole('button', { name: 'Use proxy sign-in' }).click()
          await page.getByRole('heading', { name: 'User' }).waitFor()
          expect(await userIn(page).textContent()).toBe('ada')
          // From now on the browser asks the web server, and not the user.
          await page.context().clearCookies()
          await page.reload()
          await page.getByRole('heading', { name: 'User' }).waitFor()
          await end()
          await page.getByRole('link', { name: 'API keys' }).click()
          await page.getByText('No API keys yet').waitFor()
          // Never as somebody else in silence.
          name = 'bob'
          await end()
          // What it shows has to be asked for.
          await page.getByRole('link', { name: 'Account' }).click()
          await signInDialog(page).getByText('The session of ada ended').waitFor()
          await signInDialog(page).getByRole('button', { name: 'Continue as bob' }).click()
          await waitFor('the page of bob', async () => (await userIn(page).textContent()) === 'bob')

          await page.getByRole('button', { name: 'Sign out' }).click()
          await signInDialog(page).waitFor()
          await page.reload()
          await signInDialog(page).waitFor()
          await close()
        } finally {
          await front.close()
        }
      })
    },
  )

  fullOnly(it)(
    'works without the cookie that a browser refuses over plain HTTP from elsewhere, and says so',
    async () => {
      const front = await startFront((request, response) => {
        request.headers['x-forwarded-for'] = '192.0.2.7'
        passOn(request, response, new URL(request.url ?? '/', stage.server.urls.api))
      })
      const abroad = await startBrowser({ arguments: ['--host-resolver-rules=MAP svc.test 127.0.0.1'] })
      try {
        const { page, problems } = await abroad.open(`http://svc.test:${front.port}/#/access/keys`)
        await signInOn(page, 'admin', stage.password)
        await page.getByText('Reloading this page signs you out').waitFor()
        await page.getByRole('link', { name: 'Users' }).click()
        await page.getByText('Zoë').first().waitFor()
        await page.reload()
        await signInDialog(page).waitFor()
        // Over plain HTTP browsers do not count a header that keeps windows apart, and say so.
        const isTold = (text: string): boolean => text.includes('Cross-Origin-Opener-Policy header has been ignored')
        expect(problems().filter((text) => !isTold(text))).toEqual([])
      } finally {
        await abroad.close().catch(() => undefined)
        await front.close()
      }
    },
  )
})

describe('a page of another origin', () => {
  it('reads nothing and changes nothing by the cookie, and shows no page of ours', async () => {
    const cookies: string[] = []
    const own = await startFront((request, response) => {
      cookies.push(`${request.headers['sec-fetch-site']} ${request.headers.cookie}`)
      passOn(request, response, new URL(request.url ?? '/', stage.server.urls.api))
    })
    const { page, close } = await stage.browser.open(`${own.url}/#/access`)
    await signInOn(page, 'admin', stage.password)
    await userIn(page).waitFor()
    const token = (await tokenOf(page.context())) ?? ''
    const front = await startFront((request, response) => {
      response.writeHead(200, { 'Content-Type': 'text/html' })
      response.end(`<!doctype html><title>elsewhere</title><p>${request.url}</p>`)
    })
    try {
      const foreign = await page.context().newPage()
      await foreign.goto(front.url)
      const outcome = await foreign.evaluate(async (api) => {
        const attempt = async (path: string, init: RequestInit): Promise<string> => {
          try {
            const response = await fetch(`${api}${path}`, { credentials: 'include', ...init })
            return response.type === 'opaque' ? 'opaque' : `${response.status} ${await response.text()}`
          } catch {
            return 'refused'
          }
        }
        const text = { 'Content-Type': 'text/plain' }
        const body = '{"action": "core.noop"}'
        return {
          read: await attempt('/v1/user', {}),
          readOpaque: await attempt('/v1/apikeys', { mode: 'no-cors' }),
          withHeader: await attempt('/v1/user', { headers: { 'Svc-Expected-User': 'admin' } }),
          run: await attempt('/v1/executions', { method: 'POST', body, headers: text }),
          runBlind: await attempt('/v1/executions', { method: 'POST', body, headers: text, mode: 'no-cors' }),
          signOut: await attempt('/auth/v1/tokens/current', { method: 'DELETE' }),
          token: await attempt('/auth/v1/tokens', { method: 'POST', body: '{}' }),
        }
      }, own.url)
      expect(outcome).toEqual({
        read: 'refused',
        readOpaque: 'opaque',
        withHeader: 'refused',
        run: 'refused',
        runBlind: 'opaque',
        signOut: 'refused',
        token: 'refused',
      })
      // Ports of one host are one site to a browser: the cookie was sent, and still nothing came of it.
      expect(
        cookies.filter((cookie) => cookie.startsWith('same-site') && cookie.includes(token)).length,
      ).toBeGreaterThan(3)
      const { body: executions } = await stage.server.call<unknown[]>(
        'GET',
        '/v1/executions',
        undefined,
        stage.operator,
      )
      expect(executions).toEqual([])
      expect((await stage.server.call('GET', '/v1/user', undefined, { 'X-Auth-Token': token })).status).toBe(200)

      const [form] = await Promise.all([
        foreign.waitForResponse(/\/executions$/),
        // Going elsewhere before it has come there would be in its way.
        foreign.waitForURL(/\/executions$/),
        foreign.evaluate((api) => {
          document.body.innerHTML = `<form method="post" enctype="text/plain" action="${api}/v1/executions">
            <input name='{"action": "core.noop", "x": "' value='"}'></form>`
          document.forms[0]?.submit()
        }, own.url),
      ])
      expect(form.status()).toBe(403)
      expect((await stage.server.call<unknown[]>('GET', '/v1/executions', undefined, stage.operator)).body).toEqual([])

      await foreign.goto(front.url)
      await foreign.evaluate((api) => {
        document.body.innerHTML = `<iframe src="${api}/"></iframe><object data="${api}/"></object><embed src="${api}/">`
      }, own.url)
      await waitFor('the frames to be refused', () => foreign.frames().length > 1)
      for (const frame of foreign.frames().slice(1)) {
        await frame.waitForLoadState().catch(() => undefined)
        expect(await frame.locator('#app').count()).toBe(0)
      }
      // A window that it opens is none of its own either.
      const [popup] = await Promise.all([
        foreign.waitForEvent('popup'),
        foreign.evaluate((api) => {
          Object.assign(window, { opened: window.open(`${api}/#/access`) })
        }, own.url),
      ])
      await userIn(popup).waitFor()
      expect(await popup.evaluate(() => window.opener as unknown)).toBe(null)
      await waitFor(
        'the window to be out of reach',
        () => foreign.evaluate(() => (window as unknown as { opened: Window }).opened.closed), // set above
      )
    } finally {
      await Promise.all([front.close(), own.close()])
    }
    await close()
  })
})
