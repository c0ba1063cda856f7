/** JSON text, read as it was written. */

/** Begins the keys that stand in for others meanwhile. */
const MARK = '\ue000'

/**
 * Like `JSON.parse`, which takes an escaped key for another one that it has seen before (nodejs/node#63785): `"\n"` for
 * `"\\"`. So it is given none.
 *
 * @throws SyntaxError
 */
export function readJson(text: string): unknown {
  const { plainText, keys } = replaceEscapedKeys(text)
  const value: unknown = JSON.parse(plainText)
  return keys.size === 0 ? value : withKeys(value, keys)
}

/**
 * For readers with a reviver.
 *
 * @returns text that `JSON.parse` reads correctly, and the keys to put in the place of those that it finds
 * @throws SyntaxError
 */
export function replaceEscapedKeys(text: string): { plainText: string; keys: ReadonlyMap<string, string> } {
  if (!text.includes('\\')) return { plainText: text, keys: new Map() }
  const standIns = new Map<string, string>()
  const pieces: string[] = []
  let copied = 0
  for (let start = text.indexOf('"'); start !== -1;) {
    const end = endOfString(text, start)
    if (isColonNext(text, end)) {
      const key = text.slice(start, end)
      if (key.includes('\\') || key.startsWith(`"${MARK}`)) {
        const standIn = standIns.get(key) ?? `"${MARK}${standIns.size}"`
        standIns.set(key, standIn)
        pieces.push(text.slice(copied, start), standIn)
        copied = end
      }
    }
    start = text.indexOf('"', end)
  }
  if (standIns.size === 0) return { plainText: text, keys: new Map() }
  // Malformed text is refused as it is.
  JSON.parse(text)
  pieces.push(text.slice(copied))
  // Texts that are no keys are read correctly.
  const keys = new Map([...standIns].map(([key, standIn]) => [standIn.slice(1, -1), String(JSON.parse(key))]))
  return { plainText: pieces.join(''), keys }
}

/** @returns the place after the closing quote of the string that begins at `start`, or the end of malformed text */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text[end - 1 - backslashes] === '\\') backslashes += 1
    if (backslashes % 2 === 0) return end + 1
  }
  return text.length
}

function isColonNext(text: string, from: number): boolean {
  let at = from
  while (text[at] === ' ' || text[at] === '\n' || text[at] === '\t' || text[at] === '\r') at += 1
  return text[at] === ':'
}

function withKeys(value: unknown, keys: ReadonlyMap<string, string>): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => withKeys(item, keys))
  // Makes `__proto__` a property like any other, as `JSON.parse` does.
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [keys.get(key) ?? key, withKeys(inner, keys)]))
}
