/** The output of an execution in the browser: while it is written, and what can be done with it afterwards. */
import { writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { unknownId } from '../conformance/support.ts'
import type { OutputLines } from '../../src/modules/executions/types.ts'
import { createTestApp, withApp } from '../helpers/app.ts'
import { runToEnd, type TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { startBrowser, type TestBrowser, type TestPage } from './browser.ts'
import {
  begin,
  button,
  found,
  list,
  openOutput,
  pane,
  phase,
  row,
  searchField,
  seenRows,
  waitForRest,
  waitForRow,
  waitForRows,
} from './output-pane.ts'

const phone = { viewport: { width: 375, height: 700 }, hasTouch: true }
const LINES = 100_000

let server: TestApp
let browser: TestBrowser
/** Of an execution that has printed its numbers, and whose every thousandth line is a milestone. */
let many: string

beforeAll(async () => {
  ;[server, browser] = await Promise.all([createTestApp(), startBrowser()])
  many = (
    await runToEnd(server, {
      cmd: `awk 'BEGIN { for (i = 1; i <= ${LINES}; i++) print "line", i, (i % 1000 ? "of many" : "Milestone " i / 1000) }'`,
    })
  ).id
})

afterAll(async () => {
  await browser.close()
  await server.stop()
})

function open(id: string, query = '', options?: Parameters<TestBrowser['open']>[1]): Promise<TestPage> {
  return openOutput(browser, server.urls.api, id, query, options)
}

let gates = 0
/** What a command waits for. */
function gate(): { wait: string; pass: () => void } {
  const file = join(server.basePath, `gate-${++gates}`)
  return { wait: `until [ -e ${file} ]; do sleep 0.02; done`, pass: () => writeFileSync(file, '') }
}

const isPressed = (page: Page, name: string): Promise<string | null> => button(page, name).getAttribute('aria-pressed')
const queryOf = (page: Page): string => new URL(page.url()).hash.split('?')[1] ?? ''

describe('while it runs', () => {
  it('lines are shown as they are written, and followed', async () => {
    const [more, end] = [gate(), gate()]
    const id = await begin(server, `echo first; ${more.wait}; seq 2 500; ${end.wait}; echo the last`)
    const { page, close } = await open(id)
    await waitForRow(page, 1)
    expect(await seenRows(page)).toEqual([{ number: 1, text: 'first' }])
    await phase(page).getByText('Live', { exact: true }).waitFor()
    more.pass()
    const rows = await waitForRow(page, 500)
    expect(rows.every(({ number, text }) => text === String(number))).toBe(true)
    end.pass()
    await waitForRow(page, 501)
    await phase(page).getByText('Complete').waitFor()
    await pane(page).getByText('501 lines').waitFor()
    expect(await button(page, 'Follow').count()).toBe(0)
    await close()
  })

  it('scrolling up stays where it is, and says what has come; the key End follows again', async () => {
    const [more, end] = [gate(), gate()]
    const id = await begin(server, `seq 1 500; ${more.wait}; seq 501 1000; ${end.wait}; seq 1001 1500`)
    const { page, close } = await open(id)
    await waitForRow(page, 500)
    await list(page).hover()
    await page.mouse.wheel(0, -400)
    await phase(page).getByText('Live, paused').waitFor()
    await waitForRest(page)
    const before = await seenRows(page)
    more.pass()
    await pane(page).getByRole('button', { name: '500 new' }).waitFor()
    expect(await seenRows(page)).toEqual(before)
    await list(page).focus()
    await page.keyboard.press('End')
    await waitForRow(page, 1000)
    expect(await isPressed(page, 'Follow')).toBe('true')
    end.pass()
    await waitForRow(page, 1500)
    await close()
  })

  fullOnly(it)('the button pauses and follows, too, and so does the one that says what has come', async () => {
    const [more, end] = [gate(), gate()]
    const id = await begin(server, `seq 1 500; ${more.wait}; seq 501 600; ${end.wait}; seq 601 700`)
    const { page, close } = await open(id)
    await waitForRow(page, 500)
    await button(page, 'Follow').click()
    expect(await isPressed(page, 'Follow')).toBe('false')
    more.pass()
    await pane(page).getByRole('button', { name: '100 new' }).waitFor()
    await waitForRow(page, 500)
    await pane(page).getByRole('button', { name: '100 new' }).click()
    await waitForRow(page, 600)
    expect(await isPressed(page, 'Follow')).toBe('true')
    end.pass()
    await waitForRow(page, 700)
    await close()
  })

  fullOnly(it)('a line grows until it ends', async () => {
    const [more, end] = [gate(), gate()]
    const id = await begin(server, `printf '10 %%'; ${more.wait}; printf '\\r50 %%'; ${end.wait}; printf '\\rdone\\n'`)
    const { page, close } = await open(id)
    const shows = (text: string) => waitForRows(page, text, ([one]) => one?.text === text)
    await shows('10 %')
    more.pass()
    await shows('50 %')
    end.pass()
    await shows('done')
    await phase(page).getByText('Complete').waitFor()
    expect(await seenRows(page)).toEqual([{ number: 1, text: 'done' }])
    await close()
  })

  fullOnly(it)('more than anybody can read is followed as well, to the last line', async () => {
    const start = gate()
    const last = 2_000_001
    const id = await begin(server, `${start.wait}; seq 1 ${last - 1}; echo the end`)
    const { page, close } = await open(id)
    await pane(page).getByText('No output yet').waitFor()
    start.pass()
    await waitForRow(page, last)
    await phase(page).getByText('Complete').waitFor()
    const rows = await seenRows(page)
    expect(rows.map(({ text }) => text)).toEqual(
      rows.map(({ number }) => (number === last ? 'the end' : String(number))),
    )
    await close()
  })

  fullOnly(it)('what is written is found by a search that has begun before', async () => {
    const more = gate()
    const id = await begin(server, `echo needle one; ${more.wait}; seq 1 100; echo needle two`)
    const { page, close } = await open(id, '?find=needle')
    await found(page).getByText('1 of 1 line').waitFor()
    more.pass()
    await found(page).getByText('1 of 2 lines').waitFor()
    await searchField(page).press('Enter')
    const rows = await waitForRow(page, 102)
    expect(rows.at(-1)?.text).toBe('needle two')
    await close()
  })

  fullOnly(it)('and nothing is written: that is said, before and afterwards', async () => {
    const end = gate()
    const id = await begin(server, end.wait)
    const { page, close } = await open(id)
    await pane(page).getByText('No output yet.').waitFor()
    end.pass()
    await pane(page).getByText('No output: the action wrote nothing').waitFor()
    expect(await phase(page).innerText()).toBe('Complete')
    await close()
  })
})

describe('what is shown', () => {
  fullOnly(it)('has the colours of a terminal, and what came on standard error is marked', async () => {
    const { id } = await runToEnd(server, {
      cmd: `printf 'plain \\033[1;31mred\\033[0m \\033[38;5;208morange\\033[0m\\n'; sleep 0.1; echo trouble >&2`,
    })
    const { page, close } = await open(id)
    await waitForRow(page, 2)
    const look = (text: string) =>
      list(page)
        .getByText(text, { exact: true })
        .evaluate((element) => {
          const { color, fontWeight } = getComputedStyle(element)
          const [red = 0, green = 0, blue = 0] = (color.match(/\d+/g) ?? []).map(Number)
          return { red, green, blue, fontWeight }
        })
    const [plain, red, orange, trouble] = [
      await look('plain'),
      await look('red'),
      await look('orange'),
      await look('trouble'),
    ]
    expect(red.red).toBeGreaterThan(red.green + 80)
    expect([plain.fontWeight, red.fontWeight]).toEqual(['400', '700'])
    expect(orange.red).toBeGreaterThan(orange.green)
    expect(orange.green).toBeGreaterThan(orange.blue)
    expect(trouble).not.toEqual(plain)
    // Not by its colour alone.
    expect(await row(page, 2).getByTitle('Written to standard error').innerText()).toBe('err')
    expect(await row(page, 1).locator('.output-mark').innerText()).toBe('')
    await close()
  })

  it('is all, or one kind of output with numbers of its own, and the address tells which', async () => {
    const { id } = await runToEnd(server, { cmd: 'echo one; sleep 0.1; echo two >&2; sleep 0.1; echo three' })
    const { page, close } = await open(id)
    await waitForRow(page, 3)
    expect(await button(page, 'other').count()).toBe(0)
    await button(page, 'stderr').click()
    await waitForRows(page, 'standard error', (rows) => rows.length === 1)
    expect(await seenRows(page)).toEqual([{ number: 1, text: 'two' }])
    expect(queryOf(page)).toBe('output_type=stderr')
    await page.reload()
    await waitForRows(page, 'standard error', (rows) => rows.length === 1)
    await button(page, 'stdout').click()
    await waitForRow(page, 2)
    expect(await seenRows(page)).toEqual([
      { number: 1, text: 'one' },
      { number: 2, text: 'three' },
    ])
    await page.goBack()
    await waitForRows(page, 'standard error', (rows) => rows.length === 1)
    await button(page, 'all').click()
    await waitForRow(page, 3)
    await close()
  })

  fullOnly(it)('has the time of each line when it is asked for', async () => {
    const { id } = await runToEnd(server, { cmd: 'echo one; sleep 0.2; echo two' })
    const { body } = await server.call<OutputLines>('GET', `/v1/executions/${id}/output/lines`)
    const { page, close } = await open(id)
    await waitForRow(page, 2)
    expect(await list(page).locator('time').count()).toBe(0)
    await button(page, 'Times').click()
    const times = await list(page)
      .locator('time')
      .evaluateAll((all) => all.map((time) => [time.getAttribute('datetime'), time.textContent]))
    expect(times).toEqual(body.lines.map(({ timestamp }) => [timestamp, timestamp.slice(11, 23)]))
    expect(queryOf(page)).toBe('times=1')
    await button(page, 'Times').click()
    await waitFor('no times', async () => (await list(page).locator('time').count()) === 0)
    await close()
  })

  fullOnly(it)('is the beginning of a line that is very long; the rest is had by asking for it', async () => {
    const { id } = await runToEnd(server, {
      cmd: `echo before; head -c 1000000 /dev/zero | tr '\\0' x; echo; echo after`,
    })
    const { page, close } = await open(id)
    const rows = await waitForRow(page, 3)
    expect(rows.map(({ text }) => text.length < 3000)).toEqual([true, true, true])
    expect([rows[0]?.text, rows[2]?.text]).toEqual(['before', 'after'])
    await row(page, 2).getByRole('button', { name: 'show all' }).click()
    const panel = pane(page).getByRole('region', { name: 'Line 2' })
    const text = panel.getByRole('group', { name: 'Line text' })
    const length = (): Promise<number> => text.evaluate((element) => element.textContent?.length ?? 0)
    await panel.getByText('of 1.0 MB').waitFor()
    const first = await length()
    await panel.getByRole('button', { name: 'Show more' }).click()
    await waitFor('more of the line', async () => (await length()) > first)
    await panel.getByRole('button', { name: 'Next line' }).click()
    const third = pane(page).getByRole('region', { name: 'Line 3' })
    await third.getByText('after', { exact: true }).waitFor()
    await page.keyboard.press('Escape')
    await third.waitFor({ state: 'detached' })
    await close()
  })

  fullOnly(it)('is text, whatever the bytes were', async () => {
    const { id } = await runToEnd(server, { cmd: `printf 'a\\377b\\n\\303\\n\\000zero\\n\\360\\237\\230\\200\\nend'` })
    const { page, close } = await open(id)
    await waitForRow(page, 5)
    expect((await seenRows(page)).map(({ text }) => text)).toEqual(['a\ufffdb', '\ufffd', 'zero', '😀', 'end'])
    await close()
  })

  fullOnly(it)('of an action that this server keeps no output of: that is said', async () => {
    await withApp({ settings: { 'actionrunner.stream_output': 'False' } }, async (other) => {
      const { id } = await runToEnd(other, { cmd: 'echo a' })
      const { page, close } = await openOutput(browser, other.urls.api, id)
      await pane(page).getByText('The server stores no output').waitFor()
      expect(await list(page).count()).toBe(0)
      await close()
    })
  })

  fullOnly(it)('of an execution that there is not: that is said', async () => {
    const { page, close } = await browser.open(`${server.urls.api}/#/history/${unknownId}/output`)
    await page.getByText('Execution not found').waitFor()
    expect(await pane(page).count()).toBe(0)
    await close()
  })
})

describe('a search', () => {
  it('finds lines all over a large output, and goes from one to the next', async () => {
    const { page, close } = await open(many)
    await waitForRow(page, LINES)
    await list(page).focus()
    await page.keyboard.press('Home')
    await waitForRow(page, 1)
    await searchField(page).fill('milestone')
    await found(page).getByText('1 of 100 lines').waitFor()
    await waitForRow(page, 1000)
    const current = list(page).locator('[data-current]')
    expect(await current.locator('mark').allInnerTexts()).toEqual(['Milestone'])
    for (const [key, place] of [
      ['Enter', 2],
      ['Enter', 3],
      ['Shift+Enter', 2],
      ['Shift+Enter', 1],
      ['Shift+Enter', 100],
      ['Enter', 1],
    ] as const) {
      await searchField(page).press(key)
      await found(page).getByText(`${place} of 100 lines`).waitFor()
      await waitForRow(page, place * 1000)
      expect(await current.locator('.output-number').innerText()).toBe(String(place * 1000))
    }
    await button(page, 'Next').click()
    await waitForRow(page, 2000)
    await button(page, 'Previous').click()
    await waitForRow(page, 1000)
    await close()
  })

  fullOnly(it)('says when there is nothing, minds the case when told to, and takes patterns', async () => {
    const { page, close } = await open(many)
    await searchField(page).fill('no such text')
    await found(page).getByText('Not found').waitFor()
    await searchField(page).fill('milestone 7')
    // 7, and 70 to 79.
    await found(page).getByText('of 11 lines').waitFor()
    await button(page, 'Match case').click()
    await found(page).getByText('Not found').waitFor()
    await button(page, 'Match case').click()
    await button(page, 'Regular expression').click()
    await searchField(page).fill('milestone [78]$')
    await found(page).getByText('of 2 lines').waitFor()
    await searchField(page).fill('milestone (')
    await pane(page).getByRole('alert').getByText('is invalid').waitFor()
    await searchField(page).press('Escape')
    await waitFor('no search', () => !queryOf(page).includes('find='))
    expect(await list(page).locator('mark').count()).toBe(0)
    await close()
  })

  fullOnly(it)('is in the address, and looks at what the filter shows', async () => {
    const { id } = await runToEnd(server, { cmd: 'echo needle; sleep 0.1; echo another needle >&2' })
    const { page, close } = await open(id, '?find=NEEDLE&output_type=stderr')
    await found(page).getByText('1 of 1 line').waitFor()
    await button(page, 'all').click()
    await found(page).getByText('1 of 2 lines').waitFor()
    await button(page, 'Match case').click()
    await found(page).getByText('Not found').waitFor()
    expect(queryOf(page)).toBe('find=NEEDLE&find_case=1')
    await close()
  })
})

fullOnly(describe)('lines that are pointed at', () => {
  it('have an address: a click, a shift-click, and whoever opens it sees them', async () => {
    const { page, close } = await open(many, '?line=50000')
    const before = await waitForRow(page, 50_000)
    await row(page, 50_003).getByRole('link').click()
    await waitFor('the address', () => queryOf(page) === 'line=50003')
    await row(page, 50_007)
      .getByRole('link')
      .click({ modifiers: ['Shift'] })
    await waitFor('the address', () => queryOf(page) === 'line=50003-50007')
    // What somebody points at stays where it is.
    expect(await seenRows(page)).toEqual(before)
    const chosen = list(page).locator('[data-chosen] .output-number')
    expect(await chosen.allInnerTexts()).toEqual(['50003', '50004', '50005', '50006', '50007'])

    const other = await browser.open(page.url())
    const rows = await waitForRow(other.page, 50_003)
    expect(rows.find(({ number }) => number === 50_003)?.text).toBe('line 50003 of many')
    await other.page.getByText('Lines 50003-50007').waitFor()
    await other.close()
    await close()
  })

  it('are gone to by number, and by the buttons of the browser', async () => {
    const { page, close } = await open(many)
    await waitForRow(page, LINES)
    const go = pane(page).getByLabel('Go to line')
    for (const [typed, line] of [
      ['77,777', 77_777],
      ['3', 3],
      ['999999999', LINES],
    ] as const) {
      await go.fill(typed)
      await go.press('Enter')
      await waitForRow(page, line)
    }
    await page.goBack()
    await waitForRow(page, 3)
    await page.goBack()
    await waitForRow(page, 77_777)
    expect(queryOf(page)).toBe('line=77777')
    await close()
  })

  it('are copied, as they are shown', async () => {
    const { id } = await runToEnd(server, { cmd: `printf 'one\\n\\033[31mtwo\\033[0m\\nthree\\nfour\\n'` })
    const { page, close } = await open(id, '?line=2-3', { permissions: ['clipboard-read', 'clipboard-write'] })
    await button(page, 'Copy').click()
    await page.getByText('Lines copied.').waitFor()
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe('two\nthree')
    await button(page, 'Clear selection').click()
    await waitFor('no line', () => queryOf(page) === '')
    await close()
  })

  it('are seen with those before them', async () => {
    const { page, close } = await open(many, '?line=50000')
    const rows = await waitForRow(page, 50_000)
    expect(rows[0]?.number).toBeLessThan(49_998)
    await page.goto(page.url().replace('50000', '3'))
    await page.reload()
    await waitForRow(page, 3)
    expect((await seenRows(page))[0]?.number).toBe(1)
    await close()
  })

  it('may be more than there are', async () => {
    const { id } = await runToEnd(server, { cmd: 'seq 1 5' })
    const { page, close } = await open(id, '?line=900')
    await waitForRow(page, 5)
    await pane(page).getByText('(there are 5)').waitFor()
    expect(await button(page, 'Copy').isDisabled()).toBe(true)
    await close()
  })
})

fullOnly(describe)('a download', () => {
  it('has every byte of what is shown', async () => {
    const file = join(server.basePath, 'bytes')
    const text = `plain\n\u001b[31mred\u001b[0m\ttab\r\n😀 ${'x'.repeat(100_000)}\n\nno end`
    writeFileSync(file, text)
    const { id } = await runToEnd(server, { cmd: `cat ${file}; sleep 0.1; echo trouble >&2` })
    const { page, close } = await open(id)
    await waitForRow(page, 5)
    for (const [filter, name, bytes] of [
      ['all', `${id}.txt`, `${text}trouble\n`],
      ['stdout', `${id}.stdout.txt`, text],
      ['stderr', `${id}.stderr.txt`, 'trouble\n'],
    ] as const) {
      await button(page, filter).click()
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        pane(page).getByRole('link', { name: 'Download' }).click(),
      ])
      expect(download.suggestedFilename()).toBe(name)
      expect((await readFile(await download.path())).equals(Buffer.from(bytes))).toBe(true)
    }
    await close()
  })
})

