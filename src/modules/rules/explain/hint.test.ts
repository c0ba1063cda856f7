import { describe, expect, it, test } from 'vitest'
import { hintOf } from './hint.ts'

const missing = (payload: unknown, key: string): string | undefined =>
  hintOf(payload, { key, type: 'equals', pattern: 'x', value: null })

describe('a key that is not there', () => {
  const body = { ref: 'refs/heads/main', pullRequest: { html_url: 'x' }, items: [{ id: 1 }], none: null, n: 7 }
  const payload = {
    headers: { 'X-Github-Event': 'push' },
    headers_lower: { 'x-github-event': 'push' },
    body,
  }

  it.for<[key: string, hint: string | undefined]>([
    ['trigger.body.pull_request.html_url', 'Did you mean trigger.body.pullRequest?'],
    ['trigger.body.Ref', 'Did you mean trigger.body.ref?'],
    ['trigger.body.pullRequest.html_ulr', 'Did you mean trigger.body.pullRequest.html_url?'],
    ['trigger.body.wholly_different', 'it has ref, pullRequest, items, none, n.'],
    ['trigger.ref', 'Did you mean trigger.body.ref?'],
    ["trigger.headers['X-Github-Evnt']", 'Did you mean trigger.headers.X-Github-Event?'],
    ['trigger.body.items.id', 'trigger.body.items is a list: read an item of it, such as trigger.body.items[0].'],
    ['trigger.body.items[3].id', 'trigger.body.items is a list with 1 items.'],
    ['trigger.body[0]', 'trigger.body is an object, no list: it has ref'],
    ['trigger.body.ref.name', 'trigger.body.ref is a text, which has no keys.'],
    ['trigger.body.n.m', 'trigger.body.n is a number, which has no keys.'],
    ['trigger.body.none.m', 'trigger.body.none is null.'],
    ['trigger.body.none', undefined],
    ['trigger.body.items[*].nr', undefined],
    ["trigger.headers['X-GitHub-Event']", undefined],
    ['system.limit', undefined],
  ])('%s: %s', ([key, hint]) => {
    expect(missing(payload, key) ?? 'none').toContain(hint ?? 'none')
  })

  test('JSON in a text is called that, be it a field of a form or an envelope', () => {
    const text = ' {"NewStateValue": "ALARM"}\n'
    expect(missing({ body: { Message: text } }, 'trigger.body.Message.NewStateValue')).toBe(
      'trigger.body.Message is a text that contains JSON. A criterion cannot read keys of a text: let the sender send JSON itself, or test the text with contains or regex.',
    )
    expect(missing({ body: { payload: [text] } }, 'trigger.body.ref')).toBe(
      'trigger.body has no key "ref": it has payload (a list of texts; the first contains JSON).',
    )
    expect(missing({ body: { payload: [text] } }, 'trigger.body.payload.ref')).toContain(
      'such as trigger.body.payload[0] (a text that contains JSON)',
    )
    expect(missing({ body: { payload: [text] } }, 'trigger.body.payload[0].ref')).toContain('a text that contains JSON')
  })

  test('is bounded, whatever the payload holds', () => {
    const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`${'k'.repeat(60)}${i}`, i]))
    const hint = missing({ body: many }, `trigger.body.${'k'.repeat(61)}`)
    expect(hint).toContain('and 99990 more.')
    expect(missing({ body: { ['x'.repeat(1_000_000)]: 1 } }, 'trigger.body.a')?.length).toBeLessThan(2_000)
    expect(missing({ body: {} }, 'trigger.body.a')).toBe('trigger.body has no key "a": it is empty.')
    for (const payload of [null, [], 'x', 7]) expect(missing(payload, 'trigger.a.b')).toEqual(expect.any(String))
  })
})

describe('a value of another type', () => {
  it.for<[type: string, pattern: unknown, value: unknown, hint: string | undefined]>([
    ['equals', '7', 7, 'The value is a number, the pattern a text: equals compares types too.'],
    ['eq', true, 'True', 'The value is a text, the pattern a boolean: eq compares types too.'],
    ['inside', [1, '2'], 2, 'The value is a number, the pattern a text: inside compares types too.'],
    ['equals', '7', '8', undefined],
    ['equals', '7', 8, undefined],
    ['equals', { a: 1 }, 1, undefined],
    ['nequals', '7', 7, undefined],
  ])('%s %j, %j', ([type, pattern, value, hint]) => {
    expect(hintOf({ a: value }, { key: 'trigger.a', type, pattern, value })).toBe(hint)
  })
})
