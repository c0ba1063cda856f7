/** JSON schema, one validator for everything: request bodies (draft 7) and action parameters (draft 4). */
import { Ajv, type ErrorObject, type Options } from 'ajv'
import draft4 from 'ajv-draft-04'
import addFormats from 'ajv-formats'
import { RE2JS } from 're2js'
import { Lru } from '../cache/index.ts'
import { MAX_PATTERN_INSTRUCTIONS, patternSize } from './pattern-size.ts'
import { shown } from '../text/index.ts'
import type { Schema } from './record.ts'

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

/** Stands for a secret value (contract 00, 0.15). */
export const MASK = '********'

const MAX_SHOWN_CHARS = 200
const MAX_SHOWN_NAMES = 10
const MAX_PATTERN_CHARS = 2_000
const MAX_MATCHED_CHARS = 65_536
/** Characters times instructions: about half a second in the worst case that was tried. */
const MAX_MATCH_STEPS = 20_000_000
const MAX_FORMAT_CHARS = 2_048
const MAX_SCHEMA_NODES = 2_000
const MAX_SCHEMA_DEPTH = 30

const compiled = new Lru<string, Check>(500)

/**
 * Makes the check of a draft 7 schema; the same schema is compiled once.
 *
 * A property marked `secret: true` is checked like any other, but its value is not repeated in messages.
 *
 * @throws Error when the schema itself is wrong: a keyword that does not exist, a pattern that cannot be compiled
 */
export function compileSchema(schema: Schema): Check {
  return compileOnce(`7${JSON.stringify(schema)}`, schema, () => new Ajv({ ...options, strictSchema: true }))
}

/**
 * Makes the check of a closed set of parameters, names mapped to their schemas (contract 02, 2.4).
 *
 * @throws Error for what `checkParameterSchema` reports
 */
export function compileParameters(parameters: Readonly<Record<string, ParameterSchema>>): Check {
  return compileDraft4({ type: 'object', properties: parameters, additionalProperties: false })
}

/**
 * Makes the check of a draft 4 schema whose properties may say themselves that they are `required`. Keywords that do not
 * exist are ignored.
 *
 * @throws Error for what `checkDraft4` reports
 */
export function compileDraft4(schema: JsonSchema): Check {
  return compileOnce(`4${JSON.stringify(schema)}`, lift(schema, false), () => new Draft4(options))
}

const Draft4 = draft4.default

const options: Options = {
  // Fresh instances are cheap without the meta-schema, and one that is kept never forgets what it compiled.
  meta: false,
  validateSchema: false,
  strict: false,
  verbose: true,
  ownProperties: true,
  logger: false,
  // Tidying the generated code makes it no faster, and takes a quarter of the time of the first start's checks. The name of
  // `code` would only matter for schemas compiled to files.
  code: {
    optimize: false,
    regExp: Object.assign((pattern: string) => compilePattern(pattern), { code: 'compilePattern' }),
  },
}

function compileOnce(key: string, schema: Schema, createAjv: () => Ajv): Check {
  const known = compiled.get(key)
  if (known !== undefined) return known

  const ajv = createAjv()
  useFormats(ajv)
  useLinearUniqueItems(ajv)
  useSafeEnum(ajv)
  if (!ajv.getKeyword('secret')) ajv.addKeyword('secret')
  const validate = ajv.compile(schema)
  const root: Root = { schema, hasSecrets: JSON.stringify(schema).includes('"secret":true') }
  const find: Check['find'] = (value) => (validate(value) ? undefined : explain(validate.errors ?? [], root))
  const check: Check = Object.assign((value: unknown) => find(value)?.message, { find })
  compiled.set(key, check)
  return check
}

// Keywords

interface Matcher {
  /** Longer texts do not match. */
  readonly maxChars: number
  test(text: string): boolean
  toString(): string
}

const patterns = new Lru<string, Matcher>(1_000)

