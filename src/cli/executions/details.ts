/** How executions look: their details, and lists of them (contract 09, 9.4 and 9.5). */
import { listIn, textOrEmpty, toObject } from '../connection/responses.ts'
import { segment } from '../connection/client.ts'
import { isFinalRecord, isForbidden, isMissing, recordStatusOf, shownId } from './calls.ts'
import { inquiryAdvice, isOpenInquiry, isWorkflow, taskAttributes, taskLabel } from './tasks.ts'
import {
  attributeOf,
  cellText,
  colorStatus,
  formatTime,
  pickAttributes,
  printable,
  renderTable,
  type Json,
} from '../output/print.ts'
import type { Session } from '../session.ts'
import { renderRecord } from '../records.ts'
import { toYaml } from '../output/yaml.ts'
import { JsonNumber, mapObject } from '../../lib/json/index.ts'

const detailAttributes = [
  'id',
  'action.ref',
  'context.user',
  'parameters',
  'status',
  'attempt',
  'retry_of',
  'start_timestamp',
  'end_timestamp',
  'result',
]
const workflowAttributes = [
  'id',
  'action.ref',
  'parameters',
  'status',
  'attempt',
  'retry_of',
  'start_timestamp',
  'end_timestamp',
  'log',
  'context.cancelled_by',
  'result.error',
  'result.traceback',
  'result.failed_on',
  'result.output',
  'result.published',
  'result.errors',
]
/** Under which name a path of `workflowAttributes` is shown. */
const shownNames: ReadonlyMap<string, string> = new Map([
  ['context.cancelled_by', 'cancelled_by'],
  ['result.error', 'error'],
  ['result.traceback', 'traceback'],
  ['result.failed_on', 'failed_on'],
  ['result.output', 'output'],
  ['result.published', 'published'],
  ['result.errors', 'errors'],
])

/** The status with its elapsed time, such as `running (3s elapsed)`; without it when the execution has not started. */
function statusText(record: Json, nowMs: number): string {
  const status = printable(recordStatusOf(record))
  const start = Date.parse(textOrEmpty(record['start_timestamp']))
  const end = Date.parse(textOrEmpty(record['end_timestamp']))
  const until = Number.isNaN(end) && !isFinalRecord(status) ? nowMs : end
  if (status === '' || Number.isNaN(start) || Number.isNaN(until)) return status
  return `${status} (${Math.max(0, Math.floor((until - start) / 1000))}s elapsed)`
}

export interface DisplayOptions {
  /** Exactly these attributes; `all`: every one. */
  attributes?: readonly string[] | undefined
  /** The whole record as a table. */
  detail?: boolean | undefined
  /** No table of children. */
  raw?: boolean | undefined
  showLog?: boolean | undefined
  /** Show the table of children even if the record is not a workflow. */
  showTasks?: boolean | undefined
  /** How deep children are shown; undefined: all. */
  depth?: number | undefined
  /** Of the columns of a table. */
  width?: readonly number[] | undefined
  /** After the details, a schema for the output of an action that has none. */
  withSchema?: boolean | undefined
}

/** Prints one execution in the form asked for. */
export async function printExecution(session: Session, record: Json, options: DisplayOptions): Promise<void> {
  const { attributes } = options
  const isAll = attributes?.includes('all') === true
  if (session.form !== 'human') {
    await session.printMachine(attributes === undefined || isAll ? record : pickAttributes(record, attributes))
    return
  }
  if (options.detail === true || isAll) {
    await session.print(renderRecord(session, record, Object.keys(record), options.width))
    return
  }
  const asWorkflow = isWorkflow(record) && options.raw !== true
  const withTasks = (asWorkflow && attributes === undefined) || options.showTasks === true
  const names = attributes ?? (asWorkflow ? workflowAttributes : withLog(options.showLog === true))
  await session.print(renderDetails(session, record, names, attributes !== undefined))
  if (asWorkflow && attributes === undefined) await session.print(await renderCounts(session, record))
  if (withTasks) await session.print(await renderChildren(session, record, options))
  if (options.withSchema === true || !session.settings.silenceSchemaOutput) {
    await printSchema(session, record, options.withSchema === true)
  }
}

async function printSchema(session: Session, record: Json, isWanted: boolean): Promise<void> {
  const { suggestSchema } = await import('./output-schema.ts')
  const suggestion = suggestSchema(record)
  if (isWanted) {
    if (suggestion === undefined)
      return session.note('No suggestion: there is no output, or the action has an output_schema.\n')
    await session.print(`\n${toYaml({ output_schema: readable(suggestion.schema) })}`)
    if (!suggestion.isChecked) session.note('Note: The runner of this action does not check its output.\n')
  } else if (suggestion?.isChecked === true) {
    session.note('Note: The action has no output_schema. To get a suggestion, use --with-schema.\n')
  }
}

function withLog(showLog: boolean): string[] {
  return showLog ? detailAttributes.flatMap((name) => (name === 'result' ? ['log', name] : [name])) : detailAttributes
}

