/** Paths of criteria and templates, such as `trigger.headers['X-Custom']`, to make an example of what they look at. */
import { entriesOf, isObject, objectOf } from '../../json.ts'

export type PathStep = string | number

const MAX_STEPS = 20
const MAX_INDEX = 20
const STEP = /\.?([^.[\]'"#\s]+)|\[\s*(\d{1,4}|\*)\s*\]|\[\s*'((?:[^'\\]|\\.)*)'\s*\]|\[\s*"((?:[^"\\]|\\.)*)"\s*\]/y

/** @returns undefined for what is no plain way to one value */
export function parsePath(text: string): PathStep[] | undefined {
  const steps: PathStep[] = []
  let at = 0
  // What stands behind `#` only makes one key different from another.
  while (at < text.length && text[at] !== '#') {
    STEP.lastIndex = at
    const found = STEP.exec(text)
    if (found === null || steps.length === MAX_STEPS) return undefined
    const [whole, name, index, single, double] = found
    const quoted = single ?? double
    if (name !== undefined) steps.push(name)
    else if (quoted !== undefined) steps.push(quoted.replace(/\\(.)/gs, '$1'))
    else if (index === '*') steps.push(0)
    else if (Number(index) > MAX_INDEX) return undefined
    else steps.push(Number(index))
    at += whole.length
  }
  return steps.length === 0 ? undefined : steps
}

/** Paths below `trigger` that a template reads: of `{{ trigger.body.id | upper }}` the one of `trigger.body.id`. */
export function pathsInTemplate(text: string): PathStep[][] {
  const found: PathStep[][] = []
  for (const [, inside = ''] of text.slice(0, MAX_TEMPLATE).matchAll(/\{\{(.*?)\}\}/gs)) {
    for (const [path] of inside.matchAll(/\btrigger(?:\.[A-Za-z_]\w*|\[\d+\]|\['[^'\\]*'\]|\["[^"\\]*"\])+/g)) {
      const steps = parsePath(path)
      if (steps !== undefined) found.push(steps)
    }
  }
  return found
}

const MAX_TEMPLATE = 10_000

/**
 * Puts a value where a path leads, and makes what leads there.
 *
 * @returns the new whole; undefined: something else is there already, or in the way
 */
export function placed(whole: unknown, [step, ...rest]: readonly PathStep[], value: unknown): unknown {
  if (step === undefined) return whole === undefined ? value : undefined
  if (typeof step === 'number') {
    if (whole !== undefined && !Array.isArray(whole)) return undefined
    const items: unknown[] = whole === undefined ? [] : [...(whole as unknown[])] // as has just been looked at
    const item = placed(items[step], rest, value)
    if (item === undefined) return undefined
    while (items.length < step) items.push(null)
    items[step] = item
    return items
  }
  if (whole !== undefined && !isObject(whole)) return undefined
  const entries = new Map<string, unknown>(entriesOf(whole ?? {}))
  const inner = placed(entries.get(step), rest, value)
  if (inner === undefined) return undefined
  return objectOf(entries.set(step, inner))
}
