/**
 * Object ids: 24 lowercase hexadecimal characters that sort by creation (contract 00, 0.12).
 *
 * 4 bytes seconds, 3 bytes fraction of the second, 5 random bytes. The fraction instead of the customary
 * counter keeps ids of two server runs within one second in order too, which `last` (the greatest id) relies on.
 */
import { randomFillSync } from 'node:crypto'
import { nowMicros } from './time.ts'

const pool = Buffer.alloc(5 * 512)
let used = pool.length
let lastSeconds = 0
let lastFraction = 0

/** A new id, greater than every id this process made before. */
export function newId(): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const random = pool.toString('hex', used, used + 5)
  used += 5

  const micros = nowMicros()
  const seconds = Math.floor(micros / 1_000_000)
  const fraction = Math.floor(((micros - seconds * 1_000_000) * 0x1000000) / 1_000_000)
  if (seconds > lastSeconds || (seconds === lastSeconds && fraction > lastFraction)) {
    lastSeconds = seconds
    lastFraction = fraction
  } else if (lastFraction < 0xffffff) {
    lastFraction += 1
  } else {
    lastSeconds += 1
    lastFraction = 0
  }
  return lastSeconds.toString(16).padStart(8, '0') + lastFraction.toString(16).padStart(6, '0') + random
}

const idPattern = /^[0-9a-f]{24}$/

export function isId(text: string): boolean {
  return idPattern.test(text)
}
