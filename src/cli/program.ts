/** The commander program: global flags, lazily loaded commands, exit codes. */
import { CommanderError, type Command } from 'commander'
import { cliProcess } from './cli-process.ts'
import { hasCode } from '../lib/process/index.ts'
import { version } from '../core/version.ts'
import { CliCommand } from './command.ts'
import { commands, loadCommand, programs, type CommandEntry } from './commands/index.ts'
import { exitCodes } from './exit-codes.ts'
import { CliFailure, Interrupted, NotFound, UnknownCommand } from './failures.ts'
import { addGlobalOptions, type CommonFlags } from './options.ts'
import { printable } from './output/print.ts'
import type { CommandContext } from './session.ts'

interface GlobalFlags extends CommonFlags {
  version?: boolean
  printConfig?: boolean
}

/** Placeholder of a command whose code is not loaded yet; passes all arguments on to it. */
class LazyCommand extends CliCommand {
  override parseOptions(argv: string[]): ReturnType<Command['parseOptions']> {
    return { operands: [...argv], unknown: [] }
  }
}

/** Runs one command line. @returns the exit code */
export async function runProgram(args: string[]): Promise<number> {
  // The listener stays: output may still be pending when the command has ended.
  const { stdout, stderr } = cliProcess()
  if (stdout.listenerCount('error', endWithOutput) === 0) stdout.on('error', endWithOutput)
  // A closed standard error does not change the result.
  if (stderr.listenerCount('error', ignore) === 0) stderr.on('error', ignore)
  let exitCode: number = exitCodes.ok
  const program = new CliCommand('svc')
    .description('Event-driven automation: run actions, follow their output, react to events.')
    .usage('[options] <command>')
    .listExamples()
  addGlobalOptions(program)
  const context: CommandContext = {
    globals: () => program.opts<GlobalFlags>(),
    setExitCode: (code) => {
      exitCode = code
    },
    showHelp: async () => {
      await addTopics(program)
      program.outputHelp()
    },
  }
  for (const entry of commands) program.addCommand(createLazyCommand(entry, context))
  for (const entry of programs) program.addCommand(createLazyCommand(entry, context), { hidden: true })
  program.addCommand(createCompleteCommand(program), { hidden: true })

  try {
    const leading = args.slice(0, leadingLength(args, program))
    if (leading.length === args.length) await addTopics(program)
    if (leading.some((arg) => arg === '--version' || arg === '--print-config')) {
      program.parseOptions(leading)
      return await answerFlag(program.opts<GlobalFlags>())
    }
    await program.parseAsync(args, { from: 'user' })
    return exitCode
  } catch (error) {
    return await report(error, program)
  }
}

/** How many arguments stand before the command. */
function leadingLength(args: readonly string[], program: CliCommand): number {
  let index = 0
  for (let length = -1; length !== 0 && args[index] !== '--' && index < args.length; index += length) {
    length = program.optionLength(args, index)
  }
  return Math.min(index, args.length)
}

function createLazyCommand(entry: CommandEntry, context: CommandContext): Command {
  const command = new LazyCommand(entry.name)
  if (entry.alias !== undefined) command.alias(entry.alias)
  return command
    .summary(entry.summary)
    .examples(entry.example)
    .helpGroup(entry.group)
    .helpOption(false)
    .argument('[arguments...]')
    .action(async (args: string[]) => {
      const { configFile } = context.globals()
      // Before such a command, --config-file names the server's configuration file.
      const before = entry.readsServerConfig === true && configFile !== undefined ? ['--config-file', configFile] : []
      if (entry.name === 'serve') {
        // The server keeps running when standard output is closed.
        cliProcess()
          .stdout.off('error', endWithOutput)
          .on('error', () => undefined)
      }
      const command = await loadCommand(entry, context)
      await command.parseAsync([...before, ...args], { from: 'user' })
    })
}

/** The hidden command that the completion scripts call. */
function createCompleteCommand(program: Command): Command {
  return new LazyCommand('__complete')
    .helpOption(false)
    .argument('[arguments...]')
    .action(async (args: string[]) => {
      const { answerShell } = await import('./completion/answer.ts')
      await answerShell(program, args)
    })
}

/** Adds the topics to the help of `svc`; loading them takes time that no other command needs. */
async function addTopics(program: CliCommand): Promise<void> {
  const { topics } = await import('./reference/topics.ts')
  program
    .list(
      'Topics:',
      topics.map(({ name, summary }) => ({ term: name, description: summary })),
    )
    .footer(
      'svc help <command> (or svc <command> --help) shows the help of a command; svc help <topic> explains a topic.',
    )
}

async function answerFlag(flags: GlobalFlags): Promise<number> {
  if (flags.version === true) {
    const { printVersion } = await import('./commands/version.ts')
    return printVersion(flags, version)
  }
  const { loadSettings } = await import('./connection/settings.ts')
  const { env, stdout, stderr } = cliProcess()
  const { text, warnings } = loadSettings(flags, env)
  for (const warning of warnings) stderr.write(`WARNING: ${printable(warning)}\n`)
  stdout.write(text)
  return exitCodes.configPrinted
}

/** Prints an error (contract 09, 9.1). @returns the exit code */
async function report(error: unknown, program: Command): Promise<number> {
  const { stdout, stderr } = cliProcess()
  // Commander has printed it already.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
  if (error instanceof Interrupted) return exitCodes.interrupted
  if (error instanceof UnknownCommand) {
    const { path, word, rest, known } = error
    const { suggestCommands } = await import('./suggestions.ts')
    const suggestion = await suggestCommands(path, word, rest, known)
    stderr.write(`error: ${error.message}\n${suggestion}(svc help${path.slice('svc'.length)} lists the commands)\n`)
    return error.exitCode
  }
  if (error instanceof NotFound) {
    stdout.write(`${error.message}\n\n`)
    stderr.write(error.suggestion)
    return error.exitCode
  }
  const message = error instanceof Error ? error.message : String(error)
  stdout.write(`ERROR: ${printable(message)}\n`)
  if (error instanceof CliFailure) return error.exitCode
  if (program.opts<GlobalFlags>().debug === true && error instanceof Error) stderr.write(`${error.stack}\n`)
  return exitCodes.failed
}

function ignore(): void {
  // Standard error is closed: there is nowhere to report to.
}

/** Ends the process when its output cannot be written: the reader has gone, as with `| head`, or the disk is full. */
function endWithOutput(error: Error): void {
  const { stderr, exit } = cliProcess()
  if (hasCode(error, 'EPIPE')) return exit(exitCodes.outputClosed)
  stderr.write(`ERROR: Cannot write the output: ${error.message}\n`)
  exit(exitCodes.failed)
}
