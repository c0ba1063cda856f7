/** The parts of a definition that may have expressions, with their paths. */
import { isObject } from '../../../lib/schema/index.ts'
import type { Task } from '../definition/model.ts'
import { TASK_SCHEMA_PATH, isWord } from '../definition/schema.ts'

export interface Part {
  readonly value: unknown
  readonly spec_path: string
  readonly schema_path: string
  /** Whether inspection checks that the variables in it have a value. */
  readonly hasCheckedVariables: boolean
  /** Whether its value decides what happens. */
  readonly isCondition?: boolean
}

/** The lists and values of a workflow beside its tasks. */
export function workflowPart(document: Readonly<Record<string, unknown>>, name: string): Part {
  return { value: document[name], spec_path: name, schema_path: `properties.${name}`, hasCheckedVariables: true }
}

/** The parts of a task before its transitions, in the order of their evaluation. */
export function taskParts(task: Task, document: unknown): Part[] {
  if (!isObject(document) || !isWord(task.name)) return []
  const part = (value: unknown, names: readonly string[], hasCheckedVariables = true): Part => ({
    value,
    spec_path: `tasks.${task.name}.${names.join('.')}`,
    schema_path: [TASK_SCHEMA_PATH, ...names].join('.properties.'),
    hasCheckedVariables,
  })
  const items = isObject(document['with']) ? document['with'] : {}
  const retry = isObject(document['retry']) ? document['retry'] : {}
  return [
    part(document['delay'], ['delay']),
    part(items['items'], ['with', 'items']),
    part(items['concurrency'], ['with', 'concurrency']),
    part(task.action ?? document['action'], ['action']),
    part(task.input, ['input']),
    part(document['timeout'], ['timeout']),
    part(document['join'], ['join'], false),
    { ...part(retry['when'], ['retry', 'when'], false), isCondition: true },
    ...['count', 'delay'].map((name) => part(retry[name], ['retry', name], false)),
  ]
}

/** The parts of a transition, in the order of their evaluation. `publish` is a list of objects with one key. */
export function transitionParts(
  task: Task,
  document: unknown,
  position: number,
): Record<'when' | 'publish' | 'do', Part> {
  const next = isObject(document) && Array.isArray(document['next']) ? (document['next'] as unknown[]) : []
  const transition = isObject(next[position]) ? next[position] : {}
  const part = (name: string, value: unknown): Part => ({
    value,
    spec_path: `tasks.${task.name}.next[${position}].${name}`,
    schema_path: `${TASK_SCHEMA_PATH}.properties.next.items.properties.${name}`,
    hasCheckedVariables: true,
  })
  const publish = task.next[position]?.publish.map(({ name, value }) => ({ [name]: value }))
  return {
    when: { ...part('when', transition['when']), isCondition: true },
    publish: part('publish', typeof transition['publish'] === 'string' ? publish : transition['publish']),
    do: part('do', transition['do']),
  }
}

/** Python's idea of false. */
export function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === false) return true
  return Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0
}
