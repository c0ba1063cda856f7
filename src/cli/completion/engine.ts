/**
 * Computes the completions of a word. Commands, options and values come from the command definitions; only the command
 * on the line is loaded.
 */
import type { Argument, Command, Option } from 'commander'
import { CliCommand, findChild, namesOf } from '../command.ts'
import { findEntry, readCommand } from '../commands/index.ts'
import { completionsOfArgument, completionsOfOption, type NameSource, type Completions } from '../names.ts'
import { isAssignment } from '../input/parameters.ts'
import { argumentsFor } from '../program-names.ts'

export interface Candidate {
  text: string
  /** What it is, on one line or several; may be empty. */
  about: string
}

export interface Completion {
  /** Each begins with the word, or with the part of it before the cursor. */
  candidates: Candidate[]
  /** Paths of files are possible too, after `=` when the word has one. */
  files: boolean
  /** More follows without a blank, as after `name=`. */
  isPart: boolean
}

/** Asks the server. Without a timely response it offers nothing. */
export interface Lookup {
  names(names: NameSource, word: string, flags: Flags): Promise<Candidate[]>
  /** Assignments of parameters. @param given words that stand there already */
  parameters(of: 'action' | 'execution', id: string, word: string, given: readonly string[]): Promise<Completion>
}

/** Values of the options on the line, by attribute; true for those without one. */
export type Flags = Record<string, string | true>

const nothing: Completion = { candidates: [], files: false, isPart: false }
const onlyFiles: Completion = { ...nothing, files: true }

/**
 * @param program with its options, and with the commands as they are before they are loaded
 * @param words the name of the program, the words after it, and last the one that is completed, empty when it is new
 * @param createLookup called at most once, with the options on the line
 */
export async function complete(
  program: Command,
  words: readonly string[],
  createLookup: (flags: Flags) => Promise<Lookup>,
): Promise<Completion> {
  const [path = '', ...rest] = words
  const word = rest.at(-1) ?? ''
  const line = readArguments(program, argumentsFor(path, rest.slice(0, -1)), { isLeaf: false })
  if (line.next === undefined) return completeWord(program, line, word, createLookup)
  if (line.next === 'help') return completeHelp(program, line.rest, word)
  const command = await load(line.next)
  return command === undefined ? nothing : completeCommand(command, line, word, createLookup)
}

async function completeCommand(
  command: Command,
  before: Line,
  word: string,
  createLookup: (flags: Flags) => Promise<Lookup>,
): Promise<Completion> {
  const isLeaf = command.commands.length === 0
  const own = readArguments(command, before.rest, { isLeaf })
  const line = { ...own, flags: { ...before.flags, ...own.flags } }
  if (line.next === undefined) return completeWord(command, line, word, createLookup)
  const child = findChild(command, line.next)
  return child === undefined ? nothing : completeCommand(child, line, word, createLookup)
}

async function completeHelp(program: Command, names: readonly string[], word: string): Promise<Completion> {
  let command: Command | undefined = program
  for (const [index, name] of names.entries()) {
    command = index === 0 ? await load(name) : findChild(command, name)
    if (command === undefined) return nothing
  }
  const topics = names.length === 0 ? await readTopics() : []
  return { ...nothing, candidates: beginningWith(word, [...subcommandsOf(command), ...topics]) }
}

async function readTopics(): Promise<Candidate[]> {
  const { topics } = await import('../reference/topics.ts')
  return topics.map(({ name, summary }) => ({ text: name, about: summary }))
}

async function load(name: string): Promise<CliCommand | undefined> {
  const entry = findEntry(name)
  return entry === undefined ? undefined : readCommand(entry)
}

/** Sub-commands by all their names, except those that help does not show. */
function subcommandsOf(command: Command): Candidate[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .flatMap((each) => {
      const about = each.summary() || each.description()
      return namesOf(each).map((text) => ({ text, about }))
    })
}

