/** Keys of criteria as paths (contract 05, 5.6). */
import {
  TemplateError,
  parseJsonPath,
  select,
  type JsonPathStep,
  type Budget,
  isMapping,
  mappingGet,
  ownValue,
  adopt,
  isList,
  LazyNamespace,
  resolveLazy,
  Undefined,
  type Value,
} from '../../../lib/template/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import type { Withheld } from '../../triggers/index.ts'

export interface CriterionPath {
  /** The first name; undefined if the path starts with something else, such as `*`. */
  readonly root: string | undefined
  /** Names and indices before the first step that selects several. */
  readonly names: readonly (string | number)[]
  /** The first value found, or null. Reads own properties only. */
  read(roots: Roots, budget: Budget): Value
}

/** Values at which paths start. */
export interface Roots {
  /** `trigger`, or `item` within `search`. */
  readonly data: Readonly<Record<string, unknown>>
  /** The system scope of the datastore, read by name; undefined: not available. */
  readonly system: () => unknown
}

/**
 * Compiles the key of a criterion, such as `trigger.headers['X-Custom']` or `trigger.items[*].id#second`: a JSONPath
 * and an ignored tag after `#`.
 *
 * @throws TemplateError
 */
export function compilePath(key: string): CriterionPath {
  const steps = parseJsonPath(key, '#')
  if (steps.length === 0) throw new TemplateError('SYNTAX', 'the path is empty')
  const names = steps.map(nameOf)
  const root = names[0]
  if (typeof root !== 'string') {
    return {
      root: undefined,
      names: [],
      read: (roots, budget) => valueOf(select([adopt(roots.data)], steps, budget)[0]),
    }
  }
  const end = names.indexOf(undefined)
  return {
    root,
    names: (end === -1 ? names : names.slice(0, end)) as (string | number)[], // none of these is undefined
    read: (roots, budget) => {
      const isOfHeader = root === 'trigger' && (names[1] === 'headers' || names[1] === 'headers_lower')
      let value = root === 'system' ? valueOf(adopt(roots.system())) : valueOf(ownValue(roots.data, root))
      for (let at = 1; at < names.length; at += 1) {
        const name = names[at]
        if (name === undefined) return valueOf(select([value], steps.slice(at), budget)[0])
        const isHeader = at === 2 && isOfHeader && typeof name === 'string' && isWebhook(roots.data['trigger'])
        value = valueOf(isHeader ? headerOf(value, name, budget) : memberOf(value, name))
        if (value === null) return null
      }
      return value instanceof LazyNamespace ? itemOf(value) : value
    },
  }
}

/** Whether a path leads to a value that a reduced payload has. */
export function isKeptPath({ root, names }: Pick<CriterionPath, 'root' | 'names'>, withheld: Withheld): boolean {
  return root === 'trigger' && withheld.keeps(names.slice(1))
}

/** The name or index that a step selects; undefined: it selects several. */
function nameOf({ selector, descend }: JsonPathStep): string | number | undefined {
  return selector.kind === 'keys' && selector.keys.length === 1 && !descend ? selector.keys[0] : undefined
}

function memberOf(value: Value, name: string | number): Value | undefined {
  if (typeof name === 'number') return isList(value) ? adopt(value.at(name)) : undefined
  if (value instanceof LazyNamespace) return value.get(name)
  return isMapping(value) ? mappingGet(value, name) : undefined
}

/** Whether a payload is that of a webhook: its headers are under both spellings of their names. */
export function isWebhook(payload: unknown): boolean {
  return isObject(payload) && isObject(payload['headers']) && isObject(payload['headers_lower'])
}

/** Header names have no case (RFC 9110, 5.1), and senders write `X-GitHub-Event`. */
function headerOf(headers: Value, name: string, budget: Budget): Value | undefined {
  const exact = memberOf(headers, name)
  if (exact !== undefined || !isObject(headers)) return exact
  const wanted = name.toLowerCase()
  const names = Object.keys(headers)
  budget.items(names.length)
  const found = names.find((each) => each.toLowerCase() === wanted)
  return found === undefined ? undefined : memberOf(headers, found)
}

/** A missing datastore item is an empty string in templates, but null here, like a missing name in the payload. */
function itemOf(namespace: LazyNamespace): Value {
  const item = resolveLazy(namespace)
  return item === '' || item instanceof LazyNamespace ? null : item
}

function valueOf(found: Value | undefined): Value {
  return found === undefined || found instanceof Undefined ? null : found
}
