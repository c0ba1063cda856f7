/** Reading and printing records of any kind: lists page by page, one record as a table (contract 09, 9.2). */
import { secretMask } from '../lib/log/index.ts'
import { segment, type JsonRequest, type Query } from './connection/client.ts'
import { listIn, recordIn, textOrEmpty, type ApiResponse } from './connection/responses.ts'
import { exitCodes } from './exit-codes.ts'
import { CliFailure, HttpFailure, NotFound } from './failures.ts'
import {
  attributeOf,
  cellText,
  colorStatus,
  formatTime,
  isTimeName,
  pickAttributes,
  printable,
  renderTable,
  truncationNote,
  type Json,
} from './output/print.ts'
import { progressText } from './output/progress.ts'
import type { Session } from './session.ts'

/** Every server accepts a page of this size. */
const PAGE_SIZE = 100
/** When this many pages in a row hold nothing new, the server ignores which page is asked for. */
const MAX_REPEATED_PAGES = 20

/** How many records a list has that is asked for without `-n`. */
const DEFAULT_COUNT = 50

export interface RecordPage {
  records: Json[]
  /** The list has more records, and the caller did not set a limit. */
  isTruncated: boolean
}

/** The first records of a list. @param last how many, as `-n` says: -1 for all, undefined for `DEFAULT_COUNT` */
export async function listRecords(
  session: Session,
  path: string,
  query: Query,
  last: number | undefined,
): Promise<RecordPage> {
  const count = last ?? DEFAULT_COUNT
  const records = new Map<string, Json>()
  const progress = session.progress('Reading')
  let repeated = 0
  for (let offset = 0; ;) {
    const wanted = count === -1 ? PAGE_SIZE : Math.min(PAGE_SIZE, count - records.size)
    const answer = await session.client.call('GET', path, { query: { ...query, limit: wanted, offset } })
    const page = listIn(answer)
    const total = Number(answer.headers['x-total-count'] ?? offset + page.length)
    const before = records.size
    // New records move others to the next page, where they appear again.
    for (const [index, record] of page.entries())
      records.set(textOrEmpty(record['id']) || String(offset + index), record)
    repeated = records.size === before ? repeated + 1 : 0
    if (repeated > MAX_REPEATED_PAGES) {
      throw new CliFailure(
        'The server returns the same page repeatedly. Check that --api-url is the API of an svc server.',
      )
    }
    offset += page.length
    const isEnd = page.length === 0 || offset >= total
    if (!isEnd && (count === -1 || records.size < count)) {
      progress.update(`Reading: ${progressText(offset, count === -1 ? total : Math.min(count, total))}`)
      continue
    }
    progress.stop()
    // Lists that have no pages come as a whole.
    const wantedRecords = [...records.values()].slice(0, count === -1 ? undefined : count)
    const notesTruncation = session.form === 'human' || last === undefined
    return { records: wantedRecords, isTruncated: notesTruncation && (!isEnd || wantedRecords.length < records.size) }
  }
}

export interface ListDisplay {
  columns: readonly string[]
  /** Attributes asked for with `-a`; default: the columns, and in machine output all. */
  attributes?: readonly string[] | undefined
  /** Content width of the columns; default: as wide as what is in them. */
  widths?: readonly number[] | undefined
  name: string
  pluralName: string
  /** More would have matched. Default false. */
  isTruncated?: boolean
}

/**
 * Prints a list in the form asked for, and a note when it is only the beginning of one: a file that it is written into
 * may be taken for the whole.
 */
export async function printList(session: Session, records: readonly Json[], display: ListDisplay): Promise<void> {
  const { attributes } = display
  const isAll = attributes?.includes('all') === true
  if (session.form !== 'human') {
    const shown = attributes === undefined || isAll ? records : records.map((each) => pickAttributes(each, attributes))
    await session.printMachine(shown)
  } else if (records.length === 0) {
    await session.print('No matching items found\n')
  } else {
    await session.print(renderList(session, records, display))
  }
  if (display.isTruncated === true) session.note(truncationNote(records.length, display.pluralName, display.name))
}

function renderList(session: Session, records: readonly Json[], display: ListDisplay): string {
  const { attributes, widths } = display
  const columns = attributes?.includes('all')
    ? [...new Set(records.flatMap((record) => Object.keys(record)))]
    : (attributes ?? display.columns)
  const { timezone } = session.settings
  const rows = records.map((record) =>
    columns.map((column) => {
      const value = attributeOf(record, column)
      return isTimeName(column) ? formatTime(value, timezone) : cellText(value)
    }),
  )
  const status = columns.indexOf('status')
  const paint = (column: number, _row: number, text: string): string => (column === status ? colorStatus(text) : text)
  const options = { widths, terminalWidth: session.terminalWidth, paint: session.isColored ? paint : undefined }
  return renderTable(columns.map(printable), rows, options)
}

