import { Lru } from '../cache/index.ts'
import type { Expression, Template } from './ast.ts'
import { TemplateError } from './error.ts'
import { evaluateOnly, evaluateTemplate, type HostFunction, type Variables } from './evaluate.ts'
import { filters as builtInFilters } from './filters/index.ts'
import { globalNames } from './globals.ts'
import { Budget, defaultLimits, type Limits } from './limits.ts'
import type { Token } from './lexer.ts'
import { parse, parseExpression } from './parser.ts'
import { collectCalls, collectReferences, type References } from './references.ts'
import { adopt, type Value } from './values.ts'

/**
 * Jinja2 templates over plain data (contract 02, 2.6). Own engine: template code never accesses a JavaScript object.
 *
 * Text with `{{ }}` or `{% %}` is a template; texts print as under Python 3 (decisions #20), and a text that is exactly one
 * `{{ expression }}` gives the expression's value with its type.
 */

export { BudgetExhausted, TemplateError, type TemplateErrorCode } from './error.ts'
export type { HostFunction, Variables } from './evaluate.ts'
export type { Limits } from './limits.ts'
export type { References } from './references.ts'
export type { Namespace } from './values.ts'

export interface RenderOptions {
  /** Of this rendering alone. */
  limits?: Partial<Limits>
  /** Shared with other renderings; instead of `limits`. */
  budget?: Budget
  /** filters of the caller, such as `decrypt_kv`; the value is the first positional argument */
  filters?: Readonly<Record<string, HostFunction>>
  /** functions of the caller, callable by name */
  functions?: Readonly<Record<string, HostFunction>>
}

/** How workflows treat a whole template. */
export interface TemplateOptions extends RenderOptions {
  /**
   * Drops the line end after a block and the blanks before one that starts its line, and refuses to print an inline `if`
   * without `else`. Default: no.
   */
  isStrict?: boolean
  /** Gives text for a single expression, too. Default: its value. */
  isText?: boolean
}

/** Variables and filters that templates can use. */
export interface TemplateScope {
  /** Namespaces such as `action_context` and `svckv`. */
  readonly variables: Readonly<Record<string, unknown>>
  /** Such as `decrypt_kv`. */
  readonly filters?: Readonly<Record<string, HostFunction>>
}

/** Merges scopes. Later ones override earlier ones. */
export function joinScopes(...scopes: readonly TemplateScope[]): TemplateScope {
  return {
    variables: Object.assign({}, ...scopes.map(({ variables }) => variables)),
    filters: Object.assign({}, ...scopes.map(({ filters }) => filters)),
  }
}

interface Parsed {
  result: Template | TemplateError
  parts: number
}

const parsed = new Lru<string, Parsed>(500, 512 * 1024)
const strictlyParsed = new Lru<string, Parsed>(500, 512 * 1024)
const expressions = new Lru<string, Expression | TemplateError>(2000, 1024 * 1024)

/** The last parsed template of any size, because a caller checks a text first and then renders it. */
let latest: (Parsed & { text: string }) | undefined

function orError<T>(parseText: () => T): T | TemplateError {
  try {
    return parseText()
  } catch (error) {
    if (error instanceof TemplateError) return error
    throw error
  }
}

function parseCached(text: string): Parsed {
  const known = latest?.text === text ? latest : parsed.get(text)
  if (known !== undefined) return known
  const tokens: Token[] = []
  const result = orError(() => parse(text, tokens))
  latest = { text, result, parts: tokens.length }
  parsed.set(text, latest, text.length)
  return latest
}

function parseStrictly(text: string): Parsed {
  let known = strictlyParsed.get(text)
  if (known === undefined) {
    const tokens: Token[] = []
    known = { result: orError(() => parse(text, tokens, { trimBlocks: true })), parts: tokens.length }
    strictlyParsed.set(text, known, text.length)
  }
  return known
}

function templateOf(text: string, isStrict = false): Template {
  return orThrow((isStrict ? parseStrictly(text) : parseCached(text)).result)
}

