/** What of a rehearsal is not as expected. */
import { keysOf, writeJson } from '../../../lib/json/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import type { Difference, Rehearsal, RehearsedTask } from '../types.ts'
import type { ExpectedTask, Expectations } from './mocks.ts'

/** More would not be read. */
const MAX_DIFFERENCES = 50

export function compare(expect: Expectations, rehearsal: Rehearsal): Difference[] {
  const differences: Difference[] = []
  const { status, output, tasks, errors } = expect
  if (status !== rehearsal.status) differences.push({ path: 'status', expected: status, actual: rehearsal.status })
  if (output !== undefined) differences.push(...compareValues('output', output, rehearsal.output))
  if (tasks !== undefined) differences.push(...compareTasks(tasks, rehearsal.tasks))
  if (errors !== undefined) differences.push(...compareErrors(errors, rehearsal))
  return differences.slice(0, MAX_DIFFERENCES)
}

/** Each place in which two values differ. Keys may stand in any order; 1 and 1.0 are equal. */
function* compareValues(path: string, expected: unknown, actual: unknown): Generator<Difference, void> {
  if (isObject(expected) && isObject(actual)) {
    for (const key of new Set([...keysOf(expected), ...keysOf(actual)]))
      yield* compareValues(`${path}.${key}`, own(expected, key), own(actual, key))
  } else if (Array.isArray(expected) && Array.isArray(actual)) {
    for (let index = 0; index < Math.max(expected.length, actual.length); index++)
      yield* compareValues(`${path}[${index}]`, expected[index], actual[index])
  } else if (!isSame(expected, actual)) yield { path, expected, actual }
}

function isSame(expected: unknown, actual: unknown): boolean {
  if (expected === undefined || actual === undefined) return expected === actual
  const [left, right] = [writeJson(expected), writeJson(actual)]
  return left === right || (isNumber(left) && isNumber(right) && Number(left) === Number(right))
}

const isNumber = (text: string): boolean => /^-?\d/.test(text)

const own = (object: Readonly<Record<string, unknown>>, key: string): unknown =>
  Object.hasOwn(object, key) ? object[key] : undefined

/** The names first: if they differ, further differences are of no use. */
function* compareTasks(
  expected: readonly ExpectedTask[],
  actual: readonly RehearsedTask[],
): Generator<Difference, void> {
  const started = actual.filter(({ status }) => status !== 'staged')
  const [wanted, names] = [expected, started].map((tasks) => tasks.map(({ task }) => task))
  if (writeJson(wanted) !== writeJson(names)) {
    yield { path: 'tasks', expected: wanted, actual: names }
    return
  }
  for (const [index, facts] of expected.entries()) {
    const task = started[index]
    if (task === undefined) continue
    const known = factsOf(task)
    for (const key of keysOf({ ...facts }))
      yield* compareValues(`tasks[${index}] (${task.task}).${key}`, own({ ...facts }, key), own(known, key))
  }
}

function factsOf({ task, route, status, actions, transitions }: RehearsedTask): Record<keyof ExpectedTask, unknown> {
  const [first] = actions
  return {
    task,
    route,
    status,
    runs: actions.length,
    action: first?.action ?? null,
    input: first?.input ?? null,
    published: Object.assign({}, ...transitions.map(({ published }) => published)) as unknown,
  }
}

function* compareErrors(
  expected: NonNullable<Expectations['errors']>,
  { errors }: Rehearsal,
): Generator<Difference, void> {
  const messages = errors.map(({ message }) => message)
  if (expected.length !== errors.length) {
    yield { path: 'errors', expected, actual: messages }
    return
  }
  for (const [index, wanted] of expected.entries()) {
    const entry = { ...errors[index] }
    const path = `errors[${index}]`
    if (typeof wanted === 'string') {
      if (!String(messages[index]).includes(wanted)) yield { path, expected: wanted, actual: messages[index] }
    } else for (const key of keysOf(wanted)) yield* compareValues(`${path}.${key}`, wanted[key], own(entry, key))
  }
}
