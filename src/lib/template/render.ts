import { Lru } from '../cache/index.ts'
import type { Template } from './ast.ts'
import { TemplateError } from './error.ts'
import { evaluateTemplate, type HostFunction, type Variables } from './evaluate.ts'
import { globalNames } from './globals.ts'
import { Budget, defaultLimits, type Limits } from './limits.ts'
import type { Token } from './lexer.ts'
import { parse } from './parser.ts'
import { collectReferences, type References } from './references.ts'

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

/** The last parsed template of any size, because a caller checks a text first and then renders it. */
let latest: (Parsed & { text: string }) | undefined

function parseCached(text: string): Parsed {
  const known = latest?.text === text ? latest : parsed.get(text)
  if (known !== undefined) return known
  const tokens: Token[] = []
  let result: Template | TemplateError
  try {
    result = parse(text, tokens)
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error
    result = error
  }
  latest = { text, result, parts: tokens.length }
  parsed.set(text, latest, text.length)
  return latest
}

/** Throws a cached error as a new one, with the stack of its caller. */
function templateOf(text: string): Template {
  const { result } = parseCached(text)
  if (!(result instanceof TemplateError)) return result
  throw new TemplateError(result.code, result.message, result.position, result.isForeign)
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
export function render(text: string, variables: Variables, options: RenderOptions = {}): unknown {
  const { limits, filters = none, functions = none } = options
  const template = templateOf(text)
  const budget = options.budget ?? new Budget(limits === undefined ? defaultLimits : { ...defaultLimits, ...limits })
  return evaluateTemplate(template, variables, { budget, filters, functions })
}
