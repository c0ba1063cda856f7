/** Which fields of a form a refusal of the server is about. */

/**
 * Which fields a refusal of the server is about.
 *
 * @param details what the server adds for programs
 * @param names of the fields
 * @returns the names it is about, in the order of the message; empty: it is about the whole
 */
export function namesInRefusal(
  message: string,
  details: Readonly<Record<string, unknown>>,
  names: ReadonlySet<string>,
): string[] {
  const { parameter, parameters } = details
  const told = [parameter, parameters].flat().filter((name): name is string => typeof name === 'string')
  for (const candidates of [told, ...namesInText(message.slice(0, 10_000))]) {
    const known = candidates.filter((name) => names.has(name))
    if (known.length > 0) return [...new Set(known)]
  }
  return []
}

/** Names that may be those of parameters, the surest first. */
function namesInText(message: string): string[][] {
  const namesBy = (pattern: RegExp, text = message): string[] =>
    [...text.matchAll(pattern)].map(([, name = '']) => name)
  const [unexpected = ''] = namesBy(/properties are not allowed \((.*?) (?:was|were) unexpected\)/gs)
  return [
    // A path: `hosts`, `env.PATH`, `items[0].name`, perhaps after a sentence about the whole.
    namesBy(/^(?:[^:]*\. )?(\w+)(?:\.[\w.-]+|\[\d+\])*: /g),
    namesBy(/'(\w+)' is a required property/g),
    namesBy(/'(\w+)'/g, unexpected),
    namesBy(/parameter "(\w+)"/gi),
    namesBy(/variable "(\w+)"/gi),
  ]
}
