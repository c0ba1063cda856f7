/** Asks questions: on a terminal, secrets without echo; else a line of standard input each. Questions go to standard error. */
import { StringDecoder } from 'node:string_decoder'
import type { ReadStream } from 'node:tty'
import { CliFailure, Interrupted } from '../failures.ts'

/** No secret is longer. */
const MAX_LENGTH = 64 * 1024

const ESCAPE = '\u001b'
const CTRL_U = '\u0015'
/** A character, or what a terminal sends for a key without one. */
const keyPattern = new RegExp(`^(?:${ESCAPE}[[O][0-?]*[ -/]*[@-~]|[^])`, 'u')

export interface SecretInput {
  /** @throws CliFailure when nothing was given, Interrupted */
  ask(question: string): Promise<string>
  /** What may be left out: empty when nothing was given. @param isSecret not shown while it is typed @throws Interrupted */
  askFor(question: string, isSecret: boolean): Promise<string>
  /** For a new secret: a person types it twice. @throws as `ask`, CliFailure when the two differ */
  askTwice(question: string): Promise<string>
  /** One of these keys, at a terminal; empty for Enter. @throws Interrupted */
  askKey(question: string, keys: string): Promise<string>
  /** Somebody sees the questions. */
  isTerminal(): boolean
  /** There is no further answer. */
  hasEnded(): boolean
  /** There was no answer to any question, not even an empty line. */
  isUnused(): boolean
  /** Standard input is let go. */
  close(): void
}

export type Input = NodeJS.ReadableStream & Partial<Pick<ReadStream, 'isTTY' | 'setRawMode'>>

export interface SecretInputOptions {
  /** Standard input, opened for the first question. */
  readonly open: () => Input
  /** Aborted by Ctrl-C that comes as a signal. */
  interrupted: AbortSignal
  /** Writes to standard error. */
  readonly note: (text: string) => void
}

