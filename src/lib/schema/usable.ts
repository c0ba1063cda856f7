/** What of a schema can be checked that its author has not written quite right. */
import { isObject, type JsonSchema } from './types.ts'

const simpleTypes: ReadonlySet<unknown> = new Set(['string', 'integer', 'number', 'boolean', 'object', 'array', 'null'])

/** A draft 4 schema without the keywords whose values are of the wrong kind, such as `items: object`. */
export function usableDraft4(schema: JsonSchema): JsonSchema {
  const kept = Object.entries(schema).map(([keyword, value]): [string, unknown] => [keyword, usable(keyword, value)])
  return Object.fromEntries(kept.filter(([, value]) => value !== undefined))
}

const usableSchema = (value: unknown): JsonSchema | undefined => (isObject(value) ? usableDraft4(value) : undefined)

function usable(keyword: string, value: unknown): unknown {
  switch (keyword) {
    case 'type':
      return [value].flat().every((name) => simpleTypes.has(name)) ? value : undefined
    case 'items':
      return Array.isArray(value) ? usableSchemas(value) : usableSchema(value)
    case 'additionalItems':
    case 'additionalProperties':
      return typeof value === 'boolean' ? value : usableSchema(value)
    case 'not':
      return usableSchema(value)
    case 'anyOf':
    case 'allOf':
    case 'oneOf':
      return Array.isArray(value) ? usableSchemas(value) : undefined
    case 'properties':
    case 'patternProperties': {
      if (!isObject(value)) return undefined
      // A property that nothing is known of is one all the same.
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, usableSchema(inner) ?? {}]))
    }
    default:
      return value
  }
}

/** Undefined unless each of them is a schema: in a list the place counts. */
function usableSchemas(values: readonly unknown[]): JsonSchema[] | undefined {
  const schemas = values.map(usableSchema).filter((schema) => schema !== undefined)
  return schemas.length === values.length && schemas.length > 0 ? schemas : undefined
}
