/** The thread behind `Background`: its own connections, one task at a time. */
import { isMainThread, workerData } from 'node:worker_threads'
import type Sqlite from 'better-sqlite3'
import { answerQuestions } from '../../core/thread.ts'
import { openDatabaseConnection } from './connection.ts'
import { createStatementCache } from './statements.ts'

export type BackgroundTask = { kind: 'scan'; sql: string; parameters: readonly unknown[] } | { kind: 'checkpoint' }

if (!isMainThread) {
  const { path } = workerData as { path: string } // set by background.ts, the only one that starts this thread
  const reading = openDatabaseConnection({ path, readonly: true, synchronous: 'normal' })
  const statement = createStatementCache(reading)
  let writing: Sqlite.Database | undefined

  answerQuestions((task: BackgroundTask): unknown[] => {
    if (task.kind === 'scan') return statement(task.sql).all(...task.parameters)
    writing ??= openDatabaseConnection({ path, readonly: false, synchronous: 'normal' })
    writing.pragma('wal_checkpoint(passive)')
    return []
  })
}
