/**
 * JSON text of the parameters and the result of an execution. Each may have 20 MB, so it is written once, for its row and
 * for the events that repeat it.
 */
import { writeJson } from '../lib/json/index.ts'

const texts = new WeakMap<object, string>()

/** The text of a value, which must not change any more. */
export function storedJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return writeJson(value)
  const text = texts.get(value) ?? writeJson(value)
  texts.set(value, text)
  return text
}

/** @param text of the value, which must not change any more */
export function rememberJson(value: unknown, text: string): void {
  if (typeof value === 'object' && value !== null) texts.set(value, text)
}
