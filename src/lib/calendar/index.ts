export { cronFields, isEveryHour, nextWallTime, readCron, type CronExpressions, type CronSchedule } from './cron.ts'
export { parseDateText, readDateText } from './date-text.ts'
export { durationSchema, formatDuration, readDuration } from './duration.ts'
export { isTimeZone, offsetAt } from './time-zone.ts'
