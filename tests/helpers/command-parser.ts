/** Parses command lines of `svc` and of its other names without running them. */
import { CommanderError } from 'commander'
import { CliCommand } from '../../src/cli/command.ts'
import { commands, readCommand } from '../../src/cli/commands/index.ts'
import { UnknownCommand } from '../../src/cli/failures.ts'
import { addGlobalOptions } from '../../src/cli/options.ts'
import { argumentsFor } from '../../src/cli/program-names.ts'

/** The whole program, with commands that do nothing. */
async function createParser(): Promise<CliCommand> {
  const program = disarm(addGlobalOptions(new CliCommand('svc')))
  for (const entry of commands) {
    const command = await readCommand(entry)
    program.addCommand(disarm(command).name(entry.name))
  }
  return program
}

function disarm(command: CliCommand): CliCommand {
  command.configureOutput({ writeErr: () => undefined, writeOut: () => undefined })
  if (command.commands.length === 0) command.action(() => undefined)
  for (const child of command.commands) disarm(child as CliCommand)
  return command
}

/** Why the parser rejects the words; undefined for a valid command line. */
export async function problemOf(words: readonly string[]): Promise<string | undefined> {
  const [program = '', ...args] = words
  const parser = await createParser()
  try {
    await parser.parseAsync(argumentsFor(program, args), { from: 'user' })
  } catch (error) {
    if (error instanceof UnknownCommand) return error.message
    if (!(error instanceof CommanderError)) throw error
    return error.exitCode === 0 ? undefined : error.message
  }
  return undefined
}
