import { jsonNumber } from '../../json/index.ts'
import { compare, equals } from '../compare.ts'
import { filterError, TemplateError } from '../error.ts'
import { getItem, getSlice } from '../access.ts'
import { iterate } from '../iteration.ts'
import type { Budget } from '../limits.ts'
import { isMapping, mappingEntries } from '../mapping.ts'
import { adopt, isList, Sequence, Undefined, type Value } from '../values.ts'

type Selector =
  | { kind: 'keys'; keys: readonly (string | number)[] }
  | { kind: 'all' }
  | { kind: 'slice'; bounds: readonly (number | undefined)[] }
  | { kind: 'where'; any: readonly (readonly Condition[])[] }

/** One step of a path. */
export interface JsonPathStep {
  selector: Selector
  /** The step is looked for at every depth. */
  descend: boolean
}

interface Condition {
  path: readonly JsonPathStep[]
  negated: boolean
  operator: string | undefined
  literal: Value
}

const MAX_QUERY_LENGTH = 4096

/**
 * The values a JSONPath query selects.
 *
 * Understood: `$`, `.name`, `['name']`, `[0]`, `[-1]`, `[1:3]`, `[*]`, `.*`, `..name`, lists such as `['a','b']`, and filters
 * such as `[?(@.size > 3 && @.name)]`.
 */
export function queryJsonPath(value: Value, query: string, budget: Budget): Value[] {
  return select([value], parseJsonPath(query), budget)
}

/**
 * The steps of a query.
 *
 * @param end what may follow the path, with anything behind it; both are left out
 * @throws TemplateError
 */
export function parseJsonPath(query: string, end?: string): JsonPathStep[] {
  if (query.length > MAX_QUERY_LENGTH) {
    throw filterError(`the JSONPath query is longer than ${MAX_QUERY_LENGTH} characters`)
  }
  return new QueryParser(query).parse(end)
}

/** What a path selects from values, in order. */
export function select(values: readonly Value[], path: readonly JsonPathStep[], budget: Budget): Value[] {
  let current = [...values]
  for (const { selector, descend } of path) {
    const from = descend ? current.flatMap((value) => descendants(value, budget, 0)) : current
    current = from.flatMap((value) => apply(selector, value, budget))
    budget.items(current.length)
  }
  return current
}

function isItems(value: Value): value is readonly unknown[] | Sequence {
  return isList(value) || value instanceof Sequence
}

function childrenOf(value: Value, budget: Budget): readonly Value[] {
  if (isMapping(value)) return mappingEntries(value).map(([, item]) => item)
  return isItems(value) ? iterate(value, budget) : []
}

function descendants(value: Value, budget: Budget, depth: number): Value[] {
  budget.step()
  budget.depth(depth)
  return [value, ...childrenOf(value, budget).flatMap((child) => descendants(child, budget, depth + 1))]
}

function apply(selector: Selector, value: Value, budget: Budget): readonly Value[] {
  budget.step()
  switch (selector.kind) {
    case 'all':
      return childrenOf(value, budget)
    case 'keys':
      return selector.keys.flatMap((key) => {
        if (typeof key === 'string' ? !isMapping(value) : !isItems(value)) return []
        const item = getItem(value, key, budget)
        return item instanceof Undefined ? [] : [item]
      })
    case 'slice':
      return isItems(value) ? iterate(getSlice(value, selector.bounds, budget), budget) : []
    case 'where':
      return childrenOf(value, budget).filter((child) =>
        selector.any.some((all) => all.every((condition) => holds(condition, child, budget))),
      )
  }
}

function holds({ path, negated, operator, literal }: Condition, value: Value, budget: Budget): boolean {
  const found = select([value], path, budget)
  if (operator === undefined) return found.length > 0 !== negated
  return found.some((item) => compares(item, operator, literal, budget))
}

function compares(item: Value, operator: string, literal: Value, budget: Budget): boolean {
  if (operator === '==' || operator === '!=') return equals(item, literal, budget) === (operator === '==')
  try {
    const order = compare(item, literal, operator, budget)
    if (operator === '<') return order < 0
    if (operator === '<=') return order <= 0
    return operator === '>' ? order > 0 : order >= 0
  } catch (error) {
    if (error instanceof TemplateError && error.code === 'TYPE') return false
    throw error
  }
}

class QueryParser {
  readonly #query: string
  #at = 0

