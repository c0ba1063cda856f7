/** Errors of the database, its disk and its backups. */
import { shown } from '../../lib/text/index.ts'
import { AppError, isAppError } from './app-error.ts'

// Database

/** A step of a unit changed another number of rows than expected: another request was faster. */
export const conflict = (what: string): AppError =>
  new AppError('CONFLICT', `${what} was changed by another request at the same time; read it again.`)

/** @param path of the field of the body that has the name */
export const nameTaken = (what: string, existingId: string, path: readonly string[] = ['name']): AppError =>
  new AppError('NAME_TAKEN', `${what} already exists.`, { details: { 'conflict-id': existingId, path } })

/** @param who made the last change; undefined: it is not known */
export const contentChanged = (what: string, who?: string): AppError =>
  new AppError(
    'CONTENT_CHANGED',
    `${what} was changed${who === undefined ? '' : ` by "${shown(who)}"`} after you read it; read it again before you change it.`,
  )

// Storage

/** The database is unreadable, read-only or locked: nothing of the request was stored. */
export const storageFailed = (cause: unknown): AppError =>
  new AppError('STORAGE_FAILED', 'Could not write to the database; nothing was stored. Try again later.', {
    cause,
  })

/** @param problem a sentence for operators that names the file, and what to do; the cause of the error */
export const databaseGone = (problem: string): AppError =>
  new AppError(
    'DATABASE_GONE',
    'Nothing was stored, because a file of the database is not in its place or not accessible; "svc doctor" names it.',
    { cause: problem },
  )

/** The disk is full, or has less than `database.reserve_bytes` free before a write. */
export const storageFull = (cause?: unknown): AppError =>
  new AppError(
    'STORAGE_FULL',
    'The disk of the database has too little free space; nothing was stored. Free space: the server then continues by itself.',
    cause === undefined ? {} : { cause },
  )

export const backupHasNoRoom = (cause?: unknown): AppError =>
  new AppError(
    'BACKUP_HAS_NO_ROOM',
    'The disk of the backup directory has too little free space for a backup. A backup is as large as the database, and database.reserve_bytes must stay free on the same disk. Free space there, or set backup.directory to another disk.',
    cause === undefined ? {} : { cause },
  )

export const backupFailed = (why: string, cause?: unknown): AppError =>
  new AppError(
    'BACKUP_FAILED',
    `The backup failed and its file was deleted: ${why}`,
    cause === undefined ? {} : { cause },
  )

export const backupUnderWay = (): AppError =>
  new AppError('BACKUP_UNDER_WAY', 'A backup is already under way; try again when it has ended.')

/** Whether the same write can succeed later. */
export function isStorageFailure(error: unknown): boolean {
  return isAppError(error) && ['STORAGE_FAILED', 'STORAGE_FULL', 'DATABASE_GONE'].includes(error.code)
}

/** As `storageFailed`, for accounts that a backend keeps in a file. */
export const accountsFailed = (cause: unknown): AppError =>
  new AppError(
    'STORAGE_FAILED',
    'The password file could not be read or written; nothing was changed. The log of the server says why.',
    { cause },
  )
