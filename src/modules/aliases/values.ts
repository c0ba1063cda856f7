/** What a command says, as values of the parameters of its action. */
import { parametersInvalid } from '../../core/errors.ts'
import type { ParameterSchema } from '../../lib/schema/index.ts'
import { objectOf } from '../../lib/json/index.ts'
import { shown } from '../../lib/text/index.ts'
import type { CommandParameters } from './format.ts'

/**
 * Texts of a command with those for lists taken apart at their commas; the execution converts the others, as those of every
 * request.
 */
export function valuesOf(
  given: CommandParameters,
  schemas: Readonly<Record<string, ParameterSchema>>,
): Record<string, unknown> {
  return objectOf(
    Object.entries(given).map(([name, text]) => {
      const schema = Object.hasOwn(schemas, name) ? schemas[name] : undefined
      return [name, schema?.type === 'array' ? listOf(text, schema) : text]
    }),
  )
}

/** A text that says itself that it is a list is left to the conversion. */
function listOf(text: string, { items }: ParameterSchema): unknown {
  if (/^\s*[[(]/.test(text)) return text
  if (text.trim() === '') return []
  const kind = typeof items === 'object' && !Array.isArray(items) ? (items as { type?: unknown }).type : undefined
  return text.split(',').map((item) => itemOf(item.trim(), kind))
}

/** An item that is none of its kind stays a text, of which the check of the parameters says so. */
function itemOf(text: string, kind: unknown): unknown {
  if ((kind === 'integer' && /^[+-]?\d{1,15}$/.test(text)) || (kind === 'number' && isNumber(text))) return Number(text)
  if (kind === 'boolean' && /^(?:true|false)$/i.test(text)) return text.toLowerCase() === 'true'
  return text
}

const isNumber = (text: string): boolean =>
  /^[+-]?(?:\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})(?:[eE][+-]?\d{1,2})?$/.test(text)

/** @throws PARAMETERS_INVALID for what the alias has fixed */
export function withImmutable(
  values: Record<string, unknown>,
  immutable: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const overridden = Object.keys(immutable).filter((name) => Object.hasOwn(values, name))
  if (overridden.length > 0) {
    throw parametersInvalid(
      `Immutable arguments cannot be overriden: ${overridden.map((name) => shown(name)).join(',')}`,
      {
        path: ['command'],
      },
    )
  }
  return objectOf([...Object.entries(values), ...Object.entries(immutable)])
}
