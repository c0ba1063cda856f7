/** Command lines as nobody would type them, made from what every command really takes. */
import type { Command, Option } from 'commander'
import { commands, findEntry, readCommand } from '../../../src/cli/commands/index.ts'
import { addGlobalOptions } from '../../../src/cli/options.ts'
import { CliCommand } from '../../../src/cli/command.ts'
import { createRandom, type Random } from '../random.ts'

export interface CommandLine {
  args: string[]
  /** The command is the one that its first words name, and it was asked for JSON. */
  isJson: boolean
  input: string
  /** What the terminal says of its width; undefined: there is none. */
  columns: number | undefined
  isColored: boolean
}

/** A command that does something itself. */
interface Leaf {
  path: readonly string[]
  arguments: readonly { name: string; isVariadic: boolean; isRequired: boolean }[]
  options: readonly Option[]
}

/** Files of the working directory, by what they are for the client. */
export const files = {
  text: 'text.txt',
  json: 'record.json',
  list: 'list.json',
  yaml: 'record.yaml',
  notUtf8: 'latin.yaml',
  deep: 'deep.json',
  config: 'svc.conf',
  badConfig: 'broken.conf',
  unreadable: 'secret.json',
  folder: 'folder.json',
  pipe: 'pipe.json',
  loop: 'loop.json',
  missing: 'missing.json',
} as const

const paths: readonly [string, ...string[]] = [
  files.text,
  ...Object.values(files),
  'folder.json/x',
  '/dev/null',
  '/dev/full',
  '/proc/self/mem',
  '/',
]

const ids = ['6b01aef89ced91c48c2e9dbe', 'last', 'core.local', 'default.rule', 'alice', 'mock', 'web.url'] as const

const odd = [
  '', ' ', '-', '--', '=', '=x', 'x=', '@', '@x', '@cmd=', 'a=1', 'a=@', '-1', '0', '1', '5', '-0', '1e9', '1e309', '9007199254740993', '999999999', '1000000000',
  'NaN', 'true', 'null', '[]', '{}', '{"a": 1}', '[1,', '{"__proto__": {"a": 1}}', '__proto__', '__proto__=1', 'constructor', 'toString', '..', '.', '%', '%2f', '%zz',
  '../../etc/passwd', 'a/b', '?a=b', '#a', 'a b', 'a,b', ',', 'a\nb', 'a\tb', '\u0000', '\u001b[2J', '\u009b31m', '\u202egnp', '\ud800', 'x\udc00', 'ü€😀', '日本', 'e\u0301',
  "'", '"', '$(id)', '`id`', '\\', '*', '--frob', '--frob=1', '-xyz', '-ajk', '-n', '-n5', '-j', '-y', '--json=1', '--last=', '--help=1', '2030-01-01T00:00:00Z',
  '2030-99-99', 'asc', 'all', 'id,name', 'a.b.c', 'http://127.0.0.1:1', 'ftp://x', 'http://[::1', 'http://u:p@127.0.0.1:1', 'user:password', ':', '30d', '1h', 'stdout',
] as const // prettier-ignore

const everyday = ['cmd=date', 'timeout=5', 'hello', '10', 'id', 'status', 'core', 'name', '60', '100'] as const

/** Of addresses only those that lead nowhere: nobody else is to be bothered. */
const addresses = ['http://127.0.0.1:1', 'https://127.0.0.1:1', 'http://127.0.0.1:1/a b', 'ftp://127.0.0.1', '', 'x', 'http://127.0.0.1:99999'] as const // prettier-ignore

const inputs = [
  '',
  '',
  'y\n',
  'secret\nsecret\n',
  '\n\n\n',
  '{"a": 1}',
  '\u0000\u001b[A\n',
  'x'.repeat(70_000),
] as const

const help = ['-h', '--help', '--version', '--print-config', 'help'] as const

/** The command line with this number, and the random choices that made it, for what else belongs to it. */
export function makeRound(seed: number, round: number, vocabulary: Vocabulary): { random: Random; line: CommandLine } {
  const random = createRandom(seed ^ Math.imul(round + 1, 2246822519))
  return { line: makeCommandLine(random, vocabulary), random }
}

/** Of the server: options that fit and such that do not, and one that keeps it from starting in any case. */
export function makeServerLine(random: Random, options: readonly Option[]): string[] {
  const words = Array.from({ length: random.below(5) }, () =>
    optionWords(random, options[random.below(options.length)]),
  )
  return ['serve', ...words.flat(), random.once(2) ? '--api-port=none' : '--frob']
}

const ofThisMachine: ReadonlySet<string> = new Set([
  'doctor',
  'reload',
  'reopen-logs',
  'restart',
  'restore',
  'serve',
  'service',
  'start',
  'stop',
  'svcctl',
])

/**
 * Every command of the client with all its options, those that help does not show and those of `svc` itself included. What
 * works on this machine, and not on a server, is none.
 */
export async function readLeaves(): Promise<{ leaves: Leaf[]; globals: readonly Option[] }> {
  const program = new CliCommand('svc')
  addGlobalOptions(program)
  const loaded = await Promise.all(
    commands
      .filter(({ name }) => !ofThisMachine.has(name))
      .map(async (entry) => ({ entry, command: await readCommand(entry) })),
  )
  const leaves = loaded.flatMap(({ entry, command }) => [
    ...leavesOf(command, [entry.name]),
    ...(entry.alias === undefined ? [] : leavesOf(command, [entry.alias])),
  ])
  return { leaves, globals: program.options }
}

