import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { readCrontab, type Crontab } from './read.ts'

const read = (text: string, isSystem = false): Crontab => readCrontab(text, { isSystem, timeZone: 'UTC' })

describe('settings', () => {
  test('count for the lines below them, quotes and blanks around them do not', () => {
    const { jobs } = read(`A = " x "\n* * * * * one\nA='y'\nB=\n"C"=d # e\n* * * * * two\n`)
    expect(jobs.map(({ environment }) => environment)).toEqual([
      [['A', ' x ']],
      [
        ['A', 'y'],
        ['B', ''],
        ['C', 'd # e'],
      ],
    ])
  })

  test.each<[string, readonly string[] | undefined]>([
    ['', undefined],
    ['MAILTO=', []],
    ['MAILTO=""', []],
    ['MAILTO=root', ['root']],
    ['MAILTO="a@example.org, b@example.org a@example.org,,"', ['a@example.org', 'b@example.org']],
  ])('%s', (setting, mailTo) => {
    expect(read(`${setting}\n* * * * * one\n`).jobs.map((job) => job.mailTo)).toEqual([mailTo])
  })

  test('an entry is none, whatever it contains', () => {
    const { jobs, problems } = read('* * * * * A=1 B=2 run\n@daily C=3\n')
    expect([jobs.map(({ command }) => command), problems]).toEqual([['A=1 B=2 run', 'C=3'], []])
  })

  test('more recipients than a notification takes', () => {
    const text = `MAILTO=${Array.from({ length: 51 }, (_, i) => `a${i}`).join()}\n`
    expect(read(text).problems).toEqual([expect.objectContaining({ message: 'MAILTO has more than 50 recipients' })])
  })
})

test.each<[string, string, string | undefined]>([
  ['run', 'run', undefined],
  ['run a\\%b', 'run a%b', undefined],
  ['run%', 'run', ''],
  ['run %a%b', 'run', 'a\nb'],
  ['run \\%x%a \\% b%', 'run %x', 'a % b\n'],
  ["run 'a\\b'", "run 'a\\b'", undefined],
])('command and input of %s', (text, command, input) => {
  const [job] = read(`* * * * * ${text}\n`).jobs
  expect([job?.command, job?.input]).toEqual([command, input])
})

test.each([
  ['# Backup\n# of all', 'Backup of all'],
  ['# Backup\n', undefined],
  ['# Backup\nA=b', undefined],
  ['#0 3 * * * old.sh\n# New', 'New'],
  ['# @daily old.sh', undefined],
  ['# m h dom mon dow command', undefined],
  ['# |  |  .---- day of month (1 - 31)\n# *  *  *  *  * user command', undefined],
  ['#', undefined],
  [`# ${'x'.repeat(2000)}`, 'x'.repeat(1000)],
])('the description from %j', (above, description) => {
  expect(read(`${above}\n* * * * * run\n`).jobs.map((job) => job.description)).toEqual([description])
})

test('every invalid line is reported, with what is wrong', () => {
  const { jobs, left, problems } = read(readFileSync('tests/fixtures/crontabs/invalid.cron', 'utf8'))
  expect([jobs, left]).toEqual([[], []])
  expect(problems.map(({ line, message }) => `${line}: ${message}`)).toMatchInlineSnapshot(`
    [
      "2: the line has fewer than five fields; a line has five fields of the time, then the command",
      "3: minute: "60" is outside of the range of the field, 0 to 59",
      "4: month: the expression "foo" is invalid; use *, */2, numbers from 1 to 12, ranges such as 1-3 or 1-5/2, commas between several parts, names from jan to dec",
      "5: the line never runs: its month has no such day",
      "6: "5/20" means different times to different crons; write a range, such as 5-59/20",
      "7: the line seems to have six fields of the time; a line has five: remove the seconds",
      "8: day of week: "8" is outside of the range of the field, 0 to 7",
      "9: @every is not a time. Use core.svc.IntervalTimer with unit and delta",
      "10: "@sometimes" is unknown; use @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly",
      "11: the line has no command",
      "12: the line has no command",
      "13: the command would be "root"; if the lines have a column with the user, use --system",
      "14: "A-B" cannot be the name of a variable: use letters, digits and "_"",
      "15: SHELL must be the absolute path of a shell, such as /bin/bash",
      "16: "Mars/Olympus" is no time zone; use a name such as Europe/Berlin or UTC",
      "17: RANDOM_DELAY must be a whole number of minutes from 0 to 1439",
      "18: MAILTO: "|/bin/sh" is no address of a mail",
      "19: minute: the expression "" is invalid; use *, */2, numbers from 0 to 59, ranges such as 0-2 or 0-4/2, commas between several parts",
      "20: minute: the expression "~" is invalid; use *, */2, numbers from 0 to 59, ranges such as 0-2 or 0-4/2, commas between several parts. To spread jobs, use jitter_seconds",
      "21: the line has fewer than five fields; a line has five fields of the time, then the command",
      "22: the line has a control character",
    ]
  `)
})

test('a column with users', () => {
  const { jobs, problems } = read('* * * * * root run a\n@daily ana run\n* * * * * root\n* * * * * /bin/run x\n', true)
  expect(jobs.map(({ user, command }) => [user, command])).toEqual([
    ['root', 'run a'],
    ['ana', 'run'],
  ])
  expect(problems.map(({ line, message }) => `${line}: ${message}`)).toEqual([
    '3: the line has no command after the user',
    '4: "/bin/run" is no name of a user; in a system crontab the user stands between the time and the command',
  ])
})

test('as many jobs as a pack holds, and long lines', () => {
  const { jobs, problems } = read(`${'* * * * * run\n'.repeat(5001)}* * * * * ${'x'.repeat(20_000)}\n`)
  expect([jobs.length, problems.map(({ line }) => line)]).toEqual([5000, [5001, 5002]])
})
