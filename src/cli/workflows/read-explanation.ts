/** Reads the explanation of a workflow from an answer, in which a server other than svc may leave out anything. */
import type {
  WorkflowExplanation,
  WorkflowFailure,
  WorkflowJoin,
  WorkflowTransition,
  WorkflowWait,
} from '../../modules/workflows/types.ts'
import { textOrEmpty, toList, toObject } from '../connection/responses.ts'
import type { Json } from '../output/print.ts'

export function readExplanation(record: Json): WorkflowExplanation {
  return {
    status: textOrEmpty(record['status']),
    message: textOrEmpty(record['message']),
    tasks: toList(record['tasks']).map((task) => ({
      task: textOrEmpty(task['task']),
      route: numberOrZero(task['route']),
      status: textOrEmpty(task['status']),
      join: joinIn(task['join']),
      transitions: Array.isArray(task['transitions']) ? toList(task['transitions']).map(transitionIn) : null,
      unsuccessful: toList(task['unsuccessful']).map(unsuccessfulIn),
    })),
    tasks_left_out: numberOrZero(record['tasks_left_out']),
    failures: toList(record['failures']).map(failureIn),
    failures_left_out: numberOrZero(record['failures_left_out']),
    waits_for: toList(record['waits_for']).map(waitIn),
    waits_left_out: numberOrZero(record['waits_left_out']),
  }
}

const unsuccessfulIn = (record: Json): WorkflowExplanation['tasks'][number]['unsuccessful'][number] => ({
  execution: textOrEmpty(record['execution']),
  item: numberOrNull(record['item']),
  status: textOrEmpty(record['status']),
})

const transitionIn = (record: Json): WorkflowTransition => ({
  when: record['when'] ?? null,
  value: record['value'] ?? null,
  is_taken: record['is_taken'] === true,
  do: textsIn(record['do']),
  published: toObject(record['published']),
  reads: readsIn(record['reads']),
  errors: textsIn(record['errors']),
  has_changed: record['has_changed'] === true,
})

const failureIn = (record: Json): WorkflowFailure => ({
  message: textOrEmpty(record['message']),
  task: textOrNull(record['task']),
  route: numberOrNull(record['route']),
  expression: record['expression'] ?? null,
  variables: (record['variables'] ?? null) === null ? null : toObject(record['variables']),
  reads: readsIn(record['reads']),
})

const waitIn = (record: Json): WorkflowWait => ({
  kind: textOrEmpty(record['kind']) as WorkflowWait['kind'], // any other word is printed as it is
  task: textOrNull(record['task']),
  route: numberOrNull(record['route']),
  item: numberOrNull(record['item']),
  execution: textOrNull(record['execution']),
  until: textOrNull(record['until']),
  join: joinIn(record['join']),
})

function joinIn(value: unknown): WorkflowJoin | null {
  if ((value ?? null) === null) return null
  const record = toObject(value)
  return {
    need: numberOrZero(record['need']),
    arrived: textsIn(record['arrived']),
    missing: textsIn(record['missing']),
  }
}

const readsIn = (value: unknown): WorkflowTransition['reads'] =>
  toList(value).map((read) => ({
    name: textOrEmpty(read['name']),
    args: Array.isArray(read['args']) ? (read['args'] as unknown[]) : [],
    value: read['value'] ?? null,
  }))

const textsIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((text): text is string => typeof text === 'string') : []
const numberOrNull = (value: unknown): number | null => (typeof value === 'number' ? value : null)
const numberOrZero = (value: unknown): number => numberOrNull(value) ?? 0
const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null)
