/** Starts executions that are workflows, which take no slot. */
import { createSecretValues } from '../../../lib/secrets/index.ts'
import type { Change } from '../change.ts'
import type { ExecutionWorkflows } from '../ports.ts'
import type { Execution } from '../types.ts'
import { startFailure, type Prepare } from './dispatcher.ts'

/** @throws what `Change.settle` and `ExecutionWorkflows.begin` throw: the start is not stored */
export function createWorkflowStart(deps: {
  prepare: Prepare
  change: Pick<Change, 'settle'>
  workflows: Pick<ExecutionWorkflows, 'begin'>
  /** `api.mask_secrets` and `log.mask_secrets` */
  maskSecrets: boolean
}): (requested: Execution) => Promise<void> {
  return async (requested) => {
    const secrets: unknown[] = []
    let prepared
    try {
      prepared = await deps.prepare(requested, secrets)
    } catch (error) {
      const masks = deps.maskSecrets ? createSecretValues(secrets) : undefined
      const result = startFailure(masks?.maskError(error) ?? error)
      await deps.change.settle(requested, [{ kind: 'schedule' }, { kind: 'reject', result }])
      return
    }
    await deps.workflows.begin(requested, { ...prepared, secrets })
  }
}