  constructor(query: string) {
    this.#query = query.trim()
  }

  parse(end?: string): JsonPathStep[] {
    this.#take(/\$/y)
    const steps = this.#steps(true)
    const isEnd = this.#at === this.#query.length || (end !== undefined && this.#query.startsWith(end, this.#at))
    if (!isEnd) throw this.#error()
    return steps
  }

  #error(): Error {
    return filterError(`the JSONPath query cannot be understood at character ${this.#at + 1}`)
  }

  #take(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#query)
    if (match === null) return undefined
    this.#at += match[0].length
    return match
  }

  #steps(mayStartBare: boolean): JsonPathStep[] {
    const steps: JsonPathStep[] = []
    for (;;) {
      const descend = this.#take(/\.\./y) !== undefined
      const dotted = descend || this.#take(/\./y) !== undefined
      if (this.#take(/\[\s*/y) !== undefined) {
        steps.push({ selector: this.#bracket(), descend })
        continue
      }
      const bare = !dotted && mayStartBare && steps.length === 0 && this.#at < this.#query.length && this.#at === 0
      if (!dotted && !bare) return steps
      if (this.#take(/\*/y) !== undefined) {
        steps.push({ selector: { kind: 'all' }, descend })
        continue
      }
      const name = this.#take(/[\p{L}\p{N}_@-]+/uy)?.[0] ?? this.#text()
      if (name === undefined) throw this.#error()
      steps.push({ selector: { kind: 'keys', keys: [name] }, descend })
    }
  }

  #text(): string | undefined {
    const match = this.#take(/'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"/y)
    return match === undefined ? undefined : (match[1] ?? match[2] ?? '').replace(/\\(.)/g, '$1')
  }

  #bracket(): Selector {
    let selector: Selector
    if (this.#take(/\*/y) !== undefined) selector = { kind: 'all' }
    else if (this.#take(/\?\s*\(/y) !== undefined) {
      selector = { kind: 'where', any: this.#conditions() }
      if (this.#take(/\s*\)/y) === undefined) throw this.#error()
    } else {
      const slice = this.#take(/(-?\d+)?\s*:\s*(-?\d+)?(?:\s*:\s*(-?\d+)?)?(?=\s*\])/y)
      if (slice === undefined) selector = { kind: 'keys', keys: this.#keys() }
      else {
        const bounds = slice.slice(1, 4).map((bound) => (bound === undefined ? undefined : Number(bound)))
        selector = { kind: 'slice', bounds }
      }
    }
    if (this.#take(/\s*\]/y) === undefined) throw this.#error()
    return selector
  }

  #keys(): (string | number)[] {
    const keys: (string | number)[] = []
    do {
      const number = this.#take(/-?\d+(?=\s*[\],])/y)
      const key = number === undefined ? (this.#text() ?? this.#take(/[\p{L}\p{N}_-]+/uy)?.[0]) : Number(number[0])
      if (key === undefined) throw this.#error()
      keys.push(key)
    } while (this.#take(/\s*,\s*/y) !== undefined)
    return keys
  }

  #conditions(): Condition[][] {
    const any: Condition[][] = []
    do {
      const all: Condition[] = []
      do all.push(this.#condition())
      while (this.#take(/\s*(?:&&|&)\s*/y) !== undefined)
      any.push(all)
    } while (this.#take(/\s*\|\|\s*/y) !== undefined)
    return any
  }

  #condition(): Condition {
    const negated = this.#take(/\s*!\s*/y) !== undefined
    if (this.#take(/\s*@/y) === undefined) throw this.#error()
    const path = this.#steps(false)
    const operator = this.#take(/\s*(==|!=|<=|>=|<|>|=)\s*/y)?.[1]
    if (operator === undefined) return { path, negated, operator, literal: null }
    if (negated) throw this.#error()
    return { path, negated, operator: operator === '=' ? '==' : operator, literal: this.#literal() }
  }

  #literal(): Value {
    const text = this.#text()
    if (text !== undefined) return text
    const number = this.#take(/-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y)
    if (number !== undefined) return adopt(jsonNumber(number[0]))
    const word = this.#take(/(true|True|false|False|null|None)\b/y)?.[1]
    if (word === undefined) throw this.#error()
    if (word === 'null' || word === 'None') return null
    return word === 'true' || word === 'True'
  }
}
