/** Values that came as JSON. Numbers in them are exact: those that JavaScript would change are a `JsonNumber`. */
import { JsonNumber } from '../../src/lib/json/index.ts'

export {
  entriesOf,
  JsonNumber,
  jsonNumber,
  JsonNumberError,
  mapObject,
  MAX_NUMBER_CHARS,
  objectOf,
  parseNumber,
  readJson,
  toNumeric,
  wholeNumber,
  writeJson,
} from '../../src/lib/json/index.ts'

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof JsonNumber)
}

export function isNumber(value: unknown): value is number | JsonNumber {
  return typeof value === 'number' || value instanceof JsonNumber
}
