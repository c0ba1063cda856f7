/** Copies the database before a new release changes its schema. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { nameBackup, readBackupName } from '../../core/backup-name.ts'
import { describeFileError } from '../../lib/files/index.ts'
import type { DatabaseCopy } from '../database.ts'
import { copyDatabase, removePartialBackups } from './copy.ts'
import { makeDatabaseFolder } from './make-folder.ts'

/** The database is unchanged. */
export class NotMigrated extends Error {
  constructor(missing: readonly string[], directory: string, cause: unknown) {
    const reason = describeFileError(directory, cause)
    super(
      `This release has to change the structure of the database (${missing.join(', ')}), and the backup before it could not be made in ${directory} (backup.directory): ${reason.replace(/\.$/, '')}. ` +
        'The database is as it was. Start again when that is mended; or, with a copy of your own, once with --backup-before-migration False.',
      { cause },
    )
    this.name = 'NotMigrated'
  }
}

export interface BeforeMigration {
  path: string
  /** The backup directory. */
  directory: string
  missing: readonly string[]
  /** Time of the last write to the file, in milliseconds since the epoch. */
  changedAt: number
}

/**
 * @returns undefined: an earlier failed start has already made a copy since the last change
 * @throws NotMigrated
 */
export async function copyBeforeMigration(before: BeforeMigration): Promise<DatabaseCopy | undefined> {
  const { path, directory, missing, changedAt } = before
  const mark = `before-${missing[0] ?? ''}`
  try {
    makeDatabaseFolder(directory)
    await removePartialBackups(directory)
    const isMade = readdirSync(directory).some(
      (name) => name.endsWith(`-${mark}.db`) && Date.parse(readBackupName(name)?.madeAt ?? '') > changedAt,
    )
    if (isMade) return undefined
    return await copyDatabase({
      from: path,
      to: join(directory, nameBackup(new Date(), mark)),
      keepFreeBytes: 0,
      signal: undefined,
    })
  } catch (error) {
    throw new NotMigrated(missing, directory, error)
  }
}

/** Time of the last write to a database or its log, in milliseconds since the epoch. */
export function changedAt(path: string): number {
  const times = [path, `${path}-wal`].map((file) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0)
  return Math.max(...times)
}
