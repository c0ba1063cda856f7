import { describe, expect, test } from 'vitest'
import { WrittenJson } from '../lib/json/index.ts'
import {
  arrayOf,
  isNullFilter,
  JsonText,
  listReply,
  pageHeaders,
  parseAttributes,
  parseItems,
  parsePage,
  parseSort,
  parseTime,
  slicePage,
} from './list.ts'

const options = { defaultLimit: 100, maxPageSize: 50 }
const admin = { isAdmin: true }
const user = { isAdmin: false }

describe('pages', () => {
  test.each([
    [{}, user, options, { limit: 50, offset: 0 }],
    [{}, admin, options, { limit: 100, offset: 0 }],
    [{}, user, { ...options, defaultLimit: undefined }, { limit: undefined, offset: 0 }],
    [{ limit: 50, offset: 7 }, user, options, { limit: 50, offset: 7 }],
    [{ limit: 5000 }, admin, options, { limit: 5000, offset: 0 }],
    [{ limit: -1 }, admin, options, { limit: undefined, offset: 0 }],
    [{ offset: 2 ** 31 - 1 }, admin, options, { limit: 100, offset: 2 ** 31 - 1 }],
  ])('%j', (query, principal, pageOptions, page) => {
    expect(parsePage(query, principal, pageOptions)).toEqual(page)
  })

  test.each([
    [{ limit: 0 }, admin, 'invalid', 'Limit, "0" specified, must be a positive number or -1'],
    [{ limit: -2 }, admin, 'invalid', 'Limit, "-2" specified, must be a positive number.'],
    [{ limit: -1 }, user, 'forbidden', 'limit=-1'],
    [{ limit: 51 }, user, 'forbidden', 'Limit "51" specified, maximum value is "50"'],
    [{ offset: 2 ** 31 }, admin, 'invalid', 'Offset "2147483648" specified is more than 32-bit int'],
    [{ offset: -1 }, admin, 'invalid', 'Offset "-1"'],
  ])('%j is refused', (query, principal, kind, message) => {
    expect(() => parsePage(query, principal, options)).toThrow(
      expect.objectContaining({ kind, message: expect.stringContaining(message) as unknown }),
    )
  })

  test('headers', () => {
    expect(pageHeaders({ limit: 10, offset: 0 }, 25)).toEqual({ 'X-Total-Count': '25', 'X-Limit': '10' })
    expect(pageHeaders({ limit: undefined, offset: 0 }, 25)).toEqual({ 'X-Total-Count': '25' })
  })

  test('slices', () => {
    expect(slicePage([1, 2, 3, 4], { limit: 2, offset: 1 })).toEqual([2, 3])
    expect(slicePage([1, 2, 3, 4], { limit: undefined, offset: 3 })).toEqual([4])
  })
})

describe('filters', () => {
  test('comma lists are bounded', () => {
    expect(parseItems(undefined)).toBeUndefined()
    expect(parseItems(['a'])).toEqual(['a'])
    expect(() => parseItems(Array.from({ length: 101 }, () => 'a'))).toThrow('Maximum of 100 items')
  })

  test('null in any letter case', () => {
    expect([isNullFilter('NULL'), isNullFilter('null'), isNullFilter(''), isNullFilter(undefined)]).toEqual([
      true,
      true,
      false,
      false,
    ])
  })

  test('times', () => {
    expect(parseTime({ a: '2026-01-31 12:00:00+00' }, 'a')).toBe('2026-01-31T12:00:00.000000Z')
    expect(parseTime({}, 'a')).toBeUndefined()
    expect(() => parseTime({ a: 'yesterday' }, 'a')).toThrow('a: Datetime value does not match expected format')
  })

  test('sorting honours supported names once', () => {
    expect(parseSort(['-status', 'x', '+id', ' name', 'status'], ['id', 'name', 'status'])).toEqual([
      { name: 'status', descending: true },
      { name: 'id', descending: false },
      { name: 'name', descending: false },
    ])
    expect(parseSort(undefined, ['id'])).toEqual([])
  })
})

