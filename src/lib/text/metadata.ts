/** Metadata files: YAML 1.1 as Python's readers parse it, or JSON, with the line of each key. */
import { readdir } from 'node:fs/promises'
import { resolve } from 'node:path'
import { describeFileError, readContainedFile, type ContainedProblem } from '../files/index.ts'
import { JsonNumber, readJson } from '../json/index.ts'
import { hasCode } from '../process/index.ts'
import { readYamlValue, YamlError, type YamlNode, type YamlWarning } from '../yaml/index.ts'
import { shown } from './shown.ts'

/** Aliases are loaded by reference, so a few of them can stand for very many values. */
export interface YamlLimits {
  /** Values of the document, aliases counted as often as used. */
  maxValues: number
  /** Characters of keys and values, aliases counted as often as used. */
  maxChars: number
  maxAliases: number
  /** Mappings that `<<` names, and the keys that they bring in; 0 refuses `<<`. */
  maxMergeKeys: number
  maxDepth: number
}

const metadataLimits: YamlLimits = {
  maxValues: 20_000,
  maxChars: 4 * 1_048_576,
  maxAliases: 200,
  maxMergeKeys: 2_000,
  maxDepth: 60,
}

export interface MetadataDocument {
  /** Plain JSON: no dates, no binary, no `__proto__`. */
  value: unknown
  /** Such as a key that is there twice, of which the last one counts. */
  warnings: readonly YamlWarning[]
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

/** A warning about a key of a file, or a problem with it. @param path keys on the path to the value */
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

/** Parses the only document of a YAML file. `warnings` say what a careful reader should know. */
export function readYamlDocument(
  text: string,
  limits: YamlLimits = metadataLimits,
): MetadataDocument | { problem: MetadataProblem; isEmpty?: true } {
  try {
    const read = readYamlValue(text, limits)
    if (read === undefined)
      return { problem: { message: 'one YAML document is needed, and the file has none' }, isEmpty: true }
    const { value, node, warnings } = read
    return checked({ value, warnings, lineOf: lineFinder(node) }, limits)
  } catch (error) {
    if (error instanceof YamlError) return { problem: problemOf(error, text) }
    throw error
  }
}

/** As `readYamlDocument`; the first warning is a problem. For files that people write for svc alone. */
export function readStrictYamlDocument(
  text: string,
  limits?: YamlLimits,
): MetadataDocument | { problem: MetadataProblem; isEmpty?: true } {
  return refuseWarnings(readYamlDocument(text, limits))
}

/** @returns the document when there are no warnings */
export function refuseWarnings<D extends MetadataDocument, P>(document: D | P): D | P | { problem: MetadataProblem } {
  if (typeof document !== 'object' || document === null || !('warnings' in document)) return document
  const [warning] = document.warnings
  return warning === undefined ? document : { problem: { message: shown(warning.message), line: warning.line } }
}

/** An unquoted template, which YAML reads as a mapping. */
const bareTemplate = /(?:^|[:\-,[{])\s*\{[{%]/

function problemOf({ message, line }: YamlError, text: string): MetadataProblem {
  const hasTemplate = bareTemplate.test(text.split('\n', line)[line - 1] ?? '')
  const hint = hasTemplate ? '; a value that begins with {{ or {% needs quotes around it' : ''
  return { message: `${shown(message)}${hint}`, line }
}

export function readJsonDocument(text: string): MetadataDocument | { problem: MetadataProblem } {
  try {
    return checked({ value: readJson(text), warnings: [], lineOf: () => undefined }, metadataLimits)
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

const SEPARATOR = '\0'

/** Computes positions on first use: files without problems never need them. */
function lineFinder(node: YamlNode): MetadataDocument['lineOf'] {
  let lines: ReadonlyMap<string, number> | undefined
  return (path) => {
    lines ??= collectLines(node)
    for (let length = path.length; length > 0; length--) {
      const line = lines.get(path.slice(0, length).join(SEPARATOR))
      if (line !== undefined) return line
    }
    return undefined
  }
}

/** Lines of keys, and of items of lists. What an alias stands for has the line of the alias's key alone. */
function collectLines(root: YamlNode): Map<string, number> {
  const lines = new Map<string, number>()
  const seen = new Set<YamlNode>()
  const walk = (node: YamlNode, path: readonly string[]): void => {
    if (seen.has(node)) return
    seen.add(node)
    if (node.kind === 'mapping') {
      for (const [key, value] of node.pairs) {
        const inner = [...path, key.kind === 'scalar' ? key.text : '']
        lines.set(inner.join(SEPARATOR), key.line)
        walk(value, inner)
      }
    } else if (node.kind === 'list') {
      for (const [i, item] of node.items.entries()) {
        const inner = [...path, String(i)]
        lines.set(inner.join(SEPARATOR), item.line)
        walk(item, inner)
      }
    }
  }
  walk(root, [])
  return lines
}
