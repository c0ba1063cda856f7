/**
 * Plays golden data of workflows against svc: `npm run golden -- <folder>`. Prints `NAME: n agree, n differ` for each file,
 * and each difference. tests/golden-workflows/on-purpose.ts says why rows of tests/golden/workflows differ.
 */
import { playFolder } from '../tests/golden-workflows/players.ts'
import { printTally } from '../tests/golden-workflows/tally.ts'

const [folder] = process.argv.slice(2)
if (folder === undefined) {
  process.stderr.write('Name the folder with the golden data: npm run golden -- <folder>\n')
  process.exitCode = 2
} else {
  for await (const tally of playFolder(folder)) process.stdout.write(`${printTally(tally)}\n`)
}
