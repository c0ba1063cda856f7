/** Reads `sensorcontainer.partition_provider` (contract 05, 5.10): how sensors are divided among servers. */
import { isAbsolute, resolve } from 'node:path'

export type PartitionRule =
  | { name: 'default' }
  | { name: 'kvstore' }
  /** Absolute. */
  | { name: 'file'; path: string }
  /** Each from a place up to before another, of 2^32. */
  | { name: 'hash'; ranges: readonly (readonly [from: number, to: number])[] }

const PLACES = 2 ** 32

/** @returns undefined for a text that is none; `cwd` is what a relative path is relative to */
export function readPartition(text: string, cwd: string): PartitionRule | undefined {
  const given = new Map<string, string>()
  for (const part of text.split(',')) {
    const colon = part.indexOf(':')
    if (colon === -1) return undefined
    given.set(part.slice(0, colon).trim(), part.slice(colon + 1).trim())
  }
  const name = given.get('name')
  if (name === 'default' || name === 'kvstore') return { name }
  if (name === 'file') {
    const path = given.get('partition_file') ?? ''
    return path === '' ? undefined : { name, path: isAbsolute(path) ? path : resolve(cwd, path) }
  }
  if (name !== 'hash') return undefined
  const ranges = (given.get('hash_ranges') ?? '').split('|').map(readRange)
  const good = ranges.filter((range) => range !== undefined)
  return good.length === ranges.length ? { name, ranges: good } : undefined
}

function readRange(text: string): readonly [number, number] | undefined {
  const [first, second, ...others] = text.split('..').map((word) => placeOf(word.trim()))
  if (first === undefined || second === undefined || others.length > 0 || first >= second) return undefined
  return [first, second]
}

function placeOf(word: string): number | undefined {
  if (word.toUpperCase() === 'MIN') return 0
  if (word.toUpperCase() === 'MAX') return PLACES
  const place = /^\d{1,10}$/.test(word) ? Number(word) : Infinity
  return place <= PLACES ? place : undefined
}