fullOnly(describe)('output that is removed while somebody looks at it', () => {
  it('is said to be gone, and the page does not lose its head', async () => {
    await withApp({}, async (other) => {
      const { id } = await runToEnd(other, { cmd: 'seq 1 20000' })
      const { page, close } = await openOutput(browser, other.urls.api, id)
      await waitForRow(page, 20_000)
      const { status } = await other.call('POST', '/v1/purge/output', { before: '2999-01-01T00:00:00Z' })
      expect(status).toBe(200)
      // Where it has not been: what it has seen it still shows.
      await list(page).evaluate((element) => (element.scrollTop = element.scrollHeight / 2))
      await pane(page).getByText('the retention time of its output is over').waitFor()
      await page.reload()
      await pane(page).getByText('the retention time of its output is over').waitFor()
      await close()
    })
  })
})

fullOnly(describe)('by keyboard alone', () => {
  it('everything is reached', async () => {
    const more = gate()
    const id = await begin(server, `seq 1 300; echo needle; seq 302 600; ${more.wait}; echo last`)
    const { page, close } = await open(id)
    await waitForRow(page, 600)
    // In whatever is before it, Tab leads to the list, and on behind it.
    await searchField(page).focus()
    await waitFor('the list to have the focus', async () => {
      await page.keyboard.press('Tab')
      return list(page).evaluate((element) => element === document.activeElement)
    })
    await page.keyboard.press('PageUp')
    await phase(page).getByText('Live, paused').waitFor()
    await waitForRest(page)
    await page.keyboard.press('f')
    await phase(page).getByText('Live', { exact: true }).waitFor()
    await waitForRow(page, 600)

    await page.keyboard.press('Control+f')
    await page.keyboard.type('needle')
    await found(page).getByText('1 of 1 line').waitFor()
    await waitForRow(page, 301)
    // The search ends, and the keys are for the list again.
    await page.keyboard.press('Escape')
    await page.keyboard.press('Home')
    await waitForRow(page, 1)

    await pane(page).getByLabel('Go to line').focus()
    await page.keyboard.type('42')
    await page.keyboard.press('Enter')
    await waitForRow(page, 42)
    await list(page).focus()
    await page.keyboard.press('Enter')
    const panel = pane(page).getByRole('region', { name: 'Line 42' })
    await panel.getByText('42', { exact: true }).waitFor()
    await page.keyboard.press('Escape')
    await panel.waitFor({ state: 'detached' })
    expect(await list(page).evaluate((element) => element === document.activeElement)).toBe(true)
    await page.keyboard.press('End')
    more.pass()
    await waitForRow(page, 601)
    await close()
  })

  it('Tab passes the list in few steps, however many lines it shows', async () => {
    const { page, close } = await open(many)
    await waitForRow(page, LINES)
    await list(page).focus()
    await page.keyboard.press('Tab')
    expect(await list(page).evaluate((element) => element.contains(document.activeElement))).toBe(false)
    await close()
  })
})

fullOnly(describe)('on a phone', () => {
  it('nothing is wider than the screen but the lines, which have most of it', async () => {
    const { id } = await runToEnd(server, {
      cmd: `printf 'wide %0300d\\n' 7; sleep 0.1; echo trouble >&2; seq 1 200`,
    })
    const { page, close } = await open(id, '?times=1&find=trouble&line=2', phone)
    await waitForRow(page, 2)
    await found(page).getByText('1 of 1 line').waitFor()
    const widths = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth])
    expect(widths).toEqual([375, 375])
    const box = await list(page).boundingBox()
    expect(box?.height).toBeGreaterThan(250)
    const scrolled = await list(page).evaluate((element) => {
      element.scrollLeft = 500
      return element.scrollLeft
    })
    expect(scrolled).toBe(500)
    await row(page, 2).locator('.output-text').tap()
    const panel = pane(page).getByRole('region', { name: 'Line 2' })
    await panel.getByText('trouble').waitFor()
    await panel.getByRole('button', { name: 'Close line' }).tap()
    await panel.waitFor({ state: 'detached' })
    await close()
  })
})
