/** Parameters that a definition writes inside of a text: `core.echo message="hi" count=3`. */
import { objectOf, readJson } from '../../../lib/json/index.ts'

/** What a value may look like. The first form that fits wins, so a list in brackets reaches to the last bracket. */
const valueForms = [
  /\[.*\]/,
  /"[^"]*"/,
  /'[^']*'/,
  /<%.*?%>/,
  /\{\{.*?\}\}/,
  /-?\d*\.\d+/,
  /-?\d+/,
  /[Tt][Rr][Uu][Ee]/,
  /[Ff][Aa][Ll][Ss][Ee]/,
  /null/,
]
const pair = new RegExp(`([\\p{L}\\p{N}_]+)=(${valueForms.map(({ source }) => source).join('|')})`, 'gu')

/** An action that is an expression by itself may contain blanks. */
const actionForm = /^\s*(<%.*?%>|\{\{.*?\}\}|\S+)(.*)$/s

/**
 * The pairs of the text in their order; everything between them is ignored.
 *
 * Quoted values are text, unless they hold a JSON object. Other values are what JSON reads, else text.
 */
export function readInlineParameters(text: string): [name: string, value: unknown][] {
  return Array.from(text.matchAll(pair), ([, name = '', value = '']) => [name, readValue(value)])
}

/** The action and its parameters; undefined: the text has no parameters, and all of it names the action. */
export function readInlineAction(text: string): { action: string; input: Record<string, unknown> } | undefined {
  const [, action, rest] = actionForm.exec(text) ?? []
  if (action === undefined || rest === undefined) return undefined
  const pairs = readInlineParameters(rest)
  return pairs.length === 0 ? undefined : { action, input: objectOf(pairs) }
}

function readValue(text: string): unknown {
  const quote = text[0] === '"' || text[0] === "'" ? text[0] : undefined
  const body = quote === undefined ? text : text.slice(1, -1)
  if (quote !== undefined && !(body.startsWith('{') && body.endsWith('}'))) return body
  try {
    return readJson(/^(?:true|false)$/i.test(body) ? body.toLowerCase() : body)
  } catch {
    return body
  }
}
