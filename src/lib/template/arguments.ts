import { quoted, typeError } from './error.ts'
import type { Budget } from './limits.ts'
import { isNumeric, isWhole, toNumber, typeNameOf, Undefined, type Call, type Value } from './values.ts'

/** Parameter names of a filter, test or method; optional ones come last. */
export interface Signature {
  names: readonly string[]
  required: number
}

/** Reads `'old new count?'`: names in order, optional ones marked. */
export function signature(parameters: string): Signature {
  const names = parameters === '' ? [] : parameters.split(' ')
  const required = names.filter((name) => !name.endsWith('?')).length
  return { names: names.map((name) => name.replace('?', '')), required }
}

/** The arguments of a call in the order of the signature, undefined where left out. */
export function bind(what: string, { names, required }: Signature, call: Call): readonly (Value | undefined)[] {
  if (call.positional.length > names.length) {
    throw typeError(`${what} takes at most ${names.length} arguments, ${call.positional.length} were given`)
  }
  if (call.named.size === 0) {
    if (call.positional.length < required) throw missing(what, names[call.positional.length])
    return call.positional
  }
  const values: (Value | undefined)[] = [...call.positional]
  for (const [name, value] of call.named) {
    const index = names.indexOf(name)
    if (index < 0) throw typeError(`${what} has no parameter ${quoted(name)}`)
    if (values[index] !== undefined) throw typeError(`${what} got the argument ${quoted(name)} twice`)
    values[index] = value
  }
  for (let index = 0; index < required; index += 1) if (values[index] === undefined) throw missing(what, names[index])
  return values
}

function missing(what: string, name: string | undefined): Error {
  return typeError(`${what} needs the argument ${quoted(name ?? '')}`)
}

/** A text argument. */
export function textArgument(what: string, value: Value | undefined, fallback?: string): string {
  if (value === undefined && fallback !== undefined) return fallback
  if (value instanceof Undefined) value.raise()
  if (typeof value !== 'string') throw typeError(`${what} needs text, not ${typeNameOf(value ?? null)}`)
  return value
}

/** A whole number argument. */
export function wholeArgument(what: string, value: Value | undefined, fallback?: number): number {
  if (value === undefined && fallback !== undefined) return fallback
  if (value instanceof Undefined) value.raise()
  if (value === undefined || !isNumeric(value) || !isWhole(value)) {
    throw typeError(`${what} needs a whole number, not ${typeNameOf(value ?? null)}`)
  }
  return Number(value)
}

/** A width or count to make text with: checked against the budget before anything is made. */
export function sizeArgument(what: string, value: Value | undefined, fallback: number, budget: Budget): number {
  const size = wholeArgument(what, value, fallback)
  if (size > 0) budget.text(size)
  return Math.max(0, size)
}

/** A number argument. */
export function numberArgument(what: string, value: Value | undefined): number {
  if (value instanceof Undefined) value.raise()
  if (value === undefined || !isNumeric(value))
    throw typeError(`${what} needs a number, not ${typeNameOf(value ?? null)}`)
  return toNumber(value)
}
