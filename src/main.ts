/** The program behind `cli.ts`, once a fitting Node runs it. */
import { argumentsFor } from './cli/program-names.ts'
import { runProgram } from './cli/program.ts'

const [, program = '', ...args] = process.argv
process.exitCode = await runProgram(argumentsFor(program, args))
