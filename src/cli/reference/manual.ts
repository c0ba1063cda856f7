/** Renders the command reference as a manual page in man(7) format, for groff and mandoc. */
import { leavesOf, type CommandPage, type Reference } from './tree.ts'
import { detailsOf, introduction, spansOf, type Block, type HelpTerm, type Table } from './text.ts'

export function renderManual({ pages, commonOptions, globalOptions, topics }: Reference): string {
  const [first, ...others] = topics
  const lines = [
    '.\\" Generated from the commands and topics in src/cli; change those, then run "npm run generate".',
    // No hyphenation of words to type, and no justification.
    '.TH SVC 1 "" svc "svc manual"',
    '.nh',
    '.ad l',
    section('Name'),
    'svc \\- event\\-driven automation server and command line client',
    section('Synopsis'),
    `.B svc`,
    running('[options] <command> [options] [arguments]'),
    '.br',
    '.B svc help',
    running('[command | topic]'),
    section('Description'),
    running(introduction),
    section('Commands'),
    ...leavesOf(pages).flatMap(renderCommand),
    section('Options of all commands'),
    'Every command that connects to a server has these options:',
    ...described(commonOptions),
    '.PP',
    running('Global options go before or after the command:'),
    ...described(globalOptions),
    ...others.flatMap((topic) => [section(topic.manualTitle ?? topic.title), ...renderBlocks(topic.blocks)]),
    ...(first === undefined ? [] : [section('Examples'), ...renderBlocks(first.blocks)]),
    section('See also'),
    `${['curl', 'jq'].map((name) => `.BR ${name} (1)`).join(' ,\n')}`,
  ]
  return `${lines.join('\n')}\n`
}

function section(title: string): string {
  return `.SH ${quote(title.toUpperCase())}`
}

function renderCommand({ otherNames, usage, description, notes, examples, samples, ...page }: CommandPage): string[] {
  const others = otherNames.map((name) => `\`${name}\``)
  return [
    `.SS ${quote(usage, true)}`,
    running(description),
    ...(others.length === 0 ? [] : ['.PP', running(`Also called: ${others.join(', ')}.`)]),
    ...described([...page.arguments.map(withBrackets), ...page.options]),
    ...notes.flatMap((note) => ['.PP', running(note)]),
    ...(examples.length === 0
      ? []
      : ['.PP', examples.length === 1 ? 'Example:' : 'Examples:', ...verbatim(examples.join('\n'))]),
    ...samples.flatMap((sample) => ['.PP', running(`\`${sample.name}\`:`), ...verbatim(sample.text)]),
  ]
}

function withBrackets({ term, description }: HelpTerm): HelpTerm {
  return { term: `<${term}>`, description }
}

function described(items: readonly HelpTerm[]): string[] {
  return items.flatMap(({ term, description }) => ['.TP', bold(term), running(description)])
}

function renderBlocks(blocks: readonly Block[]): string[] {
  return blocks.flatMap((block, index) => renderBlock(block, index === 0))
}

function renderBlock(block: Block, isFirst: boolean): string[] {
  if (typeof block === 'string') return [...(isFirst ? [] : ['.PP']), running(block)]
  if ('lines' in block) return verbatim(block.lines)
  if ('list' in block) return block.list.flatMap((item) => ['.IP \\(bu 2', running(item)])
  return block.rows.flatMap((row) => renderRow(block, row))
}

/** As on a terminal: the description, then the details. */
function renderRow(table: Table, row: readonly string[]): string[] {
  const details = detailsOf(table, row)
  return [
    '.TP',
    running(row[0] ?? ''),
    running(row.at(-1) ?? ''),
    ...(details === '' ? [] : ['.br', running(`${details}.`)]),
  ]
}

function verbatim(text: string): string[] {
  return ['.PP', '.RS 4', '.nf', ...text.split('\n').map((line) => startSafely(escape(line, true))), '.fi', '.RE']
}

/** Running text, in lines that can be compared; none ends within what is typed or printed. */
function running(text: string): string {
  const escaped = spansOf(text)
    .map(({ text: part, isCode }) => (isCode ? `\\fB${escape(part, true)}\\fP` : escape(part, false)))
    .join('')
  return breakLines(escaped).map(startSafely).join('\n')
}

/** A new sentence begins a new line, as formatters want it. */
function breakLines(text: string): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const line = lines.at(-1)
    if (line === undefined || line.length + 1 + word.length > 80 || /[\w)]\.$/.test(line)) lines.push(word)
    else lines[lines.length - 1] = `${line} ${word}`
  }
  return lines
}

function bold(text: string): string {
  return `\\fB${escape(text, true)}\\fP`
}

/** An argument of a macro. */
function quote(text: string, isCode = false): string {
  return `"${escape(text, isCode).replaceAll('"', '\\(dq')}"`
}

/** A line that begins with one of these would be a command to the formatter. */
function startSafely(line: string): string {
  return /^[.']/.test(line) ? `\\&${line}` : line
}

const typed: Readonly<Record<string, string>> = {
  '-': '\\-',
  "'": '\\(aq',
  '`': '\\(ga',
  '^': '\\(ha',
  '~': '\\(ti',
}

/** @param isCode whether the characters must be copyable as typed */
function escape(text: string, isCode: boolean): string {
  return text
    .replaceAll('\\', '\\e')
    .replace(/[-'`^~]/g, (character) => (isCode || character === '~' ? (typed[character] ?? '') : character))
    .replace(/[^\x20-\x7e]/gu, (character) => `\\[u${hexOf(character)}]`)
}

function hexOf(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
}
