/** Metadata files: YAML 1.1 as Python's readers parse it, or JSON, with the line of each key. */
import { readdir } from 'node:fs/promises'
import { resolve } from 'node:path'
import { constructFromEvents, EVENT_ID, getScalarValue, parseEvents, YAMLException, type Event } from 'js-yaml'
import { describeFileError, readContainedFile, type ContainedProblem } from '../files/index.ts'
import { JsonNumber, readJson } from '../json/index.ts'
import { hasCode } from '../process/index.ts'
import { pythonYamlSchema } from './yaml.ts'
import { shown } from './shown.ts'

/** Aliases are loaded by reference, so a few of them can stand for very many values. */
export interface YamlLimits {
  /** Values of the document, aliases counted as often as used. */
  maxValues: number
  /** Characters of the texts among the values, aliases counted as often as used. */
  maxChars: number
  maxAliases: number
  /** Keys that `<<` brings in; 0 refuses `<<`. */
  maxMergeKeys: number
  maxDepth: number
}

const metadataLimits: YamlLimits = {
  maxValues: 20_000,
  maxChars: Infinity,
  maxAliases: 200,
  maxMergeKeys: 2_000,
  maxDepth: 60,
}

export interface MetadataDocument {
  /** Plain JSON: no dates, no binary, no `__proto__`. */
  value: unknown
  /** Line of the nearest key on the path to a value, counted from 1; undefined where lines are not known. */
  lineOf: (path: readonly string[]) => number | undefined
}

export interface MetadataProblem {
  message: string
  line?: number
  key?: string
}

/** A problem and its place. */
export interface FileProblem {
  /** Relative to the folder that is read. */
  file: string
  line?: number
  /** Dotted path of the key. */
  key?: string
  message: string
  /** It is used all the same. Absent: something is not. */
  isWarning?: true
}

/** @param path keys on the path to the value */
export function problemAt(
  file: string,
  path: readonly string[],
  lineOf: MetadataDocument['lineOf'],
  message: string,
): FileProblem {
  const line = lineOf(path)
  return {
    file,
    ...(line === undefined ? {} : { line }),
    ...(path.length === 0 ? {} : { key: shown(path.join('.')) }),
    message,
  }
}

/** `actions/local.yaml:12 (parameters.cmd): <message>` */
export function describeProblem({ file, line, key, message }: FileProblem): string {
  return `${file}${line === undefined ? '' : `:${line}`}${key === undefined ? '' : ` (${key})`}: ${message}`
}

/**
 * Names of the files in `name` below `folder`, sorted, without dotfiles. A missing folder counts as empty; undefined
 * when the folder cannot be read.
 */
export async function listFiles(folder: string, name: string, problems: FileProblem[]): Promise<string[] | undefined> {
  try {
    const entries = await readdir(resolve(folder, name), { withFileTypes: true })
    return entries
      .filter((entry) => !entry.isDirectory() && !entry.name.startsWith('.'))
      .map((entry) => entry.name)
      .sort()
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    problems.push({
      file: name,
      message: `the folder cannot be read: ${describeFileError(resolve(folder, name), error)}`,
    })
    return undefined
  }
}

/** A file without the ending `.json` is YAML; `isEmpty` when it holds no document. */
export async function readMetadataFile(
  folder: string,
  path: string,
  maxBytes: number,
): Promise<{ document: MetadataDocument; bytes: number } | { problem: FileProblem; isEmpty: boolean }> {
  const file = await readContainedFile(folder, path, maxBytes)
  if ('problem' in file) {
    return { problem: { file: path, message: whyUnreadable(file.problem, maxBytes) }, isEmpty: false }
  }
  const document: ReturnType<typeof readYamlDocument> = path.endsWith('.json')
    ? readJsonDocument(file.text)
    : readYamlDocument(file.text)
  if ('problem' in document) {
    return { problem: { file: path, ...document.problem }, isEmpty: document.isEmpty === true }
  }
  return { document, bytes: Buffer.byteLength(file.text) }
}

