/** Parses the parameters of an action on the command line (contract 09, 9.4). */
import { closeSync, constants, fstatSync, openSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { pathToOpen, homeFolder } from '../cli-process.ts'
import { codeOf, hasCode } from '../../lib/process/index.ts'
import { CliFailure } from '../failures.ts'
import {
  JsonNumber,
  JsonNumberError,
  MAX_NUMBER_CHARS,
  parseNumber,
  readJson,
  writeJson,
} from '../../lib/json/index.ts'

/** More would not fit into a request either. */
const MAX_FILE_BYTES = 16 * 1024 * 1024
const READ_BYTES = 64 * 1024
/** How long a pipe may stay silent; Ctrl-C has no effect during this time. */
const PIPE_TIMEOUT_MS = 10_000
const PIPE_PAUSE_MS = 5

/** What the client reads of a parameter's schema; anything may be absent. */
export interface InputSchema {
  type?: unknown
  items?: unknown
  properties?: unknown
  required?: unknown
  secret?: unknown
}

export type InputSchemas = Readonly<Record<string, InputSchema>>

export interface ParameterOptions {
  /** The items `k:v` of a word for a list become one object. */
  autoDict: boolean
}

interface Assignment {
  name: string
  value: string
}

/**
 * `key=value`, `@key=path` and, from the first other word on, a command for the parameter `cmd`.
 *
 * @throws CliFailure naming the word, and what would be right
 */
export function parseParameters(
  words: readonly string[],
  schemas: InputSchemas,
  options: ParameterOptions,
): Record<string, unknown> {
  const { assignments, command } = splitWords(words)
  const given = new Map<string, unknown>()
  for (const { name, value } of assignments) {
    const schema = schemaOf(schemas, name)
    const cast = castGiven(name, value, schema, options)
    given.set(name, given.has(name) ? merge(name, given.get(name), cast) : cast)
  }
  if (command !== undefined) {
    if (given.has('cmd')) {
      throw new CliFailure(
        `The command is set twice: as cmd=… and as the words "${command}". Quote a value with blanks: cmd='...'.`,
      )
    }
    if (schemaOf(schemas, 'cmd') === undefined) {
      const mustBeGiven = (name: string): boolean => schemaOf(schemas, name)?.['required'] === true
      const names = Object.keys(schemas).toSorted((a, b) => Number(mustBeGiven(b)) - Number(mustBeGiven(a)))
      throw new CliFailure(
        `"${command}" does not have the form name=value, and the action has no parameter "cmd". ` +
          (names.length === 0 ? 'The action has no parameters.' : `Parameters: ${names.join(', ')}.`),
      )
    }
    given.set('cmd', command)
  }
  return Object.fromEntries(given)
}

/**
 * Whether a word is an assignment, so that it does not begin a command, as `date` does in `svc run core.local date -R`.
 * With a blank or a slash before the `=`, as in `'ls --color=auto'`, it is none.
 */
export function isAssignment(word: string): boolean {
  return /^@?[\w.-]*=/.test(word)
}

function splitWords(words: readonly string[]): { assignments: Assignment[]; command: string | undefined } {
  const assignments: Assignment[] = []
  for (const [index, word] of words.entries()) {
    if (!isAssignment(word)) return { assignments, command: words.slice(index).join(' ') }
    const match = /^(@?)(\w+)=([^]*)$/.exec(word)
    if (match === null) {
      const name = word.slice(0, word.indexOf('='))
      throw new CliFailure(
        `"${name}" is not a parameter name: names have only letters, digits and _. ` +
          `To run a command that starts like this, write cmd='…'.`,
      )
    }
    const [, marker = '', name = '', value = ''] = match
    assignments.push({ name, value: marker === '@' ? readText(name, value) : value })
  }
  return { assignments, command: undefined }
}

function schemaOf(schemas: InputSchemas, name: string): InputSchema | undefined {
  return Object.hasOwn(schemas, name) ? schemas[name] : undefined
}

function readText(name: string, path: string): string {
  const resolved = path.startsWith('~/') ? join(homeFolder(), path.slice(2)) : pathToOpen(path)
  const refuse = (why: string): CliFailure => new CliFailure(`The file "${path}" of @${name} ${why}.`)
  let bytes: Uint8Array
  try {
    // Opening a named pipe would wait for a writer.
    const isPipe = statSync(resolved).isFIFO()
    const handle = openSync(resolved, isPipe ? constants.O_RDONLY | constants.O_NONBLOCK : constants.O_RDONLY)
    try {
      if (fstatSync(handle).isDirectory()) throw refuse('is a directory')
      bytes = readAtMost(handle, MAX_FILE_BYTES + 1)
      if (isPipe && bytes.length === 0) throw refuse('is a pipe without data')
      if (bytes.length > MAX_FILE_BYTES) throw refuse('is larger than 16 MiB')
    } finally {
      closeSync(handle)
    }
  } catch (error) {
    if (error instanceof CliFailure) throw error
    throw refuse(hasCode(error, 'ENOENT') ? 'does not exist' : `cannot be read (${codeOf(error) ?? String(error)})`)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw refuse('is not UTF-8 text')
  }
}

/** A pipe or a device does not say beforehand how much will come. */
function readAtMost(handle: number, maxBytes: number): Uint8Array {
  const chunks: Buffer[] = []
  let total = 0
  while (total < maxBytes) {
    const chunk = Buffer.allocUnsafe(Math.min(READ_BYTES, maxBytes - total))
    const count = readSome(handle, chunk)
    if (count === 0) break
    chunks.push(chunk.subarray(0, count))
    total += count
  }
  return Buffer.concat(chunks)
}

/** Waits for the writer of a pipe. */
function readSome(handle: number, chunk: Buffer): number {
  for (const deadline = performance.now() + PIPE_TIMEOUT_MS; ;) {
    try {
      return readSync(handle, chunk)
    } catch (error) {
      if (!hasCode(error, 'EAGAIN') || performance.now() > deadline) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PIPE_PAUSE_MS)
    }
  }
}

