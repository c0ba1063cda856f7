/** One command line from its words to its exit code. */
import { cliProcess, withCliProcess, type CliProcess } from './cli-process.ts'
import { exitCodes } from './exit-codes.ts'
import { writeFilesSynchronously } from './output/file-output.ts'
import { calledAsStackstorm } from '../core/compat/index.ts'
import { argumentsFor, isCalledAsStackstorm } from './program-names.ts'
import { runProgram } from './program.ts'

/**
 * Runs a command line inside another program. `serve` needs a process of its own, and so does what starts programs at the
 * same terminal, such as `manual`.
 *
 * @returns the exit code
 */
export function runCommandLine(given: CliProcess): Promise<number> {
  return withCliProcess(given, runWords)
}

/** Runs the command line of this process, which ends with its exit code. */
export async function runThisProcess(): Promise<void> {
  writeFilesSynchronously()
  process.exitCode = await runWords()
  // Not even `process.exit` gives up looking for the address of a host, which may take half a minute. This signal does,
  // and to a shell it is the same exit code.
  const isLookingUp = process.getActiveResourcesInfo().includes('GetAddrInfoReqWrap')
  if (process.exitCode === exitCodes.interrupted && isLookingUp) {
    process.removeAllListeners('SIGINT')
    process.kill(process.pid, 'SIGINT')
  }
}

function runWords(): Promise<number> {
  const { argv, env } = cliProcess()
  const [, program = '', ...args] = argv
  // Whoever calls it by StackStorm's names means its names and files, also in what this process starts.
  if (isCalledAsStackstorm()) env[calledAsStackstorm] = 'True'
  return runProgram(argumentsFor(program, args))
}
