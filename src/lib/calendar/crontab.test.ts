import { readFileSync } from 'node:fs'
import { Cron } from 'croner'
import { describe, expect, test } from 'vitest'
import { createRandom, seedOfRun, type Random } from '../../../tests/helpers/random.ts'
import { tier } from '../../../tests/helpers/tiers.ts'
import { computedMs } from '../../../tests/helpers/work.ts'
import { nextWallTime } from './cron.ts'
import { readCrontab } from './crontab.ts'

/** The first times after one, in UTC. */
function timesOf(text: string, after: string, count: number): string[] {
  const read = readCrontab(text)
  if ('problem' in read) throw new Error(`${text}: ${read.problem}`)
  const found: string[] = []
  let at = Date.parse(after) / 1000
  while (found.length < count) {
    const next = nextWallTime(read.schedule, at + 1)
    if (next === undefined) break
    found.push(new Date(next * 1000).toISOString().replace('.000Z', 'Z'))
    at = next
  }
  return found
}

describe('what an expression means', () => {
  test.each<[string, string, string[]]>([
    ['*/5 8-18 * * mon-fri', '2030-01-04T18:52:00Z', ['2030-01-04T18:55:00Z', '2030-01-07T08:00:00Z']],
    ['30 */15 * * * *', '2030-01-01T00:00:00Z', ['2030-01-01T00:00:30Z', '2030-01-01T00:15:30Z']],
    ['5/20 * * * *', '2030-01-01T00:00:00Z', ['2030-01-01T00:05:00Z', '2030-01-01T00:25:00Z', '2030-01-01T00:45:00Z']],
    // As cron does with a step that is too large.
    ['*/90 * * * *', '2030-01-01T00:00:00Z', ['2030-01-01T01:00:00Z', '2030-01-01T02:00:00Z']],
    [' 0\t12  1,15  JAN,jul-Aug * ', '2030-01-15T12:00:00Z', ['2030-07-01T12:00:00Z', '2030-07-15T12:00:00Z']],
    // Sunday has two numbers and ends a range.
    ['0 0 * * 0', '2030-01-01T00:00:00Z', ['2030-01-06T00:00:00Z', '2030-01-13T00:00:00Z']],
    ['0 0 * * 7', '2030-01-01T00:00:00Z', ['2030-01-06T00:00:00Z', '2030-01-13T00:00:00Z']],
    ['0 0 * * 5-7', '2030-01-01T00:00:00Z', ['2030-01-04T00:00:00Z', '2030-01-05T00:00:00Z', '2030-01-06T00:00:00Z']],
    ['0 0 * * sat-sun', '2030-01-01T00:00:00Z', ['2030-01-05T00:00:00Z', '2030-01-06T00:00:00Z']],
    ['0 0 * * sun-sun', '2030-01-01T00:00:00Z', ['2030-01-06T00:00:00Z', '2030-01-13T00:00:00Z']],
    ['0 0 * * sun-tue', '2030-01-02T00:00:00Z', ['2030-01-06T00:00:00Z', '2030-01-07T00:00:00Z']],
    ['0 0 * * */2', '2030-01-01T00:00:00Z', ['2030-01-03T00:00:00Z', '2030-01-05T00:00:00Z', '2030-01-06T00:00:00Z']],
    // Both days restricted: one of them is enough.
    ['0 0 13 * fri', '2030-01-01T00:00:00Z', ['2030-01-04T00:00:00Z', '2030-01-11T00:00:00Z', '2030-01-13T00:00:00Z']],
    ['0 0 13 * ?', '2030-01-01T00:00:00Z', ['2030-01-13T00:00:00Z', '2030-02-13T00:00:00Z']],
    ['0 0 ? * fri', '2030-01-01T00:00:00Z', ['2030-01-04T00:00:00Z', '2030-01-11T00:00:00Z']],
    // A field that begins with * does not restrict, even if it has a step.
    ['0 0 */2 * fri', '2030-01-01T00:00:00Z', ['2030-01-11T00:00:00Z', '2030-01-25T00:00:00Z']],
    ['0 0 1-31 * fri', '2030-01-01T00:00:00Z', ['2030-01-02T00:00:00Z', '2030-01-03T00:00:00Z']],
    // Last days.
    ['0 0 L * *', '2028-01-31T00:00:00Z', ['2028-02-29T00:00:00Z', '2028-03-31T00:00:00Z']],
    ['0 0 * * 5L', '2030-01-01T00:00:00Z', ['2030-01-25T00:00:00Z', '2030-02-22T00:00:00Z']],
    ['0 0 * * friL', '2030-01-01T00:00:00Z', ['2030-01-25T00:00:00Z', '2030-02-22T00:00:00Z']],
    ['0 0 * * fri#L', '2030-01-01T00:00:00Z', ['2030-01-25T00:00:00Z', '2030-02-22T00:00:00Z']],
    ['0 0 L * friL', '2030-01-01T00:00:00Z', ['2030-01-25T00:00:00Z', '2030-01-31T00:00:00Z']],
    // Weekdays of a month.
    ['0 0 * * fri#2', '2030-01-01T00:00:00Z', ['2030-01-11T00:00:00Z', '2030-02-08T00:00:00Z']],
    ['0 0 * * 7#1,3', '2030-01-01T00:00:00Z', ['2030-01-02T00:00:00Z', '2030-01-06T00:00:00Z', '2030-01-09T00:00:00Z']],
    ['0 0 * * thu#5', '2030-02-01T00:00:00Z', ['2030-05-30T00:00:00Z', '2030-08-29T00:00:00Z']],
    // Nearest weekdays: the 15th of June 2030 is a Saturday, the 15th of September a Sunday.
    ['0 0 15W 6,9 *', '2030-01-01T00:00:00Z', ['2030-06-14T00:00:00Z', '2030-09-16T00:00:00Z']],
    // They stay in their month: the 1st of June 2030 is a Saturday, the 31st of March a Sunday.
    ['0 0 1W 6 *', '2030-01-01T00:00:00Z', ['2030-06-03T00:00:00Z', '2031-06-02T00:00:00Z']],
    ['0 0 31W 3,4 *', '2030-01-01T00:00:00Z', ['2030-03-29T00:00:00Z', '2031-03-31T00:00:00Z']],
    ['0 0 LW * *', '2030-02-28T00:00:00Z', ['2030-03-29T00:00:00Z', '2030-04-30T00:00:00Z']],
    // Names.
    ['@yearly', '2030-01-01T00:00:00Z', ['2031-01-01T00:00:00Z']],
    ['@ANNUALLY', '2030-01-01T00:00:00Z', ['2031-01-01T00:00:00Z']],
    ['@monthly', '2030-01-01T00:00:00Z', ['2030-02-01T00:00:00Z']],
    ['@weekly', '2030-01-01T00:00:00Z', ['2030-01-06T00:00:00Z']],
    [' @daily ', '2030-01-01T00:00:00Z', ['2030-01-02T00:00:00Z']],
    ['@midnight', '2030-01-01T00:00:00Z', ['2030-01-02T00:00:00Z']],
    ['@hourly', '2030-01-01T00:00:00Z', ['2030-01-01T01:00:00Z']],
    // Never.
    ['0 0 30 feb *', '2030-01-01T00:00:00Z', []],
    ['0 0 31W 2,4,6,9,11 *', '2030-01-01T00:00:00Z', []],
  ])('%s after %s', (text, after, expected) => {
    expect(timesOf(text, after, Math.max(1, expected.length))).toEqual(expected)
  })
})

