/** Dispatches ActionTrigger, notifications and inquiries in the same transaction as the change of the execution. */
import { merge, type Unit } from '../../../db/index.ts'
import type { Log } from '../../../lib/log/index.ts'
import { inquirerName } from '../../../runners/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import type { TemplateScope } from '../../../lib/template/index.ts'
import type { Execution } from '../../executions/types.ts'
import type { Cause } from '../../traces/types.ts'
import { actionTriggerPayload } from './action-trigger.ts'
import { actionTriggerRef, inquiryRef, notifyTriggerRef } from '../builtin/types.ts'
import type { Catalogue } from '../definitions/catalogue.ts'
import { notifyPayloads } from './notify-trigger.ts'
import type { TriggersService } from '../service.ts'
import type { TemplateReader } from '../../../core/template-reader.ts'
import type { PlanReaction } from '../../executions/ports.ts'
import { writeJson } from '../../../lib/json/index.ts'

export function createTriggerReaction(deps: {
  log: Log
  catalogue: Catalogue
  service: Pick<TriggersService, 'planStored'>
  readonly templates: (reader: TemplateReader) => TemplateScope
  emitWhen: readonly string[]
  /** Address of the web client, without a trailing slash. */
  readonly webUrl: () => string
}): PlanReaction {
  const { log, catalogue, service } = deps
  const emitted: ReadonlySet<string> = new Set(deps.emitWhen)

  function planInstances(ref: string, payloads: readonly string[], execution: Execution): Unit[] {
    const trigger = catalogue.find(ref)
    if (trigger === undefined) throw new Error(`the trigger ${ref} is missing`)
    const cause: Cause = {
      kind: 'inherited',
      trace_id: execution.trace_id,
      caused_by: { type: 'action_execution', id: execution.id },
    }
    return payloads.map(
      (payload) =>
        service.planStored(trigger, payload, cause, { owner: execution.user, depth: execution.liveaction.depth }).unit,
    )
  }

  return (execution, parameters, attempt) => {
    try {
      const notifications = notifyPayloads(execution, parameters, deps.templates, log)
      const units = notifications.length === 0 ? [] : planInstances(notifyTriggerRef, notifications, execution)
      if (execution.status === 'pending' && execution.runner.name === inquirerName) {
        units.push(...planInstances(inquiryRef, [inquiryPayload(execution)], execution))
      }
      if (emitted.has(execution.status)) {
        units.push(
          ...planInstances(
            actionTriggerRef,
            [actionTriggerPayload(execution, parameters, attempt, deps.webUrl())],
            execution,
          ),
        )
      }
      const [only] = units
      return units.length <= 1 ? only : merge(...units)
    } catch (error) {
      // The change of the execution has priority.
      log.error('trigger.reaction_failed', 'Could not dispatch the triggers of an execution', {
        execution_id: execution.id,
        error,
      })
      return undefined
    }
  }
}

/** Payload as JSON text (contract 05, 5.9). */
function inquiryPayload({ id, result }: Execution): string {
  const route = isObject(result) && typeof result['route'] === 'string' ? result['route'] : ''
  return writeJson({ id, route })
}
