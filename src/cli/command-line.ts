/** One command line from its words to the exit code of the process. */
import { exitCodes } from './exit-codes.ts'
import { writeFilesWhole } from './output/whole-files.ts'
import { argumentsFor } from './program-names.ts'
import { runProgram } from './program.ts'

export async function runCommandLine(): Promise<void> {
  writeFilesWhole()
  const [, program = '', ...args] = process.argv
  process.exitCode = await runProgram(argumentsFor(program, args))
  // Not even `process.exit` gives up looking for the address of a host, which may take half a minute. This signal does,
  // and to a shell it is the same exit code.
  const isLookingUp = process.getActiveResourcesInfo().includes('GetAddrInfoReqWrap')
  if (process.exitCode === exitCodes.interrupted && isLookingUp) {
    process.removeAllListeners('SIGINT')
    process.kill(process.pid, 'SIGINT')
  }
}
