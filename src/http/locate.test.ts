import { describe, expect, test } from 'vitest'
import { locateRoute } from './locate.ts'

describe('shapes of contract 00, 0.2', () => {
  test.each([
    ['auth', '/tokens', 'auth', '/tokens'],
    ['auth', '/v1/tokens', 'auth', '/tokens'],
    ['auth', '/auth/v1/tokens', 'auth', '/tokens'],
    ['auth', '/auth/tokens', 'auth', '/tokens'],
    ['auth', '/tokens/', 'auth', '/tokens'],
    ['auth', '/tokens/validate', 'auth', '/tokens/validate'],
    ['api', '/executions', 'api', '/executions'],
    ['api', '/v1/executions', 'api', '/executions'],
    ['api', '/v1/executions/', 'api', '/executions'],
    ['api', '/api/v1/executions', 'api', '/executions'],
    ['api', '/api/executions', 'api', '/executions'],
    ['api', '/', 'api', '/ui/index.html'],
    ['auth', '/', 'auth', '/'],
    ['stream', '/', 'stream', '/'],
    ['api', '/v1', 'api', '/'],
    ['api', '/v1/', 'api', '/'],
    ['api', '/api', 'api', '/'],
    ['api', '/api/', 'api', '/'],
    ['api', '/api/v1', 'api', '/'],
    ['api', '/api/v1/', 'api', '/'],
    ['api', '/auth/v1/tokens', 'auth', '/tokens'],
    ['api', '/auth/tokens', 'auth', '/tokens'],
    ['api', '/stream/v1/executions/last/output', 'stream', '/executions/last/output'],
    ['api', '/stream/v1/stream', 'stream', '/stream'],
    ['api', '/api/stream', 'stream', '/stream'],
    ['api', '/api/v1/stream', 'stream', '/stream'],
    ['api', '/api/v1/stream/', 'stream', '/stream'],
    ['stream', '/stream', 'stream', '/stream'],
    ['stream', '/stream/', 'stream', '/stream'],
    ['stream', '/v1/stream', 'stream', '/stream'],
    ['stream', '/stream/v1/stream', 'stream', '/stream'],
    ['stream', '/stream/stream', 'stream', '/stream'],
    ['stream', '/v1/executions/last/output', 'stream', '/executions/last/output'],
    ['stream', '/executions/last/output', 'stream', '/executions/last/output'],
    ['stream', '/stream/v1/executions/last/output', 'stream', '/executions/last/output'],
  ] as const)('%s listener: %s', (listener, path, surface, inner) => {
    expect(locateRoute(listener, path)).toEqual({ surface, path: inner })
  })
})

describe('paths that only look like one of them stay what they are', () => {
  test.each([
    // Other surfaces answer on the API listener only.
    ['auth', '/api/v1/executions', 'auth', '/api/v1/executions'],
    ['auth', '/stream/v1/stream', 'auth', '/stream/v1/stream'],
    ['stream', '/auth/v1/tokens', 'stream', '/auth/v1/tokens'],
    // The version once, in front; one trailing slash.
    ['api', '/v1/v1/executions', 'api', '/v1/executions'],
    ['api', '/v1/api/executions', 'api', '/api/executions'],
    ['api', '/v2/executions', 'api', '/v2/executions'],
    ['api', '/V1/executions', 'api', '/V1/executions'],
    ['api', '/API/v1/executions', 'api', '/API/v1/executions'],
    ['api', '/v10/executions', 'api', '/v10/executions'],
    ['api', '/apikeys', 'api', '/apikeys'],
    ['api', '/v1/executions//', 'api', '/executions/'],
    // Nothing is resolved or cut away.
    ['api', '//v1/executions', 'api', '//v1/executions'],
    ['api', '/v1//executions', 'api', '//executions'],
    ['api', '/api//v1/executions', 'api', '//v1/executions'],
    ['api', '/v1/../auth/tokens', 'api', '/../auth/tokens'],
    ['api', '/v1/%2e%2e/auth/tokens', 'api', '/../auth/tokens'],
    ['api', '/v1/%2e%2e%2fauth%2ftokens', 'api', '/..%2Fauth%2Ftokens'],
    ['api', '/auth/../api/v1/user', 'auth', '/../api/v1/user'],
    ['api', '/v1/executions;x=1', 'api', '/executions;x=1'],
    ['api', '/v1/executions/a%00b', 'api', '/executions/a%00b'],
    ['api', '/v1/executions%3Flimit=1', 'api', '/executions%3Flimit%3D1'],
    ['api', '/v1/executions%23', 'api', '/executions%23'],
    ['api', 'http://other.example/v1/executions', 'api', 'http://other.example/v1/executions'],
    ['api', '*', 'api', '*'],
  ] as const)('%s listener: %s', (listener, path, surface, inner) => {
    expect(locateRoute(listener, path)).toEqual({ surface, path: inner })
  })
})

describe('encoding', () => {
  test.each([
    ['/v1/%65xecutions', '/executions'],
    ['/%76%31/executions', '/executions'],
    ['/%61pi/v1/executions', '/executions'],
    ['/v1/actions/core%2Elocal', '/actions/core.local'],
    ['/v1/actions/core%2Flocal', '/actions/core%2Flocal'],
    ['/v1/actions/%C3%A4', '/actions/%C3%A4'],
    ['/v1/actions/a%20b', '/actions/a%20b'],
    ['/v1/actions/a%2520b', '/actions/a%2520b'],
  ])('%s', (path, inner) => {
    expect(locateRoute('api', path).path).toBe(inner)
  })

  test.each(['/v1/%', '/v1/%zz', '/v1/%c3', '/v1/%ff', '/v1/%c0%af', '/v1/%ed%a0%80', '/%e4/executions'])(
    '%s is refused',
    (path) => {
      expect(() => locateRoute('api', path)).toThrow(
        expect.objectContaining({ code: 'PATH_UNDECODABLE', message: expect.stringContaining(path) as unknown }),
      )
    },
  )
})
