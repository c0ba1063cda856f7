import { hostname } from 'node:os'
import { describe, expect, test } from 'vitest'
import { loadConfig } from '../config/index.ts'
import { createOriginPolicy, originSettings, type Addressee, type OriginPolicySettings, type Sender } from './origin.ts'

const allowedOrigins = ['https://good.example', 'http://127.0.0.1:3000']

const policy = (more: Partial<OriginPolicySettings> = {}) =>
  createOriginPolicy({ allowedOrigins, knownHosts: undefined, ...more })

const to = (host: string | undefined, isSecure = false): Addressee => ({ host, isSecure })

const page = (origin: string | undefined, site?: string): Sender => ({ origin, site })

/** Origins that only look like an allowed one. */
const foreign = [
  'null',
  'https://evil.example',
  'http://good.example',
  'https://good.example:8443',
  'https://good.example.evil.example',
  'https://evil-good.example',
  'https://agood.example',
  'https://good.example@evil.example',
  'https://sub.good.example',
  'https://good.exampl',
  'HTTPS://GOOD.EXAMPLE',
  'https://good.example/',
  'https://good.example, https://evil.example',
  'https://good.example\0',
  'http://127.0.0.1',
  'http://127.0.0.1:30000',
  'http://127.0.0.1.evil.example:3000',
  'http://localhost:3000',
  'file://',
  '',
]

describe('CORS headers', () => {
  test.each(allowedOrigins)('%s is named', (origin) => {
    expect(policy().corsHeaders(origin)).toEqual({
      'Access-Control-Allow-Origin': origin,
      'Access-Control-Allow-Credentials': 'true',
      'Access-Control-Allow-Methods': 'GET,POST,PUT,DELETE,OPTIONS',
      'Access-Control-Allow-Headers': expect.stringContaining(
        'Content-Type,Authorization,X-Auth-Token,Svc-Api-Key,X-Request-ID',
      ) as unknown,
      'Access-Control-Expose-Headers': 'Content-Type,X-Limit,X-Total-Count,X-Request-ID',
      Vary: 'Origin',
    })
  })

  test.each([undefined, ...foreign])('%j is answered with the first allowed one', (origin) => {
    expect(policy().corsHeaders(origin)['Access-Control-Allow-Origin']).toBe('https://good.example')
  })

  test('nobody is named where nobody is allowed', () => {
    const headers = policy({ allowedOrigins: [] }).corsHeaders('https://evil.example')
    expect(headers).not.toHaveProperty('Access-Control-Allow-Origin')
    expect(headers).not.toHaveProperty('Access-Control-Allow-Credentials')
  })

  test('`*` admits everybody, without credentials, and those named beside it with them', () => {
    const open = policy({ allowedOrigins: ['*', 'https://good.example'] })
    for (const origin of ['https://evil.example', 'null', undefined]) {
      const headers = open.corsHeaders(origin)
      expect(headers['Access-Control-Allow-Origin']).toBe('*')
      expect(headers).not.toHaveProperty('Access-Control-Allow-Credentials')
      expect(headers['Vary']).toBe('Origin')
    }
    expect(open.corsHeaders('https://good.example')).toMatchObject({
      'Access-Control-Allow-Origin': 'https://good.example',
      'Access-Control-Allow-Credentials': 'true',
    })
  })

  test('`null` cannot be allowed', () => {
    const careless = policy({ allowedOrigins: ['null', 'https://good.example'] })
    expect(careless.corsHeaders('null')['Access-Control-Allow-Origin']).toBe('https://good.example')
    expect(() => careless.check('POST', page('null'), to('svc.example'))).toThrow('api.allow_origin')
  })

  test.each([
    ['https://good.example/', 'https://good.example'],
    ['HTTPS://Good.Example', 'https://good.example'],
    ['https://good.example:443', 'https://good.example'],
    ['http://[::1]:80', 'http://[::1]'],
    ['chrome-extension://abcdef', 'chrome-extension://abcdef'],
  ])('%s in the configuration is %s in a browser', (configured, sent) => {
    expect(policy({ allowedOrigins: [configured] }).corsHeaders(sent)['Access-Control-Allow-Origin']).toBe(sent)
  })
})

