/** Checks schemas from outside. */
import { shown } from '../text/index.ts'
import { compileDraft4, compileParameters, compileSchema } from './compile.ts'
import { draft4MetaSchema, parameterMetaSchema } from './draft4.ts'
import { represent } from './messages.ts'
import { MAX_PATTERN_INSTRUCTIONS } from './pattern-size.ts'
import { unusablePatternIn } from './pattern.ts'
import { hasReference } from './references.ts'
import { sizeOfSchema, type SchemaSize } from './schema-size.ts'
import { isObject, type SchemaProblem } from './types.ts'

const MAX_SCHEMA_NODES = 2_000
const MAX_SCHEMA_DEPTH = 30

/** Of one schema, which is compiled at once: that takes some 50 ms. */
const MAX_NODES_AT_ONCE = 1_000

/** What the schemas that belong together may still have. */
export function createSchemaRoom(): SchemaSize {
  return { nodes: MAX_SCHEMA_NODES, patterns: MAX_PATTERN_INSTRUCTIONS }
}

/**
 * The problem of one parameter's schema (contract 02, 2.4), or undefined. An unknown keyword such as `order` gives
 * `Additional properties are not allowed ('order' was unexpected)`. Of regular expressions `unusablePatternIn` tells.
 *
 * @param room of all parameters of an action; reduced
 * @param compiles whether it is compiled alone; false: the caller compiles it with those that it refers to
 */
export function checkParameterSchema(
  schema: unknown,
  room = createSchemaRoom(),
  compiles = true,
): SchemaProblem | undefined {
  const size = measure(schema) ?? takeRoom(schema, room)
  if (size !== undefined) return { path: [], message: size }
  const problem = compileSchema(parameterMetaSchema).find(schema)
  if (problem !== undefined) return problem
  if (!isObject(schema)) return { path: [], message: 'a parameter schema is an object' }
  if (!compiles) return undefined
  try {
    compileParameters({ value: schema })
  } catch (error) {
    return { path: [], message: error instanceof Error ? shown(error.message) : 'it cannot be compiled' }
  }
  return undefined
}

/** The problem of a schema for `compileDraft4`, in one sentence; undefined: none. */
export function checkDraft4(schema: unknown): string | undefined {
  const size = measure(schema) ?? takeRoom(schema, createSchemaRoom())
  if (size !== undefined) return size
  if (!isObject(schema)) return `${represent(schema)} is not of type 'object'`
  const problem = compileSchema(draft4MetaSchema)(schema)
  if (problem !== undefined) return problem
  // References that are used twice and nest double the time on each level.
  if (hasReference(schema)) return 'references ($ref) are not supported; write the schema out'
  try {
    compileDraft4(schema)
  } catch (error) {
    return error instanceof Error ? shown(error.message) : 'it cannot be compiled'
  }
  return unusablePatternIn(schema)?.message
}

/** The library generates code for every node of a schema. Defaults and enums count too: it walks them as often. */
function measure(schema: unknown): string | undefined {
  let nodes = 0
  let problem: string | undefined
  const walk = (value: unknown, depth: number): void => {
    nodes += 1
    if (depth > MAX_SCHEMA_DEPTH) problem = `it is nested more than ${MAX_SCHEMA_DEPTH} deep`
    if (nodes > MAX_SCHEMA_NODES) problem = `it has more than ${MAX_SCHEMA_NODES} values`
    if (problem !== undefined || typeof value !== 'object' || value === null) return
    for (const inner of Object.values(value)) walk(inner, depth + 1)
  }
  walk(schema, 0)
  return problem
}

/** @param schema has been measured. Reduces the room; returns what does not fit into it */
function takeRoom(schema: unknown, room: SchemaSize): string | undefined {
  const { nodes, patterns } = sizeOfSchema(schema)
  room.nodes -= nodes
  room.patterns -= patterns
  if (nodes > MAX_NODES_AT_ONCE) return `it has more than ${MAX_NODES_AT_ONCE} values besides descriptions and choices`
  if (room.nodes < 0) return `the schemas have more than ${MAX_SCHEMA_NODES} values together`
  if (room.patterns < 0)
    return `the regular expressions of the schemas have more than ${MAX_PATTERN_INSTRUCTIONS} steps together`
  return undefined
}
