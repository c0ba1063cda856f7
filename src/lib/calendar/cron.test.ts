import { describe, expect, test } from 'vitest'
import { computedMs } from '../../../tests/helpers/work.ts'
import { nextWallTime, readCron, type CronExpressions, type CronSchedule } from './cron.ts'

function read(expressions: CronExpressions): CronSchedule {
  const result = readCron(expressions)
  if ('problem' in result) throw new Error(result.problem)
  return result.schedule
}

const secondsOf = (text: string): number => Date.parse(`${text.replace(' ', 'T')}Z`) / 1000
const textOf = (seconds: number | undefined): string | undefined =>
  seconds === undefined ? undefined : new Date(seconds * 1000).toISOString().slice(0, 19).replace('T', ' ')

/** The first times at or after one. */
function times(expressions: CronExpressions, from: string, count = 3): (string | undefined)[] {
  const schedule = read(expressions)
  const found: (string | undefined)[] = []
  for (let at: number | undefined = secondsOf(from); found.length < count;) {
    at = nextWallTime(schedule, at)
    found.push(textOf(at))
    if (at === undefined) break
    at += 1
  }
  return found
}

describe('matching times', () => {
  test.each<[CronExpressions, string, (string | undefined)[]]>([
    // Of what is left out the more significant is anything, the less significant the least.
    [{ hour: 5 }, '2030-01-01 05:00:01', ['2030-01-02 05:00:00', '2030-01-03 05:00:00', '2030-01-04 05:00:00']],
    [{ day: 2 }, '2030-01-02 00:00:01', ['2030-02-02 00:00:00', '2030-03-02 00:00:00', '2030-04-02 00:00:00']],
    [{ year: 2031 }, '2030-06-01 00:00:00', ['2031-01-01 00:00:00', undefined]],
    [
      { month: 4, minute: 30 },
      '2030-04-30 22:31:00',
      ['2030-04-30 23:30:00', '2031-04-01 00:30:00', '2031-04-01 01:30:00'],
    ],
    [{}, '2030-01-01 00:00:58', ['2030-01-01 00:00:58', '2030-01-01 00:00:59', '2030-01-01 00:01:00']],
    [
      { second: null, hour: 1 },
      '2030-01-01 00:00:00',
      ['2030-01-01 01:00:00', '2030-01-02 01:00:00', '2030-01-03 01:00:00'],
    ],
    // Expressions.
    [{ minute: '*/25' }, '2030-01-01 00:01:00', ['2030-01-01 00:25:00', '2030-01-01 00:50:00', '2030-01-01 01:00:00']],
    [{ minute: '50/4' }, '2030-01-01 00:00:00', ['2030-01-01 00:50:00', '2030-01-01 00:54:00', '2030-01-01 00:58:00']],
    [
      { minute: '1-5/2,58' },
      '2030-01-01 00:04:00',
      ['2030-01-01 00:05:00', '2030-01-01 00:58:00', '2030-01-01 01:01:00'],
    ],
    [
      { minute: ' 3 , 1 ' },
      '2030-01-01 00:00:00',
      ['2030-01-01 00:01:00', '2030-01-01 00:03:00', '2030-01-01 01:01:00'],
    ],
    [
      { month: 'FEB,apr-may' },
      '2030-01-01 00:00:00',
      ['2030-02-01 00:00:00', '2030-04-01 00:00:00', '2030-05-01 00:00:00'],
    ],
    // Days: Monday is 0, and both kinds must hold.
    [{ day_of_week: 0 }, '2030-01-01 00:00:00', ['2030-01-07 00:00:00', '2030-01-14 00:00:00', '2030-01-21 00:00:00']],
    [
      { day_of_week: 'sat-sun' },
      '2030-01-01 00:00:00',
      ['2030-01-05 00:00:00', '2030-01-06 00:00:00', '2030-01-12 00:00:00'],
    ],
    [
      { day: 13, day_of_week: 'fri' },
      '2030-01-01 00:00:00',
      ['2030-09-13 00:00:00', '2030-12-13 00:00:00', '2031-06-13 00:00:00'],
    ],
    [{ day: 'last' }, '2028-01-31 00:00:01', ['2028-02-29 00:00:00', '2028-03-31 00:00:00', '2028-04-30 00:00:00']],
    [
      { day: '2nd fri, last sun' },
      '2030-01-01 00:00:00',
      ['2030-01-11 00:00:00', '2030-01-27 00:00:00', '2030-02-08 00:00:00'],
    ],
    [{ day: '5th thu' }, '2030-02-01 00:00:00', ['2030-05-30 00:00:00', '2030-08-29 00:00:00', '2030-10-31 00:00:00']],
    // Leap days, of a century too; week 53, which may lie in January.
    [
      { month: 2, day: 29 },
      '2096-01-01 00:00:00',
      ['2096-02-29 00:00:00', '2104-02-29 00:00:00', '2108-02-29 00:00:00'],
    ],
    [
      { week: 53, day_of_week: 'fri' },
      '2026-01-05 00:00:00',
      ['2027-01-01 00:00:00', '2032-12-31 00:00:00', '2038-01-01 00:00:00'],
    ],
    [
      { year: 2027, week: 53, hour: 12 },
      '2026-01-01 00:00:00',
      ['2027-01-01 12:00:00', '2027-01-02 12:00:00', '2027-01-03 12:00:00'],
    ],
    // Ends of years.
    [
      { month: 12, day: 31, hour: 23, minute: 59, second: 59 },
      '2030-12-31 23:59:59',
      ['2030-12-31 23:59:59', '2031-12-31 23:59:59', '2032-12-31 23:59:59'],
    ],
    [{ minute: 0 }, '2030-12-31 23:00:01', ['2031-01-01 00:00:00', '2031-01-01 01:00:00', '2031-01-01 02:00:00']],
    // What never comes.
    [{ month: 2, day: 30 }, '2030-01-01 00:00:00', [undefined]],
    [{ month: '2', day: '30,31', day_of_week: '*' }, '2030-01-01 00:00:00', [undefined]],
    [{ year: '2020-2029' }, '2030-01-01 00:00:00', [undefined]],
    [{ month: 6, week: 1 }, '2030-01-01 00:00:00', [undefined]],
    [{ year: 9999, month: 12, day: 31 }, '2030-01-01 00:00:00', ['9999-12-31 00:00:00', undefined]],
  ])('%j from %s', (expressions, from, expected) => {
    expect(times(expressions, from)).toEqual(expected)
  })

  test('the same as a search second by second', () => {
    const schedule = read({ day: '2-4,last', day_of_week: 'mon-thu', hour: '*/7', minute: '13-50/9', second: '5,40' })
    const start = secondsOf('2030-01-30 12:00:00')
    const expected: number[] = []
    for (let at = start; at < start + 6 * 86_400; at += 1) {
      const date = new Date(at * 1000)
      const day = date.getUTCDate()
      const isLast = new Date(at * 1000 + 86_400_000).getUTCDate() === 1
      const fits =
        ((day >= 2 && day <= 4) || isLast) &&
        (date.getUTCDay() + 6) % 7 < 4 &&
        date.getUTCHours() % 7 === 0 &&
        [13, 22, 31, 40, 49].includes(date.getUTCMinutes()) &&
        [5, 40].includes(date.getUTCSeconds())
      if (fits) expected.push(at)
    }
    const found: number[] = []
    for (let at = nextWallTime(schedule, start); at !== undefined && at < start + 6 * 86_400;) {
      found.push(at)
      at = nextWallTime(schedule, at + 1)
    }
    expect(found.length).toBeGreaterThan(50)
    expect(found).toEqual(expected)
  })

  test('is computed at once, even if no time matches', () => {
    const schedules = [
      { month: 2, day: 30 },
      { month: 6, week: 1 },
      { year: '*/8', month: 2, day: 29, week: 40 },
    ].map(read)
    const start = computedMs()
    for (const schedule of schedules) expect(nextWallTime(schedule, 0)).toBeUndefined()
    expect(computedMs() - start).toBeLessThan(5_000)
  })
})