interface Line {
  flags: Flags
  options: readonly Option[]
  operands: readonly string[]
  /** The sub-command; undefined when the word at the cursor is to be it, or when there are none. */
  next: string | undefined
  /** What stands after it. */
  rest: readonly string[]
  /** Takes the next word as its value; when it need not, the next word may also be something else. */
  waiting: { option: Option; isSure: boolean } | undefined
  /** No word is an option any more. */
  isOver: boolean
  /** Completions belong to the command that an action runs. */
  isInCommand: boolean
}

/** Reads what stands before the word, in the way commander will. */
function readArguments(command: Command, args: readonly string[], { isLeaf }: { isLeaf: boolean }): Line {
  const flags: Flags = {}
  const options: Option[] = []
  const operands: string[] = []
  const hasParameters = command.registeredArguments.some((argument) => isParameters(completionsOf(command, argument)))
  let waiting: Line['waiting']
  let isOver = false
  let isInCommand = false
  for (let index = 0; index < args.length; index += 1) {
    const arg = args[index] ?? ''
    if (waiting !== undefined && (waiting.isSure || !arg.startsWith('-'))) {
      const { option } = waiting
      flags[option.attributeName()] = arg
      waiting = option.variadic ? { option, isSure: false } : undefined
      continue
    }
    waiting = undefined
    if (!isOver && arg === '--') {
      isOver = true
    } else if (!isOver && arg.startsWith('-') && arg !== '-') {
      const { found, value } = optionsIn(command, arg)
      options.push(...found)
      for (const option of found) flags[option.attributeName()] = true
      const last = found.at(-1)
      if (last === undefined || !takesValue(last)) continue
      if (value === undefined) waiting = { option: last, isSure: last.required }
      else flags[last.attributeName()] = value
      if (value !== undefined && last.variadic) waiting = { option: last, isSure: false }
    } else if (!isLeaf) {
      return { flags, options, operands, next: arg, rest: args.slice(index + 1), waiting, isOver, isInCommand }
    } else {
      if (hasParameters && operands.length > 0 && !isAssignment(arg)) isOver = isInCommand = true
      operands.push(arg)
    }
  }
  return { flags, options, operands, next: undefined, rest: [], waiting, isOver, isInCommand }
}

/** The options in one argument, such as `-aj`, and the value that the last of them has there. */
function optionsIn(command: Command, arg: string): { found: Option[]; value: string | undefined } {
  const known = command instanceof CliCommand ? command.withLongName(arg) : arg
  if (known.startsWith('--')) {
    const equals = known.indexOf('=')
    const name = equals === -1 ? known : known.slice(0, equals)
    return {
      found: command.options.filter(({ long }) => long === name),
      value: equals === -1 ? undefined : known.slice(equals + 1),
    }
  }
  const found: Option[] = []
  for (let at = 1; at < known.length; at += 1) {
    const option = command.options.find(({ short }) => short === `-${known.charAt(at)}`)
    if (option === undefined) break
    found.push(option)
    if (takesValue(option)) return { found, value: at === known.length - 1 ? undefined : known.slice(at + 1) }
  }
  return { found, value: undefined }
}

function takesValue({ required, optional }: Option): boolean {
  return required || optional
}

async function completeWord(
  command: Command,
  line: Line,
  word: string,
  createLookup: (flags: Flags) => Promise<Lookup>,
): Promise<Completion> {
  const { waiting } = line
  if (waiting?.isSure === true) return completeValue(command, waiting.option, line, word, createLookup)
  if (!line.isOver && word.startsWith('-')) {
    const equals = word.indexOf('=')
    if (!word.startsWith('--') || equals === -1) {
      return { ...nothing, candidates: beginningWith(word, optionsOf(command, line)) }
    }
    const [option] = optionsIn(command, word).found
    if (option === undefined || !takesValue(option)) return nothing
    const value = await completeValue(command, option, line, word.slice(equals + 1), createLookup)
    const name = word.slice(0, equals + 1)
    return { ...value, candidates: value.candidates.map(({ text, about }) => ({ text: `${name}${text}`, about })) }
  }
  if (waiting !== undefined) return completeValue(command, waiting.option, line, word, createLookup)
  const { registeredArguments: declared } = command
  if (command.commands.length > 0) return { ...nothing, candidates: beginningWith(word, subcommandsOf(command)) }
  const last = declared.at(-1)
  const argument = declared[line.operands.length] ?? (last?.variadic === true ? last : undefined)
  if (argument === undefined) return nothing
  const words = completionsOf(command, argument)
  if (isParameters(words)) {
    const [id = '', ...given] = line.operands
    const isCommand = line.isInCommand || (line.isOver && line.operands.length > 0)
    if (isCommand) return onlyFiles
    const lookup = await createLookup(line.flags)
    return lookup.parameters(words === 'parameters' ? 'action' : 'execution', id, word, given)
  }
  return without(line.operands, argument, await completeWords(words, line, word, createLookup))
}

