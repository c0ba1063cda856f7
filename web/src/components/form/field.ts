/** Fields of a form, from the schemas of parameters. */
import type { ParameterSchema } from '../../api/records.ts'
import { isNumber, isObject, JsonNumber, writeJson } from '../../json.ts'
import { countText } from '../../text.ts'

export type ParameterSchemas = Readonly<Record<string, ParameterSchema>>

export type JsonType = 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object' | 'null'

/**
 * How a value is written. `any` is JSON, or else text: of parameters without a type, or with several. `json` is of objects and
 * lists; a list may be written as lines, too.
 */
export type Control = 'text' | 'integer' | 'number' | 'boolean' | 'choice' | 'json' | 'any'

export interface Field {
  name: string
  control: Control
  /** Empty: any. */
  types: readonly JsonType[]
  /** For people: `integer`, `list of string`, `string or null`. */
  typeTitle: string
  description: string
  /** There is no default, either. */
  mustBeGiven: boolean
  /** Shown, and never sent. */
  isImmutable: boolean
  isSecret: boolean
  /** Undefined: none. */
  defaultValue: unknown
  /** Of `choice` and `boolean`. */
  choices: readonly unknown[]
  /** What else the value has to be: `at least 1`. */
  hints: readonly string[]
  /** A list whose items may be written one per line. */
  hasLines: boolean
  /** Optional, or fixed, and rarely needed: stands under "More parameters". */
  isFolded: boolean
  /** Nobody has declared it: it came with the values. */
  isUnknown: boolean
  schema: ParameterSchema
}

/** Longer defaults and patterns are cut. */
const MAX_SHOWN = 200
/** More optional parameters than these are folded. */
const MAX_UNFOLDED = 12

/**
 * Fields in the order of the form: what must be given first, then by position, then as declared.
 *
 * @param options.isFolded which optional parameters are rarely needed; default: none, unless there are many
 * @param options.values those that are not declared get a field of their own, so that nothing is lost unseen
 */
export function fieldsOf(
  schemas: ParameterSchemas,
  options: { isFolded?: (name: string) => boolean; values?: Readonly<Record<string, unknown>> } = {},
): Field[] {
  const fields = Object.entries(schemas).map(([name, schema]) => fieldOf(name, isObject(schema) ? schema : {}))
  fields.sort((a, b) => rankOf(a) - rankOf(b) || positionOf(a) - positionOf(b))
  let unfolded = 0
  for (const field of fields) {
    if (field.mustBeGiven) unfolded += 1
    else if (field.isImmutable || options.isFolded?.(field.name) === true || unfolded >= MAX_UNFOLDED) {
      field.isFolded = true
    } else unfolded += 1
  }
  for (const name of Object.keys(options.values ?? {})) {
    if (!Object.hasOwn(schemas, name)) fields.push({ ...fieldOf(name, {}), isUnknown: true })
  }
  return fields
}

/**
 * Parameters of a whole schema of an object, whose `required` may be a list (an inquiry, the payload of a trigger).
 *
 * @returns undefined when it does not say which parameters there are
 */
export function parametersOfSchema(schema: Readonly<Record<string, unknown>>): ParameterSchemas | undefined {
  const { properties, required } = schema
  if (!isObject(properties)) return undefined
  const names: readonly unknown[] = Array.isArray(required) ? required : []
  return Object.fromEntries(
    Object.entries(properties)
      .filter((entry): entry is [string, Record<string, unknown>] => isObject(entry[1]))
      .map(([name, property]) => [
        name,
        // A list of names here is about the properties of an object.
        { ...property, required: property['required'] === true || names.includes(name) },
      ]),
  )
}

/** For people: a text is in quotes where another choice looks the same. */
export function choiceTitles(choices: readonly unknown[]): string[] {
  const texts = choices.map((choice) => textOfValue(choice))
  const seen = new Set<string>()
  const doubled = new Set(texts.filter((text) => seen.size === seen.add(text).size))
  return choices.map((choice, i) => {
    const text = texts[i] ?? ''
    if (text === '') return '(empty string)'
    return typeof choice === 'string' && doubled.has(text) ? writeJson(choice) : text
  })
}

/** A text as it is, anything else as JSON. */
export function textOfValue(value: unknown, indent?: number): string {
  return typeof value === 'string' ? value : (writeJson(value, indent) ?? '')
}

/** The default in one line, for who leaves the field empty; undefined: there is none. */
export function defaultTextOf({ defaultValue, isSecret }: Field): string | undefined {
  if (defaultValue === undefined || defaultValue === null) return undefined
  if (isSecret) return 'a secret'
  const text = textOfValue(defaultValue)
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
}

