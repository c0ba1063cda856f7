/** Results as JSON text. One may be 20 MB, so it is made once for its size and its row. */
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
