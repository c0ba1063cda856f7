/** Parameters that a definition writes inside of a text: `core.echo message="hi" count=3`. */
import { objectOf, readJson } from '../../../lib/json/index.ts'

const nameBefore = /[\p{L}\p{N}_]+$/u
/** Names are shorter. It bounds the work for each `=`. */
const MAX_NAME_CHARS = 256
const constant = /-?\d*\.\d+|-?\d+|[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]|null/y

/** An action that is an expression by itself may contain blanks. */
const actionForm = /^\s*(<%.*?%>|\{\{.*?\}\}|\S+)(.*)$/s

/**
 * The pairs of the text in their order; everything between them is ignored. A value is a list in brackets, which
 * reaches to the last bracket of its line, text in quotes, an expression, a number, true, false or null.
 *
 * Quoted values are text, unless they hold a JSON object, and so are lists with quotes in them. Other values are what
 * JSON reads, else text.
 */
export function readInlineParameters(text: string): [name: string, value: unknown][] {
  const pairs: [string, unknown][] = []
  const endOf = createValueReader(text)
  let end = 0
  for (let at = text.indexOf('='); at !== -1; at = text.indexOf('=', Math.max(at + 1, end))) {
    const [name] = nameBefore.exec(text.slice(Math.max(end, at - MAX_NAME_CHARS), at)) ?? []
    const valueEnd = name === undefined ? undefined : endOf(at + 1)
    if (name === undefined || valueEnd === undefined) continue
    pairs.push([name, readValue(text.slice(at + 1, valueEnd))])
    end = valueEnd
  }
  return pairs
}

/** The action and its parameters; undefined: the text has no parameters, and all of it names the action. */
export function readInlineAction(text: string): { action: string; input: Record<string, unknown> } | undefined {
  const [, action, rest] = actionForm.exec(text) ?? []
  if (action === undefined || rest === undefined) return undefined
  const pairs = readInlineParameters(rest)
  return pairs.length === 0 ? undefined : { action, input: objectOf(pairs) }
}

/** @returns where the value ends that begins at a position. The positions of its calls only grow: it takes linear time. */
function createValueReader(text: string): (start: number) => number | undefined {
  const nextOf = new Map(['\n', '"', "'", '%>', '}}'].map((word) => [word, createFinder(text, word)]))
  /** The end of a value that closes with a word. */
  const closed = (word: string, from: number, limit = text.length): number | undefined => {
    const at = nextOf.get(word)?.(from) ?? -1
    return at === -1 || at >= limit ? undefined : at + word.length
  }
  let line = { end: -1, lastBracket: -1 }
  return (start) => {
    if (start > line.end) {
      const end = (closed('\n', start) ?? text.length + 1) - 1
      const bracket = text.slice(start, end).lastIndexOf(']')
      line = { end, lastBracket: bracket === -1 ? -1 : start + bracket }
    }
    const first = text.charAt(start)
    if (first === '[') return line.lastBracket > start ? line.lastBracket + 1 : undefined
    if (first === '"' || first === "'") return closed(first, start + 1)
    if (text.startsWith('<%', start)) return closed('%>', start + 2, line.end)
    if (text.startsWith('{{', start)) return closed('}}', start + 2, line.end)
    constant.lastIndex = start
    return constant.test(text) ? constant.lastIndex : undefined
  }
}

/** @returns the next place of a word at or after a position, -1: none. The positions only grow from call to call. */
function createFinder(text: string, word: string): (from: number) => number {
  let at = text.indexOf(word)
  return (from) => {
    if (at !== -1 && at < from) at = text.indexOf(word, from)
    return at
  }
}

const hasQuotedText = /"[^"]*"|'[^']*'/

function readValue(text: string): unknown {
  if (text.startsWith('[') && hasQuotedText.test(text)) return text
  const quote = text[0] === '"' || text[0] === "'" ? text[0] : undefined
  const body = quote === undefined ? text : text.slice(1, -1)
  if (quote !== undefined && !(body.startsWith('{') && body.endsWith('}'))) return body
  if (text.startsWith('<%') || text.startsWith('{{')) return text
  try {
    return readJson(/^(?:true|false)$/i.test(body) ? body.toLowerCase() : body)
  } catch {
    return body
  }
}
