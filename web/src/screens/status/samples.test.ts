import { describe, expect, test } from 'vitest'
import type { StatusSample } from '../../api/records.ts'
import { formatMilliseconds, formatRate, mergeSamples, plotsOf, ranges, windowOf } from './samples.ts'

function sample(time: string, changes: Partial<StatusSample> = {}): StatusSample {
  return {
    timestamp: `2030-01-01T${time}:00.000000Z`,
    seconds: 60,
    queues: { request: 0, work: 0, cancel: 0, trigger: 0 },
    slots: { used: 0, size: 60 },
    executions: { started: 0, succeeded: 0, failed: 0, timeout: 0, canceled: 0, abandoned: 0 },
    run_seconds: null,
    trigger_instances: 0,
    webhooks: 0,
    event_loop: { mean_ms: 0, max_ms: 0 },
    memory: { resident_bytes: 1, heap_bytes: 1 },
    ...changes,
  }
}
const [hour, day] = ranges

test('a minute that is told anew is shown as it was told last', () => {
  const merged = mergeSamples(
    [sample('10:00'), sample('10:01', { webhooks: 1 })],
    [sample('10:01', { webhooks: 5 }), sample('10:02')],
  )
  expect(merged.map(({ timestamp, webhooks }) => [timestamp.slice(11, 16), webhooks])).toEqual([
    ['10:00', 0],
    ['10:01', 5],
    ['10:02', 0],
  ])
})

describe('what is shown', () => {
  test('ends with the newest sample, by the clock of the server', () => {
    const { from, to, samples } = windowOf([sample('08:00'), sample('09:01'), sample('10:00')], hour)
    expect(new Date(to).toISOString()).toBe('2030-01-01T10:01:00.000Z')
    expect(new Date(from).toISOString()).toBe('2030-01-01T09:01:00.000Z')
    expect(samples).toHaveLength(2)
    expect(windowOf([sample('10:00')], day).to - Date.parse('2030-01-01T10:00:00Z')).toBe(5 * 60_000)
  })

  test('is nothing before there is a sample', () => {
    expect(windowOf([], hour)).toEqual({ from: 0, to: hour.lengthMs, samples: [] })
    expect(plotsOf([]).times).toEqual([])
  })
})

describe('plots', () => {
  const valuesOf = (
    samples: readonly StatusSample[],
    title: string,
  ): Record<string, readonly (number | undefined)[]> => {
    const plot = plotsOf(samples).plots.find((each) => each.title === title)
    return Object.fromEntries((plot?.series ?? []).map(({ name, values }) => [name, values]))
  }

  test('have rates per minute, also of several minutes, and of one that was cut short', () => {
    const executions = { started: 10, succeeded: 6, failed: 1, timeout: 1, canceled: 1, abandoned: 1 }
    const samples = [
      sample('10:00', { executions }),
      sample('10:05', { executions, seconds: 300 }),
      sample('10:10', { executions, seconds: 40 }),
      sample('10:11', { executions, seconds: 10 }),
      sample('10:12', { executions, seconds: 1 }),
    ]
    expect(valuesOf(samples, 'Executions')).toEqual({
      succeeded: [6, 1.2, 9, 12],
      failed: [3, 0.6, 4.5, 6],
      canceled: [1, 0.2, 1.5, 2],
    })
    expect(valuesOf(samples, 'Throughput')).toEqual({ started: [10, 2, 15, 20], ended: [10, 2, 15, 20] })
  })

  test('leave out the minute that has just started, and no other one that is short', () => {
    const samples = [
      sample('10:00', { slots: { used: 1, size: 4 } }),
      sample('10:01', { slots: { used: 2, size: 4 }, seconds: 1 }),
      sample('10:02', { slots: { used: 3, size: 4 }, seconds: 1 }),
    ]
    expect(valuesOf(samples, 'Slots')).toEqual({ used: [1, 2], total: [4, 4] })
    expect(plotsOf(samples).times).toHaveLength(2)
  })

  test('have no time of a run where nothing ran', () => {
    const samples = [sample('10:00'), sample('10:01', { run_seconds: { p50: 0.1, p95: 3 } })]
    expect(valuesOf(samples, 'Run time')).toEqual({ p50: [undefined, 0.1], p95: [undefined, 3] })
  })
})

test.each([
  [0, '0'],
  [0.25, '0.3'],
  [3, '3'],
  [12.4, '12'],
  [9.97, '10'],
  [999.7, '1.0 k'],
  [1234, '1.2 k'],
  [100_000, '100 k'],
  [123_456, '123 k'],
])('%d per minute is %s', (rate, text) => {
  expect(formatRate(rate)).toBe(text)
})

test.each([
  [0, '0 ms'],
  [0.25, '0.3 ms'],
  [12.4, '12 ms'],
  [999.7, '1.0 s'],
  [1234, '1.2 s'],
  [123_456, '2 min 3 s'],
  [7_200_000, '2 h 0 min'],
])('%d milliseconds are %s', (milliseconds, text) => {
  expect(formatMilliseconds(milliseconds)).toBe(text)
})
