/**
 * The structured log of the process: one line per message on standard error, as text or JSON, and in files. AUDIT
 * messages also go to a separate file as JSON objects (contract 10, 10.3).
 *
 * Every message has a stable `event` to match on, a sentence for people, and fields. For any content of the fields a
 * message is one bounded line without secrets. Logging neither throws nor calls itself.
 */
import { hostname } from 'node:os'
import { Writable } from 'node:stream'
import winston from 'winston'
import { openLineFile, type LineFile, type Rotation } from '../files/index.ts'
import { logLevels, type LogLevel } from './log-levels.ts'
import { ErrorCopy, clip, createRedactor, escapeUnprintable, maximumTextLength, type Redactor } from './redact.ts'

/** Values of any type; a caught error goes under `error`. */
export type LogFields = Readonly<Record<string, unknown>>

/** `event` is a dotted name that never changes: `execution.requested`. */
type Write = (event: string, message: string, fields?: LogFields) => void

export interface Log {
  debug: Write
  info: Write
  /** The message defaults to the words of the event: `execution.requested` becomes `Execution requested.` */
  audit: Write & ((event: string, fields: LogFields) => void)
  warning: Write
  error: Write
  critical: Write
  /** Whether this level is logged; for callers whose fields are expensive to compute. */
  enabled(level: LogLevel): boolean
  /** A log that adds these fields to every message. */
  child(fields: LogFields): Log
  /** Masks the secret query parameters of a URL or path. */
  maskUrl(url: string): string
}

/** A logged message. */
export interface LogMessage {
  /** ISO 8601, UTC, milliseconds. */
  timestamp: string
  level: LogLevel
  event: string
  message: string
  /** The whole line as text, secrets masked, cut to 1000 characters. */
  line: string
}

export interface RootLog extends Log {
  /** Of its files, absolute. */
  readonly paths: readonly string[]
  /** The last 50 messages at WARNING or above, oldest first. */
  recent(): readonly LogMessage[]
  /** Number of messages of each level since the start. */
  counts(): Readonly<Record<LogLevel, number>>
  /** A log whose messages also go to the files of this part of the server; by default they go to those of `api`. */
  of(part: string): Log
  /** Continues in new files after the old ones have been renamed. */
  reopen(): Promise<void>
  /** Resolves when every message is with the operating system, at the latest after two seconds. */
  close(): Promise<void>
}

/** `gelf`: a JSON object in the style of GELF 1.1. */
export type LogFormat = 'text' | 'json' | 'gelf'

/** A file of the log. */
export interface LogFile extends Rotation {
  /** Absolute. */
  path: string
  format: LogFormat
  /** The messages it receives: of at least this level and of this part; without a part, of all parts. */
  takes: readonly { level: LogLevel; part?: string }[]
}

/** A log file cannot be opened. */
export class LogFileError extends Error {
  readonly path: string
  constructor(path: string, cause: unknown) {
    super(`The log file ${path} cannot be written`, { cause })
    this.name = 'LogFileError'
    this.path = path
  }
}

export interface LogOptions {
  /** Of standard error. */
  level: LogLevel
  format: 'text' | 'json'
  /** `log.mask_secrets`; default true. */
  maskSecrets?: boolean
  /** Names of secrets in addition to the built-in ones (`log.mask_secrets_blacklist`). */
  maskNames?: readonly string[]
  /** Default none; every path is distinct. */
  files?: readonly LogFile[]
  /** Events to exclude, with all events below them (`name.…`). AUDIT messages are never excluded. */
  excludes?: readonly string[]
  /** Default standard error. `close` does not end it. */
  stream?: Writable
  /**
   * Which AUDIT messages the stream gets: `all`, or only those that no file takes (`unfiled`), also because the file cannot be
   * written. Default `all`.
   */
  audit?: 'all' | 'unfiled'
  /** Default the system clock. */
  now?: () => Date
}

const closeTimeoutMs = 2000
const maximumFields = 50
const maximumWaitingBytes = 8 * 1024 * 1024
const recentMessages = 50
const recentLineLength = 1000
/** Levels that `recent` keeps. */
const seriousLevels: ReadonlySet<LogLevel> = new Set<LogLevel>(['WARNING', 'ERROR', 'CRITICAL'])

/** The part of messages without one. */
const commonPart = 'api'

