/** A part of a text: literal text, or an expression between delimiters. */
export interface Block {
  /** with its delimiters, or the literal text */
  readonly text: string
  /** Without delimiters and the blanks around it; undefined: literal text. */
  readonly source: string | undefined
  /** Offset into the text, in UTF-16 units. */
  readonly position: number
}

interface Delimiters {
  readonly open: string
  readonly close: string
  /** Characters that are no part of an expression at its ends. */
  readonly edges: string
}

const yaql: Delimiters = { open: '<%', close: '%>', edges: '<%>' }
const inline: Delimiters = { open: '{{', close: '}}', edges: '{}' }
const statement: Delimiters = { open: '{%', close: '%}', edges: '{%}' }
const raw: Delimiters = { open: '{% raw %}', close: '{% endraw %}', edges: '' }

/** Whether the text has `<% … %>`. An expression does not span lines. */
export const hasYaql = (text: string): boolean => nextBlock(text, yaql, 0) !== undefined

/** Whether the text has `{% … %}`, which makes the whole of it a template. */
export const hasStatement = (text: string): boolean => nextBlock(text, statement, 0) !== undefined

/** Whether the text has `{{ … }}` or `{% … %}`. Comments are no expressions. */
export const hasJinja = (text: string): boolean => nextBlock(text, inline, 0) !== undefined || hasStatement(text)

/** Splits a text with YAQL. */
export const yaqlBlocks = (text: string): Block[] => split(text, yaql)

/** Splits a text with Jinja, unless it has statements. */
export const jinjaBlocks = (text: string): Block[] => split(text, inline)

/**
 * Splits a text whose only statements are `{% raw %} … {% endraw %}`, each on one line; what they protect is literal text.
 * undefined: there are other statements.
 */
export function rawBlocks(text: string): Block[] | undefined {
  const parts = split(text, raw)
  if (parts.some((part) => part.source === undefined && hasStatement(part.text))) return undefined
  return parts.flatMap((part): Block[] => {
    if (part.source === undefined) return jinjaBlocks(part.text)
    return [{ ...part, text: part.text.slice(raw.open.length, -raw.close.length), source: undefined }]
  })
}

/** The statements of a text with Jinja, and what is between them. */
export const statementBlocks = (text: string): Block[] => split(text, statement)

/** An expression that a text begins and does not end, so that it stays text. */
export interface Unfinished {
  readonly open: string
  readonly close: string
  /** It ends in a later line. */
  readonly spansLines: boolean
}

/** undefined: the text has none */
export function unfinishedIn(text: string): Unfinished | undefined {
  if (hasStatement(text)) return undefined
  for (const { open, close } of [yaql, inline, statement]) {
    for (const { source, text: literal } of split(text, { open, close, edges: '' })) {
      const start = source === undefined ? literal.indexOf(open) : -1
      if (start >= 0) return { open, close, spansLines: literal.includes(close, start + open.length) }
    }
  }
  return undefined
}

function split(text: string, delimiters: Delimiters): Block[] {
  const blocks: Block[] = []
  let at = 0
  for (let next = nextBlock(text, delimiters, 0); next !== undefined; next = nextBlock(text, delimiters, at)) {
    const [start, end] = next
    if (start > at) blocks.push({ text: text.slice(at, start), source: undefined, position: at })
    const block = text.slice(start, end)
    blocks.push({ text: block, source: stripped(block, delimiters.edges), position: start })
    at = end
  }
  if (at < text.length || text === '') blocks.push({ text: text.slice(at), source: undefined, position: at })
  return blocks
}

/** Start and end of the next block: the shortest one, on one line. */
function nextBlock(text: string, { open, close }: Delimiters, from: number): readonly [number, number] | undefined {
  let end = -1
  for (let start = text.indexOf(open, from); start >= 0;) {
    if (end < start + open.length) end = text.indexOf(close, start + open.length)
    if (end < 0) return undefined
    // Not a search in the whole text, which can be one long line of many blocks.
    const lineEnd = text.slice(start, end).indexOf('\n')
    if (lineEnd < 0) return [start, end + close.length]
    start = text.indexOf(open, start + lineEnd)
  }
  return undefined
}

function stripped(block: string, edges: string): string {
  let [start, end] = [0, block.length]
  while (start < end && edges.includes(block.charAt(start))) start += 1
  while (end > start && edges.includes(block.charAt(end - 1))) end -= 1
  return block.slice(start, end).trim()
}
