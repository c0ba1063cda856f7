/**
 * Reads a crontab as cron does: settings count for the lines below them, comments stand on lines of their own, `%` ends the
 * command and begins its standard input.
 */
import { isTimeZone, nextWallTime, readCrontab as readTimes, type CronSchedule } from '../../../lib/calendar/index.ts'
import { shown } from '../../../lib/text/index.ts'

export interface CrontabJob {
  /** Of its line, from 1. */
  line: number
  /** The line as it is written. */
  text: string
  /** Five fields, or a name such as `@daily`. */
  cron: string
  schedule: CronSchedule
  timeZone: string
  command: string
  /** Standard input, without the last line end. */
  input?: string
  /** Account that runs it, of the user column. */
  user?: string
  /** From the comments directly above. */
  description?: string
  /** Absolute. */
  shell: string
  /** Variables that the crontab sets, in order. */
  environment: readonly (readonly [name: string, value: string])[]
  /** Undefined: cron mails the owner of the crontab. Empty: nobody. */
  mailTo?: readonly string[]
  /** 0: none. */
  jitterSeconds: number
}

export interface CrontabRemark {
  line: number
  text: string
  message: string
}

export interface Crontab {
  jobs: CrontabJob[]
  /** Lines that cron can run, but no timer. */
  left: CrontabRemark[]
  /** Lines that cron itself would refuse, or read otherwise than they look. */
  problems: CrontabRemark[]
  /** What is converted, but works otherwise. */
  notes: CrontabRemark[]
}

export interface CrontabOptions {
  /** Whether the lines have a column with the user. */
  isSystem: boolean
  /** For lines without `CRON_TZ`. */
  timeZone: string
}

/** Of one crontab; a pack holds no more actions. */
const MAX_JOBS = 5000
const MAX_LINE_CHARS = 20_000
const MAX_DESCRIPTION_CHARS = 1000
const MAX_RECIPIENTS = 50
/** The largest delay that cron takes: a day less a minute. */
const MAX_DELAY_MINUTES = 1439
const DEFAULT_SHELL = '/bin/sh'

class LineProblem extends Error {}

function fail(message: string): never {
  throw new LineProblem(message)
}

/** The settings above a line. */
interface Settings {
  shell: string
  timeZone: string | undefined
  mailTo: readonly string[] | undefined
  jitterSeconds: number
  environment: Map<string, string>
}

/** @param text whole; every problem in it is found */
export function readCrontab(text: string, { isSystem, timeZone }: CrontabOptions): Crontab {
  const found: Crontab = { jobs: [], left: [], problems: [], notes: [] }
  const settings: Settings = {
    shell: DEFAULT_SHELL,
    timeZone: undefined,
    mailTo: undefined,
    jitterSeconds: 0,
    environment: new Map(),
  }
  let comments: string[] = []
  const lines = text.replace(/^\uFEFF/, '').split('\n')
  for (const [index, written] of lines.entries()) {
    const line = written.replace(/\r$/, '').trim()
    const place = { line: index + 1, text: line }
    if (line.startsWith('#')) {
      comments.push(line)
      continue
    }
    const above = comments
    comments = []
    if (line === '') continue
    try {
      if (line.length > MAX_LINE_CHARS) fail(`the line has more than ${MAX_LINE_CHARS} characters`)
      if (/[^\P{Cc}\t]/u.test(line)) fail('the line has a control character')
      const assignment = readAssignment(line)
      if (assignment !== undefined) {
        const note = applySetting(settings, ...assignment)
        if (note !== undefined) found.notes.push({ ...place, message: note })
        continue
      }
      const entry = readEntry(line, isSystem)
      if (entry.times.toLowerCase() === '@reboot') {
        found.left.push({
          ...place,
          message:
            'svc has no timer for the start of the machine; leave the line in the crontab, or start the command from a systemd unit',
        })
        continue
      }
      if (entry.note !== undefined) found.notes.push({ ...place, message: entry.note })
      if (found.jobs.length === MAX_JOBS) fail(`the crontab has more than ${MAX_JOBS} jobs; divide it`)
      const description = descriptionOf(above)
      const { command, input } = splitInput(entry.command)
      if (command === '') fail('the line has no command')
      found.jobs.push({
        ...place,
        cron: entry.times,
        schedule: readSchedule(entry.times),
        timeZone: settings.timeZone ?? timeZone,
        command,
        ...(input === undefined ? {} : { input }),
        ...(entry.user === undefined ? {} : { user: entry.user }),
        ...(description === '' ? {} : { description }),
        shell: settings.shell,
        environment: [...settings.environment],
        ...(settings.mailTo === undefined ? {} : { mailTo: settings.mailTo }),
        jitterSeconds: settings.jitterSeconds,
      })
    } catch (error) {
      if (!(error instanceof LineProblem)) throw error
      found.problems.push({ ...place, message: error.message })
    }
  }
  return found
}

