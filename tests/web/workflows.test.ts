/** Workflows: the graph of a definition, and of one that runs. */
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { AxeResults } from 'axe-core'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { waitFor } from '../helpers/wait.ts'
import { createWorkflowApp, type WorkflowApp } from '../helpers/workflows.ts'
import { hiddenIn, startBrowser, type TestBrowser, type TestPage } from './browser.ts'
import { list, phase } from './output-pane.ts'
import { fullOnly } from '../helpers/tiers.ts'

const deploy = `version: 1.0
input: [hosts]
tasks:
  approve:
    action: core.ask
    next:
      - when: <% succeeded() %>
        do: install, log
      - when: <% failed() %>
        do: fail
  install:
    with: host in <% ctx(hosts) %>
    action: core.noop
    next:
      - do: finish
  log:
    action: core.noop
    retry: {count: 2}
    next:
      - do: finish
  finish:
    join: all
    action: core.noop
`

const waits = `version: 1.0
input: [file]
tasks:
  wait:
    action: core.local cmd="until [ -e <% ctx(file) %> ]; do sleep 0.1; done"
    next:
      - do: after
  after:
    action: core.noop
`

const fails = `version: 1.0
input: [file]
tasks:
  before:
    action: core.noop
    next: [{do: breaks}]
  breaks:
    action: core.local cmd="test -e <% ctx(file) %>"
    next: [{when: <% succeeded() %>, do: after}]
  after:
    action: core.noop
`

const flaky = `version: 1.0
input: [file]
timeout: 600
tasks:
  each:
    with: word in <% [a, b, c] %>
    action: core.local cmd="[ <% item(word) %> != b ] || test -e <% ctx(file) %>"
    timeout: 60
`

const cycle = `version: 1.0
vars: [{n: 0}]
tasks:
  begin:
    action: core.noop
    next: [{do: count}]
  count:
    action: core.noop
    next:
      - when: <% ctx(n) < 2 %>
        publish: [{n: <% ctx(n) + 1 %>}]
        do: count
`

const chain = `chain:
  - {name: first, ref: core.local, params: {cmd: "{{ cmd }}"}, publish: {word: "{{ first.stdout }}"}, on-success: second, on-failure: last}
  - {name: second, ref: core.noop, on-success: last}
  - {name: last, ref: core.noop}
`

const many = `version: 1.0
tasks:
${Array.from({ length: 201 }, (_, i) => `  t${i}: {action: core.noop}`).join('\n')}
`

const text = { type: 'string', required: true }
let app: WorkflowApp
let browser: TestBrowser

beforeAll(async () => {
  ;[app, browser] = await Promise.all([
    createWorkflowApp({
      deploy: { definition: deploy, parameters: { hosts: { type: 'array', default: ['a', 'b', 'c'] } } },
      waits: { definition: waits, parameters: { file: text } },
      fails: { definition: fails, parameters: { file: text } },
      cycle,
      many,
      broken: 'version: 1.0\ntasks: {a: {action: core.noop, next: [{do: gone}]}}\n',
      flaky: { definition: flaky, parameters: { file: text } },
      chain: { definition: chain, runner: 'action-chain', parameters: { cmd: text } },
    }),
    startBrowser(),
  ])
})

afterAll(async () => {
  await browser.close()
  await app.stop()
})

const open = (address: string, options?: Parameters<TestBrowser['open']>[1]): Promise<TestPage> =>
  browser.open(`${app.urls.api}/#${address}`, options)
const workflow = (page: Page) => page.getByRole('region', { name: 'Workflow' })
const graph = (page: Page) => workflow(page).getByRole('group', { name: 'Graph' })
const box = (page: Page, name: string) => graph(page).locator(`[data-task="${name}"]`)
const row = (page: Page, name: string) => workflow(page).locator(`tr[data-row="${name}"]`)
const head = (page: Page) => page.locator('.execution-head')

/** A file of the server's folder that does not exist yet. */
let files = 0
const newFile = (): string => join(app.basePath, `go-${files++}`)

