import { describe, expect, it } from 'vitest'
import { AppError } from '../../core/errors.ts'
import { clip, createRedactor, escapeUnprintable, secretMask } from './redact.ts'

const { isSecret, copier, maskUrl } = createRedactor(true, ['pin', 'X-Custom'])
const copy = (value: unknown): unknown => copier()('value', value)
const json = (value: unknown): unknown => JSON.parse(JSON.stringify(copy(value)))

describe('secret names', () => {
  it.each([
    'password',
    'PASSWORD',
    'auth_token',
    'token',
    'secret',
    'credentials',
    'svc_auth_token',
    'sudo_password',
    'bindPassword',
    'X-Auth-Token',
    'Svc-Api-Key',
    'apiKey',
    'authorization',
    'Proxy-Authorization',
    'set-cookie',
    'client_secret',
    'pin',
    'card-pin',
    'x_custom',
    `${'x'.repeat(100_000)}_password`,
  ])('%s', (name) => expect(isSecret(name)).toBe(true))

  it.each(['', 'user', 'token_id', 'passwords_changed', 'tokenizer', 'spin', 'secretary', 'key', 'monkey'])(
    'not %s',
    (name) => expect(isSecret(name)).toBe(false),
  )

  it('are masked whatever the type and wherever they are', () => {
    const value = {
      password: { a: 1 },
      list: [{ token: ['a', 'b'] }, new Map([['api_key', 1]])],
      headers: { 'X-Auth-Token': 'x', accept: '*' },
      nothing: { secret: null, token: undefined },
    }
    expect(json(value)).toEqual({
      password: secretMask,
      list: [{ token: secretMask }, { api_key: secretMask }],
      headers: { 'X-Auth-Token': secretMask, accept: '*' },
      nothing: { secret: null },
    })
    expect(copier()('pin', 1234)).toBe(secretMask)
  })

  it('are shown when masking is off', () => {
    expect(createRedactor(false, ['pin']).copier()('pin', 1234)).toBe(1234)
  })

  it.each([
    ['/v1/x', '/v1/x'],
    ['/v1/x?limit=1', '/v1/x?limit=1'],
    ['/v1/x?x-auth-token=abc&limit=1', `/v1/x?x-auth-token=${secretMask}&limit=1`],
    ['/v1/x?a=1&svc-api-key=a=b', `/v1/x?a=1&svc-api-key=${secretMask}`],
    ['/v1/x?x%2Dauth%2dtoken=abc', `/v1/x?x%2Dauth%2dtoken=${secretMask}`],
    ['/v1/x?%=1&token=abc', `/v1/x?%=1&token=${secretMask}`],
    ['/v1/x?token', '/v1/x?token'],
    ['https://h/?a?token=1', `https://h/?a?token=${secretMask}`],
  ])('masks the query of %s', (url, expected) => expect(maskUrl(url)).toBe(expected))
})

