/** What `svc serve` shows the person who started it at a terminal, besides the log. */
import type { Writable } from 'node:stream'
import type { LogLevel } from '../../lib/log/index.ts'
import { isUtf8Locale } from '../../lib/process/index.ts'
import { canStyle, cliProcess } from '../cli-process.ts'
import { createExecutionLines, type ExecutionLines } from './execution-lines.ts'
import { openTerminalStream } from './terminal-stream.ts'

/** What the log writes to standard error. */
export interface ErrorLog {
  level: LogLevel
  audit: 'all' | 'unfiled'
  /** Undefined: standard error itself. */
  stream: Writable | undefined
}

export interface Console {
  readonly log: ErrorLog
  /** Undefined without a terminal: then the log alone says what happens. */
  readonly person: Person | undefined
}

/** Somebody at the terminal. */
export interface Person {
  readonly executions: ExecutionLines
  /** Says it in a line. Lines are dropped while the terminal takes none. */
  readonly tell: (line: string) => void
}

/** Characters that may wait for a terminal that has been stopped. */
const MAX_WAITING_BYTES = 65_536

export interface ConsoleSettings {
  /** `log.level` */
  level: LogLevel
  /** Whether somebody has set it. */
  isLevelGiven: boolean
  /** `log.audit` */
  audit: boolean | 'auto'
  /** False: `--no-color`. */
  isColorWanted: boolean
}

export function openConsole(settings: ConsoleSettings): Console {
  const { isTerminal, env, stdout, stderr } = cliProcess()
  const isLogSeen = isTerminal(2)
  const stream = isLogSeen ? openTerminalStream(2) : isTerminal(1) ? openTerminalStream(1) : undefined
  const log = { ...errorLogOf(settings, isLogSeen), stream: isLogSeen ? stream : undefined }
  if (stream === undefined) return { log, person: undefined }

  // Once the terminal is gone nobody reads.
  stream.on('error', () => undefined)
  const tell = (line: string): void => {
    if (stream.writable && stream.writableLength < MAX_WAITING_BYTES) stream.write(line)
  }
  const executions = createExecutionLines({
    write: tell,
    isColored: settings.isColorWanted && env['TERM'] !== 'dumb' && canStyle(isLogSeen ? stderr : stdout),
    isUnicode: isUtf8Locale(env) && env['TERM'] !== 'linux' && env['TERM'] !== 'dumb',
  })
  return { log, person: { executions, tell: (line) => tell(`${line}\n`) } }
}

/** A service and a pipe get every line that the options ask for; a person those that need attention. */
function errorLogOf({ level, isLevelGiven, audit }: ConsoleSettings, isSeen: boolean): Omit<ErrorLog, 'stream'> {
  const isDetailed = isLevelGiven && (level === 'DEBUG' || level === 'AUDIT')
  const isAudited = audit === 'auto' ? !isSeen || isDetailed : audit
  return { level: isSeen && !isLevelGiven ? 'WARNING' : level, audit: isAudited ? 'all' : 'unfiled' }
}
