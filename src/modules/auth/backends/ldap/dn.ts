/** Distinguished names as text (RFC 4514), for telling whether two of them name the same entry. */

const attributeType = /\s*([A-Za-z][A-Za-z0-9-]*|\d+(?:\.\d+)+)\s*=\s*/y
const quotedValue = /"((?:\\[^]|[^\\"])*)"\s*/y
const hexValue = /#(?:[0-9a-fA-F]{2})+\s*/y
const plainValue = /((?:\\[^]|[^\\,;+"])*)/y
const separator = /[,;+]/y
const escapes = /((?:\\[0-9a-fA-F]{2})+)|\\([^])/g

/**
 * One spelling for all spellings of a name: letter case, blanks around separators and inside of values, the ways to
 * escape, and the order within a multi-valued part do not matter, as they do not matter to directories.
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
    // Whatever is not quoted and not hexadecimal is plain, be it empty.
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
