/**
 * What is told about the client, in the few forms that a terminal, Markdown and a manual page can all show. In running
 * text, words between backticks are what is typed or printed; so are options and placeholders such as `<id>`.
 */

/** What the manual page and `docs/cli.md` begin with. */
export const introduction =
  '`svc` is one executable: `svc serve` is the server, everything else talks to a server over HTTP. `svc --help` lists commands and topics; `svc help <command>`, or `svc <command> --help`, tells how a command is used, `svc help <topic>` about a topic. `svc manual` shows all of it as a manual page.'

export interface Described {
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

/** The first column names what the others tell of; in the last one is running text. Empty cells say nothing. */
export interface Table {
  header: readonly string[]
  rows: readonly (readonly string[])[]
}

/** What the columns between the first and the last one say of a row, such as `Flag: --url; Default: none`. */
export function detailsOf({ header }: Table, row: readonly string[]): string {
  return row
    .slice(1, -1)
    .flatMap((cell, index) => (cell === '' ? [] : [`${header[index + 1]}: ${cell}`]))
    .join('; ')
}

export interface Span {
  text: string
  isCode: boolean
}

const code = /`([^`]+)`|(?<![\w-])(?:--?[a-z][\w-]*(?:\/--[\w-]+)?|-1)(?![\w-])|<[a-z][\w .|-]*>/gi

/** Running text, taken apart at what is typed or printed. */
export function spansOf(text: string): Span[] {
  const spans: Span[] = []
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
