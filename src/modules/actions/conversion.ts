/** Values to the type their parameter declares, before they are checked (contract 02, 2.4, "Casting"). */
import { parametersInvalid } from '../../core/errors.ts'
import { shown } from '../../lib/text/index.ts'
import { isObject, MASK, represent, type ParameterSchema } from '../../lib/schema/index.ts'
import { parsePythonLiteral } from './python-literal.ts'
import {
  JsonLimitError,
  JsonNumber,
  JsonNumberError,
  MAX_NUMBER_CHARS,
  parseNumber,
  readJson,
  truncated,
  writeJson,
} from '../../lib/json/index.ts'
const MAX_DEPTH = 100

/** What lists and objects written as text may still cost in one request. They are read on the event loop at once. */
export interface TextRoom {
  /** Items, properties, lists and objects. */
  values: number
  /** Characters of Python literals. */
  pythonLength: number
}

export function createTextRoom(): TextRoom {
  return { values: 100_000, pythonLength: 256 * 1024 }
}

/**
 * The converted value. Null and parameters without a type are left alone; so is a value of another type where the
 * schema check has the better message.
 *
 * @param room of all parameters of a request; reduced
 * @throws PARAMETERS_INVALID
 */
export function convertParameter(
  name: string,
  value: unknown,
  schema: ParameterSchema,
  room: TextRoom = createTextRoom(),
): unknown {
  if (value === null || value === undefined) return value
  switch (schema.type) {
    case 'string':
      if (typeof value === 'string') return value
      throw refuse(
        name,
        schema,
        value,
        (text) => `Value "${text}" must either be a string or None. Got "${typeOf(value)}".`,
      )
    case 'integer':
      return toInteger(name, value, schema)
    case 'number':
      return toNumber(name, value, schema)
    case 'boolean':
      return toBoolean(name, value, schema)
    case 'array':
    case 'object':
      return typeof value === 'string' ? parseContainer(name, value, schema, room) : value
    default:
      return value
  }
}

/** On many megabytes the engine may run out of memory for a pattern. */
const isShort = (value: unknown): value is string => typeof value === 'string' && value.length <= MAX_NUMBER_CHARS

function toInteger(name: string, value: unknown, schema: ParameterSchema): unknown {
  if (value instanceof JsonNumber || Number.isFinite(value)) return truncated(value as number | JsonNumber) // it is one
  const number = isShort(value) && /^\s*[+-]?\d+\s*$/.test(value) ? parseNumber(value) : undefined
  if (number !== undefined) return truncated(number)
  throw refuse(name, schema, value, (text, quoted) =>
    typeof value === 'number' && !Number.isNaN(value)
      ? `the number ${text} is too large`
      : typeof value === 'string' && value.length > MAX_NUMBER_CHARS
        ? `the text is longer than ${MAX_NUMBER_CHARS} characters, the limit of a number`
        : `invalid literal for int() with base 10: ${quoted}`,
  )
}

function toNumber(name: string, value: unknown, schema: ParameterSchema): unknown {
  if (typeof value === 'number' ? Number.isFinite(value) : value instanceof JsonNumber) return value
  let isTooLarge = typeof value === 'number' && !Number.isNaN(value)
  try {
    const number = isShort(value) ? parseNumber(value) : undefined
    if (number !== undefined) return number
  } catch (error) {
    if (!(error instanceof JsonNumberError)) throw error
    isTooLarge = true
  }
  throw refuse(name, schema, value, (text, quoted) =>
    isTooLarge ? `the number ${text} is too large` : `could not convert string to float: ${quoted}`,
  )
}

function toBoolean(name: string, value: unknown, schema: ParameterSchema): unknown {
  if (typeof value !== 'string') return value
  const text = value.toLowerCase()
  if (text === 'true') return true
  if (text === 'false') return false
  throw refuse(name, schema, value, (_, quoted) => `${quoted} is neither "true" nor "false"`)
}