/**
 * A regular expression that takes linear time whatever the text (RE2 syntax: no look-around, no back-references).
 * Texts too long to be matched within the step budget do not match.
 *
 * @throws Error naming the pattern and what it may not contain
 */
export function compilePattern(pattern: string): Matcher {
  const known = patterns.get(pattern)
  if (known !== undefined) return known
  if (pattern.length > MAX_PATTERN_CHARS) {
    throw new Error(`the pattern '${shown(pattern)}' is longer than ${MAX_PATTERN_CHARS} characters`)
  }
  let engine: RE2JS
  try {
    const translated = RE2JS.translateRegExp(pattern)
    if (patternSize(translated) > MAX_PATTERN_INSTRUCTIONS) throw new Error('its repetitions are too large')
    engine = RE2JS.compile(translated)
  } catch (error) {
    const why = error instanceof Error ? error.message.replace('error parsing regexp: ', '') : String(error)
    throw new Error(`the pattern '${shown(pattern)}' is not usable: ${shown(why)}`, { cause: error })
  }
  const maxChars = Math.min(MAX_MATCHED_CHARS, Math.floor(MAX_MATCH_STEPS / Math.max(1, engine.programSize())))
  const matcher: Matcher = {
    maxChars,
    test: (text) => text.length <= maxChars && engine.test(text),
    toString: () => pattern,
  }
  patterns.set(pattern, matcher)
  return matcher
}

type NamedFormat = Parameters<typeof addFormats.default.get>[0]

const formatNames: readonly NamedFormat[] = [
  'date',
  'time',
  'date-time',
  'duration',
  'uri',
  'uri-reference',
  'email',
  'hostname',
  'ipv4',
  'ipv6',
  'uuid',
  'json-pointer',
]

/** Formats are native regular expressions, hence the bound on their input. */
function useFormats(ajv: Ajv): void {
  for (const name of formatNames) {
    const format = addFormats.default.get(name)
    const fits = formatTest(format)
    ajv.addFormat(name, (text: string) => text.length <= MAX_FORMAT_CHARS && fits(text))
  }
}

function formatTest(format: ReturnType<typeof addFormats.default.get>): (text: string) => boolean {
  if (format instanceof RegExp) return (text) => format.test(text)
  if (typeof format === 'function') return (text) => format(text) === true
  if (typeof format === 'object' && !(format.async === true)) {
    const { validate } = format
    if (validate instanceof RegExp) return (text) => validate.test(text)
    if (typeof validate === 'function') return (text) => (validate as (text: string) => unknown)(text) === true // of strings
  }
  throw new Error('a format has no synchronous test')
}

/** The library's own keyword compares every pair. */
function useLinearUniqueItems(ajv: Ajv): void {
  ajv.removeKeyword('uniqueItems')
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    validate: (isUnique: boolean, items: unknown[]) => !isUnique || areUnique(items),
  })
}

/** The library's own keywords call `toString` of an object under comparison, which data may have replaced. */
function useSafeEnum(ajv: Ajv): void {
  ajv.removeKeyword('enum')
  ajv.addKeyword({
    keyword: 'enum',
    schemaType: 'array',
    validate: (allowed: unknown[], value: unknown) => allowed.some((each) => isSame(each, value)),
  })
  ajv.removeKeyword('const')
  ajv.addKeyword({ keyword: 'const', validate: isSame })
}

function isSame(a: unknown, b: unknown): boolean {
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => isSame(item, b[index]))
  }
  if (!isObject(a) || !isObject(b)) return a === b
  const names = Object.keys(a)
  return (
    names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && isSame(a[name], b[name]))
  )
}

function areUnique(items: unknown[]): boolean {
  const seen = new Set<string>()
  for (const item of items) {
    const text = canonical(item)
    if (seen.has(text)) return false
    seen.add(text)
  }
  return true
}

