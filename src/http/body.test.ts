import { request as httpRequest } from 'node:http'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startHttp, type TestHttp } from '../../tests/helpers/http.ts'
import { parseJson } from './json.ts'
import type { ErrorBody } from './errors.ts'
import type { Route } from './route.ts'

const MAX_BYTES = 100_000

const routes: Route[] = [
  {
    surface: 'api',
    method: 'post',
    path: '/echo',
    permission: 'public',
    summary: 'Returns the body.',
    body: {},
    response: {},
    handler: ({ body }) => ({ body }),
  },
]

let http: TestHttp

beforeAll(async () => {
  http = await startHttp(routes, { maxBodyBytes: MAX_BYTES })
})

afterAll(async () => {
  await http.close()
})

interface Answer {
  status: number
  body: ErrorBody & { body?: unknown }
}

async function post(body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}): Promise<Answer> {
  const response = await fetch(`${http.urls.api}/v1/echo`, { method: 'POST', body, headers })
  return { status: response.status, body: (await response.json()) as Answer['body'] } // all answers are JSON
}

const asJson = { 'Content-Type': 'application/json' }
const asForm = { 'Content-Type': 'application/x-www-form-urlencoded' }
const nested = (depth: number): string => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`

describe('content types of contract 00, 0.3', () => {
  test.each([
    ['application/json', '{"a":1}', { a: 1 }],
    ['application/json; charset=utf-8', '{"a":1}', { a: 1 }],
    ['application/json;charset=latin1', '{"a":"ä"}', { a: 'ä' }],
    ['APPLICATION/JSON', '{"a":1}', { a: 1 }],
    ['text/plain', '{"a":1}', { a: 1 }],
    ['application/json', '', {}],
    ['application/json', ' \n{"a":null}\t', { a: null }],
    ['application/json', '\ufeff{"a":1}', { a: 1 }],
    ['application/json', '{"a":1,"a":2}', { a: 2 }],
    ['application/json', '{"a":"\\u0000\\ud83d\\ude00"}', { a: '\0😀' }],
    ['application/x-www-form-urlencoded', 'a=1', { a: ['1'] }],
    ['application/x-www-form-urlencoded', 'a=1&b=&a=x+y%2Fz', { a: ['1', 'x y/z'], b: [''] }],
    ['application/x-www-form-urlencoded', 'constructor=1&toString=2', { constructor: ['1'], toString: ['2'] }],
    ['application/x-www-form-urlencoded', '', {}],
  ])('%s %j', async (type, text, value) => {
    expect(await post(text, { 'Content-Type': type })).toEqual({ status: 200, body: { body: value } })
  })

  test('none given is JSON', async () => {
    const json = '{"a":1}'
    const answer = await http.raw(
      `POST /v1/echo HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: ${json.length}\r\n\r\n${json}`,
    )
    expect(answer).toContain('200 OK')
    expect(answer).toContain('{"body":{"a":1}}')
  })

  test.each([
    'application/xml',
    'text/html',
    'application/jsonx',
    'application/json, text/html',
    'x',
    ';charset=utf-8',
  ])('%s is refused by name', async (type) => {
    const { status, body } = await post('{}', { 'Content-Type': type })
    expect(status).toBe(400)
    expect(body.code).toBe('CONTENT_TYPE_UNSUPPORTED')
    expect(body.faultstring).toContain(`Unsupported Content-Type: "${type.split(';', 1)[0]}"`)
  })
})

test('JSON sent as a form, as curl does unless told otherwise, is refused with the way out', async () => {
  for (const json of ['{"ttl": 60}', ' {"url": "a=1&b=2"}\n', '{}']) {
    const { status, body } = await post(json, asForm)
    expect([status, body.code]).toEqual([400, 'BODY_MALFORMED'])
    expect(body.faultstring).toContain('Content-Type: application/json')
  }
  expect((await post('{x}=1', asForm)).body).toEqual({ body: { '{x}': ['1'] } })
})

describe('what is not an object', () => {
  test.each([
    ['[1]', 'array'],
    ['"x"', 'string'],
    ['1.5', 'number'],
    ['1', 'integer'],
    ['true', 'boolean'],
    ['null', 'null'],
  ])('%s', async (text, named) => {
    const { status, body } = await post(text, asJson)
    expect(status).toBe(400)
    expect(body.faultstring).toBe(`Input body needs to be an object, got: ${named}`)
  })
})

describe('malformed bodies', () => {
  test.each([
    '{',
    '{"a":}',
    "{'a':1}",
    '{"a":1}}',
    '{"a":1} x',
    '{"a":NaN}',
    '{"a":1,}',
    '{"a":"\u0001"}',
    '{"a":"\\x"}',
    ']',
    ']]]{',
    'undefined',
    '\0',
  ])('%j', async (text) => {
    const { status, body } = await post(text, asJson)
    expect(status).toBe(400)
    expect(body.code).toBe('BODY_MALFORMED')
    expect(body.faultstring).toMatch(/^Failed to parse request body: ./)
    expect(body.faultstring.length).toBeLessThan(300)
  })

  test.each([asJson, asForm])('invalid UTF-8 in %j', async (headers) => {
    for (const bytes of [[0xff], [0xc3], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80]]) {
      const { status, body } = await post(Uint8Array.from([0x22, ...bytes, 0x22]), headers)
      expect(status).toBe(400)
      expect(body.faultstring).toContain('not valid UTF-8')
    }
  })

  test('nesting is bounded at 100, wherever it is', async () => {
    expect((await post(nested(100), asJson)).status).toBe(200)
    for (const depth of [101, 5000, 40_000]) {
      const { status, body } = await post(nested(depth), asJson)
      expect(status).toBe(400)
      expect(body.faultstring).toContain('nested more than 100 deep')
    }
    expect((await post(JSON.stringify({ text: '[{"'.repeat(5000) }), asJson)).status).toBe(200)
  })

  test('there are at most a million values, however short', () => {
    const list = (length: number): string => `[${Array.from({ length }, () => '{}').join(',')}]`
    expect(parseJson(list(499_999))).toHaveLength(499_999)
    expect(() => parseJson(list(500_001))).toThrow('more than 1000000 items')
    expect(() => parseJson(`[${Array.from({ length: 250_001 }, () => '{"\\n":1}').join(',')}]`)).toThrow(
      'more than 1000000 items',
    )
    expect(parseJson(JSON.stringify(',{['.repeat(1_000_001)))).toHaveLength(3_000_003)
  })

  test.each([
    '{"__proto__":{"isAdmin":true}}',
    '{"\\u005f_proto__":1}',
    '{"\\u005f\\u005fproto\\u005f\\u005f":1}',
    '{"_\\u005Fpr\\u006fto__":1}',
    '{"a":{"b":[{"__proto__":null}]}}',
    '{"a":1,"__proto__":{"a":2}}',
  ])('the key of prototypes: %s', async (text) => {
    const { status, body } = await post(text, asJson)
    expect(status).toBe(400)
    expect(body.faultstring).toContain('"__proto__"')
    expect(({} as Record<string, unknown>)['isAdmin']).toBeUndefined()
  })

  test('the key of prototypes in a form', async () => {
    for (const text of ['__proto__=1', 'a=1&%5f_proto__=2']) {
      expect((await post(text, asForm)).body.faultstring).toContain('"__proto__"')
    }
  })

  test('the word itself is only a word', async () => {
    const value = { a: '__proto__', constructor: { prototype: { b: 1 } }, c: '\\u005f' }
    expect((await post(JSON.stringify(value), asJson)).body.body).toEqual(value)
  })

  test('a form has at most 10,000 fields', async () => {
    const fields = (n: number): string => Array.from({ length: n }, () => 'a').join('&')
    expect((await post(fields(10_000), asForm)).status).toBe(200)
    const { status, body } = await post(fields(10_001), asForm)
    expect(status).toBe(400)
    expect(body.faultstring).toContain('more than 10000 fields')
  })
})

describe('size', () => {
  const ofSize = (bytes: number): string => JSON.stringify({ a: 'x'.repeat(bytes - 8) })

  test('counts bytes: the limit itself is accepted, one more is not', async () => {
    expect((await post(ofSize(MAX_BYTES), asJson)).status).toBe(200)
    const { status, body } = await post(ofSize(MAX_BYTES + 1), asJson)
    expect(status).toBe(413)
    expect(body).toEqual({
      faultstring: `The request body is larger than ${MAX_BYTES} bytes.`,
      code: 'BODY_TOO_LARGE',
      details: { max_bytes: MAX_BYTES },
    })
    expect((await post(JSON.stringify({ a: 'ä'.repeat(MAX_BYTES / 2) }), asJson)).status).toBe(413)
  })

  test('is refused as soon as it is announced', async () => {
    const head = 'POST /v1/echo HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000000000\r\n\r\n'
    expect(await http.raw(`${head}{`, (text) => text.includes('BODY_TOO_LARGE'))).toContain(' 413 ')
  })

  test('is refused as soon as it is too large, when nothing was announced', async () => {
    const head = 'POST /v1/echo HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n'
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
    const answer = await http.raw(head + chunk + chunk, (text) => text.includes('BODY_TOO_LARGE'))
    expect(answer).toContain(' 413 ')
  })

  test('the answer reaches a client that goes on sending', async () => {
    const statuses = await Promise.all(
      Array.from({ length: 5 }, async () => (await post(new Uint8Array(20_000_000), asJson)).status),
    )
    expect(statuses).toEqual([413, 413, 413, 413, 413])
  })
})

describe('compression', () => {
  const text = JSON.stringify({ a: 'x'.repeat(1000) })
  const encoded = (encoding: string): Record<string, string> => ({ ...asJson, 'Content-Encoding': encoding })

  test.each([
    ['gzip', gzipSync(text)],
    ['GZIP', gzipSync(text)],
    ['x-gzip', gzipSync(text)],
    ['deflate', deflateSync(text)],
    ['br', brotliCompressSync(text)],
    ['identity', Buffer.from(text)],
  ])('%s', async (encoding, bytes) => {
    const { status, body } = await post(new Uint8Array(bytes), encoded(encoding))
    expect(status).toBe(200)
    expect(body.body).toEqual(JSON.parse(text))
  })

  test.each(['gzip', 'deflate', 'br'])('%s of an empty body is an empty body', async (encoding) => {
    expect((await post('', encoded(encoding))).body.body).toEqual({})
  })

  test.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ])('a %s bomb is refused', async (encoding, compress) => {
    const bomb = new Uint8Array(compress(Buffer.alloc(60_000_000, ' ')))
    expect(bomb.length).toBeLessThan(MAX_BYTES)
    const before = process.memoryUsage.rss()
    expect((await post(bomb, encoded(encoding))).status).toBe(413)
    expect(process.memoryUsage.rss() - before).toBeLessThan(40_000_000)
  })

  test.each([
    ['gzip', Buffer.from(text)],
    ['gzip', gzipSync(text).subarray(0, 20)],
    ['deflate', gzipSync(text)],
    ['br', Buffer.from(text)],
    ['br', brotliCompressSync(text).subarray(0, 10)],
  ])('%s that is none is refused', async (encoding, bytes) => {
    const { status, body } = await post(new Uint8Array(bytes), encoded(encoding))
    expect(status).toBe(400)
    expect(body.faultstring).toContain('Content-Encoding')
  })

  test.each(['compress', 'gzip, gzip', 'zstd', 'x'])('%s is refused by name', async (encoding) => {
    const { status, body } = await post(text, encoded(encoding))
    expect(status).toBe(400)
    expect(body.faultstring).toContain(`"${encoding}"`)
  })
})

test('a client that leaves in the middle of its body is no failure', async () => {
  const outgoing = httpRequest(`${http.urls.api}/v1/echo`, { method: 'POST', headers: { 'Content-Length': '1000' } })
  const closed = new Promise((resolve) => outgoing.once('close', resolve))
  outgoing.on('error', () => undefined)
  outgoing.write('{"a":', () => outgoing.destroy())
  await closed
  expect((await post('{}', asJson)).status).toBe(200)
  expect(http.logged()).toBe('')
})
