import { describe, expect, test } from 'vitest'
import { problemOfHeader } from './header-rules.ts'
import { excerptOf, partsOf } from './request-text.ts'

describe('a request', () => {
  test('is its headers and its body', () => {
    const payload = { headers: { 'X-A': 'b', 'X-N': 5 }, headers_lower: {}, body: [1], __context: { original_id: 'x' } }
    expect(partsOf(payload)).toEqual({
      headers: [
        ['X-A', 'b'],
        ['X-N', '5'],
      ],
      body: [1],
      original: 'x',
    })
  })

  test.each([
    [null],
    ['text'],
    [[1]],
    [{ headers: 'x', body: 1 }],
    [{ __context: 5 }],
    [{ __context: { original_id: 5 } }],
  ])('of another kind is what it is: %j', (payload) => {
    expect(partsOf(payload)).toEqual({ headers: [], body: payload, original: undefined })
  })

  test('has a short text', () => {
    expect(excerptOf({ payload: { headers: {}, body: { a: '\n' } } })).toBe(String.raw`{"a":"\n"}`)
    expect(excerptOf({ payload: { headers: {}, body: { a: 'x'.repeat(5000) } } })).toHaveLength(301)
    expect(excerptOf({ payload_size: 12_345_678 })).toBe('12 MB')
    expect(excerptOf({})).toBe('')
  })
})

describe('a header', () => {
  test.each([
    ['X-Source', 'shop'],
    ['x-github-event', 'é'],
    ['', ''],
  ])('%s: %s can be sent', (name, value) => {
    expect(problemOfHeader(name, value)).toBeUndefined()
  })

  test.each([
    ['', 'x'],
    ['no name', 'x'],
    ['X-A\r\nX-B', 'x'],
    ['X-A', 'x\r\nX-B: y'],
    ['X-A', '€'],
    ['Cookie', 'a=b'],
    ['Proxy-Authorization', 'x'],
    ['Sec-Fetch-Site', 'x'],
    ['content-type', 'x'],
    ['Prefer', 'wait=1'],
    ['X-Auth-Token', 'x'],
  ])('%j: %j cannot', (name, value) => {
    expect(problemOfHeader(name, value)).toMatch(/\.$/)
  })
})
