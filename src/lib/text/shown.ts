/** Makes text from outside safe to repeat in a message. */
import { writeJson } from '../json/index.ts'

/** At most 200 characters of a client's value, for repeating it in a message. */
export function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : (writeJson(value) ?? String(value))
  const printable = text.replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, '�')
  return printable.length <= 200 ? printable : `${printable.slice(0, 200)}…`
}
