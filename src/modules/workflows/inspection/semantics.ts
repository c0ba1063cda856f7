import { isObject } from '../../../lib/schema/index.ts'
import { shown } from '../../../lib/text/index.ts'
import type { InspectionEntry } from '../types.ts'
import { engineCommands, type Definition, type Task } from '../definition/model.ts'
import { TASK_SCHEMA_PATH } from '../definition/schema.ts'
import type { Hints } from './hints.ts'
import { findAmbiguousJoins } from './joins.ts'
import { transitionParts } from './parts.ts'

const noStart =
  'Unable to identify any tasks to start the workflow. If the workflow has a loop, please add a task that serves as an entry point (or lead) into the loop.'

const ambiguousJoin = (name: string): string =>
  `The join task "${name}" is unreachable. A join task is determined to be unreachable if there are nested forks from multi-referenced tasks that join on the said task. This is ambiguous to the workflow engine because it does not know at which level should the join occurs.`

const isCommand = (name: string): boolean => (engineCommands as readonly string[]).includes(name)

/**
 * What the tasks mean together.
 *
 * @param documents of the tasks, by name
 */
export function* inspectSemantics(
  definition: Definition,
  documents: Readonly<Record<string, unknown>>,
  hints: Hints,
): Generator<InspectionEntry, void> {
  const ofTask = (name: string, message: string): InspectionEntry => ({
    type: 'semantic',
    message,
    spec_path: `tasks.${name}`,
    schema_path: TASK_SCHEMA_PATH,
  })
  const tasks = definition.tasks.filter(({ kind }) => kind === 'task')
  for (const task of tasks) {
    const { name } = task
    if (isCommand(name)) yield ofTask(name, `The task name "${name}" is reserved with special function.`)
    if (hasItemsWithoutAction(task, documents[name])) {
      yield ofTask(name, 'The action property is required for with items task.')
    }
    if (task.isReachable) yield* inspectTargets(task, documents[name], definition, hints)
  }
  if (tasks.length > 0 && definition.starts.length === 0) {
    yield { type: 'semantic', message: noStart, spec_path: 'tasks', schema_path: 'properties.tasks' }
  }
  for (const { name } of findAmbiguousJoins(definition)) yield ofTask(name, ambiguousJoin(shown(name)))
}

function hasItemsWithoutAction({ action }: Task, document: unknown): boolean {
  if (!isObject(document)) return false
  const items = document['with'] ?? null
  return items !== null && action === undefined && (document['action'] ?? '') === ''
}

function* inspectTargets(
  task: Task,
  document: unknown,
  { tasks, taskIndexes }: Definition,
  hints: Hints,
): Generator<InspectionEntry, void> {
  const names = (): string[] => tasks.flatMap(({ kind, name }) => (kind === 'task' ? [name] : []))
  for (const position of task.next.keys()) {
    const { value, spec_path, schema_path } = transitionParts(task, document, position).do
    for (const target of targetsIn(value)) {
      if (isCommand(target) || tasks[taskIndexes.get(target) ?? -1]?.kind === 'task') continue
      const message = `The task "${shown(target)}" is not defined.`
      yield { type: 'semantic', message, spec_path, schema_path, ...hints.of(target, names) }
    }
  }
}

/** As they are written, with the mistakes that a run would overlook: a comma too much, blanks in a list. */
function targetsIn(value: unknown): string[] {
  if (typeof value === 'string' && value !== '') return value.split(',').map((name) => name.trim())
  return Array.isArray(value) ? value.filter((name) => typeof name === 'string') : []
}
