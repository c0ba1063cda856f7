/** Plays `yaql.jsonl` and `jinja.jsonl` of a folder with golden data through the expressions of workflows. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { entriesOf, objectOf, readJson } from '../../src/lib/json/index.ts'
import { Budget, BudgetExhausted, defaultLimits, Float } from '../../src/lib/template/index.ts'
import {
  evaluateNative,
  ExpressionError,
  type Scope,
  type TaskRecord,
} from '../../src/modules/workflows/expressions/index.ts'
import {
  adopt,
  DateTime,
  entriesOfMapping,
  isInteger,
  isMapping,
  isNumber,
  isTuple,
  RegexValue,
  SetValue,
  TimeSpan,
  type Value,
} from '../../src/lib/yaql/index.ts'
import type { Difference, Tally } from './tally.ts'

interface ExpectedError {
  readonly class?: string
  readonly cause?: string
  readonly message?: string
  readonly exact?: boolean
  readonly endless?: boolean
}

interface Row {
  readonly id: string
  readonly ctx: string
  readonly expr: unknown
  readonly value?: unknown
  readonly type?: string
  readonly text?: string
  readonly error?: ExpectedError
  readonly limit_allowed?: boolean
}

interface World {
  readonly contexts: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  readonly records: readonly TaskRecord[]
  readonly datastore: Readonly<Record<string, string>>
}

/** The generator writes the shapes above. */
const read = <T>(folder: string, name: string): T => readJson(readFileSync(join(folder, name), 'utf8')) as T

function readWorld(folder: string): World {
  const records = read<Record<string, never>[]>(folder, 'task_rows.json').map((row) => ({
    id: row['id'] ?? '',
    workflowExecution: row['workflow_execution'] ?? '',
    name: row['task_id'] ?? '',
    route: row['task_route'] ?? 0,
    status: row['status'] ?? '',
    result: row['result'] ?? null,
    startTimestamp: row['start_timestamp'] ?? '',
    endTimestamp: row['end_timestamp'] ?? null,
  }))
  return { contexts: read(folder, 'contexts.json'), records, datastore: read(folder, 'datastore.json') }
}

interface EngineState {
  readonly tasks: Readonly<Record<string, number>>
  readonly sequence: readonly { status: string }[]
  readonly routes: readonly (readonly string[])[]
}

const ENGINE_NAMES: readonly string[] = ['__current_task', '__state', '__current_item']

function scopeOf(row: Row, { contexts, records, datastore }: World): Scope {
  const context = contexts[row.ctx] ?? {}
  const variables = objectOf(entriesOf(context).filter(([name]) => !ENGINE_NAMES.includes(name)))
  const state = context['__state'] as EngineState | undefined
  const current = context['__current_task'] as { id: string; route: number; result: unknown } | undefined

  /** The current route and those it came from, the latest first. */
  const routes = (route = current?.route ?? 0): number[] => {
    const own = state?.routes[route] ?? []
    const isEarlier = (index: number): boolean => (state?.routes[index] ?? []).every((step) => own.includes(step))
    return [route, ...Array.from({ length: route }, (_, index) => route - 1 - index).filter(isEarlier)]
  }
  const runRoute = (name: string, route: number | undefined): number | undefined =>
    (route === undefined ? routes() : [route]).find((each) => state?.tasks[`${name}__r${each}`] !== undefined)
  const status = (name: string, route?: number): string | undefined => {
    const index = state?.tasks[`${name}__r${runRoute(name, route)}`]
    return index === undefined ? undefined : state?.sequence[index]?.status
  }

  return {
    variable: (name) => (Object.hasOwn(variables, name) ? variables[name] : undefined),
    variables: () => variables,
    task: current && {
      name: current.id,
      route: current.route,
      status: status(current.id, current.route) ?? '',
      result: () => current.result,
    },
    item: context['__current_item'],
    taskStatus: status,
    taskRecord: (name, route) =>
      records
        .filter((record) => record.name === name && record.route === runRoute(name, route))
        .toSorted((a, b) => (a.startTimestamp < b.startTimestamp ? 1 : -1))[0],
    readKey({ scope, user, name }, decrypt) {
      const stored = datastore[scope === 'system' ? `system/${name}` : `user/${user}:${name}`]
      if (stored === undefined || !decrypt) return stored
      if (!stored.startsWith('ENC:')) throw new Error('not an encrypted value')
      return stored.slice('ENC:'.length)
    },
  }
}

