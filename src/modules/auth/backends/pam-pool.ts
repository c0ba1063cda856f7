/** The processes that ask PAM (`pam-helper.ts`): a few, started when needed, ended when idle, replaced when they die. */
import { spawn, type ChildProcess } from 'node:child_process'
import { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { shuttingDown } from '../../../errors.ts'
import type { Log } from '../../../log.ts'
import { createProcessReader, type ProcessReader } from '../../../runners/process/process-reader.ts'
import { listPids, type ProcessRow } from '../../../runners/process/process-table.ts'
import { threadFile } from '../../../thread.ts'
import { createGate } from '../gate.ts'
import type { PamQuestion, PamReport, PamVerdict } from './pam-helper.ts'

/** A process takes about 11 MB, and a check some milliseconds to a tenth of a second, unless a module asks another machine. */
const MAX_HELPERS = 4
const MAX_WAITING = 64
const IDLE_MS = 30_000
const START_LIMIT_MS = 30_000
const CHECK_LIMIT_MS = 60_000
/** Much more than the groups of one account. */
const MAX_REPORT_CHARACTERS = 4 * 1024 * 1024
/** Of what modules write to the standard error of one process. */
const MAX_LOGGED_CHARACTERS = 16 * 1024
const MAX_LINE_CHARACTERS = 1000
/** Something a module left behind may hold the pipe open. */
const LINGER_MS = 100
const MAX_KILL_ROUNDS = 8

export interface PamPoolOptions {
  service: string
  /** The PAM library as the dynamic linker finds it. */
  library: string
  log: Log
  /** How long one check may take before its process is ended; default 60 seconds. */
  checkLimitMs?: number
  /** After how long without a question a process is ended; default 30 seconds. */
  idleMs?: number
}

export interface PamPool {
  /** Starts the first process. @throws Error with the reason why the library cannot be used */
  start(): Promise<void>
  /**
   * Takes as long as the service wants a refusal to take, which keeps no process from the next check; whoever calls bounds
   * how many wait so. @throws when it cannot be found out; QUEUE_FULL, SHUTTING_DOWN
   */
  check(user: string, password: string): Promise<PamVerdict>
  /** Names; empty if there is no such account. @throws as `check` */
  groupsOf(user: string): Promise<string[]>
  /** Ends all processes, and those that modules have started in them; idempotent. */
  stop(): Promise<void>
}

export function createPamPool(options: PamPoolOptions): PamPool {
  const { checkLimitMs = CHECK_LIMIT_MS, idleMs = IDLE_MS } = options
  const gate = createGate('logins', MAX_HELPERS, MAX_WAITING)
  const reader = createProcessReader()
  const helpers = new Set<PamHelper>()
  const idle: { helper: PamHelper; timer: NodeJS.Timeout }[] = []
  const stopping = new AbortController()

  async function startHelper(): Promise<PamHelper> {
    const helper = new PamHelper(options, reader)
    helpers.add(helper)
    void helper.ended.then(() => {
      helpers.delete(helper)
      forget(helper)
    })
    try {
      const first = await helper.nextReport(START_LIMIT_MS)
      if (first.kind === 'unusable') throw new Error(first.reason)
      return helper
    } catch (error) {
      await helper.kill()
      throw error
    }
  }

  function forget(helper: PamHelper): void {
    const at = idle.findIndex((resting) => resting.helper === helper)
    for (const { timer } of at === -1 ? [] : idle.splice(at, 1)) clearTimeout(timer)
  }

  function rest(helper: PamHelper): void {
    helper.unref()
    const timer = setTimeout(() => {
      forget(helper)
      void helper.kill()
    }, idleMs)
    timer.unref()
    idle.push({ helper, timer })
  }

  /** The one used last, so that the others come to their end. */
  function takeIdle(): PamHelper | undefined {
    for (let resting = idle.pop(); resting !== undefined; resting = idle.pop()) {
      clearTimeout(resting.timer)
      if (!resting.helper.hasFailed) return resting.helper
    }
    return undefined
  }

  async function withHelper<T>(use: (helper: PamHelper) => Promise<T>): Promise<T> {
    return gate.pass(async () => {
      if (stopping.signal.aborted) throw shuttingDown()
      let helper = takeIdle()
      try {
        helper ??= await startHelper()
        const answer = await use(helper)
        rest(helper)
        return answer
      } catch (error) {
        await helper?.kill()
        throw stopping.signal.aborted ? shuttingDown() : error
      }
    })
  }

  async function ask(question: PamQuestion): Promise<PamReport> {
    const report = await withHelper((helper) => helper.ask(question, checkLimitMs))
    if (report.kind === 'failed') throw new Error(report.reason)
    return report
  }

  return {
    start: () => withHelper(() => Promise.resolve()),
    async check(user, password) {
      const report = await ask({ kind: 'check', user, password })
      if (report.kind !== 'verdict') throw unexpected(report)
      const { verdict, delayMs } = report
      if (delayMs > 0)
        await delay(Math.min(delayMs, checkLimitMs), undefined, { signal: stopping.signal }).catch(refuse)
      return verdict
    },
    async groupsOf(user) {
      const report = await ask({ kind: 'groups', user })
      if (report.kind !== 'groups') throw unexpected(report)
      return report.groups
    },
    async stop() {
      stopping.abort()
      await Promise.all([...helpers].map((helper) => helper.kill()))
      await reader.stop()
    },
  }
}

function refuse(): never {
  throw shuttingDown()
}

function unexpected(report: PamReport): Error {
  return new Error(`the PAM helper gave an answer of the kind "${report.kind}"`)
}

interface Expected {
  resolve(report: PamReport): void
  reject(error: Error): void
}

class PamHelper {
  /** Resolves when nothing of the process is left. */
  readonly ended: Promise<void>
  readonly #child: ChildProcess
  readonly #sockets: Socket[]
  readonly #channel: Socket
  readonly #reader: ProcessReader
  readonly #log: Log
  readonly #reports: PamReport[] = []
  #expected: Expected | undefined
  #received = ''
  #failure: Error | undefined
  #killed: Promise<void> | undefined
  #isBusy = true
  /** Of the last question, to be kept out of the log. */
  #password = ''
  #words = ''
  #loggedCharacters = 0

  constructor({ service, library, log }: PamPoolOptions, reader: ProcessReader) {
    this.#reader = reader
    this.#log = log
    const file = fileURLToPath(threadFile('./pam-helper', import.meta.url))
    // An empty environment: PAM decides who gets in, and nothing of the server's must have a say or be passed on. A session
    // of its own: the interrupt key of a terminal is for the server alone.
    const child = spawn(process.execPath, [file, service, library, String(process.pid)], {
      cwd: '/',
      env: {},
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    child.once('error', (error) => this.#fail(new Error(`the PAM helper could not be started: ${error.message}`)))
    // Missing, whatever its type says, when there are too many open files.
    const stdio: readonly unknown[] | undefined = child.stdio
    const channel = stdio?.[3]
    if (child.pid === undefined || !(channel instanceof Socket)) throw new Error('the PAM helper could not be started')
    this.#sockets = child.stdio.filter((stream) => stream instanceof Socket)
    this.#channel = channel
    channel.setEncoding('utf8').on('data', (text: string) => this.#receive(text))
    // A process that is gone is told by its end.
    channel.on('error', () => undefined)
    child.stderr?.setEncoding('utf8').on('data', (text: string) => this.#collectWords(text))
    child.stderr?.on('error', () => undefined)
    this.ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.#fail(new Error(`the PAM helper ended (${signal ?? `exit code ${code}`})`))
        const timer = setTimeout(() => this.#sockets.forEach((socket) => socket.destroy()), LINGER_MS)
        child.once('close', () => clearTimeout(timer))
      })
      child.once('close', () => {
        this.#logWords(this.#words)
        resolve()
      })
    })
  }

  /** Nothing more can be asked, as after its end. */
  get hasFailed(): boolean {
    return this.#failure !== undefined
  }

  async ask(question: PamQuestion, limitMs: number): Promise<PamReport> {
    this.#isBusy = true
    this.#ref()
    if (question.kind === 'check') this.#password = question.password
    this.#channel.write(`${JSON.stringify(question)}\n`)
    return this.nextReport(limitMs)
  }

  /** @throws when the process ends before, or says nothing in time */
  async nextReport(limitMs: number): Promise<PamReport> {
    const timer = setTimeout(
      () => this.#fail(new Error(`the PAM helper did not answer within ${limitMs / 1000} seconds`)),
      limitMs,
    )
    try {
      return await new Promise<PamReport>((resolve, reject) => {
        const first = this.#reports.shift()
        if (first !== undefined) resolve(first)
        else if (this.#failure !== undefined) reject(this.#failure)
        else this.#expected = { resolve, reject }
      })
    } finally {
      clearTimeout(timer)
      this.#expected = undefined
    }
  }

  /** Until the next question it does not keep this process running. */
  unref(): void {
    this.#isBusy = false
    this.#child.unref()
    for (const socket of this.#sockets) socket.unref()
  }

  #ref(): void {
    this.#child.ref()
    for (const socket of this.#sockets) socket.ref()
  }

  kill(): Promise<void> {
    this.#killed ??= this.#kill()
    return this.#killed
  }

  async #kill(): Promise<void> {
    const { pid } = this.#child
    this.#ref()
    if (pid !== undefined && this.#isBusy) {
      // Stopped, it cannot start further processes while those are ended that its modules have started.
      this.#child.kill('SIGSTOP')
      // Those that cannot be found, as when no file can be opened, come to their own end.
      await this.#killStarted(pid).catch(() => undefined)
    }
    this.#child.kill('SIGKILL')
    await this.ended
  }

  async #killStarted(pid: number): Promise<void> {
    const family = new Set([pid])
    for (let round = 0; round < MAX_KILL_ROUNDS; round++) {
      const started = findFamily(family, await this.#reader.rows(await listPids()))
      if (started.length === 0) return
      await this.#reader.signal(started, 'SIGKILL')
    }
  }

  #receive(text: string): void {
    this.#received += text
    const lines = this.#received.split('\n')
    this.#received = lines.pop() ?? ''
    if (this.#received.length > MAX_REPORT_CHARACTERS) {
      this.#received = ''
      this.#fail(new Error('the PAM helper gave too long an answer'))
    }
    for (const line of lines) {
      const report = readReport(line)
      if (report === undefined) this.#fail(new Error('something else than the PAM helper wrote to its socket'))
      else if (this.#expected === undefined) this.#reports.push(report)
      else this.#expected.resolve(report)
      this.#expected = undefined
    }
  }

  #fail(error: Error): void {
    this.#failure ??= error
    this.#expected?.reject(this.#failure)
  }

  #collectWords(text: string): void {
    this.#words += text
    // A module may say what it was given.
    if (this.#password !== '') this.#words = this.#words.replaceAll(this.#password, '********')
    const lines = this.#words.split('\n')
    const last = lines.pop() ?? ''
    this.#words = last.length > MAX_LINE_CHARACTERS ? '' : last
    for (const line of this.#words === '' ? [...lines, last] : lines) this.#logWords(line)
  }

  #logWords(line: string): void {
    const words = line.trim().slice(0, MAX_LINE_CHARACTERS)
    if (words === '' || this.#loggedCharacters > MAX_LOGGED_CHARACTERS) return
    this.#loggedCharacters += words.length
    this.#log.warning('auth.pam_output', 'A PAM module wrote to its standard error.', { output: words })
  }
}

function readReport(line: string): PamReport | undefined {
  try {
    const report: PamReport = JSON.parse(line) // written by `pam-helper.ts`
    return report
  } catch {
    return undefined
  }
}

/**
 * Descendants of the first of the family, which is left out itself, and their sessions: these keep those together whose
 * parents are dead already. Adds their pids to the family.
 */
function findFamily(family: Set<number>, rows: readonly (ProcessRow | undefined)[]): ProcessRow[] {
  const [first] = family
  const found = new Map<number, ProcessRow>()
  let size = -1
  while (found.size > size) {
    size = found.size
    for (const row of rows) {
      if (row === undefined || !row.alive || row.pid === first) continue
      if (!family.has(row.ppid) && !family.has(row.sid)) continue
      family.add(row.pid)
      found.set(row.pid, row)
    }
  }
  return [...found.values()]
}
