/**
 * Sets of whole numbers in one table, such that the next lower member of a number is found in a few steps. A set is a tree of
 * 32 bits per node: bit n of a node says whether its nth child has members.
 */

export interface NumberTable {
  get(key: string): number | undefined
  set(key: string, bits: number): void
}

const BITS = 5
/** Numbers up to 2^25: more than a run can have of anything. */
const LEVELS = 5

const keyOf = (set: string, level: number, node: number): string => `${set}/${level}/${node}`
const highestBit = (bits: number): number => 31 - Math.clz32(bits)

export function addNumber(table: NumberTable, set: string, number: number): void {
  for (let level = 0, child = number; level < LEVELS; level++, child >>>= BITS) {
    const key = keyOf(set, level, child >>> BITS)
    table.set(key, (table.get(key) ?? 0) | (1 << (child & 31)))
  }
}

/** The greatest member below a number; undefined: there is none */
export function numberBelow(table: NumberTable, set: string, number: number): number | undefined {
  for (let level = 0, child = number; level < LEVELS; level++, child >>>= BITS) {
    const node = child >>> BITS
    const lower = (table.get(keyOf(set, level, node)) ?? 0) & ((1 << (child & 31)) - 1)
    if (lower === 0) continue
    let found = (node << BITS) | highestBit(lower)
    for (let below = level - 1; below >= 0; below--)
      found = (found << BITS) | highestBit(table.get(keyOf(set, below, found)) ?? 0)
    return found
  }
  return undefined
}
