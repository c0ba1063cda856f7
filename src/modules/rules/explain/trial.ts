/** Tests a rule against a trigger instance: runs nothing, stores nothing. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { bodyInvalid, triggerTypeUnknown, within, withSentence } from '../../../core/errors.ts'
import { MASK } from '../../../lib/schema/index.ts'
import { findTemplates } from '../../../core/template-values.ts'
import { CONFIG_SECRETS, type ReadSecrets } from '../../../core/parameter-scope.ts'
import { createSecretValues } from '../../../lib/secrets/index.ts'
import { joinScopes, type TemplateScope } from '../../../lib/template/index.ts'
import { microsOf, nowMicros } from '../../../core/time.ts'
import { createPause } from '../../../lib/concurrency/index.ts'
import type { Actions } from '../../actions/index.ts'
import type { Traces } from '../../traces/index.ts'
import { visiblePayload, type Triggers } from '../../triggers/index.ts'
import type { OpenedInstance, TriggerInstance } from '../../triggers/types.ts'
import { compileRule, type CompiledRule } from '../enforcement/bindings.ts'
import { findProblems } from '../criteria/criteria.ts'
import {
  actionMissing,
  contextOf,
  findRuleAction,
  refusalIn,
  scopeOfAction,
  type StrangerOf,
} from '../enforcement/enforce.ts'
import { aboutRule, verdictOf, type RuleView, type ViewsFor } from '../enforcement/evaluate.ts'
import { censoredReason } from '../enforcement/reason.ts'
import { renderRuleParameters } from '../enforcement/render.ts'
import { resourceOf, type RuleCaller, type RuleService } from '../service.ts'
import type { Rule, RuleTestRequest, RuleTestResult } from '../types.ts'
import type { TemplateThread, Turn } from '../../../core/rendering/index.ts'
import type { TemplateReader } from '../../../core/template-reader.ts'
import type { PackConfigs } from '../../executions/ports.ts'
import { ruleResource, triggerResource } from '../../../core/permissions.ts'
import { censored, censoredCriterion, withReason, type CallerView } from './censor.ts'
import { writeJson } from '../../../lib/json/index.ts'

/** @throws BODY_INVALID, CONTENT_NOT_FOUND, RESOURCE_NOT_FOUND, PERMISSION_DENIED, TRIGGER_TYPE_UNKNOWN, CRITERIA_INVALID */
export type TestRule = (caller: RuleCaller, request: RuleTestRequest) => Promise<RuleTestResult>

