/** The output in the browser when the way to the server breaks, or the server itself does: no line is lost, none comes twice. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startCuttingProxy } from '../helpers/cutting-proxy.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { linesIn } from '../helpers/output-rows.ts'
import { startServer, waitForStatus, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { startBrowser, type TestBrowser } from './browser.ts'
import { begin, found, openOutput, pane, phase, readAll, waitForRow, waitForRows } from './output-pane.ts'

let folder: TemporaryFolder
let server: TestServer
let browser: TestBrowser

beforeAll(async () => {
  folder = makeFolder()
  ;[server, browser] = await Promise.all([startServer({ basePath: folder.path }), startBrowser()])
})

afterAll(async () => {
  await browser.close()
  await server.stop()
  folder.remove()
})

/** Prints its numbers until it is told to end. @returns how that is told */
function counting(name: string): { cmd: string; end: () => void } {
  const file = join(folder.path, name)
  return {
    cmd: `i=0; until [ -e ${file} ]; do i=$((i + 1)); echo $i; sleep 0.005; done; echo the end`,
    end: () => writeFileSync(file, ''),
  }
}

/** One that has not been read yet. */
async function goToLine(page: Page, number: number): Promise<void> {
  await pane(page).getByLabel('Go to line').fill(String(number))
  await page.keyboard.press('Enter')
}

async function storedLines(id: string): Promise<string[]> {
  return linesIn((await server.call<string>('GET', `/v1/executions/${id}/output`)).text)
}

/** As it was before, at the same address. */
async function startAgain(): Promise<void> {
  const port = new URL(server.urls.api).port
  server = await startServer({ basePath: folder.path, settings: { 'api.port': port } })
}

describe('a connection', () => {
  it('that is cut again and again costs no line', async () => {
    const proxy = await startCuttingProxy(server.urls.api, Infinity)
    const { cmd, end } = counting('cut')
    const id = await begin(server, cmd)
    const { page, close } = await openOutput(browser, `http://127.0.0.1:${proxy.port}`, id)
    for (let round = 0; round < 3; round++) {
      await phase(page).getByText('Live', { exact: true }).waitFor()
      const before = (await storedLines(id)).length
      // Not that very line, which passes by.
      await waitForRows(page, 'the lines so far', (rows) => (rows.at(-1)?.number ?? 0) >= before)
      proxy.shut()
      await phase(page).getByText('Reconnecting').waitFor()
      await waitFor('more lines', async () => (await storedLines(id)).length > before + 20)
      proxy.open()
    }
    end()
    await waitForStatus(server, id)
    await phase(page).getByText('Complete').waitFor()
    const stored = await storedLines(id)
    await waitForRow(page, stored.length)
    expect(await readAll(page)).toEqual(stored)
    await close()
    await proxy.stop()
  })

  it('that is cut while lines are read: they come when it is there again', async () => {
    const proxy = await startCuttingProxy(server.urls.api, Infinity)
    const id = await begin(server, 'seq 1 50000')
    await waitForStatus(server, id)
    const { page, close } = await openOutput(browser, `http://127.0.0.1:${proxy.port}`, id)
    await waitForRow(page, 50_000)
    proxy.shut()
    await goToLine(page, 25_000)
    await pane(page).getByRole('alert').getByText('Could not read lines, retrying').waitFor()
    proxy.open()
    const rows = await waitForRow(page, 25_000)
    expect(rows.every(({ number, text }) => text === String(number))).toBe(true)
    await pane(page).getByRole('alert').waitFor({ state: 'detached' })
    await close()
    await proxy.stop()
  })

  it('that is cut during a search: that is said, and the search goes on when it is told to', async () => {
    const proxy = await startCuttingProxy(server.urls.api, Infinity)
    const id = await begin(server, 'seq 1 1000; echo needle')
    await waitForStatus(server, id)
    const { page, close } = await openOutput(browser, `http://127.0.0.1:${proxy.port}`, id)
    await waitForRow(page, 1001)
    proxy.shut()
    await pane(page).getByLabel('Search the output').fill('needle')
    const search = pane(page).getByRole('search')
    await search.getByRole('alert').waitFor()
    proxy.open()
    await search.getByRole('button', { name: 'Continue' }).click()
    await found(page).getByText('1 of 1 line').waitFor()
    expect(await search.getByRole('alert').count()).toBe(0)
    await close()
    await proxy.stop()
  })
})

describe('a server', () => {
  it('that is killed while it runs, and starts again: all that was stored is shown, once', async () => {
    const { cmd, end } = counting('killed')
    const id = await begin(server, cmd)
    const { page, close } = await openOutput(browser, server.urls.api, id)
    await waitForRows(page, 'a hundred lines', (rows) => (rows.at(-1)?.number ?? 0) > 100)
    await server.stop('SIGKILL')
    await phase(page).getByText('Reconnecting').waitFor()
    await startAgain()
    const { status } = await waitForStatus(server, id)
    expect(status).toBe('abandoned')
    await phase(page).getByText('Complete').waitFor()
    const stored = await storedLines(id)
    expect(stored.length).toBeGreaterThan(100)
    await waitForRow(page, stored.length)
    expect(await readAll(page)).toEqual(stored)
    end()
    await close()
  })

  it('that starts again afterwards: the page goes on with what it has not read yet', async () => {
    const id = await begin(server, 'seq 1 50000')
    await waitForStatus(server, id)
    const { page, close } = await openOutput(browser, server.urls.api, id)
    await waitForRow(page, 50_000)
    await server.stop()
    await goToLine(page, 25_000)
    await pane(page).getByRole('alert').getByText('Could not read lines').waitFor()
    await startAgain()
    const rows = await waitForRow(page, 25_000)
    expect(rows.every(({ number, text }) => text === String(number))).toBe(true)
    await close()
  })
})
