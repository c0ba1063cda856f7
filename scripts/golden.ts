/**
 * Plays golden data against svc: `npm run golden -- <folder>`. Prints `NAME: n agree, n differ` for each file, and each
 * difference. `on-purpose.ts` in tests/golden-workflows and in tests/golden-stackstorm says why rows of tests/golden differ.
 */
import { stackstormPlayers } from '../tests/golden-stackstorm/players.ts'
import { workflowPlayers } from '../tests/golden-workflows/players.ts'
import { playFolder, printTally } from '../tests/golden-workflows/tally.ts'

const [folder] = process.argv.slice(2)
if (folder === undefined) {
  process.stderr.write('Name the folder with the golden data: npm run golden -- <folder>\n')
  process.exitCode = 2
} else {
  for await (const tally of playFolder(folder, { ...workflowPlayers, ...stackstormPlayers }))
    process.stdout.write(`${printTally(tally)}\n`)
}
