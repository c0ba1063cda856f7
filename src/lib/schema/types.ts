/** Types of schemas and of the results of their checks. */
import { JsonNumber } from '../json/index.ts'

/** A JSON schema as plain data. */
export type JsonSchema = { readonly [keyword: string]: unknown }

/** One parameter of an action or runner (contract 02, 2.4): a draft 4 schema with a boolean `required`. */
export interface ParameterSchema {
  type?: 'string' | 'integer' | 'number' | 'boolean' | 'object' | 'array' | 'null'
  description?: string
  default?: unknown
  required?: boolean
  enum?: unknown[]
  immutable?: boolean
  secret?: boolean
  position?: number | JsonNumber
  items?: ParameterSchema
  properties?: Record<string, ParameterSchema>
  patternProperties?: Record<string, ParameterSchema>
  additionalProperties?: boolean | ParameterSchema
  [keyword: string]: unknown
}

/** Where a value does not fit its schema, with the sentence of contract 00, 0.6. */
export interface SchemaProblem {
  /** Names and indexes from the root to the offending value, or the unexpected property. */
  path: string[]
  /** Name of the property that the value at the path lacks. */
  missing?: string
  /** Begins with the path of the offending value, unless that is the root. */
  message: string
}

/** Path of the field to correct: of what does not fit, or of what is missing. */
export function fieldOf({ path, missing }: SchemaProblem): string[] {
  return missing === undefined ? path : [...path, missing]
}

/** Undefined when the value fits, else the problem. */
export interface SchemaCheck {
  (value: unknown): string | undefined
  find(value: unknown): SchemaProblem | undefined
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof JsonNumber)
}