/** @throws LogFileError */
export function createLog(options: LogOptions): RootLog {
  const threshold = logLevels.indexOf(options.level)
  const { files: logFiles = [], excludes = [], audit = 'all' } = options
  const redactor = createRedactor(options.maskSecrets ?? true, options.maskNames)
  const formatLine = options.format === 'json' ? jsonLine : textLine
  const now = options.now ?? (() => new Date())
  const target = options.stream ?? process.stderr
  const sink = boundedSink(target, (dropped) =>
    formatLine(now(), 'WARNING', 'log.lines_dropped', 'Log lines were dropped because their reader is too slow.', [
      ['dropped', dropped],
    ]),
  )
  const logger = winston.createLogger({
    levels: { audit: 0, critical: 1, error: 2, warning: 3, info: 4, debug: 5 },
    level: 'debug',
    format: winston.format.printf((info) => String(info.message)),
    transports: [new winston.transports.Stream({ stream: sink, eol: '\n' })],
  })

  const recent: LogMessage[] = []
  const counts: Record<LogLevel, number> = { DEBUG: 0, INFO: 0, WARNING: 0, ERROR: 0, CRITICAL: 0, AUDIT: 0 }
  let formatting = false
  let closed: Promise<void> | undefined

  function writeConsole(level: LogLevel, line: string): void {
    if (closed === undefined) logger.log(level.toLowerCase(), line)
    else sink.write(`${line}\n`)
  }

  const write = ({ own, part }: Origin, level: LogLevel, event: string, message: string, fields?: LogFields): void => {
    // A getter of a logged object may itself log.
    if (formatting || (level !== 'AUDIT' && isExcluded(event))) return
    formatting = true
    const severity = logLevels.indexOf(level)
    const targets = files.filter((file) => takes(file.takes, severity, part))
    const wanted = targets.map(({ format }) => format)
    const isForStream = severity >= threshold && (level !== 'AUDIT' || audit === 'all' || targets.every(isFailing))
    if (isForStream) wanted.push(options.format)
    let lines: Partial<Record<LogFormat, string>>
    try {
      const time = now()
      const isSerious = seriousLevels.has(level)
      lines = linesIn(
        isSerious ? [...wanted, 'text'] : wanted,
        time,
        level,
        event,
        message,
        withFields(redactor, own, fields),
      )
      counts[level] += 1
      if (isSerious) {
        keep({ timestamp: time.toISOString(), level, event, message: clip(message, 200), line: lines.text ?? '' })
      }
    } catch {
      lines = linesIn(wanted, new Date(), level, 'log.unreadable', 'A message could not be written.', [])
    } finally {
      formatting = false
    }
    for (const { format, file } of targets) file.append(lines[format] ?? '')
    if (isForStream) writeConsole(level, lines[options.format] ?? '')
  }

  function isExcluded(event: string): boolean {
    return excludes.some(
      (name) => event.startsWith(name) && (event.length === name.length || event[name.length] === '.'),
    )
  }

  function keep(message: LogMessage): void {
    recent.push({ ...message, line: clip(message.line, recentLineLength) })
    if (recent.length > recentMessages) recent.shift()
  }

  /** Paths of the files that cannot be written now. */
  const failing = new Set<string>()
  const isFailing = ({ path }: LogFile): boolean => failing.has(path)

  const files: (LogFile & { file: LineFile })[] = []
  // One by one: the files already open receive the problems of the next.
  for (const logFile of logFiles) files.push({ ...logFile, file: open(logFile) })

  function open({ path, maxBytes, backupCount, keptSeconds = 0, takes: taken }: LogFile): LineFile {
    const isAudit = taken.every(({ level }) => level === 'AUDIT')
    const [event, what] = isAudit ? ['log.audit_lost', 'audit'] : ['log.lines_lost', 'log']
    const tell = (level: LogLevel, message: string, fields: LogFields): void =>
      write(nobody, level, event, message, { file: path, ...fields })
    try {
      return openLineFile(
        path,
        {
          failed: (error) => {
            failing.add(path)
            tell('ERROR', `The ${what} file cannot be written; its lines are only on standard error.`, { error })
          },
          resumed: (lost) => {
            failing.delete(path)
            tell('WARNING', `The ${what} file is written again.`, { lost })
          },
          lost: (lost) => tell('ERROR', `Lines are missing in the ${what} file.`, { lost }),
          notRotated: (error) =>
            write(nobody, 'ERROR', 'log.not_rotated', `The ${what} file cannot be renamed; it grows on.`, {
              file: path,
              error,
            }),
        },
        { maxBytes, backupCount, keptSeconds },
      )
    } catch (error) {
      for (const { file } of files) void file.close()
      throw new LogFileError(path, error)
    }
  }

  const create = (origin: Origin): Log => {
    const isWritten = (level: LogLevel): boolean => {
      const severity = logLevels.indexOf(level)
      return severity >= threshold || logFiles.some((file) => takes(file.takes, severity, origin.part))
    }
    const writer = (level: LogLevel): Write => {
      if (!isWritten(level)) return () => undefined
      return (event, message, fields) => write(origin, level, event, message, fields)
    }
    const audit = writer('AUDIT')
    return {
      debug: writer('DEBUG'),
      info: writer('INFO'),
      warning: writer('WARNING'),
      error: writer('ERROR'),
      critical: writer('CRITICAL'),
      audit: (event: string, message: string | LogFields, fields?: LogFields) =>
        typeof message === 'string' ? audit(event, message, fields) : audit(event, sentenceOf(event), message),
      enabled: isWritten,
      child: (fields) => create({ ...origin, own: withFields(redactor, origin.own, fields) }),
      maskUrl: (url) => redactor.maskUrl(url),
    }
  }

  const close = async (): Promise<void> => {
    await Promise.all(files.map(({ file }) => file.close()))
    const ended = new Promise((resolve) => logger.once('finish', resolve))
    logger.end()
    await ended
    await flush(target)
  }
  return {
    ...create(nobody),
    paths: logFiles.map(({ path }) => path),
    of: (part) => create({ ...nobody, part }),
    recent: () => [...recent],
    counts: () => ({ ...counts }),
    reopen: async () => {
      await Promise.all(files.map(({ file }) => file.reopen()))
    },
    close: () => (closed ??= close()),
  }
}

