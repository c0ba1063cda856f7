/** Suggestions for names that do not exist. */
import { setTimeout as delay } from 'node:timers/promises'
import { closestWords } from '../lib/text/index.ts'
import { namesOf } from './command.ts'
import { commands, readCommand } from './commands/index.ts'
import { listIn, textOrEmpty } from './connection/responses.ts'
import { printable } from './output/print.ts'
import type { Session } from './session.ts'

/** The names most similar to a word; usually none or one. */
export function similarNames(word: string, names: readonly string[]): string[] {
  const forms = formsOf(word)
  const same = names.filter((name) => formsOf(name).some((form) => forms.includes(form)))
  // Of two spellings of one name the first is enough.
  if (same.length > 0) return same.filter((name, index) => same.findIndex((each) => isSame(each, name)) === index)
  const lower = word.toLowerCase()
  const begun = lower.length < 2 ? [] : names.filter((name) => name.toLowerCase().startsWith(lower))
  if (begun.length > 0) return begun.slice(0, MAX_SHOWN)
  return closestWords(word, names, Math.max(1, Math.floor(word.length / 3))).slice(0, MAX_SHOWN)
}

/** How many names are suggested at most. */
const MAX_SHOWN = 5

/** Spellings that count as one: in the plural, with other letter cases, `_`, or nothing between the words. */
function formsOf(word: string): string[] {
  const bare = word.toLowerCase().replace(/[-_]/g, '')
  return [bare, bare.replace(/ies$/, 'y'), bare.replace(/s$/, '')]
}

function isSame(a: string, b: string): boolean {
  return formsOf(a)[0] === formsOf(b)[0]
}

/** The sentence that suggests these names; empty when there are none. */
export function didYouMean(names: readonly string[]): string {
  if (names.length === 0) return ''
  return `(Did you mean ${names.length === 1 ? '' : 'one of '}${names.map(printable).join(', ')}?)\n`
}

/** Common synonyms of sub-commands. */
const otherWords: Readonly<Record<string, string>> = {
  ls: 'list',
  show: 'get',
  view: 'get',
  describe: 'get',
  add: 'create',
  new: 'create',
  edit: 'update',
  rm: 'delete',
  remove: 'delete',
  stop: 'cancel',
  kill: 'cancel',
  logs: 'tail',
  follow: 'tail',
  start: 'execute',
}

/**
 * What to tell about a command that does not exist.
 *
 * @param path what stands before it, such as `svc` or `svc execution`
 * @param rest what stands behind it
 * @param known what could stand there
 */
export async function suggestCommands(
  path: string,
  word: string,
  rest: readonly string[],
  known: readonly string[],
): Promise<string> {
  const meant = Object.hasOwn(otherWords, word) ? (otherWords[word] ?? word) : word
  if (path !== 'svc') {
    const near = known.includes(meant) ? [meant] : similarNames(word, known)
    return near.length > 0 ? didYouMean(near) : `(Commands of ${path}: ${known.join(', ')})\n`
  }
  const near = similarNames(word, known)
  if (near.some((name) => !name.startsWith(word))) return didYouMean(near)
  const nouns = await nounsWith([word, meant])
  const [named] = rest[0] === undefined ? [] : similarNames(rest[0], [...nouns.keys()])
  const [only] = nouns
  if (named !== undefined) return didYouMean([`svc ${named} ${nouns.get(named)}`])
  if (only !== undefined && nouns.size === 1) return didYouMean([`svc ${only[0]} ${only[1]}`])
  if (only !== undefined) {
    return `(It is a sub-command of ${[...nouns.keys()].join(', ')}. Example: svc ${only[0]} ${only[1]})\n`
  }
  return didYouMean(near)
}

/** Commands that have a sub-command of one of these names → the name of that. */
async function nounsWith(words: readonly string[]): Promise<Map<string, string>> {
  const nouns = new Map<string, string>()
  for (const entry of commands) {
    const { commands: children } = await readCommand(entry)
    for (const child of children) {
      const names = namesOf(child)
      if (words.some((word) => names.includes(word)) && !nouns.has(entry.name)) nouns.set(entry.name, child.name())
    }
  }
  return nouns
}

/** How long to wait for the server before there is no suggestion. */
const TIMEOUT_MS = 1000
const MAX_BYTES = 1024 * 1024

/** What to tell about an action that does not exist; nothing when the server does not say at once. */
export async function suggestActions({ client }: Pick<Session, 'client'>, ref: string): Promise<string> {
  const ask = async (query: { pack: string } | { name: string }): Promise<string[]> => {
    const full = { ...query, include_attributes: 'ref', limit: 100 }
    const answer = await client.call('GET', '/actions', { query: full, maxBytes: MAX_BYTES })
    return listIn(answer).map((record) => textOrEmpty(record['ref']))
  }
  const find = async (): Promise<string[]> => {
    const dot = ref.indexOf('.')
    const pack = ref.slice(0, Math.max(0, dot))
    const name = ref.slice(dot + 1)
    const siblings = pack === '' ? [] : await ask({ pack })
    // When the pack is not there, another one may have an action of that name.
    if (siblings.length === 0) return (await ask({ name })).slice(0, MAX_SHOWN)
    const near = similarNames(
      name,
      siblings.map((each) => each.slice(dot + 1)),
    )
    return near.map((each) => `${pack}.${each}`)
  }
  try {
    return didYouMean(await Promise.race([find(), delay(TIMEOUT_MS, [], { ref: false })]))
  } catch {
    return ''
  }
}
