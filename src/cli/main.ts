/** The program behind `cli.ts`, once a fitting Node runs it. */
import { runThisProcess } from './command-line.ts'

await runThisProcess()
