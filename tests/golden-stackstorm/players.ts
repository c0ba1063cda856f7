/** Who plays which file of the golden data of pack metadata. */
import type { Players } from '../golden-workflows/tally.ts'
import { playMetadata } from './metadata.ts'
import { playResults } from './results.ts'
import { playYaml } from './yaml.ts'

export const stackstormPlayers = { metadata: playMetadata, results: playResults, yaml: playYaml } satisfies Players

/** Name of a file, without `.jsonl`. */
export type GoldenFile = keyof typeof stackstormPlayers
