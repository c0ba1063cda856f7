/** Where values of a payload are: for the keys of criteria, and for templates. No markup, no state. */
import { isObject } from '../../json.ts'

export interface PayloadPath {
  /** `trigger.body.items[0].id`, `trigger.headers['X-Custom']` */
  path: string
  /** The value, or its beginning; of a schema its type. */
  preview: string
}

const MAX_PATHS = 300
const MAX_DEPTH = 8
/** Of a list: the others look like these. */
const MAX_ITEMS = 3
const MAX_PREVIEW = 60

/** Of a recorded trigger instance, those nearest to the top first. */
export function pathsOfPayload(payload: unknown): PayloadPath[] {
  const found: PayloadPath[] = []
  let level: [path: string, value: unknown][] = [['trigger', payload]]
  for (let depth = 0; depth <= MAX_DEPTH && level.length > 0 && found.length < MAX_PATHS; depth += 1) {
    const next: [path: string, value: unknown][] = []
    for (const [path, value] of level) {
      if (depth > 0 && found.length < MAX_PATHS) found.push({ path, preview: previewOf(value) })
      if (Array.isArray(value)) {
        value.slice(0, MAX_ITEMS).forEach((item: unknown, i) => next.push([`${path}[${i}]`, item]))
      } else if (isObject(value)) {
        for (const name in value) {
          if (next.length >= MAX_PATHS) break
          if (Object.hasOwn(value, name)) next.push([memberOf(path, name), Reflect.get(value, name)])
        }
      }
    }
    level = next
  }
  return found
}

/** Of the payload's schema: what may be there. */
export function pathsOfSchema(schema: unknown): PayloadPath[] {
  const found: PayloadPath[] = []
  const walk = (path: string, given: unknown, depth: number): void => {
    if (!isObject(given) || depth > MAX_DEPTH) return
    const properties = given['properties']
    if (!isObject(properties)) return
    for (const [name, property] of Object.entries(properties)) {
      if (found.length >= MAX_PATHS) return
      const inner = memberOf(path, name)
      found.push({ path: inner, preview: isObject(property) ? typeOf(property) : '' })
      walk(inner, property, depth + 1)
    }
  }
  walk('trigger', schema, 0)
  return found
}

/** Without those that are there twice; the first counts. Headers of requests come last: there are many, and few are of use. */
export function mergePaths(...lists: readonly (readonly PayloadPath[])[]): PayloadPath[] {
  const byPath = new Map<string, PayloadPath>()
  for (const one of lists.flat()) if (!byPath.has(one.path)) byPath.set(one.path, one)
  const isHeader = ({ path }: PayloadPath): boolean => /^trigger\.headers(_lower)?\b/.test(path)
  return [...byPath.values()].toSorted((a, b) => Number(isHeader(a)) - Number(isHeader(b)))
}

/** `{{ trigger.body.id }}` */
export function templateOf(path: string): string {
  return `{{ ${path} }}`
}

function memberOf(path: string, name: string): string {
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return `${path}.${name}`
  return `${path}['${name.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}']`
}

function previewOf(value: unknown): string {
  if (Array.isArray(value)) return value.length === 1 ? 'list of 1 item' : `list of ${value.length} items`
  if (isObject(value)) return 'object'
  if (typeof value !== 'string') return String(value)
  return value.length > MAX_PREVIEW ? `"${value.slice(0, MAX_PREVIEW).toWellFormed()}…"` : `"${value}"`
}

function typeOf({ type }: Record<string, unknown>): string {
  if (Array.isArray(type)) return type.join(' or ')
  return typeof type === 'string' ? type : ''
}
