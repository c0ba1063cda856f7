/** The shape of a workflow definition (contract 08, 8.3), and the entries about what does not have it. */
import { JsonNumber, entriesOf, jsonNumber, keysOf } from '../../../lib/json/index.ts'
import { canonical, isObject, represent } from '../../../lib/schema/index.ts'
import { nonTextKeysOf } from '../../../lib/text/index.ts'
import type { InspectionEntry } from '../types.ts'

const MAX_SHOWN_CHARS = 1_000

/** The part of draft 4 of JSON schema that the shape needs. Entries name its keywords in their `schema_path`. */
export interface Schema {
  type?: 'array' | 'integer' | 'object' | 'string'
  minLength?: number
  /** What a message shows, and the check, which takes linear time. */
  pattern?: { shown: string; test: (text: string) => boolean }
  minimum?: number
  enum?: readonly unknown[]
  oneOf?: readonly Schema[]
  items?: Schema
  minItems?: number
  uniqueItems?: true
  required?: readonly string[]
  properties?: Readonly<Record<string, Schema>>
  /** Of the properties whose names are words (`^\w+$`). */
  words?: Schema
  /** Whether only declared properties, or words, are allowed. */
  additionalProperties?: false
  minProperties?: number
  maxProperties?: number
  /** What to write, for somebody whose value does not fit. */
  hint?: string
}

const text: Schema = { type: 'string', minLength: 1 }
const count: Schema = { type: 'integer', minimum: 0 }
const countOrExpression: Schema = { oneOf: [text, count] }
const named: Schema = { type: 'object', minProperties: 1, maxProperties: 1 }
const namedList: Schema = {
  type: 'array',
  items: named,
  uniqueItems: true,
  minItems: 1,
  hint: 'Write a list with one "name: value" in each item.',
}

const expression = /^\s*(?:<%[^\n]*%>|\{\{[^\n]*\}\})\s*$/
const namesBeforeIn = /^\s*(?:[\p{L}\p{N}_]+,\s*)*[\p{L}\p{N}_]+\s+in\s+/u

const items: Schema = {
  type: 'string',
  minLength: 1,
  pattern: {
    shown: '^(\\s+)?(<%.*?%>|{{.*?}})(\\s+)?$|^(\\s+)?((\\w+,\\s?|\\s+)+)?(\\w+)\\s+in\\s+(<%.*?%>|{{.*?}})(\\s+)?$',
    test: (value) =>
      expression.test(value) || (namesBeforeIn.test(value) && expression.test(value.replace(namesBeforeIn, ''))),
  },
}

const transition: Schema = {
  type: 'object',
  minProperties: 1,
  properties: {
    when: { ...text, hint: 'Write an expression in <% … %> or {{ … }}.' },
    publish: {
      oneOf: [text, namedList],
      hint: 'Write a list with one "name: value" in each item, or a text such as a=1 b="x".',
    },
    do: {
      oneOf: [text, { type: 'array', items: text, uniqueItems: true, minItems: 1 }],
      hint: 'Write names of tasks, as a list or separated by commas.',
    },
  },
  additionalProperties: false,
}

const task: Schema = {
  type: 'object',
  minProperties: 1,
  properties: {
    delay: countOrExpression,
    join: { oneOf: [{ enum: ['all'] }, count], hint: 'Write "all" or a number of tasks.' },
    with: {
      type: 'object',
      properties: { items, concurrency: countOrExpression },
      additionalProperties: false,
      hint: 'Write an expression such as <% ctx(hosts) %>, or "host in <% ctx(hosts) %>".',
    },
    action: text,
    input: {
      oneOf: [text, { type: 'object', minProperties: 1 }],
      hint: 'Write an object of parameters, or an expression that gives one.',
    },
    retry: {
      type: 'object',
      properties: { when: text, count: countOrExpression, delay: countOrExpression },
      required: ['count'],
      additionalProperties: false,
    },
    next: { type: 'array', items: transition, hint: 'Write a list of transitions, each with "- ".' },
    timeout: countOrExpression,
  },
  additionalProperties: false,
}