/** `NAME = value`; each may be quoted. Undefined: the line is none. */
function readAssignment(line: string): [name: string, value: string] | undefined {
  const match = /^(?:"([^"]*)"|'([^']*)'|([^\s=]+))\s*=\s*(.*)$/.exec(line)
  if (match === null) return undefined
  const [, double, single, plain, value = ''] = match
  const quoted = /^(["'])(.*)\1$/.exec(value)
  return [double ?? single ?? plain ?? '', quoted?.[2] ?? value]
}

/** @returns what works otherwise than in cron @throws LineProblem */
function applySetting(settings: Settings, name: string, value: string): string | undefined {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
    fail(`"${shown(name)}" cannot be the name of a variable: use letters, digits and "_"`)
  }
  switch (name) {
    case 'LOGNAME':
      return 'cron does not let a crontab change LOGNAME, and svc does not either'
    case 'MAILTO':
      settings.mailTo = readRecipients(value)
      return undefined
    case 'MAILFROM':
    case 'CONTENT_TYPE':
    case 'CONTENT_TRANSFER_ENCODING':
      return `${name} is about the mails of cron; the destination "mail" of svc says how its mails look`
    case 'CRON_TZ':
      if (value !== '' && !isTimeZone(value)) {
        fail(`"${shown(value)}" is no time zone; use a name such as Europe/Berlin or UTC`)
      }
      settings.timeZone = value === '' ? undefined : value
      return undefined
    case 'RANDOM_DELAY':
      if (!/^\d{1,4}$/.test(value) || Number(value) > MAX_DELAY_MINUTES) {
        fail(`RANDOM_DELAY must be a whole number of minutes from 0 to ${MAX_DELAY_MINUTES}`)
      }
      settings.jitterSeconds = Number(value) * 60
      return undefined
    case 'SHELL':
      if (!/^\/[^\s'"\\]+$/.test(value)) fail('SHELL must be the absolute path of a shell, such as /bin/bash')
      settings.shell = value
      settings.environment.set(name, value)
      return undefined
    case 'TZ':
      settings.environment.set(name, value)
      return 'as in cron, TZ is a variable of the commands; CRON_TZ, or --timezone, sets the time zone of the schedule'
    default:
      settings.environment.set(name, value)
      return undefined
  }
}

/** @throws LineProblem */
function readRecipients(value: string): readonly string[] {
  const recipients = value.split(/[\s,]+/).filter((each) => each !== '')
  const wrong = recipients.find(
    (each) => each.length > 320 || !/^[^\s@:;|<>()"'\\%-][^\s@:;|<>()"'\\%]*(?:@[A-Za-z0-9.-]+)?$/.test(each),
  )
  if (wrong !== undefined) fail(`MAILTO: "${shown(wrong)}" is no address of a mail`)
  if (recipients.length > MAX_RECIPIENTS) fail(`MAILTO has more than ${MAX_RECIPIENTS} recipients`)
  return [...new Set(recipients)]
}

interface Entry {
  times: string
  user?: string
  command: string
  note?: string
}

/** @throws LineProblem */
function readEntry(line: string, isSystem: boolean): Entry {
  // In some crons a line that begins with "-" is not logged.
  const isQuiet = /^-[\d*]/.test(line)
  const given = isQuiet ? line.slice(1) : line
  const [, times = '', rest = ''] =
    (given.startsWith('@') ? /^(@\S+)(?:\s+(.*))?$/ : /^(\S+\s+\S+\s+\S+\s+\S+\s+\S+)(?:\s+(.*))?$/).exec(given) ?? []
  if (times === '') fail('the line has fewer than five fields; a line has five fields of the time, then the command')
  const [, user, command = ''] = isSystem ? (/^(\S+)(?:\s+(.*))?$/.exec(rest) ?? []) : [undefined, undefined, rest]
  if (/^(?:[*?]|\*\/\d+|\d[\d,/-]*)$/.test((isSystem ? user : command.split(/\s/, 1)[0]) ?? '')) {
    fail('the line seems to have six fields of the time; a line has five: remove the seconds')
  }
  if (user !== undefined && !/^[A-Za-z_][A-Za-z0-9_.-]{0,63}\$?$/.test(user)) {
    fail(`"${shown(user)}" is no name of a user; in a system crontab the user stands between the time and the command`)
  }
  if (command === '') fail(isSystem ? 'the line has no command after the user' : 'the line has no command')
  if (!isSystem && /^root\s/.test(command)) {
    fail('the command would be "root"; if the lines have a column with the user, use --system')
  }
  return {
    times: times.split(/\s+/).join(' '),
    command,
    ...(user === undefined ? {} : { user }),
    ...(isQuiet ? { note: 'the "-" in front, which keeps cron from logging the run, has no effect' } : {}),
  }
}

/** @throws LineProblem */
function readSchedule(times: string): CronSchedule {
  // Some crons read all values from 5 on in steps of 20, others only 5.
  const step = /(?:^|[\s,])(\d+\/\d+)(?=$|[\s,])/.exec(times)?.[1]
  if (step !== undefined) {
    const [first = '', by = ''] = step.split('/')
    fail(`"${step}" means different times to different crons; write a range, such as ${first}-59/${by}`)
  }
  const read = readTimes(times)
  if ('problem' in read) fail(read.problem)
  if (nextWallTime(read.schedule, 0) === undefined) fail('the line never runs: its month has no such day')
  return read.schedule
}

/** An unescaped `%` ends the command; each further one is a line end of the standard input. */
function splitInput(text: string): { command: string; input?: string } {
  const [command = '', ...lines] = text.split(/(?<!\\)%/).map((part) => part.replaceAll('\\%', '%'))
  return { command: command.trim(), ...(lines.length === 0 ? {} : { input: lines.join('\n') }) }
}

/** Without rulers, names of the columns, and lines that were switched off. */
function descriptionOf(comments: readonly string[]): string {
  const texts = comments
    .map((comment) => comment.replace(/^[#\s]+/, '').trim())
    .filter(
      (text) =>
        /[\p{L}\p{N}]{2}/u.test(text) &&
        !/^(?:@\w+|(?:[\d*][\d*,/-]*\s+){4}\S+)\s+\S/.test(text) &&
        !/^[|+`.─┌└│*\s-]*(?:m|min|minute)\b.*\b(?:h|hour|dom|\d)/i.test(text) &&
        !/^[|+`.─┌└│\s-]{2}/.test(text),
    )
  return texts
    .join(' ')
    .replaceAll(/[^\P{Cc}]+/gu, ' ')
    .slice(0, MAX_DESCRIPTION_CHARS)
    .trim()
}