describe('requests that change something', () => {
  test.each(['POST', 'PUT', 'DELETE', 'PATCH'])('%s by a foreign page is refused', (method) => {
    for (const origin of foreign) {
      expect(() => policy().check(method, page(origin), to('svc.example:9101'))).toThrow(
        expect.objectContaining({ code: 'ORIGIN_REFUSED', kind: 'forbidden' }),
      )
    }
  })

  test.each(['GET', 'HEAD', 'OPTIONS'])('%s is not', (method) => {
    for (const origin of foreign)
      expect(() => policy().check(method, page(origin), to('svc.example:9101'))).not.toThrow()
  })

  test('by an allowed page, by our own, and by programs are not', () => {
    for (const origin of [...allowedOrigins, 'http://svc.example:9101', 'https://svc.example:9101', undefined]) {
      expect(() => policy().check('POST', page(origin), to('svc.example:9101'))).not.toThrow()
    }
    expect(() => policy().check('POST', page('http://svc.example:9101'), to('SVC.example:9101'))).not.toThrow()
  })

  test.each([
    ['http://svc.example:9102', 'svc.example:9101'],
    ['http://svc.example', 'svc.example:9101'],
    ['http://svc.example:9101.evil.example', 'svc.example:9101'],
    ['http://evil.example', undefined],
    ['HTTP://svc.example:9101', 'svc.example:9101'],
    ['http://SVC.example:9101', 'svc.example:9101'],
    ['http://svc.example.:9101', 'svc.example:9101'],
    ['http://svc.example:9101/', 'svc.example:9101'],
    ['http://user@svc.example:9101', 'svc.example:9101'],
    ['http://svc.example:9101', 'user@svc.example:9101'],
    ['http://svc.example:9101', 'evil.example/@svc.example:9101'],
    ['http://evil.example', 'evil.example?'],
    ['ftp://svc.example:9101', 'svc.example:9101'],
    ['blob:http://svc.example:9101', 'svc.example:9101'],
    ['//svc.example:9101', 'svc.example:9101'],
    ['svc.example:9101', 'svc.example:9101'],
    ['', 'svc.example:9101'],
  ])('the page %s of the host %s is not our own', (origin, host) => {
    expect(() => policy().check('POST', page(origin), to(host))).toThrow('api.allow_origin')
  })

  test.each([
    ['http://svc.example', 'svc.example:80'],
    ['https://svc.example', 'svc.example:443'],
    ['http://[::1]:9101', '[0:0::1]:9101'],
  ])('the page %s is our own on %s', (origin, host) => {
    expect(() => policy().check('POST', page(origin), to(host))).not.toThrow()
  })

  test('a page that came over plain HTTP is not our own behind TLS', () => {
    for (const [origin, isKnown] of [
      ['https://svc.example', true],
      ['http://svc.example', false],
    ] as const) {
      expect(policy().isForeign(page(origin), to('svc.example', true))).toBe(!isKnown)
      expect(policy().isForeign(page(origin), to('svc.example'))).toBe(false)
    }
    expect(() => policy().check('POST', page('http://svc.example'), to('svc.example', true))).toThrow(
      'api.allow_origin',
    )
  })

  test.each(['cross-site', 'same-site', 'cross-site, none', 'something-new'])(
    'without an origin, from a page that is %s, are refused',
    (site) => {
      for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'PROPFIND', 'MKCOL']) {
        expect(() => policy().check(method, page(undefined, site), to('127.0.0.1:9101'))).toThrow('api.allow_origin')
      }
      for (const method of ['GET', 'HEAD', 'OPTIONS']) {
        expect(() => policy().check(method, page(undefined, site), to('127.0.0.1:9101'))).not.toThrow()
      }
    },
  )

  test.each(['same-origin', 'none', undefined])('without an origin, site %s, are not', (site) => {
    expect(() => policy().check('POST', page(undefined, site), to('127.0.0.1:9101'))).not.toThrow()
  })

  test('by an allowed page are not, wherever it is', () => {
    expect(() => policy().check('POST', page('https://good.example', 'cross-site'), to('h'))).not.toThrow()
    const open = policy({ allowedOrigins: ['*'] })
    expect(() => open.check('POST', page(undefined, 'cross-site'), to('h'))).not.toThrow()
  })

  test('refusals say what the operator of a proxy has to set', () => {
    expect(() => policy().check('POST', page('https://svc.example'), to('127.0.0.1:9101'))).toThrow(
      /"https:\/\/svc\.example".*"127\.0\.0\.1:9101".*pass Host unchanged/,
    )
    const strict = policy({ knownHosts: new Set() })
    expect(() => strict.check('GET', page(undefined), to('upstream:9101'))).toThrow(
      /"upstream".*pass Host unchanged.*api\.allowed_hosts/,
    )
  })

  test('the refusal repeats the origin, bounded and printable', () => {
    expect(() => policy().check('POST', page(`http://x\u0007${'y'.repeat(5000)}`), to('h'))).toThrow(
      expect.objectContaining({ message: expect.stringMatching(/^[\x20-\x7e\ufffd…]{1,400}$/) as unknown }),
    )
  })
})

