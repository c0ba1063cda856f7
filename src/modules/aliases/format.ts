/**
 * What a chat command means (contract 02, 2.13). A format is a regular expression in Python's notation with captures:
 * `deploy {{ service }} to {{ stage = test }}`. Everything here takes time in proportion to the command.
 */
import { objectOf } from '../../lib/json/index.ts'
import { shown } from '../../lib/text/index.ts'
import {
  Budget,
  BudgetExhausted,
  compileTemplatePattern,
  defaultLimits,
  findAll,
  TemplateError,
  type RegExpMatch,
} from '../../lib/template/index.ts'

/** UTF-16 units. */
export const MAX_COMMAND_CHARS = 10_000
/** Executions that one command can ask for. */
export const MAX_FINDS = 100
/** Characters of the command times instructions of the format: some hundred milliseconds at worst. */
const MAX_SEARCH_WORK = 16 * 1024 * 1024
/** The same for all formats that one command is compared with, between pauses. */
const MAX_WORK = 256 * 1024 * 1024

/** Pays for the work on one command. */
export function createCommandBudget(): Budget {
  return new Budget({ ...defaultLimits, maxWork: MAX_WORK, maxMilliseconds: Infinity }, 'the command')
}

interface Capture {
  readonly name: string
  /** Undefined: it is required. */
  readonly default: string | undefined
}

/** A format, taken apart. */
export interface ParsedFormat {
  readonly captures: readonly Capture[]
  /** Text that every command begins with that fits; often empty. */
  readonly prefix: string
  /** @param isAnchored the expression stands for the whole command */
  pattern(isAnchored: boolean): string
  /** Whether its own text has an equals sign, which a command cannot lose to its key-value pairs. */
  readonly hasEqualsSign: boolean
}

/** Names and texts of parameters. */
export type CommandParameters = Record<string, string>

const captureName = /\{\{\s*(\w+)\s*/y
const quotedDefault = /=\s*(?:"([^]*?)"|'([^]*?)'|(\{[^]*?\}))\s*\}\}(?!\})/y
const plainDefault = /=\s*([^]*?)\s*\}\}/y

/** @throws Error that says what is no format in it; whether its text is a regular expression, `compileFormat` says */
export function parseFormat(text: string): ParsedFormat {
  const captures: Capture[] = []
  /** Texts between the captures: one more than there are captures. */
  const texts: string[] = []
  let from = 0
  for (let at = text.indexOf('{{'); at !== -1; at = text.indexOf('{{', from)) {
    const { capture, end } = readCapture(text, at)
    if (captures.some(({ name }) => name === capture.name)) {
      throw new Error(`{{ ${shown(capture.name)} }} is there twice`)
    }
    captures.push(capture)
    texts.push(text.slice(from, at))
    from = end
  }
  texts.push(text.slice(from))
  if (texts.some((part) => part.includes('}}'))) throw new Error(`"${shown(text)}" has }} without {{`)

  return {
    captures,
    prefix: prefixOf(texts[0] ?? ''),
    hasEqualsSign: texts.some((part) => part.includes('=')),
    pattern(isAnchored) {
      let body = texts[0] ?? ''
      for (const [index, capture] of captures.entries()) {
        body = appendCapture(body, capture, index) + (texts[index + 1] ?? '')
      }
      if (!isAnchored) return body
      const start = body.startsWith('^') ? '' : String.raw`^\s*`
      const end = /(?:^|[^\\])(?:\\\\)*\$$/.test(body) ? '' : String.raw`\s*$`
      return `${start}(?:${body})${end}`
    },
  }
}

function readCapture(text: string, at: number): { capture: Capture; end: number } {
  captureName.lastIndex = at
  const name = captureName.exec(text)?.[1]
  const after = captureName.lastIndex
  if (name !== undefined && text.startsWith('}}', after)) {
    return { capture: { name, default: undefined }, end: after + 2 }
  }
  for (const pattern of [quotedDefault, plainDefault]) {
    pattern.lastIndex = after
    const [whole, ...values] = name === undefined ? [] : (pattern.exec(text) ?? [])
    if (name === undefined || whole === undefined) continue
    return { capture: { name, default: values.find((value) => value !== undefined) ?? '' }, end: after + whole.length }
  }
  const end = text.indexOf('}}', at)
  if (end === -1) throw new Error(`"${shown(text)}" has {{ without }}`)
  throw new Error(`"${shown(text.slice(at, end + 2))}" is neither {{ name }} nor {{ name = default }}`)
}

