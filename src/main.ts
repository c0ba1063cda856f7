/** The program behind `cli.ts`, once a fitting Node runs it. */
import { exitCodes } from './cli/exit-codes.ts'
import { writeFilesWhole } from './cli/output/whole-files.ts'
import { argumentsFor } from './cli/program-names.ts'
import { runProgram } from './cli/program.ts'

writeFilesWhole()
const [, program = '', ...args] = process.argv
process.exitCode = await runProgram(argumentsFor(program, args))
// Not even `process.exit` gives up looking for the address of a host, which may take half a minute. This signal does, and
// to a shell it is the same exit code.
const isLookingUp = process.getActiveResourcesInfo().includes('GetAddrInfoReqWrap')
if (process.exitCode === exitCodes.interrupted && isLookingUp) {
  process.removeAllListeners('SIGINT')
  process.kill(process.pid, 'SIGINT')
}
