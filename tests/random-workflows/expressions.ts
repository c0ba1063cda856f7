/**
 * The expressions of random workflows, as data: `$name` is a variable, an object with the key `$` one of the forms below.
 * Everything else stands for itself.
 */
import { entriesOf, objectOf } from '../../src/lib/json/index.ts'
import { isObject } from '../../src/lib/schema/index.ts'

/** What an expression can read. */
export interface Sight {
  /** undefined: there is no such variable */
  variable(name: string): unknown
  /** Status of the current task. */
  readonly status: string | undefined
  result(): unknown
  readonly item: unknown
  /** Latest status of a task; undefined: none can be seen */
  statusOf(task: string): string | undefined
}

export type Form =
  | { readonly $: 'get'; readonly name: string }
  | { readonly $: 'is'; readonly status: string }
  /** Whether a variable that counts is below a number. */
  | { readonly $: 'below'; readonly name: string; readonly limit: number }
  | { readonly $: 'next'; readonly name: string }
  | { readonly $: 'status of'; readonly task: string }
  | { readonly $: 'result' }
  | { readonly $: 'item' }
  | { readonly $: 'mistake' }

/** An expression cannot be evaluated. */
export class Mistake extends Error {}

export function evaluate(value: unknown, sight: Sight): unknown {
  if (typeof value === 'string') {
    if (!value.startsWith('$')) return value
    const found = sight.variable(value.slice(1))
    if (found === undefined) throw new Mistake(`${value} is undefined`)
    return found
  }
  if (Array.isArray(value)) return value.map((item) => evaluate(item, sight))
  if (!isObject(value)) return value
  if ('$' in value) return evaluateForm(value as unknown as Form, sight) // only forms have the key
  return objectOf(entriesOf(value).map(([key, item]): [string, unknown] => [key, evaluate(item, sight)]))
}

function evaluateForm(form: Form, sight: Sight): unknown {
  switch (form.$) {
    case 'get':
      return sight.variable(form.name) ?? null
    case 'is':
      return sight.status === form.status
    case 'below':
      return count(sight.variable(form.name)) < form.limit
    case 'next':
      return count(sight.variable(form.name)) + 1
    case 'status of':
      return sight.statusOf(form.task) ?? 'null'
    case 'result':
      return sight.result()
    case 'item':
      return sight.item ?? null
    case 'mistake':
      throw new Mistake('no')
  }
}

const count = (value: unknown): number => (typeof value === 'number' ? value : 0)
