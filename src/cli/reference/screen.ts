/** Renders help texts for a terminal. */
import { displayWidth, wrapText } from '../output/print.ts'
import { detailsOf, plainText, type Block, type HelpTerm, type Table } from './text.ts'

/** Longer lines are hard to read. */
const MAX_COLUMNS = 100
/** The description of a longer term starts on the next line. */
const MAX_TERM_WIDTH = 30
const INDENT = 2
/** Between a term and its description. */
const GAP = 2

/** Columns to use of a terminal of that width. */
export function usableWidth(columns: number): number {
  return Math.max(40, Math.min(columns, MAX_COLUMNS))
}

/** Running text in lines of `width` columns, that begin with blanks. */
export function renderParagraph(text: string, width: number, indent = 0): string {
  return wrapText(plainText(text), width - indent)
    .map((line) => indentText(line, indent))
    .join('\n')
}

/** Lines that stay as they are. */
export function indentText(text: string, indent: number): string {
  return text.replace(/^(?=.)/gm, ' '.repeat(indent))
}

/** The column where the descriptions of these terms start. */
export function descriptionColumn(terms: readonly string[]): number {
  const lengths = terms.map(displayWidth).filter((length) => length <= MAX_TERM_WIDTH)
  return INDENT + Math.max(8, ...lengths) + GAP
}

/** Terms with their descriptions beside them. @param column where the descriptions start */
export function renderTerms(
  items: readonly HelpTerm[],
  width: number,
  column = descriptionColumn(items.map(({ term }) => term)),
): string {
  return items
    .map(({ term, description }) => {
      const text = renderParagraph(description, width, column)
      const start = indentText(term, INDENT)
      if (text === '') return start
      return displayWidth(start) + GAP > column ? `${start}\n${text}` : start.padEnd(column) + text.slice(column)
    })
    .join('\n')
}

export function renderBlocks(blocks: readonly Block[], width: number): string {
  return blocks.map((block) => renderBlock(block, width)).join('\n\n')
}

function renderBlock(block: Block, width: number): string {
  if (typeof block === 'string') return renderParagraph(block, width)
  if ('lines' in block) return indentText(block.lines, 4)
  if ('list' in block) return block.list.map((item) => renderItem(item, width)).join('\n')
  if (block.header.length > 2) return block.rows.map((row) => renderRow(block, row, width)).join('\n')
  return renderTerms(
    block.rows.map(([term = '', description = '']) => ({ term: plainText(term), description })),
    width,
  )
}

function renderItem(item: string, width: number): string {
  return `- ${renderParagraph(item, width, 2).slice(2)}`
}

/** A row that is too wide for a terminal: its cells one below the other. */
function renderRow(table: Table, row: readonly string[], width: number): string {
  const details = detailsOf(table, row)
  const text = [row.at(-1) ?? '', ...(details === '' ? [] : [details])]
  return [`  ${plainText(row[0] ?? '')}`, ...text.map((line) => renderParagraph(line, width, 8))].join('\n')
}
