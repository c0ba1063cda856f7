/** The server side of one PAM helper process (`pam-helper.ts`). */
import { spawn, type ChildProcess } from 'node:child_process'
import { Socket } from 'node:net'
import { commandOf, locateCode } from '../../../core/bundle.ts'
import type { Log } from '../../../lib/log/index.ts'
import { type ProcessReader, listPids, type ProcessRow } from '../../../runners/index.ts'
import type { PamQuestion, PamReport } from './pam-helper.ts'
import { readJson, writeJson } from '../../../lib/json/index.ts'

/** Far above the size of the groups of one account. */
const MAX_REPORT_CHARACTERS = 4 * 1024 * 1024
/** Logged characters of the standard error of one helper. */
const MAX_LOGGED_CHARACTERS = 16 * 1024
const MAX_LINE_CHARACTERS = 1000
/** Wait for the end of the pipe, which a process started by a module can keep open. */
const LINGER_MS = 100
const MAX_KILL_ROUNDS = 8

export interface PamHelperOptions {
  service: string
  /** The PAM library as the dynamic linker finds it. */
  library: string
  log: Log
}

interface Expected {
  resolve(report: PamReport): void
  reject(error: Error): void
}

/** A helper process. It handles one request at a time. */
export class PamHelper {
  /** Resolves when the process and everything it started has ended. */
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
  /** Password of the last request, to mask it in the log. */
  #password = ''
  #words = ''
  #loggedCharacters = 0

  constructor({ service, library, log }: PamHelperOptions, reader: ProcessReader) {
    this.#reader = reader
    this.#log = log
    const { file, flags, program } = commandOf(locateCode('./pam-helper', import.meta.url))
    // An empty environment, so that the environment of the server cannot influence PAM. A session of its own, so that
    // Ctrl-C in a terminal reaches the server only.
    const child = spawn(file, [...flags, program, service, library, String(process.pid)], {
      cwd: '/',
      env: {},
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    child.once('error', (error) => this.#fail(new Error(`could not start the PAM helper: ${error.message}`)))
    // Despite its type, undefined if too many files are open.
    const stdio: readonly unknown[] | undefined = child.stdio
    const channel = stdio?.[3]
    if (child.pid === undefined || !(channel instanceof Socket)) throw new Error('could not start the PAM helper')
    this.#sockets = child.stdio.filter((stream) => stream instanceof Socket)
    this.#channel = channel
    channel.setEncoding('utf8').on('data', (text: string) => this.#receive(text))
    // The exit event reports a process that ended.
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

  /** Whether the helper can handle no further request. */
  get hasFailed(): boolean {
    return this.#failure !== undefined
  }

  async ask(question: PamQuestion, limitMs: number): Promise<PamReport> {
    this.#isBusy = true
    this.#ref()
    if (question.kind === 'check') this.#password = question.password
    this.#channel.write(`${writeJson(question)}\n`)
    return this.nextReport(limitMs)
  }

  /** @throws if the process ends or does not respond in time */
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

  /** Lets the server exit until the next request. */
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
      // SIGSTOP keeps it from starting processes while svc kills those that its modules have started.
      this.#child.kill('SIGSTOP')
      // Processes that svc cannot find, for example because no file can be opened, end by themselves.
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
      this.#fail(new Error('the response of the PAM helper is too long'))
    }
    for (const line of lines) {
      const report = readReport(line)
      if (report === undefined) this.#fail(new Error('the socket of the PAM helper contains invalid data'))
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
    // A module can print the password.
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
    const report = readJson(line) as PamReport // written by `pam-helper.ts`
    return report
  } catch {
    return undefined
  }
}

/**
 * Descendants of the first process of the family, without that process, and the members of their sessions, whose
 * parents can be dead. Adds their pids to the family.
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
