import { keysOf, objectOf } from '../../../lib/json/index.ts'
import { adopt, isTrue, textOf } from '../../../lib/template/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import { FunctionError } from './error.ts'
import type { Evaluation, WorkflowFunction } from './function.ts'
import type { CurrentTask, DatastoreKey, Scope, TaskRecord } from './scope.ts'

/** Variables that belong to the engine. */
const PRIVATE_PREFIX = '__'

const COMPLETED: readonly string[] = ['succeeded', 'failed', 'timeout', 'abandoned', 'canceled']

const fail = (message: string): Error => new FunctionError('ExpressionEvaluationException', message)

/** None, an empty text, zero and the like stand for "no argument". */
const isGiven = (value: unknown): boolean => value !== undefined && isTrue(adopt(value))

/** A key as messages show it. Only texts are keys. */
const keyText = (key: unknown, { budget }: Evaluation): string =>
  typeof key === 'string' ? key : textOf(adopt(key), budget)

function currentTask({ scope }: Evaluation): CurrentTask {
  if (scope.task === undefined) throw fail('The current task is not set in the context.')
  return scope.task
}

/** The variables that an expression can see. */
function visibleVariables(scope: Scope): Readonly<Record<string, unknown>> {
  const all = scope.variables()
  const names = keysOf(all)
  if (!names.some((name) => name.startsWith(PRIVATE_PREFIX))) return all
  return objectOf(names.filter((name) => !name.startsWith(PRIVATE_PREFIX)).map((name) => [name, all[name]]))
}

/** All variables as an object that asks for each one as it is read, and for the whole only when it is listed. */
export function lazyVariables({ scope, readings }: Evaluation): Readonly<Record<string, unknown>> {
  let all: Readonly<Record<string, unknown>> | undefined
  const list = (): Readonly<Record<string, unknown>> => {
    if (all === undefined) {
      all = visibleVariables(scope)
      readings?.push({ name: 'ctx', args: [], value: all })
    }
    return all
  }
  const read = (name: string | symbol): unknown => {
    if (typeof name === 'symbol' || name.startsWith(PRIVATE_PREFIX)) return undefined
    if (all !== undefined) return Object.hasOwn(all, name) ? all[name] : undefined
    const value = scope.variable(name)
    if (value !== undefined) readings?.push({ name: 'ctx', args: [name], value })
    return value
  }
  return new Proxy<Record<string, unknown>>(Object.create(null) as Record<string, unknown>, {
    get: (_, name) => read(name),
    has: (_, name) => read(name) !== undefined,
    getOwnPropertyDescriptor(_, name) {
      const value = read(name)
      return value === undefined ? undefined : { value, enumerable: true, configurable: true }
    },
    ownKeys: () => [...keysOf(list())],
    set: () => false,
    defineProperty: () => false,
    deleteProperty: () => false,
  })
}

function ctx([key]: readonly unknown[], evaluation: Evaluation): unknown {
  if (!isGiven(key)) return lazyVariables(evaluation)
  const name = keyText(key, evaluation)
  const value = typeof key === 'string' ? evaluation.scope.variable(name) : undefined
  if (value === undefined) throw new FunctionError('VariableUndefinedError', `The variable "${name}" is undefined.`)
  if (name.startsWith(PRIVATE_PREFIX)) {
    throw new FunctionError('VariableInaccessibleError', `The variable "${name}" is for internal use and inaccessible.`)
  }
  evaluation.readings?.push({ name: 'ctx', args: [name], value })
  return value
}

/** No route has this number. */
const NO_ROUTE = -1

function routeOf(route: unknown): number | undefined {
  if (route === undefined || route === null) return undefined
  if (typeof route === 'string' && /^\d{1,9}$/.test(route)) return Number(route)
  return typeof route === 'number' ? route : NO_ROUTE
}

