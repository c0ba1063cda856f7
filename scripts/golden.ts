/** Plays golden data of workflows against svc: `npm run golden -- <folder>`. Prints each difference. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { playConduct } from '../tests/golden-workflows/conduct.ts'
import { playExpressions } from '../tests/golden-workflows/expressions.ts'
import { printTally, type Tally } from '../tests/golden-workflows/tally.ts'

/** File → who plays it. */
const players: Readonly<Record<string, (folder: string) => Tally>> = {
  'jinja.jsonl': (folder) => playExpressions(folder, 'jinja'),
  'yaql.jsonl': (folder) => playExpressions(folder, 'yaql'),
  'conduct.jsonl': (folder) => playConduct(folder),
}

const [folder] = process.argv.slice(2)
if (folder === undefined) {
  process.stderr.write('Name the folder with the golden data: npm run golden -- <folder>\n')
  process.exitCode = 2
} else {
  for (const [file, play] of Object.entries(players)) {
    if (existsSync(join(folder, file))) process.stdout.write(`${printTally(play(folder))}\n`)
  }
}
