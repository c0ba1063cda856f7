/** Search filters with placeholders. Values are inserted into the parsed filter, never into its text. */
import {
  AndFilter,
  ApproximateFilter,
  EqualityFilter,
  ExtensibleFilter,
  FilterParser,
  GreaterThanEqualsFilter,
  LessThanEqualsFilter,
  NotFilter,
  OrFilter,
  SubstringFilter,
  type Filter,
} from 'ldapts'

const MAX_PATTERN_CHARACTERS = 4096

export type Placeholder = 'username' | 'user_dn'

export type Fillings = Partial<Record<Placeholder, string>>

/** An invalid pattern. The message has the reason without the option. */
export class PatternProblem extends Error {}

export interface FilterPattern {
  /** Replaces the placeholders by values. */
  fill(values: Fillings): Filter
  /** Its comparisons, except those within a negation. */
  readonly comparisons: readonly FilterComparison[]
}

/** One comparison of an attribute. A wildcard separates its parts. */
export interface FilterComparison {
  attribute: string
  /** Parts contain placeholders. A comparison without a wildcard has `initial` only. */
  initial: string
  any: readonly string[]
  final: string
  isWhole: boolean
}

const placeholderPattern = /\{\{([^{}]*)\}\}|\{([^{}]*)\}/g

/** @throws PatternProblem */
export function compileFilter(pattern: string, allowed: readonly Placeholder[]): FilterPattern {
  if (pattern.length > MAX_PATTERN_CHARACTERS) {
    throw new PatternProblem(`is longer than ${MAX_PATTERN_CHARACTERS} characters`)
  }
  const filter = parse(decodeEscapes(pattern))
  const names = new Set<string>()
  mapValues(filter, (text) => {
    for (const [, doubled, single] of text.matchAll(placeholderPattern)) names.add(doubled ?? single ?? '')
    return text
  })
  const choices = allowed.map((name) => `{${name}}`).join(' and ')
  const other = [...names].find((name) => !allowed.some((known) => known === name))
  if (other !== undefined) throw new PatternProblem(`has no placeholder {${other}}, only ${choices}`)
  if (names.size === 0) throw new PatternProblem(`matches every user: add ${choices}`)
  return {
    fill: (values) => mapValues(filter, (text) => fillText(text, values)),
    comparisons: listComparisons(filter),
  }
}

/** Replaces in one pass, so that a user name that looks like a placeholder stays. */
export function fillText(text: string, values: Fillings): string {
  const byName: Partial<Record<string, string>> = values
  return text.replace(placeholderPattern, (whole, doubled?: string, single?: string) => {
    return byName[doubled ?? single ?? ''] ?? whole
  })
}

function parse(pattern: string): Filter {
  const text = pattern.startsWith('(') ? pattern : `(${pattern})`
  // The parser accepts `(&(a=b)`.
  if (text.replace(/[^(]/g, '').length !== text.replace(/[^)]/g, '').length) {
    throw new PatternProblem('is not a search filter: its parentheses do not match')
  }
  try {
    return FilterParser.parseString(text)
  } catch (error) {
    throw new PatternProblem(`is not a search filter: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** Decodes escaped bytes as UTF-8. The parser would read each as a character. */
function decodeEscapes(pattern: string): string {
  return pattern.replace(/(?:\\[89a-f][0-9a-f])+/gi, (run) => {
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(run.replaceAll('\\', ''), 'hex'))
    } catch {
      throw new PatternProblem(`has escapes that are not UTF-8: ${run}`)
    }
  })
}

/** A copy with changed values. */
function mapValues(filter: Filter, change: (text: string) => string): Filter {
  if (filter instanceof AndFilter)
    return new AndFilter({ filters: filter.filters.map((one) => mapValues(one, change)) })
  if (filter instanceof OrFilter) return new OrFilter({ filters: filter.filters.map((one) => mapValues(one, change)) })
  if (filter instanceof NotFilter) return new NotFilter({ filter: mapValues(filter.filter, change) })
  if (filter instanceof EqualityFilter) {
    return new EqualityFilter({ attribute: filter.attribute, value: change(textOf(filter)) })
  }
  if (filter instanceof ApproximateFilter) {
    return new ApproximateFilter({ attribute: filter.attribute, value: change(filter.value) })
  }
  if (filter instanceof GreaterThanEqualsFilter) {
    return new GreaterThanEqualsFilter({ attribute: filter.attribute, value: change(filter.value) })
  }
  if (filter instanceof LessThanEqualsFilter) {
    return new LessThanEqualsFilter({ attribute: filter.attribute, value: change(filter.value) })
  }
  if (filter instanceof SubstringFilter) {
    const { attribute, initial, any, final } = filter
    return new SubstringFilter({ attribute, initial: change(initial), any: any.map(change), final: change(final) })
  }
  if (filter instanceof ExtensibleFilter) {
    const { rule, matchType, dnAttributes, value } = filter
    return new ExtensibleFilter({ rule, matchType, dnAttributes, value: change(value) })
  }
  return filter
}

function textOf({ value }: EqualityFilter): string {
  return Buffer.isBuffer(value) ? value.toString('utf8') : value
}

function listComparisons(filter: Filter): FilterComparison[] {
  if (filter instanceof AndFilter || filter instanceof OrFilter) return filter.filters.flatMap(listComparisons)
  const whole = { any: [], final: '', isWhole: true }
  if (filter instanceof EqualityFilter) return [{ attribute: filter.attribute, initial: textOf(filter), ...whole }]
  if (filter instanceof ApproximateFilter) return [{ attribute: filter.attribute, initial: filter.value, ...whole }]
  if (filter instanceof ExtensibleFilter && filter.matchType !== '') {
    return [{ attribute: filter.matchType, initial: filter.value, ...whole }]
  }
  if (filter instanceof SubstringFilter) {
    const { attribute, initial, any, final } = filter
    return [{ attribute, initial, any, final, isWhole: false }]
  }
  return []
}