const workflow: Schema = {
  type: 'object',
  required: ['tasks'],
  properties: {
    name: text,
    version: { enum: ['1.0', jsonNumber('1.0')] },
    description: text,
    tags: { type: 'array', items: text, uniqueItems: true, minItems: 1 },
    input: {
      type: 'array',
      items: { oneOf: [text, named] },
      uniqueItems: true,
      minItems: 1,
      hint: 'Write a list of names. A name with a default is an item "name: value".',
    },
    vars: namedList,
    tasks: {
      type: 'object',
      minProperties: 1,
      words: task,
      additionalProperties: false,
      hint: 'Write an object: the name of each task, a word of letters, digits and "_", with its keys.',
    },
    output: namedList,
    timeout: countOrExpression,
  },
  additionalProperties: false,
}

/** The path of `schema_path` to the schema of a task. */
export const TASK_SCHEMA_PATH = 'properties.tasks.patternProperties.^\\w+$'

/** Gives a hint at one of the names, which is like a wrong one; `{}` if none is. */
export type Suggest = (name: string, names: () => readonly string[]) => { hint?: string }

/**
 * The problems with the shape, unordered.
 *
 * @param value as `loadDefinition` gives it
 * @param suggest default: entries have no hints
 */
export function inspectShape(value: unknown, suggest?: Suggest): Generator<InspectionEntry, void> {
  return inspectWith(workflow, value, suggest)
}

/** What of a value does not have a shape, in the order of the schema. @param suggest as for `inspectShape` */
export function inspectWith(schema: Schema, value: unknown, suggest?: Suggest): Generator<InspectionEntry, void> {
  return inspectPart(schema, value, '', '', suggest)
}

function* inspectPart(
  schema: Schema,
  value: unknown,
  specPath: string,
  schemaPath: string,
  suggest: Suggest | undefined,
): Generator<InspectionEntry, void> {
  const entry = (message: string, keyword: string, path = specPath): InspectionEntry => ({
    type: 'syntax',
    message,
    spec_path: path === '' ? null : path,
    schema_path: join(schemaPath, keyword),
  })
  for (const [keyword, message] of problemsOf(schema, value))
    yield suggest === undefined
      ? entry(message, keyword)
      : { ...entry(message, keyword), ...hintOf(schema, value, keyword, suggest) }
  if (Array.isArray(value) && schema.items !== undefined) {
    for (const [index, item] of (value as unknown[]).entries()) {
      yield* inspectPart(schema.items, item, `${specPath}[${index}]`, join(schemaPath, 'items'), suggest)
    }
  }
  if (!isObject(value)) return
  if (schema.words !== undefined) {
    for (const name of nonTextKeysOf(value)) {
      const message = `The name ${print(name)} is not text to YAML. Put it in quotes.`
      yield entry(message, 'patternProperties.^\\w+$', join(specPath, name))
    }
  }
  for (const [name, inner] of entriesOf(value)) {
    const declared = declaredPart(schema, name)
    const part = declared ?? (isWord(name) ? schema.words : undefined)
    if (part === undefined) continue
    const keyword = declared === undefined ? 'patternProperties.^\\w+$' : `properties.${name}`
    yield* inspectPart(part, inner, join(specPath, name), join(schemaPath, keyword), suggest)
  }
}

function declaredPart({ properties }: Schema, name: string): Schema | undefined {
  return properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined
}

function hintOf(schema: Schema, value: unknown, keyword: string, suggest: Suggest): { hint?: string } {
  if (keyword !== 'additionalProperties' || schema.words !== undefined)
    return schema.hint === undefined ? {} : { hint: schema.hint }
  const { properties = {} } = schema
  const [unexpected = ''] = isObject(value) ? namesBeyond(schema, value) : []
  return suggest(unexpected, () => Object.keys(properties))
}