/** What all messages of a log share. */
interface Origin {
  own: readonly SafeField[]
  part: string
}

const nobody: Origin = { own: [], part: commonPart }

function takes(taken: LogFile['takes'], severity: number, part: string): boolean {
  return taken.some((one) => severity >= logLevels.indexOf(one.level) && (one.part ?? part) === part)
}

function sentenceOf(event: string): string {
  const words = event.replace(/[._]+/g, ' ')
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`
}

type SafeField = [name: string, value: unknown]
type FormatLine = (time: Date, level: LogLevel, event: string, message: string, fields: readonly SafeField[]) => string

/** The fields of a log and of one message, copied; the message's fields win. */
function withFields(
  redactor: Redactor,
  own: readonly SafeField[],
  fields: LogFields | undefined,
): readonly SafeField[] {
  if (fields === undefined) return own
  const copy = redactor.copier()
  const added: SafeField[] = []
  let names: string[] = []
  try {
    names = Object.keys(fields)
  } catch {
    added.push(['fields', '[unreadable]'])
  }
  for (const name of names.slice(0, maximumFields)) {
    let value: unknown
    try {
      value = fields[name]
    } catch {
      value = '[unreadable]'
    }
    if (value !== undefined) added.push([clip(name, 100), copy(name, value)])
  }
  return [...own.filter(([name]) => !added.some(([other]) => other === name)), ...added]
}

/** `2030-01-01 10:00:00,123 INFO message (event=a.b, key=value)`, UTC. */
const textLine: FormatLine = (time, level, event, message, fields) => {
  const stamp = time.toISOString().slice(0, 23).replace('T', ' ').replace('.', ',')
  const pairs = [['event', event], ...fields].map(
    ([name, value]) => `${escapeUnprintable(String(name))}=${textValue(value)}`,
  )
  return `${stamp} ${level} ${escapeUnprintable(clip(message, maximumTextLength))} (${pairs.join(', ')})`
}

function textValue(value: unknown): string {
  if (value instanceof ErrorCopy) return escapeUnprintable(JSON.stringify(errorText(value)))
  if (typeof value === 'string' && /^[^\s"=,()\\]+$/.test(value)) return escapeUnprintable(value)
  return escapeUnprintable(JSON.stringify(value) ?? '')
}

/** `AppError INTERNAL: message at f (file:1:2) < g (file:3:4); caused by …` */
function errorText(error: ErrorCopy): string {
  const code = error.code === undefined ? '' : ` ${error.code}`
  const details = error.details === undefined ? '' : ` ${JSON.stringify(error.details)}`
  const frames = error.frames === undefined ? '' : ` at ${error.frames.join(' < ')}`
  const parts = [`${error.name}${code}: ${error.message}${details}${frames}`]
  for (const inner of error.errors ?? []) parts.push(`includes ${innerText(inner)}`)
  if (error.cause !== undefined) parts.push(`caused by ${innerText(error.cause)}`)
  return parts.join('; ')
}

const innerText = (inner: unknown): string =>
  inner instanceof ErrorCopy ? errorText(inner) : (JSON.stringify(inner) ?? '')

const ownNames = new Set(['timestamp', 'level', 'event', 'message'])

/** One JSON object; a field with a reserved name gets the suffix `_`. */
const jsonLine: FormatLine = (time, level, event, message, fields) => {
  const record: Record<string, unknown> = Object.create(null)
  record['timestamp'] = time.toISOString()
  record['level'] = level
  record['event'] = event
  record['message'] = clip(message, maximumTextLength)
  for (const [name, value] of fields) record[ownNames.has(name) ? `${name}_` : name] = value
  return escapeUnprintable(JSON.stringify(record))
}

const host = hostname()
const gelfNames = new Set(['event', 'python', 'exception', 'traceback', 'id'])

/** Severities of syslog. */
const syslogLevels: Record<LogLevel, number> = { DEBUG: 7, INFO: 6, AUDIT: 6, WARNING: 4, ERROR: 3, CRITICAL: 2 }

/** One JSON object in the style of GELF 1.1; a field with a reserved name gets the suffix `_`. */
function gelfLine(plain: string, ...[time, level, event, message, fields]: Parameters<FormatLine>): string {
  const milliseconds = time.getTime()
  const record: Record<string, unknown> = Object.create(null)
  record['version'] = '1.1'
  record['host'] = host
  record['short_message'] = clip(message, maximumTextLength)
  record['full_message'] = plain
  record['timestamp'] = Math.floor(milliseconds / 1000)
  record['timestamp_f'] = milliseconds / 1000
  record['level'] = syslogLevels[level]
  record['_python'] = { name: 'svc', process: process.pid, module: event.split('.', 1)[0] }
  record['_event'] = event
  for (const [name, value] of fields) {
    record[`_${gelfNames.has(name) ? `${name}_` : name}`] = value
    if (name !== 'error' || !(value instanceof ErrorCopy)) continue
    record['_exception'] = `${value.name}: ${value.message}`
    record['_traceback'] = value.frames?.join('\n') ?? ''
  }
  return escapeUnprintable(wellFormed(JSON.stringify(record)))
}

/** A message in each of the formats. */
function linesIn(wanted: readonly LogFormat[], ...message: Parameters<FormatLine>): Partial<Record<LogFormat, string>> {
  const lines: Partial<Record<LogFormat, string>> = {}
  if (wanted.includes('text') || wanted.includes('gelf')) lines.text = textLine(...message)
  if (wanted.includes('json')) lines.json = jsonLine(...message)
  if (wanted.includes('gelf')) lines.gelf = gelfLine(lines.text ?? '', ...message)
  return lines
}

/** Replaces escapes of lone surrogates, which strict JSON readers refuse. */
function wellFormed(json: string): string {
  if (!json.includes('\\ud')) return json
  return json.replace(/\\(?:u(d[89a-f][0-9a-f]{2})|.)/g, (escape, half: string | undefined) =>
    half === undefined ? escape : '\\ufffd',
  )
}

const guarded = new WeakSet<Writable>()

/** Passes lines on while the target keeps up and counts the dropped ones, so that a stuck reader costs no memory. */
function boundedSink(target: Writable, droppedLine: (count: number) => string): Writable {
  if (!guarded.has(target)) {
    guarded.add(target)
    // A log whose reader is gone must not end the process.
    target.on('error', () => undefined)
  }
  let dropped = 0
  return new Writable({
    decodeStrings: false,
    write: (line: string, _encoding, done) => {
      if (!target.writable || target.writableLength > maximumWaitingBytes) {
        dropped += 1
      } else {
        const notice = dropped === 0 ? '' : `${droppedLine(dropped)}\n`
        dropped = 0
        target.write(notice + line)
      }
      done()
    },
  })
}

function flush(target: Writable): Promise<void> {
  if (!target.writable) return Promise.resolve()
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, closeTimeoutMs)
    target.write('', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