describe('copies', () => {
  it('are plain JSON values', () => {
    expect(
      json({
        date: new Date(0),
        noDate: new Date(Number.NaN),
        bytes: Buffer.from('abc'),
        big: 12n,
        huge: 2n ** 4096n,
        nan: Number.NaN,
        set: new Set([1, undefined]),
        map: new Map<unknown, unknown>([
          [{}, 1],
          [2, 3],
        ]),
        url: new URL('http://h/x'),
        symbol: Symbol('s'),
        call: () => 1,
        none: undefined,
        nil: null,
      }),
    ).toEqual({
      date: '1970-01-01T00:00:00.000Z',
      noDate: 'Invalid Date',
      bytes: '[3 bytes]',
      big: '12',
      huge: '[large number]',
      nan: 'NaN',
      set: [1, null],
      map: { '[object]': 1, '2': 3 },
      url: 'http://h/x',
      symbol: 's',
      call: '[function]',
      nil: null,
    })
  })

  it('do not follow circles or great depth', () => {
    const circle: Record<string, unknown> = { list: [] }
    circle['self'] = circle
    circle['list'] = [circle]
    expect(json(circle)).toEqual({ list: ['[circular]'], self: '[circular]' })
    let deep: unknown = 'end'
    for (let index = 0; index < 10_000; index += 1) deep = { deep }
    expect(JSON.stringify(copy(deep)).length).toBeLessThan(200)
  })

  it('are bounded in items, text and total size', () => {
    expect(json(Array.from({ length: 60 }, (_, index) => index))).toHaveLength(51)
    expect(json(new Map(Array.from({ length: 60 }, (_, index) => [`k${index}`, index])))).toMatchObject({
      '…': '10 more',
    })
    expect(copy('x'.repeat(1_000_000))).toBe(`${'x'.repeat(2048)}…`)
    const wide = (depth: number): unknown =>
      depth === 0
        ? 'x'.repeat(10_000)
        : Object.fromEntries(Array.from({ length: 20 }, (_, index) => [index, wide(depth - 1)]))
    expect(JSON.stringify(copy(wide(4))).length).toBeLessThan(80_000)
  })

  it('share one allowance', () => {
    const shared = copier()
    for (let index = 0; index < 20; index += 1) shared('a', 'x'.repeat(2048))
    expect(shared('b', 'text')).toBe('…')
    expect(shared('password', 'text')).toBe(secretMask)
  })

  it('tell errors with code, details and causes', () => {
    const root = Object.assign(new TypeError('root'), { code: 'E_ROOT', request: { password: 'x' } })
    const error = new AppError('INTERNAL', 'outer', { cause: root, details: { token: 't', a: 1 } })
    const { frames, cause, ...rest } = json(error) as Record<string, unknown>
    expect(rest).toEqual({ name: 'AppError', code: 'INTERNAL', message: 'outer', details: { token: secretMask, a: 1 } })
    expect(frames).toEqual(expect.arrayContaining([expect.stringContaining('redact.test.ts')]))
    expect(cause).toMatchObject({ name: 'TypeError', code: 'E_ROOT', message: 'root' })
    expect(cause).not.toHaveProperty('request')
    expect(json(new AggregateError([new Error('one'), 'two'], 'both'))).toMatchObject({
      message: 'both',
      errors: [{ message: 'one' }, 'two'],
    })
  })

  it('end chains of causes', () => {
    const circle = new Error('a')
    circle.cause = new Error('b', { cause: circle })
    expect(json(circle)).toMatchObject({ message: 'a', cause: { message: 'b', cause: '[circular]' } })
    let long = new Error('0')
    for (let index = 1; index < 1000; index += 1) long = new Error(String(index), { cause: long })
    expect(JSON.stringify(copy(long)).length).toBeLessThan(20_000)
  })

  it('survive hostile objects', () => {
    const bomb = (): never => {
      throw new Error('boom')
    }
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    const hostileError = new Error('x')
    Object.defineProperty(hostileError, 'message', { get: bomb })
    const array: unknown[] = [1]
    Object.defineProperty(array, Symbol.iterator, { value: bomb })
    const value = {
      get getter(): string {
        return bomb()
      },
      proxy,
      trap: new Proxy({}, { ownKeys: bomb, get: bomb, getPrototypeOf: bomb }),
      toJSON: bomb,
      toString: bomb,
      hostileError,
      array,
      fine: 1,
    }
    expect(json(value)).toEqual({
      getter: '[unreadable]',
      proxy: '[unreadable]',
      trap: '[unreadable]',
      toJSON: '[function]',
      toString: '[function]',
      hostileError: '[unreadable]',
      array: '[unreadable]',
      fine: 1,
    })
    expect(copy(proxy)).toBe('[unreadable]')
  })

  it('keep names of Object.prototype as data', () => {
    const value: unknown = JSON.parse('{"__proto__": {"polluted": 1}, "constructor": 2}')
    expect(JSON.stringify(copy(value))).toBe('{"__proto__":{"polluted":1},"constructor":2}')
    expect('polluted' in {}).toBe(false)
  })
})

describe('text', () => {
  it.each([
    ['a\nb\r\tc', 'a\\nb\\r\\tc'],
    ['\u001b[31m\0\u007f\u0085', '\\u001b[31m\\u0000\\u007f\\u0085'],
    ['\u2028\u2029\u202e\ufeff\u200b', '\\u2028\\u2029\\u202e\\ufeff\\u200b'],
    ['\ud800 \udc00', '\\ud800 \\udc00'],
    ['\u{e0001}', '\\udb40\\udc01'],
    ['grüße 漢 😀', 'grüße 漢 😀'],
  ])('escapes %j', (text, expected) => expect(escapeUnprintable(text)).toBe(expected))

  it('makes equivalent JSON of JSON', () => {
    const value = { 'a\u2028': 'x\n\u0085\u202e\u{e0001}\ud800' }
    const escaped = escapeUnprintable(JSON.stringify(value))
    expect(JSON.parse(escaped)).toEqual(value)
    expect(escaped).toMatch(/^[\x20-\x7e]+$/)
  })

  it('clips at whole characters', () => {
    expect(clip('abc', 3)).toBe('abc')
    expect(clip('abcd', 3)).toBe('abc…')
    expect(clip('ab😀d', 3)).toBe('ab…')
  })
})
