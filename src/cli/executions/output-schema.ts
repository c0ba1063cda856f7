/** Suggests an output schema from one result of an action (contract 09, 9.4: `--with-schema`). */
import { attributeOf, type Json } from '../output/print.ts'
import { JsonNumber } from '../../lib/json/index.ts'

/** Below this depth the schema allows anything. */
const MAX_DEPTH = 10

export interface SchemaSuggestion {
  schema: Json
  /** The runner says which part of the result is its output. Where it does not, nothing is checked against a schema. */
  isChecked: boolean
}

/** @returns undefined when the action has a schema, or nothing was put out */
export function suggestSchema(record: Json): SchemaSuggestion | undefined {
  const own = attributeOf(record, 'action.output_schema')
  const result = record['result']
  if (isObject(own) && Object.keys(own).length > 0) return undefined
  if (result === undefined || result === null) return undefined
  const key = attributeOf(record, 'runner.output_key')
  const isChecked = typeof key === 'string'
  const output = isChecked ? attributeOf(result, key) : result
  return output === undefined ? undefined : { schema: schemaOf(output, 0), isChecked }
}

function schemaOf(value: unknown, depth: number): Json {
  if (value === null) return {}
  if (!isObject(value)) return { type: typeOf(value) }
  if (Array.isArray(value)) return { type: 'array', ...(depth === MAX_DEPTH ? {} : itemsOf(value, depth)) }
  if (depth === MAX_DEPTH) return { type: 'object' }
  const properties = Object.entries(value).map(([name, item]): [string, Json] => [
    name,
    { ...schemaOf(item, depth + 1), required: true },
  ])
  return { type: 'object', ...(properties.length === 0 ? {} : { properties: Object.fromEntries(properties) }) }
}

/** Several items of one type have that type as their schema; items of different types have none. */
function itemsOf(items: readonly unknown[], depth: number): Json {
  const types = new Set(items.map((item) => schemaOf(item, MAX_DEPTH)['type']))
  const [type] = types
  if (types.size !== 1 || type === undefined) return {}
  return { items: items.length === 1 ? schemaOf(items[0], depth + 1) : { type } }
}

function typeOf(value: unknown): string {
  if (value instanceof JsonNumber) return value.isWhole ? 'integer' : 'number'
  return typeof value === 'number' ? (Number.isInteger(value) ? 'integer' : 'number') : typeof value
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !(value instanceof JsonNumber)
}
