/** Deletes the records and the logs of a stopped server. */
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { CliFailure } from '../failures.ts'

export interface StoredData {
  /** `database.path` */
  database: string
  /** `log.file` and `log.audit_file`; may be empty. */
  logFiles: readonly string[]
  basePath: string
}

/** Keys, packs, configurations, role definitions and the password file stay. @returns the deleted paths @throws CliFailure */
export async function dropData({ database, logFiles, basePath }: StoredData): Promise<string[]> {
  const gone: string[] = []
  const drop = (path: string): void => {
    if (!existsSync(path)) return
    rmSync(path)
    gone.push(path)
  }
  if (existsSync(dirname(database))) {
    const lock = await lockOf(database)
    try {
      // The log first: it must not be applied to another file.
      for (const suffix of ['-wal', '-shm', '']) drop(`${database}${suffix}`)
    } finally {
      lock.release()
    }
  }
  // Those that have been rotated, too.
  const folder = join(basePath, 'logs')
  const names = existsSync(folder) ? readdirSync(folder) : []
  for (const name of names) if (/^svc\.(audit\.)?log/.test(name)) drop(join(folder, name))
  for (const path of logFiles) if (path !== '') drop(path)
  return gone
}

async function lockOf(database: string): Promise<{ release(): void }> {
  const { DatabaseInUse, lockDatabase } = await import('../../db/sqlite/lock.ts')
  try {
    return lockDatabase(database, 'Nothing was deleted.')
  } catch (error) {
    if (!(error instanceof DatabaseInUse)) throw error
    throw new CliFailure(error.message)
  }
}
