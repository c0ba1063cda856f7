/** Explains which rules enforced a trigger instance and why. Runs nothing, stores nothing. */
import { resourceNotFound } from '../../../core/errors.ts'
import { isId } from '../../../core/ids.ts'
import { createSecretValues } from '../../../lib/secrets/index.ts'
import type { TemplateThread } from '../../../core/rendering/index.ts'
import type { TemplateScope } from '../../../lib/template/index.ts'
import { microsOf } from '../../../core/time.ts'
import type { Actions } from '../../actions/index.ts'
import type { Traces } from '../../traces/index.ts'
import { visiblePayload, type Triggers } from '../../triggers/index.ts'
import type { TriggerInstance } from '../../triggers/types.ts'
import { compileLater } from '../enforcement/bindings.ts'
import { createPause } from '../../../lib/concurrency/index.ts'
import { evaluateRules, type ViewsFor } from '../enforcement/evaluate.ts'
import type { ReasonFor } from '../enforcement/reason.ts'
import { isIsolated, resourceOf, type RuleCaller, type RuleService } from '../service.ts'
import type { RuleStore } from '../store.ts'
import { runningOf } from '../running.ts'
import type { Explanation, RuleEnforcement, RuleTestRequest, RuleTestResult } from '../types.ts'
import type { TemplateReader } from '../../../core/template-reader.ts'
import type { PackConfigs } from '../../executions/ports.ts'
import { ruleEnforcementResource } from '../../../core/permissions.ts'
import { censored, withReason } from './censor.ts'
import { repetitionSentence, sentenceOf } from './sentence.ts'
import { createTrial } from './trial.ts'
import type { StrangerOf } from '../enforcement/enforce.ts'
import type { EnforcementStore } from '../enforcement/store.ts'

export interface Explain {
  /** @throws RESOURCE_NOT_FOUND */
  instance(id: string): TriggerInstance
  /** @throws RESOURCE_NOT_FOUND */
  explain(caller: RuleCaller, id: string): Promise<Explanation>
  /** @throws BODY_INVALID, CONTENT_NOT_FOUND, RESOURCE_NOT_FOUND, PERMISSION_DENIED, TRIGGER_TYPE_UNKNOWN, CRITERIA_INVALID */
  test(caller: RuleCaller, request: RuleTestRequest): Promise<RuleTestResult>
}

export function createExplain(deps: {
  store: RuleStore
  enforcements: EnforcementStore
  service: RuleService
  actions: Actions
  triggers: Triggers
  traces: Traces
  readonly templates: (reader: TemplateReader) => TemplateScope
  readonly viewsFor: ViewsFor
  readonly reasonFor: ReasonFor
  packConfigs: PackConfigs
  templateThread: TemplateThread
  readonly strangerOf: StrangerOf
  systemUser: string
}): Explain {
  const { store, enforcements, triggers, viewsFor, reasonFor } = deps

  function instanceOf(id: string): TriggerInstance {
    const instance = isId(id) ? triggers.findInstance(id) : undefined
    if (instance === undefined) throw resourceNotFound(id)
    return instance
  }

  async function explain(caller: RuleCaller, id: string): Promise<Explanation> {
    const instance = triggers.openInstance(instanceOf(id))
    const hideCredentials = createSecretValues(instance.secrets)
    const rules = store.boundTo(instance.trigger_id).map(({ record }) => compileLater(record, triggers))
    const viewOf = viewsFor(instance)
    const own = visiblePayload(caller.rights, instance)
    const context = {
      // The engine's own evaluation time is not stored; the occurrence is the closest.
      now: microsOf(instance.occurrence_time),
      viewOf,
    }
    const left = new Map(enforcements.ofInstance(id).map((enforcement) => [enforcement.rule.id, enforcement]))
    const shown: Explanation['rules'] = []
    let hidden = 0
    const pause = createPause()
    for (const { compiled, verdict } of evaluateRules(rules, context)) {
      const { rule } = compiled
      const enforcement = left.get(rule.id)
      left.delete(rule.id)
      if (!caller.rights.may('rule_view', resourceOf(rule))) hidden += 1
      else {
        const full = censored(caller, rule, withReason(verdict, viewOf(rule).payload), own)
        const said = (hideCredentials?.maskValue(full) ?? full) as typeof full // a copy of it
        const running = runningOf(rule.action)
        shown.push({
          ...said,
          ...(Object.keys(running).length > 0 && { running }),
          ...(enforcement && { enforcement: partOf(reasonFor(enforcement, caller.rights)) }),
        })
      }
      await pause()
    }
    const { trigger, status, occurrence_time, trace_id } = instance
    const repetitions = triggers.repetitionsOf(id)
    const gone = [...left.values()].filter(
      (enforcement) =>
        !isIsolated(store, enforcement, caller.rights) &&
        caller.rights.may(
          'rule_enforcement_view',
          ruleEnforcementResource({ id: enforcement.id, rule_ref: enforcement.rule.ref }),
        ),
    )
    return {
      trigger_instance: { id, trigger, status, occurrence_time, trace_id },
      rules: shown,
      hidden,
      message: [
        sentenceOf(instance, shown, hidden, gone, triggers.find(trigger) !== undefined),
        ...(repetitions === undefined ? [] : [repetitionSentence(repetitions)]),
      ].join(' '),
      ...(repetitions === undefined ? {} : { repetitions }),
      ...(own.withheld === undefined ? {} : { payload_reduced: own.withheld.reason }),
    }
  }

  return { instance: instanceOf, explain, test: createTrial({ ...deps, instanceOf }) }
}

function partOf({ id, status, execution_id, failure_reason, skip_reason }: RuleEnforcement) {
  return {
    id,
    status,
    ...(execution_id === undefined ? {} : { execution_id }),
    ...(failure_reason === undefined ? {} : { failure_reason }),
    ...(skip_reason === undefined ? {} : { skip_reason }),
  }
}
