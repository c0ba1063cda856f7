/** The ways of routes: sets of transitions, each with a number that does not depend on their order. */
import { createHash } from 'node:crypto'

/** Of the first route. */
export const EMPTY_WAY = 0

/** Sums of 48 bits: exact as a number, and no two sets of one run come out alike. */
const MODULUS = 2 ** 48

/** The way with one transition more. */
export function wayBehind(way: number, origin: string): number {
  return (way + createHash('sha256').update(origin).digest().readUIntBE(0, 6)) % MODULUS
}

/** The ways of all subsets of transitions. */
export function waysWithin(origins: readonly string[]): number[] {
  const ways = [EMPTY_WAY]
  for (const origin of origins) for (const way of ways.slice()) ways.push(wayBehind(way, origin))
  return ways
}
