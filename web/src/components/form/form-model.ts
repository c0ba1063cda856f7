/**
 * From the schemas of parameters to fields that somebody fills in, and back to the values that are sent. No markup, no state:
 * `parameter-form.tsx` draws it, `use-parameter-form.ts` keeps what is typed.
 *
 * What is left empty is not sent, so that the default counts. An empty text, an empty list and null are sent on request only.
 */
import { MASK } from './mask.ts'
import { problemOfNumber, readJsonText, sentenceOf, type JsonMistake } from './json-text.ts'
import type { ParameterSchema } from '../../api/records.ts'

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

/**
 * What stands in one field. Nothing at all, and an empty text, are "not given".
 *
 * `value` is sent as it is: what was there before anybody typed, and what cannot be typed (an empty text, null). `text` is
 * read by the control of the field; `lines` is a list, one item per line.
 */
export type FieldInput = { as: 'value'; value: unknown } | { as: 'text' | 'lines'; text: string }

/** Field → what stands in it. */
export type FormState = ReadonlyMap<string, FieldInput>

export type FieldReading =
  | { kind: 'unset' }
  | { kind: 'value'; value: unknown; isMasked: boolean }
  | { kind: 'problem'; message: string; mistake?: JsonMistake }

export interface FormReading {
  /** What is to be sent. */
  value: Record<string, unknown>
  /** Names of what holds a mask in the place of a secret that the server has (`********`). */
  masked: string[]
  /** Field → what is wrong with it, in the order of the fields. */
  problems: Map<string, string>
}

/** More optional parameters than these are folded. */
const MAX_UNFOLDED = 12
const MAX_SHOWN = 200
/** Longer texts would be read too slowly at each key. */
const MAX_LIVE = 500_000

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

/** Of values that are there already. Those that are undefined are not given. */
export function stateOf(values: Readonly<Record<string, unknown>>): FormState {
  return new Map(
    Object.entries(values)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]): [string, FieldInput] => [name, { as: 'value', value }]),
  )
}

/**
 * @param options.omitsMasks what is masked and was not changed is left out, for a server that keeps what it has then; without
 *   it the mask itself is sent, for one that puts back what it stands for
 */
export function readForm(
  fields: readonly Field[],
  state: FormState,
  options: { omitsMasks?: boolean } = {},
): FormReading {
  const value: [string, unknown][] = []
  const masked: string[] = []
  const problems = new Map<string, string>()
  for (const field of fields) {
    const input = state.get(field.name)
    const reading = readField(field, input)
    if (reading.kind === 'problem') problems.set(field.name, reading.message)
    if (reading.kind !== 'value') continue
    if (reading.isMasked) {
      masked.push(field.name)
      if (options.omitsMasks === true) {
        if (input?.as !== 'value') {
          problems.set(field.name, `${MASK} is only a mask: enter the secret itself.`)
        }
        continue
      }
    }
    value.push([field.name, reading.value])
  }
  return { value: Object.fromEntries(value), masked, problems }
}

export function readField(field: Field, input: FieldInput | undefined): FieldReading {
  // The server refuses it even with the same value.
  if (field.isImmutable) return { kind: 'unset' }
  if (input === undefined || (input.as !== 'value' && input.text === '')) return unset(field)
  const { control } = field
  if (input.as === 'lines') return readLines(field, input.text)
  if (input.as === 'value') {
    const { value } = input
    if (field.isUnknown) return problem('Unknown parameter: remove it.')
    // Before anybody types, too, a text in the place of a number may be none.
    const isText = typeof value === 'string' && value !== '' && value !== MASK
    if (!isText || control === 'any' || control === 'json' || indexOfChoice(field, value) !== -1) return given(value)
    const reading = readText(field, value)
    return reading.kind === 'value' ? given(value) : reading
  }
  return readText(field, input.text)
}

