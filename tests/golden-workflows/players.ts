/** Who plays which file of the golden data of workflows. */
import { playChain } from './chain.ts'
import { playConduct } from './conduct.ts'
import { playExpressions } from './expressions.ts'
import { playInspections } from './inspect.ts'
import type { Players } from './tally.ts'

export const workflowPlayers = {
  yaql: (folder) => playExpressions(folder, 'yaql'),
  jinja: (folder) => playExpressions(folder, 'jinja'),
  conduct: (folder) => playConduct(folder),
  inspect: playInspections,
  chain: (folder) => playChain(folder),
} satisfies Players

/** Name of a file, without `.jsonl`. */
export type GoldenFile = keyof typeof workflowPlayers
