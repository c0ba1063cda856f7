/** What `approve`, `deny` and `respond` say to an inquiry. */
import { readJson } from '../../lib/json/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import type { Json } from '../output/print.ts'

const pair = /(\S+?)=("[^"]*"|'[^']*'|\{[^]*\}|\[[^]*\]|\S*)\s*/y

/**
 * The response; a text: why there is none.
 *
 * @param rest of the command, behind the id
 * @param schema of the inquiry
 */
export function answerIn(word: string, rest: string, schema: Json): Json | string {
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  const response: Json = {}
  if (word !== 'respond') {
    const flags = Object.entries(properties).filter(([, inner]) => isObject(inner) && inner['type'] === 'boolean')
    const [flag, ...others] = flags
    if (flag === undefined || others.length > 0) {
      return `This inquiry has ${flag === undefined ? 'no question' : 'several questions'} for yes or no; say respond <id> with ${Object.keys(properties).join(', ') || 'name'}=value.`
    }
    response[flag[0]] = word === 'approve'
  }
  const text = rest.trim()
  pair.lastIndex = 0
  while (pair.lastIndex < text.length) {
    const at = pair.lastIndex
    const [, name, given = ''] = pair.exec(text) ?? []
    if (name === undefined) return `"${text.slice(at, at + 100)}" is not of the form name=value.`
    const value = /^["']/.test(given) ? given.slice(1, -1) : given
    const inner = Object.hasOwn(properties, name) ? properties[name] : undefined
    Object.defineProperty(response, name, {
      value: valueOf(value, isObject(inner) ? inner['type'] : undefined),
      enumerable: true,
      configurable: true,
      writable: true,
    })
  }
  return response
}

/** As its schema wants it; what does not fit stays text, of which the server says so. */
function valueOf(text: string, type: unknown): unknown {
  if (type === 'string' || type === undefined) return text
  if (type === 'boolean' && /^(?:yes|true|no|false)$/i.test(text)) return /^(?:yes|true)$/i.test(text)
  try {
    return readJson(text)
  } catch {
    return text
  }
}
