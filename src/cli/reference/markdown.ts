/** Renders the command reference as one page of Markdown: `docs/cli.md`. */
import type { CommandPage, Reference } from './tree.ts'
import { introduction, spansOf, type Block, type HelpTerm } from './text.ts'
import type { Topic } from './topics.ts'

export function renderMarkdown({ pages, commonOptions, globalOptions, topics }: Reference): string {
  const groups = [...new Set(pages.map(({ group }) => group))]
  const parts = [
    '# The command line client',
    '<!-- Generated from the commands and topics in src/cli; change those, then run "npm run generate". -->',
    inline(introduction),
    'See also: [events.md](events.md) for rules, [packs.md](packs.md) for packs, [access.md](access.md) for permissions.',
    ...topics.slice(0, 1).flatMap((topic) => renderTopic(topic)),
    '## Commands',
    ...groups.flatMap((group) => [
      `**${group}**`,
      table(
        ['Command', 'Description', 'Sub-commands'],
        pages
          .filter((page) => page.group === group)
          .map((page) => [
            link(page, page.name),
            inline(page.summary),
            page.children.map((child) => link(child, child.name.slice(page.name.length + 1))).join(', '),
          ]),
      ),
    ]),
    ...topics.slice(1).flatMap((topic) => renderTopic(topic)),
    '## Options of all commands',
    inline('Every command that connects to a server has these options:'),
    terms('Option', commonOptions),
    inline('Global options go before or after the command:'),
    terms('Option', globalOptions),
    '# Reference',
    ...pages.flatMap((page) => renderPage(page, 2)),
  ]
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`
}

function renderTopic({ title, blocks }: Topic): string[] {
  return [`## ${title}`, ...blocks.map(renderBlock)]
}

function renderPage(page: CommandPage, level: number): string[] {
  return [
    `${'#'.repeat(level)} svc ${page.name}`,
    inline(page.description),
    ...(page.otherNames.length === 0 ? [] : [`Also called: ${page.otherNames.map(code).join(', ')}.`]),
    ...(page.children.length > 0 ? [] : renderUse(page)),
    ...page.children.flatMap((child) => renderPage(child, level + 1)),
  ]
}

function renderUse({ usage, arguments: operands, options, notes, examples, samples }: CommandPage): string[] {
  return [
    fence(usage),
    terms('Argument', operands),
    terms('Option', options),
    ...notes.map(inline),
    examples.length === 0
      ? ''
      : `${examples.length === 1 ? 'Example' : 'Examples'}:\n\n${fence(examples.join('\n'), 'sh')}`,
    ...samples.map(({ name, text }) => `${code(name)}:\n\n${fence(text)}`),
  ]
}

function renderBlock(block: Block): string {
  if (typeof block === 'string') return inline(block)
  if ('lines' in block) return fence(block.lines)
  if ('list' in block) return block.list.map((item) => `- ${inline(item)}`).join('\n')
  return table(
    block.header,
    block.rows.map((row) => row.map(inline)),
  )
}

function terms(title: string, items: readonly HelpTerm[]): string {
  if (items.length === 0) return ''
  return table(
    [title, 'Meaning'],
    items.map(({ term, description }) => [code(term), inline(description)]),
  )
}

/** Cells are Markdown already. */
function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  // Empty columns are left out.
  const columns = header.map((_, index) => index).filter((index) => rows.some((row) => (row[index] ?? '') !== ''))
  const line = (cells: readonly string[]): string =>
    `| ${columns.map((index) => (cells[index] ?? '').replaceAll('|', '\\|')).join(' | ')} |`.replace(/ +(?=\|)/g, ' ')
  return [line(header), `|${columns.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n')
}

function inline(text: string): string {
  return spansOf(text)
    .map((span) => (span.isCode ? code(span.text) : span.text.replace(/[\\*<>[\]]|(?<!\w)_|_(?!\w)/g, '\\$&')))
    .join('')
}

function code(text: string): string {
  return `\`${text}\``
}

function fence(text: string, language = ''): string {
  return `\`\`\`${language}\n${text}\n\`\`\``
}

function link(page: CommandPage, text: string): string {
  return `[${code(text)}](#svc-${page.name.replaceAll(' ', '-')})`
}