function readText(field: Field, text: string): FieldReading {
  const { control, types } = field
  if (control === 'text') return withinBounds(field, text)
  if (control === 'any' || control === 'json') return readJson(field, text)
  const trimmed = text.trim()
  if (trimmed === '') return unset(field)
  if (isTemplate(text)) return given(text)
  if (types.includes('null') && trimmed === 'null') return given(null)
  switch (control) {
    case 'integer': {
      if (!/^[+-]?\d+$/.test(trimmed)) return problem('Enter a whole number, such as 10.')
      const inexact = problemOfNumber(trimmed)
      if (inexact !== undefined) {
        return problem('The number is too large to be exact: the limit is 9007199254740991.')
      }
      return withinBounds(field, Number(trimmed))
    }
    case 'number': {
      if (!/^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(trimmed)) {
        return problem('Enter a number, such as 10 or 0.5.')
      }
      if (!Number.isFinite(Number(trimmed))) return problem('The number is too large.')
      if (problemOfNumber(trimmed) !== undefined) {
        return problem('The number is too large to be exact: the limit is 9007199254740991.')
      }
      return withinBounds(field, Number(trimmed))
    }
    case 'boolean': {
      const word = trimmed.toLowerCase()
      if (word === 'true' || word === 'false') return given(word === 'true')
      return problem('Enter true or false.')
    }
    case 'choice': {
      const chosen = field.choices.find((choice) => textOfValue(choice) === text)
      return chosen === undefined ? problem('Choose a value from the list.') : given(chosen)
    }
  }
}

function readJson(field: Field, text: string): FieldReading {
  const { types } = field
  if (text.trim() === '') return unset(field)
  const { value, mistake } = readJsonText(text)
  const allowsText = types.length === 0 || types.includes('string')
  if (mistake !== undefined) {
    if ((field.control === 'any' && allowsText) || isTemplateOf(text)) return given(text)
    return { kind: 'problem', message: sentenceOf(mistake), mistake }
  }
  if (types.length > 0 && !types.some((type) => isOfType(value, type))) {
    if (allowsText) return given(text)
    if (typeof value === 'string' && isTemplate(value)) return given(value)
    return problem(`Enter a value of type ${field.typeTitle}: this is of type ${typeOf(value)}.`)
  }
  return withinBounds(field, value)
}

/** A template alone is the whole list, so that it can be one that an earlier step has made. */
function readLines(field: Field, text: string): FieldReading {
  const items = text.split(/\r?\n/).filter((line) => line.trim() !== '')
  const [only] = items
  if (only === undefined) return unset(field)
  if (items.length === 1 && isWholeTemplate(only)) return given(only)
  return withinBounds(field, items)
}

function unset(field: Field): FieldReading {
  return field.mustBeGiven ? problem('Enter a value: this parameter is required.') : { kind: 'unset' }
}

function given(value: unknown): FieldReading {
  return { kind: 'value', value, isMasked: holdsMask(value) }
}

function problem(message: string): FieldReading {
  return { kind: 'problem', message }
}

/** The server knows all of the schema; this is what can be said before without doubt. */
function withinBounds(field: Field, value: unknown): FieldReading {
  const { schema } = field
  if (typeof value === 'string') {
    if (isTemplate(value)) return given(value)
    // In characters as the server counts them: one beyond the first 65,536 has two units here.
    const length = value.length - (value.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0)
    const [min, max] = [numberOf(schema['minLength']), numberOf(schema['maxLength'])]
    if (min !== undefined && length < min) return problem(`Enter at least ${counted(min, 'character')}.`)
    if (max !== undefined && length > max) {
      return problem(`Enter at most ${counted(max, 'character')}: this has ${length}.`)
    }
  }
  if (typeof value === 'number') {
    const { min, max, isMinExcluded, isMaxExcluded } = rangeOf(schema)
    if (min !== undefined && (isMinExcluded ? value <= min : value < min)) {
      return problem(`Enter ${isMinExcluded ? 'more than' : 'at least'} ${min}.`)
    }
    if (max !== undefined && (isMaxExcluded ? value >= max : value > max)) {
      return problem(`Enter ${isMaxExcluded ? 'less than' : 'at most'} ${max}.`)
    }
  }
  if (Array.isArray(value)) {
    const [min, max] = [numberOf(schema['minItems']), numberOf(schema['maxItems'])]
    if (min !== undefined && value.length < min) return problem(`Enter at least ${counted(min, 'item')}.`)
    if (max !== undefined && value.length > max) return problem(`Enter at most ${counted(max, 'item')}.`)
  }
  return given(value)
}

