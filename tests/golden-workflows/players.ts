/** Who plays which file of a folder with golden data. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { playChain } from './chain.ts'
import { playConduct } from './conduct.ts'
import { playExpressions } from './expressions.ts'
import { playInspections } from './inspect.ts'
import type { Tally } from './tally.ts'

const players = {
  yaql: (folder) => playExpressions(folder, 'yaql'),
  jinja: (folder) => playExpressions(folder, 'jinja'),
  conduct: (folder) => playConduct(folder),
  inspect: playInspections,
  chain: (folder) => playChain(folder),
} satisfies Readonly<Record<string, (folder: string) => Tally | Promise<Tally>>>

/** Name of a file, without `.jsonl`. */
export type GoldenFile = keyof typeof players

/** Plays the files that the folder has, one after the other. */
export async function* playFolder(folder: string): AsyncGenerator<Tally> {
  for (const [name, play] of Object.entries(players))
    if (existsSync(join(folder, `${name}.jsonl`))) yield await play(folder)
}
