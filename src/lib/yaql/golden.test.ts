import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { readJson } from '../json/index.ts'
import { Budget, BudgetExhausted, defaultLimits, Float } from '../template/index.ts'
import {
  adopt,
  DateTime,
  declarations,
  entriesOfMapping,
  evaluate,
  FunctionTable,
  isInteger,
  isMapping,
  isNumber,
  isTuple,
  mappingGet,
  optional,
  parse,
  RegexValue,
  SetValue,
  textOf,
  TimeSpan,
  types,
  YaqlError,
  type Mapping,
  type Value,
} from './index.ts'
import { keyError } from './text.ts'

/**
 * What the original engine answers, recorded row by row; the supplement comes from version 2.0.0 of it. The functions of workflows are here as far as they show the
 * language; those that need the platform are tested where they are made.
 */
interface Row {
  id: string
  group: string
  ctx: string
  expr: unknown
  value?: unknown
  type?: string
  text?: string
  error?: {
    class?: string
    cause?: string | null
    detail?: string
    message?: string
    exact?: boolean
    endless?: boolean
  }
  limit_allowed?: boolean
}

const folder = new URL('../../../tests/golden/workflows/', import.meta.url)
const read = (name: string): string => readFileSync(new URL(name, folder), 'utf8')
const contexts = readJson(read('contexts.json')) as Record<string, Mapping>

interface Host {
  data: Mapping
  budget: Budget
}

const { fn } = declarations<Host>()
const { Any } = types

const inner = (host: Host, ...path: string[]): Value => {
  let value: Value = host.data
  for (const name of path) value = isMapping(value) ? (mappingGet(value, name, host.budget) ?? null) : null
  return value
}

const failure = (detail: string): YaqlError => new YaqlError('ExpressionEvaluationException', detail)

function statusOf(host: Host, task: Value, route: Value): Value {
  const name = [task, route].map((part) => textOf(part, 'inner', host.budget)).join('__r')
  const index = inner(host, '__state', 'tasks', name)
  const sequence = inner(host, '__state', 'sequence')
  if (typeof index !== 'number' || !isTuple(sequence)) return null
  const entry = adopt(sequence[index])
  return isMapping(entry) ? (mappingGet(entry, 'status', host.budget) ?? null) : null
}

const ownStatus = (host: Host): Value => {
  if (inner(host, '__current_task') === null) throw failure('The current task is not set in the context.')
  return statusOf(host, inner(host, '__current_task', 'id'), inner(host, '__current_task', 'route'))
}

const ended = new Set<Value>(['succeeded', 'failed', 'canceled'])

const functions = new FunctionTable<Host>([
  fn('ctx', [optional('key', Any, null)], ([key], { host, budget }) => {
    const entries = Array.from(
      entriesOfMapping(host.data),
      ([name, value]) => [textOf(name, 'inner', budget), value] as const,
    )
    const visible = Object.fromEntries(entries.filter(([name]) => !name.startsWith('__')))
    if (key === null) return visible
    const name = textOf(key, 'inner', budget)
    if (name.startsWith('__')) {
      throw new YaqlError('VariableInaccessibleError', `The variable "${name}" is for internal use and inaccessible.`)
    }
    const value = mappingGet(visible, name, budget)
    if (value === undefined) throw new YaqlError('VariableUndefinedError', `The variable "${name}" is undefined.`)
    return value
  }),
  fn('result', [], (_args, { host }) => inner(host, '__current_task', 'result')),
  fn('succeeded', [], (_args, { host }) => ownStatus(host) === 'succeeded'),
  fn('failed', [], (_args, { host }) => ownStatus(host) === 'failed'),
  fn('completed', [], (_args, { host }) => ended.has(ownStatus(host))),
  fn('item', [optional('key', Any, null)], ([key], { host, budget }) => {
    const item = inner(host, '__current_item')
    if (key === null || key === '') return item
    if (!isMapping(item)) throw failure('Item is not type of collections.abc.Mapping.')
    const value = mappingGet(item, key, budget)
    if (value === undefined) throw keyError(key, budget)
    return value
  }),
])

