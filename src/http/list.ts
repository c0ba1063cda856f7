/** What every list endpoint shares: paging, sorting, filters and the attributes to return (contract 00, 0.8–0.11). */
import { setImmediate } from 'node:timers/promises'
import { limitAboveMaximum, limitNeedsAdmin, queryInvalid } from '../core/errors.ts'
import { isId } from '../core/ids.ts'
import { parseTimestamp } from '../core/time.ts'
import {
  Reply,
  type ApiRequest,
  type Guard,
  type Principal,
  type QueryParameter,
  type QueryValue,
  type Queries,
  type QueryOf,
  type ParamsOf,
  type RequestOf,
  type Route,
} from './route.ts'
import { isObject, type Schema } from '../lib/schema/index.ts'
import { shown } from '../lib/text/index.ts'
import { isLong, writeJson, writeJsonInPieces, WrittenJson } from '../lib/json/index.ts'
import { textLengthOf } from '../core/template-values.ts'

type Query = Readonly<Record<string, QueryValue>>

const MAX_ITEMS = 100
const MAX_OFFSET = 2 ** 31

/** Declarations for a route's `query`. */
export const pageQuery = {
  limit: { type: 'integer', description: 'Most records to return; -1 (administrators) returns all.' },
  offset: { type: 'integer', description: 'Records to skip.' },
} as const satisfies Record<string, QueryParameter>

/** Declaration for a route's `query`. */
export const idQuery = {
  id: { type: 'array', description: 'Only records with these ids; at most 100.' },
} as const satisfies Record<string, QueryParameter>

/** Declarations for a route's `query`. */
export const attributeQuery = {
  include_attributes: { type: 'array', description: 'Only these attributes; dotted paths select nested ones.' },
  exclude_attributes: { type: 'array', description: 'All attributes except these.' },
} as const satisfies Record<string, QueryParameter>

/** Declaration for a route's `query`. */
export const showSecretsQuery = {
  show_secrets: { type: 'boolean', description: 'Returns secrets unmasked; administrators only.' },
} as const satisfies Record<string, QueryParameter>

/** Only administrators may use the parameter; it changes nothing for others (contract 00, 0.15). */
export function seesSecrets({ query, principal }: { query: Query; principal: Pick<Principal, 'isAdmin'> }): boolean {
  return query['show_secrets'] === true && principal.isAdmin
}

export interface Page {
  /** Undefined: no limit. */
  limit: number | undefined
  offset: number
}

export interface PageOptions {
  /** Records returned when the client sends no limit; undefined: no limit. */
  defaultLimit: number | undefined
  /** `api.max_page_size`; administrators may exceed it. */
  maxPageSize: number
}

/** @throws QUERY_INVALID, LIMIT_ABOVE_MAXIMUM, LIMIT_NEEDS_ADMIN */
export function parsePage(query: Query, principal: Pick<Principal, 'isAdmin'>, options: PageOptions): Page {
  return { limit: parseLimit(query['limit'], principal, options), offset: parseOffset(query['offset']) }
}

function parseLimit(
  given: QueryValue,
  { isAdmin }: Pick<Principal, 'isAdmin'>,
  { defaultLimit, maxPageSize }: PageOptions,
): number | undefined {
  if (typeof given !== 'number') {
    return defaultLimit === undefined || isAdmin ? defaultLimit : Math.min(defaultLimit, maxPageSize)
  }
  if (given === 0) {
    throw queryInvalid('Limit, "0" specified, must be a positive number or -1 for full result set.')
  }
  if (given < -1) throw queryInvalid(`Limit, "${given}" specified, must be a positive number.`)
  if (given === -1) {
    if (!isAdmin) throw limitNeedsAdmin()
    return undefined
  }
  if (given > maxPageSize && !isAdmin) throw limitAboveMaximum(given, maxPageSize)
  return given
}

function parseOffset(given: QueryValue): number {
  if (typeof given !== 'number') return 0
  if (given >= MAX_OFFSET) throw queryInvalid(`Offset "${given}" specified is more than 32-bit int`)
  if (given < 0) throw queryInvalid(`Offset "${given}" specified, must not be negative.`)
  return given
}

/** @param total matching records, limit and offset ignored; undefined: no `X-Total-Count` */
export function pageHeaders(page: Page, total: number | undefined): Record<string, string> {
  return {
    ...(total === undefined ? {} : { 'X-Total-Count': String(total) }),
    ...(page.limit === undefined ? {} : { 'X-Limit': String(page.limit) }),
  }
}