/** JSON text that is the same for equal data, whatever the order of keys. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (!isObject(value)) return JSON.stringify(value) ?? 'undefined'
  const names = Object.keys(value).sort()
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`
}

// Messages

interface Root {
  schema: Schema
  hasSecrets: boolean
}

type AjvError = ErrorObject<string, Record<string, unknown>>

function explain(errors: readonly ErrorObject[], root: Root): SchemaProblem {
  // The last one is the outermost: branches of a failed `anyOf` come before it. A bad property name is the exception.
  const last = errors.at(-1)
  if (last === undefined) return { path: [], message: 'the value does not fit its schema' }
  const inner = last.keyword === 'propertyNames' ? errors.at(-2) : undefined
  const error = (inner ?? last) as AjvError // params is an object for every keyword
  const path = pathOf(error.instancePath)
  const isSecret = inner === undefined && root.hasSecrets && isSecretAt(root.schema, path)
  const sentence = sentenceOf(error, isSecret ? MASK : represent(error.data))
  const unexpected = error.keyword === 'additionalProperties' ? [String(error.params['additionalProperty'])] : []
  return {
    path: [...path, ...unexpected],
    message: path.length === 0 ? sentence : `${printPath(path)}: ${sentence}`,
  }
}

function sentenceOf(error: AjvError, value: string): string {
  const { keyword, params, data, schema } = error
  switch (keyword) {
    case 'required':
      return `${represent(params['missingProperty'])} is a required property`
    case 'additionalProperties':
      return sentenceOfUnexpected(error)
    case 'type': {
      const types = Array.isArray(params['type']) ? params['type'] : String(params['type']).split(',')
      return `${value} is not of type ${types.map((type) => `'${String(type)}'`).join(', ')}`
    }
    case 'enum':
      return `${value} is not one of ${represent(withoutAddedNull(schema))}`
    case 'const':
      return `${value} is not ${represent(schema)}, the only value allowed`
    case 'pattern': {
      const pattern = String(params['pattern'])
      const isLong = typeof data === 'string' && data.length > compilePattern(pattern).maxChars
      return `${value} does not match '${shown(pattern)}'${isLong ? ': it is too long to be matched' : ''}`
    }
    case 'minimum':
    case 'exclusiveMinimum':
      return params['comparison'] === '>'
        ? `${value} is less than or equal to the minimum of ${String(params['limit'])}`
        : `${value} is less than the minimum of ${String(params['limit'])}`
    case 'maximum':
    case 'exclusiveMaximum':
      return params['comparison'] === '<'
        ? `${value} is greater than or equal to the maximum of ${String(params['limit'])}`
        : `${value} is greater than the maximum of ${String(params['limit'])}`
    case 'minLength':
    case 'minItems':
      return params['limit'] === 1
        ? `${value} should be non-empty`
        : `${value} is too short; at least ${String(params['limit'])} ${unitOf(keyword)} are needed`
    case 'maxLength':
    case 'maxItems':
      return `${value} is too long; at most ${String(params['limit'])} ${unitOf(keyword)} are allowed`
    case 'minProperties':
      return `${value} does not have enough properties; at least ${String(params['limit'])} are needed`
    case 'maxProperties':
      return `${value} has too many properties; at most ${String(params['limit'])} are allowed`
    case 'uniqueItems':
      return `${value} has non-unique elements`
    case 'multipleOf':
      return `${value} is not a multiple of ${String(params['multipleOf'])}`
    case 'format':
      return `${value} is not a '${String(params['format'])}'`
    case 'anyOf':
      return `${value} is not valid under any of the given schemas`
    case 'oneOf':
      return Array.isArray(params['passingSchemas'])
        ? `${value} is valid under more than one of the given schemas`
        : `${value} is not valid under any of the given schemas`
    case 'not':
      return `${value} is what the schema excludes`
    case 'dependencies':
      return `${represent(params['missingProperty'])} is a dependency of ${represent(params['property'])}`
    case 'contains':
      return `${value} contains no element that fits the given schema`
    case 'false schema':
      return `${value} is not allowed here`
    default:
      return `${value} ${error.message ?? 'does not fit its schema'}`
  }
}

/** `lift` allows null of everything optional; whoever reads the message looks for a value. */
function withoutAddedNull(allowed: unknown): unknown {
  return Array.isArray(allowed) && allowed.length > 1 && allowed.at(-1) === null ? allowed.slice(0, -1) : allowed
}

