import { expect, test } from 'vitest'
import { createMemoryLedger, type MemoryLedger } from '../../tests/helpers/ledger.ts'
import { bodyInvalid, resourceNotFound, storageFailed } from '../core/errors.ts'
import { createRepeats, type KeyedRequest, type ReadyAnswer, type Repeats } from './repeats.ts'
import type { ApiRequest, JsonRoute } from './route.ts'

const answer = (text: string): ReadyAnswer => ({ status: 201, headers: {}, bytes: Buffer.from(text) })
const textOf = ({ bytes }: ReadyAnswer): string => String(bytes)
const isReplay = ({ headers }: ReadyAnswer): boolean => headers['Idempotent-Replayed'] === 'true'
const request = (keyHash: string, body = 'b'): KeyedRequest => ({
  user: 'u',
  keyHash,
  parts: ['path', 'query', 'headers', body],
})

/** Counts how often it was carried out. */
function counter(): { times: () => number; carryOut: () => Promise<ReadyAnswer> } {
  let times = 0
  return {
    times: () => times,
    carryOut: async () => {
      times += 1
      const answered = answer(String(times))
      await Promise.resolve()
      return answered
    },
  }
}

function make(waitMs?: number): { repeats: Repeats; ledger: MemoryLedger } {
  const ledger = createMemoryLedger()
  return { repeats: createRepeats(ledger, waitMs), ledger }
}

test('a repetition during or after the first request gets its answer', async () => {
  const { repeats } = make()
  const { times, carryOut } = counter()
  const together = await Promise.all([repeats.once(request('a'), carryOut), repeats.once(request('a'), carryOut)])
  const later = await repeats.once(request('a'), carryOut)
  expect([...together, later].map(textOf)).toEqual(['1', '1', '1'])
  expect([...together, later].map(isReplay)).toEqual([false, true, true])
  expect(times()).toBe(1)
  await repeats.once(request('b'), carryOut)
  expect(times()).toBe(2)
})

test('another request with the key of one under way or answered is refused', async () => {
  const { repeats } = make()
  const { times, carryOut } = counter()
  const first = repeats.once(request('a'), carryOut)
  const refusal = { code: 'IDEMPOTENCY_KEY_REUSED', message: expect.stringContaining('another body') as unknown }
  await expect(repeats.once(request('a', 'other'), carryOut)).rejects.toMatchObject(refusal)
  await first
  await expect(repeats.once(request('a', 'other'), carryOut)).rejects.toMatchObject(refusal)
  expect(times()).toBe(1)
})

test('a repetition waits for a while, then is asked to come back', async () => {
  const { repeats } = make(0)
  let end: ((late: ReadyAnswer) => void) | undefined
  const first = repeats.once(request('a'), () => new Promise((resolve) => (end = resolve)))
  await expect(repeats.once(request('a'), () => Promise.reject(new Error('twice')))).rejects.toMatchObject({
    code: 'IDEMPOTENCY_KEY_IN_USE',
    details: { retry_after: 1 },
  })
  end?.(answer('1'))
  expect(textOf(await first)).toBe('1')
  expect(isReplay(await repeats.once(request('a'), () => Promise.reject(new Error('twice'))))).toBe(true)
})

test('a request that changed nothing and failed can be sent again', async () => {
  const { repeats } = make()
  const { carryOut, times } = counter()
  await expect(repeats.once(request('a'), () => Promise.reject(bodyInvalid('no')))).rejects.toThrow('no')
  expect(textOf(await repeats.once(request('a'), carryOut))).toBe('1')
  expect(times()).toBe(1)
})

test('a refusal after a change is the answer; a failure of the server is not', async () => {
  const { repeats, ledger } = make()
  ledger.commits = true
  const { carryOut, times } = counter()
  await expect(repeats.once(request('a'), () => Promise.reject(bodyInvalid('no')))).rejects.toThrow('no')
  const again = await repeats.once(request('a'), carryOut)
  expect([again.status, isReplay(again), times()]).toEqual([400, true, 0])

  await expect(repeats.once(request('b'), () => Promise.reject(storageFailed(new Error('disk'))))).rejects.toThrow(
    'Could not write',
  )
  expect(textOf(await repeats.once(request('b'), carryOut))).toBe('1')
})