/** The items of a list on one page. */
export function slicePage<T>(items: readonly T[], { limit, offset }: Page): T[] {
  return items.slice(offset, limit === undefined ? undefined : offset + limit)
}

/** Everything. */
export const allPages: Page = { limit: undefined, offset: 0 }

/**
 * The page of a list that is short enough to have all of it in memory: of the records with the ids of the query, sorted as
 * requested; equal ones keep their order.
 *
 * @throws QUERY_INVALID
 */
export function arrange<T extends { id: string }, N extends string & keyof T>(
  records: readonly T[],
  { query, sort, page }: { query: Query; sort: readonly SortField<N>[]; page: Page },
): { records: T[]; total: number } {
  const ids = parseItems(query['id'])
  const found = ids === undefined ? records : records.filter(({ id }) => ids.includes(id))
  const sorted = sort.length === 0 ? found : found.toSorted(byFields(sort))
  return { records: slicePage(sorted, page), total: found.length }
}

function byFields<N extends string>(fields: readonly SortField<N>[]) {
  return (a: { readonly [name in N]?: unknown }, b: { readonly [name in N]?: unknown }): number => {
    for (const { name, descending } of fields) {
      const [first, second] = [String(a[name] ?? ''), String(b[name] ?? '')]
      if (first !== second) return first < second === descending ? 1 : -1
    }
    return 0
  }
}