/** Repeated assignments extend a list or an object; any other parameter can be set only once. */
function merge(name: string, before: unknown, next: unknown): unknown {
  if (Array.isArray(before) && Array.isArray(next)) return [...before, ...next]
  if (isObject(before) && isObject(next)) {
    return Object.fromEntries([...Object.entries(before), ...Object.entries(next)])
  }
  throw new CliFailure(`Parameter "${name}" is set more than once. Only lists and objects can be repeated.`)
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof JsonNumber)
}

/** `castValue` with a message that does not repeat a secret, which may come from a file. */
function castGiven(name: string, text: string, schema: InputSchema | undefined, options: ParameterOptions): unknown {
  try {
    return castValue(name, text, schema, options)
  } catch (error) {
    if (!(error instanceof CliFailure) || !hasSecret(schema)) throw error
    throw new CliFailure(`The value of parameter "${name}" is not of type ${String(schema?.type)}.`)
  }
}

/** Whether any part of a value of this schema is a secret. */
export function hasSecret(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return false
  const { secret, default: _, enum: __, ...parts }: Record<string, unknown> = { ...schema }
  return secret === true || Object.values(Array.isArray(schema) ? schema : parts).some(hasSecret)
}

/** What a text stands for by the schema. @throws CliFailure */
export function castValue(
  name: string,
  text: string,
  schema: InputSchema | undefined,
  options: ParameterOptions,
): unknown {
  switch (schema?.type) {
    case 'integer':
      return castInteger(name, text)
    case 'number':
      return castNumber(name, text)
    case 'boolean':
      return castBoolean(name, text)
    case 'array':
      return castArray(name, text, schema, options)
    case 'object':
      return castObject(name, text, schema)
    default:
      return text
  }
}

function invalid(name: string, type: string, text: string, why: string): CliFailure {
  const shownText = text.length > 100 ? `${text.slice(0, 100)}…` : text
  return new CliFailure(`Invalid value for ${type} parameter "${name}": ${writeJson(shownText)} ${why}`)
}