function shownRecord(record: TaskRecord): Readonly<Record<string, unknown>> {
  return {
    task_execution_id: record.id,
    workflow_execution_id: record.workflowExecution,
    task_name: record.name,
    task_id: record.name,
    route: record.route,
    result: record.result,
    status: record.status,
    start_timestamp: record.startTimestamp,
    // Packs compare with the text.
    end_timestamp: record.endTimestamp ?? 'None',
  }
}

function taskRecord([name, route]: readonly unknown[], evaluation: Evaluation): unknown {
  const { scope } = evaluation
  let wanted = name
  if (name === undefined || name === null) {
    if (scope.task === undefined) throw new FunctionError('KeyError', 'id')
    wanted = scope.task.name
  }
  const record = typeof wanted === 'string' ? scope.taskRecord(wanted, routeOf(route)) : undefined
  if (record === undefined) throw fail(`Unable to find task execution for "${keyText(wanted, evaluation)}".`)
  return shownRecord(record)
}

function item([key]: readonly unknown[], evaluation: Evaluation): unknown {
  const value = evaluation.scope.item ?? null
  if (!isGiven(key)) return value
  if (!isObject(value)) throw fail('Item is not type of collections.abc.Mapping.')
  const name = keyText(key, evaluation)
  if (typeof key !== 'string' || !Object.hasOwn(value, name)) throw fail(`Item does not have key "${name}".`)
  return value[name]
}

const SYSTEM_PREFIX = 'system.'

function datastoreKey(key: string, scope: Scope): DatastoreKey {
  const svc = scope.variable('svc')
  const user = isObject(svc) ? svc['user'] : undefined
  if (typeof user !== 'string') throw new FunctionError('KeyError', 'Could not get user from context.')
  return key.startsWith(SYSTEM_PREFIX)
    ? { scope: 'system', user: '', name: key.slice(SYSTEM_PREFIX.length) }
    : { scope: 'user', user, name: key }
}

function svckv([given, decrypt = false, fallback]: readonly unknown[], { scope }: Evaluation): unknown {
  if (typeof given !== 'string') throw new FunctionError('TypeError', 'Given key is not typeof string.')
  if (typeof decrypt !== 'boolean') throw new FunctionError('TypeError', 'Decrypt parameter is not typeof bool.')
  const key = datastoreKey(given, scope)
  let value: unknown
  try {
    value = scope.readKey(key, decrypt)
  } catch (error) {
    throw fail(error instanceof Error ? error.message : 'the datastore does not answer')
  }
  if (value !== undefined) return value
  if (fallback !== undefined) return fallback
  throw fail(`The key "${key.scope === 'user' ? `${key.user}:` : ''}${key.name}" does not exist in the datastore.`)
}

/** Functions that read the state of the workflow and the datastore. */
export const stateFunctions: readonly WorkflowFunction[] = [
  // Notes what is read by itself: the whole is read only when it is listed.
  { name: 'ctx', parameters: ['key?'], run: ctx },
  {
    name: 'succeeded',
    parameters: [],
    isReading: true,
    run: (_, evaluation) => currentTask(evaluation).status === 'succeeded',
  },
  {
    name: 'failed',
    parameters: [],
    isReading: true,
    run: (_, evaluation) => currentTask(evaluation).status === 'failed',
  },
  {
    name: 'completed',
    parameters: [],
    isReading: true,
    run: (_, evaluation) => COMPLETED.includes(currentTask(evaluation).status),
  },
  {
    name: 'result',
    parameters: [],
    isReading: true,
    run: (_, evaluation) => currentTask(evaluation).result() ?? null,
  },
  {
    name: 'task_status',
    parameters: ['task_id', 'route?'],
    isReading: true,
    run: ([name, route], { scope }) =>
      (typeof name === 'string' ? scope.taskStatus(name, routeOf(route)) : undefined) ?? 'null',
  },
  { name: 'task', parameters: ['task_id?', 'route?'], isReading: true, run: taskRecord },
  { name: 'item', parameters: ['key?'], isReading: true, run: item },
  { name: 'svckv', parameters: ['key'], options: ['decrypt', 'default'], isReading: true, run: svckv },
]
