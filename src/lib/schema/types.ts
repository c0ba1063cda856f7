/** What a schema is, and what a check of one says. */

/** A JSON schema as plain data. */
export type JsonSchema = { readonly [keyword: string]: unknown }

/** One parameter of an action or runner (contract 02, 2.4): a draft 4 schema with a boolean `required` of its own. */
export interface ParameterSchema {
  type?: 'string' | 'integer' | 'number' | 'boolean' | 'object' | 'array' | 'null'
  description?: string
  default?: unknown
  required?: boolean
  enum?: unknown[]
  immutable?: boolean
  secret?: boolean
  position?: number
  items?: ParameterSchema
  properties?: Record<string, ParameterSchema>
  patternProperties?: Record<string, ParameterSchema>
  additionalProperties?: boolean | ParameterSchema
  [keyword: string]: unknown
}

/** Where a value does not fit its schema, and the one sentence of contract 00, 0.6 about it. */
export interface SchemaProblem {
  /** Names and indexes from the root to the offending value or the unexpected property. */
  path: string[]
  /** Begins with the path of the offending value, unless that is the root. */
  message: string
}

/** Undefined when the value fits, else what is wrong with it. */
export interface Check {
  (value: unknown): string | undefined
  find(value: unknown): SchemaProblem | undefined
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