function castInteger(name: string, text: string): number | JsonNumber {
  const trimmed = text.trim()
  if (!/^[+-]?\d+$/.test(trimmed)) throw invalid(name, 'integer', text, 'is not a whole number.')
  return castDigits(name, 'integer', text)
}

function castNumber(name: string, text: string): number | JsonNumber {
  const trimmed = text.trim()
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(trimmed)) throw invalid(name, 'number', text, 'is not a number.')
  return castDigits(name, 'number', text)
}

function castDigits(name: string, type: string, text: string): number | JsonNumber {
  const tooLong = `is longer than ${MAX_NUMBER_CHARS} characters, the limit of a number.`
  try {
    const number = parseNumber(text)
    if (number !== undefined) return number
  } catch (error) {
    if (!(error instanceof JsonNumberError)) throw error
    if (text.length <= MAX_NUMBER_CHARS) throw invalid(name, type, text, 'is too large for a float.')
  }
  throw invalid(name, type, text, tooLong)
}

function castBoolean(name: string, text: string): boolean {
  const word = text.trim().toLowerCase()
  if (word === 'true') return true
  if (word === 'false') return false
  throw invalid(name, 'boolean', text, 'is neither. Valid values are: true, false')
}

function castArray(name: string, text: string, schema: InputSchema, options: ParameterOptions): unknown[] {
  const trimmed = text.trim()
  if (trimmed === '') return []
  if (trimmed.startsWith('[')) {
    const value = parseJson(name, 'array', trimmed)
    // It begins with a bracket, so it can be nothing else.
    return value as unknown[]
  }
  const items = trimmed.split(',').map((item) => item.trim())
  const itemSchema: InputSchema = isObject(schema.items) ? schema.items : {}
  if (options.autoDict && items.every((item) => item.includes(':'))) {
    const members = items.map((item): [string, unknown] => {
      const [key, value] = [item.slice(0, item.indexOf(':')), item.slice(item.indexOf(':') + 1)]
      // Packs also declare them in the list itself.
      return [key, castMember(name, key, value, itemSchema.properties === undefined ? schema : itemSchema)]
    })
    return [Object.fromEntries(members)]
  }
  // Without a declared type only the one-element list of an integer is a list of numbers.
  if (itemSchema.type === undefined && items.length === 1 && /^-?\d+$/.test(trimmed))
    return [castInteger(name, trimmed)]
  if (itemSchema.type === 'object' || itemSchema.type === 'array') {
    const isJson = trimmed.startsWith('{')
    if (isJson) return parseJson(name, 'array', `[${trimmed}]`) as unknown[] // bracketed just now
    throw invalid(name, 'array', text, `is not a JSON list; its items are of type ${itemSchema.type}.`)
  }
  return items.map((item) => castValue(name, item, itemSchema, options))
}

function castObject(name: string, text: string, schema: InputSchema): object {
  const trimmed = text.trim()
  if (trimmed === '') return {}
  if (trimmed.startsWith('{')) {
    const value = parseJson(name, 'object', trimmed)
    // It begins with a brace, so it can be nothing else.
    return value as object
  }
  const pairs = trimmed.split(',').map((pair): [string, unknown] => {
    const equals = pair.indexOf('=')
    if (equals === -1) throw invalid(name, 'object', text, 'is neither JSON nor pairs such as a=1,b=2.')
    const key = pair.slice(0, equals).trim()
    return [key, castMember(name, key, pair.slice(equals + 1).trim(), schema)]
  })
  return Object.fromEntries(pairs)
}

/** A member is text unless the schema says what it is. */
function castMember(name: string, key: string, text: string, schema: InputSchema): unknown {
  const properties: object = isObject(schema.properties) ? schema.properties : {}
  const member: unknown = Object.hasOwn(properties, key) ? Reflect.get(properties, key) : undefined
  if (!isObject(member)) return text
  return castValue(`${name}.${key}`, text, member, { autoDict: false })
}

function parseJson(name: string, type: string, text: string): unknown {
  try {
    return readJson(text)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw invalid(name, type, text, `is not valid JSON: ${why}`)
  }
}
