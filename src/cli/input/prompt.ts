/** Prompts for values: on a terminal, secrets without echo; otherwise reads one line of standard input each. Prompts go to standard error. */
import { cliProcess } from '../cli-process.ts'
import { CliFailure } from '../failures.ts'
import { MAX_LENGTH, StandardInput, type Input } from './standard-input.ts'

const CTRL_D = '\u0004'
const CTRL_U = '\u0015'

export interface SecretInput {
  /** @throws CliFailure when nothing was given, Interrupted */
  ask(question: string): Promise<string>
  /** What may be left out: empty when nothing was given. @param isSecret not shown while it is typed @throws Interrupted */
  askFor(question: string, isSecret: boolean): Promise<string>
  /** For a new secret: a person types it twice. @throws as `ask`, CliFailure when the two differ */
  askTwice(question: string): Promise<string>
  /** One of these keys, at a terminal; empty for Enter. @throws Interrupted */
  askKey(question: string, keys: string): Promise<string>
  /** Whether the prompts are shown on a terminal. */
  isTerminal(): boolean
  /** Whether the input has ended. */
  hasEnded(): boolean
  /** There was no answer to any question, not even an empty line. */
  isUnused(): boolean
  /** Standard input is let go. */
  close(): void
}

export interface SecretInputOptions {
  /** Standard input, opened for the first question. */
  readonly open: () => Input
  /** Aborted by Ctrl-C that comes as a signal. */
  interrupted: AbortSignal
  /** Writes to standard error. */
  readonly note: (text: string) => void
}

export function openSecretInput({ open, interrupted, note }: SecretInputOptions): SecretInput {
  const input = new StandardInput(open, interrupted)

  async function askHidden(question: string): Promise<string> {
    // First, so that what is typed at the sight of the question is not shown.
    const release = input.takeKeys(() => {
      // The user cannot see what was typed before.
      input.replaceRest(CTRL_U)
      note(`${question}: `)
    })
    try {
      note(`${question}: `)
      return await readTyped(input)
    } finally {
      release()
      note('\n')
    }
  }

  async function askFor(question: string, isSecret: boolean): Promise<string> {
    if (!input.isTerminal) return input.readLine()
    if (isSecret) return askHidden(question)
    note(`${question}: `)
    return input.readLine()
  }

  async function ask(question: string): Promise<string> {
    const secret = await askFor(question, true)
    if (secret !== '') return secret
    throw new CliFailure(
      input.isTerminal
        ? 'No input. Type a value.'
        : `${question}: standard input is not a terminal and has no more lines. Provide the value there, such as with "< file".`,
    )
  }

  return {
    ask,
    askFor,
    async askTwice(question) {
      const secret = await ask(question)
      if (input.isTerminal && (await ask(`${question} again`)) !== secret) {
        throw new CliFailure('The passwords do not match; nothing was changed.')
      }
      return secret
    },
    async askKey(question, keys) {
      const release = input.takeKeys(() => note(`${question} `))
      try {
        note(`${question} `)
        return await readOneOf(input, keys)
      } finally {
        release()
      }
    },
    isTerminal: () => input.isTerminal,
    hasEnded: () => input.hasEnded,
    isUnused: () => input.isUnused,
    close: () => input.close(),
  }
}

/** What is typed until Enter, with the keys that take it back. Ctrl-D ends it only where nothing is typed yet. */
async function readTyped(input: StandardInput): Promise<string> {
  const typed: string[] = []
  for (;;) {
    const key = await input.readKey()
    if (key === undefined || isEnter(key) || (key === CTRL_D && typed.length === 0)) return typed.join('')
    if (key === '\u007f' || key === '\b') typed.pop()
    else if (key === CTRL_U) typed.length = 0
    // Arrows and the like are no text.
    else if (!/^\p{Cc}/u.test(key) && typed.length < MAX_LENGTH) typed.push(key)
  }
}

/** One of these keys; empty for Enter, Ctrl-D and the end of the input. Others are passed over. */
async function readOneOf(input: StandardInput, keys: string): Promise<string> {
  for (;;) {
    const key = (await input.readKey())?.toLowerCase()
    if (key === undefined || isEnter(key) || key === CTRL_D) return ''
    if (keys.includes(key)) return key
  }
}

function isEnter(key: string): boolean {
  return key === '\r' || key === '\n'
}

/** Lends standard input to a command. */
export async function withSecretInput<T>(
  { interrupted, note }: Pick<SecretInputOptions, 'interrupted' | 'note'>,
  work: (input: SecretInput) => Promise<T>,
): Promise<T> {
  const input = openSecretInput({ open: () => cliProcess().stdin, interrupted, note })
  try {
    return await work(input)
  } finally {
    input.close()
  }
}
