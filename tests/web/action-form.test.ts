/** The form of an action: every type, what is wrong with it, links that fill it, secrets. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ExecutionAnswer } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { HOSTILE, panelOf, runButton, startActionPlace, type ActionPlace } from './actions.ts'
import { startForgetfulWay } from './forgetful-way.ts'

const SECRET = 'a very secret word'

let place: ActionPlace

beforeAll(async () => {
  place = await startActionPlace()
})

afterAll(() => place.stop())

describe('the form of an action', () => {
  it('sends nothing while something is missing, and says what', async () => {
    const { page, sent, close } = await place.open('/core.remote')
    await runButton(page).click()
    const hosts = page.getByRole('textbox', { name: 'hosts' })
    await waitFor('the first field to have the focus', () => hosts.evaluate((it) => it === document.activeElement))
    expect(await hosts.getAttribute('aria-invalid')).toBe('true')
    expect(await page.getByText('Enter a value: this parameter is required.').count()).toBe(2)
    await hosts.fill('localhost')
    expect(await page.getByText('Enter a value: this parameter is required.').count()).toBe(1)
    expect(sent).toEqual([])
    await close()
  })

  it('sends each type as it is, defaults not at all, and an empty text on request', async () => {
    const { page, sent, close } = await place.open('/web.types')
    const level = page.getByRole('combobox', { name: 'level' })
    expect(await level.locator('option').first().textContent()).toBe('Default: low')
    await level.selectOption('high')
    await page.getByRole('combobox', { name: 'verbose' }).selectOption('false')
    await page.getByRole('textbox', { name: 'count' }).fill('7')
    await page.getByRole('textbox', { name: 'ratio' }).fill('0.5')
    await page.getByRole('textbox', { name: 'env' }).fill('{"port": 80}')
    await page.getByRole('textbox', { name: 'hosts' }).fill('web 1\nweb,2\n')
    await page.getByRole('textbox', { name: 'anything' }).fill('[1, null]')
    const title = page.getByRole('textbox', { name: 'title' })
    expect(await title.getAttribute('placeholder')).toBe('a title')
    await runButton(page).click()
    const execution = await place.ended(page)
    const parameters = {
      level: 'high',
      verbose: false,
      count: 7,
      ratio: 0.5,
      env: { port: 80 },
      hosts: ['web 1', 'web,2'],
      anything: [1, null],
    }
    expect(sent).toEqual([{ action: 'web.types', parameters }])
    expect(execution.parameters).toEqual(parameters)

    await title.focus()
    await page.getByRole('button', { name: 'Send empty string' }).first().click()
    await level.selectOption('Default: low')
    await runButton(page).click()
    await waitFor('the second run', () => sent.length === 2)
    const { level: _, ...rest } = parameters
    expect(sent[1]).toEqual({ action: 'web.types', parameters: { ...rest, title: '' } })
    await close()
  })

  it('shows what is fixed, and never sends it', async () => {
    const { page, sent, close } = await place.open('/web.types?fixed=other')
    await page.getByText('More parameters').click()
    await page.getByText('as it is fixed by the action').waitFor()
    await runButton(page).click()
    expect((await place.ended(page)).status).toBe('succeeded')
    expect(sent).toEqual([{ action: 'web.types', parameters: {} }])
    await close()
  })

  fullOnly(it)('tells where JSON is wrong while it is typed, and takes no number that it would change', async () => {
    const { page, sent, close } = await place.open('/web.types')
    const env = page.getByRole('textbox', { name: 'env' })
    await env.fill('{\n  "port": 80,\n}')
    const problem = page.getByText('Line 2, column 13: remove the comma before the closing "}".')
    await problem.waitFor()
    await page.getByRole('button', { name: 'Go to error' }).click()
    // The text area has the mark at the comma.
    const selected = await env.evaluate((it) => (it as HTMLTextAreaElement).selectionStart) // it is one
    expect(selected).toBe('{\n  "port": 80'.length)
    await env.fill('{"port": 80}')
    await problem.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Format' }).click()
    expect(await env.inputValue()).toBe('{\n  "port": 80\n}')

    const count = page.getByRole('textbox', { name: 'count' })
    for (const [typed, message] of [
      ['9007199254740993', 'Enter at most 100.'],
      ['1.5', 'Enter a whole number'],
      ['101', 'Enter at most 100.'],
    ] as const) {
      await count.fill(typed)
      await runButton(page).click()
      await page.getByText(message).waitFor()
    }
    expect(sent).toEqual([])
    await close()
  })

  fullOnly(it)('takes a template for a number, for a choice and for a list', async () => {
    const { page, sent, close } = await place.open('/web.types')
    await page.getByRole('textbox', { name: 'count' }).fill('{{ 40 + 2 }}')
    await page.getByRole('combobox', { name: 'verbose' }).selectOption('template')
    await page.getByRole('textbox', { name: 'verbose' }).fill('{{ 1 == 1 }}')
    await page.getByRole('textbox', { name: 'hosts' }).fill("{{ ['a', 'b'] }}")
    await runButton(page).click()
    const { parameters } = await place.ended(page)
    expect(sent[0]?.['parameters']).toEqual({
      count: '{{ 40 + 2 }}',
      verbose: '{{ 1 == 1 }}',
      hosts: "{{ ['a', 'b'] }}",
    })
    expect(parameters).toEqual({ count: 42, verbose: true, hosts: ['a', 'b'] })
    await close()
  })

  it('shows a refusal of the server at the field, and keeps what was typed', async () => {
    const { page, sent, close } = await place.open('/web.types')
    const code = page.getByRole('textbox', { name: 'code' })
    const title = page.getByRole('textbox', { name: 'title' })
    await title.fill('typed with care')
    await code.fill('abc')
    await code.press('Control+Enter')
    const field = page.locator('.parameter').filter({ has: code })
    await field.getByText("'abc' does not match '^[A-Z]{3}$'").waitFor()
    await waitFor('the field to have the focus', () => code.evaluate((it) => it === document.activeElement))
    expect(await title.inputValue()).toBe('typed with care')
    expect(await panelOf(page).count()).toBe(0)
    await code.fill('ABC')
    expect(await field.getByText('does not match').count()).toBe(0)
    await code.press('Control+Enter')
    expect((await place.ended(page)).parameters).toEqual({ title: 'typed with care', code: 'ABC' })
    expect(sent).toHaveLength(2)
    await close()
  })

  fullOnly(it)('runs nothing by Enter in a single line, and only once by two presses', async () => {
    const { page, sent, close } = await place.open('/web.types')
    await page.getByRole('textbox', { name: 'count' }).press('Enter')
    await page.getByRole('textbox', { name: 'count' }).fill('5')
    const form = page.getByRole('form', { name: 'Run web.types' })
    await form.evaluate((it) => {
      for (let i = 0; i < 2; i++) (it as HTMLFormElement).requestSubmit() // it is one
    })
    await place.ended(page)
    expect(sent).toHaveLength(1)
    await close()
  })

  fullOnly(it)('runs once though the browser sends it again, and says when nobody knows whether it has', async () => {
    const way = await startForgetfulWay(place.server.urls.api)
    try {
      const { page, close } = await place.browser.open(`${way.url}/#/actions/core.local?cmd=date`)
      const count = async (): Promise<number> =>
        (await place.server.call<unknown[]>('GET', '/v1/executions?action=core.local&limit=100')).body.length
      const before = await count()
      way.loseAnswers(1)
      await runButton(page).click()
      await panelOf(page).getByText('succeeded', { exact: true }).waitFor()
      expect(way.requests()).toBe(2)
      expect(await count()).toBe(before + 1)

      way.loseAnswers(Infinity)
      await runButton(page).click()
      await page.getByRole('alert').filter({ hasText: 'The server may have made the change' }).waitFor()
      expect(await count()).toBe(before + 2)
      await close()
    } finally {
      await way.stop()
    }
  })

  fullOnly(it)('folds most of sixty parameters, and shows where one of them is wrong', async () => {
    const { page, close } = await place.open('/web.many')
    await page.getByRole('textbox', { name: 'p11', exact: true }).waitFor()
    expect(await page.getByRole('textbox', { name: 'p12', exact: true }).isVisible()).toBe(false)
    await page.getByText('More parameters').click()
    await page.getByRole('textbox', { name: 'p59', exact: true }).fill('the last')
    await page.getByRole('textbox', { name: 'p0', exact: true }).fill('the first {{ nope }}')
    await runButton(page).click()
    const first = page.locator('.parameter').filter({ has: page.getByRole('textbox', { name: 'p0', exact: true }) })
    await first.getByText('Failed to render parameter "p0"').waitFor()
    await page.getByRole('textbox', { name: 'p0', exact: true }).fill('the first')
    await runButton(page).click()
    expect((await place.ended(page)).parameters).toEqual({ p0: 'the first', p59: 'the last' })
    await close()
  })

  fullOnly(it)('shows hostile names, texts and choices as what they are', async () => {
    const { page, sent, close } = await place.open('/web.hostile')
    await page.getByText(HOSTILE).first().waitFor()
    await page
      .getByRole('button', { name: /more characters/ })
      .first()
      .click()
    const pick = page.getByRole('combobox', { name: 'pick' })
    await pick.selectOption('0')
    await runButton(page).click()
    expect((await place.ended(page)).parameters).toEqual({ pick: HOSTILE })
    expect(sent).toHaveLength(1)
    await page.getByText('Command line and HTTP').click()
    await page.getByText('svc run web.hostile').waitFor()
    expect(await page.evaluate(() => document.querySelectorAll('main img, main script').length)).toBe(0)
    await close()
  })

  fullOnly(it)('says that nobody can run what is disabled', async () => {
    const { page, close } = await place.open('/web.off')
    await page.getByText('The action is disabled').waitFor()
    expect(await runButton(page).isDisabled()).toBe(true)
    await close()
  })
})

describe('a prepared run', () => {
  fullOnly(it)('is a link that fills the form and runs nothing', async () => {
    const query = new URLSearchParams({ cmd: 'echo "a & b" ü', timeout: '5', 'trace-tag': 'my tag' })
    const { page, sent, close } = await place.open(`/core.local?${query.toString()}`)
    const cmd = page.getByRole('textbox', { name: 'cmd' })
    await cmd.waitFor()
    expect(await cmd.inputValue()).toBe('echo "a & b" ü')
    // What is filled in is not folded.
    expect(await page.getByRole('textbox', { name: 'timeout' }).inputValue()).toBe('5')
    expect(await page.getByRole('textbox', { name: 'Trace tag' }).inputValue()).toBe('my tag')
    await cmd.fill('echo other')
    await waitFor('the address to follow', () => new URL(page.url()).hash.includes('cmd=echo+other'))
    await page.evaluate(() => (location.hash = '#/actions/core.local?cmd=third'))
    await waitFor('the form to follow', async () => (await cmd.inputValue()) === 'third')
    expect(await page.getByRole('textbox', { name: 'timeout' }).inputValue()).toBe('')
    await page.reload()
    await cmd.waitFor()
    expect(await cmd.inputValue()).toBe('third')
    expect(sent).toEqual([])
    await cmd.press('Control+Enter')
    expect((await place.ended(page)).parameters).toEqual({ cmd: 'third' })
    await close()
  })

  fullOnly(it)('runs in the trace that is asked for', async () => {
    const { page, close } = await place.open('/core.noop?trace-tag=of-the-web')
    await runButton(page).click()
    const { id } = await place.ended(page)
    const { body } = await place.server.call<{ trace_tag: string }[]>('GET', `/v1/traces?execution=${id}`)
    expect(body.map(({ trace_tag: tag }) => tag)).toEqual(['of-the-web'])
    await close()
  })

  fullOnly(it)('says which of its values are no parameters', async () => {
    const { page, sent, close } = await place.open('/core.noop?nothing=1')
    await page.getByText('Unknown parameter: remove it.').waitFor()
    await runButton(page).click()
    expect(sent).toEqual([])
    await page.getByRole('button', { name: 'Remove' }).click()
    await runButton(page).click()
    await place.ended(page)
    expect(sent).toHaveLength(1)
    await close()
  })

  it('can be copied as a command, and as a request', async () => {
    const { page, close } = await place.open(`/core.local?cmd=${encodeURIComponent("echo 'x'")}&timeout=5`)
    await page.getByText('Command line and HTTP').click()
    await page.getByText(String.raw`svc run core.local cmd='echo '\''x'\''' timeout=5`).waitFor()
    const request = page.getByText('curl -X POST')
    expect(await request.textContent()).toContain(`${place.server.urls.api}/api/v1/executions`)
    expect(await request.textContent()).not.toContain('X-Auth-Token')
    await close()
  })
})

describe('a secret', () => {
  it('goes into the request and nowhere else', async () => {
    const { page, sent, close } = await place.open('/web.secret')
    const password = page.getByLabel('password', { exact: true })
    await password.fill(SECRET)
    expect(await password.getAttribute('type')).toBe('password')
    await page.getByText('Not in the link: password').waitFor()
    await page.getByText('Command line and HTTP').click()
    await page.getByText('Without password').first().waitFor()
    await runButton(page).click()
    const execution = await place.ended(page)
    expect(sent).toEqual([{ action: 'web.secret', parameters: { password: SECRET } }])
    expect(execution.result['stdout']).toBe(String(SECRET.length + 1))
    expect(execution.parameters['password']).toBe('********')
    // What is typed is no attribute.
    expect(await page.content()).not.toContain(SECRET)
    expect(decodeURIComponent(page.url())).not.toContain('secret word')
    expect(await page.evaluate(() => JSON.stringify([history.state, localStorage, sessionStorage]))).not.toContain(
      'secret word',
    )

    // The same run again has it still, though the page does not.
    await password.fill('')
    await panelOf(page).getByRole('button', { name: 'Re-run' }).click()
    const again = await waitFor('another execution', async () => {
      const { id } = await place.ended(page)
      return id !== execution.id && id
    })
    const { body } = await place.server.call<ExecutionAnswer>('GET', `/v1/executions/${again}`)
    expect(body.result['stdout']).toBe(String(SECRET.length + 1))
    await close()
  })

  fullOnly(it)('of several lines is kept as it is pasted', async () => {
    const { page, sent, close } = await place.open('/web.secret')
    const password = page.getByLabel('password', { exact: true })
    await password.focus()
    await password.evaluate((it) => {
      const clipboardData = new DataTransfer()
      clipboardData.setData('text/plain', '-----BEGIN KEY-----\nabc\n-----END KEY-----\n')
      it.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }))
    })
    await runButton(page).click()
    await place.ended(page)
    expect(sent[0]?.['parameters']).toEqual({ password: '-----BEGIN KEY-----\nabc\n-----END KEY-----\n' })
    await close()
  })

  it('is not taken from an address, and does not stay there', async () => {
    const { page, sent, close } = await place.open('/web.secret?password=in-the-link')
    await page.getByText('The link contained a secret (password).').waitFor()
    expect(await page.getByLabel('password', { exact: true }).inputValue()).toBe('')
    await waitFor('the address to be clean', () => !page.url().includes('in-the-link'))
    expect(sent).toEqual([])
    await close()
  })
})
