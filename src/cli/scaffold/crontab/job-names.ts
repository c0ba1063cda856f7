/**
 * Names of jobs from their commands: readable, and the same whenever the crontab is imported again. A name shows nothing that
 * may be a secret: no values of options, and of an address only its host.
 */
import { createHash } from 'node:crypto'

const MAX_NAME_CHARS = 40
const MAX_WORDS = 4

/** What only prepares the command proper. */
const preparing: ReadonlySet<string> = new Set([
  'cd',
  'test',
  '[',
  '[[',
  'export',
  'sleep',
  'source',
  '.',
  ':',
  'true',
  'umask',
  'set',
  'if',
  'then',
])

/** A program that starts the one that is meant. */
interface Starter {
  /** Options that have their value in the next word. */
  valued?: readonly string[]
  /** Words between the options and the program that is meant. */
  operands?: number
}

const starters: Readonly<Record<string, Starter>> = {
  chronic: {},
  command: {},
  doas: { valued: ['-u', '-C'] },
  env: { valued: ['-u', '-C'] },
  exec: {},
  flock: { valued: ['-w', '-E'], operands: 1 },
  ionice: { valued: ['-c', '-n', '-p'] },
  nice: { valued: ['-n'] },
  nohup: {},
  setsid: {},
  sudo: { valued: ['-u', '-g', '-p', '-h'] },
  time: {},
  timeout: { valued: ['-k', '-s'], operands: 1 },
}

const interpreters = /^(?:ba|da|z|k|a)?sh$|^(?:python|perl|php|ruby|node)[\d.]*$/

/**
 * The names of these commands, in their order; each is unique.
 *
 * @param kept names that jobs have already; undefined: the job is new
 * @param taken names that no new job gets
 */
export function nameJobs(
  commands: readonly string[],
  kept: readonly (string | undefined)[] = [],
  taken: Iterable<string> = [],
): string[] {
  const plain = commands.map(nameOf)
  const commandsOf = new Map<string, Set<string>>()
  for (const [index, name] of plain.entries()) {
    commandsOf.set(name, (commandsOf.get(name) ?? new Set()).add(commands[index] ?? ''))
  }
  const used = new Set<string>(taken)
  for (const name of kept) if (name !== undefined) used.add(name)
  return plain.map((name, index) => {
    const before = kept[index]
    if (before !== undefined) return before
    // Not by their order: a line that is added between them must not change the names of others.
    const isShared = (commandsOf.get(name)?.size ?? 0) > 1
    const own = isShared ? `${name}_${digestOf(commands[index] ?? '')}` : name
    let unique = own
    for (let count = 2; used.has(unique); count += 1) unique = `${own}_${count}`
    used.add(unique)
    return unique
  })
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 6)

function nameOf(command: string): string {
  const name = slugOf(properIn(command))
  return name === '' ? 'job' : name
}

/** The program and its arguments that a command line is about. */
function properIn(command: string): readonly string[] {
  const parts = partsOf(command)
  return meantIn(parts.find((words) => words.length > 0 && !preparing.has(words[0] ?? '')) ?? parts[0] ?? [])
}

/** The simple commands of a command line: what stands between `&&`, `|`, `;` and their kin outside of quotes. */
function partsOf(command: string): string[][] {
  return [...command.matchAll(/(?:"[^"]*"|'[^']*'|&(?!&)|[^&|;\n])+/g)].map(([part]) => wordsOf(part))
}

/** The words of a simple command, without redirections, quotes and assignments in front. */
function wordsOf(part: string): string[] {
  const words = [...part.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)].map(([word]) => word.replaceAll(/["']/g, ''))
  const end = words.findIndex((word) => /^(?:\d*|&)[<>]/.test(word))
  const kept = (end === -1 ? words : words.slice(0, end)).filter((word) => !/^[(){}!&]+$/.test(word))
  const first = kept.findIndex((word) => !/^[A-Za-z_]\w*=/.test(word))
  return first === -1 ? [] : kept.slice(first).map((word) => word.replaceAll(/^\(+|\)+$/g, ''))
}

/** The program that is meant, and its arguments. */
function meantIn(words: readonly string[]): readonly string[] {
  const [first = '', ...rest] = words
  const program = lastPart(first)
  const starter = Object.hasOwn(starters, program) ? starters[program] : undefined
  if (starter !== undefined) {
    const { valued = [], operands = 0 } = starter
    let index = 0
    for (; /^(?:-|[A-Za-z_]\w*=)/.test(rest[index] ?? ''); index += 1) {
      if (valued.includes(rest[index] ?? '')) index += 1
    }
    const meant = rest.slice(index + operands)
    return meant.length === 0 ? words : meantIn(meant)
  }
  if (!interpreters.test(program)) return words
  const [option = '', operand] = rest
  if (operand !== undefined && /^-\w*c$/.test(option) && program.endsWith('sh')) return properIn(operand)
  if (operand !== undefined && option === '-m') return rest.slice(1)
  const script = rest.findIndex((word) => !word.startsWith('-'))
  return script === -1 || /^-[ce]$/.test(option) ? [first] : rest.slice(script)
}

const lastPart = (word: string): string => word.replace(/\/+$/, '').split('/').at(-1) ?? ''

function slugOf([program = '', ...rest]: readonly string[]): string {
  const words = [lastPart(program).replace(/\.(?:sh|bash|py|pl|php|rb|js|mjs)$/, '')]
  for (const [index, word] of rest.entries()) {
    // Behind an option of one letter stands its value, which may be a password.
    const part = /^-[A-Za-z]$/.test(rest[index - 1] ?? '') ? '' : argumentPart(word)
    if (part !== '') words.push(part)
  }
  let slug = ''
  for (const word of words
    .map(toName)
    .filter((each) => each !== '')
    .slice(0, MAX_WORDS)) {
    const longer = slug === '' ? word.slice(0, MAX_NAME_CHARS).replace(/_+$/, '') : `${slug}_${word}`
    if (longer.length > MAX_NAME_CHARS) break
    slug = longer
  }
  return slug
}

/** What may be shown of an argument; empty: nothing. */
function argumentPart(word: string): string {
  if (/^-[^-]/.test(word) || word === '-') return ''
  if (word.startsWith('--')) return word.slice(2).replace(/=.*$/, '')
  const [, host] = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/@]*@)?([^/:?#]+)/i.exec(word) ?? []
  if (host !== undefined) return host
  // Text with a value or a variable, and anything as long as a key.
  if (/[=$`@]/.test(word)) return ''
  const part = lastPart(word)
  return /[A-Za-z0-9+/_-]{20}/.test(part) ? '' : part
}

const toName = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replaceAll(/^_+|_+$/g, '')
