import { describe, expect, test } from 'vitest'
import { instanceFilterOf, isInstanceFiltered, localOf, instanceQueryOf, timestampOf } from './instance-filter.ts'

describe('what trigger instances are narrowed by', () => {
  test('stands in the address', () => {
    const filter = instanceFilterOf(
      new URLSearchParams('trigger=core.1&status=processed&after=2030-01-01T00:00:00.000Z&other=x'),
    )
    expect(filter).toEqual({
      trigger: 'core.1',
      trigger_type: '',
      status: 'processed',
      after: '2030-01-01T00:00:00.000Z',
      before: '',
    })
    expect(instanceQueryOf(filter)).toEqual({
      trigger: 'core.1',
      trigger_type: '',
      status: 'processed',
      timestamp_gt: '2030-01-01T00:00:00.000Z',
      timestamp_lt: '',
    })
    expect(isInstanceFiltered(filter)).toBe(true)
    expect(isInstanceFiltered(instanceFilterOf(new URLSearchParams('other=x')))).toBe(false)
  })

  test('a time survives its field', () => {
    for (const time of ['2030-06-01T12:34:56.000Z', '2030-01-01T00:00:00.000Z', '1999-12-31T23:59:59.000Z']) {
      expect(timestampOf(localOf(time))).toBe(time)
    }
    // Browsers leave out the seconds.
    expect(localOf(timestampOf('2030-01-01T10:20'))).toBe('2030-01-01T10:20:00')
  })

  test.each(['', 'x', '2030-13-01T00:00:00Z', '+275760-09-13T00:00:00.000Z'])('%j is no time of a field', (text) => {
    expect(localOf(text)).toBe('')
  })
  test.each(['', 'x', '2030-13-01T00:00'])('%j gives no timestamp', (text) => {
    expect(timestampOf(text)).toBe('')
  })
})