/** Functions of workflows that are not here. */
const foreign = /(?<![.\w])(?:task|task_status|svckv|regex_replace|zip|json)\(/

/** The result as the rows write it: with tags for what JSON cannot say. */
function tagged(value: Value): unknown {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (isInteger(value)) return Number.isSafeInteger(Number(value)) ? `int ${value}` : { $int: String(value) }
  if (isNumber(value)) return floatOf(value instanceof Float ? value.value : Number(value))
  if (value instanceof DateTime) return { $datetime: value.text('T') }
  if (value instanceof TimeSpan) return { $timespan: `int ${value.micros}` }
  if (value instanceof RegexValue) return { $regex: value.source }
  if (value instanceof SetValue) return { $set: sorted(Array.from(value.items.values(), tagged)) }
  if (isTuple(value)) return value.map((item) => tagged(adopt(item)))
  if (!isMapping(value)) throw new Error('a value that no row has')
  const entries = [...entriesOfMapping(value)]
  if (entries.some(([key]) => typeof key !== 'string')) {
    return { $map: entries.map(([key, item]) => [tagged(key), tagged(item)]) }
  }
  return Object.fromEntries(entries.map(([key, item]) => [key, tagged(item)]))
}

const floatOf = (value: number): unknown =>
  Number.isFinite(value)
    ? `float ${Object.is(value, -0) ? '-0' : value}`
    : { $float: Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf' }

const sorted = (items: unknown[]): unknown[] =>
  items.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))

/** What a row expects, in the same form. */
function expected(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(expected)
  const adopted = adopt(value)
  if (!isMapping(adopted)) return tagged(adopted)
  const entries = [...entriesOfMapping(adopted)]
  const [first] = entries
  if (entries.length === 1 && first !== undefined) {
    if (first[0] === '$set') return { $set: sorted((first[1] as unknown[]).map(expected)) }
    if (first[0] === '$int' || first[0] === '$float') return { [first[0]]: first[1] }
  }
  return Object.fromEntries(entries.map(([key, item]) => [key, expected(item)]))
}

const whole = /^<%((?:(?!%>).)*)%>$/s
const rows = ['yaql.jsonl', 'yaql-supplement.jsonl']
  .flatMap((name) => read(name).split('\n'))
  .filter((line) => line !== '')
  .map((line) => readJson(line) as unknown as Row)
  .filter((row): row is Row & { expr: string } => {
    if (typeof row.expr !== 'string' || !whole.test(row.expr)) return false
    return !foreign.test(row.expr) && !['platform', 'reevaluation'].includes(row.group)
  })

/** Rows that differ on purpose, with the reason. */
const different: Readonly<Record<string, string>> = {
  y0125: 'svc knows no characters by name',
}

const outcomeOf = (row: Row & { expr: string }): unknown => {
  const budget = new Budget(defaultLimits, 'the expression')
  const host = { data: contexts[row.ctx] ?? {}, budget }
  try {
    const text = whole.exec(row.expr)?.[1] ?? ''
    const value = evaluate(parse(text.trim()), { functions, host, budget })
    return {
      value: tagged(value),
      text: row.text === undefined ? undefined : textOf(value, 'result', budget),
      data: value,
    }
  } catch (error) {
    if (error instanceof BudgetExhausted) return { error: 'LimitExceededException', isLimit: true }
    if (!(error instanceof YaqlError)) throw error
    return { error: error.errorClass, detail: error.message.replace(/^'+|'+$/g, ''), isLimit: error.isLimit }
  }
}

/** What is wrong about a row, or undefined. */
function check(row: Row & { expr: string }): string | undefined {
  const outcome = outcomeOf(row) as {
    value?: unknown
    text?: string
    error?: string
    detail?: string
    isLimit?: boolean
  }
  if (row.error !== undefined) {
    if (row.error.endless === true) return undefined
    const cause = row.error.cause ?? 'KeyError'
    if (outcome.error !== cause)
      return `wants ${cause}, is ${outcome.error ?? JSON.stringify(outcome.value)}: ${outcome.detail ?? ''}`
    if (row.error.exact !== true || cause === 'KeyError') return undefined
    return outcome.detail === row.error.detail ? undefined : `wants ${row.error.detail}, is ${outcome.detail}`
  }
  if (row.limit_allowed === true && outcome.isLimit === true) return undefined
  const [is, wanted] = [
    JSON.stringify('value' in outcome ? outcome.value : outcome),
    JSON.stringify(expected(row.value)),
  ]
  if (is !== wanted) return `wants ${wanted}, is ${is}`
  return row.text === undefined || row.text === outcome.text || wanted.includes('$set')
    ? undefined
    : `wants the text ${row.text}, is ${outcome.text}`
}

test('there are enough rows', () => {
  expect(rows.length).toBeGreaterThan(2000)
})

test.each([...new Set(rows.map(({ group }) => group))])('%s', (group) => {
  const wrong = rows
    .filter((row) => row.group === group && !(row.id in different))
    .map((row) => ({ id: row.id, expr: row.expr, problem: check(row) }))
    .filter(({ problem }) => problem !== undefined)
  expect(wrong).toEqual([])
})
