import { describe, expect, test } from 'vitest'
import { addressBelow } from './transport.ts'

const page = 'https://svc.example/some/where/?x=1#/history'

describe('an address of the server', () => {
  test.each([
    ['api/v1/executions', 'https://svc.example/some/where/api/v1/executions'],
    ['api/v1/webhooks/a%2Fb', 'https://svc.example/some/where/api/v1/webhooks/a%2Fb'],
    ['api/v1/keys/%25', 'https://svc.example/some/where/api/v1/keys/%25'],
    ['api/v1/keys/ä', 'https://svc.example/some/where/api/v1/keys/%C3%A4'],
    ['api/v1/user?x=..%2f', 'https://svc.example/some/where/api/v1/user?x=..%2f'],
    ['api/v1/packs/a..b/...', 'https://svc.example/some/where/api/v1/packs/a..b/...'],
  ])('%s', (path, address) => {
    expect(addressBelow(page, path).href).toBe(address)
  })

  test('has what is asked in its query, unless that is empty', () => {
    const url = addressBelow(page, 'api/v1/executions', {
      a: 'ä&b',
      none: undefined,
      empty: '',
      n: 0,
      list: ['x', 'y'],
    })
    expect([...url.searchParams]).toEqual([
      ['a', 'ä&b'],
      ['n', '0'],
      ['list', 'x,y'],
    ])
  })

  test.each([
    'api/v1/executions/..',
    'api/v1/executions/../../../auth/v1/tokens',
    'api/v1/executions/.',
    'api/v1/executions/%2e%2e',
    'api/v1/executions/.%2E/output',
    'api/v1/executions/..\\..\\user',
    'api/v1/executions/a\\b',
    'api/v1/executions/.\t./output',
    'api/v1/executions/.\n.',
    'api/v1/executions/x#y',
    '//evil.example/api/v1/user',
    '\\\\evil.example/api',
    'https://evil.example/api/v1/user',
    'javascript:alert(1)',
    '/api/v1/user',
  ])('%j leads elsewhere, and is none', (path) => {
    expect(() => addressBelow(page, path)).toThrow('Not found: nothing has this name.')
  })
})
