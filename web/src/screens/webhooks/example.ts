/** A request that the rules of a webhook would take, as far as their criteria say what that is. */
import type { CriterionDefinition, RuleRecord } from '../../api/records.ts'
import { isPlain } from '../../shell.ts'
import { parsePath, pathsInTemplate, placed } from './path.ts'
import { isNumber, JsonNumber, toNumeric, wholeNumber, writeJson } from '../../json.ts'

export interface ExampleRequest {
  body: unknown
  headers: readonly (readonly [name: string, value: string])[]
}

export type ExampleRule = Pick<RuleRecord, 'enabled' | 'criteria' | 'action'>

const SOMETHING = 'example'
const MAX_RULES = 20
const MAX_PATHS = 50
/** Headers that the request has anyway, or that are made when it is sent. */
const ownHeaders: ReadonlySet<string> = new Set(['accept', 'content-length', 'content-type', 'host', 'user-agent'])

/** @param now for criteria about time */
export function exampleOf(rules: readonly ExampleRule[], now: Date): ExampleRequest {
  let body: unknown
  const headers = new Map<string, readonly [string, string]>()
  function put(path: string | readonly (string | number)[], value: unknown): void {
    const steps = typeof path === 'string' ? parsePath(path) : path
    const [root, part, ...rest] = steps ?? []
    if (root !== 'trigger') return
    if (part === 'body') {
      // The body itself is an object or a list.
      if (rest.length > 0) body = placed(body, rest, value) ?? body
      return
    }
    const [name] = rest
    if ((part !== 'headers' && part !== 'headers_lower') || typeof name !== 'string' || rest.length > 1) return
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name) || ownHeaders.has(name.toLowerCase())) return
    const text = typeof value === 'string' ? value : writeJson(value)
    if (!isPlain(text) || !/^[\x20-\x7e]+$/.test(text) || headers.has(name.toLowerCase())) return
    headers.set(name.toLowerCase(), [name, text])
  }

  const ordered = [...rules.filter(({ enabled }) => enabled), ...rules.filter(({ enabled }) => !enabled)]
  for (const { criteria } of ordered.slice(0, MAX_RULES)) {
    for (const [key, criterion] of Object.entries(criteria).slice(0, MAX_PATHS)) {
      const value = valueFor(criterion, now)
      if (value !== undefined) put(key, value)
    }
  }
  for (const { action } of ordered.slice(0, MAX_RULES)) {
    for (const path of pathsIn(action.parameters).slice(0, MAX_PATHS)) if (path[1] === 'body') put(path, SOMETHING)
  }
  return { body: body ?? { hello: 'world' }, headers: [...headers.values()] }
}

function pathsIn(value: unknown): (string | number)[][] {
  if (typeof value === 'string') return pathsInTemplate(value)
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).slice(0, MAX_PATHS).flatMap(pathsIn)
}

/** A value for which the criterion holds, or something to be replaced; undefined: nothing should be there. */
function valueFor({ type, pattern }: CriterionDefinition, now: Date): unknown {
  const name = type.toLowerCase()
  if (name === 'nexists') return undefined
  if (name === 'exists' || isTemplate(pattern) || pattern === null) return SOMETHING
  switch (name) {
    case 'eq':
    case 'equals':
    case 'ieq':
    case 'iequals':
    case 'startswith':
    case 'istartswith':
    case 'endswith':
    case 'iendswith':
      return pattern
    case 'contains':
    case 'icontains':
      return typeof pattern === 'string' ? pattern : [pattern]
    case 'gt':
    case 'greaterthan':
      return isNumber(pattern) ? shifted(pattern, 1) : typeof pattern === 'string' ? `${pattern}~` : SOMETHING
    case 'lt':
    case 'lessthan':
      return isNumber(pattern) ? shifted(pattern, -1) : typeof pattern === 'string' ? '' : SOMETHING
    case 'in':
    case 'inside':
      return Array.isArray(pattern) ? (pattern as unknown[])[0] : typeof pattern === 'string' ? pattern : SOMETHING
    case 'td_lt':
    case 'timediff_lt':
      return now.toISOString()
    case 'td_gt':
    case 'timediff_gt':
      return '2000-01-01T00:00:00Z'
    case 'matchwildcard':
      return typeof pattern === 'string' && !pattern.includes('[')
        ? pattern.replaceAll('*', '').replaceAll('?', 'x')
        : SOMETHING
    case 'regex':
    case 'iregex':
    case 'matchregex':
      return literalOf(pattern) ?? SOMETHING
    case 'search':
      return itemsFor(pattern, now)
    default:
      return SOMETHING
  }
}

function shifted(value: number | JsonNumber, by: 1 | -1): number | JsonNumber {
  const number = toNumeric(value)
  return typeof number === 'bigint' ? wholeNumber(number + BigInt(by)) : number + by
}

/** Of an expression that stands for one text alone. */
function literalOf(pattern: unknown): string | undefined {
  if (typeof pattern !== 'string') return undefined
  const text = pattern
    .replace(/^\^/, '')
    .replace(/\$$/, '')
    .replace(/\\([.\-/])/g, '$1')
  return /[\\^$*+?()[\]{}|]/.test(text) || (text.includes('.') && !pattern.includes('\\.')) ? undefined : text
}

/** A list with one item that fits the criteria of a `search`, whose keys begin with `item`. */
function itemsFor(pattern: unknown, now: Date): unknown {
  if (typeof pattern !== 'object' || pattern === null) return [SOMETHING]
  let item: unknown
  for (const [key, inner] of Object.entries(pattern as Record<string, unknown>).slice(0, MAX_PATHS)) {
    // an object
    const [root, ...rest] = parsePath(key) ?? []
    if (root !== 'item' || !isCriterion(inner)) continue
    const value = valueFor(inner, now)
    if (value !== undefined) item = placed(item, rest, value) ?? item
  }
  return [item ?? SOMETHING]
}

function isCriterion(value: unknown): value is CriterionDefinition {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
}

function isTemplate(value: unknown): boolean {
  return typeof value === 'string' && value.includes('{{')
}
