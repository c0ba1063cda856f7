/** The draft 4 of action parameters (contract 02, 2.4): a property may have a boolean `required`. */
import { nearestNumber } from '../json/index.ts'
import { isObject, type JsonSchema } from './types.ts'

const simpleTypes = ['string', 'integer', 'number', 'boolean', 'object', 'array', 'null']

const subschema = { $ref: '#/definitions/schema' }
const subschemas = { type: 'object', additionalProperties: subschema }
const count = { type: 'integer', minimum: 0 }

const shared = {
  title: { type: 'string' },
  description: { type: ['string', 'null'] },
  default: {},
  enum: { type: 'array', minItems: 1 },
  immutable: { type: 'boolean' },
  secret: { type: 'boolean' },
  position: { type: 'number', minimum: 0 },
  items: { anyOf: [subschema, { type: 'array', minItems: 1, items: subschema }] },
  additionalItems: { anyOf: [{ type: 'boolean' }, subschema] },
  properties: subschemas,
  patternProperties: subschemas,
  additionalProperties: { anyOf: [{ type: 'boolean' }, subschema] },
  dependencies: { type: 'object', additionalProperties: { anyOf: [subschema, { $ref: '#/definitions/names' }] } },
  minLength: count,
  maxLength: count,
  minItems: count,
  maxItems: count,
  minProperties: count,
  maxProperties: count,
  minimum: { type: 'number' },
  maximum: { type: 'number' },
  exclusiveMinimum: { type: 'boolean' },
  exclusiveMaximum: { type: 'boolean' },
  multipleOf: { type: 'number', exclusiveMinimum: 0 },
  pattern: { type: 'string' },
  format: { type: 'string' },
  uniqueItems: { type: 'boolean' },
  anyOf: { type: 'array', minItems: 1, items: subschema },
  allOf: { type: 'array', minItems: 1, items: subschema },
  oneOf: { type: 'array', minItems: 1, items: subschema },
  not: subschema,
}

/**
 * The schema of a parameter's schema. Nested schemas may also list types and required names, as in draft 4, and have other
 * keywords, which mean nothing.
 */
export const parameterMetaSchema: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    ...shared,
    type: { enum: simpleTypes },
    required: { type: 'boolean' },
    id: { type: 'string' },
    $schema: { type: 'string' },
  },
  definitions: {
    names: { type: 'array', minItems: 1, items: { type: 'string' } },
    schema: {
      type: 'object',
      properties: {
        ...shared,
        $ref: { type: 'string' },
        type: {
          anyOf: [
            { enum: simpleTypes },
            { type: 'array', minItems: 1, uniqueItems: true, items: { enum: simpleTypes } },
          ],
        },
        required: { anyOf: [{ type: 'boolean' }, { $ref: '#/definitions/names' }] },
      },
    },
  },
}

/** Keywords of the library that take JavaScript numbers only. */
const counts = new Set(Object.keys(shared).filter((keyword) => shared[keyword as keyof typeof shared] === count))

/** Rejects what the library accepts silently or reports in other words. Draft 4 allows other keywords. */
const looseProperties: Readonly<Record<string, JsonSchema>> = {
  ...Object.fromEntries(
    (['items', 'additionalItems', 'additionalProperties', 'anyOf', 'allOf', 'oneOf', 'not'] as const).map((keyword) => [
      keyword,
      shared[keyword],
    ]),
  ),
  type: { items: { enum: simpleTypes }, if: { type: 'array' }, else: { enum: simpleTypes } },
  properties: { ...subschemas, type: ['object', 'null'] },
  patternProperties: { ...subschemas, type: ['object', 'null'] },
}
export const draft4MetaSchema: JsonSchema = {
  type: 'object',
  properties: looseProperties,
  definitions: { schema: { type: 'object', properties: looseProperties } },
}

/**
 * Converts to plain draft 4: moves boolean `required` of properties into a list and drops attributes that are not
 * validated. Optional properties accept null, as if omitted.
 */
export function toPlainDraft4(schema: JsonSchema): Record<string, unknown> {
  return lift(schema, false)
}

function lift(schema: Record<string, unknown>, isNullable: boolean): Record<string, unknown> {
  // What stands beside a reference does not count.
  if (typeof schema['$ref'] === 'string') return { $ref: schema['$ref'] }
  const lifted: Record<string, unknown> = {}
  const required = new Set<string>(Array.isArray(schema['required']) ? schema['required'].map(String) : [])
  for (const [keyword, value] of Object.entries(schema)) {
    switch (keyword) {
      case 'required':
      case 'immutable':
      case 'position':
      case 'default':
      case 'description':
      case 'title':
        break
      case 'type':
        lifted['type'] = isNullable ? [...new Set([value, 'null'].flat())] : value
        break
      case 'enum':
        lifted['enum'] = isNullable && Array.isArray(value) && !value.includes(null) ? [...value, null] : value
        break
      case 'properties': {
        const properties: Record<string, unknown> = {}
        for (const [name, property] of Object.entries(isObject(value) ? value : {})) {
          if (!isObject(property)) continue
          const isRequired = property['required'] === true || required.has(name)
          if (isRequired) required.add(name)
          properties[name] = lift(property, !isRequired)
        }
        lifted['properties'] = properties
        break
      }
      case 'patternProperties':
        lifted[keyword] = liftAll(value)
        break
      case 'dependencies':
        lifted[keyword] = liftAll(value)
        break
      case 'anyOf':
      case 'allOf':
      case 'oneOf':
        lifted[keyword] = Array.isArray(value) ? value.map((inner) => liftIfSchema(inner)) : value
        break
      case 'items':
        lifted[keyword] = Array.isArray(value) ? value.map((inner) => liftIfSchema(inner)) : liftIfSchema(value)
        break
      case 'additionalItems':
      case 'additionalProperties':
      case 'not':
        lifted[keyword] = liftIfSchema(value)
        break
      default:
        // Other keywords mean nothing here but something to the library: `$async`, `id`.
        if (Object.hasOwn(shared, keyword)) lifted[keyword] = counts.has(keyword) ? nearestNumber(value) : value
    }
  }
  if (required.size > 0) lifted['required'] = [...required]
  return lifted
}

function liftAll(schemas: unknown): Record<string, unknown> {
  const lifted: Record<string, unknown> = {}
  for (const [name, inner] of Object.entries(isObject(schemas) ? schemas : {})) lifted[name] = liftIfSchema(inner)
  return lifted
}

function liftIfSchema(value: unknown): unknown {
  return isObject(value) ? lift(value, false) : value
}
