/** `npm run screenshots [-- <folder>]`: pictures of every screen; default folder docs/images. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { makeFolder } from '../helpers/folders.ts'
import { projectRoot, startServer } from '../helpers/server.ts'
import { startBrowser, waitForText } from './browser.ts'
import { fillServer, type Demo } from './demo.ts'
import { writeSomeDay } from './status-history.ts'

interface Picture {
  name: string
  /** Behind the `#`. */
  address: (demo: Demo) => string
  /** Resolves once there is what the picture is of. */
  ready: (page: Page) => Promise<unknown>
  colorScheme?: 'dark'
  phone?: true
}

const heading = (page: Page): Promise<void> => page.getByRole('heading', { level: 1 }).first().waitFor()

const pictures: readonly Picture[] = [
  { name: 'history', address: () => '/history', ready: (page) => waitForText(page, 'running') },
  {
    name: 'history-phone',
    address: () => '/history',
    ready: (page) => waitForText(page, 'running'),
    phone: true,
  },
  {
    name: 'execution',
    address: ({ failed }) => `/history/${failed}/general`,
    ready: (page) => waitForText(page, 'no such device'),
  },
  {
    name: 'output',
    address: ({ running }) => `/history/${running}/output?times=1`,
    ready: (page) => waitForText(page, 'node-11 of 12'),
    colorScheme: 'dark',
  },
  {
    name: 'action',
    address: () => '/actions/shop.deploy',
    async ready(page) {
      await page.getByLabel('branch').first().waitFor()
      await waitForText(page, 'succeeded')
    },
  },
  { name: 'rule', address: () => '/rules/shop.on_push', ready: heading },
  {
    name: 'rule-edit',
    address: () => '/rules/shop.on_push/edit',
    async ready(page) {
      await page.getByRole('button', { name: 'Test rule' }).waitFor()
      await page
        .getByRole('heading', { name: 'If all criteria match' })
        .evaluate((element) => element.scrollIntoView({ block: 'center' }))
    },
  },
  {
    name: 'explain',
    address: ({ unmatched }) => `/triggers/instances/${unmatched}`,
    ready: (page) => waitForText(page, 'feature/cart'),
  },
  {
    name: 'webhooks',
    address: () => '/webhooks/push',
    async ready(page) {
      // What the rules are, what came of each request, and a body that the rules would take.
      for (const text of ['shop.on_push', 'shop.deploy', 'no rule matched', '"branch":"main"}']) {
        await waitForText(page, text)
      }
    },
  },
  {
    name: 'trace',
    address: ({ traceId }) => `/traces/${traceId}`,
    ready: (page) => waitForText(page, 'shop.report'),
  },
  { name: 'access', address: () => '/access', ready: heading },
  {
    name: 'status',
    address: () => '/status',
    async ready(page) {
      await page.getByRole('slider', { name: 'Time in Memory' }).waitFor()
      const plots = page.getByRole('heading', { name: 'History' })
      await plots.evaluate((element) => element.scrollIntoView())
    },
  },
]

const folder = process.argv[2] ?? join(projectRoot, 'docs', 'images')
mkdirSync(folder, { recursive: true })
const base = makeFolder()
// The tables are there after the first start, and a past for the plots can be written when it has ended.
await (await startServer({ basePath: base.path })).stop()
writeSomeDay(base.path)
const server = await startServer({ basePath: base.path })
const browser = await startBrowser()
try {
  const demo = await fillServer(server)
  for (const { name, address, ready, colorScheme, phone } of pictures) {
    const { page, close } = await browser.open(`${server.urls.api}/#${address(demo)}`, {
      viewport: phone === undefined ? { width: 1280, height: 760 } : { width: 390, height: 760 },
      colorScheme: colorScheme ?? 'light',
      reducedMotion: 'reduce',
    })
    await ready(page)
    await page.screenshot({ path: join(folder, `${name}.png`) })
    await close()
    process.stdout.write(`${name}.png\n`)
  }
} finally {
  await browser.close()
  await server.stop()
  base.remove()
}
