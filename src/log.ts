/**
 * Structured log of the process: one line per message on standard error, text or JSON, and of AUDIT messages a JSON object
 * in a file of their own (contract 10, 10.3).
 *
 * Every message has an `event`, a stable name to match on, a sentence for people, and fields. Whatever the fields hold,
 * a message is one bounded line without secrets, and logging neither throws nor calls itself.
 */
import { hostname } from 'node:os'
import { Writable } from 'node:stream'
import winston from 'winston'
import { openLineFile } from './line-file.ts'
import { logLevels, type LogLevel } from './log-levels.ts'
import { ErrorCopy, clip, createRedactor, escapeUnprintable, maximumTextLength, type Redactor } from './redact.ts'

/** Values of any type; `error` is the customary name for a caught error. */
export type LogFields = Readonly<Record<string, unknown>>

/** `event` is a dotted name that never changes: `execution.requested`. */
type Write = (event: string, message: string, fields?: LogFields) => void

export interface Log {
  debug: Write
  info: Write
  /** Without a message the event's own words serve: `execution.requested` reads `Execution requested.` */
  audit: Write & ((event: string, fields: LogFields) => void)
  warning: Write
  error: Write
  critical: Write
  /** Whether messages of this level are written; for callers whose fields are expensive to make. */
  enabled(level: LogLevel): boolean
  /** A log whose messages all carry these fields too. */
  child(fields: LogFields): Log
  /** A URL or path as it may appear in a message: secret query parameters are masked. */
  maskUrl(url: string): string
}

/** A message as it was written. */
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
  /** The last 50 messages at WARNING or above, oldest first. */
  recent(): readonly LogMessage[]
  /** How many messages of each level there have been. */
  counts(): Readonly<Record<LogLevel, number>>
  /** Goes on in a new audit file after the old one has been renamed. */
  reopen(): Promise<void>
  /** Resolves when everything has been handed to the operating system, at the latest after two seconds. */
  close(): Promise<void>
}

export interface LogOptions {
  level: LogLevel
  format: 'text' | 'json'
  /** `log.mask_secrets`; default true. */
  maskSecrets?: boolean
  /** Names of secrets besides the built-in ones (`log.mask_secrets_blacklist`). */
  maskNames?: readonly string[]
  /** `log.audit_file`, absolute; default and empty: none. */
  auditFile?: string
  /** Default standard error. It is not ended by `close`. */
  stream?: Writable
  /** Default the system clock. */
  now?: () => Date
}

const closeTimeoutMs = 2000
const maximumFields = 50
const maximumWaitingBytes = 8 * 1024 * 1024
const recentMessages = 50
const recentLineLength = 1000
/** `recent` has these. */
const seriousLevels: ReadonlySet<LogLevel> = new Set<LogLevel>(['WARNING', 'ERROR', 'CRITICAL'])

