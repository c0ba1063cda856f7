/** Parses query parameters as their routes declare them (contract 00, 0.7). */
import { queryInvalid } from '../core/errors.ts'
import type { QueryParameter, QueryValue } from './route.ts'

const booleans = new Map<string, boolean>([
  ['true', true],
  ['1', true],
  ['yes', true],
  ['y', true],
  ['false', false],
  ['0', false],
  ['no', false],
  ['n', false],
])

/** Ignores unknown names; the first of several values counts. @throws QUERY_INVALID */
export function readQuery(
  declared: Readonly<Record<string, QueryParameter>>,
  given: URLSearchParams,
): Record<string, QueryValue> {
  const query: Record<string, QueryValue> = {}
  for (const [name, parameter] of Object.entries(declared)) {
    const text = given.get(name)
    if (text === null) {
      if (parameter.required === true) throw queryInvalid(`Required parameter "${name}" is missing`)
      continue
    }
    query[name] = convert(name, parameter.type, text)
  }
  return query
}

function convert(name: string, type: QueryParameter['type'], text: string): QueryValue {
  switch (type) {
    case 'string':
      return text
    case 'boolean': {
      const value = booleans.get(text.toLowerCase())
      if (value === undefined) throw queryInvalid(`Parameter "${name}" is not of type boolean`)
      return value
    }
    case 'integer':
      if (!/^-?\d{1,15}$/.test(text)) throw queryInvalid(`Parameter "${name}" is not of type integer`)
      return Number(text)
    case 'number':
      if (!/^-?\d{1,15}(\.\d{1,15})?([eE][+-]?\d{1,2})?$/.test(text)) {
        throw queryInvalid(`Parameter "${name}" is not of type float`)
      }
      return Number(text)
    case 'array': {
      const items = text
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== '')
      return items.length === 0 ? undefined : items
    }
  }
}
