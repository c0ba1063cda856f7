/** What one command of the client works with: settings, connection, output; and how it ends. */
import { once } from 'node:events'
import { cliProcess, widthOf } from './cli-process.ts'
import { checkArgumentBytes } from './argument-bytes.ts'
import { createClient, type Client, type ClientOptions, type ClientLogin } from './connection/client.ts'
import { exitCodes } from './exit-codes.ts'
import type { CommonFlags } from './options.ts'
import { isColored, printable, toJson, toJsonLine } from './output/print.ts'
import { createProgressLine, type Progress, type ProgressLine } from './output/progress.ts'
import { loadSettings, type LoadedSettings, type Settings } from './connection/settings.ts'
import { toYaml } from './output/yaml.ts'
import { outliveTerminal } from './terminal.ts'

export type OutputForm = 'human' | 'json' | 'yaml'

/** Where a command says what it has to say, and in which form. */
interface Output {
  readonly form: OutputForm
  readonly isColored: boolean
  /** Columns of the terminal; undefined when the output goes somewhere else. */
  readonly terminalWidth: number | undefined
  /** Writes to standard output; wait for it when there may be much. */
  print(text: string): Promise<void>
  /** JSON or YAML, as asked for. */
  printMachine(value: unknown): Promise<void>
  /** One of many records that come one after the other: a line of JSON, or a document of YAML. */
  printRecordLine(value: unknown): Promise<void>
  /** Writes to standard error. */
  readonly note: (text: string) => void
  /** Writes a line to standard error that says what may go wrong. */
  readonly warn: (text: string) => void
  /**
   * Says at the bottom of the terminal what is being waited for, and since when; elsewhere nothing. It is stopped with the
   * command at the latest.
   */
  progress(text: string): Progress
  /** Whatever is printed waits while a person is asked something. @returns lets it be printed */
  holdOutput(): () => void
}

export interface Session extends Output {
  readonly settings: Settings
  readonly client: Client
  /** Aborted by Ctrl-C; every request then fails with Interrupted. */
  readonly interrupted: AbortSignal
  /**
   * Has Ctrl-C call this, in place of ending the command.
   *
   * @returns has Ctrl-C end the command again
   */
  takeInterrupts(handler: () => void): () => void
  /** Ends the command as Ctrl-C does. */
  interrupt(): void
}

/** What `program.ts` gives to the commands. */
export interface CommandContext {
  /** Flags given before the command. */
  globals(): CommonFlags
  readonly setExitCode: (code: number) => void
  /** Prints what `svc --help` does. */
  readonly showHelp: () => Promise<void>
}

export interface SessionOptions {
  /** For commands that log in themselves. Default false. */
  withoutLogin?: boolean
  /** Default: what the flags, the environment and the configuration file say. */
  loaded?: Pick<LoadedSettings, 'settings' | 'warnings'>
}

/** A client that logs in by itself where no credential is given. */
export async function openClient(
  settings: Settings,
  { withoutLogin = false, ...options }: SessionOptions & Pick<ClientOptions, 'interrupted' | 'warn' | 'debug'>,
): Promise<Client> {
  const { account, credential } = settings
  let login: ClientLogin | undefined
  if (!withoutLogin && credential === undefined && account !== undefined) {
    const { createLogin } = await import('./connection/login.ts')
    const createToken: Client['createToken'] = (...args) => client.createToken(...args)
    login = createLogin({ settings, account, createToken, warn: options.warn })
  }
  const client = createClient({ settings, login, env: cliProcess().env, ...options })
  return client
}

/** Runs the action of a command. @param work resolves with the exit code */
export async function withSession(
  context: CommandContext,
  flags: CommonFlags,
  work: (session: Session) => Promise<number>,
  { withoutLogin = false, loaded }: SessionOptions = {},
): Promise<void> {
  checkArgumentBytes()
  const { stderr, env } = cliProcess()
  const { settings, warnings } = loaded ?? loadSettings({ ...context.globals(), ...flags }, env)
  const line = createProgressLine(stderr, env)
  const output = createOutput(flags, line)
  for (const warning of warnings) output.warn(warning)
  const interrupts = new Interrupts()
  const { signal: interrupted } = interrupts
  const debug = (text: string): void => output.note(`${text}\n`)
  const client = await openClient(settings, { withoutLogin, interrupted, warn: output.warn, debug })
  interrupts.listen()
  const endWithTerminal = outliveTerminal()
  try {
    const exitCode = await work({
      ...output,
      settings,
      client,
      interrupted,
      takeInterrupts: (handler) => interrupts.take(handler),
      interrupt: () => interrupts.interrupt(),
    })
    context.setExitCode(exitCode)
  } finally {
    line.close()
    interrupts.close()
    endWithTerminal()
    client.close()
  }
}

function createOutput({ json, yaml }: CommonFlags, line: ProgressLine): Output {
  const { stdout, stderr, env } = cliProcess()
  const form: OutputForm = json === true ? 'json' : yaml === true ? 'yaml' : 'human'
  const toDocument = (value: unknown): string => `---\n${toYaml(value, { sortKeys: true })}`
  let held: Promise<void> | undefined
  const print = async (text: string): Promise<void> => {
    await held
    if (stdout.isTTY) line.makeWay(text)
    if (!stdout.write(text)) await once(stdout, 'drain')
  }
  const note = (text: string): void => {
    line.makeWay(text)
    stderr.write(text)
  }
  return {
    form,
    isColored: isColored(stdout, env),
    terminalWidth: widthOf(stdout),
    print,
    printMachine: (value) => print(form === 'yaml' ? toDocument(value) : `${toJson(value)}\n`),
    printRecordLine: (value) => print(form === 'yaml' ? toDocument(value) : `${toJsonLine(value)}\n`),
    note,
    warn: (text) => note(`WARNING: ${printable(text)}\n`),
    progress: (text) => line.start(text),
    holdOutput() {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = promise
      return () => {
        held = undefined
        resolve()
      }
    },
  }
}

/** One key press reaches the client from the terminal, and once more from the older Node that started it. */
const SAME_SIGNAL_MS = 500

/** Ctrl-C: the first one ends what the command does, unless somebody has taken it; the next one ends the process. */
class Interrupts {
  readonly #process = cliProcess()
  readonly #abort = new AbortController()
  #heardAt: number | undefined
  #handler: (() => void) | undefined

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  listen(): void {
    this.#process.on('SIGINT', this.#hear)
  }

  take(handler: () => void): () => void {
    this.#handler = handler
    return () => {
      this.#handler = undefined
    }
  }

  interrupt(): void {
    this.#abort.abort()
  }

  /**
   * After a signal the listener stays: when it comes a second time, the process must not end before everything is
   * printed.
   */
  close(): void {
    if (this.#heardAt === undefined) this.#process.off('SIGINT', this.#hear)
  }

  readonly #hear = (): void => {
    const at = performance.now()
    if (this.#heardAt !== undefined && at - this.#heardAt <= SAME_SIGNAL_MS) return
    this.#heardAt = at
    if (this.signal.aborted) this.#process.exit(exitCodes.interrupted)
    if (this.#handler === undefined) this.interrupt()
    else this.#handler()
  }
}
