/**
 * The log files: those of the section `log`, and those that the Python logging configurations of existing
 * installations name (contract 10, 10.2 and 10.3).
 *
 * Only the file handlers of the root logger are used. Everything else in such a configuration gets a warning.
 */
import { resolve } from 'node:path'
import { parseIniBytes, type IniFile, type IniValue, shown } from '../lib/text/index.ts'
import { logLevels, type LogLevel, type LogFile, type LogFormat } from '../lib/log/index.ts'
import { ConfigProblems, readBounded, type LoadedConfig } from './load.ts'
/** Sections that may name a configuration; messages of no other component go to the files of `api`. */
const parts = [
  'api',
  'auth',
  'stream',
  'actionrunner',
  'rulesengine',
  'notifier',
  'timersengine',
  'garbagecollector',
] as const

export interface LogFiles {
  files: LogFile[]
  /** Path → the option that names the file, such as `api.logging`. */
  optionOf: ReadonlyMap<string, string>
  /** Unsupported settings, each with its replacement. */
  warnings: string[]
}

const SECONDS_PER_DAY = 86_400

type Asked = Pick<LogFile, 'path' | 'format'> & Partial<Pick<LogFile, 'maxBytes' | 'backupCount'>>

/** @throws ConfigProblems */
export function readLogFiles({ config, sources }: Pick<LoadedConfig, 'config' | 'sources'>): LogFiles {
  const { log } = config
  const files = new Map<string, LogFile>()
  const optionOf = new Map<string, string>()
  const problems: string[] = []
  const warnings: string[] = []

  function add(option: string, asked: Asked, takes: LogFile['takes'][number]): void {
    const { path, format } = asked
    const known = files.get(path)
    if (known === undefined) {
      const kept = takes.level === 'AUDIT' ? { keptSeconds: log.audit_days * SECONDS_PER_DAY } : {}
      files.set(path, { maxBytes: log.max_bytes, backupCount: log.backup_count, ...kept, ...asked, takes: [takes] })
      optionOf.set(path, option)
    } else if (known.format === format) {
      known.takes = [...known.takes, takes]
    } else {
      problems.push(
        `${option}: ${path} has the format ${format} here but ${known.format} in ${optionOf.get(path)}; use separate files`,
      )
    }
  }

  if (log.file !== '') add('log.file', { path: log.file, format: log.format }, { level: log.level })
  if (log.audit_file !== '') add('log.audit_file', { path: log.audit_file, format: 'gelf' }, { level: 'AUDIT' })
  for (const part of parts) {
    const file = config[part].logging
    if (file === '') continue
    const option = `${part}.logging`
    const source = sources[option] ?? ''
    const bytes = readBounded(file)
    if (bytes === 'does not exist') {
      warnings.push(
        `${option}: ${file} does not exist, so this component has no log file; remove the option and use log.file (${source})`,
      )
      continue
    }
    if (typeof bytes === 'string') {
      problems.push(`${option}: ${file} ${bytes} (${source})`)
      continue
    }
    const reading = readLoggingFile(parseIniBytes(bytes))
    problems.push(...reading.problems.map(({ line, message }) => `${option}: ${file}:${line}: ${message} (${source})`))
    warnings.push(...reading.warnings.map(({ line, message }) => `${option}: ${file}:${line}: ${message}`))
    for (const { level, ...asked } of reading.handlers) add(option, asked, { level, part })
  }
  if (problems.length > 0) throw new ConfigProblems(problems)
  return { files: [...files.values()], optionOf, warnings }
}

interface Remark {
  line: number
  message: string
}

interface Reading {
  handlers: (Asked & { level: LogLevel })[]
  problems: Remark[]
  warnings: Remark[]
}

/** Of `logging.config`, in the form of its INI files. */
function readLoggingFile({ sections, problems }: IniFile): Reading {
  const reading: Reading = { handlers: [], problems: [...problems], warnings: [] }
  const root = sections.get('logger_root')
  if (root === undefined) {
    reading.problems.push({ line: 1, message: 'the section [logger_root] is missing, which Python also needs' })
    return reading
  }
  const others = namesIn(sections.get('loggers')?.get('keys')).filter((name) => name !== 'root')
  if (others.length > 0) {
    const names = others.map(shown).join(', ')
    const message = `the loggers ${names} are not supported; to exclude messages by event, use log.excludes`
    reading.warnings.push({ line: sections.get('loggers')?.get('keys')?.line ?? 1, message })
  }
  const rootLevel = readLevel('logger_root', root.get('level'), reading) ?? 'WARNING'
  for (const name of namesIn(root.get('handlers'))) {
    const handler = sections.get(`handler_${name}`)
    if (handler === undefined) {
      const message = `handlers: the section [handler_${shown(name)}] is missing`
      reading.problems.push({ line: root.get('handlers')?.line ?? 1, message })
      continue
    }
    readHandler(name, handler, { sections, rootLevel, reading })
  }
  return reading
}