function expressionOf(source: string): Expression {
  let known = expressions.get(source)
  if (known === undefined) {
    known = orError(() => parseExpression(source))
    expressions.set(source, known, source.length)
  }
  return orThrow(known)
}

/** Throws a cached error as a new one, with the stack of its caller. */
function orThrow<T extends object>(result: T | TemplateError): T {
  if (!(result instanceof TemplateError)) return result
  throw new TemplateError(result.code, result.message, result.position, result.isForeign, result.className)
}

/**
 * Whether the text contains `{{` or `{%` and is a valid template. Callers use other text literally.
 *
 * Also true for a template that is too large or unsupported; rendering it fails with the reason.
 */
export function isTemplate(text: string): boolean {
  if (!text.includes('{{') && !text.includes('{%')) return false
  const { result } = parseCached(text)
  return !(result instanceof TemplateError) || result.code !== 'SYNTAX'
}

/** Names, signs and texts that parsing has looked at, whether or not the text is a valid template. */
export function partsOf(text: string): number {
  return parseCached(text).parts
}

/**
 * The variables a template reads and does not set itself, and the static paths of those reads.
 *
 * `{{ svckv.system.x ~ name }}` gives names `svckv`, `name` and paths `svckv.system.x`, `name`. Throws `TemplateError`.
 */
export function references(text: string): References {
  return collectReferences(templateOf(text), globalNames)
}

const none: Readonly<Record<string, HostFunction>> = {}

/**
 * Renders a template: text, or the native value of a single expression as JSON data (objects without a prototype).
 *
 * Variables are JSON data, maps, or a `Namespace` asked by name. Throws `TemplateError`; its message holds no value.
 */
export function render(text: string, variables: Variables, options: TemplateOptions = {}): unknown {
  const { isStrict = false, isText = false } = options
  return evaluateTemplate(templateOf(text, isStrict), variables, { ...evaluationOf(options), isStrict, isText })
}

function evaluationOf({ limits, budget, filters = none, functions = none }: RenderOptions): {
  budget: Budget
  filters: Readonly<Record<string, HostFunction>>
  functions: Readonly<Record<string, HostFunction>>
} {
  const all = limits === undefined ? defaultLimits : { ...defaultLimits, ...limits }
  return { budget: budget ?? new Budget(all), filters, functions }
}

/**
 * The value of what stands between `{{` and `}}`. An `Undefined` is returned, not thrown: what to do with it is up to the
 * caller.
 *
 * @throws TemplateError
 */
export function evaluateExpression(source: string, variables: Variables, options: RenderOptions = {}): Value {
  return evaluateOnly(expressionOf(source), variables, { ...evaluationOf(options), isStrict: true })
}

/**
 * The names of the functions and filters that are called, in order of appearance, in a template or in what stands between
 * `{{` and `}}`.
 *
 * @throws TemplateError when the text cannot be parsed
 */
export function callsOf(text: string, form: 'template' | 'expression'): string[] {
  return collectCalls(form === 'template' ? templateOf(text, true) : expressionOf(text))
}

/** Names of the functions and filters of the language; variables may be called as well. */
export const callableNames: ReadonlySet<string> = new Set([...builtInFilters.keys(), ...globalNames, 'caller', 'loop'])

/** Applies a built-in filter outside of any template; the value is the first positional argument. @throws TemplateError */
export function applyFilter(
  name: string,
  positional: readonly unknown[],
  named: Readonly<Record<string, unknown>>,
  budget: Budget,
): Value {
  const run = builtInFilters.get(name)
  if (run === undefined) throw new Error(`there is no filter ${name}`)
  const [value = null, ...rest] = positional.map(adopt)
  const options = new Map(Object.entries(named).map(([key, option]) => [key, adopt(option)] as const))
  const refuse = (): never => {
    throw new Error(`the filter ${name} uses others`)
  }
  return run(value, { positional: rest, named: options }, { budget, filter: refuse, test: refuse })
}