describe('attributes', () => {
  const known = {
    known: ['id', 'ref', 'action', 'parameters', 'tags'],
    excludable: ['parameters'],
    always: ['id', 'ref'],
  }
  const record = {
    id: '1',
    ref: 'a.b',
    action: { ref: 'a.b', pack: 'a', deep: { x: 1, y: 2 } },
    tags: [],
    parameters: {},
  }

  test.each([
    [{}, record],
    [{ include_attributes: ['tags'] }, { id: '1', ref: 'a.b', tags: [] }],
    [
      { include_attributes: ['action.ref', 'action.deep.x'] },
      { id: '1', ref: 'a.b', action: { ref: 'a.b', deep: { x: 1 } } },
    ],
    [{ include_attributes: ['action.ref', 'action'] }, { id: '1', ref: 'a.b', action: record.action }],
    [{ include_attributes: ['action', 'action.ref'] }, { id: '1', ref: 'a.b', action: record.action }],
    [{ include_attributes: ['action.nothing', 'tags.x', 'action.toString'] }, { id: '1', ref: 'a.b', action: {} }],
    [{ exclude_attributes: ['parameters'] }, { id: '1', ref: 'a.b', action: record.action, tags: [] }],
  ])('%j', (query, result) => {
    expect(parseAttributes(query, known).apply(record)).toEqual(result)
  })

  test('a part of a long value that was not read', () => {
    const action = WrittenJson.of(JSON.stringify({ ...record.action, long: 'x'.repeat(70_000) }))
    const wanted = parseAttributes({ include_attributes: ['action.ref', 'action.deep.x'] }, known)
    expect(wanted.apply({ ...record, action })).toEqual({ id: '1', ref: 'a.b', action: { ref: 'a.b', deep: { x: 1 } } })
  })

  test.each([
    [
      { include_attributes: ['id'], exclude_attributes: ['parameters'] },
      'exclude_fields and include_fields arguments are mutually exclusive.',
    ],
    [{ include_attributes: ['x.y'] }, 'Invalid or unsupported include attribute specified: x.y'],
    [{ include_attributes: ['action..ref'] }, 'Invalid or unsupported include attribute specified: action..ref'],
    [{ include_attributes: ['constructor'] }, 'include attribute specified: constructor'],
    [{ exclude_attributes: ['id'] }, 'Invalid or unsupported exclude attribute specified: id'],
  ])('%j is refused', (query, message) => {
    expect(() => parseAttributes(query, known)).toThrow(message)
  })

  test('tells which attributes have to be read', () => {
    expect(parseAttributes({ include_attributes: ['action.ref'] }, known).needed).toEqual(
      new Set(['id', 'ref', 'action']),
    )
    expect(parseAttributes({ exclude_attributes: ['parameters'] }, known).needed).not.toContain('parameters')
    expect(parseAttributes({}, known).needed).toBeUndefined()
  })
})

describe('answers', () => {
  /** The pieces of the body, and how many records had been made when each came. */
  async function read(records: unknown[]): Promise<{ text: string; madeBefore: number[] }> {
    let made = 0
    function* make(): Generator<unknown> {
      for (const record of records) {
        made += 1
        yield record
      }
    }
    const { body, headers } = listReply(make(), { 'X-Total-Count': '1' })
    expect(headers).toEqual({ 'Content-Type': 'application/json; charset=UTF-8', 'X-Total-Count': '1' })
    const pieces = body as JsonText // the body of every list
    const begun = pieces.begin()
    if ('whole' in begun) return { text: begun.whole.toString(), madeBefore: [] }
    let text = ''
    const madeBefore: number[] = []
    for await (const piece of pieces) {
      text += piece
      madeBefore.push(made)
    }
    return { text, madeBefore }
  }

  test.each([[[]], [[{ a: 1 }]], [[1, 'zwei', null]]])('%j is one piece', async (records) => {
    expect(await read(records)).toEqual({ text: JSON.stringify(records), madeBefore: [] })
  })

  test('a long one comes in pieces, and its records are made on the way', async () => {
    const records = Array.from({ length: 1000 }, (_, n) => ({ n, text: 'ä'.repeat(1000) }))
    const { text, madeBefore } = await read(records)
    expect(JSON.parse(text)).toEqual(records)
    expect(madeBefore[0]).toBeLessThan(150)
    expect(madeBefore.length).toBeGreaterThan(10)
  })

  test.each<[name: string, record: unknown, text: string]>([
    ['text', 'ä\n'.repeat(1_000_000), JSON.stringify('ä\n'.repeat(1_000_000))],
    [
      'list',
      { list: Array.from({ length: 90_000 }, (_, n) => n) },
      JSON.stringify({ list: [...Array(90_000).keys()] }),
    ],
    ['stored text', WrittenJson.of(`{"a": "${'x😀'.repeat(700_000)}"}`), `{"a": "${'x😀'.repeat(700_000)}"}`],
  ])('a long record is written in turns of its own, and kept until then: %s', async (_, record, written) => {
    const text = arrayOf([1, record, record, 2])
    const pieces = new JsonText(text)
    expect(pieces.begin()).toEqual({ length: '[1,'.length })
    expect(pieces.kept).toBeGreaterThan(written.length / 10)
    const made: { piece: string; isKept: boolean }[] = []
    for await (const piece of pieces) made.push({ piece, isKept: pieces.kept > 0 })
    expect(made.map(({ piece }) => piece).join('')).toBe(`[1,${written},${written},2]`)
    expect(Math.max(...made.map(({ piece }) => piece.length))).toBeLessThan(6 * 65_536)
    // Nothing is kept between the two, and at the end.
    const changes = made.map(({ isKept }) => isKept).filter((isKept, index, all) => isKept !== all[index - 1])
    expect(changes).toEqual([true, false, true, false])
  })

  test('one that ends with a full piece ends well', async () => {
    const records = Array.from({ length: 5 }, () => 'x'.repeat(70_000))
    expect(JSON.parse((await read(records)).text)).toEqual(records)
  })
})