export function whyUnreadable(problem: ContainedProblem, maxBytes = 0): string {
  switch (problem) {
    case 'missing':
      return 'the file is missing'
    case 'outside':
      return 'the file lies outside of the folder; links may not lead out of it'
    case 'unreadable':
      return 'the file cannot be read'
    case 'not a file':
      return 'this is not a regular file'
    case 'too large':
      return `the file is larger than ${maxBytes} bytes`
    case 'not UTF-8':
      return 'the file is not valid UTF-8'
  }
}

/** Parses the only document of a YAML file. */
export function readYamlDocument(
  text: string,
  limits: YamlLimits = metadataLimits,
): MetadataDocument | { problem: MetadataProblem; isEmpty?: true } {
  let events: Event[] = []
  try {
    events = parseEvents(text, { maxDepth: limits.maxDepth })
    const documents = constructFromEvents(events, {
      source: text,
      schema: pythonYamlSchema,
      maxAliases: limits.maxAliases,
      maxTotalMergeKeys: limits.maxMergeKeys,
    })
    if (documents.length !== 1) {
      const message = `one YAML document is needed, the file has ${documents.length}`
      return documents.length === 0 ? { problem: { message }, isEmpty: true } : { problem: { message } }
    }
    const document = { value: documents[0], lineOf: lineFinder(text, events) }
    return checked(document, limits)
  } catch (error) {
    if (error instanceof YAMLException) return { problem: problemOf(error, text, events, limits) }
    // The library documents that hostile input may cause other exceptions.
    return { problem: { message: error instanceof Error ? shown(error.message) : 'it cannot be read' } }
  }
}

