/** The program behind `cli.ts`, once a fitting Node runs it. */
import { runCommandLine } from './command-line.ts'

await runCommandLine()
