/** Example data for a schema, as a start to edit. */
import { isObject } from '../../json.ts'

const MAX_PROPERTIES = 30
const MAX_DEPTH = 4

export function exampleOfSchema(schema: unknown, depth = 0): unknown {
  if (!isObject(schema)) return 'example'
  if ('default' in schema) return schema['default']
  const { enum: choices, properties, items } = schema
  if (Array.isArray(choices)) return (choices as unknown[])[0]
  const [type] = [schema['type'] ?? (isObject(properties) ? 'object' : 'string')].flat()
  switch (type) {
    case 'object':
      if (!isObject(properties) || depth === MAX_DEPTH) return {}
      return Object.fromEntries(
        Object.entries(properties)
          .slice(0, MAX_PROPERTIES)
          .map(([name, inner]) => [name, exampleOfSchema(inner, depth + 1)]),
      )
    case 'array':
      return items === undefined || depth === MAX_DEPTH ? [] : [exampleOfSchema(items, depth + 1)]
    case 'integer':
    case 'number':
      return 1
    case 'boolean':
      return true
    case 'null':
      return null
    default:
      return 'example'
  }
}
