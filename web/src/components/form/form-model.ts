/**
 * From the schemas of parameters to fields that somebody fills in, and back to the values that are sent. No markup, no state:
 * `parameter-form.tsx` draws it, `use-parameter-form.ts` keeps what is typed.
 *
 * What is left empty is not sent, so that the default counts. An empty text, an empty list and null are sent on request only.
 */
import { SHOWN_MASK } from './mask.ts'
import { readJsonText, mistakeText, type JsonMistake } from './json-text.ts'
import { isOfType, isTextItems, numberOf, numberRangeOf, textOfValue, typeOf, type Field } from './field.ts'
import { countText } from '../../text.ts'
import { isNumber, JsonNumberError, MAX_NUMBER_CHARS, parseNumber, toNumeric, writeJson } from '../../json.ts'

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
  /** Values to send. */
  value: Record<string, unknown>
  /** Names of what holds a mask in the place of a secret that the server has (`********`). */
  masked: string[]
  /** Field → what is wrong with it, in the order of the fields. */
  problems: Map<string, string>
}

/** Longer texts would be read too slowly at each key. */
const MAX_LIVE = 500_000

/** Of values that are there already. Those that are undefined are not given. */
export function formStateOf(values: Readonly<Record<string, unknown>>): FormState {
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
          problems.set(field.name, `${SHOWN_MASK} is only a mask: enter the secret itself.`)
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
    const isText = typeof value === 'string' && value !== '' && value !== SHOWN_MASK
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
      return readNumber(field, trimmed)
    }
    case 'number': {
      if (!/^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(trimmed)) {
        return problem('Enter a number, such as 10 or 0.5.')
      }
      return readNumber(field, trimmed)
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

function readNumber(field: Field, text: string): FieldReading {
  try {
    const number = parseNumber(text)
    if (number !== undefined) return withinBounds(field, number)
  } catch (error) {
    if (!(error instanceof JsonNumberError)) throw error
    if (text.length <= MAX_NUMBER_CHARS) return problem('The number is too large.')
  }
  return problem(`The number is too long: the limit is ${MAX_NUMBER_CHARS} characters.`)
}

function readJson(field: Field, text: string): FieldReading {
  const { types } = field
  if (text.trim() === '') return unset(field)
  const { value, mistake } = readJsonText(text)
  const allowsText = types.length === 0 || types.includes('string')
  if (mistake !== undefined) {
    if ((field.control === 'any' && allowsText) || isTemplateOf(text)) return given(text)
    return { kind: 'problem', message: mistakeText(mistake), mistake }
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
    if (min !== undefined && length < min) return problem(`Enter at least ${countText(min, 'character')}.`)
    if (max !== undefined && length > max) {
      return problem(`Enter at most ${countText(max, 'character')}: this has ${length}.`)
    }
  }
  if (isNumber(value)) {
    const { min, max, isMinExcluded, isMaxExcluded } = numberRangeOf(schema)
    const number = toNumeric(value)
    if (min !== undefined && (isMinExcluded ? number <= toNumeric(min) : number < toNumeric(min))) {
      return problem(`Enter ${isMinExcluded ? 'more than' : 'at least'} ${String(min)}.`)
    }
    if (max !== undefined && (isMaxExcluded ? number >= toNumeric(max) : number > toNumeric(max))) {
      return problem(`Enter ${isMaxExcluded ? 'less than' : 'at most'} ${String(max)}.`)
    }
  }
  if (Array.isArray(value)) {
    const [min, max] = [numberOf(schema['minItems']), numberOf(schema['maxItems'])]
    if (min !== undefined && value.length < min) return problem(`Enter at least ${countText(min, 'item')}.`)
    if (max !== undefined && value.length > max) return problem(`Enter at most ${countText(max, 'item')}.`)
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
  if (field.isSecret && value === SHOWN_MASK) return ''
  if (field.control === 'any' && typeof value === 'string') return isAmbiguous(value) ? writeJson(value) : value
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
  const text = writeJson(value)
  return choices.findIndex((choice) => writeJson(choice) === text)
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
  if (value === SHOWN_MASK) return true
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsMask)
}
