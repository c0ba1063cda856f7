import {
  characterCount,
  findAll,
  replaceAll,
  replaceMatches,
  TemplateError,
  type Budget,
  type RegExpMatch,
} from '../../template/index.ts'
import { makeDict } from '../equality.ts'
import { typeError, valueError, YaqlError } from '../error.ts'
import { isFound, searchPattern } from '../patterns.ts'
import { RegexValue } from '../regex-value.ts'
import type { Runtime } from '../runtime.ts'
import type { Lambda } from '../scope.ts'
import { fn, method, optional, param, type Overload, type Parameter } from '../signature.ts'
import { Bool, Fn, Index, orNull, Regex, Text } from '../types.ts'
import { ListValue, typeNameOf, type Value } from '../values.ts'

const regexp = param('regexp', Regex)
const string = param('string', Text)

/** The group as `$`, `$2`, … show it. */
function groupOf({ groups, spans }: RegExpMatch, index: number, text: string, budget: Budget): Value {
  const [start, end] = (spans[index] ?? [-1, -1]).map((at) => (at < 0 ? at : characterCount(text.slice(0, at))))
  budget.work(text.length)
  return makeDict(
    [
      ['value', groups[index] ?? null],
      ['start', start ?? -1],
      ['end', end ?? -1],
    ],
    budget,
    false,
  )
}

/** What the function makes of a match: `$` is the whole, `$2` the first group. */
function select(match: RegExpMatch, regex: RegexValue, text: string, selector: Lambda, { budget }: Runtime): Value {
  if (Object.keys(regex.compiled.namedGroups()).length > 0) {
    throw valueError('a function of a match cannot see groups with names; use ( ) for them, and $2, $3 and so on')
  }
  return selector.call(match.groups.map((_, index) => groupOf(match, index, text, budget)))
}

const results = (
  match: RegExpMatch,
  regex: RegexValue,
  text: string,
  selector: Lambda | null,
  runtime: Runtime,
): Value => (selector === null ? (match.groups[0] ?? null) : select(match, regex, text, selector, runtime))

/** All for 0, and none for a negative number. */
const limitOf = (count: number): number => (count === 0 ? Infinity : Math.max(0, count))

function split(regex: RegexValue, text: string, limit: number, budget: Budget): Value {
  const parts = new ListValue()
  let at = 0
  let left = limitOf(limit)
  for (const { start, end, groups } of findAll(regex.compiled, text, budget)) {
    if (left === 0) break
    left -= 1
    parts.push(text.slice(at, start), ...groups.slice(1))
    at = end
  }
  parts.push(text.slice(at))
  budget.text(text.length)
  return parts
}

function replace(regex: RegexValue, text: string, by: string, count: number, budget: Budget): string {
  try {
    return replaceAll(text, regex.compiled, by, budget, limitOf(count))
  } catch (error) {
    if (error instanceof TemplateError && error.code === 'FILTER') throw new YaqlError('error', error.message)
    throw error
  }
}

function replaceBy(regex: RegexValue, text: string, by: Lambda, count: number, runtime: Runtime): string {
  const make = (match: RegExpMatch): string => {
    const value = select(match, regex, text, by, runtime)
    if (typeof value !== 'string') throw typeError(`expected str instance, ${typeNameOf(value)} found`)
    return value
  }
  return replaceMatches(text, regex.compiled, make, runtime.budget, limitOf(count))
}

/** A method of the expression with the text, and of the text with the expression. */
const both = <const P extends readonly Parameter<unknown>[]>(
  name: string,
  more: P,
  run: (
    regex: RegexValue,
    text: string,
    args: { [K in keyof P]: P[K] extends Parameter<infer T> ? T : never },
    runtime: Runtime,
  ) => Value,
): readonly Overload[] => {
  type Args = Parameters<typeof run>[2]
  return [
    method(name, [regexp, string, ...more], (args, runtime) => {
      const [regex, text, ...others] = args as unknown as [RegexValue, string, ...unknown[]]
      return run(regex, text, others as unknown as Args, runtime)
    }),
    method(name, [string, regexp, ...more], (args, runtime) => {
      const [text, regex, ...others] = args as unknown as [string, RegexValue, ...unknown[]]
      return run(regex, text, others as unknown as Args, runtime)
    }),
  ]
}

const special = /[\t\n\v\f\r #$&()*+\-.?[\\\]^{|}~]/g

export const regexes: readonly Overload[] = [
  fn(
    'regex',
    [
      param('pattern', Text),
      optional('ignoreCase', orNull(Bool), false),
      optional('multiLine', orNull(Bool), false),
      optional('dotAll', orNull(Bool), false),
    ],
    ([pattern, ignoreCase, multiLine, dotAll], { budget }) => {
      const flags = { ignoreCase: ignoreCase === true, multiLine: multiLine === true, dotAll: dotAll === true }
      const names = [
        flags.ignoreCase ? 're.IGNORECASE' : '',
        flags.multiLine ? 're.MULTILINE' : '',
        flags.dotAll ? 're.DOTALL' : '',
      ]
      const shown = names.filter((name) => name !== '').join('|')
      return new RegexValue(pattern, searchPattern(pattern, flags, budget), shown)
    },
  ),
  method('matches', [regexp, string], ([regex, text], { budget }) => isFound(regex.compiled, text, budget)),
  method('matches', [string, param('regexp', Text)], ([text, pattern], { budget }) =>
    isFound(searchPattern(pattern, {}, budget), text, budget),
  ),
  method('search', [regexp, string, optional('selector', orNull(Fn), null)], ([regex, text, selector], runtime) => {
    for (const match of findAll(regex.compiled, text, runtime.budget))
      return results(match, regex, text, selector, runtime)
    return null
  }),
  method('searchAll', [regexp, string, optional('selector', orNull(Fn), null)], ([regex, text, selector], runtime) => {
    const found = function* (): Generator<Value> {
      for (const match of findAll(regex.compiled, text, runtime.budget))
        yield results(match, regex, text, selector, runtime)
    }
    return runtime.lazy(found())
  }),
  ...both('split', [optional('maxSplit', Index, 0)], (regex, text, [limit], { budget }) =>
    split(regex, text, limit, budget),
  ),
  ...both('replace', [param('repl', Text), optional('count', Index, 0)], (regex, text, [by, count], { budget }) =>
    replace(regex, text, by, count, budget),
  ),
  ...both('replaceBy', [param('repl', Fn), optional('count', Index, 0)], (regex, text, [by, count], runtime) =>
    replaceBy(regex, text, by, count, runtime),
  ),
  fn('escapeRegex', [string], ([text], { budget }) => {
    budget.text(text.length * 2)
    return text.replace(special, (character) => `\\${character}`)
  }),
]
