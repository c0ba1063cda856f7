/** Why a criterion saw no value, or one of another type, in words for its author. */
import { JsonNumber } from '../../../lib/json/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import { shown } from '../../../lib/text/index.ts'
import { compilePath, isWebhook } from '../criteria/path.ts'
import type { SeenCriterion } from '../types.ts'

/** Keys named in one sentence. */
const MAX_NAMED = 10
/** Keys and characters of a key that are compared with the wanted one. */
const MAX_COMPARED = 500
const MAX_COMPARED_LENGTH = 64

/**
 * One or two sentences; undefined: the criterion and its value say enough.
 *
 * @param criterion that does not hold, its value not shortened
 */
export function hintOf(payload: unknown, { key, type, pattern, value }: SeenCriterion): string | undefined {
  const { root, names } = compilePath(key)
  if (root !== 'trigger') return undefined
  if (value !== null) return typeHint(type, pattern, value)
  let found = payload
  let path = 'trigger'
  for (const name of names.slice(1)) {
    const hint = missing(found, path, name, found === payload && path === 'trigger')
    if (hint !== undefined) return hint
    found = memberOf(found, name, path, payload)
    path += typeof name === 'number' ? `[${name}]` : stepOf(name)
  }
  return undefined
}

const stepOf = (name: string): string => (/^[A-Za-z_][\w-]*$/.test(name) ? `.${name}` : `['${shown(name)}']`)

/** Why a value has no such member; undefined: it has, or nothing can be said. */
function missing(value: unknown, path: string, name: string | number, isPayload: boolean): string | undefined {
  if (Array.isArray(value)) {
    if (typeof name === 'number') {
      return name < value.length ? undefined : `${path} is a list with ${value.length} items.`
    }
    return `${path} is a list: read an item of it, such as ${path}[0]${about(value[0])}.`
  }
  if (isObject(value)) {
    if (typeof name === 'number') return `${path} is an object, no list: ${keysOf(value)}`
    if (Object.hasOwn(value, name) || isHeaderOf(value, path, name)) return undefined
    const near = nearest(name, Object.keys(value))
    const isForgotten = isPayload && isObject(value['body']) && Object.hasOwn(value['body'], name)
    const advice = isForgotten
      ? ` Did you mean trigger.body${stepOf(name)}?`
      : near === undefined
        ? ''
        : ` Did you mean ${path}${stepOf(near)}?`
    return `${path} has no key "${shown(name)}": ${keysOf(value)}${advice}`
  }
  if (typeof value === 'string') {
    return isJsonText(value)
      ? `${path} is a text that contains JSON. A criterion cannot read keys of a text: let the sender send JSON itself, or test the text with contains or regex.`
      : `${path} is a text, which has no keys.`
  }
  return value === null || value === undefined
    ? `${path} is null.`
    : `${path} is a ${nameOf(value)}, which has no keys.`
}

function memberOf(value: unknown, name: string | number, path: string, payload: unknown): unknown {
  if (Array.isArray(value)) return typeof name === 'number' ? (value.at(name) as unknown) : undefined
  if (!isObject(value)) return undefined
  const key = String(name)
  if (Object.hasOwn(value, key) || !isWebhook(payload) || !isHeaderOf(value, path, key)) return value[key]
  return Object.entries(value).find(([each]) => each.toLowerCase() === key.toLowerCase())?.[1]
}

/** Header names have no case. */
function isHeaderOf(value: Record<string, unknown>, path: string, name: string): boolean {
  if (path !== 'trigger.headers' && path !== 'trigger.headers_lower') return false
  return Object.keys(value).some((each) => each.toLowerCase() === name.toLowerCase())
}

function keysOf(value: Record<string, unknown>): string {
  const keys = Object.keys(value)
  if (keys.length === 0) return 'it is empty.'
  const named = keys.slice(0, MAX_NAMED).map((key) => shown(key) + about(value[key]))
  const more = keys.length - named.length
  return `it has ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}.`
}

/** What is unexpected about a value: forms are lists of texts, and some senders write JSON into a text. */
function about(value: unknown): string {
  if (typeof value === 'string' && isJsonText(value)) return ' (a text that contains JSON)'
  if (!Array.isArray(value) || typeof value[0] !== 'string') return ''
  return isJsonText(value[0]) ? ' (a list of texts; the first contains JSON)' : ' (a list of texts)'
}

function isJsonText(text: string): boolean {
  const start = text.slice(0, 100).trimStart()
  const end = text.slice(-100).trimEnd()
  return (start.startsWith('{') && end.endsWith('}')) || (start.startsWith('[') && end.endsWith(']'))
}

function typeHint(type: string, pattern: unknown, value: unknown): string | undefined {
  const wanted = ['eq', 'equals'].includes(type) ? [pattern] : ['in', 'inside'].includes(type) ? pattern : undefined
  if (!Array.isArray(wanted) || !isScalar(value)) return undefined
  const alike = wanted
    .slice(0, MAX_COMPARED)
    .find((each) => isScalar(each) && nameOf(each) !== nameOf(value) && printed(each) === printed(value))
  if (alike === undefined) return undefined
  return `The value is a ${nameOf(value)}, the pattern a ${nameOf(alike)}: ${type} compares types too.`
}

const isScalar = (value: unknown): boolean =>
  value instanceof JsonNumber || ['string', 'number', 'boolean', 'bigint'].includes(typeof value)
const printed = (value: unknown): string => String(value).slice(0, MAX_COMPARED_LENGTH).toLowerCase()
const nameOf = (value: unknown): string =>
  typeof value === 'string' ? 'text' : typeof value === 'boolean' ? 'boolean' : 'number'

/** The key that was probably meant: equal but for case and separators, else with at most two other characters. */
function nearest(name: string, keys: readonly string[]): string | undefined {
  if (name.length > MAX_COMPARED_LENGTH) return undefined
  const plain = (text: string): string => text.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '')
  const wanted = plain(name)
  let best: string | undefined
  let least = Math.min(3, Math.ceil(name.length / 2) + 1)
  for (const key of keys.slice(0, MAX_COMPARED)) {
    if (key.length > MAX_COMPARED_LENGTH) continue
    const distance = plain(key) === wanted ? 0 : distanceOf(key.toLowerCase(), name.toLowerCase())
    if (distance < least) [best, least] = [key, distance]
  }
  return best
}

/** Levenshtein's distance. */
function distanceOf(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
