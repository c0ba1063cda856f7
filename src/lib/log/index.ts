export { logLevels, type LogLevel } from './log-levels.ts'
export {
  LogFileError,
  createLog,
  type Log,
  type LogFields,
  type LogFile,
  type LogFormat,
  type LogMessage,
  type RootLog,
} from './log.ts'
export { clip, createRedactor, escapeUnprintable, secretMask, type Redactor } from './redact.ts'
export { createRepeatLimit } from './repeat-limit.ts'
