/** Every screen, as people use it who cannot see it, use no mouse, see little contrast, or hold a phone. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { AxeResults } from 'axe-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { type TestApp } from '../helpers/server.ts'
import { hiddenIn, startBrowser, waitForText, type TestBrowser } from './browser.ts'
import { fillServer, type Demo } from './demo.ts'

let server: TestApp
let browser: TestBrowser
let demo: Demo
/** As text: the policy of the page lets nobody add a script to it, but the debugger may. */
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

beforeAll(async () => {
  ;[server, browser] = await Promise.all([createTestApp(), startBrowser()])
  demo = await fillServer(server)
})

afterAll(async () => {
  await browser.close()
  await server.stop()
})

/** Behind the `#`, and a text that is there once the screen is complete. */
const addresses: readonly [address: (demo: Demo) => string, text: string][] = [
  [() => '/history', 'core.local'],
  [() => '/history?status=failed', 'core.local'],
  [({ failed }) => `/history/${failed}/general`, 'no such device'],
  [({ deployed }) => `/history/${deployed}/general`, 'shop.on_push'],
  [({ deployed }) => `/history/${deployed}/timeline`, 'scheduled'],
  [({ succeeded }) => `/history/${succeeded}/output`, 'Deploying'],
  [({ succeeded }) => `/history/${succeeded}/children`, 'shop.deploy'],
  [({ succeeded }) => `/history/${succeeded}/raw`, 'runner_type'],
  [() => '/actions', 'core.announcement'],
  [() => '/actions/shop.deploy', 'environment'],
  [() => '/actions/core.http', 'method'],
  [() => '/rules', 'on_push'],
  [() => '/rules/shop.on_push', 'trigger.body.branch'],
  [() => '/rules/shop.on_push/edit', 'shop.deploy'],
  [() => '/rules/new', 'Trigger'],
  [() => '/triggers', 'core.svc.webhook'],
  [() => '/triggers/types/core.svc.webhook', 'Payload'],
  [() => '/triggers/timers', 'CronTimer'],
  [() => '/triggers/instances', 'processed'],
  [({ unmatched }) => `/triggers/instances/${unmatched}`, 'feature/cart'],
  [() => '/webhooks', 'push'],
  [() => '/webhooks/push', 'curl'],
  [() => '/traces', 'webhook-push'],
  [({ traceId }) => `/traces/${traceId}`, 'shop.report'],
  [() => '/access', 'API keys'],
  [() => '/access/keys/new', 'Permissions'],
  [() => '/status', 'History'],
  [() => '/nowhere', 'Page not found'],
]

const SCREENS = join(import.meta.dirname, '..', '..', 'web', 'src', 'screens')
/** A screen that nobody has listed is looked at by its title. */
const unlisted = readdirSync(SCREENS)
  .filter((name) => existsSync(join(SCREENS, name, 'index.tsx')))
  .filter((name) => !addresses.some(([address]) => String(address).includes(`/${name}`)))
  .map((name): (typeof addresses)[number] => [() => `/${name}`, name.slice(0, 1).toUpperCase() + name.slice(1)])

describe('every screen', () => {
  it.each([...addresses, ...unlisted])(
    'is fine for axe in light and dark, and no wider than a phone, at %s',
    async (address, text) => {
      const { page, close } = await browser.open(`${server.urls.api}/#${address(demo)}`, {
        colorScheme: 'light',
        reducedMotion: 'reduce',
        // The debugger adds axe, which the policy of the page would keep out.
        bypassCSP: true,
      })
      await waitForText(page, text)
      await page.evaluate(axe)
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        const results: AxeResults = await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')
        const violations = results.violations.map(({ id, help, nodes }) => {
          const where = nodes.map(({ html }) => html).join(' | ')
          return `${colorScheme}: ${id}: ${help}: ${where.slice(0, 600)}`
        })
        expect(violations).toEqual([])
      }
      await page.setViewportSize({ width: 360, height: 740 })
      await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
      expect(await hiddenIn(page)).toEqual([])
      await close()
    },
  )
})

describe('where an animation would be too much', () => {
  it('nothing moves', async () => {
    const { page, close } = await browser.open(`${server.urls.api}/#/history/${demo.running}/general`, {
      reducedMotion: 'reduce',
    })
    await waitForText(page, 'running')
    const running: number = await page.evaluate('document.getAnimations().length')
    expect(running).toBe(0)
    await close()
  })
})
