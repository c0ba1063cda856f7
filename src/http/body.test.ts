import { request as httpRequest } from 'node:http'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startHttp, type TestHttp } from '../../tests/helpers/http.ts'
import { computedMs } from '../../tests/helpers/work.ts'
import { parseJsonBody } from './json.ts'
import type { ErrorBody } from './errors.ts'
import type { Route } from './route.ts'
import { rounds, variants } from '../../tests/helpers/tiers.ts'

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
  {
    surface: 'api',
    method: 'post',
    path: '/raw',
    permission: 'public',
    summary: 'Returns what was sent.',
    rawBody: {},
    response: {},
    handler: async ({ body, raw }) => ({
      body: body ?? null,
      bytes: raw?.bytes.toString('base64'),
      mediaType: raw?.mediaType,
      headers: raw?.headers.filter((name) => name.toLowerCase().startsWith('x-')),
      parsed: await raw?.parse({ dropsBlank: true }),
    }),
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
/** A form with the boundary `xx`. */
const multipart = (...fields: [name: string, value: string, more?: string][]): string =>
  `${fields
    .map(
      ([name, value, more = '']) => `--xx\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`,
    )
    .join('')}--xx--\r\n`
const nested = (depth: number): string => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`

describe('content types of contract 00, 0.3', () => {
  test.each([
    ['application/json', '{"a":1}', { a: 1 }],
    ['application/json; charset=utf-8', '{"a":1}', { a: 1 }],
    ['application/json;charset=latin1', '{"a":"ä"}', { a: 'ä' }],
    ['APPLICATION/JSON', '{"a":1}', { a: 1 }],
    ['text/plain', '{"a":1}', { a: 1 }],
    ['text/json', '{"a":1}', { a: 1 }],
    ['application/cloudevents+json; charset=utf-8', '{"a":1}', { a: 1 }],
    ['application/vnd.docker.distribution.events.v1+json', '{"a":1}', { a: 1 }],
    ['Application/Vnd.API+JSON', '{"a":1}', { a: 1 }],
    ['model/gltf+json', '{"a":1}', { a: 1 }],
    ['application/json', '', {}],
    ['application/json', ' \n{"a":null}\t', { a: null }],
    ['application/json', '\ufeff{"a":1}', { a: 1 }],
    ['application/json', '{"a":1,"a":2}', { a: 2 }],
    ['application/json', '{"a":"\\u0000\\ud83d\\ude00"}', { a: '\0😀' }],
    ['application/x-www-form-urlencoded', 'a=1', { a: ['1'] }],
    ['application/x-www-form-urlencoded', 'a=1&b=&a=x+y%2Fz', { a: ['1', 'x y/z'], b: [''] }],
    ['application/x-www-form-urlencoded', '+a+=%2B+%C3%A9+%+%zz', { ' a ': ['+ é % %zz'] }],
    [
      'application/x-www-form-urlencoded',
      '&&=&=x&a&b=1=2&%61=%e2%82%AC&%zz%4=%&%FF=%',
      { '': ['', 'x'], a: ['', '€'], b: ['1=2'], '%zz%4': ['%'], '\ufffd': ['%'] },
    ],
    ['application/x-www-form-urlencoded', 'constructor=1&toString=2', { constructor: ['1'], toString: ['2'] }],
    ['application/x-www-form-urlencoded', '', {}],
    ['application/x-www-form-urlencoded', '\uFEFFa=\uFEFF1&\uFEFFb=2', { a: ['\uFEFF1'], '\uFEFFb': ['2'] }],
    ['application/x-www-form-urlencoded', '\uFEFF', {}],
    ['application/json', '\uFEFF{"a":1}', { a: 1 }],
    ['multipart/form-data; boundary=xx', multipart(['a', '1'], ['b', ''], ['a', 'ä 2']), { a: ['1', 'ä 2'], b: [''] }],
    ['Multipart/Form-Data; charset=utf-8; boundary="xx"', multipart(['a', '1']), { a: ['1'] }],
    ['multipart/form-data; boundary=xx', '', {}],
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
    'application/+json',
    'application/x+jsonx',
    'application/x+json+xml',
    'json',
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

describe('multipart forms', () => {
  const asMultipart = { 'Content-Type': 'multipart/form-data; boundary=xx' }
  const fields = async (text: string | Uint8Array<ArrayBuffer>): Promise<unknown> => {
    const { status, body } = await post(text, asMultipart)
    expect(body.faultstring ?? '').toMatch(/^(Failed to parse request body: .|$)/)
    return status === 200 ? body.body : status
  }

  test('a file of JSON is a field: some senders give the event itself a file name', async () => {
    const long = JSON.stringify({ event: 'media.play', text: 'ä'.repeat(30_000) })
    const form = multipart(
      ['before', '1'],
      ['payload', long, '; filename="p.json"\r\nContent-Type: application/json'],
      ['thumb', '\xff', '; filename="t.jpg"\r\nContent-Type: image/jpeg'],
      ['payload', '{"b":2}', '; filename=""\r\nContent-Type: Application/CloudEvents+JSON; charset=utf-8'],
      ['after', '2'],
    )
    expect(await fields(form)).toEqual({ before: ['1'], payload: [long, '{"b":2}'], after: ['2'] })
    const invalid = multipart(['payload', '"\xff"', '; filename="p.json"\r\nContent-Type: application/json'])
    expect((await post(new Uint8Array(Buffer.from(invalid, 'latin1')), asMultipart)).status).toBe(400)
  })

  test('other files are left out, whatever they hold or are called', async () => {
    const file = multipart(
      ['a', '1'],
      ['upload', 'x'.repeat(50_000), '; filename="../../etc/passwd"'],
      ['other', '\0\xff', '; filename="b"\r\nContent-Type: application/octet-stream'],
      ['typed', 'y', '\r\nContent-Type: application/octet-stream'],
      ['c', '2'],
    )
    expect(await fields(file)).toEqual({ a: ['1'], c: ['2'] })
  })

  test('a part may say in what its text is written, and lines may be folded', async () => {
    expect(await fields(multipart(['a', 'ä', '\r\nContent-Type: text/plain; charset=utf-8']))).toEqual({ a: ['ä'] })
    const latin = Buffer.from(multipart(['a', '\xe4', '\r\nContent-Type: text/plain; charset=iso-8859-1']), 'latin1')
    expect(await fields(new Uint8Array(latin))).toEqual({ a: ['ä'] })
  })

  test('a field called like a header, a prototype or a file is a field', async () => {
    expect(await fields(multipart(['constructor', '1'], ['filepath', '/etc/passwd'], ['headers', 'x']))).toEqual({
      constructor: ['1'],
      filepath: ['/etc/passwd'],
      headers: ['x'],
    })
    expect(await fields(multipart(['__proto__', '1']))).toBe(400)
  })

  test('a form that is cut off anywhere is refused, and the server goes on', async () => {
    const whole = multipart(['a', '1'], ['f', 'content', '; filename="x"'], ['b', '2'])
    const end = whole.indexOf('--xx--') + '--xx--'.length
    for (let length = 1; length < end; length += rounds({ daily: 4, full: 1 })) {
      expect([length, await fields(whole.slice(0, length))]).toEqual([length, 400])
    }
    expect(await fields(whole.slice(0, end))).toEqual({ a: ['1'], b: ['2'] })
    expect(await fields(`before\r\n${whole}after`)).toEqual({ a: ['1'], b: ['2'] })
  })

  test('any damage gives fields or 400', async () => {
    const whole = Buffer.from(multipart(['a', '1'], ['f', 'content', '; filename="x"'], ['b', 'ü']))
    let seed = 1
    const random = (below: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
      return seed % below
    }
    for (let round = 0; round < rounds({ daily: 100, full: 500 }); round += 1) {
      const bytes = Uint8Array.from(whole)
      for (let n = 0; n <= random(4); n += 1) bytes[random(bytes.length)] = random(256)
      const { status } = await post(bytes, asMultipart)
      expect([200, 400]).toContain(status)
    }
  })

  test('what is not UTF-8 is refused', async () => {
    const invalid = Buffer.from(multipart(['a', '\xff']), 'latin1')
    expect((await post(new Uint8Array(invalid), asMultipart)).body.faultstring).toContain('not valid UTF-8')
    expect(await fields(multipart(['a', '\ufffd']))).toEqual({ a: ['\ufffd'] })
  })

  test.each([
    ['no boundary', 'multipart/form-data', multipart(['a', '1'])],
    ['an empty boundary', 'multipart/form-data; boundary=', multipart(['a', '1'])],
    ['another boundary', 'multipart/form-data; boundary=yy', multipart(['a', '1'])],
    ['JSON (CVE-2026-21858)', 'multipart/form-data; boundary=xx', '{"files": {"f": {"filepath": "/etc/passwd"}}}'],
    ['a urlencoded form', 'multipart/form-data; boundary=xx', 'a=1'],
  ])('%s is refused', async (_, type, text) => {
    const { status, body } = await post(text, { 'Content-Type': type })
    expect([status, body.code]).toEqual([400, 'BODY_MALFORMED'])
  })

  test('there are at most 10,000 parts; the rest is not read', async () => {
    const many = (n: number): string => '--xx\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'.repeat(n)
    const parts = await startHttp(routes, { maxBodyBytes: 20_000_000 })
    const answer = async (n: number): Promise<[number, number]> => {
      const before = computedMs()
      const response = await fetch(`${parts.urls.api}/v1/echo`, {
        method: 'POST',
        body: `${many(n)}--xx--\r\n`,
        headers: asMultipart,
      })
      await response.arrayBuffer()
      return [response.status, computedMs() - before]
    }
    try {
      expect((await answer(10_000))[0]).toBe(200)
      const [, allowed] = await answer(10_000)
      const [status, refused] = await answer(250_000)
      expect(status).toBe(400)
      // Reading them all would be 25 times the work, however fast the machine is.
      expect(refused).toBeLessThan(10 * allowed)
    } finally {
      await parts.close()
    }
  })
})

describe('what a body is depends on what it is declared as, once', () => {
  const raw = (headers: string, body: string): Promise<string> =>
    http.raw(
      `POST /v1/echo HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: ${body.length}\r\n${headers}\r\n${body}`,
    )

  test('CVE-2026-21858 two types are refused, whichever comes first', async () => {
    const types = ['application/json', 'multipart/form-data; boundary=xx', 'application/x-www-form-urlencoded']
    for (const first of types) {
      for (const second of types) {
        const answer = await raw(`Content-Type: ${first}\r\ncontent-type: ${second}\r\n`, '{"a":1}')
        expect(answer).toContain(' 400 ')
        expect(answer).toContain('The header Content-Type is given more than once.')
      }
    }
  })

  test('CVE-2026-21858 a body that looks like another type is not taken for it', async () => {
    const upload = JSON.stringify({ files: [{ filepath: '/etc/passwd', originalFilename: 'x' }] })
    expect((await post(upload, asJson)).body.body).toEqual(JSON.parse(upload))
    expect((await post(upload, asForm)).status).toBe(400)
    expect((await post(multipart(['a', '1']), asJson)).status).toBe(400)
    const { body } = await post(multipart(['a', '1']), asForm)
    expect(Object.keys(body.body ?? {})).not.toContain('a')
  })
})

describe('a raw body', () => {
  const send = async (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string>) => {
    const response = await fetch(`${http.urls.api}/v1/raw`, { method: 'POST', body, headers })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> } // all answers are JSON
  }
  const base64 = (value: string | Uint8Array): string => Buffer.from(value).toString('base64')

  test('is what was sent, byte by byte, and is parsed when asked', async () => {
    const text = ' {"a" : [1.0,\t"\\u00e4"] }\n'
    const { status, body } = await send(text, { ...asJson, 'X-One': 'a', 'X-Two': 'b' })
    expect(status).toBe(200)
    expect(body).toMatchObject({ body: null, bytes: base64(text), mediaType: 'application/json' })
    expect(body['parsed']).toEqual({ a: [1, 'ä'] })
  })

  test('may be any JSON value, and a form without its blanks', async () => {
    for (const value of [[1], 'x', 5, null, true]) {
      expect((await send(JSON.stringify(value), asJson)).body['parsed']).toEqual(value)
    }
    expect((await send('a=&b=1&a=2&c', asForm)).body['parsed']).toEqual({ a: ['2'], b: ['1'] })
    const form = multipart(['a', ''], ['b', '1'])
    const { body } = await send(form, { 'Content-Type': 'multipart/form-data; boundary=xx' })
    expect(body['parsed']).toEqual({ b: ['1'] })
  })

  test('stays compressed as it came; what is parsed is not', async () => {
    const bytes = new Uint8Array(gzipSync('{"a":1}'))
    const { body } = await send(bytes, { ...asJson, 'Content-Encoding': 'gzip' })
    expect(body).toMatchObject({ bytes: base64(bytes), parsed: { a: 1 } })
  })

  test('is bounded like any other, announced or not', async () => {
    expect((await send('x'.repeat(MAX_BYTES + 1), asJson)).status).toBe(413)
    const chunked = await http.raw(
      `POST /v1/raw HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n${`10000\r\n${'x'.repeat(0x10000)}\r\n`.repeat(2)}`,
      (text) => text.includes('BODY_TOO_LARGE'),
    )
    expect(chunked).toContain(' 413 ')
    const bomb = new Uint8Array(gzipSync(Buffer.alloc(60_000_000, ' ')))
    expect((await send(bomb, { ...asJson, 'Content-Encoding': 'gzip' })).status).toBe(413)
  })

  test('of a type that nothing can be made of is refused when it is parsed', async () => {
    const { status, body } = await send('<a/>', { 'Content-Type': 'application/xml' })
    expect([status, body['code']]).toEqual([400, 'CONTENT_TYPE_UNSUPPORTED'])
  })
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

  test('there are at most a hundred thousand values, however short', async () => {
    const list = (length: number): string => `[${Array.from({ length }, () => '{}').join(',')}]`
    expect(await parseJsonBody(list(49_999))).toHaveLength(49_999)
    await expect(parseJsonBody(list(50_001))).rejects.toThrow('more than 100000 items')
    await expect(parseJsonBody(`[${Array.from({ length: 50_001 }, () => '{"\\n":1}').join(',')}]`)).rejects.toThrow(
      'more than 100000 items',
    )
    expect(await parseJsonBody(JSON.stringify(',{['.repeat(1_000_001)))).toHaveLength(3_000_003)
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

  const bombs = [
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ] as const

  test.each(variants(bombs))('a %s bomb is refused', async (encoding, compress) => {
    const whole = Buffer.alloc(60_000_000, ' ')
    const bomb = new Uint8Array(compress(whole))
    expect(bomb.length).toBeLessThan(MAX_BYTES)
    // Of this thread alone: others of the test run have memory of their own.
    const heldBytes = (): number => process.memoryUsage().arrayBuffers
    const before = heldBytes()
    let most = before
    let isAnswered = false
    const look = (): void => {
      most = Math.max(most, heldBytes())
      if (!isAnswered) setImmediate(look)
    }
    look()
    const { status } = await post(bomb, encoded(encoding))
    isAnswered = true
    expect(status).toBe(413)
    expect(most - before).toBeLessThan(40_000_000)
    // Had it been let go meanwhile, the sum would tell nothing.
    expect(whole).toHaveLength(60_000_000)
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
