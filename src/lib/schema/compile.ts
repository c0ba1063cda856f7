/** Compiles JSON schemas: one validator for request bodies (draft 7) and action parameters (draft 4). */
import { Ajv, type Options } from 'ajv'
import draft4 from 'ajv-draft-04'
import { Lru } from '../cache/index.ts'
import { useFormats, useLinearUniqueItems, useQuickLengths, useSafeEnum } from './keywords.ts'
import { explain, type Root } from './messages.ts'
import { toPlainDraft4 } from './draft4.ts'
import { compileAnyPattern, compilePattern, MATCHES_TOO_LONG, withinMatchLimit } from './pattern.ts'
import { nearestCopy, useExactNumbers } from './exact.ts'
import type { Schema } from './record.ts'
import { costsTooMuch, hasReference } from './references.ts'
import { sizeOfSchema, type SchemaSize } from './schema-size.ts'
import type { SchemaCheck, JsonSchema, ParameterSchema, SchemaProblem } from './types.ts'
import { writeJson } from '../json/index.ts'

const compiled = new Lru<string, SchemaCheck>(500)

/**
 * Compiles a draft 7 schema; the same schema object is compiled once.
 *
 * A property with `secret: true` is checked like any other, but messages do not repeat its value.
 *
 * @throws Error when the schema itself is wrong: an unknown keyword, or a pattern that does not compile
 */
export function compileSchema(schema: Schema): SchemaCheck {
  return compileOnce(`7${writeJson(schema)}`, schema, () => new Ajv({ ...options, strictSchema: true }))
}

/**
 * Compiles a closed set of parameters: names mapped to their schemas (contract 02, 2.4).
 *
 * @throws Error for problems that `checkParameterSchema` reports
 */
export function compileParameters(parameters: Readonly<Record<string, ParameterSchema>>): SchemaCheck {
  return compileDraft4({ type: 'object', properties: parameters, additionalProperties: false })
}

/** Of values by the names of their parameters. */
export type ParameterCheck = (values: Readonly<Record<string, unknown>>) => SchemaProblem | undefined

/** What is compiled at once of a set of parameters: that takes some milliseconds. */
const MAX_NODES_OF_GROUP = 120
const MAX_PATTERNS_OF_GROUP = 2_000

/**
 * As `compileParameters`, some parameters at a time: hundreds of them at once take a tenth of a second. What passes all
 * checks in their order fits; the names are checked first.
 */
export function* compileParametersInGroups(
  parameters: Readonly<Record<string, ParameterSchema>>,
): Generator<ParameterCheck> {
  const groups: Record<string, ParameterSchema>[] = []
  let left: SchemaSize = { nodes: 0, patterns: 0 }
  for (const [name, schema] of Object.entries(parameters)) {
    const { nodes, patterns } = sizeOfSchema(schema)
    left.nodes -= nodes
    left.patterns -= patterns
    if (left.nodes < 0 || left.patterns < 0) {
      groups.push({})
      left = { nodes: MAX_NODES_OF_GROUP - nodes, patterns: MAX_PATTERNS_OF_GROUP - patterns }
    }
    Object.assign(groups.at(-1) ?? {}, { [name]: schema })
  }
  if (groups.length <= 1) {
    const check = compileParameters(parameters)
    yield (values) => check.find(values)
    return
  }
  const names = Object.entries(parameters).map(([name, { required }]) => [name, required === true ? { required } : {}])
  const namesCheck = compileParameters(Object.fromEntries(names) as Record<string, ParameterSchema>)
  yield (values) => namesCheck.find(values)
  for (const group of groups) {
    const check = compileDraft4({ type: 'object', properties: group })
    // The engine compiles the code of the library when it is called first.
    check.find({})
    yield (values) =>
      check.find(Object.fromEntries(Object.entries(values).filter(([name]) => Object.hasOwn(group, name))))
  }
}

/**
 * Compiles a draft 4 schema whose properties may have a boolean `required`. Unknown keywords are ignored, and no text
 * passes a regular expression that cannot be used.
 *
 * @throws Error for problems that `checkDraft4` reports
 */
export function compileDraft4(schema: JsonSchema): SchemaCheck {
  return compileOnce(
    `4${writeJson(schema)}`,
    toPlainDraft4(schema),
    () => new Draft4({ ...options, code: { optimize: false, regExp: anyPatterns } }),
  )
}

const Draft4 = draft4.default

/** The name of `code` only matters for schemas compiled to files. */
const strictPatterns = Object.assign((pattern: string) => compilePattern(pattern), { code: 'compilePattern' })
/** Of people: no text passes an expression that cannot be used. */
const anyPatterns = Object.assign((pattern: string) => compileAnyPattern(pattern), { code: 'compileAnyPattern' })

const options: Options = {
  // New instances are cheap without the meta-schema, and a shared one would keep everything it compiles.
  meta: false,
  validateSchema: false,
  strict: false,
  verbose: true,
  ownProperties: true,
  logger: false,
  // Optimising the generated code makes it no faster and takes a quarter of the time of the first start's checks.
  code: { optimize: false, regExp: strictPatterns },
}

function compileOnce(key: string, schema: Schema, createAjv: () => Ajv): SchemaCheck {
  const known = compiled.get(key)
  if (known !== undefined) return known

  const ajv = createAjv()
  useFormats(ajv)
  useLinearUniqueItems(ajv)
  useSafeEnum(ajv)
  useQuickLengths(ajv)
  if (!ajv.getKeyword('secret')) ajv.addKeyword('secret')
  useExactNumbers(ajv)
  const validate = ajv.compile(schema)
  // Schemas of the program refer to their own definitions.
  const isReferring = key.startsWith('4') && hasReference(schema)
  const root: Root = { schema, hasSecrets: writeJson(schema).includes('"secret":true') }
  const find: SchemaCheck['find'] = (value) => {
    if (isReferring && costsTooMuch(schema, value))
      return { path: [], message: 'the references ($ref) of the schema nest too deep for this value' }
    const { result: fits, isExhausted } = withinMatchLimit(() => validate(nearestCopy(value)))
    if (isExhausted) return { path: [], message: MATCHES_TOO_LONG }
    return fits ? undefined : explain(validate.errors ?? [], root, value)
  }
  const check: SchemaCheck = Object.assign((value: unknown) => find(value)?.message, { find })
  compiled.set(key, check)
  return check
}
