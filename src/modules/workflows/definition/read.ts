/** Reads the text of a workflow definition (contract 08, 8.3). What it means is the matter of schema.ts and model.ts. */
import { JsonNumber, entriesOf } from '../../../lib/json/index.ts'
import { isObject, represent } from '../../../lib/schema/index.ts'
import { readStrictYamlDocument, shown, type MetadataDocument, type YamlLimits } from '../../../lib/text/index.ts'

export const MAX_DEFINITION_BYTES = 1_048_576
export const MAX_TASKS = 10_000

/** A definition of the largest size has fewer values and characters; only aliases can stand for more. */
const definitionLimits: Omit<YamlLimits, 'maxMergeKeys'> = {
  maxValues: 300_000,
  maxChars: 4 * MAX_DEFINITION_BYTES,
  maxAliases: MAX_TASKS,
  maxDepth: 50,
}

/**
 * A mapping or a list, in plain JSON, and the line of each key. `with: <text>` of a task has become
 * `with: {items: <text>}`, its long form.
 */
export type DefinitionDocument = MetadataDocument & { value: Record<string, unknown> | unknown[] }

/**
 * The only YAML document of a text, within the limits of definitions.
 *
 * @param maxMergeKeys keys that `<<` may bring in
 */
export function readDocument(text: string, maxMergeKeys: number): ReturnType<typeof readStrictYamlDocument> {
  if (Buffer.byteLength(text) > MAX_DEFINITION_BYTES) {
    const message = `it has more than ${MAX_DEFINITION_BYTES} bytes. Move parts of it into workflows that it calls`
    return { problem: { message } }
  }
  return readStrictYamlDocument(text, { ...definitionLimits, maxMergeKeys })
}

/** @returns the document, or why there is none: the end of a sentence, see `definitionUnreadable` */
export function loadDefinition(text: string): DefinitionDocument | { problem: string } {
  const document = readDocument(text, 0)
  if ('problem' in document) {
    const { message, line, key } = document.problem
    if (document.isEmpty === true) return refuse('it is empty')
    return refuse(`${key === undefined ? '' : `${key}: `}${message}`, line)
  }
  const { value, lineOf, warnings } = document
  if (typeof value !== 'object' || value === null || value instanceof JsonNumber) {
    return refuse(`it is ${represent(value)}, and a mapping with the key "tasks" is needed`)
  }
  const tasks = isObject(value) ? value['tasks'] : undefined
  const problem = findProblem(tasks)
  if (problem !== undefined) return refuse(problem.message, lineOf(['tasks', ...problem.path]))
  if (isObject(tasks)) Object.values(tasks).forEach(lengthenItems)
  return { value: value as DefinitionDocument['value'], warnings, lineOf } // an object, and no number
}

/** Sentences with the reason, and the line. */
export function refuse(reason: string, line?: number): { problem: string } {
  return { problem: line === undefined ? `${reason}.` : `${reason}. See line ${line}.` }
}

interface Problem {
  /** From `tasks`. */
  path: string[]
  message: string
}

function findProblem(tasks: unknown): Problem | undefined {
  if (isScalar(tasks)) return { path: [], message: needsMapping('tasks', tasks) }
  if (!isObject(tasks)) return undefined
  const names = Object.keys(tasks)
  if (names.length > MAX_TASKS) {
    const message = `it has ${names.length} tasks and ${MAX_TASKS} are the limit. Move tasks into workflows that it calls`
    return { path: [], message }
  }
  for (const [name, task] of entriesOf(tasks)) {
    if (!isObject(task)) continue
    for (const part of ['with', 'retry', 'next']) {
      if (isScalar(task[part]))
        return { path: [name, part], message: needsMapping(`tasks.${name}.${part}`, task[part]) }
    }
    const transitions = Array.isArray(task['next']) ? (task['next'] as unknown[]) : []
    const index = transitions.findIndex(isScalar)
    if (index === -1) continue
    const message = needsMapping(`tasks.${name}.next[${index}]`, transitions[index])
    return { path: [name, 'next', String(index)], message }
  }
  return undefined
}

/** A number or `true`, where parts of a definition are expected. The schema reports other values. */
function isScalar(value: unknown): boolean {
  return value === true || ((typeof value === 'number' || value instanceof JsonNumber) && Number(value) !== 0)
}

function needsMapping(path: string, value: unknown): string {
  const needed = path.endsWith('.with') ? 'a text or a mapping' : path.endsWith('.next') ? 'a list' : 'a mapping'
  return `${shown(path)} is ${represent(value)}, and ${needed} is needed`
}

function lengthenItems(task: unknown): void {
  if (isObject(task) && typeof task['with'] === 'string') task['with'] = { items: task['with'] }
}