test('a stored change without an answer is answered again, and not carried out', async () => {
  const { repeats, ledger } = make()
  const { parts } = request('a')
  ledger.rows.set('a', { parts, subject: 'id', status: undefined, answer: undefined })
  const { carryOut, times } = counter()
  const made = await repeats.once(request('a'), carryOut, (subject) => Promise.resolve(answer(`again ${subject}`)))
  expect([textOf(made), isReplay(made), times()]).toEqual(['again id', true, 0])
  // From now on it is the stored answer.
  expect(textOf(await repeats.once(request('a'), carryOut))).toBe('again id')

  ledger.rows.set('gone', { parts, subject: 'id', status: undefined, answer: undefined })
  await expect(
    repeats.once(request('gone'), carryOut, () => Promise.reject(resourceNotFound('id'))),
  ).rejects.toMatchObject({ code: 'IDEMPOTENCY_ANSWER_LOST', details: { 'conflict-id': 'id' } })
  expect(times()).toBe(0)
})

test('without a way to answer again, a begun request runs again and an answered one does not', async () => {
  const { repeats, ledger } = make()
  const { parts } = request('a')
  const { carryOut, times } = counter()
  ledger.rows.set('begun', { parts, subject: undefined, status: undefined, answer: undefined })
  expect(textOf(await repeats.once(request('begun'), carryOut))).toBe('1')
  ledger.rows.set('long', { parts, subject: undefined, status: 200, answer: undefined })
  await expect(repeats.once(request('long'), carryOut)).rejects.toMatchObject({ code: 'IDEMPOTENCY_ANSWER_LOST' })
  expect(times()).toBe(1)
})

test('what identifies a request: method, path, query, headers that count, body; and the caller', () => {
  const route = { method: 'post', path: '/things/:id' } as JsonRoute
  const { repeats } = make()
  const sent = {
    headers: { 'idempotency-key': ' key ' },
    principal: { user: 'u' },
    params: { id: '1' },
    query: { b: 2, a: 1, c: undefined },
  } as unknown as ApiRequest
  const of = (more: object, body = 'digest', at = route): KeyedRequest | undefined =>
    repeats.keyedRequestOf(at, { ...sent, ...more }, body)
  const first = of({})
  expect(of({ query: { a: 1, b: 2 }, headers: { 'idempotency-key': 'key', 'user-agent': 'x' } })).toEqual(first)
  const differing = (other: KeyedRequest | undefined): number[] =>
    (first?.parts ?? []).flatMap((part, i) => (part === other?.parts[i] ? [] : [i]))
  expect(differing(of({ params: { id: '2' } }))).toEqual([0])
  expect(differing(of({}, 'digest', { ...route, method: 'put' } as JsonRoute))).toEqual([0])
  expect(differing(of({ query: { a: 1 } }))).toEqual([1])
  expect(differing(of({ headers: { ...sent.headers, 'svc-context': '{}' } }))).toEqual([2])
  expect(differing(of({}, 'other'))).toEqual([3])
  const others = [{ user: 'v' }, { user: 'u', scopes: [] }].map((principal) => of({ principal })?.keyHash)
  expect(new Set([first?.keyHash, ...others]).size).toBe(3)
  // Neither can be tried out from what is stored.
  expect(JSON.stringify(first)).not.toContain('digest')

  for (const key of [undefined, '', '  ']) expect(of({ headers: { 'idempotency-key': key } })).toBeUndefined()
  expect(of({ headers: { 'idempotency-key': 'é'.repeat(255) } })).toBeDefined()
  expect(() => of({ headers: { 'idempotency-key': 'k'.repeat(256) } })).toThrow('255 characters')
})
