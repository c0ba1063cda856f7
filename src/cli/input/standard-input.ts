/** Reads standard input: lines, or keys of a terminal. */
import type { ReadStream } from 'node:tty'
import { cliProcess } from '../cli-process.ts'
import { CliFailure, Interrupted } from '../failures.ts'

/** No answer is longer. */
export const MAX_LENGTH = 64 * 1024

const ESCAPE = '\u001b'
const CTRL_C = '\u0003'
/** A character, or what a terminal sends for a key without one. */
const keyPattern = new RegExp(`^(?:${ESCAPE}[[O][0-?]*[ -/]*[@-~]|[^])`, 'u')

export type Input = NodeJS.ReadableStream & Partial<Pick<ReadStream, 'isTTY' | 'setRawMode'>>

export class StandardInput {
  readonly #open: () => Input
  readonly #interrupted: AbortSignal
  readonly #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  #stream: Input | undefined
  /** What has come, and is not read yet. */
  #rest = ''
  #isAtEnd = false
  #isEmpty = true
  #failure: CliFailure | undefined
  #wake = (): void => undefined

  /**
   * @param open called when something is to be read for the first time
   * @param interrupted aborted by Ctrl-C that comes as a signal
   */
  constructor(open: () => Input, interrupted: AbortSignal) {
    this.#open = open
    this.#interrupted = interrupted
  }

  get isTerminal(): boolean {
    return this.#opened().isTTY === true
  }

  /** There is nothing more to read. */
  get hasEnded(): boolean {
    return this.#isAtEnd && this.#rest === ''
  }

  /** Nothing has come, not even an empty line. */
  get isUnused(): boolean {
    return this.#isEmpty
  }

  /** The next line without its end; at the end of the input it is empty. @throws CliFailure, Interrupted */
  async readLine(): Promise<string> {
    for (;;) {
      const end = this.#rest.indexOf('\n')
      if (end !== -1 || this.#isAtEnd) {
        const line = end === -1 ? this.#rest : this.#rest.slice(0, end)
        this.#rest = end === -1 ? '' : this.#rest.slice(end + 1)
        return line.replace(/\r$/, '')
      }
      if (this.#rest.length > MAX_LENGTH) {
        throw new CliFailure('The line on standard input is too long.')
      }
      await this.#readMore()
    }
  }

  /** The next key: a character, or a sequence that begins with ESC; undefined at the end. @throws CliFailure, Interrupted */
  async readKey(): Promise<string | undefined> {
    for (;;) {
      const key = keyPattern.exec(this.#rest)?.[0]
      if (key !== undefined) {
        this.#rest = this.#rest.slice(key.length)
        if (key === CTRL_C) throw new Interrupted()
        return key
      }
      if (this.#isAtEnd) return undefined
      await this.#readMore()
    }
  }

  /** Has this key count in place of what has come and is not read yet. */
  replaceRest(key: string): void {
    this.#rest = key
  }

  /**
   * Has the terminal give every key, unseen.
   *
   * @param askAgain called when the process continues after a stop, during which the shell changed the mode of the
   *   terminal
   * @returns has the terminal as before, which also a signal does that ends the process
   */
  takeKeys(askAgain: () => void): () => void {
    return takeKeys(this.#opened(), askAgain)
  }

  close(): void {
    this.#interrupted.removeEventListener('abort', this.#onAbort)
    this.#stream?.off('data', this.#onData).off('end', this.#onEnd).off('error', this.#onError).pause()
  }

  #opened(): Input {
    if (this.#stream !== undefined) return this.#stream
    this.#stream = this.#open()
    this.#interrupted.addEventListener('abort', this.#onAbort)
    // It may end, or fail, between two questions.
    return this.#stream.on('data', this.#onData).on('end', this.#onEnd).on('error', this.#onError)
  }

  /** More of the input is there to be read, or there is no more. */
  async #readMore(): Promise<void> {
    const input = this.#opened()
    const woken = new Promise<void>((resolve) => (this.#wake = resolve))
    input.resume()
    if (!this.#interrupted.aborted && this.#failure === undefined && !this.#isAtEnd) await woken
    input.pause()
    if (this.#interrupted.aborted) throw new Interrupted()
    if (this.#failure !== undefined) throw this.#failure
  }

  readonly #onData = (chunk: Buffer | string): void => {
    this.#isEmpty = false
    if (typeof chunk === 'string') this.#rest += chunk
    else this.#decode(chunk)
    this.#wake()
  }

  readonly #onEnd = (): void => {
    this.#decode()
    this.#isAtEnd = this.#failure === undefined
    this.#wake()
  }

  /** Without a chunk: there is no more. */
  #decode(chunk?: Buffer): void {
    try {
      this.#rest += this.#decoder.decode(chunk, { stream: chunk !== undefined })
    } catch {
      this.#failure = new CliFailure('Standard input is not UTF-8.')
    }
  }

  readonly #onError = (error: Error): void => {
    this.#failure = new CliFailure(`Cannot read standard input: ${error.message}`)
    this.#wake()
  }

  readonly #onAbort = (): void => this.#wake()
}

/** After which Node leaves a terminal as it is, other than after those that end a process from the keyboard. */
const leavingSignals = ['SIGHUP', 'SIGQUIT', 'SIGALRM', 'SIGUSR2'] as const

/** `StandardInput.takeKeys`, of a terminal or of something else, where there is nothing to do. */
function takeKeys(input: Input, askAgain: () => void): () => void {
  if (input.setRawMode === undefined) return () => undefined
  const ownProcess = cliProcess()
  const goOn = (): void => {
    // Node believes that nothing has changed, and would do nothing.
    input.setRawMode?.(false)
    input.setRawMode?.(true)
    askAgain()
  }
  const release = (): void => {
    ownProcess.off('SIGCONT', goOn)
    for (const signal of leavingSignals) ownProcess.off(signal, end)
    input.setRawMode?.(false)
  }
  const end = (signal: NodeJS.Signals): void => {
    release()
    ownProcess.kill(signal)
  }
  for (const signal of leavingSignals) ownProcess.on(signal, end)
  ownProcess.on('SIGCONT', goOn)
  input.setRawMode(true)
  return release
}
