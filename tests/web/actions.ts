/** A pack with an action for everything that the form of one can show, and what the tests of its screen do again and again. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import { createTestApp } from '../helpers/app.ts'
import { finalStatuses, waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { startBrowser, type TestBrowser, type TestPage } from './browser.ts'

export const HOSTILE = `<img src=x onerror="alert(1)"><script>alert(2)</script>'"\u202e{ constructor }`
/** Metadata as JSON, which is YAML. */
const actions: Record<string, Record<string, unknown>> = {
  types: {
    description: 'One parameter of every type.',
    runner_type: 'noop',
    parameters: {
      level: { type: 'string', enum: ['low', 'high'], default: 'low', description: 'How much.' },
      verbose: { type: 'boolean' },
      count: { type: 'integer', minimum: 1, maximum: 100 },
      ratio: { type: 'number' },
      title: { type: 'string', default: 'a title' },
      env: { type: 'object', properties: { port: { type: 'integer' } } },
      hosts: { type: 'array', items: { type: 'string' } },
      anything: {},
      code: { type: 'string', pattern: '^[A-Z]{3}$', description: 'Three capital letters.' },
      fixed: { type: 'string', default: 'as it is', immutable: true },
    },
  },
  secret: {
    runner_type: 'local-shell-cmd',
    parameters: {
      password: { type: 'string', secret: true, required: true },
      cmd: { default: 'echo "$P" | wc -c', immutable: true },
      env: { default: { P: '{{ password }}' }, immutable: true },
    },
  },
  many: {
    description: 'Sixty of them.',
    runner_type: 'noop',
    parameters: Object.fromEntries(
      Array.from({ length: 60 }, (_, i) => [`p${i}`, { type: 'string', description: `Number ${i}.`, position: i }]),
    ),
  },
  hostile: {
    description: HOSTILE + 'long '.repeat(2000),
    runner_type: 'noop',
    tags: [{ name: HOSTILE, value: HOSTILE }],
    parameters: {
      ['x'.repeat(500)]: { type: 'string', description: HOSTILE, default: HOSTILE },
      pick: { type: 'string', enum: [HOSTILE, 'y'.repeat(1000)] },
    },
  },
  off: { runner_type: 'noop', enabled: false },
  script: { runner_type: 'local-shell-script', entry_point: 'script.sh', parameters: {} },
}

export function writePack(basePath: string, pack: string, files: Record<string, Record<string, unknown>>): void {
  const folder = join(basePath, 'packs', pack)
  mkdirSync(join(folder, 'actions'), { recursive: true })
  const manifest = { name: pack, description: 'For tests.', version: '1.0.0', author: 'Tests' }
  writeFileSync(join(folder, 'pack.yaml'), JSON.stringify(manifest))
  for (const [name, action] of Object.entries(files)) {
    writeFileSync(join(folder, 'actions', `${name}.yaml`), JSON.stringify({ name, ...action }))
  }
}

/** Makes the pack `web`. */
async function registerActions(server: TestApp): Promise<void> {
  writePack(server.basePath, 'web', actions)
  const script = join(server.basePath, 'packs', 'web', 'actions', 'script.sh')
  writeFileSync(script, `echo "${HOSTILE.replaceAll('"', "'")}"\n`)
  const { status, text } = await server.call('POST', '/v1/packs/register', { packs: ['web'] })
  if (status !== 200) throw new Error(text)
}

export interface ActionPlace {
  server: TestApp
  browser: TestBrowser
  /** @param address behind `#/actions` */
  readonly open: (address: string, options?: Parameters<TestBrowser['open']>[1]) => Promise<ActionScreen>
  /** The execution that the page shows, once it is over. */
  readonly ended: (page: Page) => Promise<ExecutionAnswer>
  readonly stop: () => Promise<void>
}

/** With the pack `web`. */
export async function startActionPlace(): Promise<ActionPlace> {
  const [server, browser] = await Promise.all([createTestApp(), startBrowser()])
  await registerActions(server)
  return {
    server,
    browser,
    open: (address, options) => openActions(browser, server, address, options),
    ended: (page) => ended(server, page),
    async stop() {
      await browser.close()
      await server.stop()
    },
  }
}

export interface ActionScreen extends TestPage {
  /** Bodies of `POST /executions` so far. */
  readonly sent: Record<string, unknown>[]
}

async function openActions(
  browser: TestBrowser,
  server: TestApp,
  address: string,
  options?: Parameters<TestBrowser['open']>[1],
): Promise<ActionScreen> {
  const opened = await browser.open(`${server.urls.api}/#/actions${address}`, options)
  return { ...opened, sent: recordRuns(opened.page) }
}

function recordRuns(page: Page): Record<string, unknown>[] {
  const sent: Record<string, unknown>[] = []
  page.on('request', (request) => {
    if (request.method() !== 'POST' || !request.url().endsWith('/executions')) return
    sent.push(request.postDataJSON() as Record<string, unknown>) // what the page has sent
  })
  return sent
}

export const runButton = (page: Page): Locator => page.getByRole('button', { name: 'Run', exact: true })
export const panelOf = (page: Page): Locator => page.getByRole('region', { name: 'Current run' })

async function ended(server: TestApp, page: Page): Promise<ExecutionAnswer> {
  const link = panelOf(page).getByRole('link', { name: 'Open execution' })
  const id = /history\/(\w+)/.exec((await link.getAttribute('href')) ?? '')?.[1] ?? ''
  const execution = await waitForStatus(server, id, finalStatuses)
  await panelOf(page).getByRole('status').first().getByText(execution.status, { exact: true }).waitFor()
  return execution
}
