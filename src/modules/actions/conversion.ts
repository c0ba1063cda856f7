/** Values to the type their parameter declares, before they are checked (contract 02, 2.4, "Casting"). */
import { parametersInvalid } from '../../core/errors.ts'
import { readJson, shown } from '../../lib/text/index.ts'
import { isObject, MASK, represent, type ParameterSchema } from '../../lib/schema/index.ts'
import { parsePythonLiteral } from './python-literal.ts'
const MAX_DEPTH = 100

/**
 * The converted value. Null and parameters without a type are left alone; so is a value of another type where the
 * schema check has the better message.
 *
 * @throws PARAMETERS_INVALID
 */
export function convertParameter(name: string, value: unknown, schema: ParameterSchema): unknown {
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
      return typeof value === 'string' ? parseContainer(name, value, schema) : value
    default:
      return value
  }
}

/** Digits that Python makes a number of. On many megabytes the engine may run out of memory for a pattern. */
const MAX_NUMBER_LENGTH = 4300

const isShort = (value: unknown): value is string => typeof value === 'string' && value.length <= MAX_NUMBER_LENGTH

function toInteger(name: string, value: unknown, schema: ParameterSchema): unknown {
  const isNumeric = isShort(value) && /^\s*[+-]?\d+\s*$/.test(value)
  const number = typeof value === 'number' ? Math.trunc(value) : isNumeric ? Number(value) : Number.NaN
  if (Number.isSafeInteger(number)) return number
  throw refuse(name, schema, value, (text, quoted) =>
    Number.isNaN(number)
      ? `invalid literal for int() with base 10: ${quoted}`
      : `the integer ${text} is too large to be kept exactly (limit 9007199254740991)`,
  )
}

function toNumber(name: string, value: unknown, schema: ParameterSchema): unknown {
  const isNumeric =
    typeof value === 'number' || (isShort(value) && /^\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$/.test(value))
  const number = isNumeric ? Number(value) : Number.NaN
  if (Number.isFinite(number)) return number
  throw refuse(name, schema, value, (text, quoted) =>
    isNumeric ? `the number ${text} is too large` : `could not convert string to float: ${quoted}`,
  )
}

function toBoolean(name: string, value: unknown, schema: ParameterSchema): unknown {
  if (typeof value !== 'string') return value
  const text = value.toLowerCase()
  if (text === 'true') return true
  if (text === 'false') return false
  throw refuse(name, schema, value, (_, quoted) => `${quoted} is neither "true" nor "false"`)
}

function parseContainer(name: string, text: string, schema: ParameterSchema): unknown {
  const parsed = parseJson(text) ?? parsePythonLiteral(text)
  const kind = schema.type === 'array' ? 'a list' : 'an object'
  if (parsed === undefined) {
    throw refuse(name, schema, text, (_, quoted) => `${quoted} is not ${kind} written as JSON or as a Python literal`)
  }
  const problem = conversionProblemOf(parsed.value)
  if (problem !== undefined) throw parametersInvalid(`${name}: the text holds ${problem}`)
  return parsed.value
}

function parseJson(text: string): { value: unknown } | undefined {
  try {
    return { value: readJson(text) }
  } catch {
    return undefined
  }
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
  return parametersInvalid(
    `${name}: ${isSecret ? sentence(MASK, MASK) : sentence(typeof value === 'string' ? shown(value) : represent(value), represent(value))}`,
    { parameter: name },
  )
}

function hidesSomething(schema: ParameterSchema): boolean {
  return JSON.stringify(schema).includes('"secret":true')
}

/** Type names of messages, as the field knows them. */
function typeOf(value: unknown): string {
  if (typeof value === 'number') return Number.isInteger(value) ? 'int' : 'float'
  if (typeof value === 'boolean') return 'bool'
  if (Array.isArray(value)) return 'list'
  return isObject(value) ? 'dict' : typeof value
}
