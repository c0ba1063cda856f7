/** A prepared run as an address: `#/actions/core.local?cmd=date`. Secrets never stand in one. */
import type { Field } from '../../components/form/field.ts'
import { readField, textOfInput, type FieldInput, type FormState } from '../../components/form/form-model.ts'
import { hasSecret } from './secret-parts.ts'
import { readJson, writeJson } from '../../json.ts'

/** Ends the name of what no text stands for, whose value is JSON: an empty text, null. Names of parameters have no dash. */
const AS_JSON = '-json'
/** Addresses that are much longer are cut by those who pass them on. */
const MAX_VALUE = 2000
const MAX_ALL = 6000

export interface LinkedValues {
  state: FormState
  /** Secrets that somebody has written into the address; they are not taken. */
  refused: string[]
}

/** What an address fills in. Names that are no parameters become values of the form, which says so. */
export function stateOfQuery(fields: readonly Field[], query: URLSearchParams): LinkedValues {
  const known = new Map(fields.map((field) => [field.name, field]))
  const state = new Map<string, FieldInput>()
  const refused: string[] = []
  for (const [key, text] of query) {
    const isJson = key.endsWith(AS_JSON)
    const name = isJson ? key.slice(0, -AS_JSON.length) : key
    if (name.includes('-')) continue
    const field = known.get(name)
    if (field === undefined) state.set(name, { as: 'value', value: text })
    else if (hasSecret(field.schema)) refused.push(name)
    else if (!field.isImmutable) state.set(name, isJson ? ofJson(text) : typed(field, text))
  }
  return { state, refused }
}

/** A list that somebody writes by hand may do without brackets. */
function typed({ hasLines }: Field, text: string): FieldInput {
  return { as: hasLines && !/^\s*(\[|\{\{|\{%)/.test(text) ? 'lines' : 'text', text }
}

function ofJson(text: string): FieldInput {
  try {
    return { as: 'value', value: readJson(text) as unknown }
  } catch {
    return { as: 'text', text }
  }
}

export interface Link {
  query: Record<string, string>
  /** What is not in it: secrets, and what is too long. */
  omitted: string[]
}

/** The other way round. */
export function queryOfState(fields: readonly Field[], state: FormState): Link {
  const query: [string, string][] = []
  const omitted: string[] = []
  let total = 0
  for (const field of fields) {
    const { name } = field
    const input = state.get(name)
    if (input === undefined || field.isImmutable) continue
    const reading = readField(field, input)
    const text = textOfInput(field, input)
    const isFaithful =
      field.isUnknown ||
      input.as === 'text' ||
      (text !== '' && input.as === 'value' && sendsTheSame(field, input, text))
    const written = isFaithful ? text : reading.kind === 'value' ? writeJson(reading.value) : ''
    if (written === '') continue
    if (hasSecret(field.schema) || written.length > MAX_VALUE || total + written.length > MAX_ALL) {
      omitted.push(name)
      continue
    }
    total += written.length
    query.push([isFaithful ? name : `${name}${AS_JSON}`, written])
  }
  return { query: Object.fromEntries(query), omitted }
}

function sendsTheSame(field: Field, input: FieldInput, text: string): boolean {
  return writeJson(readField(field, { as: 'text', text })) === writeJson(readField(field, input))
}
