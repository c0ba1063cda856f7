/** Makes text from outside safe to repeat in a message. */
import { writeJson } from '../json/index.ts'

const MAX_CHARS = 200

/** At most 200 characters of a client's value, for repeating it in a message. */
export function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : (writeJson(value) ?? String(value))
  // Cut first: it may have millions of characters. The last one may be half of a pair, and is cut off again.
  const printable = text.slice(0, MAX_CHARS + 2).replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, '�')
  return text.length <= MAX_CHARS ? printable : `${printable.slice(0, MAX_CHARS)}…`
}