describe('invalid expressions and their messages', () => {
  test.each<[CronExpressions, string]>([
    [{ minute: 60 }, 'minute: "60" is outside of the range of the field, 0 to 59'],
    [{ hour: '20-24' }, 'hour: "20-24" is outside of the range of the field, 0 to 23'],
    [{ day: 0 }, 'day: "0" is outside of the range of the field, 1 to 31'],
    [{ minute: '*/0' }, 'minute: the step in "*/0" must be at least 1'],
    [{ minute: '*/60' }, 'minute: the step in "*/60" is larger than the range from 0 to 59'],
    [{ day_of_week: 'sun-mon' }, 'day_of_week: the range "sun-mon" starts after its end'],
    [{ day: '2nd day' }, 'day: "day" in "2nd day" is not a weekday; use mon, tue, wed, thu, fri, sat, sun'],
  ])('%j', (expressions, problem) => {
    expect(readCron(expressions)).toEqual({ problem })
  })

  test.each<[CronExpressions, RegExp]>([
    [{ minute: 'x' }, /^minute: the expression "x" is invalid; use .*numbers from 0 to 59/],
    [{ minute: '' }, /^minute: the expression "" is invalid/],
    [{ minute: '1,' }, /^minute: the expression "" is invalid/],
    [{ hour: 'last' }, /^hour: the expression "last" is invalid/],
    [{ day: 'L' }, /^day: the expression "l" is invalid; .*2nd fri/],
    [{ day_of_week: 'someday' }, /^day_of_week: .*0 is Monday/],
    [{ second: '1'.repeat(501) }, /^second: the expression has more than 500 characters$/],
    [{ second: Array(101).fill('1').join() }, /^second: the expression has more than 100 parts$/],
  ])('%j', (expressions, problem) => {
    expect(readCron(expressions)).toEqual({ problem: expect.stringMatching(problem) })
  })
})
