/** Compiles JSON schemas: one validator for request bodies (draft 7) and action parameters (draft 4). */
import { Ajv, type Options } from 'ajv'
import draft4 from 'ajv-draft-04'
import { Lru } from '../cache/index.ts'
import { useFormats, useLinearUniqueItems, useQuickLengths, useSafeEnum } from './keywords.ts'
import { explain, type Root } from './messages.ts'
import { toPlainDraft4 } from './draft4.ts'
import { compilePattern } from './pattern.ts'
import { nearestCopy, useExactNumbers } from './exact.ts'
import type { Schema } from './record.ts'
import type { SchemaCheck, JsonSchema, ParameterSchema } from './types.ts'
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

/**
 * Compiles a draft 4 schema whose properties may have a boolean `required`. Unknown keywords are ignored.
 *
 * @throws Error for problems that `checkDraft4` reports
 */
export function compileDraft4(schema: JsonSchema): SchemaCheck {
  return compileOnce(`4${writeJson(schema)}`, toPlainDraft4(schema), () => new Draft4(options))
}

const Draft4 = draft4.default

const options: Options = {
  // New instances are cheap without the meta-schema, and a shared one would keep everything it compiles.
  meta: false,
  validateSchema: false,
  strict: false,
  verbose: true,
  ownProperties: true,
  logger: false,
  // Optimising the generated code makes it no faster and takes a quarter of the time of the first start's checks. The
  // name of `code` only matters for schemas compiled to files.
  code: {
    optimize: false,
    regExp: Object.assign((pattern: string) => compilePattern(pattern), { code: 'compilePattern' }),
  },
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
  const root: Root = { schema, hasSecrets: writeJson(schema).includes('"secret":true') }
  const find: SchemaCheck['find'] = (value) =>
    validate(nearestCopy(value)) ? undefined : explain(validate.errors ?? [], root, value)
  const check: SchemaCheck = Object.assign((value: unknown) => find(value)?.message, { find })
  compiled.set(key, check)
  return check
}
