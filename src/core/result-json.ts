/** Results as JSON text. A result may have 20 MB, so it is serialised once for its size check and its row. */
import { writeJson } from '../lib/json/index.ts'
const texts = new WeakMap<object, string>()

export function resultJson(result: unknown): string {
  if (typeof result !== 'object' || result === null) return writeJson(result)
  let text = texts.get(result)
  if (text === undefined) {
    text = writeJson(result)
    texts.set(result, text)
  }
  return text
}
