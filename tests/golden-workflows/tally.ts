import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** A case that svc answers in another way than the golden data. */
export interface Difference {
  readonly id: string
  /** What was evaluated, as JSON. */
  readonly input: string
  readonly expected: string
  readonly actual: string
}

/** How svc and a file of golden data agree. */
export interface Tally {
  /** As in `jinja`. */
  readonly name: string
  readonly agree: number
  readonly differences: readonly Difference[]
}

/** Plays a file of a folder with golden data. */
export type Player = (folder: string) => Tally | Promise<Tally>

/** Name of a file, without `.jsonl`, and its player. */
export type Players = Readonly<Record<string, Player>>

/** Plays the files that the folder has, one after the other. */
export async function* playFolder(folder: string, players: Players): AsyncGenerator<Tally> {
  for (const [name, play] of Object.entries(players))
    if (existsSync(join(folder, `${name}.jsonl`))) yield await play(folder)
}

/** `NAME: n agree, n differ`, then each difference. */
export function printTally({ name, agree, differences }: Tally): string {
  const lines = differences.map(
    ({ id, input, expected, actual }) => `${id} ${input}\n  expected ${expected}\n  actual   ${actual}`,
  )
  return [`${name}: ${agree} agree, ${differences.length} differ`, ...lines].join('\n')
}