/** Where a text is no JSON. What is empty is no mistake; what is very long is looked at when it is sent. */
export function mistakeIn(text: string, { allowsTemplates }: { allowsTemplates: boolean }): JsonMistake | undefined {
  if (text.trim() === '' || text.length > MAX_LIVE || (allowsTemplates && isTemplateOf(text))) return undefined
  return readJsonText(text).mistake
}

/** What the control of a field shows. */
export function textOfInput(field: Field, input: FieldInput | undefined): string {
  if (input === undefined) return ''
  if (input.as !== 'value') return input.text
  const { value } = input
  // A mask is no secret, and nobody shall take it for one.
  if (field.isSecret && value === MASK) return ''
  if (field.control === 'any' && typeof value === 'string') return isAmbiguous(value) ? JSON.stringify(value) : value
  if (value === null && field.control !== 'json' && field.control !== 'any') return ''
  return textOfValue(value, field.control === 'json' ? 2 : undefined)
}

/** Index of the choice that stands in a field; -1: none of them. */
export function chosenOf(field: Field, input: FieldInput | undefined): number {
  if (input === undefined) return -1
  const same = input.as === 'value' ? indexOfChoice(field, input.value) : -1
  if (same !== -1) return same
  const reading = readField(field, { as: 'text', text: textOfInput(field, input) })
  return reading.kind === 'value' ? indexOfChoice(field, reading.value) : -1
}

function indexOfChoice({ choices }: Field, value: unknown): number {
  const text = JSON.stringify(value)
  return choices.findIndex((choice) => JSON.stringify(choice) === text)
}

/** For people: a text is in quotes where another choice looks the same. */
export function choiceTitles(choices: readonly unknown[]): string[] {
  const texts = choices.map((choice) => textOfValue(choice))
  const seen = new Set<string>()
  const doubled = new Set(texts.filter((text) => seen.size === seen.add(text).size))
  return choices.map((choice, i) => {
    const text = texts[i] ?? ''
    if (text === '') return '(empty string)'
    return typeof choice === 'string' && doubled.has(text) ? JSON.stringify(choice) : text
  })
}

/** A text as it is, anything else as JSON. */
export function textOfValue(value: unknown, indent?: number): string {
  return typeof value === 'string' ? value : (JSON.stringify(value, null, indent) ?? '')
}

/** The list as lines, or undefined when that would change it. */
export function linesOf(value: unknown): string | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined
  const items: unknown[] = value
  const isPlain = items.every((item) => typeof item === 'string' && item.trim() !== '' && !/[\r\n]/.test(item))
  return isPlain && !(items.length === 1 && isWholeTemplate(String(items[0]))) ? items.join('\n') : undefined
}

/** How a list is shown at first. */
export function startsAsLines(field: Field, input: FieldInput | undefined): boolean {
  if (!field.hasLines || field.isSecret) return false
  if (input === undefined) return isTextItems(field.schema.items)
  if (input.as !== 'value') return input.as === 'lines'
  return isTextItems(field.schema.items) && linesOf(input.value) !== undefined
}

/** The default in one line, for who leaves the field empty; undefined: there is none. */
export function defaultTextOf({ defaultValue, isSecret }: Field): string | undefined {
  if (defaultValue === undefined || defaultValue === null) return undefined
  if (isSecret) return 'a secret'
  const text = textOfValue(defaultValue)
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
}

/** What is rendered when the action runs: `{{ … }}`, `{% … %}`. */
export function isTemplate(text: string): boolean {
  return text.includes('{{') || text.includes('{%')
}