/** The blanks before an optional capture are left out with it. */
function appendCapture(before: string, { default: preset }: Capture, index: number): string {
  const [double, single, object, bare] = groupsOf(index)
  const value = `(?:"(?P<${double}>.*?)"|'(?P<${single}>.*?)'|(?P<${object}>\\{.+?\\})|(?P<${bare}>.+?))`
  if (preset === undefined) return before + value
  const text = before.trimEnd()
  return `${text}(?:${before.slice(text.length)}${value})?`
}

/** Of the ways to write a value: in double quotes, in single quotes, in braces, without any. */
function groupsOf(index: number): [string, string, string, string] {
  return [`svc_${index}_d`, `svc_${index}_s`, `svc_${index}_o`, `svc_${index}_b`]
}

const ownGroup = /^svc_\d+_[dsob]$/

/** The longest literal text at the beginning; what a quantifier may belong to is not part of it. */
function prefixOf(text: string): string {
  if (text.includes('|')) return ''
  const [literal = ''] = /^[\p{L}\p{N}_ -]*/u.exec(text) ?? []
  const cut = /^[?*+{]/.test(text.slice(literal.length)) ? literal.replace(/[^]$/u, '') : literal
  return cut.trim()
}

/** A format that commands can be compared with. */
export interface CompiledFormat {
  /** Instructions of its expression. */
  readonly size: number
  /**
   * The parameters of a command that fits.
   *
   * @throws BudgetExhausted: the command is too long for the format
   */
  match(command: string, budget: Budget): CommandParameters | undefined
  /** Those of every place in the command that fits, at most `MAX_FINDS` and one more. */
  find(command: string, budget: Budget): CommandParameters[]
}

/** @throws Error that says what is no format, or no regular expression that takes linear time */
export function compileFormat(text: string): CompiledFormat {
  const format = parseFormat(text)
  const compile = (isAnchored: boolean) => {
    const budget = createCommandBudget()
    try {
      return compileTemplatePattern(format.pattern(isAnchored), { dotAll: true, fromStart: isAnchored }, budget)
    } catch (error) {
      if (error instanceof TemplateError && !(error instanceof BudgetExhausted))
        throw new Error(error.message, { cause: error })
      throw error
    }
  }
  // First as it is: within the group of the anchors, a pattern with an extra bracket could become valid.
  compile(false)
  const anchored = compile(true)
  /** Only `find` needs it, and few formats are searched for. */
  let loose: typeof anchored | undefined
  const names = Object.entries(anchored.namedGroups() as Record<string, number>) // the engine declares no type

  const twice = format.captures.find(({ name }) => names.some(([known]) => known === name))
  if (twice !== undefined) throw new Error(`{{ ${shown(twice.name)} }} is there twice`)

  function parametersOf({ groups }: RegExpMatch, pairs: CommandParameters): CommandParameters {
    const found: [name: string, value: string][] = []
    for (const [index, capture] of format.captures.entries()) {
      const given = groupsOf(index)
        .map((name) => groups[groupNumbers.get(name) ?? 0])
        .find((value) => typeof value === 'string')
      const value = given ?? capture.default
      if (value !== undefined) found.push([capture.name, value])
    }
    for (const [name, number] of names) {
      const value = ownGroup.test(name) ? undefined : groups[number]
      if (typeof value === 'string') found.push([name, value])
    }
    return textsOf([...found, ...Object.entries(pairs)])
  }
  const groupNumbers = new Map(names)

  function search(expression: ReturnType<typeof compile>, command: string, most: number, spend: Budget): RegExpMatch[] {
    const work = command.length * expression.programSize()
    if (work > MAX_SEARCH_WORK) {
      throw new BudgetExhausted(`the command is too long for the format "${shown(text)}"`)
    }
    const found: RegExpMatch[] = []
    for (const match of findAll(expression, command, spend)) {
      found.push(match)
      if (found.length === most) break
    }
    return found
  }

  const readings = (command: string): { text: string; pairs: CommandParameters }[] => {
    const stripped = splitPairs(command)
    const isSame = stripped.text === command
    return isSame || !format.hasEqualsSign ? [stripped] : [stripped, { text: command, pairs: {} }]
  }

  return {
    size: anchored.programSize(),
    match(command, spend) {
      for (const { text: words, pairs } of readings(command)) {
        const [match] = search(anchored, words, 1, spend)
        if (match !== undefined) return parametersOf(match, pairs)
      }
      return undefined
    },
    find(command, spend) {
      for (const { text: words, pairs } of readings(command)) {
        const found = search((loose ??= compile(false)), words, MAX_FINDS + 1, spend)
        const all = found.filter(({ start, end }) => end > start).map((match) => parametersOf(match, pairs))
        if (all.length > 0) return all
      }
      return []
    },
  }
}

const textsOf = (entries: readonly (readonly [string, string])[]): CommandParameters =>
  objectOf(entries) as CommandParameters // its values are those of the entries

const key = /([\p{L}\p{N}_]+)=/uy
const closers = ['"', "'", '}']

/**
 * Takes the key-value pairs off the end of a command: ` k=v k2="v 2"`. A value is quoted text, text in braces, or a word; a
 * quoted text ends at the first quote after which only pairs follow.
 */
export function splitPairs(command: string): { text: string; pairs: CommandParameters } {
  const isBlank = (at: number): boolean => at >= command.length || /\s/.test(command.charAt(at))
  const length = command.trimEnd().length
  /** Place of a pair, after which only pairs follow → it. */
  const pairs = new Map<number, { name: string; value: string; end: number }>()
  /** The nearest two places of each closing mark after which only pairs follow. */
  const nearest: Partial<Record<string, readonly number[]>> = {}
  /** First character that is no blank, from here on. */
  let next = length
  /** End of the word that begins here. */
  let wordEnd = length
  const onlyPairsFrom = (at: number): boolean => at >= length || pairs.has(at)

  let first = length
  for (let at = length - 1; at >= 0; at -= 1) {
    if (isBlank(at)) {
      wordEnd = at
      continue
    }
    const character = command.charAt(at)
    if (isBlank(at + 1)) {
      wordEnd = at + 1
      if (closers.includes(character) && onlyPairsFrom(next))
        nearest[character] = [at, ...(nearest[character] ?? [])].slice(0, 2)
    }
    if (at === 0 || isBlank(at - 1)) {
      const pair = readPair(command, at, wordEnd, nearest, onlyPairsFrom(next) ? wordEnd : undefined)
      if (pair !== undefined) {
        pairs.set(at, pair)
        first = at
      }
      next = at
    }
  }
  const found: [name: string, value: string][] = []
  for (let at = first; at < length;) {
    const pair = pairs.get(at)
    if (pair === undefined) break
    found.push([pair.name, pair.value])
    at = pair.end
    while (at < length && isBlank(at)) at += 1
  }
  return first === length ? { text: command, pairs: {} } : { text: command.slice(0, first), pairs: textsOf(found) }
}

/** @param wordEnd where the word ends that begins at `at`; `plainEnd` the same, if only pairs follow it */
function readPair(
  command: string,
  at: number,
  wordEnd: number,
  nearest: Partial<Record<string, readonly number[]>>,
  plainEnd: number | undefined,
): { name: string; value: string; end: number } | undefined {
  key.lastIndex = at
  const [whole, name = ''] = key.exec(command) ?? []
  if (whole === undefined) return undefined
  const start = at + whole.length
  const opener = command.charAt(start)
  const closer = opener === '{' ? '}' : opener === '}' ? '' : opener
  // The nearest one may be the opening quote itself.
  const close = nearest[closer]?.find((place) => place > start)
  if (close !== undefined) {
    const value = opener === '{' ? command.slice(start, close + 1) : command.slice(start + 1, close)
    return { name, value, end: close + 1 }
  }
  const word = command.slice(start, wordEnd)
  // With a quote at one of its ends, it is a part of quoted text.
  if (plainEnd === undefined || word === '' || /^["']|["']$/.test(word)) return undefined
  return { name, value: word, end: wordEnd }
}
