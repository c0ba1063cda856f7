/** What the tests of the recipes share: the settings, commands and files that stand on a page. */
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { load } from 'js-yaml'
import { blocksOf } from '../helpers/doc-blocks.ts'
import { commandsOf, openConsole, stepsOf, type ConsoleSession, type ConsoleStep } from '../helpers/console-session.ts'
import { executable, projectRoot } from '../helpers/server.ts'

export const recipesFolder = join(projectRoot, 'docs', 'recipes')

export const recipe = (name: string): string => readFileSync(join(recipesFolder, name), 'utf8')

/** The only block of a page that begins with this line. */
export function blockOf(page: string, firstLine: string): string {
  const found = blocksOf(recipe(page)).filter(({ text }) => text.startsWith(`${firstLine}\n`))
  const [block] = found
  if (block === undefined || found.length > 1) {
    throw new Error(`docs/recipes/${page} has ${found.length} blocks that begin with "${firstLine}"`)
  }
  return block.text
}

/** Rules of a page by the files that they are to be saved in. */
export function rulesOf(page: string): ReadonlyMap<string, Record<string, unknown>> {
  const files = blocksOf(recipe(page)).flatMap(({ text }): [string, string][] => {
    const [, file = '', rest = ''] = /^# (\w+\.yaml)\n([^]*)$/.exec(text) ?? []
    return file === '' ? [] : [[file, rest]]
  })
  return new Map(files.map(([file, text]) => [file, load(text) as Record<string, unknown>])) // the server looks at it
}

/** `section.option` → value of a block of svc.conf. */
export function settingsOf(block: string): Record<string, string> {
  const settings: Record<string, string> = {}
  let section = ''
  for (const line of block.split('\n')) {
    section = /^\[(\w+)\]$/.exec(line)?.[1] ?? section
    const [, option, value = ''] = /^(\w+) = ?(.*)$/.exec(line) ?? []
    if (option !== undefined) settings[`${section}.${option}`] = value
  }
  return settings
}

/** Replaces each text, which must be there. */
export function adapted(text: string, replacements: Readonly<Record<string, string>>): string {
  return Object.entries(replacements).reduce((result, [from, to]) => {
    if (!result.includes(from)) throw new Error(`the text has no "${from}"`)
    return result.replaceAll(from, to)
  }, text)
}

/** Commands below a heading of a page, in order. */
export function stepsBelow(page: string, heading: string): ConsoleStep[] {
  const [, rest] = recipe(page).split(`\n## ${heading}\n`)
  if (rest === undefined) throw new Error(`docs/recipes/${page} has no heading "${heading}"`)
  const blocks = blocksOf(rest.split('\n## ')[0] ?? '')
  return blocks.flatMap(({ language, text }) =>
    language === 'console' ? stepsOf(text) : language === 'sh' ? commandsOf(text) : [],
  )
}

/** A shell in the folder that has `svc`. @param env besides PATH and HOME */
export function openShell(
  folder: string,
  env: Record<string, string>,
  replacements: Record<string, string>,
): ConsoleSession {
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  symlinkSync(executable, join(bin, 'svc'))
  const PATH = `${bin}:${process.env['PATH'] ?? ''}`
  return openConsole({ folder, env: { PATH, HOME: folder, LANG: 'C.UTF-8', ...env }, replacements })
}
