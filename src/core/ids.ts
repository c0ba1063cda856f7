/** Object ids: 24 lowercase hexadecimal characters that sort by creation (contract 00, 0.12). */
import { randomFillSync } from 'node:crypto'
import { nowMicros } from './time.ts'

const pool = Buffer.alloc(5 * 512)
let used = pool.length
/** Time and fraction of the newest id. */
let lastMicros = -1
let lastFraction = 0

/**
 * A new id. Ids for ascending times ascend, and so do the first 16 consecutive ids for one time.
 *
 * @param micros the record's creation time; the id lies between `idBound(micros)` and `idBound(micros + 1)`
 */
export function newId(micros: number = nowMicros()): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const random = pool.toString('hex', used, used + 5)
  used += 5

  const seconds = Math.floor(micros / 1_000_000)
  const micro = micros - seconds * 1_000_000
  lastFraction = micros === lastMicros ? Math.min(lastFraction + 1, fractionOf(micro + 1) - 1) : fractionOf(micro)
  lastMicros = micros
  return prefix(seconds, lastFraction) + random
}

/** A microsecond within its second as 24 bits; neighbouring microseconds are 16 or 17 apart. */
function fractionOf(micro: number): number {
  return Math.floor((micro * 0x1000000) / 1_000_000)
}

function prefix(seconds: number, fraction: number): string {
  return seconds.toString(16).padStart(8, '0') + fraction.toString(16).padStart(6, '0')
}

/**
 * bytes seconds, 3 bytes fraction of the second, 5 random bytes. Common implementations have a counter in place of the
 * fraction. The fraction also orders ids of two server runs within one second, which `last` (the greatest id) needs.
 */
const MAX_MICROS = 0xffffffff * 1_000_000 + 999_999

/**
 * The lowest id of a record created at this microsecond. `id >= idBound(t)` selects the records created at or after
 * `t`, so the primary key serves every time range. A time outside the range of ids becomes the nearest one.
 */
export function idBound(micros: number): string {
  const possible = Math.min(Math.max(micros, 0), MAX_MICROS)
  const seconds = Math.floor(possible / 1_000_000)
  return `${prefix(seconds, fractionOf(possible - seconds * 1_000_000))}0000000000`
}

const idPattern = /^[0-9a-f]{24}$/

export function isId(text: string): boolean {
  return idPattern.test(text)
}

/** The creation time of an id, in microseconds since the epoch. */
export function microsOfId(id: string): number {
  const seconds = Number.parseInt(id.slice(0, 8), 16)
  const fraction = Number.parseInt(id.slice(8, 14), 16)
  return seconds * 1_000_000 + Math.floor(((fraction + 1) * 1_000_000) / 0x1000000)
}
