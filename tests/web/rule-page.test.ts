/** What a rule is as a file, the order of its criteria, and why nothing happens once it is switched off. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readDefinition } from '../../src/cli/resources.ts'
import { makeFolder } from '../helpers/folders.ts'
import { createTestApp } from '../helpers/app.ts'
import { type TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { startBrowser, type TestBrowser } from './browser.ts'

let server: TestApp
let browser: TestBrowser
const folder = makeFolder()

const rule = {
  name: 'shown',
  pack: 'test',
  description: 'yes',
  enabled: true,
  type: { ref: 'standard' },
  trigger: { type: 'core.svc.webhook', parameters: { url: 'shown' } },
  criteria: {
    'trigger.body.a': { type: 'equals', pattern: 'on' },
    'trigger.body.b': { type: 'in', pattern: [1, '1'] },
    'trigger.body.c': { type: 'exists', pattern: true },
  },
  action: { ref: 'core.local', parameters: { cmd: 'echo one\necho "{{ trigger.body.a }}"\n' } },
}

beforeAll(async () => {
  ;[server, browser] = await Promise.all([createTestApp(), startBrowser()])
  const { status, text } = await server.call('POST', '/v1/rules', rule)
  if (status !== 201) throw new Error(text)
})

afterAll(async () => {
  await browser.close()
  await server.stop()
  folder.remove()
})

it('a rule is shown as the file that makes it, as YAML and as JSON', async () => {
  const { page, close } = await browser.open(`${server.urls.api}/#/rules/test.shown`)
  await page.getByText('Definition as YAML or JSON').click()
  const shown = page.getByLabel('Definition', { exact: true })
  for (const [form, start] of [
    ['YAML', 'name: shown'],
    ['JSON', '{'],
  ] as const) {
    await page.getByRole('button', { name: form, exact: true }).click()
    const text = await waitFor(`the definition as ${form}`, async () => {
      const found = (await shown.textContent()) ?? ''
      return found.startsWith(start) && found
    })
    const file = join(folder.path, `rule.${form.toLowerCase()}`)
    writeFileSync(file, text)
    expect(await readDefinition(file)).toEqual(rule)
  }
  await close()
})

fullOnly(it)('criteria are moved up and down by keyboard alone, and saved in their order', async () => {
  const { page, close } = await browser.open(`${server.urls.api}/#/rules/test.shown/edit`)
  const keys = (): Promise<string[]> =>
    page.getByLabel('Key', { exact: true }).evaluateAll((all) => all.map((one) => (one as HTMLInputElement).value))
  await page.getByRole('button', { name: 'Move criterion 3 up' }).focus()
  await page.keyboard.press('Enter')
  await waitFor(
    'the third to be the second',
    async () => (await keys()).join() === 'trigger.body.a,trigger.body.c,trigger.body.b',
  )
  // The focus goes along with it, to the end of the way and beyond.
  await page.keyboard.press('Enter')
  await waitFor('it to be the first', async () => (await keys())[0] === 'trigger.body.c')
  await page.keyboard.press('Enter')
  const focused = await page.evaluate(() => document.activeElement?.getAttribute('aria-label'))
  expect(focused).toBe('Move criterion 1 up')
  await page.getByRole('button', { name: 'Move criterion 2 down' }).click()
  expect(await keys()).toEqual(['trigger.body.c', 'trigger.body.b', 'trigger.body.a'])
  await page.getByRole('button', { name: 'Save rule' }).click()
  await page.getByRole('heading', { name: 'test.shown', exact: true, level: 1 }).waitFor()
  const { body } = await server.call<typeof rule>('GET', '/v1/rules/test.shown')
  expect(Object.entries(body.criteria)).toEqual(
    (['trigger.body.c', 'trigger.body.b', 'trigger.body.a'] as const).map((key) => [key, rule.criteria[key]]),
  )
  await close()
})

it('once it is switched off, what happens says why nothing came of it', async () => {
  const { page, close } = await browser.open(`${server.urls.api}/#/rules/test.shown`)
  await page.getByRole('switch').click()
  await page.getByText('Rule test.shown disabled').waitFor()
  const sent = await server.call('POST', '/v1/webhooks/shown', { a: 'on', b: 1, c: 0 })
  expect(sent.status).toBe(202)
  await page.getByRole('link', { name: 'Trigger instances' }).click()
  await page.getByRole('link', { name: 'Why?' }).click()
  await page.getByText('The only rule of the trigger is disabled.').waitFor()
  await page.getByRole('link', { name: 'Test rule' }).click()
  await page.getByRole('button', { name: 'Test rule' }).click()
  await page.getByText('The rule is disabled.').waitFor()
  await close()
})
