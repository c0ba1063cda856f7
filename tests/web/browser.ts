/** Chromium from Debian's packages, and pages in it that fail their test for whatever a page of ours must not do. */
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { waitFor } from '../helpers/wait.ts'

const PROGRAM = '/usr/bin/chromium-headless-shell'

export interface TestBrowser {
  /**
   * A page of its own: no cookies, nothing stored. It is closed with the browser at the latest.
   *
   * @param url of the API listener, with what stands behind the `#`
   */
  open(url: string, options?: BrowserContextOptions): Promise<TestPage>
  /** Closes every page. @throws what any of them did that it must not */
  close(): Promise<void>
}

export interface TestPage {
  readonly page: Page
  /**
   * What went wrong in the page so far: scripts that failed or were kept from running, requests to anybody but its server.
   * Read by `close`, too.
   */
  readonly problems: () => string[]
  /** Closes the page. @throws unless it had no problems */
  readonly close: () => Promise<void>
}

export interface BrowserOptions {
  /** Further ones of Chromium. */
  arguments?: string[]
  /** Scroll bars, which can be dragged; without a screen Chromium has none. Default false. */
  showsScrollBars?: boolean
}

export async function startBrowser(options: BrowserOptions = {}): Promise<TestBrowser> {
  await ensureDebianPackage('chromium-headless-shell', PROGRAM)
  await ensureDebianPackage('fonts-dejavu-core', '/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf')
  const browser = await chromium.launch({
    executablePath: PROGRAM,
    // As root there is no sandbox.
    chromiumSandbox: false,
    ...(options.showsScrollBars === true && { ignoreDefaultArgs: ['--hide-scrollbars'] }),
    args: [
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      ...(options.arguments ?? []),
    ],
  })
  const pages: TestPage[] = []
  return {
    async open(url, contextOptions = {}) {
      const page = await openPage(browser, url, contextOptions)
      pages.push(page)
      return page
    },
    async close() {
      const problems = pages.flatMap((page) => page.problems())
      await browser.close()
      if (problems.length > 0) throw new Error(`Pages had problems:\n${problems.join('\n')}`)
    },
  }
}

/** Resolves once the screen shows this text, or has it in a field. */
export function waitForText(page: Page, text: string): Promise<boolean> {
  const seen = `(() => {
    const main = document.querySelector('main')
    const fields = [...(main?.querySelectorAll('input, select, textarea') ?? [])].map(({ value }) => value)
    return [main?.innerText, ...fields].some((shown) => shown?.includes(${JSON.stringify(text)}))
  })()`
  return waitFor(`the text ${text}`, () => page.evaluate<boolean>(seen))
}

/** Links, buttons and fields that are beside the window, and what has more than its width shows. */
export function hiddenIn(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`(() => {
    const name = (element) => (element.tagName + ' ' + element.innerText).slice(0, 60)
    const controls = [...document.querySelectorAll('a:not(.skip), button, input, select, textarea')]
      .filter((element) => element.checkVisibility() && !element.closest('[role="row"]'))
      .filter((element) => {
        const { left, right, width } = element.getBoundingClientRect()
        return width > 1 && (left < -1 || right > innerWidth + 1)
      })
    const wide = [...document.querySelectorAll('html, main, nav, .table-scroll:not(.chart-table)')]
      .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth + 1)
    return [...controls, ...wide].map(name)
  })()`)
}

async function openPage(browser: Browser, url: string, options: BrowserContextOptions): Promise<TestPage> {
  const context = await browser.newContext({ locale: 'en-GB', timezoneId: 'UTC', ...options })
  const page = await context.newPage()
  const found: string[] = []
  page.on('pageerror', (error) => found.push(`error: ${error.stack ?? error.message}`))
  page.on('console', (message) => {
    // The browser reports each refused request itself, as an error of the page.
    const isRefusal = message.text().startsWith('Failed to load resource')
    if (message.type() === 'error' && !isRefusal) found.push(`console: ${message.text()}`)
  })
  page.on('dialog', (dialog) => {
    found.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  let origin: string | undefined
  page.on('request', (request) => {
    const address = request.url()
    // Its server is the one that it is opened on.
    if (request.isNavigationRequest()) origin ??= new URL(address).origin
    if (!address.startsWith(`${origin}/`) && !address.startsWith('data:') && !address.startsWith('blob:')) {
      found.push(`request to elsewhere: ${address}`)
    }
  })
  await page.exposeBinding('reportViolation', (_, violation: string) => {
    found.push(`content security policy: ${violation}`)
  })
  // As text: whoever imports this file need not know what is in a browser.
  await page.addInitScript({
    content: `document.addEventListener('securitypolicyviolation', (event) => {
      globalThis.reportViolation(event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sample)
    })`,
  })
  await page.goto(url)
  return {
    page,
    problems: () => [...found],
    async close() {
      await context.close()
      if (found.length > 0) throw new Error(`The page had problems:\n${found.join('\n')}`)
    },
  }
}
