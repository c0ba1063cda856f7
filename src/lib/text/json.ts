/** Reads and writes JSON text without losing keys or numbers. */

/** Prefix of the placeholder keys. */
const MARK = '\ue000'

/**
 * Like `JSON.parse`, without its bug of mixing up escaped keys with earlier ones (nodejs/node#63785): it reads `"\n"`
 * for `"\\"`. This function replaces escaped keys by placeholders first.
 *
 * @throws SyntaxError
 */
export function readJson(text: string): unknown {
  let value: unknown
  let keys: ReadonlyMap<string, string>
  try {
    const replaced = replaceEscapedKeys(text)
    keys = replaced.keys
    value = JSON.parse(replaced.plainText)
  } catch {
    // Throws the error for the original text.
    return JSON.parse(text)
  }
  return keys.size === 0 ? value : withKeys(value, keys)
}

/** For `JSON.stringify`, which writes null for infinite numbers. @throws RangeError */
export function refuseInfinite(_name: string, value: unknown): unknown {
  if (typeof value !== 'number' || Number.isFinite(value)) return value
  throw new RangeError(`holds a number that JSON does not have: ${value}`)
}

/**
 * For readers with a reviver.
 *
 * @returns text that `JSON.parse` reads correctly, and the key for each placeholder
 * @throws SyntaxError
 */
export function replaceEscapedKeys(text: string): { plainText: string; keys: ReadonlyMap<string, string> } {
  const keys = new Map<string, string>()
  if (!text.includes('\\')) return { plainText: text, keys }
  const standIns = new Map<string, string>()
  const pieces: string[] = []
  let copied = 0
  for (let start = text.indexOf('"'); start !== -1;) {
    const end = endOfString(text, start)
    if (isColonNext(text, end)) {
      const written = text.slice(start, end)
      if (written.includes('\\') || written.startsWith(`"${MARK}`)) {
        let standIn = standIns.get(written)
        if (standIn === undefined) {
          standIn = `${MARK}${keys.size}`
          standIns.set(written, standIn)
          // String values are read correctly; only keys are affected.
          keys.set(standIn, String(JSON.parse(written)))
        }
        pieces.push(text.slice(copied, start + 1), standIn)
        copied = end - 1
      }
    }
    start = text.indexOf('"', end)
  }
  if (copied === 0) return { plainText: text, keys }
  pieces.push(text.slice(copied))
  return { plainText: pieces.join(''), keys }
}

/** @returns the index after the closing quote of the string that begins at `start`, or the end of malformed text */
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
  const restored: Record<string, unknown> = {}
  // Objects from JSON inherit no enumerable keys.
  for (const key in value) {
    const name = keys.get(key) ?? key
    const inner = withKeys((value as Record<string, unknown>)[key], keys) // it is one
    // An assignment would set the prototype.
    if (name === '__proto__')
      Object.defineProperty(restored, name, { value: inner, enumerable: true, configurable: true, writable: true })
    else restored[name] = inner
  }
  return restored
}
