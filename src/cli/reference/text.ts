/**
 * The help texts in forms that a terminal, Markdown and a manual page can all show. In running
 * text, words between backticks are what is typed or printed; so are options and placeholders such as `<id>`.
 */

/** The first paragraph of the manual page and `docs/cli.md`. */
export const introduction =
  '`svc` is one executable. `svc serve` runs the server; most other commands connect to a server over HTTP. `svc --help` lists the commands and topics. `svc help <command>` (or `svc <command> --help`) shows the help of a command, and `svc help <topic>` explains a topic. `svc manual` shows everything as a manual page.'

export interface HelpTerm {
  /** As it is written, such as `-n, --last <count>` or `<ref...>`. */
  term: string
  description: string
}

export type Block =
  /** A paragraph. */
  | string
  | { list: readonly string[] }
  /** Lines that stay as they are, such as commands and what they print. */
  | { lines: string }
  | Table

/** The first column is the term and the last one its description. Empty cells are left out. */
export interface Table {
  header: readonly string[]
  rows: readonly (readonly string[])[]
}

/** The columns between the first and the last one as text, such as `Flag: --url; Default: none`. */
export function detailsOf({ header }: Table, row: readonly string[]): string {
  return row
    .slice(1, -1)
    .flatMap((cell, index) => (cell === '' ? [] : [`${header[index + 1]}: ${cell}`]))
    .join('; ')
}

export interface TextSpan {
  text: string
  isCode: boolean
}

const code = /`([^`]+)`|(?<![\w-])(?:--?[a-z][\w-]*(?:\/--[\w-]+)?|-1)(?![\w-])|<[a-z][\w .|-]*>/gi

/** Splits running text into plain text and code. */
export function spansOf(text: string): TextSpan[] {
  const spans: TextSpan[] = []
  let end = 0
  const add = (part: string, isCode: boolean): void => {
    if (part !== '') spans.push({ text: part, isCode })
  }
  for (const match of text.matchAll(code)) {
    add(text.slice(end, match.index), false)
    add(match[1] ?? match[0], true)
    end = match.index + match[0].length
  }
  add(text.slice(end), false)
  return spans
}

/** Without the backticks. */
export function plainText(text: string): string {
  return text.replaceAll('`', '')
}
