/** Reads files of entries for `load` commands: one object or a list, in JSON or YAML. */
import { exitCodes } from '../exit-codes.ts'
import { CliFailure, Interrupted } from '../failures.ts'
import { printable, type Json } from '../output/print.ts'
import { progressText } from '../output/progress.ts'
import { printList, type ListDisplay } from '../records.ts'
import type { Session } from '../session.ts'
import { fileProblem, formOf, readTextFile } from './text-file.ts'
import { JsonNumberError, readJson } from '../../lib/json/index.ts'

const MAX_BYTES = 16 * 1024 * 1024
const MAX_ENTRIES = 100_000
const MAX_ALIASES = 1000
const MAX_SHOWN_PROBLEMS = 20

export interface EntryFile<T> {
  /** What an entry is, such as `API key`. */
  kind: string
  /** Attributes that each must have. */
  required: readonly string[]
  /** @param report tells a problem of this entry; the value that is returned for it is not used then */
  readonly toEntry: (entry: Json, report: (problem: string) => void) => T
}

/**
 * Reads and checks all entries.
 *
 * @throws CliFailure (2) that names what is wrong with which entry
 */
export async function readEntryFile<T>(path: string, { kind, required, toEntry }: EntryFile<T>): Promise<T[]> {
  const value = await parse(path, await readTextFile(path, MAX_BYTES))
  const entries: unknown[] = Array.isArray(value) ? value : [value]
  if (entries.length === 0) throw fileProblem(path, `contains no ${kind}`)
  if (entries.length > MAX_ENTRIES) throw fileProblem(path, `contains more than ${MAX_ENTRIES} entries; split it`)
  const problems: string[] = []
  const checked = entries.flatMap((entry, index) => {
    const report = (text: string): void => void problems.push(`entry ${index + 1}: ${text}`)
    if (typeof entry === 'object' && entry !== null && !Array.isArray(entry)) return [toEntry({ ...entry }, report)]
    report(`it must be an object with ${required.join(' and ')}`)
    return []
  })
  if (problems.length > 0) {
    const shown = problems.slice(0, MAX_SHOWN_PROBLEMS)
    const more = problems.length > shown.length ? [`and ${problems.length - shown.length} more`] : []
    throw fileProblem(
      path,
      `is invalid; nothing was sent:\n${[...shown, ...more].map((line) => `  ${line}`).join('\n')}`,
    )
  }
  return checked
}

/**
 * Sends one entry after the other until the server refuses one, or Ctrl-C, and prints what has been loaded.
 *
 * @throws CliFailure (2) that names the entry which was refused; Interrupted
 */
export async function loadEntries<T>(
  session: Session,
  file: string,
  entries: readonly T[],
  display: ListDisplay,
  send: (entry: T) => Promise<Json>,
): Promise<void> {
  const loaded: Json[] = []
  let failure: Error | undefined
  const progress = session.progress('Loading')
  for (const [index, entry] of entries.entries()) {
    progress.update(`Loading: ${progressText(index, entries.length)}`)
    try {
      loaded.push(await send(entry))
    } catch (error) {
      const place = `${printable(file)}: entry ${index + 1} of ${entries.length}`
      if (error instanceof Interrupted) {
        session.note(`\n${place} may not have been loaded; later entries were not loaded.\n`)
        failure = error
      } else if (error instanceof CliFailure) {
        failure = new CliFailure(
          `${place} failed; it and later entries were not loaded: ${error.message}`,
          exitCodes.usage,
        )
      } else throw error
      break
    }
  }
  progress.stop()
  if (loaded.length > 0 || failure === undefined) await printList(session, loaded, display)
  if (failure !== undefined) throw failure
}

async function parse(path: string, text: string): Promise<unknown> {
  const form = formOf(path)
  try {
    return form === 'json' ? readJson(text) : await parseYaml(text)
  } catch (error) {
    if (error instanceof JsonNumberError) throw fileProblem(path, `cannot be read: ${error.message}`)
    // The text around the error may be a secret.
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

/** Reads YAML with the types of JSON alone: a time stays text. */
async function parseYaml(text: string): Promise<unknown> {
  const [{ loadAll, Schema }, { pythonYamlSchema }] = await Promise.all([
    import('js-yaml'),
    import('../../lib/text/yaml.ts'),
  ])
  const tags = pythonYamlSchema.tags.filter(({ tagName }) => jsonTypes.has(tagName.replace('tag:yaml.org,2002:', '')))
  const documents = loadAll(text, { schema: new Schema(tags), maxAliases: MAX_ALIASES })
  // Several documents are as good as a list.
  return documents.length === 1 ? documents[0] : documents.flat()
}

/** Aliases in YAML make a few lines stand for more than any memory holds. */
export function holdsMoreThan(count: number, value: unknown): boolean {
  const open = [value]
  for (let seen = 0; open.length > 0; seen += 1) {
    if (seen > count) return true
    const next = open.pop()
    if (typeof next === 'object' && next !== null) for (const item of Object.values(next)) open.push(item)
  }
  return false
}