function fieldOf(name: string, schema: ParameterSchema): Field {
  const types = typesOf(schema['type'])
  const defaultValue = schema.default ?? undefined
  const listed: readonly unknown[] = Array.isArray(schema.enum) ? schema.enum : []
  const control = controlOf(types, listed)
  return {
    name,
    control,
    types,
    typeTitle: typeTitleOf(types, schema),
    description: typeof schema.description === 'string' ? schema.description : '',
    mustBeGiven: schema.required === true && defaultValue === undefined && schema.immutable !== true,
    isImmutable: schema.immutable === true,
    isSecret: schema.secret === true,
    defaultValue,
    choices: control === 'boolean' ? [true, false] : listed,
    hints: hintsOf(schema),
    hasLines: control === 'json' && types.includes('array') && isTextOrAny(schema.items),
    isFolded: false,
    isUnknown: false,
    schema,
  }
}

function controlOf(types: readonly JsonType[], choices: readonly unknown[]): Control {
  if (choices.length > 0) return 'choice'
  const [type, ...others] = types.filter((each): each is Exclude<JsonType, 'null'> => each !== 'null')
  if (type === undefined || others.length > 0) return 'any'
  switch (type) {
    case 'string':
      return 'text'
    case 'object':
    case 'array':
      return 'json'
    case 'integer':
    case 'number':
    case 'boolean':
      return type
  }
}

const knownTypes: ReadonlySet<unknown> = new Set([
  'string',
  'integer',
  'number',
  'boolean',
  'array',
  'object',
  'null',
] satisfies JsonType[])

/** Nested schemas may list several; what nobody knows means nothing. */
function typesOf(type: unknown): JsonType[] {
  return [type].flat().filter((each): each is JsonType => knownTypes.has(each))
}

function typeTitleOf(types: readonly JsonType[], { items }: ParameterSchema): string {
  if (types.length === 0) return 'any type'
  return types
    .map((type) => {
      const [item, ...others] = type === 'array' && isObject(items) ? typesOf(items['type']) : []
      if (type !== 'array') return type
      return item === undefined || others.length > 0 ? 'list' : `list of ${item}`
    })
    .join(' or ')
}

export function isTextItems(items: unknown): boolean {
  return isObject(items) && items['type'] === 'string'
}

function isTextOrAny(items: unknown): boolean {
  if (!isObject(items)) return items === undefined
  return items['type'] === undefined || items['type'] === 'string'
}

function hintsOf(schema: ParameterSchema): string[] {
  const hints: string[] = []
  const { min, max, isMinExcluded, isMaxExcluded } = numberRangeOf(schema)
  if (min !== undefined) hints.push(`${isMinExcluded ? 'more than' : 'at least'} ${String(min)}`)
  if (max !== undefined) hints.push(`${isMaxExcluded ? 'less than' : 'at most'} ${String(max)}`)
  for (const [keyword, unit, side] of [
    ['minLength', 'character', 'at least'],
    ['maxLength', 'character', 'at most'],
    ['minItems', 'item', 'at least'],
    ['maxItems', 'item', 'at most'],
  ] as const) {
    const count = numberOf(schema[keyword])
    if (count !== undefined) hints.push(`${side} ${countText(count, unit)}`)
  }
  const { pattern, format } = schema
  if (typeof pattern === 'string') hints.push(`matches ${pattern.slice(0, MAX_SHOWN)}`)
  if (typeof format === 'string') hints.push(`format ${format.slice(0, MAX_SHOWN)}`)
  if (schema['uniqueItems'] === true) hints.push('unique items')
  return hints
}

/** Draft 4 says with a boolean that a limit itself is excluded, later ones with a number. */
export function numberRangeOf(schema: ParameterSchema): {
  min: number | JsonNumber | undefined
  max: number | JsonNumber | undefined
  isMinExcluded: boolean
  isMaxExcluded: boolean
} {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema
  return {
    min: [exclusiveMinimum, minimum].find(isNumber),
    max: [exclusiveMaximum, maximum].find(isNumber),
    isMinExcluded: exclusiveMinimum === true || isNumber(exclusiveMinimum),
    isMaxExcluded: exclusiveMaximum === true || isNumber(exclusiveMaximum),
  }
}

export function isOfType(value: unknown, type: JsonType): boolean {
  const actual = typeOf(value)
  return actual === type || (type === 'number' && actual === 'integer')
}

export function typeOf(value: unknown): JsonType {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (value instanceof JsonNumber) return value.isWhole || Number.isInteger(Number(value.text)) ? 'integer' : 'number'
  switch (typeof value) {
    case 'string':
      return 'string'
    case 'boolean':
      return 'boolean'
    case 'number':
      return Number.isInteger(value) ? 'integer' : 'number'
    default:
      return 'object'
  }
}

function rankOf({ mustBeGiven, isImmutable }: Field): number {
  return mustBeGiven ? 0 : isImmutable ? 2 : 1
}

function positionOf({ schema: { position } }: Field): number {
  // Two infinities have no difference.
  return typeof position === 'number' ? position : Number.MAX_SAFE_INTEGER
}

export function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}
