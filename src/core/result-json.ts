/** Results as JSON text. A result may have 20 MB, so it is serialised once for its size check and its row. */
const texts = new WeakMap<object, string>()

export function resultJson(result: unknown): string {
  if (typeof result !== 'object' || result === null) return JSON.stringify(result)
  let text = texts.get(result)
  if (text === undefined) {
    text = JSON.stringify(result)
    texts.set(result, text)
  }
  return text
}