export function createTrial(deps: {
  service: RuleService
  actions: Actions
  triggers: Triggers
  traces: Traces
  readonly instanceOf: (id: string) => TriggerInstance
  readonly templates: (reader: TemplateReader) => TemplateScope
  readonly viewsFor: ViewsFor
  packConfigs: PackConfigs
  templateThread: TemplateThread
  readonly strangerOf: StrangerOf
  systemUser: string
}): TestRule {
  const { service, actions, triggers, traces, instanceOf, templates, viewsFor, packConfigs, templateThread } = deps
  const { strangerOf, systemUser } = deps

  /** @throws PERMISSION_DENIED, CONTENT_NOT_FOUND, BODY_INVALID, TRIGGER_TYPE_UNKNOWN */
  function ruleOf(caller: RuleCaller, { rule: given, rule_ref: ref }: RuleTestRequest): Rule {
    if (given !== undefined && ref === undefined) {
      const draft = { ...within(['rule'], () => service.draft(caller, given)), id: '' }
      caller.rights.require('rule_create', ruleResource({ ref: draft.ref, user: caller.principal.user }))
      return draft
    }
    if (given !== undefined || ref === undefined) throw bodyInvalid('Give either "rule" or "rule_ref".')
    const rule = service.get(ref)
    caller.rights.require('rule_view', resourceOf(rule))
    return rule
  }

  /** @throws PERMISSION_DENIED, RESOURCE_NOT_FOUND, BODY_INVALID, TRIGGER_TYPE_UNKNOWN, CRYPTO_KEY_MISSING, CIPHER_TEXT_INVALID */
  function occurrenceOf(caller: RuleCaller, request: RuleTestRequest): OpenedInstance {
    const { trigger_instance: given, trigger_instance_id: id } = request
    if ((given === undefined) === (id === undefined)) {
      throw bodyInvalid('Give either "trigger_instance" or "trigger_instance_id".')
    }
    if (id !== undefined) {
      const instance = instanceOf(id)
      caller.rights.require('trigger_view', triggerResource(instance.trigger_type))
      return triggers.openInstance(instance)
    }
    const { trigger: ref = '', payload = {} } = given ?? {}
    const type = triggers.find(ref)?.type ?? triggers.findType(ref)?.ref
    if (type === undefined) throw triggerTypeUnknown(ref, ['trigger_instance', 'trigger'])
    return {
      id: given?.id ?? '',
      trigger: ref,
      trigger_id: '',
      trigger_type: type,
      occurrence_time: given?.occurrence_time ?? '',
      status: 'pending',
      trace_id: '',
      payload,
      secrets: [],
      credentials: undefined,
    }
  }

  async function test(caller: RuleCaller, request: RuleTestRequest): Promise<RuleTestResult> {
    const rule = ruleOf(caller, request)
    const instance = occurrenceOf(caller, request)
    const result = await testWith(caller, request, rule, instance)
    return (createSecretValues(instance.secrets)?.maskValue(result) ?? result) as RuleTestResult // a copy of it
  }

  async function testWith(
    caller: RuleCaller,
    request: RuleTestRequest,
    rule: Rule,
    instance: OpenedInstance,
  ): Promise<RuleTestResult> {
    if (instance.trigger_type !== rule.trigger.type) {
      const problem = `The trigger type of the rule is "${rule.trigger.type}", that of the trigger instance is "${instance.trigger_type}".`
      const verdict = { ...aboutRule(rule), verdict: 'not_matched', reason: problem } as const
      return { matches: false, verdict, criteria: [], problem }
    }
    const compiled = compileRule({ ...rule, enabled: true }, triggers)
    const view = viewsFor(instance)(rule)
    // Callers may see what they have sent.
    const isOfCaller = request.trigger_instance_id === undefined
    const visible = isOfCaller ? { payload: instance.payload } : visiblePayload(caller.rights, instance)
    const own: CallerView = visible.withheld === undefined ? { payload: view.payload } : visible
    const { result, outcomes } = compiled.criteria.evaluateEach({
      ...view,
      now: request.trigger_instance_id === undefined ? nowMicros() : microsOf(instance.occurrence_time),
    })
    const criteria = outcomes.map(({ seen, holds, reason }) => ({
      ...censoredCriterion(caller, rule, seen, own),
      holds,
      ...(reason === undefined ? {} : { reason: censoredReason(reason, own) }),
    }))
    const verdict = verdictOf(rule, result, view)
    const reduced = own.withheld === undefined ? {} : { payload_reduced: own.withheld.reason }
    if (!result.matches) {
      // The caller also learns of a criterion that can never match.
      const problem = findProblems(rule.criteria).find(({ message }) => verdict.reason?.includes(message) !== true)
      return {
        matches: false,
        verdict: censored(caller, rule, withReason(verdict, view.payload), own),
        criteria,
        ...reduced,
        ...(problem === undefined ? {} : { problem: problem.message, problem_path: ['criteria', ...problem.path] }),
      }
    }
    const isDisabled = request.rule_ref !== undefined && !rule.enabled
    return {
      matches: true,
      verdict: { ...verdict, ...(isDisabled ? { reason: 'The rule is disabled.' } : {}) },
      criteria,
      ...reduced,
      ...(await tryParameters(caller, compiled, instance, view, own)),
    }
  }

  async function tryParameters(
    caller: RuleCaller,
    { rule, templates: found }: CompiledRule,
    instance: TriggerInstance,
    { scope, withheld }: RuleView,
    shownTo: CallerView,
  ): Promise<Pick<RuleTestResult, 'parameters' | 'problem'>> {
    const action = findRuleAction(actions, rule.action.ref)
    const runner = action === undefined ? undefined : actions.findRunnerType(action.runner_type)
    const context = contextOf(rule, instance, traces.tagOf(instance.trace_id) ?? '')
    const concerns = { context, user: systemUser, pack: action?.pack ?? '' }
    const read: ReadSecrets = []
    const within = (base: TemplateScope, stranger?: string): TemplateScope =>
      scopeOfAction(base, concerns, packConfigs, read, stranger)
    const ofCaller = caller.rights.may(CONFIG_SECRETS) ? undefined : caller.principal.user
    let isMasked = shownTo.withheld !== undefined
    const markMasked = (): void => {
      isMasked = true
    }
    const problemOf = (error: unknown): string => {
      const refusal = refusalIn(error)
      const { message } = withheld === undefined ? refusal : withSentence(refusal, withheld.reason)
      return isMasked || read.length > 0 ? REASON_MASKED : message
    }
    // A payload can be large, and each of these steps looks at all of it.
    const pause = createPause()
    try {
      await nextTurn()
      const full = within(scope)
      const turn = { caller: caller.principal.user, isRequest: true }
      const parameters = await renderRuleParameters(
        templateThread,
        turn,
        rule.action.parameters,
        found,
        within(scope, strangerOf(rule)),
      )
      await pause()
      const own = (base: TemplateScope): TemplateScope => within(base, ofCaller)
      const visible = await visibleParameters(caller, turn, rule, shownTo, parameters, own, markMasked)
      const shown = (createSecretValues(read)?.maskValue(visible) ?? visible) as typeof visible // a copy of it
      if (action === undefined || runner === undefined) {
        const { ref } = rule.action
        return { parameters: service.maskedParameters({ ref, parameters: shown }), problem: actionMissing(ref) }
      }
      const result = { parameters: actions.mask(action, runner, shown) }
      const literals = new Set(Object.keys(parameters))
      try {
        const converted = await actions.render(action, runner, parameters, full, turn, { literals })
        await pause()
        await actions.prepareCheck(action, runner)
        actions.check(action, runner, converted, parameters)
      } catch (error) {
        return { ...result, problem: problemOf(error) }
      }
      return result
    } catch (error) {
      return { problem: problemOf(error) }
    }
  }

  /** Masks decrypted values, and values of the datastore or the payload that the caller cannot view. */
  async function visibleParameters(
    { principal }: RuleCaller,
    turn: Turn,
    rule: Rule,
    { payload }: CallerView,
    rendered: Record<string, unknown>,
    within: (base: TemplateScope) => TemplateScope,
    markMasked: () => void,
  ): Promise<Record<string, unknown>> {
    const { user, scopes } = principal
    let own: TemplateScope | undefined
    const visible: [string, unknown][] = []
    for (const [name, written] of Object.entries(rule.action.parameters)) {
      const found = findTemplates(written)
      if (found === undefined || decrypts(written)) {
        visible.push([name, found === undefined ? rendered[name] : MASK])
        continue
      }
      own ??= within(
        joinScopes(
          { variables: { trigger: payload } },
          templates({ user: systemUser, author: user, ...(scopes === undefined ? {} : { scopes }) }),
          { variables: {}, filters: { decrypt_kv: () => MASK } },
        ),
      )
      try {
        visible.push(
          ...Object.entries(await renderRuleParameters(templateThread, turn, { [name]: written }, found, own)),
        )
      } catch (error) {
        refusalIn(error)
        markMasked()
        visible.push([name, MASK])
      }
    }
    return Object.fromEntries(visible)
  }

  return test
}

const REASON_MASKED =
  'The action would reject these parameters. The cause is not shown, because it could contain a datastore value.'

const decrypts = (written: unknown): boolean => writeJson(written).includes('decrypt_kv')