const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`)

/** As Python's `\w`. */
export const isWord = (name: string): boolean => /^[\p{L}\p{N}_]+$/u.test(name)

/** The keywords that a value itself violates, and why. What it contains is left out. */
function* problemsOf(schema: Schema, value: unknown): Generator<[keyword: string, message: string], void> {
  const { type, enum: allowed, oneOf } = schema
  if (type !== undefined && !hasType(value, type)) yield ['type', `${print(value)} is not of type '${type}'`]
  if (allowed !== undefined && !allowed.some((one) => isEqual(one, value))) {
    yield ['enum', `${print(value)} is not one of ${print(allowed)}`]
  }
  if (oneOf !== undefined && !oneOf.some((one) => fits(one, value))) {
    yield ['oneOf', `${print(value)} is not valid under any of the given schemas`]
  }
  if (typeof value === 'string') yield* problemsOfText(schema, value)
  else if (Array.isArray(value)) yield* problemsOfList(schema, value)
  else if (isObject(value)) yield* problemsOfObject(schema, value)
  else if (isNumber(value) && schema.minimum !== undefined && Number(value) < schema.minimum) {
    yield ['minimum', `${print(value)} is less than the minimum of ${schema.minimum}`]
  }
}

function* problemsOfText({ minLength, pattern }: Schema, value: string): Generator<[string, string], void> {
  if (minLength !== undefined && value.length < minLength) yield ['minLength', `${print(value)} is too short`]
  if (pattern !== undefined && !pattern.test(value)) {
    yield ['pattern', `${print(value)} does not match '${pattern.shown}'`]
  }
}

function* problemsOfList(schema: Schema, value: unknown[]): Generator<[string, string], void> {
  if (schema.minItems !== undefined && value.length < schema.minItems)
    yield ['minItems', `${print(value)} is too short`]
  if (schema.uniqueItems === true && new Set(value.map(canonical)).size < value.length) {
    yield ['uniqueItems', `${print(value)} has non-unique elements`]
  }
}

function* problemsOfObject(schema: Schema, value: Record<string, unknown>): Generator<[string, string], void> {
  const names = Object.keys(value)
  for (const name of schema.required ?? []) {
    if (!Object.hasOwn(value, name)) yield ['required', `'${name}' is a required property`]
  }
  if (schema.minProperties !== undefined && names.length < schema.minProperties) {
    yield ['minProperties', `${print(value)} does not have enough properties`]
  }
  if (schema.maxProperties !== undefined && names.length > schema.maxProperties) {
    yield ['maxProperties', `${print(value)} has too many properties`]
  }
  if (schema.additionalProperties === false) {
    const unexpected = namesBeyond(schema, value)
    if (unexpected.length > 0) yield ['additionalProperties', sentenceOfUnexpected(schema, unexpected)]
  }
}

function namesBeyond(schema: Schema, value: Record<string, unknown>): string[] {
  return keysOf(value).filter(
    (name) => declaredPart(schema, name) === undefined && !(schema.words !== undefined && isWord(name)),
  )
}

function sentenceOfUnexpected({ words }: Schema, unexpected: string[]): string {
  // The brackets of the list are not printed.
  const names = print(unexpected).slice(1).replace(/\]$/, '')
  return words === undefined
    ? `Additional properties are not allowed (${names} ${unexpected.length === 1 ? 'was' : 'were'} unexpected)`
    : `${names} ${unexpected.length === 1 ? 'does' : 'do'} not match any of the regexes: '^\\w+$'`
}

function fits(schema: Schema, value: unknown): boolean {
  return inspectPart(schema, value, '', '', undefined).next().done === true
}

function hasType(value: unknown, type: Schema['type']): boolean {
  switch (type) {
    case 'array':
      return Array.isArray(value)
    case 'integer':
      return value instanceof JsonNumber ? value.isWhole : Number.isInteger(value)
    case 'object':
      return isObject(value)
    default:
      return typeof value === 'string'
  }
}

const isNumber = (value: unknown): value is number | JsonNumber =>
  typeof value === 'number' || value instanceof JsonNumber

function isEqual(one: unknown, other: unknown): boolean {
  return isNumber(one) ? isNumber(other) && Number(one) === Number(other) : one === other
}

const escapes = /\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|(.))/g
const namedEscapes: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' }

/** A value as Python prints it, except that nothing in a text is escaped. */
function print(value: unknown): string {
  return represent(value, MAX_SHOWN_CHARS).replace(escapes, (_, x?: string, u?: string, character = '') => {
    const code = x ?? u
    return code === undefined
      ? (namedEscapes[character as string] ?? (character as string))
      : String.fromCharCode(Number.parseInt(code, 16))
  })
}
