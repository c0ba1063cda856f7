/** What documentation tells people to put in files. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectRoot } from './server.ts'

/** The text of a page in `docs`. */
export const docPage = (name: string): string => readFileSync(join(projectRoot, 'docs', name), 'utf8')

/** The block of a page whose first line is a comment with this name. */
export function docBlock(page: string, firstLine: string): string {
  const found = [...docPage(page).matchAll(/^```\w*\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block)
  const block = found.find((text) => text.startsWith(`${firstLine}\n`))
  if (block === undefined) throw new Error(`docs/${page} has no block that begins with "${firstLine}"`)
  return block
}