describe('invalid expressions and their messages', () => {
  const five = 'five (minute hour day-of-month month day-of-week) or six (second in front)'
  test.each<[string, string | RegExp]>([
    ['', `the expression has 0 fields, not ${five}; for example "*/5 8-18 * * mon-fri" or "@daily"`],
    ['* * * *', `the expression has 4 fields, not ${five}; for example "*/5 8-18 * * mon-fri" or "@daily"`],
    ['0 5 * * * root run-parts /etc', /has 8 fields.*leave out the command, the user and the year$/],
    ['60 * * * *', 'minute: "60" is outside of the range of the field, 0 to 59'],
    ['0 24 * * *', 'hour: "24" is outside of the range of the field, 0 to 23'],
    ['0 0 0 * *', 'day of month: "0" is outside of the range of the field, 1 to 31'],
    ['0 0 32W * *', 'day of month: "32w" is outside of the range of the field, 1 to 31'],
    ['0 0 * 13 *', 'month: "13" is outside of the range of the field, 1 to 12'],
    ['0 0 * * 8', 'day of week: "8" is outside of the range of the field, 0 to 7'],
    ['0 0 * * fri#6', 'day of week: "fri#6" must name the 1st to the 5th, or L for the last'],
    ['0 0 * * fri#0', 'day of week: "fri#0" must name the 1st to the 5th, or L for the last'],
    ['*/0 * * * *', 'minute: the step in "*/0" must be at least 1'],
    ['9-5 * * * *', 'minute: the range "9-5" starts after its end'],
    ['0 0 * * fri-mon', 'day of week: the range "fri-mon" starts after its end'],
    ['0 0 * * L', /^day of week: the expression "l" is invalid; .*friL for the last/],
    ['0 0 L-3 * *', /^day of month: the expression "l-3" is invalid; .*L for the last day/],
    ['0 0 1-15W * *', /^day of month: the expression "1-15w" is invalid/],
    ['? * * * *', /^minute: the expression "\?" is invalid/],
    ['1,, * * * *', /^minute: the expression "" is invalid/],
    ['0 0 * foo *', /^month: the expression "foo" is invalid; .*names from jan to dec/],
    ['0 0 * * monday', /^day of week: the expression "monday" is invalid; .*0 and 7 are Sunday/],
    ['H H * * *', /^minute: .*To spread jobs, use jitter_seconds$/],
    ['0~30 * * * *', /^minute: .*To spread jobs, use jitter_seconds$/],
    ['@reboot', /^@reboot is not a time\. .*systemd unit/],
    ['@every 5m', /^@every is not a time\. Use core\.svc\.IntervalTimer/],
    ['@sometimes', /^"@sometimes" is unknown; use @yearly, .*@hourly$/],
    ['@toString', /is unknown/],
    [`${'1,'.repeat(100)}1 * * * *`, 'minute: the expression has more than 100 parts'],
    ['*'.repeat(501), 'the expression has more than 500 characters'],
  ])('%s', (text, problem) => {
    const read = readCrontab(text)
    const found = 'problem' in read ? read.problem : 'none'
    // A text is the whole message, an expression fits it.
    const isSaid = typeof problem === 'string' ? found === problem : problem.test(found)
    expect(isSaid ? problem : found).toBe(problem)
  })
})

