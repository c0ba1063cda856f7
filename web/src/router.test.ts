import { describe, expect, test } from 'vitest'
import { hrefOf, parseLocation } from './router.ts'

describe('an address', () => {
  test.each<[hash: string, path: string[], query: Record<string, string>]>([
    ['', [], {}],
    ['#/', [], {}],
    ['#/history/65f0/general', ['history', '65f0', 'general'], {}],
    ['#/history?status=failed&action=core.local', ['history'], { status: 'failed', action: 'core.local' }],
    ['#/webhooks/a%2Fb', ['webhooks', 'a/b'], {}],
    ['#/history/100%', ['history', '100%'], {}],
    ['#/history?q=a%26b%3Fc', ['history'], { q: 'a&b?c' }],
  ])('%j', (hash, path, query) => {
    const location = parseLocation(hash)
    expect(location.path).toEqual(path)
    expect(Object.fromEntries(location.query)).toEqual(query)
  })

  test.each(['a/b', 'a?b', 'a#b', '100%', 'ä€😀', '..', ' '])('leads back to the part %j', (part) => {
    const { path, query } = parseLocation(hrefOf(['x', part], { q: part }))
    expect(path).toEqual(['x', part])
    expect(query.get('q')).toBe(part)
  })

  test('leaves out what is empty', () => {
    expect(hrefOf(['history'], { status: '', action: undefined, user: 'ada' })).toBe('#/history?user=ada')
  })
})
