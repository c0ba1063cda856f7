import { beforeEach, describe, expect, test } from 'vitest'
import { TextSink } from '../../../tests/helpers/text-sink.ts'
import type { Bus } from '../../bus/index.ts'
import { createMemoryBus } from '../../bus/memory.ts'
import { createLog } from '../../lib/log/log.ts'
import { watchTraceGrowth, type TraceGrowth } from './trace-growth.ts'

const SECOND = 1_000_000
let bus: Bus
let sink: TextSink
let at: number
let growth: TraceGrowth
beforeEach(() => {
  bus = createMemoryBus(() => undefined)
  sink = new TextSink()
  at = 1_893_456_000 * SECOND
  growth = watchTraceGrowth({ bus, log: createLog({ level: 'INFO', format: 'text', stream: sink }), now: () => at })
})

function grow(id: string, members: number): void {
  for (let n = 0; n < members; n++) bus.publish({ name: 'trace.grown', payload: { id } })
}
const ids = (): string[] => growth.growing().map(({ id }) => id)
const warnings = (): string[] => sink.text.split('\n').filter((line) => line.includes('event=trace.growing'))

describe('a trace', () => {
  test('with 1,000 members in a minute is fine, with one more it is not', () => {
    grow('a', 1000)
    expect([ids(), warnings()]).toEqual([[], []])
    grow('a', 1)
    expect(growth.growing()).toEqual([{ id: 'a', members: 1001, last_timestamp: '2030-01-01T00:00:00.000000Z' }])
    expect(warnings()).toEqual([
      expect.stringContaining(
        'Trace a has grown by more than 1000 members within a minute. Look at it with "svc trace get a".',
      ),
    ])
  })

  test('that gets as many more slowly is fine, also over the end of a minute', () => {
    for (let n = 0; n < 100; n++) {
      grow('a', 150)
      at += 10 * SECOND
    }
    expect(ids()).toEqual([])
    grow('a', 500)
    expect(ids()).toEqual(['a'])
  })

  test('is told of again after ten minutes, and shown that long', () => {
    grow('a', 2000)
    at += 599 * SECOND
    expect([ids(), warnings().length]).toEqual([['a'], 1])
    at += 2 * SECOND
    expect(ids()).toEqual([])
    grow('a', 2000)
    expect([ids(), warnings().length]).toEqual([['a'], 2])
  })

  test('counts from anew when the clock was set back', () => {
    grow('a', 1000)
    at -= 3600 * SECOND
    grow('a', 1000)
    expect(ids()).toEqual([])
  })
})

describe('many traces', () => {
  test('cost no more than those that are counted; the one that grows is not lost among them', () => {
    for (let n = 0; n < 1001; n++) {
      grow('loop', 1)
      for (let other = 0; other < 30; other++) grow(`${n}-${other}`, 1)
    }
    expect(ids()).toEqual(['loop'])
  })

  test('that grow are remembered up to a hundred, the last ones', () => {
    for (let n = 0; n < 110; n++) grow(`t${n}`, 1001)
    expect(ids()).toHaveLength(100)
    expect(ids().at(-1)).toBe('t109')
  })
})

test('a stopped watch counts nothing', () => {
  growth.stop()
  grow('a', 2000)
  expect(ids()).toEqual([])
})
