/** The thread behind `Database.scan`: a read-only connection of its own, one query after another. */
import { parentPort, workerData } from 'node:worker_threads'
import { openConnection } from './connection.ts'
import { createStatementCache } from './statements.ts'

export interface ScanRequest {
  n: number
  sql: string
  parameters: readonly unknown[]
}

export type ScanAnswer = { n: number; rows: unknown[] } | { n: number; error: string }

const port = parentPort
if (port !== null) {
  const { path } = workerData as { path: string } // set by scanner.ts, the only one that starts this thread
  const connection = openConnection({ path, readonly: true, synchronous: 'normal' })
  const statement = createStatementCache(connection)
  port.on('message', (request: ScanRequest) => {
    let answer: ScanAnswer
    try {
      answer = { n: request.n, rows: statement(request.sql).all(...request.parameters) }
    } catch (error) {
      answer = { n: request.n, error: error instanceof Error ? error.message : String(error) }
    }
    port.postMessage(answer)
  })
}
