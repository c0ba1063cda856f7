/** The thread behind `Background`: connections of its own, one task after another. */
import { parentPort, workerData } from 'node:worker_threads'
import type Sqlite from 'better-sqlite3'
import { openConnection } from './connection.ts'
import { createStatementCache } from './statements.ts'

export type BackgroundTask =
  { n: number; kind: 'scan'; sql: string; parameters: readonly unknown[] } | { n: number; kind: 'checkpoint' }

export type BackgroundAnswer = { n: number; rows: unknown[] } | { n: number; error: string }

const port = parentPort
if (port !== null) {
  const { path } = workerData as { path: string } // set by background.ts, the only one that starts this thread
  const reading = openConnection({ path, readonly: true, synchronous: 'normal' })
  const statement = createStatementCache(reading)
  let writing: Sqlite.Database | undefined

  const carryOut = (task: BackgroundTask): unknown[] => {
    if (task.kind === 'scan') return statement(task.sql).all(...task.parameters)
    writing ??= openConnection({ path, readonly: false, synchronous: 'normal' })
    writing.pragma('wal_checkpoint(passive)')
    return []
  }
  port.on('message', (task: BackgroundTask) => {
    let answer: BackgroundAnswer
    try {
      answer = { n: task.n, rows: carryOut(task) }
    } catch (error) {
      answer = { n: task.n, error: error instanceof Error ? error.message : String(error) }
    }
    port.postMessage(answer)
  })
}
