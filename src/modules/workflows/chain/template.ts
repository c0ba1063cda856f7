/** Templates of chains: they give text, at any depth of a value. */
import { entriesOf, JsonNumber, mapObject, objectOf } from '../../../lib/json/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import {
  applyFilter,
  Budget,
  BudgetExhausted,
  defaultLimits,
  references,
  render,
  TemplateError,
  textOf,
  type TemplateScope,
} from '../../../lib/template/index.ts'

/** What templates see. */
export interface ChainScope {
  /** JSON data, or a namespace; undefined: there is no such name. */
  variable(name: string): unknown
  readonly filters: NonNullable<TemplateScope['filters']>
}

/**
 * A copy of a value in which each text, and each key, is rendered. Data that a template reads is never rendered.
 *
 * @throws TemplateError
 */
export function renderValue(value: unknown, scope: ChainScope, budget: Budget): unknown {
  const renderText = (text: string): string => {
    const names = namesIn(text)
    const variables = objectOf(
      names.flatMap((name) => {
        const known = scope.variable(name)
        return known === undefined ? [] : [[name, known] as const]
      }),
    )
    return render(text, variables, { budget, filters: scope.filters, isStrict: true, isText: true }) as string // isText
  }
  const walk = (inner: unknown, depth: number): unknown => {
    if (typeof inner === 'string') {
      if (depth === 0) return renderText(inner)
      if (!mayChange(inner)) return inner
      // A template loses the line end after it. Within a list or an object it does not.
      return inner.endsWith('\n') ? `${renderText(inner)}\n` : renderText(inner)
    }
    if (typeof inner !== 'object' || inner === null || inner instanceof JsonNumber) return inner
    budget.depth(depth)
    budget.visit()
    if (Array.isArray(inner)) return inner.map((item) => walk(item, depth + 1))
    if (!isObject(inner)) return inner
    return objectOf(
      entriesOf(inner).map(([key, item]) => [mayChange(key) ? keyOf(renderText(key)) : key, walk(item, depth + 1)]),
    )
  }
  return walk(value, 0)
}

const mayChange = (text: string): boolean => /\{[{%#]/.test(text)

function keyOf(rendered: string): string {
  if (rendered !== '__proto__') return rendered
  throw new TemplateError('FILTER', 'a key of an object must not be "__proto__"')
}

/** The variables that a text reads; none, if it cannot be parsed: rendering it says why. */
function namesIn(text: string): readonly string[] {
  if (!mayChange(text)) return []
  try {
    return references(text).names
  } catch (error) {
    if (error instanceof TemplateError) return []
    throw error
  }
}

/** The variables that the texts within a value read. */
export function namesWithin(value: unknown): string[] {
  if (typeof value === 'string') return [...namesIn(value)]
  if (typeof value !== 'object' || value === null || value instanceof JsonNumber) return []
  const parts = Array.isArray(value) ? value : entriesOf(value as Record<string, unknown>).flat() // JSON data
  return [...new Set(parts.flatMap(namesWithin))]
}

/** A value as messages show its template: a text as it is, other values as JSON. */
function templateTextOf(value: unknown, budget: Budget): string {
  return typeof value === 'string' ? value : textOf(applyFilter('to_complex', [value], {}, budget), budget)
}

/**
 * Renders a value, as `renderValue` does with a budget.
 *
 * @throws TemplateError, which fails the chain; BudgetExhausted, which ends the whole call: it can be repeated
 */
export type RenderChainValue = (value: unknown, scope: ChainScope) => unknown

/** A template that fails, in the words that users see. */
export class RenderError extends Error {
  /** Its name among the templates; undefined: it has none */
  readonly template: string | undefined

  constructor(message: string, template?: string) {
    super(message)
    this.template = template
  }
}

/**
 * Renders each value.
 *
 * @param what says in the message where the template is; `%` stands for the name. Default: the message has the reason alone
 * @throws an error for `reasonOf`
 */
export function renderEntries(
  templates: Readonly<Record<string, unknown>>,
  scope: ChainScope,
  renderOne: RenderChainValue,
  what?: string,
): Record<string, unknown> {
  return mapObject(templates, (template, name) => {
    try {
      return renderOne(template, scope)
    } catch (error) {
      if (!(error instanceof TemplateError) || error instanceof BudgetExhausted) throw error
      if (what === undefined) throw new RenderError(error.message, name)
      const text = templateTextOf(template, new Budget(defaultLimits))
      const place = what.replace('%', () => name)
      throw new RenderError(`Failed rendering value for ${place} (template string=${text}): ${error.message}`, name)
    }
  })
}

/** Why rendering failed. Everything else is thrown on. */
export function reasonOf(error: unknown): string {
  if (error instanceof RenderError) return error.message
  throw error
}

/** The name of the template that failed. */
export const nameOf = (error: unknown): string | undefined =>
  error instanceof RenderError ? error.template : undefined
