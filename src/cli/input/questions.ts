/** Prompts for the values of a schema, one prompt per property (contract 08, 8.15; contract 02, 2.9). */
import { isDeepStrictEqual } from 'node:util'
import { secretMask } from '../../lib/log/index.ts'
import { toObject } from '../connection/responses.ts'
import { CliFailure } from '../failures.ts'
import { castValue, hasSecret } from './parameters.ts'
import { printable, type Json } from '../output/print.ts'
import type { SecretInput } from './prompt.ts'
import { writeJson } from '../../lib/json/index.ts'

/** For more items, use a file. */
const MAX_ITEMS = 100
const MAX_HINT = 200

export interface Questions {
  input: SecretInput
  /** Writes to standard error. */
  note: (text: string) => void
  /** Text with a template in it may stand for what is known later. Default false. */
  allowsTemplates?: boolean
}

interface Question {
  /** Such as `account.user`. */
  name: string
  schema: Json
  isRequired: boolean
  /** What is there already, its secrets masked; undefined: nothing. An empty answer leaves it. */
  present: unknown
}

/**
 * Prompts for every property of an object. At a terminal it repeats the prompt after an invalid answer.
 *
 * @param schema of the object
 * @param present what is there already; names that the schema does not have stay
 * @throws CliFailure for an answer that does not fit, Interrupted
 */
export async function askObject(questions: Questions, schema: Json, present: Json, name = ''): Promise<Json> {
  const { properties, required } = schema
  const needed = new Set<unknown>(Array.isArray(required) ? required : [])
  const answers = new Map(Object.entries(present))
  for (const [key, property] of Object.entries(toObject(properties))) {
    const known = toObject(property)
    const value = await ask(questions, {
      name: name === '' ? key : `${name}.${key}`,
      schema: known,
      isRequired: needed.has(key) || known['required'] === true,
      present: answers.get(key),
    })
    if (value !== undefined) answers.set(key, value)
  }
  return Object.fromEntries(answers)
}

/** @param usual what an empty answer means */
export async function confirm({ input, note }: Questions, question: string, usual: boolean): Promise<boolean> {
  for (;;) {
    const answer = await answerTo(input, `${question} (y/n) [${usual ? 'y' : 'n'}]`, false)
    if (answer.trim() === '') return usual
    const isYes = yesOrNo(answer)
    if (isYes !== undefined) return isYes
    const problem = 'ApiResponse y or n.'
    if (!input.isTerminal()) throw new CliFailure(problem)
    note(`${problem}\n`)
  }
}

/** Asks for one property. @returns undefined when it is left out */
async function ask(questions: Questions, question: Question): Promise<unknown> {
  const { schema, present } = question
  if (schema['secret'] !== true) {
    const isObject = typeof present === 'object' && present !== null && !Array.isArray(present)
    if (hasProperties(schema) && (present === undefined || isObject)) return askPart(questions, question)
    const { type, items } = schema
    const isCountable = type === 'array' && hasProperties(toObject(items))
    if (isCountable && (present === undefined || Array.isArray(present))) return askItems(questions, question)
  }
  return askText(questions, question)
}

/**
 * Asks for an object within the object. One that is optional, but has required properties, is asked for only when it is
 * wanted.
 */
async function askPart(questions: Questions, question: Question): Promise<unknown> {
  const { name, schema, isRequired, present } = question
  if (present === undefined && !isRequired && needsAnything(schema)) {
    const isWanted = await confirm(questions, printable(`${name} (object)${aboutOf(schema)}. Set it?`), false)
    if (!isWanted) return undefined
  }
  const answer = await askObject(questions, schema, toObject(present), name)
  return Object.keys(answer).length > 0 || isRequired || present !== undefined ? answer : undefined
}

async function askItems(questions: Questions, { name, schema, isRequired, present }: Question): Promise<unknown> {
  const before: unknown[] = Array.isArray(present) ? present : []
  const count = await repeat(questions, printable(`${name} (array)${aboutOf(schema)}; how many? [${before.length}]`), {
    isSecret: false,
    read(text) {
      if (text.trim() === '') return before.length
      const number = Number(text)
      if (/^\d+$/.test(text.trim()) && number <= MAX_ITEMS) return number
      throw new CliFailure(`"${printable(name)}" must be a number of items from 0 to ${MAX_ITEMS}.`)
    },
  })
  const items: unknown[] = []
  for (let index = 0; index < count; index += 1) {
    items.push(await askObject(questions, toObject(schema['items']), toObject(before[index]), `${name}[${index}]`))
  }
  return items.length > 0 || isRequired || present !== undefined ? items : undefined
}

