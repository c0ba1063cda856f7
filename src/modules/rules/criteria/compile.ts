/** Checks and compiles the criteria of a rule. */
import { criteriaInvalid } from '../../../core/errors.ts'
import { isObject, represent } from '../../../lib/schema/index.ts'
import { findTemplates, type Templates } from '../../../core/template-values.ts'
import { isTemplate, references, TemplateError, adopt, isList, type Value } from '../../../lib/template/index.ts'
import { findOperator, operatorNames, SEARCH, type Operator, type OperatorTest } from './operators.ts'
import { compilePath, type CriterionPath } from './path.ts'
import { shown } from '../../../lib/text/index.ts'
import { writeJson } from '../../../lib/json/index.ts'

/** Criteria of one rule, including those in `search` patterns. */
const MAX_CRITERIA = 500
/** Levels of `search` within `search`. */
const MAX_SEARCH_DEPTH = 5
/** Characters of all patterns of one rule together. */
const MAX_PATTERN_LENGTH = 256 * 1024
/** Levels of nesting in a pattern. */
const MAX_PATTERN_DEPTH = 100

/** Operators that need no pattern within `search`. */
const PATTERN_OPTIONAL = ['exists', 'nexists', 'neq', 'nequals']

export interface Criterion {
  readonly key: string
  readonly type: string
  readonly condition: string | undefined
  /** The pattern before rendering. */
  readonly written: unknown
  readonly path: CriterionPath
  readonly pattern: Pattern
  readonly operator: TestOperator | SearchOperator
}

export type Pattern =
  | { kind: 'fixed'; value: Value }
  | { kind: 'template'; names: ReadonlySet<string>; isSecret: boolean }
  /** A template with a syntax error. */
  | { kind: 'broken'; error: TemplateError }

export interface TestOperator {
  kind: 'test'
  operator: Operator
  /** For a fixed pattern: prepared at its first comparison. */
  test: OperatorTest | TemplateError | undefined
}

export interface SearchOperator {
  kind: 'search'
  /** Undefined if the whole pattern is a template. */
  items: readonly Criterion[] | undefined
}

export interface Compiled {
  criteria: readonly Criterion[]
  templates: Pick<Templates, 'count' | 'isTooLong'>
}