/** The traceback of a chain is often its error once more; one that publishes nothing has an empty object. */
function isSaidAlready(record: Json, name: string, value: unknown): boolean {
  if (name === 'result.traceback') return value === attributeOf(record, 'result.error')
  return name === 'result.published' && Object.keys(toObject(value)).length === 0
}

/** @param isExact attributes that the record lacks are shown as null */
function renderDetails(session: Session, record: Json, names: readonly string[], isExact: boolean): string {
  const lines = names.map((name) => {
    const value = attributeOf(record, name)
    if (!isExact && (value === undefined || isSaidAlready(record, name, value))) return ''
    const label = shownNames.get(name) ?? name
    if (name === 'status') {
      const text = statusText(record, Date.now())
      return `${label}: ${session.isColored ? colorStatus(text) : text}\n`
    }
    if (name.endsWith('timestamp')) return `${label}: ${formatTime(value, session.settings.timezone)}\n`
    // YAML would put quotes around an id of digits alone.
    if (name === 'id' && typeof value === 'string' && /^\w+$/.test(value)) return `${label}: ${value}\n`
    return toYaml({ [printable(label)]: readable(value ?? null) })
  })
  return lines.join('')
}

/** Control characters spelled out, so that text of several lines can stay a block of lines. */
function readable(value: unknown): unknown {
  if (typeof value === 'string') return /[\r\t]/.test(value) || value.includes('\n') ? printable(value) : value
  if (Array.isArray(value)) return value.map(readable)
  if (typeof value !== 'object' || value === null || value instanceof JsonNumber) return value
  return mapObject(value as Json, readable)
}

/**
 * Levels that are indented. Deeper children are not indented further, since every line of a table is as wide as the
 * widest.
 */
const MAX_INDENT = 50
/** How many tasks have started, by status; nothing when the workflow has not started, or the server does not know. */
async function renderCounts(session: Session, record: Json): Promise<string> {
  const path = `/executions/${segment(textOrEmpty(record['id']))}/workflow`
  let counts: Json
  try {
    counts = toObject((await session.client.call('GET', path, { query: { limit: 1 } })).body)
  } catch (error) {
    if (isMissing(error) || isForbidden(error)) return ''
    throw error
  }
  const parts = Object.entries(toObject(counts['counts'])).filter(
    ([name, count]) => name !== 'total' && Number(count) > 0,
  )
  return parts.length === 0
    ? ''
    : `tasks: ${parts.map(([name, count]) => `${cellText(count)} ${cellText(name)}`).join(', ')}\n`
}

/** Children that are shown: those nearest to the workflow, oldest first. */
const MAX_CHILDREN = 50
/** That are told how to answer. */
const MAX_INQUIRIES = 5
const childColumns = ['id', 'status', 'task', 'action', 'start_timestamp']

async function renderChildren(session: Session, record: Json, { depth, width }: DisplayOptions): Promise<string> {
  const id = textOrEmpty(record['id'])
  const query = { depth: depth ?? -1, limit: MAX_CHILDREN, include_attributes: taskAttributes }
  const answer = await session.client.call('GET', `/executions/${segment(id)}/children`, { query })
  // A server that does not know the limit sends all.
  const all = listIn(answer)
  const children = all.slice(0, MAX_CHILDREN)
  if (children.length === 0) return ''
  const total = Math.max(all.length, Number(answer.headers['x-total-count'] ?? 0))
  const depths = new Map<unknown, number>([[record['id'], -1]])
  const rows = children.map((child) => {
    const level = (depths.get(child['parent']) ?? -1) + 1
    depths.set(child['id'], level)
    const marker = isWorkflow(child) ? '+ ' : ''
    return [
      `${'  '.repeat(Math.min(MAX_INDENT, level))}${marker}${cellText(textOrEmpty(child['id']))}`,
      statusText(child, Date.now()),
      taskLabel(child),
      cellText(attributeOf(child, 'action.ref')),
      formatTime(child['start_timestamp'], session.settings.timezone),
    ]
  })
  const { terminalWidth } = session
  const paint = session.isColored
    ? (column: number, _row: number, text: string): string => (column === 1 ? colorStatus(text) : text)
    : undefined
  const table = renderTable(childColumns, rows, { terminalWidth, paint, widths: width })
  const more =
    total > children.length
      ? `… and ${(total - children.length).toLocaleString('en-US')} more. To list the newest, execute:\n svc execution list --parent ${shownId(id)}\n`
      : ''
  return `${table}${more}${children.filter(isOpenInquiry).slice(0, MAX_INQUIRIES).map(inquiryAdvice).join('')}`
}

/** Puts `+ ` before the ids of workflows; where there are some, the other ids are indented as far. */
export function markWorkflows(records: Json[]): Json[] {
  const marked = records.map((record) => isWorkflow(record))
  if (!marked.includes(true)) return records
  return records.map((record, index) => ({
    ...record,
    id: `${marked[index] === true ? '+ ' : '  '}${textOrEmpty(record['id'])}`,
  }))
}

/** For a list: the status with its elapsed time. */
export function withStatusText(record: Json, nowMs: number): Json {
  return 'status' in record ? { ...record, status: statusText(toObject(record), nowMs) } : record
}
