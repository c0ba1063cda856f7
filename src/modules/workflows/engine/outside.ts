/** What expressions read besides the rows of the conductor. */
import type { Datastore } from '../../datastore/index.ts'
import type { Executions } from '../../executions/index.ts'
import type { Execution } from '../../executions/types.ts'
import { readerOf } from '../../../core/template-reader.ts'
import { isCompleted, type Outside } from '../conductor/index.ts'
import type { WorkflowStore } from '../store.ts'
import { taskExecutionId } from './task-execution-id.ts'
import type { WorkflowCommit } from './commit.ts'
import type { Run } from './run.ts'

export interface OutsideDeps {
  executions: Pick<Executions, 'resultWithSecrets'>
  datastore: Pick<Datastore, 'read'>
  store: Pick<WorkflowStore, 'latestAction' | 'findTask'>
}

/**
 * @param execution that of the workflow
 * @param commit what is not stored yet; undefined: nothing
 */
export function outsideOf(
  deps: OutsideDeps,
  run: Run,
  execution: Execution,
  commit?: WorkflowCommit,
): Omit<Outside, 'whyRefused'> {
  const { executions, datastore, store } = deps
  const { id } = run.header
  return {
    environment: run.environment,
    startEnvironment: withoutWorkflow(run.environment),
    resultOf(instance, item) {
      const known = commit?.result(id, { instance, item })
      if (known !== undefined) return known.value
      const action = store.latestAction(id, instance, item ?? null)
      if (action === undefined) return null
      const { value, secrets } = executions.resultWithSecrets(action.execution)
      run.addSecrets(secrets)
      return value
    },
    recordOf(instance) {
      const times = store.findTask(id, instance.id)
      const hasEnded = isCompleted(instance.status)
      return {
        id: taskExecutionId(id, instance.id, instance.retries),
        workflowExecution: id,
        startTimestamp: times?.start_timestamp ?? commit?.at ?? '',
        endTimestamp: hasEnded ? (times?.end_timestamp ?? commit?.at ?? null) : null,
      }
    },
    readKey(key, decrypt) {
      const found = datastore.read(readerOf(execution), key, decrypt)
      if (found?.isSecret === true) run.addSecrets([found.value])
      return found?.value
    },
  }
}

function withoutWorkflow(environment: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { workflow_execution_id: _, ...svc } = environment['svc'] as Record<string, unknown> // `environmentOf` made it
  return { ...environment, svc }
}
