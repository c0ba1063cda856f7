/**
 * Text from outside, wherever somebody else can write it, stays text: no script runs, the policy has nothing to report, no
 * request leaves, no dialog opens, the title of the window stays ours. A page that does any of it fails its test when it is closed.
 */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { run, waitForStatus, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { startBrowser, waitForText, type TestBrowser } from './browser.ts'

/** Each would set `globalThis.owned` if it became more than text. */
const corpus: readonly string[] = [
  '<script>globalThis.owned = 1</script>',
  '<img src=x onerror="globalThis.owned = 1">',
  '<svg onload=globalThis.owned=1>',
  '"><svg/onload=globalThis.owned=1>',
  "' onfocus=globalThis.owned=1 autofocus x='",
  '<iframe srcdoc="<script>parent.owned = 1</script>"></iframe>',
  '<a href="javascript:globalThis.owned=1">click</a>',
  'javascript:globalThis.owned=1',
  '</textarea><script>globalThis.owned = 1</script>',
  '</style><script>globalThis.owned = 1</script>',
  '<math><mtext></mtext><mglyph><style><img src=x onerror=globalThis.owned=1>',
  '{{constructor.constructor("globalThis.owned=1")()}}',
  '${globalThis.owned=1}',
  '<link rel=stylesheet href=//evil.example/x.css>',
  '<base href=//evil.example/>',
  '<form action=//evil.example><button>go</button></form>',
  '<meta http-equiv=refresh content="0;url=//evil.example">',
  '<input onfocus=globalThis.owned=1 autofocus>',
  '\u202Egnp.exe <b>bidi</b>',
  '__proto__',
  'a'.repeat(3000),
]

/** What a terminal may be told. */
const sequences: readonly string[] = [
  '\u001b]0;owned title\u0007',
  '\u001b]2;owned title\u001b\\',
  '\u001b]8;;javascript:globalThis.owned=1\u0007click\u001b]8;;\u0007',
  '\u001b]8;;https://evil.example/\u001b\\click\u001b]8;;\u001b\\',
  '\u001b]1337;File=inline=1:PHN2Zy8+\u0007',
  '\u001b]52;c;b3duZWQ=\u0007',
  '\u001b[31m<img src=x onerror=globalThis.owned=1>\u001b[0m',
  '\u001b[38;2;1;2;3;background:url(//evil.example)m<b>x</b>',
  '\u001b[38;5;999999m\u001b[999999999999m\u001b[;;;;;;;m',
  '\u001b[2J\u001b[H\u001b[999D\u001b[?1049h\u001b[6n',
  '\u009b31m\u0090q\u009c\u0000\u0008\u007f',
  '\u001b[',
  `\u001b]${'x'.repeat(5000)}`,
]

const all = corpus.join('\n')
let server: TestApp
let browser: TestBrowser
/** Ids of what the texts are in. */
let instance: string
let trace: string
let started: string
let printed: string

/** Behind the `#`, and a text that is there once the screen is complete. */
const visits: readonly [address: () => string, text: string][] = [
  [() => '/history', 'core.local'],
  [() => `/history/${started}/general`, 'default.hostile'],
  [() => `/history/${started}/raw`, 'default.hostile'],
  [() => `/history/${printed}/general`, 'core.local'],
  [() => `/history/${printed}/timeline`, 'core.local'],
  [() => `/history/${printed}/output`, '<script>'],
  [() => `/history/${printed}/output?output_type=stderr`, '<script>'],
  [() => `/history/${printed}/children`, 'core.local'],
  [() => `/history/${printed}/raw`, 'core.local'],
  [() => '/actions', 'hostile'],
  [() => '/actions/default.hostile', '<script>'],
  [() => '/rules', 'hostile'],
  [() => '/rules/default.hostile', 'default.hostile'],
  [() => '/rules/default.hostile/edit', 'default.hostile'],
  [() => '/rules/default.never', 'default.never'],
  [() => '/triggers', 'hostile'],
  [() => '/triggers/instances', 'processed'],
  [() => `/triggers/instances/${instance}`, 'default.never'],
  [() => '/webhooks', 'hostile'],
  [() => '/webhooks/hostile', '<script>'],
  [() => '/traces', '<script>'],
  [() => `/traces/${trace}`, 'default.hostile'],
  [() => `/traces/${trace}?view=table`, 'default.hostile'],
  [() => '/access', 'API keys'],
  [() => '/access/keys', '<script>'],
  [() => '/status', 'History'],
]

beforeAll(async () => {
  ;[server, browser] = await Promise.all([createTestApp(), startBrowser()])
  const create = async <T>(path: string, body: unknown, headers: Record<string, string> = {}): Promise<T> => {
    const answer = await server.call<T>('POST', path, body, headers)
    if (answer.status >= 300) throw new Error(`POST ${path}: ${answer.text}`)
    return answer.body
  }
  const [first = ''] = corpus
  const object = Object.fromEntries(corpus.map((text, i) => [`${i} ${text}`, text]))

  // Names are limited by the server where they are a part of references; everything else takes what it is given.
  await create('/v1/actions', {
    name: 'hostile',
    pack: 'default',
    runner_type: 'local-shell-cmd',
    description: all,
    enabled: true,
    parameters: {
      cmd: { immutable: true, default: 'true' },
      text: { type: 'string', description: all, default: first, enum: [...corpus] },
      list: { type: 'array', description: first, default: [...corpus] },
      nested: { type: 'object', default: object },
    },
    tags: [{ name: first, value: first }],
  })

  await create('/v1/rules', {
    name: 'hostile',
    pack: 'default',
    description: all,
    enabled: true,
    trigger: { type: 'core.svc.webhook', parameters: { url: 'hostile' }, description: all },
    criteria: { 'trigger.body.text': { type: 'contains', pattern: first } },
    action: { ref: 'default.hostile', parameters: { text: '{{ trigger.body.text }}' }, description: all },
    tags: [{ name: first, value: first }],
  })
  await create('/v1/rules', {
    name: 'never',
    pack: 'default',
    description: all,
    enabled: true,
    trigger: { type: 'core.svc.webhook', parameters: { url: 'hostile' } },
    criteria: { "trigger.body['<img src=x onerror=globalThis.owned=1>']": { type: 'equals', pattern: all } },
    action: { ref: 'core.noop' },
  })
  await create('/v1/triggertypes', {
    name: 'hostile',
    pack: 'default',
    description: all,
    payload_schema: {},
    parameters_schema: { type: 'object', properties: { [first]: { type: 'string', description: all } } },
  })

  const sent = await server.call(
    'POST',
    '/v1/webhooks/hostile',
    { ...object, text: first },
    { 'X-Hostile': '<img src=x onerror="globalThis.owned = 1">', 'User-Agent': first, 'Svc-Trace-Tag': first },
  )
  if (sent.status !== 202) throw new Error(sent.text)
  instance = (sent.headers.get('svc-trigger-instance-id') ?? '').split(',')[0] ?? ''
  trace = sent.headers.get('svc-trace-id') ?? ''
  started = await waitFor('what the rule has started', async () => {
    const { body } = await server.call<{ id: string }[]>('GET', `/v1/executions?trigger_instance=${instance}`)
    return body[0]?.id
  })
  await waitForStatus(server, started)

  const output = [...corpus, ...sequences].map((line) => Buffer.from(line).toString('base64'))
  const { id } = await run(server, {
    cmd: `for line in ${output.join(' ')}; do echo "$line" | base64 -d; echo; echo "$line" | base64 -d >&2; echo >&2; done; printf '\\377\\376 <b>bytes</b>\\n'`,
    env: { [`<img src=x onerror=globalThis.owned=1>`]: first },
  })
  await waitForStatus(server, id)
  printed = id

  await create('/v1/apikeys', { metadata: { ...object, used_by: all } })
})

afterAll(async () => {
  await browser.close()
  await server.stop()
})

async function isOwned(page: Page): Promise<boolean> {
  return page.evaluate('globalThis.owned !== undefined || Object.prototype.owned !== undefined')
}

describe('hostile text', () => {
  it.each(visits)('stays text at %s', async (address, text) => {
    const { page, close } = await browser.open(`${server.urls.api}/#${address()}`)
    await waitForText(page, text)
    // Everything that can be opened is: what is drawn later has to be harmless, too.
    for (let round = 0; round < 4; round++) {
      await page.evaluate(`for (const one of document.querySelectorAll('main details:not([open])')) one.open = true`)
      await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
    }
    expect(await isOwned(page)).toBe(false)
    expect(await page.title()).toMatch(/svc$/)
    // Links lead into the page, to the server, or nowhere.
    const links: string[] = await page.evaluate('[...document.links].map((link) => link.href)')
    expect(links.filter((link) => !link.startsWith(`${server.urls.api}/`))).toEqual([])
    expect(await page.locator('main :is(script, iframe, object, embed, base, meta, link)').count()).toBe(0)
    await close()
  })

  it('stays text when it comes live', async () => {
    const { page, close } = await browser.open(`${server.urls.api}/#/history`)
    await waitForText(page, 'core.local')
    const [first = ''] = corpus
    const { id } = await run(server, {
      cmd: `echo ${Buffer.from(all).toString('base64')} | base64 -d; sleep 300`,
      env: { X: first },
    })
    await page.locator(`a[href*="${id}"]`).first().waitFor()
    await page.goto(`${server.urls.api}/#/history/${id}/output`)
    await waitForText(page, 'constructor.constructor')
    expect(await isOwned(page)).toBe(false)
    await server.call('DELETE', `/v1/executions/${id}`)
    await close()
  })

  it('stays text in the address', async () => {
    const { page, close } = await browser.open(`${server.urls.api}/#/history`)
    for (const text of corpus) {
      const part = encodeURIComponent(text)
      for (const address of [
        part,
        `history/${part}/general`,
        `history?status=${part}&action=${part}&search=${part}`,
        `actions/${part}`,
        `actions/core.local?cmd=${part}`,
        `rules/${part}`,
        `webhooks/${part}`,
        `traces/${part}`,
        `triggers/instances/${part}`,
      ]) {
        await page.evaluate(`location.hash = ${JSON.stringify(`#/${address}`)}`)
        // Drawn, and drawn again once whatever it asked for is there.
        await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
        await page.waitForLoadState('networkidle')
        expect([address, await isOwned(page)]).toEqual([address, false])
      }
    }
    await close()
  }, 180_000)
})

describe('other pages', () => {
  it('cannot show this one in a frame', async () => {
    const { headers } = await server.call('GET', '/')
    expect(headers.get('x-frame-options')).toBe('DENY')
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
  })
})
