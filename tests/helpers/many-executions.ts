/** A store with as many executions as nobody wants to wait for. */
import Sqlite from 'better-sqlite3'
import { join } from 'node:path'
import { newId } from '../../src/core/ids.ts'
import { formatMicros } from '../../src/core/time.ts'
import { runToEnd, startServer } from './server.ts'

export interface MadeExecution {
  id: string
  /** Counted from 0, the oldest. */
  number: number
  status: string
}

const statuses = ['succeeded', 'succeeded', 'succeeded', 'failed', 'timeout', 'canceled']
const SECOND = 1_000_000

/**
 * Writes finished executions into a base path in which no server runs, one for each of the last seconds, as copies of one
 * that has really run: `core.local` with `cmd` = `echo <number>`.
 *
 * @returns what there is by the number of an execution
 */
export async function makeExecutions(basePath: string, count: number): Promise<(number: number) => MadeExecution> {
  const server = await startServer({ basePath })
  await runToEnd(server, { cmd: 'echo first' })
  await server.stop()
  const start = Date.now() * 1000 - (count + 60) * SECOND
  const made: string[] = []
  const statusOf = (number: number): string => statuses[number % statuses.length] ?? ''
  const db = new Sqlite(join(basePath, 'svc.db'))
  try {
    db.pragma('synchronous = off')
    const row = db.prepare('select * from executions').get() as Record<string, unknown> // the one that ran
    const columns = Object.keys(row)
    const insert = db.prepare(
      `insert into executions (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`,
    )
    db.exec('begin')
    for (let number = 0; number < count; number++) {
      const micros = start + number * SECOND
      const id = newId(micros)
      made.push(id)
      const changed: Record<string, unknown> = {
        id,
        liveaction_id: newId(micros + 1),
        status: statusOf(number),
        start_timestamp: formatMicros(micros),
        end_timestamp: formatMicros(micros + SECOND / 2),
        elapsed_seconds: 0.5,
        parameters: JSON.stringify({ cmd: `echo ${number}` }),
      }
      insert.run(...columns.map((column) => (column in changed ? changed[column] : row[column])))
    }
    db.exec('commit')
  } finally {
    db.close()
  }
  return (number) => ({ id: made[number] ?? '', number, status: statusOf(number) })
}
