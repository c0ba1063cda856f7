import { describe, expect, it } from 'vitest'
import { formatDuration, readDuration } from './duration.ts'

describe('a duration', () => {
  it.for<[given: number | string, seconds: number]>([
    [0, 0],
    [90, 90],
    [0.5, 0.5],
    ['90', 90],
    ['90s', 90],
    ['10m', 600],
    ['1h30m', 5400],
    ['1h 30m', 5400],
    [' 7d ', 604_800],
    ['2w', 1_209_600],
    ['250ms', 0.25],
    ['1.5H', 5400],
  ])('%s', ([given, seconds]) => {
    expect(readDuration(given)).toEqual({ seconds })
  })

  it.for(['', 'soon', '-5m', '5 minutes', '5m later', '1e3', 'm', '1h30', `${'1s'.repeat(40)}`, '99999999999'])(
    'is not: %s',
    (given) => {
      expect(readDuration(given)).toHaveProperty('problem', expect.stringContaining('1h30m'))
    },
  )

  it('has an end', () => {
    expect(readDuration('9999999w')).toEqual({ problem: '"9999999w" is longer than 136 years' })
  })

  it.for<[seconds: number, text: string]>([
    [0, '0s'],
    [0.25, '250ms'],
    [90, '1m30s'],
    [5400, '1h30m'],
    [604_800, '1w'],
    [694_861, '1w1d1h1m1s'],
  ])('of %s seconds is written %s', ([seconds, text]) => {
    expect(formatDuration(seconds)).toBe(text)
    expect(readDuration(text)).toEqual({ seconds })
  })
})