async function askText(questions: Questions, question: Question): Promise<unknown> {
  const { name, schema, isRequired, present } = question
  const isSecret = hasSecret(schema)
  return repeat(questions, questionOf(question, isSecret), {
    isSecret,
    read(text) {
      if (text === '') {
        const usual = present ?? schema['default']
        if (usual === undefined && isRequired) {
          throw new CliFailure(`"${printable(name)}" is required.`)
        }
        return usual
      }
      try {
        return valueOf(questions, question, text)
      } catch (error) {
        // The message would repeat the value.
        if (!isSecret || !(error instanceof CliFailure)) throw error
        throw new CliFailure(`The value of "${printable(name)}" is not of type ${printable(String(schema['type']))}.`)
      }
    },
  })
}

/** Asks until an answer can be read; without a terminal there is only one attempt. */
async function repeat<T>(
  { input, note }: Questions,
  question: string,
  { isSecret, read }: { isSecret: boolean; read: (text: string) => T },
): Promise<T> {
  for (;;) {
    const text = await answerTo(input, question, isSecret)
    try {
      return read(text)
    } catch (error) {
      if (!(error instanceof CliFailure) || !input.isTerminal()) throw error
      note(`${error.message}\n`)
    }
  }
}

/** Ctrl-D at a terminal cancels the whole command. @throws CliFailure, Interrupted */
async function answerTo(input: SecretInput, question: string, isSecret: boolean): Promise<string> {
  const text = await input.askFor(question, isSecret)
  if (text !== '' || !input.isTerminal() || !input.hasEnded()) return text
  throw new CliFailure('End of input; nothing was changed.')
}

/** @throws CliFailure */
function valueOf({ allowsTemplates = false }: Questions, { name, schema }: Question, text: string): unknown {
  const { type, enum: choices } = schema
  const isText = type === undefined || type === 'string'
  if (allowsTemplates && isText && /\{\{|\{%/.test(text)) return text
  if (Array.isArray(choices)) {
    const chosen = choices.findIndex((choice) => textOfValue(choice) === text.trim())
    if (chosen !== -1) return choices[chosen]
  }
  const isYes = type === 'boolean' ? yesOrNo(text) : undefined
  const value = isYes ?? castValue(printable(name), text, schema, { autoDict: false })
  if (Array.isArray(choices) && !choices.some((choice) => isDeepStrictEqual(choice, value))) {
    throw new CliFailure(`"${printable(name)}" must be one of: ${printable(choices.map(textOfValue).join(', '))}`)
  }
  return value
}

/** Such as `continue (boolean): Whether to go on [true]`. */
function questionOf({ name, schema, isRequired, present }: Question, isSecret: boolean): string {
  const { type, enum: choices, default: preset } = schema
  const kind = Array.isArray(choices) ? choices.map(textOfValue).join(', ') : typeof type === 'string' ? type : 'text'
  const usual = present ?? preset
  const hint =
    usual !== undefined ? ` [${isSecret ? secretMask : shorten(textOfValue(usual))}]` : isRequired ? '' : ' [none]'
  return printable(`${name} (${kind})${aboutOf(schema)}${hint}`)
}

function aboutOf({ description }: Json): string {
  return typeof description === 'string' && description.trim() !== ''
    ? `: ${description.trim().replace(/\.$/, '')}`
    : ''
}

function shorten(text: string): string {
  return text.length > MAX_HINT ? `${text.slice(0, MAX_HINT)}…` : text
}

function textOfValue(value: unknown): string {
  return typeof value === 'string' ? value : writeJson(value)
}

function yesOrNo(text: string): boolean | undefined {
  const word = text.trim().toLowerCase()
  if (word === 'y' || word === 'yes') return true
  return word === 'n' || word === 'no' ? false : undefined
}

function hasProperties({ type, properties }: Json): boolean {
  return (type === undefined || type === 'object') && Object.keys(toObject(properties)).length > 0
}

/** Whether an object of this schema cannot be empty. */
function needsAnything({ properties, required }: Json): boolean {
  if (Array.isArray(required) && required.length > 0) return true
  return Object.values(toObject(properties)).some((property) => toObject(property)['required'] === true)
}

/** Names below which secrets are, in what is sent to the server. @param schema of an object */
export function secretNames(schema: unknown): string[] {
  return Object.entries(toObject(toObject(schema)['properties'])).flatMap(([name, property]) =>
    hasProperties(toObject(property)) && toObject(property)['secret'] !== true
      ? secretNames(property)
      : hasSecret(property)
        ? [name]
        : [],
  )
}
