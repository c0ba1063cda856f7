/** What somebody may have meant who named something that is not there. */
import { setTimeout as delay } from 'node:timers/promises'
import { namesOf } from './command.ts'
import { commands, readCommand } from './commands/index.ts'
import { listIn, textOf } from './connection/answers.ts'
import { printable } from './output/print.ts'
import type { Session } from './session.ts'

/** Names that somebody could have meant, the likeliest ones only: most of the time none or one. */
export function findNear(word: string, names: readonly string[]): string[] {
  const forms = formsOf(word)
  const same = names.filter((name) => formsOf(name).some((form) => forms.includes(form)))
  // Of two spellings of one name the first is enough.
  if (same.length > 0) return same.filter((name, index) => same.findIndex((each) => isSame(each, name)) === index)
  const lower = word.toLowerCase()
  const begun = lower.length < 2 ? [] : names.filter((name) => name.toLowerCase().startsWith(lower))
  if (begun.length > 0) return begun.slice(0, MAX_SHOWN)
  const distances = names.map((name) => distance(lower, name.toLowerCase()))
  const least = Math.min(...distances)
  if (least > Math.max(1, Math.floor(word.length / 3))) return []
  return names.filter((_, index) => distances[index] === least).slice(0, MAX_SHOWN)
}

/** How many names are suggested at most. */
const MAX_SHOWN = 5
/** Longer words are not compared. */
const MAX_LENGTH = 64

/** Spellings that count as one: in the plural, with other letter cases, `_`, or nothing between the words. */
function formsOf(word: string): string[] {
  const bare = word.toLowerCase().replace(/[-_]/g, '')
  return [bare, bare.replace(/ies$/, 'y'), bare.replace(/s$/, '')]
}

function isSame(a: string, b: string): boolean {
  return formsOf(a)[0] === formsOf(b)[0]
}

/** How many letters are missing, too many or different, and how many neighbours have changed places. */
function distance(a: string, b: string): number {
  if (a.length > MAX_LENGTH || b.length > MAX_LENGTH) return Number.POSITIVE_INFINITY
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const change = a[i - 1] === b[j - 1] ? 0 : 1
      let least = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + change)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, (before[j - 2] ?? 0) + 1)
      next.push(least)
    }
    before = row
    row = next
  }
  return row[b.length] ?? 0
}

/** The sentence that suggests these names; empty when there are none. */
export function didYouMean(names: readonly string[]): string {
  if (names.length === 0) return ''
  return `(Did you mean ${names.length === 1 ? '' : 'one of '}${names.map(printable).join(', ')}?)\n`
}

/** What people are used to call some sub-commands. */
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
    const near = known.includes(meant) ? [meant] : findNear(word, known)
    return near.length > 0 ? didYouMean(near) : `(${path} has: ${known.join(', ')})\n`
  }
  const near = findNear(word, known)
  if (near.some((name) => !name.startsWith(word))) return didYouMean(near)
  const nouns = await nounsWith([word, meant])
  const [named] = rest[0] === undefined ? [] : findNear(rest[0], [...nouns.keys()])
  const [only] = nouns
  if (named !== undefined) return didYouMean([`svc ${named} ${nouns.get(named)}`])
  if (only !== undefined && nouns.size === 1) return didYouMean([`svc ${only[0]} ${only[1]}`])
  if (only !== undefined) {
    return `(It follows one of ${[...nouns.keys()].join(', ')}; such as: svc ${only[0]} ${only[1]})\n`
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

/** A suggestion is not worth a longer wait. */
const PATIENCE_MS = 1000
const MAX_BYTES = 1024 * 1024

/** What to tell about an action that does not exist; nothing when the server does not say at once. */
export async function suggestActions({ client }: Pick<Session, 'client'>, ref: string): Promise<string> {
  const ask = async (query: { pack: string } | { name: string }): Promise<string[]> => {
    const full = { ...query, include_attributes: 'ref', limit: 100 }
    const answer = await client.call('GET', '/actions', { query: full, maxBytes: MAX_BYTES })
    return listIn(answer).map((record) => textOf(record['ref']))
  }
  const find = async (): Promise<string[]> => {
    const dot = ref.indexOf('.')
    const pack = ref.slice(0, Math.max(0, dot))
    const name = ref.slice(dot + 1)
    const siblings = pack === '' ? [] : await ask({ pack })
    // When the pack is not there, another one may have an action of that name.
    if (siblings.length === 0) return (await ask({ name })).slice(0, MAX_SHOWN)
    const near = findNear(
      name,
      siblings.map((each) => each.slice(dot + 1)),
    )
    return near.map((each) => `${pack}.${each}`)
  }
  try {
    return didYouMean(await Promise.race([find(), delay(PATIENCE_MS, [], { ref: false })]))
  } catch {
    return ''
  }
}