/** The value of a filter; an empty string counts as absent. */
export function textFilter(query: Query, name: string): string | undefined {
  const value = query[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

export function flagFilter(query: Query, name: string): boolean | undefined {
  const value = query[name]
  return typeof value === 'boolean' ? value : undefined
}

const PIECE_LENGTH = 65_536

/**
 * The answer of a list. A long one is sent in pieces as fast as the client accepts it, so that it neither blocks the
 * event loop nor fills the memory.
 *
 * @param records made on demand
 */
export function listReply(records: Iterable<unknown>, headers: Record<string, string> = {}): Reply {
  return jsonReply(arrayOf(records), headers)
}

/** JSON text that is made in pieces. */
export interface TextSource extends Iterable<string> {
  /** What it keeps besides its next piece: characters of a long value that is being written; default 0. */
  readonly kept?: number
  /** Changes each item before it is written; absent: the text is not made of items. */
  readonly changeItems?: (change: (item: unknown) => unknown) => void
}

/**
 * The text of a JSON array. Of a short item it keeps neither the item nor its text: a generator would keep both for as
 * long as a slow client takes to read them. It keeps a long one until it is written, and says so.
 *
 * @param write yields the text of one item, in pieces; default: as a whole, if it is short
 */
export function arrayOf<T>(items: Iterable<T>, write?: (item: T) => Iterable<string>): TextSource {
  const source = items[Symbol.iterator]()
  let separator = '['
  let current: Iterator<string> | undefined
  let long: TextSource | undefined
  let isOver = false
  let change: ((item: unknown) => unknown) | undefined

  function next(): IteratorResult<string, undefined> {
    if (current !== undefined) {
      const piece = current.next()
      if (piece.done !== true) return piece
      current = long = undefined
    }
    if (isOver) return { done: true, value: undefined }
    const item = source.next()
    if (item.done === true) {
      isOver = true
      return { value: separator === '[' ? '[]' : ']' }
    }
    const before = separator
    separator = ','
    if (write !== undefined) current = write(item.value)[Symbol.iterator]()
    else {
      const value: unknown = change === undefined ? item.value : change(item.value)
      long = longText(value)
      if (long === undefined) return { value: before + writeJson(value) }
      current = long[Symbol.iterator]()
    }
    return { value: before }
  }
  return {
    [Symbol.iterator]: () => ({ next }),
    get kept() {
      return long?.kept ?? 0
    },
    ...(write === undefined ? { changeItems: (given) => (change = given) } : {}),
  }
}

/** A value whose text takes more than one turn of the event loop; undefined: it is short. */
export function longText(value: unknown): TextSource | undefined {
  if (typeof value === 'string' ? value.length <= PIECE_LENGTH : !isLong(value)) return undefined
  let left: unknown = value
  let kept = textLengthOf(value, Infinity)
  return {
    *[Symbol.iterator]() {
      // Reading the value took a turn.
      yield END_OF_TURN
      yield* writeJsonInPieces(left, true)
      left = undefined
      kept = 0
      yield END_OF_TURN
    },
    get kept() {
      return kept
    },
  }
}

/** A piece without text. */
const END_OF_TURN = ''

/** As `listReply`, for any JSON text that is made in pieces: one record may be as long as a list. */
export function jsonReply(text: TextSource, headers: Record<string, string> = {}): Reply {
  return new Reply(new JsonText(text), { headers: { 'Content-Type': 'application/json; charset=UTF-8', ...headers } })
}

/** Keeps no piece, but for the first one until it is read. Other requests have the event loop between two pieces. */
export class JsonText implements AsyncIterable<string> {
  readonly #text: TextSource
  readonly #source: Iterator<string>
  #isOver = false
  #first: string | undefined
  #changeText: ((text: string) => string) | undefined

  constructor(text: TextSource) {
    this.#text = text
    this.#source = text[Symbol.iterator]()
  }

  /** Bytes that it keeps until they are sent. */
  get kept(): number {
    return this.#text.kept ?? 0
  }

  /** Changes what is written. @param ofText for texts that are not made of items; no piece ends within a name */
  change(ofItem: (item: unknown) => unknown, ofText: (text: string) => string): void {
    if (this.#text.changeItems === undefined) this.#changeText = ofText
    else this.#text.changeItems(ofItem)
  }

  /** Makes the beginning. @returns all of it, if it is short; its bytes otherwise */
  begin(): { whole: Buffer } | { length: number } {
    const first = this.#nextPiece()
    if (this.#isOver) return { whole: Buffer.from(first) }
    this.#first = first
    return { length: first.length }
  }

  [Symbol.asyncIterator](): AsyncIterator<string, undefined> {
    return {
      next: async () => {
        const first = this.#first
        this.#first = undefined
        if (first !== undefined) return { done: false, value: first }
        await setImmediate()
        return this.#isOver ? { done: true, value: undefined } : { done: false, value: this.#nextPiece() }
      },
    }
  }

  /** Joins many small pieces into one of about `PIECE_LENGTH`. */
  #nextPiece(): string {
    let text = ''
    while (text.length < PIECE_LENGTH) {
      const piece = this.#source.next()
      if (piece.done === true) {
        this.#isOver = true
        break
      }
      if (piece.value === END_OF_TURN) break
      text += piece.value
    }
    return this.#changeText === undefined ? text : this.#changeText(text)
  }
}

/** Items of a comma-list filter such as `id`; undefined when it was not given. @throws QUERY_INVALID beyond 100 items */
export function parseItems(value: QueryValue): string[] | undefined {
  if (!Array.isArray(value)) return undefined
  if (value.length > MAX_ITEMS) {
    throw queryInvalid(`Maximum of ${MAX_ITEMS} items can be provided for a query parameter value`)
  }
  return value
}

/** The word `null` in any letter case asks for records without the attribute. */
export function isNullFilter(value: QueryValue): boolean {
  return typeof value === 'string' && value.toLowerCase() === 'null'
}

/** A time bound in wire form; undefined when it was not given. @throws QUERY_INVALID */
export function parseTime(query: Query, name: string): string | undefined {
  const given = query[name]
  if (typeof given !== 'string') return undefined
  const timestamp = parseTimestamp(given)
  if (timestamp === undefined) {
    throw queryInvalid(
      `${name}: Datetime value does not match expected format. Use UTC, for example 2026-01-31T12:00:00.000000Z, not "${shown(given)}".`,
    )
  }
  return timestamp
}

/** Exclusive id bounds of a page. */
export interface Place {
  before?: string
  after?: string
}

/** Declarations for the `query` of a list that is sorted by id. */
export const placeQuery = {
  before_id: {
    type: 'string',
    description:
      'Returns records before this id, which need not exist. It sets a position, as `offset` does, and omits `X-Total-Count`.',
  },
  after_id: {
    type: 'string',
    description: 'Returns records after this id: the newest ones, or the oldest where the list starts with the oldest.',
  },
} as const satisfies Record<string, QueryParameter>

/**
 * Reads `before_id` and `after_id`; undefined when both are absent.
 *
 * @param isInOrder whether the list is sorted by id
 * @throws QUERY_INVALID
 */
export function parsePlace(query: Query, isInOrder: boolean): Place | undefined {
  const place: Place = {}
  for (const [name, key] of [
    ['before_id', 'before'],
    ['after_id', 'after'],
  ] as const) {
    const id = textFilter(query, name)
    if (id === undefined) continue
    if (!isId(id)) throw queryInvalid(`${name}: "${shown(id)}" is not an id`)
    place[key] = id
  }
  if (place.before === undefined && place.after === undefined) return undefined
  if (!isInOrder) throw queryInvalid('before_id and after_id go on in the order of time: leave out "sort"')
  return place
}

export interface SortField<N extends string> {
  name: N
  descending: boolean
}

/** The supported sort fields in the order given; others are ignored (contract 00, 0.9). */
export function parseSort<N extends string>(value: QueryValue, supported: readonly N[]): SortField<N>[] {
  if (!Array.isArray(value)) return []
  const fields: SortField<N>[] = []
  for (const item of value.slice(0, MAX_ITEMS)) {
    // A `+` arrives as a space, which is its meaning in a query.
    const [, sign, given] = /^([-+ ]?)(.*)$/s.exec(item) ?? []
    const name = supported.find((candidate) => candidate === given)
    if (name !== undefined && !fields.some((field) => field.name === name)) {
      fields.push({ name, descending: sign === '-' })
    }
  }
  return fields
}

/** Which attributes of a record to return. */
export interface Projection {
  /** Top-level attributes that the answer needs; undefined: all. */
  readonly needed: ReadonlySet<string> | undefined
  apply(record: Record<string, unknown>): Record<string, unknown>
}

export interface AttributeOptions {
  /** Top-level attributes the record type has. */
  known: readonly string[]
  /** The ones that `exclude_attributes` may name. */
  excludable: readonly string[]
  /** Returned in any case when the record has them: `id`, and for pack content `ref` and its parts. */
  always: readonly string[]
}

/**
 * Reads `include_attributes` and `exclude_attributes` (contract 00, 0.11).
 *
 * @throws QUERY_INVALID for both at once, or for an attribute that does not exist or cannot be excluded
 */
export function parseAttributes(query: Query, { known, excludable, always }: AttributeOptions): Projection {
  const include = parseItems(query['include_attributes'])
  const exclude = parseItems(query['exclude_attributes'])
  if (include !== undefined && exclude !== undefined) {
    throw queryInvalid(
      'exclude_fields and include_fields arguments are mutually exclusive. Give include_attributes or exclude_attributes, not both.',
    )
  }
  if (exclude !== undefined) {
    const unsupported = exclude.find((name) => !excludable.includes(name))
    if (unsupported !== undefined) {
      throw queryInvalid(
        `Invalid or unsupported exclude attribute specified: ${shown(unsupported)}. Valid ones are: ${excludable.join(', ')}.`,
      )
    }
    const excluded = new Set(exclude)
    const needed = new Set(known.filter((name) => !excluded.has(name)))
    return {
      needed,
      apply: (record) => Object.fromEntries(Object.entries(record).filter(([name]) => !excluded.has(name))),
    }
  }
  if (include === undefined) return { needed: undefined, apply: (record) => record }

  const paths = include.map((path) => path.split('.'))
  for (const [i, path] of paths.entries()) {
    if (!known.includes(path[0] ?? '') || path.includes('')) {
      throw queryInvalid(
        `Invalid or unsupported include attribute specified: ${shown(include[i])}. Valid ones are: ${known.join(', ')}.`,
      )
    }
  }
  const wanted = wantedOf([...always.map((name) => [name]), ...paths])
  return { needed: new Set(wanted.keys()), apply: (record) => pick(record, wanted) }
}

/** Attribute names and the wanted parts of each; undefined: the whole value. */
type Wanted = Map<string, Wanted | undefined>

function wantedOf(paths: readonly string[][]): Wanted {
  const wanted: Wanted = new Map()
  for (const path of paths) {
    let at = wanted
    for (const [i, name] of path.entries()) {
      if (i === path.length - 1) {
        at.set(name, undefined)
        break
      }
      // An entry for the whole parent covers its parts.
      if (at.has(name) && at.get(name) === undefined) break
      const inner: Wanted = at.get(name) ?? new Map()
      at.set(name, inner)
      at = inner
    }
  }
  return wanted
}

function pick(record: Record<string, unknown>, wanted: Wanted): Record<string, unknown> {
  const picked: [string, unknown][] = []
  for (const [name, inner] of wanted) {
    if (!Object.hasOwn(record, name)) continue
    const value = inner === undefined ? record[name] : WrittenJson.read(record[name])
    if (inner === undefined) picked.push([name, value])
    else if (isObject(value)) picked.push([name, pick(value, inner)])
  }
  return Object.fromEntries(picked)
}

/** The headers of every list, for the OpenAPI document. */
const listHeaders = {
  'X-Total-Count': 'Records that match, however many are on this page.',
  'X-Limit': 'Most records of this page; absent when all are returned.',
}

const sortQuery = (names: readonly string[]): QueryParameter => ({
  type: 'array',
  description: `Fields to sort by, "-" before a name for descending: ${names.join(', ')}.`,
})

/** A request for a list, with the parsed query parameters of every list. */
export interface ListRequest<Query, Params extends Record<string, string>, S extends string> extends ApiRequest<
  undefined,
  Query,
  Params
> {
  page: Page
  /** Which attributes to return; all where the list offers no choice. */
  projection: Projection
  /** As requested; empty: the list's own order. */
  sort: SortField<S>[]
}

export interface Found<T> {
  /** The records of the page, made on demand. The endpoint drops attributes that the client did not request. */
  records: Iterable<T>
  /** Matching records, limit and offset ignored; undefined: not counted, such as for `before_id` and `after_id`. */
  total: number | undefined
  /** Further headers of the answer. */
  headers?: Readonly<Record<string, string>>
  /** The records have only the attributes that were requested; default false. */
  isProjected?: boolean
  /** The JSON text of a long record, in pieces; it leaves out attributes that were not requested. */
  write?: (record: T) => Iterable<string>
}

interface ListDeclaration<P extends string, Q extends Queries, S extends string, T extends object> {
  path: P
  summary: string
  /** Schema of one record. */
  record: Schema
  /** Query parameters of this list only, such as filters. */
  query?: Q
  page: PageOptions
  /** Attributes that clients may select; absent: records are returned whole. */
  attributes?: AttributeOptions | ((query: Query) => AttributeOptions)
  /** Headers of the answer besides those of every list: name → description. */
  answerHeaders?: Readonly<Record<string, string>>
  /** Fields that `sort` may name; absent: the list has one order. */
  sort?: readonly S[]
  /** Statuses in addition to 400, 403 and 503. */
  failures?: number[]
  find: (request: ListRequest<QueryOf<Q>, ParamsOf<P>, S>) => Found<T> | Promise<Found<T>>
}

const whole: Projection = { needed: undefined, apply: (record) => record }

/** A list endpoint on the API listener: paging, sorting, attributes and their headers are the same for every list. */
export function listEndpoint<
  const P extends string,
  T extends object,
  const Q extends Queries = {},
  const S extends string = never,
>(declared: ListDeclaration<P, Q, S, T> & Guard<RequestOf<P, Q, undefined>>): Route {
  const {
    path,
    summary,
    record,
    query,
    page,
    attributes,
    sort,
    failures = [],
    answerHeaders,
    find,
    ...guard
  } = declared
  return {
    surface: 'api',
    method: 'get',
    path,
    ...guard,
    summary,
    query: {
      ...query,
      ...(sort === undefined ? {} : { sort: sortQuery(sort) }),
      ...pageQuery,
      ...(attributes === undefined ? {} : attributeQuery),
    },
    response: { type: 'array', items: record },
    answerHeaders: { ...listHeaders, ...answerHeaders },
    failures: [400, 403, 503, ...failures],
    async handler(request) {
      const wanted = parsePage(request.query, request.principal, page)
      const options = typeof attributes === 'function' ? attributes(request.query) : attributes
      const projection = options === undefined ? whole : parseAttributes(request.query, options)
      const fields = parseSort(request.query['sort'], sort ?? [])
      const typed = request as RequestOf<P, Q, undefined> // of a route with this path, these parameters and no body
      const { records, total, headers, isProjected, write } = await find({
        ...typed,
        page: wanted,
        projection,
        sort: fields,
      })
      const isReady = projection === whole || isProjected === true
      const apply = (item: object): object => (isReady ? item : projection.apply({ ...item }))
      const text = write === undefined ? arrayOf(mapped(records, apply)) : arrayOf(records, write)
      return jsonReply(text, { ...pageHeaders(wanted, total), ...headers })
    },
  }
}

/** Keeps no item, unlike a generator. */
function mapped<T, U>(items: Iterable<T>, change: (item: T) => U): Iterable<U> {
  return {
    [Symbol.iterator]() {
      const source = items[Symbol.iterator]()
      return {
        next() {
          const item = source.next()
          return item.done === true ? { done: true, value: undefined } : { value: change(item.value) }
        },
      }
    },
  }
}