/** @param isData templates are already rendered: text that looks like a template stays text */
export function compile(criteria: Readonly<Record<string, unknown>>, isData = false, isWithinSearch = false): Compiled {
  let count = 0
  let remaining = MAX_PATTERN_LENGTH
  const templates = { count: 0, isTooLong: false }
  const read = { length: 0, parts: 0 }

  /** @param above path of the criteria within those of the rule */
  function compileAll(
    given: Readonly<Record<string, unknown>>,
    depth: number,
    above: readonly string[] = [],
  ): Criterion[] {
    return Object.entries(given).map(([key, criterion]) => compileOne([...above, key], criterion, depth))
  }

  function compileOne(at: readonly string[], given: unknown, depth: number): Criterion {
    const key = at.at(-1) ?? ''
    const field = shown(key)
    const refuse = (why: string): never => {
      throw criteriaInvalid(`For field: ${field}, ${why}`, at)
    }
    count += 1
    if (count > MAX_CRITERIA) refuse(`a rule has at most ${MAX_CRITERIA} criteria, including those within search`)
    if (!isObject(given)) {
      throw criteriaInvalid(
        `Operator not specified for field: ${field}; a criterion is an object of type and pattern`,
        at,
      )
    }
    const { type, pattern: written = null, condition = null } = given
    if (type === undefined || type === null || type === '') {
      throw criteriaInvalid(`Operator not specified for field: ${field}`, at)
    }
    const name = typeof type === 'string' ? (depth > 0 && type !== SEARCH ? type.toLowerCase() : type) : ''
    const operator = findOperator(name)
    if (operator === undefined && type !== SEARCH) {
      const allowed = represent(operatorNames, MAX_LIST_LENGTH)
      refuse(`operator ${shown(type)} not in list of allowed operators: ${allowed}`)
    }
    if (written === null && !(depth > 0 && PATTERN_OPTIONAL.includes(name))) {
      refuse(`no pattern specified for operator ${shown(type)}`)
    }
    remaining = measure(written, remaining)
    if (remaining < 0) {
      refuse(
        `the patterns of the rule have more than ${MAX_PATTERN_LENGTH} characters or more than ${MAX_PATTERN_DEPTH} levels of nesting`,
      )
    }
    const path = compileKey(key, refuse)
    if (depth > 0 && path.root !== 'item') refuse('keys within the pattern of search must start with "item."')
    return {
      key,
      type: name,
      condition: condition === null ? undefined : shown(condition),
      written,
      path,
      ...(operator === undefined
        ? compileSearch(written, depth + 1, itemsOf(at), refuse)
        : { operator: { kind: 'test', operator, test: undefined }, pattern: compilePattern(written) }),
    }
  }

  function compileSearch(
    written: unknown,
    depth: number,
    above: readonly string[],
    refuse: (why: string) => never,
  ): Pick<Criterion, 'pattern' | 'operator'> {
    if (depth > MAX_SEARCH_DEPTH) refuse(`search is nested more than ${MAX_SEARCH_DEPTH} levels deep`)
    if (isObject(written)) {
      const items = compileAll(written, depth, above)
      return { operator: { kind: 'search', items }, pattern: { kind: 'fixed', value: adopt(written) } }
    }
    const pattern = compilePattern(written)
    if (pattern.kind === 'fixed')
      refuse('the pattern of search must be an object of criteria with keys that start with "item."')
    return { operator: { kind: 'search', items: undefined }, pattern }
  }

  function compilePattern(written: unknown): Pattern {
    const fixed: Pattern = { kind: 'fixed', value: adopt(written) }
    if (isData) return fixed
    const error = findSyntaxError(written)
    if (error !== undefined) return { kind: 'broken', error }
    const found = findTemplates(written, read)
    if (found === undefined) return fixed
    templates.count += found.count
    templates.isTooLong ||= found.isTooLong
    return { kind: 'template', names: found.names, isSecret: writeJson(written).includes('decrypt_kv') }
  }

  return { criteria: compileAll(criteria, isWithinSearch ? 1 : 0), templates }
}

/** Path of the criteria within a criterion of the type `search`. */
export const itemsOf = (at: readonly string[]): readonly string[] => [...at, 'pattern']

const MAX_LIST_LENGTH = 2_000

function compileKey(key: string, refuse: (why: string) => never): CriterionPath {
  try {
    return compilePath(key)
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error
    return refuse(
      `the key is not a path: ${error.message}; write names with characters other than letters, digits, _ and - as in trigger.headers['Name']`,
    )
  }
}

/** Subtracts a pattern from the remaining length. Negative: the pattern is too long or too deep. */
function measure(written: unknown, remaining: number): number {
  let left = remaining
  const walk = (value: unknown, depth: number): void => {
    left -= 1
    if (depth > MAX_PATTERN_DEPTH) left = -1
    if (typeof value === 'string') left -= value.length
    if (left < 0 || typeof value !== 'object' || value === null) return
    for (const [name, inner] of Object.entries(value)) {
      if (!isList(value)) left -= name.length
      if (left < 0) return
      walk(inner, depth + 1)
    }
  }
  walk(written, 0)
  return left
}

/** Syntax error of an incomplete template. Action parameters treat it as plain text; here it could never match. */
function findSyntaxError(written: unknown): TemplateError | undefined {
  if (typeof written === 'string') {
    if ((!written.includes('{{') && !written.includes('{%')) || isTemplate(written)) return undefined
    try {
      references(written)
    } catch (error) {
      if (error instanceof TemplateError) return error
      throw error
    }
  } else if (typeof written === 'object' && written !== null) {
    for (const [name, inner] of Object.entries(written)) {
      const error = findSyntaxError(inner) ?? (isList(written) ? undefined : findSyntaxError(name))
      if (error !== undefined) return error
    }
  }
  return undefined
}
