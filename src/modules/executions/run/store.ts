/** Table `processes`: the child process of each execution that runs. */
import { prepared, type Database, type ProcessTable, type Step } from '../../../db/index.ts'
import type { RecordedProcess } from '../../../runners/index.ts'

export interface ProcessStore {
  insertProcess(executionId: string, process: RecordedProcess): Step
  deleteProcess(executionId: string): Step
  /** By the ids of their executions. */
  processes(): Map<string, RecordedProcess>
}

export function createProcessStore(database: Database): ProcessStore {
  const { build } = database
  // The values here only shape the statements.
  const putProcess = prepared(
    build
      .insertInto('processes')
      .values({ execution_id: '', pid: 0, start_time: '', boot_id: '' })
      .onConflict((on) => on.column('execution_id').doUpdateSet({ pid: 0, start_time: '', boot_id: '' })),
    ({ execution_id, pid, start_time, boot_id }: ProcessTable) => {
      const values = [pid, start_time, boot_id]
      return [execution_id, ...values, ...values]
    },
  )
  const deleteProcess = prepared(build.deleteFrom('processes').where('execution_id', '=', ''), (id: string) => [id])

  return {
    insertProcess: (executionId, { pid, startTime, bootId }) => ({
      query: putProcess({ execution_id: executionId, pid, start_time: startTime, boot_id: bootId }),
    }),
    deleteProcess: (executionId) => ({ query: deleteProcess(executionId) }),
    processes: () =>
      new Map(
        database
          .all(build.selectFrom('processes').selectAll())
          .map((row) => [row.execution_id, { pid: row.pid, startTime: row.start_time, bootId: row.boot_id }]),
      ),
  }
}