function unitOf(keyword: string): string {
  return keyword.endsWith('Length') ? 'characters' : 'items'
}

function sentenceOfUnexpected(error: AjvError): string {
  const schema = isObject(error.parentSchema) ? error.parentSchema : {}
  const known = isObject(schema['properties']) ? schema['properties'] : {}
  const allowed = isObject(schema['patternProperties']) ? Object.keys(schema['patternProperties']) : []
  const unexpected: string[] = []
  for (const name of Object.keys(isObject(error.data) ? error.data : {})) {
    if (Object.hasOwn(known, name) || allowed.some((pattern) => compilePattern(pattern).test(name))) continue
    unexpected.push(name)
    if (unexpected.length > MAX_SHOWN_NAMES) break
  }
  const names = unexpected.slice(0, MAX_SHOWN_NAMES).map((name) => represent(name))
  const list = names.join(', ') + (unexpected.length > MAX_SHOWN_NAMES ? ', …' : '')
  if (allowed.length > 0) {
    const regexes = allowed.map((pattern) => `'${shown(pattern)}'`).join(', ')
    return `${list} ${names.length === 1 ? 'does' : 'do'} not match any of the regexes: ${regexes}`
  }
  return `Additional properties are not allowed (${list} ${names.length === 1 ? 'was' : 'were'} unexpected)`
}

function pathOf(pointer: string): string[] {
  if (pointer === '') return []
  return pointer
    .slice(1)
    .split('/')
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function printPath(path: readonly string[]): string {
  return shown(
    path.map((segment, i) => (/^\d+$/.test(segment) ? `[${segment}]` : `${i === 0 ? '' : '.'}${segment}`)).join(''),
  )
}

/** Whether a value lies at or below something marked `secret`; in doubt it does. */
function isSecretAt(root: Schema, path: readonly string[]): boolean {
  let schema: unknown = root
  for (const segment of path) {
    if (!isObject(schema)) return true
    if (schema['secret'] === true) return true
    schema = subschemaOf(schema, segment)
  }
  return !isObject(schema) || JSON.stringify(schema).includes('"secret":true')
}

function subschemaOf(schema: Record<string, unknown>, segment: string): unknown {
  const { properties, patternProperties, additionalProperties, items } = schema
  if (isObject(properties) && Object.hasOwn(properties, segment)) return properties[segment]
  if (isObject(patternProperties)) {
    for (const [pattern, subschema] of Object.entries(patternProperties)) {
      if (compilePattern(pattern).test(segment)) return subschema
    }
  }
  if (isObject(additionalProperties)) return additionalProperties
  return Array.isArray(items) ? items[Number(segment)] : items
}

/**
 * A value as Python prints it (`'text'`, `None`, `['a', 1]`, `{'k': True}`), cut after `maxChars` characters.
 * The work is bounded too: what would be cut is not walked.
 */
export function represent(value: unknown, maxChars: number = MAX_SHOWN_CHARS): string {
  const parts: string[] = []
  let room = maxChars
  const add = (text: string): boolean => {
    parts.push(text)
    room -= text.length
    return room > 0
  }
  const walk = (inner: unknown): boolean => {
    if (inner === null || inner === undefined) return add('None')
    if (typeof inner === 'boolean') return add(inner ? 'True' : 'False')
    if (typeof inner === 'string') return add(quote(inner.slice(0, room + 1)))
    if (Array.isArray(inner)) {
      if (!add('[')) return false
      for (let i = 0; i < inner.length; i++) {
        if ((i > 0 && !add(', ')) || !walk(inner[i])) return false
      }
      return add(']')
    }
    if (typeof inner === 'number' || typeof inner === 'bigint') return add(String(inner))
    if (!isObject(inner)) return add(`<${typeof inner}>`)
    if (!add('{')) return false
    let isFirst = true
    for (const name of Object.keys(inner)) {
      if (!isFirst && !add(', ')) return false
      isFirst = false
      if (!add(`${quote(name.slice(0, room + 1))}: `) || !walk(inner[name])) return false
    }
    return add('}')
  }
  walk(value)
  const text = parts.join('')
  return text.length <= maxChars ? text : `${text.slice(0, maxChars)}…`
}

const escapes: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\\': '\\\\' }

function quote(text: string): string {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'"
  const inner = text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\\]/gu, (character) => {
    const known = escapes[character]
    if (known !== undefined) return known
    const code = character.codePointAt(0) ?? 0
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
  })
  return mark + (mark === "'" ? inner.replaceAll("'", "\\'") : inner) + mark
}