/** A value in one spelling, which tells 1 from 1.0 and does not depend on the order of keys. */
function spell(raw: unknown): string {
  const value = adopt(raw)
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return JSON.stringify(value)
  if (isNumber(value)) return spellNumber(value)
  if (isTuple(value)) return `[${value.map(spell).join(', ')}]`
  if (value instanceof SetValue) return spellSet([...value.items.values()])
  if (value instanceof DateTime) return `datetime ${value.text('T')}`
  if (value instanceof TimeSpan) return `timespan ${value.micros}`
  if (value instanceof RegexValue) return `regex ${value.source}`
  if (!isMapping(value)) return 'a value that no row has'
  const entries = [...entriesOfMapping(value)]
  const [first] = entries
  const tagged = entries.length === 1 && typeof first?.[0] === 'string' ? spellTagged(first[0], first[1]) : undefined
  return tagged ?? spellEntries(entries)
}

/** `{"$set": […]}` and the like, as the rows write what JSON does not know. */
function spellTagged(tag: string, content: Value): string | undefined {
  const isScalar = ['$int', '$float', '$datetime', '$timespan', '$regex'].includes(tag)
  if (isScalar && typeof content !== 'object') return `${tag.slice(1)} ${content}`
  if (!isTuple(content)) return undefined
  if (tag === '$set') return spellSet(content)
  return tag === '$map' ? spellEntries(content as readonly (readonly [unknown, unknown])[]) : undefined
}

const spellSet = (items: readonly unknown[]): string => `set {${items.map(spell).toSorted().join(', ')}}`

/** Keys as JSON has them: text. */
const spellEntries = (entries: readonly (readonly [unknown, unknown])[]): string =>
  `{${entries
    .map(([key, item]) => `${JSON.stringify(keyText(key))}: ${spell(item)}`)
    .toSorted()
    .join(', ')}}`

const keyText = (key: unknown): string => (typeof key === 'string' ? key : spell(key).replace(/^(?:int|float) /, ''))

function spellNumber(value: number | bigint | Float): string {
  if (isInteger(value)) return `int ${String(typeof value === 'number' ? value + 0 : value)}`
  const float = value instanceof Float ? value.value : Number(value)
  return `float ${Object.is(float, -0) ? '-0' : String(float).toLowerCase().replace('infinity', 'inf')}`
}

interface Outcome {
  readonly value?: unknown
  readonly error?: ExpressionError | BudgetExhausted
}

function outcomeOf(expression: unknown, scope: Scope): Outcome {
  try {
    return { value: evaluateNative(expression, scope, { budget: new Budget(defaultLimits) }) }
  } catch (error) {
    if (error instanceof ExpressionError || error instanceof BudgetExhausted) return { error }
    throw error
  }
}

const shown = ({ value, error }: Outcome): string =>
  error === undefined ? spell(value) : error instanceof ExpressionError ? error.text : `exhausted: ${error.message}`

const causeOf = (message: string): string | undefined =>
  /^Unable to evaluate expression '[\s\S]*'\. (\w+): /.exec(message)?.[1]

/** What differs, or undefined. */
function compare(row: Row, scope: Scope): Pick<Difference, 'expected' | 'actual'> | undefined {
  const outcome = outcomeOf(row.expr, scope)
  const { error } = outcome
  if (row.limit_allowed === true && error !== undefined) return undefined
  if (row.error === undefined) {
    const expected = spell(row.value)
    if (error !== undefined || shown(outcome) !== expected) return { expected, actual: shown(outcome) }
    return compareText(row, scope)
  }
  // The engine of the golden data never answers: an answer is right too.
  if (row.error.endless === true) return undefined
  const { class: className = '', cause, message = '', exact = false } = row.error
  const isSame =
    error instanceof ExpressionError &&
    error.className === className &&
    (exact ? error.message === message : causeOf(error.message) === cause)
  return isSame ? undefined : { expected: `${exact ? '' : 'like '}${className}: ${message}`, actual: shown(outcome) }
}

/** The value within a longer text. */
function compareText(row: Row, scope: Scope): Pick<Difference, 'expected' | 'actual'> | undefined {
  if (row.text === undefined || typeof row.expr !== 'string' || row.type === 'str') return undefined
  if (!/^(?:<%.*%>|\{\{.*\}\})$/.test(row.expr)) return undefined
  const outcome = outcomeOf(`${row.expr}.`, scope)
  const expected = JSON.stringify(`${row.text}.`)
  return shown(outcome) === expected ? undefined : { expected, actual: shown(outcome) }
}

/** @param folder holds `<name>.jsonl`, `contexts.json`, `task_rows.json` and `datastore.json` */
export function playExpressions(folder: string, name: 'jinja' | 'yaql'): Tally {
  const world = readWorld(folder)
  const differences: Difference[] = []
  let agree = 0
  for (const line of readFileSync(join(folder, `${name}.jsonl`), 'utf8').split('\n')) {
    if (line === '') continue
    const row = readJson(line) as Row
    const difference = compare(row, scopeOf(row, world))
    if (difference === undefined) agree += 1
    else differences.push({ id: row.id, input: JSON.stringify(row.expr), ...difference })
  }
  return { name, agree, differences }
}