describe('the graph of a definition', () => {
  it('stands beside its text, with joins, items and retries, and leads to the list', async () => {
    const { page, close } = await open('/actions/flow.deploy')
    await box(page, 'finish').getByText('join all').waitFor()
    await box(page, 'install').getByText('× n').waitFor()
    await box(page, 'log').getByText('retry 2').waitFor()
    await box(page, 'fail').getByText('engine command').waitFor()
    await workflow(page).getByText('host in <% ctx(hosts) %>').waitFor()
    await box(page, 'approve').click()
    await row(page, 'approve').getByText('fail when <% failed() %>').waitFor()
    expect(await page.evaluate('document.activeElement?.dataset.row')).toBe('approve')
    await close()
  })

  it('is walked through with the keyboard, with one stop of the tab key', async () => {
    const { page, close } = await open('/actions/flow.deploy')
    await box(page, 'approve').focus()
    await page.keyboard.press('End')
    await page.keyboard.press('ArrowUp')
    const at = await page.evaluate<string>('document.activeElement?.dataset.task')
    expect(['install', 'log']).toContain(at)
    expect(await graph(page).locator('button[tabindex="0"]').count()).toBe(1)
    await page.keyboard.press('Enter')
    await waitFor('the row to have the keyboard', () =>
      page.evaluate(`document.activeElement?.dataset.row === ${JSON.stringify(at)}`),
    )
    await close()
  })

  it('is there for action chains, and not for what is too large to draw', async () => {
    const { page, close } = await open('/actions/flow.chain')
    await box(page, 'second').waitFor()
    await row(page, 'first').getByText('last when on-failure').waitFor()
    await close()
    const limited = await open('/actions/flow.flaky')
    await box(limited.page, 'each').getByText('timeout 60 s').waitFor()
    await workflow(limited.page).getByText('The workflow may take 600 s.').waitFor()
    await limited.close()
    const large = await open('/actions/flow.many')
    await workflow(large.page).getByText('201 tasks are too many to draw').waitFor()
    await row(large.page, 't200').waitFor({ state: 'attached' })
    expect(await graph(large.page).count()).toBe(0)
    await large.close()
  })
})

