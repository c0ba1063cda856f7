/** Code blocks of the documentation, so that tests try exactly what people read. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectRoot } from './server.ts'

export interface DocBlock {
  /** What follows the opening fence, such as `console`; empty without it. */
  language: string
  text: string
}

/** The text of a page in `docs`. */
export const docPage = (name: string): string => readFileSync(join(projectRoot, 'docs', name), 'utf8')

/** Every fenced block of a Markdown text, in order. */
export function blocksOf(markdown: string): DocBlock[] {
  return [...markdown.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, language = '', text = '']) => ({
    language,
    text,
  }))
}

/** The block of a page whose first line is a comment with this name. */
export function docBlock(page: string, firstLine: string): string {
  const block = blocksOf(docPage(page)).find(({ text }) => text.startsWith(`${firstLine}\n`))
  if (block === undefined) throw new Error(`docs/${page} has no block that begins with "${firstLine}"`)
  return block.text
}