export async function readServerOptions(): Promise<readonly Option[]> {
  const entry = findEntry('serve')
  if (entry === undefined) throw new Error('There is no command that starts a server')
  return (await readCommand(entry)).options
}

function leavesOf(command: Command, path: readonly string[]): Leaf[] {
  if (command.commands.length > 0) {
    return command.commands.flatMap((child) => leavesOf(child, [...path, child.name()]))
  }
  const operands = command.registeredArguments.map((argument) => ({
    name: argument.name(),
    isVariadic: argument.variadic,
    isRequired: argument.required,
  }))
  return [{ path, arguments: operands, options: command.options }]
}

export interface Vocabulary {
  leaves: readonly Leaf[]
  globals: readonly Option[]
}

function makeCommandLine(random: Random, { leaves, globals }: Vocabulary): CommandLine {
  const leaf = leaves[random.below(leaves.length)]
  if (leaf === undefined) throw new Error('There are no commands')
  const isJson = random.once(3)
  const words: string[] = [...leaf.path, ...(isJson ? ['-j'] : [])]
  const tail: string[][] = leaf.arguments.flatMap((argument) => {
    if (!argument.isRequired && random.once(2)) return []
    const count = argument.isVariadic ? 1 + random.below(3) : 1
    return Array.from({ length: count }, () => [operandFor(random, argument.name)])
  })
  for (let count = random.below(4); count > 0; count -= 1) {
    const option = leaf.options[random.below(leaf.options.length)]
    if (option !== undefined) tail.splice(random.below(tail.length + 1), 0, optionWords(random, option))
  }
  const before = random.once(6) ? optionWords(random, globals[random.below(globals.length)]) : []
  const args = [...before, ...words, ...tail.flat()]
  const isMutated = random.once(2)
  if (isMutated) for (let count = 1 + random.below(3); count > 0; count -= 1) mutate(random, args, leaves)
  return {
    args,
    isJson: isJson && !isMutated && before.length === 0 && !tail.flat().some((word) => /^-|help/.test(word)),
    input: random.pick(inputs),
    // At a terminal the manual starts a program that shows it page by page.
    columns: random.once(3) && !args.includes('manual') ? random.pick([0, 1, 20, 40, 80, 1000]) : undefined,
    isColored: random.once(5),
  }
}

function mutate(random: Random, args: string[], leaves: readonly Leaf[]): void {
  const at = random.below(args.length + 1)
  const word = args[at] ?? ''
  switch (random.below(8)) {
    case 0:
      args.splice(at, 1)
      break
    case 1:
      args.splice(at, 0, word)
      break
    case 2:
      args.splice(random.below(args.length + 1), 0, ...args.splice(at, 1))
      break
    case 3:
      args.splice(at, 1, misspell(random, word))
      break
    case 4:
      args.splice(at, 0, random.pick(help))
      break
    case 5:
      args.splice(at, 0, ...(leaves[random.below(leaves.length)]?.path ?? []))
      break
    case 6:
      // As from a script that lost a quote.
      args.splice(at, 2, args.slice(at, at + 2).join(random.pick(['', ' ', '='])))
      break
    default:
      args.splice(at, 0, value(random))
  }
}

function misspell(random: Random, word: string): string {
  const letters = word.split('')
  const at = random.below(letters.length + 1)
  if (random.once(2)) letters.splice(at, 1)
  else letters.splice(at, 0, random.pick(['x', '-', 'A', ' ', '\u0007', '=']))
  return letters.join('')
}

function value(random: Random): string {
  if (random.once(40)) return random.pick(['a', '日', '[', '\u001b', ' ']).repeat(random.pick([300, 5000, 100_000]))
  return random.once(3) ? random.pick(everyday) : random.once(3) ? random.pick(paths) : random.pick(odd)
}

function operandFor(random: Random, name: string): string {
  if (random.once(3)) return value(random)
  if (/file|path/.test(name)) return random.pick(paths)
  if (/param|value|words|text/.test(name)) {
    return random.once(2) ? `${random.pick(['cmd', 'a', '@a', '@cmd', '__proto__'])}=${value(random)}` : value(random)
  }
  return random.pick(ids)
}

function optionWords(random: Random, option: Option | undefined): string[] {
  if (option === undefined) return []
  const name = (random.once(2) ? option.short : undefined) ?? option.long ?? ''
  if (!option.required && !option.optional) return [name]
  const given = valueFor(random, option)
  if (option.variadic && random.once(2)) return [name, given, value(random)]
  if (random.once(8)) return [name]
  return random.once(4) && name.startsWith('--') ? [`${name}=${given}`] : [name, given]
}

function valueFor(random: Random, { long, flags, argChoices }: Option): string {
  if (/url/.test(long ?? '')) return random.pick(addresses)
  if (random.once(3)) return value(random)
  const [choice] = argChoices ?? []
  if (argChoices !== undefined && choice !== undefined) return argChoices[random.below(argChoices.length)] ?? choice
  if (/config-file/.test(flags)) return random.pick(paths)
  if (/<(?:count|seconds|ms|n|depth|columns|days)/.test(flags))
    return random.pick(['-1', '0', '1', '5', '80', '1e3', '99999999999'])
  if (/file|path|cacert/.test(flags)) return random.pick(paths)
  if (/time/.test(flags)) return random.pick(['2030-01-01T00:00:00Z', 'yesterday', '2030', ''])
  return random.once(2) ? random.pick(ids) : random.pick(everyday)
}