export function openSecretInput({ open, interrupted, note }: SecretInputOptions): SecretInput {
  const decoder = new StringDecoder('utf8')
  let opened: Input | undefined
  let rest = ''
  let isAtEnd = false
  let isEmpty = true
  let failure: CliFailure | undefined
  let wake = (): void => undefined

  // It may end, or fail, between two questions.
  const onData = (chunk: Buffer | string): void => {
    isEmpty = false
    rest += typeof chunk === 'string' ? chunk : decoder.write(chunk)
    wake()
  }
  const onEnd = (): void => {
    isAtEnd = true
    wake()
  }
  const onError = (error: Error): void => {
    failure = new CliFailure(`Standard input cannot be read: ${error.message}`)
    wake()
  }
  const onAbort = (): void => wake()

  function openInput(): Input {
    if (opened !== undefined) return opened
    opened = open()
    interrupted.addEventListener('abort', onAbort)
    return opened.on('data', onData).on('end', onEnd).on('error', onError)
  }

  /** More of the input is in `rest`, or there is no more. */
  async function readMore(input: Input): Promise<void> {
    const woken = new Promise<void>((resolve) => (wake = resolve))
    input.resume()
    if (!interrupted.aborted && failure === undefined && !isAtEnd) await woken
    input.pause()
    if (interrupted.aborted) throw new Interrupted()
    if (failure !== undefined) throw failure
  }

  async function readLine(input: Input): Promise<string> {
    for (;;) {
      const end = rest.indexOf('\n')
      if (end !== -1 || isAtEnd) {
        const line = end === -1 ? rest : rest.slice(0, end)
        rest = end === -1 ? '' : rest.slice(end + 1)
        return line.replace(/\r$/, '')
      }
      if (rest.length > MAX_LENGTH) throw new CliFailure('The line on standard input is too long for an answer.')
      await readMore(input)
    }
  }

  async function readKeys(input: Input): Promise<string> {
    const typed: string[] = []
    for (;;) {
      const key = keyPattern.exec(rest)?.[0]
      if (key === undefined) {
        if (isAtEnd) return typed.join('')
        await readMore(input)
        continue
      }
      rest = rest.slice(key.length)
      if (key === '\r' || key === '\n') return typed.join('')
      if (key === '\u0003') throw new Interrupted()
      // Ctrl-D.
      if (key === '\u0004') {
        if (typed.length === 0) return ''
        continue
      }
      if (key === '\u007f' || key === '\b') typed.pop()
      else if (key === CTRL_U) typed.length = 0
      // Arrows and the like are no text.
      else if (!/^\p{Cc}/u.test(key) && typed.length < MAX_LENGTH) typed.push(key)
    }
  }

  async function readHidden(input: Input, question: string): Promise<string> {
    // First, so that what is typed at the sight of the question is not shown.
    const release = takeKeys(input, () => {
      // Nobody remembers how much was typed before.
      rest = CTRL_U
      note(`${question}: `)
    })
    try {
      note(`${question}: `)
      return await readKeys(input)
    } finally {
      release()
      note('\n')
    }
  }

  async function readKey(input: Input, keys: string): Promise<string> {
    for (;;) {
      const key = keyPattern.exec(rest)?.[0].toLowerCase()
      if (key === undefined) {
        if (isAtEnd) return ''
        await readMore(input)
        continue
      }
      rest = rest.slice(key.length)
      if (key === '\u0003') throw new Interrupted()
      if (key === '\r' || key === '\n' || key === '\u0004') return ''
      if (keys.includes(key)) return key
    }
  }

  async function askFor(question: string, isSecret: boolean): Promise<string> {
    const input = openInput()
    if (input.isTTY !== true) return readLine(input)
    if (isSecret) return readHidden(input, question)
    note(`${question}: `)
    return readLine(input)
  }

  async function ask(question: string): Promise<string> {
    const secret = await askFor(question, true)
    if (secret !== '') return secret
    throw new CliFailure(
      opened?.isTTY === true
        ? 'Nothing was typed.'
        : `${question}: standard input is no terminal to type it at, and has no further line. Write it there, as with "< file".`,
    )
  }

  return {
    ask,
    askFor,
    async askTwice(question) {
      const secret = await ask(question)
      if (opened?.isTTY === true && (await ask(`${question} again`)) !== secret) {
        throw new CliFailure('The two passwords differ; nothing was changed.')
      }
      return secret
    },
    async askKey(question, keys) {
      const input = openInput()
      const release = takeKeys(input, () => note(`${question} `))
      try {
        note(`${question} `)
        return await readKey(input, keys)
      } finally {
        release()
      }
    },
    isTerminal: () => openInput().isTTY === true,
    hasEnded: () => isAtEnd && rest === '',
    isUnused: () => isEmpty,
    close() {
      interrupted.removeEventListener('abort', onAbort)
      opened?.off('data', onData).off('end', onEnd).off('error', onError).pause()
    },
  }
}

/** After which Node leaves a terminal as it is, other than after those that end a process from the keyboard. */
const leavingSignals = ['SIGHUP', 'SIGQUIT', 'SIGALRM', 'SIGUSR2'] as const

/**
 * Has the terminal give every key, unseen.
 *
 * @param askAgain called when the process goes on after it was stopped, for which the shell had its own way with the terminal
 * @returns has it as before, which also a signal does that ends the process
 */
function takeKeys(input: Input, askAgain: () => void): () => void {
  if (input.setRawMode === undefined) return () => undefined
  const goOn = (): void => {
    // Node believes that nothing has changed, and would do nothing.
    input.setRawMode?.(false)
    input.setRawMode?.(true)
    askAgain()
  }
  const release = (): void => {
    process.off('SIGCONT', goOn)
    for (const signal of leavingSignals) process.off(signal, end)
    input.setRawMode?.(false)
  }
  const end = (signal: NodeJS.Signals): void => {
    release()
    process.kill(process.pid, signal)
  }
  for (const signal of leavingSignals) process.on(signal, end)
  process.on('SIGCONT', goOn)
  input.setRawMode(true)
  return release
}

/** Lends standard input to a command. */
export async function withSecretInput<T>(
  { interrupted, note }: Pick<SecretInputOptions, 'interrupted' | 'note'>,
  work: (input: SecretInput) => Promise<T>,
): Promise<T> {
  const input = openSecretInput({ open: () => process.stdin, interrupted, note })
  try {
    return await work(input)
  } finally {
    input.close()
  }
}
