/** The program behind `cli.ts`, once a fitting Node runs it. */
import { runProgram } from './cli/program.ts'

process.exitCode = await runProgram(process.argv.slice(2))