function parseContainer(name: string, text: string, schema: ParameterSchema, room: TextRoom): unknown {
  let parsed: { value: unknown } | undefined
  try {
    parsed = parseJson(text, room) ?? parsePython(text, room)
  } catch (error) {
    if (error instanceof JsonNumberError) throw unconverted(name, `in the text, ${error.message}`)
    if (!(error instanceof JsonLimitError)) throw error
    throw unconverted(
      name,
      `the parameters that are lists and objects written as text are too large together: ${error.message}. Send lists and objects as JSON values instead of text.`,
    )
  }
  const kind = schema.type === 'array' ? 'a list' : 'an object'
  if (parsed === undefined) {
    throw refuse(name, schema, text, (_, quoted) => `${quoted} is not ${kind} written as JSON or as a Python literal`)
  }
  const problem = conversionProblemOf(parsed.value)
  if (problem !== undefined) throw unconverted(name, `the text holds ${problem}`)
  room.values -= valuesIn(parsed.value)
  return parsed.value
}

/** @throws JsonNumberError, JsonLimitError */
function parseJson(text: string, room: TextRoom): { value: unknown } | undefined {
  try {
    return { value: readJson(text, { maxDepth: Infinity, maxValues: room.values }) }
  } catch (error) {
    if (error instanceof JsonNumberError || error instanceof JsonLimitError) throw error
    return undefined
  }
}

/** @throws JsonNumberError, JsonLimitError */
function parsePython(text: string, room: TextRoom): { value: unknown } | undefined {
  if (text.length > room.pythonLength) {
    if (!/^\s{0,99}[[({]/.test(text)) return undefined
    throw new JsonLimitError(`it is no JSON, and Python literals may have ${room.pythonLength} characters`)
  }
  room.pythonLength -= text.length
  return parsePythonLiteral(text, room.values)
}

function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce<number>((sum, inner) => sum + valuesIn(inner), 2)
}

/**
 * What in a value cannot be kept, or undefined. The reader of request bodies has refused the same things, but could not
 * look into a text or a template.
 */
export function conversionProblemOf(value: unknown, depth = 0): string | undefined {
  // JSON has no word for it: it would be kept as null.
  if (Number.isNaN(value)) return 'a nan, which is no number'
  if (typeof value === 'number' && !Number.isFinite(value)) return 'a number that is too large'
  if (typeof value !== 'object' || value === null) return undefined
  if (depth === MAX_DEPTH) return `values nested more than ${MAX_DEPTH} deep`
  if (Object.hasOwn(value, '__proto__')) return 'the key "__proto__", which is not allowed'
  for (const inner of Object.values(value)) {
    const problem = conversionProblemOf(inner, depth + 1)
    if (problem !== undefined) return problem
  }
  return undefined
}

/** Secret values are not repeated. */
function refuse(
  name: string,
  schema: ParameterSchema,
  value: unknown,
  sentence: (text: string, quoted: string) => string,
): Error {
  const isSecret = hidesSomething(schema)
  return unconverted(
    name,
    isSecret
      ? sentence(MASK, MASK)
      : sentence(typeof value === 'string' ? shown(value) : represent(value), represent(value)),
  )
}

/** `parameter` in the details tells it from a value that the schema refuses. */
function unconverted(name: string, reason: string): Error {
  return parametersInvalid(`${name}: ${reason}`, { parameter: name, path: ['parameters', name] })
}

function hidesSomething(schema: ParameterSchema): boolean {
  return writeJson(schema).includes('"secret":true')
}

/** Type names of messages, as the field knows them. */
function typeOf(value: unknown): string {
  if (typeof value === 'number') return Number.isInteger(value) ? 'int' : 'float'
  if (value instanceof JsonNumber) return value.isWhole ? 'int' : 'float'
  if (typeof value === 'boolean') return 'bool'
  if (Array.isArray(value)) return 'list'
  return isObject(value) ? 'dict' : typeof value
}