/** The file handlers of Python and of StackStorm. */
const fileHandlers = /^(Format|FormatNamed|Watched|Rotating|TimedRotating|ConcurrentRotating|)FileHandler$/
const consoleHandlers = /^(Stream|Console|Null)Handler$/

function readHandler(
  name: string,
  handler: ReadonlyMap<string, IniValue>,
  { sections, rootLevel, reading }: { sections: IniFile['sections']; rootLevel: LogLevel; reading: Reading },
): void {
  const given = handler.get('class')
  const kind = given?.text.split('.').at(-1) ?? ''
  const line = given?.line ?? handler.values().next().value?.line ?? 1
  const own = readLevel(`handler_${name}`, handler.get('level'), reading) ?? 'DEBUG'
  // Standard error has everything at log.level.
  if (consoleHandlers.test(kind)) return
  if (!fileHandlers.test(kind)) {
    reading.warnings.push({
      line,
      message: `handler_${shown(name)}: the class "${shown(given?.text ?? '')}" is not supported; forward log.file or standard error instead`,
    })
    return
  }
  const args = handler.get('args')
  const [, , quoted] = /^\(\s*[bru]?(["'])((?:(?!\1).)+)\1/.exec(args?.text ?? '') ?? []
  if (quoted === undefined) {
    const message = `handler_${shown(name)}.args: must start with a quoted file path: ("/var/log/svc/svcapi.log",)`
    reading.problems.push({ line: args?.line ?? line, message })
    return
  }
  if (kind.startsWith('TimedRotating')) {
    const message = `handler_${shown(name)}: rotation by time is not supported; set log.max_bytes or use logrotate`
    reading.warnings.push({ line, message })
  }
  const format = readFormat(name, handler.get('formatter'), sections, reading)
  if (format === undefined) return
  // Both filter in Python.
  const level = logLevels.indexOf(own) > logLevels.indexOf(rootLevel) ? own : rootLevel
  const path = resolve(quoted.replaceAll('{pid}', String(process.pid)))
  reading.handlers.push({ path, format, level, ...(kind === 'RotatingFileHandler' ? limitsIn(args?.text ?? '') : {}) })
}

/** `(path, mode, maxBytes, backupCount)`; without both, Python does not rename either. */
function limitsIn(args: string): Partial<Pick<LogFile, 'maxBytes' | 'backupCount'>> {
  const [, maxBytes = '0', backupCount = '0'] = /["']\w+["']\s*,\s*(\d{1,12})\s*,\s*(\d{1,3})\b/.exec(args) ?? []
  return Number(backupCount) === 0 ? {} : { maxBytes: Number(maxBytes), backupCount: Number(backupCount) }
}

function readFormat(
  handler: string,
  given: IniValue | undefined,
  sections: IniFile['sections'],
  reading: Reading,
): LogFormat | undefined {
  if (given === undefined || given.text === '') return 'text'
  const formatter = sections.get(`formatter_${given.text}`)
  if (formatter === undefined) {
    const message = `handler_${shown(handler)}.formatter: the section [formatter_${shown(given.text)}] is missing`
    reading.problems.push({ line: given.line, message })
    return undefined
  }
  const kind = formatter.get('class')?.text ?? ''
  return /gelf/i.test(kind) ? 'gelf' : /json/i.test(kind) ? 'json' : 'text'
}

const levelNames: Readonly<Record<string, LogLevel>> = {
  ...Object.fromEntries(logLevels.map((level) => [level, level])),
  NOTSET: 'DEBUG',
  WARN: 'WARNING',
  FATAL: 'CRITICAL',
}

function readLevel(section: string, given: IniValue | undefined, reading: Reading): LogLevel | undefined {
  if (given === undefined) return undefined
  const name = given.text.toUpperCase()
  if (Object.hasOwn(levelNames, name)) return levelNames[name]
  const message = `${shown(section)}.level: must be one of ${Object.keys(levelNames).join(', ')}, not "${shown(given.text)}"`
  reading.problems.push({ line: given.line, message })
  return undefined
}

const namesIn = (value: IniValue | undefined): string[] =>
  (value?.text ?? '')
    .split(/[,\n]/)
    .map((name) => name.trim())
    .filter((name) => name !== '')