describe('the graph of a run', () => {
  it('follows it to its end, and nothing moves', async () => {
    const { id } = await app.begin('deploy')
    const { page, close } = await open(`/history/${id}/workflow`)
    await box(page, 'approve').getByText('pending').waitFor()
    await row(page, 'approve').getByRole('link', { name: 'waits for an answer' }).waitFor()
    await box(page, 'finish').getByText('not started').waitFor()
    const before = await box(page, 'finish').boundingBox()
    const [asked] = await app.children(id)
    const answered = await app.call('PUT', `/v1/inquiries/${asked?.id}`, { response: { continue: true } })
    expect(answered.status).toBe(200)
    await box(page, 'finish').getByText('succeeded').waitFor()
    await head(page).getByText('succeeded').waitFor()
    await box(page, 'install').getByText('3 of 3 items').waitFor()
    await row(page, 'install').getByRole('link', { name: 'Execution 3 of install' }).waitFor()
    expect(await box(page, 'finish').boundingBox()).toEqual(before)
    expect(await graph(page).locator('[data-taken]').count()).toBe(4)
    await workflow(page).getByText('4 tasks started: 4 succeeded').waitFor()
    await close()
  })

  fullOnly(it)('pauses and goes on by the buttons', async () => {
    const file = newFile()
    const { id } = await app.begin('waits', { file })
    const { page, close } = await open(`/history/${id}/workflow`)
    const { page: beside, close: closeBeside } = await open(`/history/${id}/output`)
    await list(beside).getByText('Task wait: starts core.local').waitFor()
    await box(page, 'wait').getByText('running').waitFor()
    await head(page).getByRole('button', { name: 'Pause' }).click()
    await head(page).getByText('pausing').waitFor()
    await list(beside).getByText(': pausing, requested by').waitFor()
    writeFileSync(file, '')
    await head(page).getByText('paused').waitFor()
    await box(page, 'wait').getByText('succeeded').waitFor()
    await box(page, 'after').getByText('not started').waitFor()
    await head(page).getByRole('button', { name: 'Resume' }).click()
    await box(page, 'after').getByText('succeeded').waitFor()
    await head(page).getByText('succeeded').waitFor()
    expect(
      await head(page)
        .getByRole('button', { name: /Pause|Resume/ })
        .count(),
    ).toBe(0)
    // Its stream ended while the workflow paused.
    await list(beside).getByText('Task after: succeeded').waitFor()
    await phase(beside).getByText('Complete').waitFor()
    await closeBeside()
    await close()
  })

  it('shows which task has failed, leads to its execution, and runs it again', async () => {
    const file = newFile()
    const { id } = await app.run('fails', { file })
    const { page, close } = await open(`/history/${id}/workflow`)
    await box(page, 'breaks').getByText('failed').waitFor()
    const failed = (await app.children(id)).find(({ status }) => status === 'failed')
    const link = row(page, 'breaks').getByRole('link', { name: 'core.local' })
    expect(await link.getAttribute('href')).toBe(`#/history/${failed?.id}/general`)
    writeFileSync(file, '')
    await workflow(page).getByRole('button', { name: 'Re-run from tasks' }).click()
    const dialog = page.getByRole('dialog')
    expect(await dialog.getByRole('checkbox', { checked: true }).count()).toBe(1)
    await dialog.getByRole('button', { name: 'Re-run' }).click()
    await waitFor('the new execution', () => !page.url().includes(id))
    await box(page, 'after').getByText('succeeded').waitFor()
    await head(page).getByText('succeeded').waitFor()
    await close()
  })

  fullOnly(it)('repeats the items without success, or all of a task', async () => {
    const file = newFile()
    const { id } = await app.run('flaky', { file })
    writeFileSync(file, '')
    const { page, close } = await open(`/history/${id}/workflow`)
    const dialog = page.getByRole('dialog')
    const all = dialog.getByRole('checkbox', { name: 'Repeat all items of each' })
    /** @returns body of the request, and how many items ran */
    const rerun = async (): Promise<[body: unknown, runs: number]> => {
      const before = page.url()
      const [request] = await Promise.all([
        page.waitForRequest((one) => one.url().includes('/re_run')),
        dialog.getByRole('button', { name: 'Re-run' }).click(),
      ])
      await waitFor('the new execution', () => page.url() !== before)
      const [next = ''] = /[0-9a-f]{24}/.exec(page.url()) ?? []
      expect((await app.ended(next)).status).toBe('succeeded')
      return [request.postDataJSON(), (await app.children(next)).length]
    }
    await box(page, 'each').locator('.badge[data-status=failed]').waitFor()
    await workflow(page).getByRole('button', { name: 'Re-run from tasks' }).click()
    expect(await rerun()).toEqual([{ tasks: ['each'], reset: [] }, 1])
    await head(page).getByText('succeeded').waitFor()
    await box(page, 'each').locator('.badge[data-status=succeeded]').waitFor()
    await workflow(page).getByRole('button', { name: 'Re-run from tasks' }).click()
    // It has succeeded: nothing is proposed.
    expect(await dialog.getByRole('button', { name: 'Re-run' }).isDisabled()).toBe(true)
    expect(await all.isDisabled()).toBe(true)
    await dialog.getByRole('checkbox', { name: /^each/ }).check()
    await all.check()
    expect(await rerun()).toEqual([{ tasks: ['each'], reset: ['each'] }, 3])
    await close()
  })

  it('is there for action chains: what ran, where it went, and a run by the form', async () => {
    const { page, close } = await open('/actions/flow.chain')
    await page.getByLabel('cmd', { exact: true }).fill('exit 1')
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await page.getByRole('region', { name: 'Current run' }).getByRole('link', { name: 'Open execution' }).click()
    await page.getByRole('link', { name: 'Workflow', exact: true }).click()
    await box(page, 'first').getByText('failed').waitFor()
    await box(page, 'last').getByText('succeeded').waitFor()
    await box(page, 'second').getByText('not started').waitFor()
    expect(await graph(page).locator('[data-taken]').count()).toBe(1)
    await workflow(page).getByText('2 tasks started: 1 succeeded, 1 failed').waitFor()
    // Chains cannot go on from a task.
    expect(await workflow(page).getByRole('button', { name: 'Re-run from tasks' }).count()).toBe(0)
    await row(page, 'last').getByRole('link', { name: 'core.noop' }).click()
    await head(page).getByText('core.noop').waitFor()
    await close()
  })

  it('counts the passes of a task', async () => {
    const { id } = await app.run('cycle')
    const { page, close } = await open(`/history/${id}/workflow`)
    await box(page, 'count').getByText('3 times').waitFor()
    expect(await row(page, 'count').count()).toBe(3)
    await close()
  })

  it('says why there is none', async () => {
    const { id } = await app.run('broken')
    const { page, close } = await open(`/history/${id}/workflow`)
    await page.getByText('its workflow has never started').waitFor()
    expect(await workflow(page).count()).toBe(0)
    await close()
  })

  it('is not offered for what is no workflow', async () => {
    const { body } = await app.call<{ id: string }>('POST', '/v1/executions', { action: 'core.noop' })
    const { page, close } = await open(`/history/${body.id}/workflow`)
    await page.getByText('An execution has no view “workflow”').waitFor()
    expect(await page.getByRole('link', { name: 'Workflow', exact: true }).count()).toBe(0)
    await close()
  })
})

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

it('both are fine for axe in light and dark, and no wider than a phone', async () => {
  const { id } = await app.run('fails', { file: newFile() })
  for (const address of ['/actions/flow.deploy', `/history/${id}/workflow`]) {
    const { page, close } = await open(address, { bypassCSP: true, reducedMotion: 'reduce' })
    await graph(page).waitFor()
    await page.evaluate(axe)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      const { violations }: AxeResults = await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')
      expect(violations.map(({ id: rule, nodes }) => `${rule}: ${nodes.map(({ html }) => html).join(' | ')}`)).toEqual(
        [],
      )
    }
    await page.setViewportSize({ width: 360, height: 740 })
    await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
    const hidden = await hiddenIn(page)
    // The graph scrolls by itself.
    expect(hidden.filter((name) => !name.startsWith('BUTTON'))).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    await close()
  }
})