/** @throws what the file system says about `auditFile` */
export function createLog(options: LogOptions): RootLog {
  const threshold = logLevels.indexOf(options.level)
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

  const write = (
    own: readonly SafeField[],
    level: LogLevel,
    event: string,
    message: string,
    fields?: LogFields,
  ): void => {
    // A getter of a logged object may itself log.
    if (formatting) return
    formatting = true
    let line: string
    let audit: string | undefined
    try {
      const time = now()
      const safe = withFields(redactor, own, fields)
      line = formatLine(time, level, event, message, safe)
      counts[level] += 1
      const isAudit = level === 'AUDIT' && audits !== undefined
      if (isAudit || seriousLevels.has(level)) {
        const plain = formatLine === textLine ? line : textLine(time, level, event, message, safe)
        if (isAudit) audit = auditLine(time, event, message, safe, plain)
        else keep({ timestamp: time.toISOString(), level, event, message: clip(message, 200), line: plain })
      }
    } catch {
      line = formatLine(new Date(), level, 'log.unreadable', 'A message could not be written.', [])
    } finally {
      formatting = false
    }
    if (audit !== undefined) audits?.append(audit)
    if (closed === undefined) logger.log(level.toLowerCase(), line)
    else sink.write(`${line}\n`)
  }

  function keep(message: LogMessage): void {
    recent.push({ ...message, line: clip(message.line, recentLineLength) })
    if (recent.length > recentMessages) recent.shift()
  }

  const { auditFile = '' } = options
  const audits =
    auditFile === ''
      ? undefined
      : openLineFile(auditFile, {
          failed: (error) =>
            write([], 'ERROR', 'log.audit_lost', 'The audit file cannot be written; audit lines are only here.', {
              file: auditFile,
              error,
            }),
          resumed: (lines) =>
            write([], 'WARNING', 'log.audit_lost', 'The audit file is written again.', {
              file: auditFile,
              lost: lines,
            }),
          lost: (lines) =>
            write([], 'ERROR', 'log.audit_lost', 'Audit lines are missing in the audit file.', {
              file: auditFile,
              lost: lines,
            }),
        })

  const create = (own: readonly SafeField[]): Log => {
    const writer = (level: LogLevel): Write => {
      if (logLevels.indexOf(level) < threshold) return () => undefined
      return (event, message, fields) => write(own, level, event, message, fields)
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
      enabled: (level) => logLevels.indexOf(level) >= threshold,
      child: (fields) => create(withFields(redactor, own, fields)),
      maskUrl: (url) => redactor.maskUrl(url),
    }
  }

  const close = async (): Promise<void> => {
    await audits?.close()
    const ended = new Promise((resolve) => logger.once('finish', resolve))
    logger.end()
    await ended
    await flush(target)
  }
  return {
    ...create([]),
    recent: () => [...recent],
    counts: () => ({ ...counts }),
    reopen: async () => audits?.reopen(),
    close: () => (closed ??= close()),
  }
}

function sentenceOf(event: string): string {
  const words = event.replace(/[._]+/g, ' ')
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`
}

type SafeField = [name: string, value: unknown]
type FormatLine = (time: Date, level: LogLevel, event: string, message: string, fields: readonly SafeField[]) => string

/** The fields of a log and of one message, copied; those of the message replace others of the same name. */
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

/** One JSON object; a field named like one of ours gets a `_` behind its name. */
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
const auditNames = new Set(['event', 'python', 'exception', 'traceback', 'id'])

/** One JSON object in the style of GELF 1.1. A field named like one of ours gets a `_` behind its name. */
function auditLine(time: Date, event: string, message: string, fields: readonly SafeField[], plain: string): string {
  const milliseconds = time.getTime()
  const record: Record<string, unknown> = Object.create(null)
  record['version'] = '1.1'
  record['host'] = host
  record['short_message'] = clip(message, maximumTextLength)
  record['full_message'] = plain
  record['timestamp'] = Math.floor(milliseconds / 1000)
  record['timestamp_f'] = milliseconds / 1000
  // AUDIT in the numbers of syslog.
  record['level'] = 6
  record['_python'] = { name: 'svc', process: process.pid, module: event.split('.', 1)[0] }
  record['_event'] = event
  for (const [name, value] of fields) {
    record[`_${auditNames.has(name) ? `${name}_` : name}`] = value
    if (name !== 'error' || !(value instanceof ErrorCopy)) continue
    record['_exception'] = `${value.name}: ${value.message}`
    record['_traceback'] = value.frames?.join('\n') ?? ''
  }
  return escapeUnprintable(wellFormed(JSON.stringify(record)))
}

/** JSON without escapes of lone surrogates, which strict readers refuse. */
function wellFormed(json: string): string {
  if (!json.includes('\\ud')) return json
  return json.replace(/\\(?:u(d[89a-f][0-9a-f]{2})|.)/g, (escape, half: string | undefined) =>
    half === undefined ? escape : '\\ufffd',
  )
}

const guarded = new WeakSet<Writable>()

/** Hands lines on while the target keeps up, and counts those it cannot take, so that a stuck reader costs no memory. */
function boundedSink(target: Writable, droppedLine: (count: number) => string): Writable {
  if (!guarded.has(target)) {
    guarded.add(target)
    // A log whose reader has gone must not end the process.
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