// Parameter schemas

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

/** What a parameter may say about itself; nested schemas may also list types and required names, as draft 4 does. */
const parameterMetaSchema: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  properties: { ...shared, type: { enum: simpleTypes }, required: { type: 'boolean' } },
  definitions: {
    names: { type: 'array', minItems: 1, items: { type: 'string' } },
    schema: {
      type: 'object',
      additionalProperties: false,
      properties: {
        ...shared,
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

/** What the library takes in silence, or refuses in words of its own. Draft 4 allows other keywords. */
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
const draft4MetaSchema: JsonSchema = {
  type: 'object',
  properties: looseProperties,
  definitions: { schema: { type: 'object', properties: looseProperties } },
}

/**
 * What is wrong with one parameter's schema (contract 02, 2.4), or undefined. A keyword that does not exist, such as
 * `order`, gives `Additional properties are not allowed ('order' was unexpected)`.
 */
export function checkParameterSchema(schema: unknown): SchemaProblem | undefined {
  const size = measure(schema)
  if (size !== undefined) return { path: [], message: size }
  const problem = compileSchema(parameterMetaSchema).find(schema)
  if (problem !== undefined) return problem
  if (!isObject(schema)) return { path: [], message: 'a parameter schema is an object' }
  try {
    compileParameters({ value: schema })
  } catch (error) {
    return { path: [], message: error instanceof Error ? shown(error.message) : 'it cannot be compiled' }
  }
  return undefined
}

/** What is wrong with a schema for `compileDraft4`, in one sentence; undefined: nothing. */
export function checkDraft4(schema: unknown): string | undefined {
  const size = measure(schema)
  if (size !== undefined) return size
  if (!isObject(schema)) return `${represent(schema)} is not of type 'object'`
  const problem = compileSchema(draft4MetaSchema)(schema)
  if (problem !== undefined) return problem
  // One that is referred to twice, and refers twice itself, takes twice the time on each level.
  if (hasReference(schema)) return 'references ($ref) are not supported; write the schema out'
  try {
    compileDraft4(schema)
  } catch (error) {
    return error instanceof Error ? shown(error.message) : 'it cannot be compiled'
  }
  return undefined
}

function hasReference(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (Object.hasOwn(value, '$ref')) return true
  return Object.values(value).some(hasReference)
}

/** Code is generated for every node of a schema; defaults and enums count too, they are walked as often. */
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

/**
 * A draft 4 schema of one that marks properties themselves as `required` (boolean) and carries attributes that are not
 * validated. Optional properties accept null, as an omitted one would.
 */
function lift(schema: Record<string, unknown>, isNullable: boolean): Record<string, unknown> {
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
        // Others mean nothing here, and something to the library: `$async`, `id`.
        if (Object.hasOwn(shared, keyword)) lifted[keyword] = value
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

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