/** One record as a table of two columns, Property and Value. */
export function renderRecord(
  session: Session,
  record: Json,
  names: readonly string[],
  widths?: readonly number[],
): string {
  const rows = names.map((name) => {
    const value = attributeOf(record, name)
    return [cellText(name), isTimeName(name) ? formatTime(value, session.settings.timezone) : cellText(value)]
  })
  const status = names.indexOf('status')
  const paint = (column: number, row: number, text: string): string =>
    column === 1 && row === status ? colorStatus(text) : text
  return renderTable(['Property', 'Value'], rows, {
    widths,
    terminalWidth: session.terminalWidth,
    paint: session.isColored ? paint : undefined,
  })
}

/** One record in the form asked for. @param order names that come first */
export async function printRecord(
  session: Session,
  record: Json,
  order: readonly string[],
  attributes: readonly string[] | undefined,
): Promise<void> {
  const isAll = attributes === undefined || attributes.includes('all')
  if (session.form !== 'human') {
    await session.printMachine(isAll ? record : pickAttributes(record, attributes))
    return
  }
  const known = order.filter((name) => Object.hasOwn(record, name))
  const names = isAll ? [...new Set([...known, ...Object.keys(record)])] : attributes
  await session.print(renderRecord(session, record, names))
}

/** A kind of things that the server has. */
export interface CliRecordKind {
  /** Display name, such as `Action`. */
  name: string
  /** Of their list, below the address of the API, such as `/actions`. */
  path: string
}

/** One thing that a request is about. */
export interface Subject {
  /** Display name, such as `Action`. */
  kind: string
  /** Of the list it is in, such as `/actions`. */
  path: string
  id: string
  /** What of it is asked for, such as `/explain`; default: the thing itself. */
  part?: string
  /** The id is a credential, which is never printed. Default false. */
  isSecret?: boolean
}

export function subjectOf({ name, path }: CliRecordKind, id: string): Subject {
  return { kind: name, path, id }
}

/** Codes of a 404 that do not mean that the thing asked for is missing. */
export const otherAbsences: ReadonlySet<string> = new Set(['AUTHENTICATION_OFF', 'NOT_A_WORKFLOW', 'ROUTE_UNKNOWN'])

/** @throws NotFound */
export async function getRecord(session: Session, kind: CliRecordKind, id: string): Promise<Json> {
  return recordIn(await callOn(session, 'GET', subjectOf(kind, id)))
}

/** A request about one thing. @throws NotFound */
export async function callOn(
  session: Session,
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  { kind, path, id, part = '', isSecret = false }: Subject,
  request: Omit<JsonRequest, 'shownPath'> = {},
): Promise<ApiResponse> {
  const shownId = isSecret ? secretMask : id
  if (id === '') throw new NotFound(kind, shownId)
  try {
    const shownPath = `${path}/${isSecret ? secretMask : segment(id)}${part}`
    return await session.client.call(method, `${path}/${segment(id)}${part}`, { ...request, shownPath })
  } catch (error) {
    const isAboutId = error instanceof HttpFailure && error.status === 404 && !otherAbsences.has(error.code)
    throw isAboutId ? new NotFound(kind, shownId) : error
  }
}

/** Creates something on the server. A refusal ends with 2 (contract 09, 9.1), a missing login with 1. */
export async function createRecord(session: Session, path: string, body: unknown): Promise<Json> {
  try {
    return recordIn(await session.client.call('POST', path, { body }))
  } catch (error) {
    if (!(error instanceof HttpFailure) || error.status === 401) throw error
    throw new CliFailure(error.message, exitCodes.usage)
  }
}

/** Prints what was done, for commands without a result. JSON and YAML output is a record with `message`. */
export async function printDone(session: Session, sentence: string): Promise<void> {
  if (session.form === 'human') await session.print(`${printable(sentence)}\n`)
  else await session.printMachine({ message: sentence })
}

/**
 * Does some work for each id. One that does not exist, or that the server refuses when there are several, is reported,
 * and the work goes on with the next.
 *
 * @returns the worst exit code
 */
export async function forEachId(
  session: Pick<Session, 'print'>,
  ids: readonly string[],
  work: (id: string) => Promise<number>,
): Promise<number> {
  let worst: number = exitCodes.ok
  for (const id of ids) {
    try {
      worst = Math.max(worst, await work(id))
    } catch (error) {
      if (error instanceof NotFound) await session.print(`${error.message}\n\n`)
      else if (error instanceof HttpFailure && error.status < 500 && error.status !== 401 && ids.length > 1) {
        await session.print(`ERROR: ${printable(error.message)}\n`)
      } else throw error
      worst = Math.max(worst, error.exitCode)
    }
  }
  return worst
}
