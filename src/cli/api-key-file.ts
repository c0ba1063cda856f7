/** Files of API keys, as `svc apikey load` takes them (contract 01, 1.9 "Load file"). */
import { isId } from '../ids.ts'
import { readJson } from '../json.ts'
import { secretMask } from '../redact.ts'
import type { Json } from './print.ts'
import { fileProblem, formOf, readTextFile } from './text-file.ts'

const MAX_BYTES = 16 * 1024 * 1024
const MAX_ENTRIES = 100_000
const MAX_ALIASES = 1000
/** No server takes more of one key. */
const MAX_VALUES = 65_536
const MAX_SHOWN_PROBLEMS = 20
const parts = ['user', 'key_hash', 'metadata', 'enabled', 'expires_at', 'scopes'] as const

export interface KeyEntry {
  /** The server's record of this id is changed, if there is one. */
  id: string | undefined
  /** What is sent. */
  body: Json
}

/**
 * Reads and checks all entries.
 *
 * @throws CliFailure (2) that names what is wrong with which entry
 */
export async function readKeyFile(path: string): Promise<KeyEntry[]> {
  const value = await parse(path, await readTextFile(path, MAX_BYTES))
  const entries: unknown[] = Array.isArray(value) ? value : [value]
  if (entries.length === 0) throw fileProblem(path, 'holds no API key')
  if (entries.length > MAX_ENTRIES) throw fileProblem(path, `holds more than ${MAX_ENTRIES} entries; split it`)
  const problems: string[] = []
  const checked = entries.map((entry, index) => toEntry(entry, (text) => problems.push(`entry ${index + 1}: ${text}`)))
  if (problems.length > 0) {
    const shown = problems.slice(0, MAX_SHOWN_PROBLEMS)
    const more = problems.length > shown.length ? [`and ${problems.length - shown.length} more`] : []
    throw fileProblem(
      path,
      `cannot be loaded, and nothing was sent:\n${[...shown, ...more].map((line) => `  ${line}`).join('\n')}`,
    )
  }
  return checked
}

async function parse(path: string, text: string): Promise<unknown> {
  const form = formOf(path)
  try {
    return form === 'json' ? readJson(text) : await parseYaml(text)
  } catch (error) {
    // The text around a fault may be a secret.
    const line = lineOf(error)
    throw fileProblem(path, `is not ${form.toUpperCase()}${line === undefined ? '' : `: see line ${line}`}`)
  }
}

function lineOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  if ('mark' in error && typeof error.mark === 'object' && error.mark !== null && 'line' in error.mark) {
    return Number(error.mark.line) + 1
  }
  const line = 'message' in error ? /\(line (\d+) /.exec(String(error.message))?.[1] : undefined
  return line === undefined ? undefined : Number(line)
}

const jsonTypes: ReadonlySet<string> = new Set(['null', 'bool', 'int', 'float', 'str', 'seq', 'map', 'merge'])

/** Only what JSON has too: a time stays the text it is. */
async function parseYaml(text: string): Promise<unknown> {
  const [{ loadAll, Schema }, { pythonYamlSchema }] = await Promise.all([import('js-yaml'), import('../yaml.ts')])
  const tags = pythonYamlSchema.tags.filter(({ tagName }) => jsonTypes.has(tagName.replace('tag:yaml.org,2002:', '')))
  const documents = loadAll(text, { schema: new Schema(tags), maxAliases: MAX_ALIASES })
  // Several documents are as good as a list.
  return documents.length === 1 ? documents[0] : documents.flat()
}

function toEntry(value: unknown, report: (text: string) => void): KeyEntry {
  const entry: Json = typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
  if (entry !== value && Object.keys(entry).length === 0) {
    report('it must be an object with user and key_hash')
    return { id: undefined, body: entry }
  }
  const { user, key_hash, metadata, enabled, id } = entry
  if (typeof user !== 'string' || user === '') report('user is missing, or no text')
  if (key_hash === secretMask) {
    report(`key_hash is masked (${secretMask}); make the file with "svc apikey list -n -1 -y --show-secrets"`)
  } else if (typeof key_hash !== 'string' || key_hash === '') report('key_hash is missing, or no text')
  if (metadata !== undefined && (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata))) {
    report('metadata must be an object')
  }
  if (enabled !== undefined && typeof enabled !== 'boolean') report('enabled must be true or false')
  if (id !== undefined && (typeof id !== 'string' || !isId(id))) {
    report('id must be 24 hexadecimal digits, or left out')
  }
  const given = parts.filter((name) => entry[name] !== undefined).map((name) => [name, entry[name]] as const)
  if (holdsMoreThan(MAX_VALUES, given)) report(`it holds more than ${MAX_VALUES} values`)
  return {
    id: typeof id === 'string' ? id : undefined,
    body: { ...Object.fromEntries(given), enabled: enabled ?? false },
  }
}

/** Aliases in YAML make a few lines stand for more than any memory holds. */
function holdsMoreThan(count: number, value: unknown): boolean {
  const open = [value]
  for (let seen = 0; open.length > 0; seen += 1) {
    if (seen > count) return true
    const next = open.pop()
    if (typeof next === 'object' && next !== null) for (const item of Object.values(next)) open.push(item)
  }
  return false
}
