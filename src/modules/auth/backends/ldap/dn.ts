/** Normalizes distinguished names (RFC 4514), to compare whether two name the same entry. */

const attributeType = /\s*([A-Za-z][A-Za-z0-9-]*|\d+(?:\.\d+)+)\s*=\s*/y
const quotedValue = /"((?:\\[^]|[^\\"])*)"\s*/y
const hexValue = /#(?:[0-9a-fA-F]{2})+\s*/y
const plainValue = /((?:\\[^]|[^\\,;+"])*)/y
const separator = /[,;+]/y
const escapes = /((?:\\[0-9a-fA-F]{2})+)|\\([^])/g

/**
 * Normalizes what directories ignore: letter case, blanks around separators and in values, escapes, and the order in a
 * multi-valued part.
 *
 * @returns undefined for the empty name and for invalid names
 */
export function normaliseDn(text: string): string | undefined {
  let at = 0
  function match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = at
    const found = pattern.exec(text)
    if (found === null) return undefined
    at = pattern.lastIndex
    return found
  }

  const parts: string[] = []
  let pairs: string[] = []
  for (;;) {
    const type = match(attributeType)?.[1]
    if (type === undefined) return undefined
    // A value that is not quoted or hexadecimal is plain, and can be empty.
    const value = match(quotedValue)?.[1] ?? match(hexValue)?.[0].toLowerCase() ?? match(plainValue)?.[1] ?? ''
    pairs.push(`${type.toLowerCase()}=${escapeSeparators(fold(unescape(value)))}`)
    const isAtEnd = at === text.length
    const sign = isAtEnd ? undefined : match(separator)?.[0]
    if (!isAtEnd && sign === undefined) return undefined
    if (sign === '+') continue
    parts.push(pairs.sort().join('+'))
    pairs = []
    if (isAtEnd) return parts.join(',')
  }
}

function unescape(value: string): string {
  return value.replace(escapes, (_, bytes: string | undefined, character: string | undefined) =>
    bytes === undefined ? (character ?? '') : Buffer.from(bytes.replaceAll('\\', ''), 'hex').toString('utf8'),
  )
}

function fold(value: string): string {
  return value.normalize('NFKC').toLowerCase().replace(/\s+/g, ' ').trim()
}

function escapeSeparators(value: string): string {
  return value.replace(/[\\,+]/g, '\\$&')
}
