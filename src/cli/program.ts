/** The commander program: global flags, lazily loaded commands, exit codes. */
import { Command, CommanderError } from 'commander'
import { commands } from './commands/index.ts'
import { exitCodes } from './exit-codes.ts'
import { version } from '../version.ts'

/** Runs one command line. @returns the exit code */
export async function runProgram(args: string[]): Promise<number> {
  let exitCode: number = exitCodes.ok
  const setExitCode = (code: number): void => {
    exitCode = code
  }
  const program = new Command('svc')
    .description('Event-driven automation: run actions, watch their output, react to events.')
    .version(version)
    .exitOverride()
  const wanted = args.find((arg) => !arg.startsWith('-'))
  for (const entry of commands) {
    if (entry.name === wanted) program.addCommand((await entry.load(setExitCode)).exitOverride())
    else program.command(entry.name).description(entry.summary)
  }
  try {
    await program.parseAsync(args, { from: 'user' })
    return exitCode
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
    process.stderr.write(`ERROR: ${error instanceof Error ? error.message : String(error)}\n`)
    return exitCodes.failed
  }
}
