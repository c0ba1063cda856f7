/** What one command of the client works with: settings, connection, output; and how it ends. */
import { once } from 'node:events'
import { createClient, type Client, type ClientOptions, type Login } from './connection/client.ts'
import { exitCodes } from './exit-codes.ts'
import type { CommonFlags } from './options.ts'
import { isColored, printable, toJson, toJsonLine } from './output/print.ts'
import { createProgressLine, type Progress } from './output/progress.ts'
import { loadSettings, type Settings } from './connection/settings.ts'
import { toYaml } from './output/yaml.ts'

export type OutputForm = 'human' | 'json' | 'yaml'

export interface Session {
  readonly settings: Settings
  readonly client: Client
  readonly form: OutputForm
  readonly isColored: boolean
  /** Columns of the terminal; undefined when the output goes somewhere else. */
  readonly terminalWidth: number | undefined
  /** Aborted by Ctrl-C; every request then fails with Interrupted. */
  readonly interrupted: AbortSignal
  /** Writes to standard output; wait for it when there may be much. */
  print(text: string): Promise<void>
  /** JSON or YAML, as asked for. */
  printMachine(value: unknown): Promise<void>
  /** One of many records that come while one waits: a line of JSON, or a document of YAML. */
  printRecordLine(value: unknown): Promise<void>
  /** Notes, on standard error. */
  note(text: string): void
  /**
   * Says at the bottom of the terminal what is being waited for, with the time since now; elsewhere nothing. Stopped with
   * the command at the latest.
   */
  progress(text: string): Progress
  /**
   * Has Ctrl-C call this, and not end the command; until it is let go.
   *
   * @returns lets it go
   */
  takeInterrupts(handler: () => void): () => void
  /** Ends the command as Ctrl-C does. */
  interrupt(): void
  /** Whatever is printed waits while a person is asked something. @returns lets it be printed */
  holdOutput(): () => void
}

/** What `program.ts` gives to the commands. */
export interface CommandContext {
  /** Flags given before the command. */
  globals(): CommonFlags
  readonly setExitCode: (code: number) => void
  /** Prints what `svc --help` does. */
  readonly showHelp: () => Promise<void>
}

/** One key press reaches the client from the terminal, and once more from the older Node that started it. */
const SAME_SIGNAL_MS = 500

export interface SessionOptions {
  /** For commands that log in themselves. Default false. */
  withoutLogin?: boolean
}

/** A client that logs in by itself where no credential is given. */
export async function openClient(
  settings: Settings,
  { withoutLogin = false, ...options }: SessionOptions & Pick<ClientOptions, 'interrupted' | 'warn' | 'debug'>,
): Promise<Client> {
  const { account, credential } = settings
  let login: Login | undefined
  if (!withoutLogin && credential === undefined && account !== undefined) {
    const { createLogin } = await import('./connection/login.ts')
    const createToken: Client['createToken'] = (...args) => client.createToken(...args)
    login = createLogin({ settings, account, createToken, warn: options.warn })
  }
  const client = createClient({ settings, login, env: process.env, ...options })
  return client
}

/** Runs the action of a command. @param work resolves with the exit code */
export async function withSession(
  context: CommandContext,
  flags: CommonFlags,
  work: (session: Session) => Promise<number>,
  { withoutLogin = false }: SessionOptions = {},
): Promise<void> {
  const { settings, warnings } = loadSettings({ ...context.globals(), ...flags }, process.env)
  const line = createProgressLine(process.stderr, process.env)
  const note = (text: string): void => {
    line.makeWay(text)
    process.stderr.write(text)
  }
  const warn = (text: string): void => note(`WARNING: ${printable(text)}\n`)
  for (const warning of warnings) warn(warning)

  const interruption = new AbortController()
  let signaledAt: number | undefined
  let taker: (() => void) | undefined
  const onSignal = (): void => {
    const at = performance.now()
    if (signaledAt !== undefined && at - signaledAt <= SAME_SIGNAL_MS) return
    signaledAt = at
    // A second Ctrl-C ends the process at once.
    if (interruption.signal.aborted) process.exit(exitCodes.interrupted)
    if (taker === undefined) interruption.abort()
    else taker()
  }

  const client = await openClient(settings, {
    withoutLogin,
    interrupted: interruption.signal,
    warn,
    debug: (text) => note(`${text}\n`),
  })
  const form: OutputForm = flags.json === true ? 'json' : flags.yaml === true ? 'yaml' : 'human'
  const toDocument = (value: unknown): string => `---\n${toYaml(value, { sortKeys: true })}`
  let held: Promise<void> | undefined
  const print = async (text: string): Promise<void> => {
    await held
    if (process.stdout.isTTY) line.makeWay(text)
    if (!process.stdout.write(text)) await once(process.stdout, 'drain')
  }
  const session: Session = {
    settings,
    client,
    form,
    isColored: isColored(process.stdout, process.env),
    // Some terminals say that they have no columns at all.
    terminalWidth: process.stdout.isTTY && process.stdout.columns > 0 ? process.stdout.columns : undefined,
    interrupted: interruption.signal,
    print,
    printMachine: (value) => print(form === 'yaml' ? toDocument(value) : `${toJson(value)}\n`),
    printRecordLine: (value) => print(form === 'yaml' ? toDocument(value) : `${toJsonLine(value)}\n`),
    note,
    progress: (text) => line.start(text),
    takeInterrupts(handler) {
      taker = handler
      return () => {
        taker = undefined
      }
    },
    interrupt: () => interruption.abort(),
    holdOutput() {
      let release = (): void => undefined
      held = new Promise((resolve) => {
        release = () => {
          held = undefined
          resolve()
        }
      })
      return release
    },
  }
  process.on('SIGINT', onSignal)
  try {
    context.setExitCode(await work(session))
  } finally {
    line.close()
    // What is left to print must outlive the repetition of a signal, too.
    if (signaledAt === undefined) process.off('SIGINT', onSignal)
    client.close()
  }
}