/** An unquoted template, which YAML reads as a mapping. */
const bareTemplate = /(?:^|[:\-,[{])\s*\{[{%]/

function problemOf(
  { reason, mark }: YAMLException,
  text: string,
  events: readonly Event[],
  { maxMergeKeys, maxDepth }: YamlLimits,
): MetadataProblem {
  const keyAt = offsetOfCollectionKey(events)
  const line = keyAt === undefined ? mark && mark.line + 1 : lineAt(text, keyAt)
  if (line === undefined) return { message: shown(reason) }
  if (reason === 'duplicated mapping key') {
    return { message: `found duplicate key "${shown(scalarAt(mark?.position, text, events))}"`, line }
  }
  if (maxMergeKeys === 0 && reason.startsWith('merge keys exceeded')) {
    return { message: 'the merge key "<<" is not supported: write the keys out', line }
  }
  if (reason.startsWith('nesting exceeded')) return { message: `values are nested more than ${maxDepth} deep`, line }
  const hasTemplate = bareTemplate.test(text.split('\n', line)[line - 1] ?? '')
  const hint = hasTemplate ? '; a value that begins with {{ or {% needs quotes around it' : ''
  return { message: `${keyAt === undefined ? shown(reason) : 'a key is text, not a list or a mapping'}${hint}`, line }
}

/** The text of the scalar whose tag, anchor or value begins there. */
function scalarAt(position: number | undefined, text: string, events: readonly Event[]): string {
  for (const event of events) {
    if (event.type !== EVENT_ID.SCALAR) continue
    if ([event.tagStart, event.anchorStart, event.valueStart].includes(position ?? NaN))
      return getScalarValue(text, event)
  }
  return ''
}

/** The first key that is a list or a mapping: the library reports it without a position. */
function offsetOfCollectionKey(events: readonly Event[]): number | undefined {
  // What comes next in each open collection.
  const open: ('key' | 'value' | 'item')[] = []
  for (const event of events) {
    if (event.type === EVENT_ID.POP) {
      open.pop()
      continue
    }
    const place = open.at(-1)
    if (place !== undefined && place !== 'item') open[open.length - 1] = place === 'key' ? 'value' : 'key'
    if (event.type === EVENT_ID.MAPPING || event.type === EVENT_ID.SEQUENCE) {
      if (place === 'key') return event.start
      open.push(event.type === EVENT_ID.MAPPING ? 'key' : 'item')
    } else if (event.type === EVENT_ID.DOCUMENT) {
      open.push('item')
    }
  }
  return undefined
}

export function readJsonDocument(text: string): MetadataDocument | { problem: MetadataProblem } {
  try {
    return checked({ value: readJson(text), lineOf: () => undefined }, metadataLimits)
  } catch (error) {
    const message = error instanceof Error ? error.message : 'not JSON'
    const [, line] = /\(line (\d+) /.exec(message) ?? []
    return { problem: { message: shown(message), ...(line === undefined ? {} : { line: Number(line) }) } }
  }
}

function checked(document: MetadataDocument, limits: YamlLimits): MetadataDocument | { problem: MetadataProblem } {
  const found = findProblem(document.value, limits)
  if (found === undefined) return document
  const line = document.lineOf(found.path)
  const key = found.path.join('.')
  return {
    problem: {
      message: found.message,
      ...(line === undefined ? {} : { line }),
      ...(key === '' ? {} : { key: shown(key) }),
    },
  }
}

interface Found {
  path: string[]
  message: string
}

function findProblem(root: unknown, { maxValues, maxChars, maxDepth }: YamlLimits): Found | undefined {
  let values = 0
  let chars = 0
  const path: string[] = []
  const walk = (value: unknown): string | undefined => {
    values += 1
    if (values > maxValues) return `the file stands for more than ${maxValues} values, aliases counted as often as used`
    if (typeof value === 'string') chars += value.length
    if (chars > maxChars)
      return `the texts of the file have more than ${maxChars} characters, aliases counted as often as used`
    if (path.length > maxDepth) return `values are nested more than ${maxDepth} deep`
    const odd = oddity(value)
    if (odd !== undefined) return odd
    if (typeof value !== 'object' || value === null || value instanceof JsonNumber) return undefined
    for (const [key, inner] of Object.entries(value)) {
      path.push(key)
      const problem = key === '__proto__' ? 'the key "__proto__" is not allowed' : walk(inner)
      if (problem !== undefined) return problem
      path.pop()
    }
    return undefined
  }
  const message = walk(root)
  return message === undefined ? undefined : { path, message }
}

/** YAML 1.1 has types that JSON lacks. */
function oddity(value: unknown): string | undefined {
  if (typeof value === 'number' && !Number.isFinite(value)) return `${value} is not a number JSON has`
  if (typeof value === 'bigint' || typeof value === 'undefined') return `a ${typeof value} is not allowed here`
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  if (value instanceof JsonNumber) return undefined
  if (value instanceof Date) return 'this is read as a date; put it in quotes to keep it as text'
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
    ? undefined
    : 'this YAML type is not allowed here; use text, numbers, lists and mappings'
}

const SEPARATOR = '\0'

/** Computes positions on first use: files without problems never need them. */
function lineFinder(text: string, events: readonly Event[]): (path: readonly string[]) => number | undefined {
  let offsets: ReadonlyMap<string, number> | undefined
  return (path) => {
    offsets ??= collectOffsets(text, events)
    for (let length = path.length; length > 0; length--) {
      const offset = offsets.get(path.slice(0, length).join(SEPARATOR))
      if (offset !== undefined) return lineAt(text, offset)
    }
    return undefined
  }
}

function lineAt(text: string, offset: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at !== -1 && at < offset; at = text.indexOf('\n', at + 1)) line += 1
  return line
}

function collectOffsets(text: string, events: readonly Event[]): Map<string, number> {
  const offsets = new Map<string, number>()
  let at = 0
  const readNode = (path: readonly string[]): void => {
    const event = events[at]
    at += 1
    switch (event?.type) {
      case EVENT_ID.MAPPING:
        while (events[at] !== undefined && events[at]?.type !== EVENT_ID.POP) {
          const key = events[at]
          const name = key?.type === EVENT_ID.SCALAR ? getScalarValue(text, key) : ''
          readNode([])
          if (key?.type === EVENT_ID.SCALAR) offsets.set([...path, name].join(SEPARATOR), key.valueStart)
          readNode([...path, name])
        }
        at += 1
        break
      case EVENT_ID.SEQUENCE:
        for (let i = 0; events[at] !== undefined && events[at]?.type !== EVENT_ID.POP; i++) {
          const item = events[at]
          const inner = [...path, String(i)]
          if (item?.type === EVENT_ID.SCALAR) offsets.set(inner.join(SEPARATOR), item.valueStart)
          readNode(inner)
        }
        at += 1
        break
      default:
        break
    }
  }
  if (events[at]?.type === EVENT_ID.DOCUMENT) at += 1
  readNode([])
  return offsets
}
