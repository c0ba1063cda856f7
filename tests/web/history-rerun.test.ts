/** One execution: what it waits for, answering it, and running it again. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { runToEnd, waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { startBrowser, type TestBrowser, type TestPage } from './browser.ts'
import { fillServer, type Demo } from './demo.ts'

let server: TestApp
let browser: TestBrowser
let demo: Demo

beforeAll(async () => {
  ;[server, browser] = await Promise.all([createTestApp(), startBrowser()])
  demo = await fillServer(server)
})

afterAll(async () => {
  await browser.close()
  await server.stop()
})

function open(address: string, options?: Parameters<TestBrowser['open']>[1], on = server): Promise<TestPage> {
  return browser.open(`${on.urls.api}/#/history/${address}`, options)
}

const detail = (page: Page) => page.getByRole('region', { name: 'Execution', exact: true })
const part = (page: Page, name: string) => detail(page).getByRole('region', { name })
const badge = (page: Page) => detail(page).locator('.execution-head').getByRole('status')
const facts = (page: Page) => page.getByRole('complementary', { name: 'Details' })

async function create(action: string, parameters: Record<string, unknown>, more = {}): Promise<ExecutionAnswer> {
  const body = { action, parameters, ...more }
  const answer = await server.call<ExecutionAnswer>('POST', '/v1/executions', body)
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)])
  return answer.body
}

describe('what it waits for', () => {
  it('is a time', async () => {
    const { id } = await create('core.local', { cmd: 'true' }, { delay: 3_600_000 })
    const { page, close } = await open(`${id}/general`)
    await part(page, 'Waiting').getByText('Delayed by the request until').waitFor()
    await detail(page).getByRole('button', { name: 'Cancel' }).click()
    await badge(page).getByText('canceled', { exact: true }).waitFor()
    expect(await part(page, 'Waiting').count()).toBe(0)
    await close()
  })

  it('is an answer, which can be given here', async () => {
    const { id } = await create('core.ask', {})
    const { page, close } = await open(`${id}/general`)
    await part(page, 'Waiting').getByText('Waiting for an answer.').waitFor()
    expect(await detail(page).getByRole('button', { name: 'Cancel' }).isDisabled()).toBe(true)
    await part(page, 'Answer').getByLabel('continue').selectOption('true')
    await part(page, 'Answer').getByRole('button', { name: 'Answer' }).click()
    await badge(page).getByText('succeeded').waitFor()
    await part(page, 'Result').getByText('response:').waitFor()
    await close()
  })
})

describe('running it again', () => {
  const dialog = (page: Page) => page.getByRole('dialog')

  it('takes other parameters, and leads to the new execution', async () => {
    const { id } = await runToEnd(server, { cmd: 'echo first', env: { A: '1' } })
    const { page, close } = await open(`${id}/general?status=failed`)
    await detail(page).getByRole('button', { name: 'Re-run' }).click()
    const cmd = dialog(page).getByLabel('cmd', { exact: true })
    expect(await cmd.inputValue()).toBe('echo first')
    await cmd.fill('echo second $A')
    // What was typed is not lost by a slip.
    await page.keyboard.press('Escape')
    const [request] = await Promise.all([
      page.waitForRequest((one) => one.url().includes('/re_run')),
      dialog(page).getByRole('button', { name: 'Re-run' }).click(),
    ])
    expect(new URL(request.url()).search).toBe('?no_merge=true')
    expect(request.postDataJSON()).toEqual({ parameters: { cmd: 'echo second $A' }, keep: ['env'] })
    await part(page, 'Result').getByText('second 1').waitFor()
    expect(page.url()).toMatch(/\/general\?status=failed$/)
    expect(await facts(page).getByRole('link', { name: id }).getAttribute('href')).toBe(`#/history/${id}/general`)
    await close()
  })

  it('keeps secrets as they were, and never sends what stands for them', async () => {
    const secret = 'not-to-be-seen-anywhere'
    const first = await create('shop.deploy', { branch: 'main', token: secret })
    await waitForStatus(server, first.id)
    const { page, close } = await open(`${first.id}/general`)
    await detail(page).getByRole('button', { name: 'Re-run' }).click()
    await dialog(page).getByText('The server keeps masked values (********)').waitFor()
    await dialog(page).getByLabel('branch').fill('other')
    const [request] = await Promise.all([
      page.waitForRequest((one) => one.url().includes('/re_run')),
      dialog(page).getByRole('button', { name: 'Re-run' }).click(),
    ])
    expect(request.postDataJSON()).toEqual({ parameters: { branch: 'other' }, keep: ['token'] })
    await waitFor('the new execution', () => !page.url().includes(first.id))
    const id = /history\/(\w{24})/.exec(page.url())?.[1] ?? ''
    await waitForStatus(server, id)
    const { body } = await server.call<ExecutionAnswer>('GET', `/v1/executions/${id}?show_secrets=true`)
    expect(body.parameters).toEqual({ branch: 'other', token: secret })
    expect(await page.content()).not.toContain(secret)
    await close()
  })

  it('shows a refusal where it belongs, and keeps what was typed', async () => {
    const { id } = await runToEnd(server, { cmd: 'true' })
    const { page, close } = await open(`${id}/general`)
    await detail(page).getByRole('button', { name: 'Re-run' }).click()
    await dialog(page).getByText('More parameters').click()
    await dialog(page).getByLabel('timeout').fill('{{ nothing.of.the.kind }}')
    await dialog(page).getByRole('button', { name: 'Re-run' }).click()
    await dialog(page)
      .getByText(/timeout/)
      .last()
      .waitFor()
    await waitFor(
      'what is wrong',
      async () => (await dialog(page).locator('[aria-invalid=true], .problem').count()) > 0,
    )
    expect(await dialog(page).getByLabel('timeout').inputValue()).toBe('{{ nothing.of.the.kind }}')
    await dialog(page).getByRole('button', { name: 'Go back' }).click()
    expect(await dialog(page).count()).toBe(0)
    await close()
  })

  it('of an action that is gone says so', async () => {
    const { page, close } = await open(`${demo.failed}/general`)
    await page.route('**/api/v1/actions/views/overview/*', (route) =>
      route.fulfill({ status: 404, json: { faultstring: 'Resource with a reference or id "core.local" not found' } }),
    )
    await detail(page).getByRole('button', { name: 'Re-run' }).click()
    await dialog(page).getByText('The action core.local does not exist any more').waitFor()
    expect(await dialog(page).getByRole('button', { name: 'Re-run' }).count()).toBe(0)
    await close()
  })
})