describe('names of the server, while nobody has to sign in', () => {
  const strict = policy({ knownHosts: new Set(['Svc.Example', 'svc-host']) })

  test.each([
    'localhost',
    'localhost:9101',
    'LOCALHOST:9101',
    'svc.localhost:9101',
    '127.0.0.1:9101',
    '10.1.2.3',
    '[::1]:9101',
    '[fe80::1]',
    'svc.example:9101',
    'SVC.EXAMPLE',
    'svc-host',
    undefined,
  ])('%s is one', (host) => {
    for (const method of ['GET', 'POST']) expect(() => strict.check(method, page(undefined), to(host))).not.toThrow()
  })

  test.each([
    'evil.example',
    'evil.example:9101',
    '127.0.0.1.evil.example:9101',
    '127.0.0.1.nip.example',
    'localhost.evil.example',
    'notlocalhost',
    'svc.example.evil.example',
    'xsvc.example',
    '2130706433',
    '0x7f.1',
    '',
  ])('%j is none, even for reading, even for a page of that very name', (host) => {
    for (const method of ['GET', 'HEAD', 'POST']) {
      expect(() => strict.check(method, page(`http://${host}`), to(host))).toThrow(
        expect.objectContaining({ code: 'ORIGIN_REFUSED' }),
      )
    }
  })

  test('does not matter once they have to', () => {
    expect(() => policy().check('GET', page(undefined), to('evil.example'))).not.toThrow()
  })
})

describe('the configuration', () => {
  const policyOf = (flags: Record<string, string>) =>
    createOriginPolicy(originSettings(loadConfig({ files: [], env: {}, cwd: '/', flags }).config))
  const off = { 'auth.enable': 'False' }
  const open = { ...off, 'system.allow_open_network': 'True', 'api.host': '0.0.0.0' }

  test.each([
    'http://127.0.0.1:3000',
    'http://localhost:8080',
    'http://127.0.0.1:8080',
    'http://localhost:5173',
    'http://localhost',
  ])('trusts %s only if it is named', (origin) => {
    for (const settings of [{}, off, open]) {
      const headers = policyOf(settings).corsHeaders(origin)
      expect(headers).not.toHaveProperty('Access-Control-Allow-Origin')
      expect(headers).not.toHaveProperty('Access-Control-Allow-Credentials')
      expect(() => policyOf(settings).check('POST', page(origin), to('localhost:9101'))).toThrow('api.allow_origin')
    }
    const named = policyOf({ 'api.allow_origin': origin })
    expect(named.corsHeaders(origin)['Access-Control-Allow-Origin']).toBe(origin)
    expect(() => named.check('POST', page(origin), to('localhost:9101'))).not.toThrow()
  })

  test('the public address is our own, but it is not named to pages of it', () => {
    const policy = policyOf({ 'auth.api_url': 'https://svc.example/api' })
    expect(() => policy.check('POST', page('https://svc.example'), to('127.0.0.1:9101'))).not.toThrow()
    expect(policy.corsHeaders('https://svc.example')).not.toHaveProperty('Access-Control-Allow-Origin')
  })

  test.each([off, open])('without logins, names point to this server only if they are known: %j', (settings) => {
    const policy = policyOf({ ...settings, 'api.allowed_hosts': 'Svc.Example, other' })
    const names = ['svc.example:9101', 'SVC.EXAMPLE', 'other', hostname(), '192.168.1.5:9101', 'localhost:9101']
    for (const name of names) expect(() => policy.check('GET', page(undefined), to(name))).not.toThrow()
    for (const name of ['evil.example', 'x.svc.example', 'svc.example.evil.example']) {
      expect(() => policy.check('GET', page(undefined), to(name))).toThrow('api.allowed_hosts')
    }
  })

  test('`*` admits every name, and so do logins', () => {
    for (const settings of [{ ...open, 'api.allowed_hosts': '*' }, { 'auth.enable': 'True' }]) {
      expect(() => policyOf(settings).check('GET', page(undefined), to('evil.example'))).not.toThrow()
    }
  })
})