/** JSON that is only complete once its templates are rendered; a mistake beside them is still one. */
function isTemplateOf(text: string): boolean {
  if (!isTemplate(text)) return false
  if (/^\s*(\{\{|\{%)/.test(text)) return true
  let [quotes, from] = [0, 0]
  const filled = text.replace(/\{\{[^]*?\}\}|\{%[^]*?%\}/g, (found, at: number) => {
    quotes += text.slice(from, at).match(/(?<!\\)"/g)?.length ?? 0
    from = at
    return quotes % 2 === 1 ? found : '0'
  })
  return filled !== text && readJsonText(filled).mistake === undefined
}

function isWholeTemplate(text: string): boolean {
  const trimmed = text.trim()
  return trimmed.startsWith('{{') && trimmed.indexOf('}}') === trimmed.length - 2
}

/** Whether a text would be read as something else where JSON may stand, too. */
function isAmbiguous(text: string): boolean {
  return text.trim() === '' || readJsonText(text).mistake === undefined
}

/** Whether the server has hidden a secret somewhere in it. */
export function holdsMask(value: unknown): boolean {
  if (value === MASK) return true
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsMask)
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

function isTextItems(items: unknown): boolean {
  return isObject(items) && items['type'] === 'string'
}

function isTextOrAny(items: unknown): boolean {
  if (!isObject(items)) return items === undefined
  return items['type'] === undefined || items['type'] === 'string'
}

function hintsOf(schema: ParameterSchema): string[] {
  const hints: string[] = []
  const { min, max, isMinExcluded, isMaxExcluded } = rangeOf(schema)
  if (min !== undefined) hints.push(`${isMinExcluded ? 'more than' : 'at least'} ${min}`)
  if (max !== undefined) hints.push(`${isMaxExcluded ? 'less than' : 'at most'} ${max}`)
  for (const [keyword, unit, side] of [
    ['minLength', 'character', 'at least'],
    ['maxLength', 'character', 'at most'],
    ['minItems', 'item', 'at least'],
    ['maxItems', 'item', 'at most'],
  ] as const) {
    const count = numberOf(schema[keyword])
    if (count !== undefined) hints.push(`${side} ${counted(count, unit)}`)
  }
  const { pattern, format } = schema
  if (typeof pattern === 'string') hints.push(`matches ${pattern.slice(0, MAX_SHOWN)}`)
  if (typeof format === 'string') hints.push(`format ${format.slice(0, MAX_SHOWN)}`)
  if (schema['uniqueItems'] === true) hints.push('unique items')
  return hints
}

/** Draft 4 says with a boolean that a limit itself is excluded, later ones with a number. */
function rangeOf(schema: ParameterSchema): {
  min: number | undefined
  max: number | undefined
  isMinExcluded: boolean
  isMaxExcluded: boolean
} {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema
  return {
    min: numberOf(exclusiveMinimum) ?? numberOf(minimum),
    max: numberOf(exclusiveMaximum) ?? numberOf(maximum),
    isMinExcluded: exclusiveMinimum === true || typeof exclusiveMinimum === 'number',
    isMaxExcluded: exclusiveMaximum === true || typeof exclusiveMaximum === 'number',
  }
}

function isOfType(value: unknown, type: JsonType): boolean {
  const actual = typeOf(value)
  return actual === type || (type === 'number' && actual === 'integer')
}

function typeOf(value: unknown): JsonType {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
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

function counted(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

// Refusals of the server

/**
 * Which fields a refusal of the server is about.
 *
 * @param details what the server adds for programs
 * @param names of the fields
 * @returns the names it is about, in the order of the message; empty: it is about the whole
 */
export function namesInRefusal(
  message: string,
  details: Readonly<Record<string, unknown>>,
  names: ReadonlySet<string>,
): string[] {
  const { parameter, parameters } = details
  const told = [parameter, parameters].flat().filter((name): name is string => typeof name === 'string')
  for (const candidates of [told, ...namesInText(message.slice(0, 10_000))]) {
    const known = candidates.filter((name) => names.has(name))
    if (known.length > 0) return [...new Set(known)]
  }
  return []
}

/** Names that may be those of parameters, the surest first. */
function namesInText(message: string): string[][] {
  const namesBy = (pattern: RegExp, text = message): string[] =>
    [...text.matchAll(pattern)].map(([, name = '']) => name)
  const [unexpected = ''] = namesBy(/properties are not allowed \((.*?) (?:was|were) unexpected\)/gs)
  return [
    // A path: `hosts`, `env.PATH`, `items[0].name`, perhaps after a sentence about the whole.
    namesBy(/^(?:[^:]*\. )?(\w+)(?:\.[\w.-]+|\[\d+\])*: /g),
    namesBy(/'(\w+)' is a required property/g),
    namesBy(/'(\w+)'/g, unexpected),
    namesBy(/parameter "(\w+)"/gi),
    namesBy(/variable "(\w+)"/gi),
  ]
}