test('is computed at once, even if no time matches and the text is as long as it may be', () => {
  const long = `${Array(99).fill('30').join()} feb *`
  const start = computedMs()
  for (const text of [
    '0 0 30 feb *',
    `59 59 23 ${long}`,
    `${'0'.repeat(490)} * * * *`,
    `0 0 ${'31W,'.repeat(99)}31W feb *`,
  ]) {
    const read = readCrontab(text)
    expect('schedule' in read ? nextWallTime(read.schedule, 0) : undefined).toBeUndefined()
  }
  expect(computedMs() - start).toBeLessThan(5_000)
})

describe('held against others', () => {
  interface Golden {
    times: { cron: string; after: string; times: string[] }[]
  }
  const path = new URL('../../../tests/golden/timers/crontab.json', import.meta.url)

  test('croniter', () => {
    const golden = JSON.parse(readFileSync(path, 'utf8')) as Golden // its shape is ours
    expect(golden.times.length).toBeGreaterThan(100)
    for (const { cron, after, times } of golden.times) {
      expect([cron, ...timesOf(cron, after, times.length)]).toEqual([cron, ...times])
    }
  })

  const seed = seedOfRun()
  test(`croner, with random expressions (seed ${seed})`, () => {
    const random = createRandom(seed)
    for (let i = 0; i < (tier === 'full' ? 5_000 : 100); i += 1) {
      const fields = randomFields(random)
      const after = new Date(Date.UTC(2024, 0, 1) + random.below(8 * 365 * 86_400) * 1000)
      const options = { timezone: 'UTC', paused: true, domAndDow: bothDays(fields) }
      const runs = new Cron(forCroner(fields), options).nextRuns(20, after)
      const expected = runs.map((run) => run.toISOString().replace('.000Z', 'Z'))
      const text = fields.join(' ')
      expect([text, ...timesOf(text, after.toISOString(), 20)]).toEqual([text, ...expected])
    }
  })
})

const monthNames = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const weekdayNames = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']

interface Kind {
  min: number
  max: number
  names?: readonly string[]
  /** Another form. */
  special?: (random: Random, value: string) => string
}

const kinds: readonly Kind[] = [
  { min: 0, max: 59 },
  { min: 0, max: 59 },
  { min: 0, max: 23 },
  { min: 1, max: 31, special: (random, value) => random.pick(['L', `${value}W`]) },
  { min: 1, max: 12, names: monthNames },
  {
    min: 0,
    max: 7,
    names: weekdayNames,
    special: (random, value) => random.pick([`${value}#${1 + random.below(5)}`, `${value}L`]),
  },
]

/** Six fields, seconds first. */
function randomFields(random: Random): string[] {
  return kinds.map((kind, i) => {
    if (random.once(i === 0 ? 2 : 3)) return i === 0 ? '0' : '*'
    if (i === 3 && random.once(12)) return random.pick(['?', 'LW'])
    return Array.from({ length: random.once(3) ? 1 + random.below(4) : 1 }, () => randomPart(random, kind)).join()
  })
}

function randomPart(random: Random, kind: Kind): string {
  const { min, max, names, special } = kind
  const nameOf = (value: number): string =>
    (random.once(3) ? names?.[(value - min) % names.length] : undefined) ?? String(value)
  const first = min + random.below(max - min)
  const last = first + 1 + random.below(max - first)
  const step = 1 + random.below(last - first)
  if (special !== undefined && random.once(5)) return special(random, nameOf(first))
  return random
    .pick([
      nameOf(first),
      `*/${1 + random.below(max - min)}`,
      `${first}/${step}`,
      `${nameOf(first)}-${nameOf(last)}`,
      `${nameOf(first)}-${last}/${step}`,
    ])
    .replace(/^sun-sun$/, 'sun')
    .replace(/-sun$/, '-7')
}

/** croner has no `5/20`. */
const forCroner = (fields: readonly string[]): string =>
  fields
    .map((field, i) => {
      const max = i === 5 ? 6 : (kinds[i]?.max ?? 0)
      return field.replaceAll(/(^|,)(\d+)\/(\d+)/g, `$1$2-${max}/$3`)
    })
    .join(' ')

/** To croner, `*` followed by a step restricts a day. */
const bothDays = (fields: readonly string[]): boolean => [3, 5].some((i) => /^[*?]/.test(fields[i] ?? ''))