/** Does not offer the values again that a variadic argument already has. */
function without(given: readonly string[], { variadic }: Argument, completion: Completion): Completion {
  if (!variadic) return completion
  return { ...completion, candidates: completion.candidates.filter(({ text }) => !given.includes(text)) }
}

function completeValue(
  command: Command,
  option: Option,
  line: Line,
  word: string,
  createLookup: (flags: Flags) => Promise<Lookup>,
): Promise<Completion> {
  const long = option.long ?? option.flags
  const declared = command instanceof CliCommand ? command.completionsOf(long) : undefined
  const words = option.argChoices ?? declared ?? completionsOfOption(long, placeholderOf(option.flags))
  return completeWords(words, line, word, createLookup)
}

function completionsOf(command: Command, argument: Argument): Completions | undefined {
  const name = argument.name()
  const declared = command instanceof CliCommand ? command.completionsOf(name) : undefined
  const noun = command.parent?.name().replace(/^svc /, '') ?? ''
  return argument.argChoices ?? declared ?? completionsOfArgument(name, noun)
}

function isParameters(words: Completions | undefined): words is 'parameters' | 're-run parameters' {
  return words === 'parameters' || words === 're-run parameters'
}

/** `pack` of `-p, --pack <pack>`. */
function placeholderOf(flags: string): string {
  return /[<[]([^>\].]+)/.exec(flags)?.[1] ?? ''
}

async function completeWords(
  words: Completions | undefined,
  line: Line,
  word: string,
  createLookup: (flags: Flags) => Promise<Lookup>,
): Promise<Completion> {
  if (words === undefined || isParameters(words)) return nothing
  if (words === 'file') return onlyFiles
  if ('path' in words) {
    const also = (words.extraWords ?? []).map((text) => ({ text, about: '' }))
    const found = await (await createLookup(line.flags)).names(words, word, line.flags)
    return { ...nothing, candidates: beginningWith(word, [...also, ...found]) }
  }
  return {
    ...nothing,
    candidates: beginningWith(
      word,
      words.map((text) => ({ text, about: '' })),
    ),
  }
}

/** Options that can still be given, by all their names. */
function optionsOf(command: Command, { options }: Line): Candidate[] {
  const help = command.createHelp()
  return help.visibleOptions(command).flatMap((option) => {
    const isGiven = options.some((given) => given.attributeName() === option.attributeName())
    if (isGiven && !isRepeatable(option)) return []
    if (options.some((given) => excludes(given, option) || excludes(option, given))) return []
    const about = help.optionDescription(option)
    return namesOfOption(command, option).map((text) => ({ text, about }))
  })
}

/** Whether an option may be given several times, because its values are gathered. */
function isRepeatable({ variadic, parseArg }: Option): boolean {
  return variadic || (parseArg?.length ?? 0) > 1
}

function excludes(option: Option, other: Option): boolean {
  // Not among the types of commander.
  const names: unknown = Reflect.get(option, 'conflictsWith')
  return Array.isArray(names) && names.includes(other.attributeName())
}

function namesOfOption(command: Command, { short, long }: Option): string[] {
  const several = command instanceof CliCommand ? [...command.severalLetters] : []
  return [long, short, ...several.filter(([, name]) => name === long).map(([name]) => name)].filter(
    (name) => name !== undefined,
  )
}

function beginningWith(word: string, candidates: readonly Candidate[]): Candidate[] {
  return candidates.filter(({ text }) => text.startsWith(word))
}
