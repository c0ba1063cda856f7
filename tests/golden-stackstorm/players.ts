/** Who plays which file of the golden data of pack metadata. */
import type { Players, Tally } from '../golden-workflows/tally.ts'
import { playMetadata } from './metadata.ts'
import { playModules } from './modules.ts'
import { playResults } from './results.ts'
import { playYaml } from './yaml.ts'

/** Registers the packs of `metadata.jsonl` and runs the Python actions in them: a row differs when either does. */
async function playPacks(folder: string): Promise<Tally> {
  const { name, agree, differences } = await playMetadata(folder)
  const found = new Set(differences.map(({ id }) => id))
  const others = (await playModules(folder)).differences.filter(({ id }) => !found.has(id))
  return { name, agree: agree - new Set(others.map(({ id }) => id)).size, differences: [...differences, ...others] }
}

export const stackstormPlayers = { metadata: playPacks, results: playResults, yaml: playYaml } satisfies Players

/** Name of a file, without `.jsonl`. */
export type GoldenFile = keyof typeof stackstormPlayers
