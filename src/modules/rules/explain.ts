/** Why a trigger instance caused what it did, and what a rule would do with one: nothing is run, nothing stored. */
import { bodyInvalid, resourceNotFound, triggerTypeUnknown } from '../../core/errors.ts'
import { isId } from '../../core/ids.ts'
import { isObject, MASK, represent } from '../../lib/schema/index.ts'
import { findTemplates } from '../../core/template-values.ts'
import type { ReadSecrets } from '../../core/parameter-scope.ts'
import { createSecretValues } from '../../lib/secrets/index.ts'
import { joinScopes, type TemplateScope } from '../../lib/template/index.ts'
import { microsOf, nowMicros } from '../../core/time.ts'
import type { Actions } from '../actions/index.ts'
import type { Traces } from '../traces/index.ts'
import type { Triggers } from '../triggers/index.ts'
import type { TriggerInstance } from '../triggers/types.ts'
import { compileLater, compileRule, type CompiledRule } from './bindings.ts'
import { findProblems, problemOfKey, readsDatastore } from './criteria.ts'
import { actionMissing, contextOf, findAction, refusalIn, scopeOfAction } from './enforce.ts'
import { aboutRule, createPause, evaluateRules, verdictOf, type EvaluationContext } from './evaluate.ts'
import { renderParameters } from './render.ts'
import { isIsolated, resourceOf, type Caller, type RuleService } from './service.ts'
import type { RuleStore } from './store.ts'
import type {
  Explanation,
  Rule,
  RuleEnforcement,
  RuleVerdict,
  SeenCriterion,
  TestRequest,
  TestResult,
} from './types.ts'
import type { TemplateReader } from '../../core/template-reader.ts'
import type { PackConfigs } from '../executions/ports.ts'
import { ruleEnforcementResource, ruleResource, triggerResource } from '../../core/permissions.ts'

export interface Explain {
  /** @throws RESOURCE_NOT_FOUND */
  instance(id: string): TriggerInstance
  /** @throws RESOURCE_NOT_FOUND */
  explain(caller: Caller, id: string): Promise<Explanation>
  /** @throws BODY_INVALID, CONTENT_NOT_FOUND, RESOURCE_NOT_FOUND, PERMISSION_DENIED, TRIGGER_TYPE_UNKNOWN, CRITERIA_INVALID */
  test(caller: Caller, request: TestRequest): TestResult
}

/** Of a value that a criterion saw: payloads may have megabytes, and there may be many rules. */
const MAX_VALUE_CHARS = 1000
/** Refs that one sentence names. */
const MAX_NAMED = 5

export function createExplain(deps: {
  store: RuleStore
  service: RuleService
  actions: Actions
  triggers: Triggers
  traces: Traces
  readonly templates: (reader: TemplateReader) => TemplateScope
  readonly scopesFor: (payload: unknown) => EvaluationContext['scopeOf']
  packConfigs: PackConfigs
  systemUser: string
}): Explain {
  const { store, service, actions, triggers, traces, templates, scopesFor, packConfigs, systemUser } = deps

  function instanceOf(id: string): TriggerInstance {
    const instance = isId(id) ? triggers.findInstance(id) : undefined
    if (instance === undefined) throw resourceNotFound(id)
    return instance
  }

  async function explain(caller: Caller, id: string): Promise<Explanation> {
    const instance = instanceOf(id)
    const rules = store.boundTo(instance.trigger_id).map(({ record }) => compileLater(record, triggers))
    const context = {
      payload: instance.payload,
      // What the engine has seen, as nearly as can be said.
      now: microsOf(instance.occurrence_time),
      scopeOf: scopesFor(instance.payload),
    }
    const left = new Map(store.enforcementsOf(id).map((enforcement) => [enforcement.rule.id, enforcement]))
    const shown: Explanation['rules'] = []
    let hidden = 0
    const pause = createPause()
    for (const { compiled, verdict } of evaluateRules(rules, context)) {
      const { rule } = compiled
      const enforcement = left.get(rule.id)
      left.delete(rule.id)
      if (!caller.rights.may('rule_view', resourceOf(rule))) hidden += 1
      else {
        const said = withReason(censored(caller, rule, verdict))
        shown.push({ ...said, ...(enforcement && { enforcement: partOf(enforcement) }) })
      }
      await pause()
    }
    const { trigger, status, occurrence_time, trace_id } = instance
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
      message: sentenceOf(instance, shown, hidden, gone, triggers.find(trigger) !== undefined),
    }
  }

  /** @throws PERMISSION_DENIED, CONTENT_NOT_FOUND, BODY_INVALID, TRIGGER_TYPE_UNKNOWN */
  function ruleOf(caller: Caller, { rule: given, rule_ref: ref }: TestRequest): Rule {
    if (given !== undefined && ref === undefined) {
      const draft = { ...service.draft(caller, given), id: '' }
      caller.rights.require('rule_create', ruleResource({ ref: draft.ref, user: caller.principal.user }))
      return draft
    }
    if (given !== undefined || ref === undefined) throw bodyInvalid('Give either "rule" or "rule_ref".')
    const rule = service.get(ref)
    caller.rights.require('rule_view', resourceOf(rule))
    return rule
  }

  /** @throws PERMISSION_DENIED, RESOURCE_NOT_FOUND, BODY_INVALID, TRIGGER_TYPE_UNKNOWN */
  function occurrenceOf(caller: Caller, request: TestRequest): TriggerInstance {
    const { trigger_instance: given, trigger_instance_id: id } = request
    if ((given === undefined) === (id === undefined)) {
      throw bodyInvalid('Give either "trigger_instance" or "trigger_instance_id".')
    }
    if (id !== undefined) {
      const instance = instanceOf(id)
      caller.rights.require('trigger_view', triggerResource(instance.trigger_type))
      return instance
    }
    const { trigger: ref = '', payload = {} } = given ?? {}
    const type = triggers.find(ref)?.type ?? triggers.findType(ref)?.ref
    if (type === undefined) throw triggerTypeUnknown(ref)
    return {
      id: given?.id ?? '',
      trigger: ref,
      trigger_id: '',
      trigger_type: type,
      occurrence_time: given?.occurrence_time ?? '',
      status: 'pending',
      trace_id: '',
      payload,
    }
  }

  function test(caller: Caller, request: TestRequest): TestResult {
    const rule = ruleOf(caller, request)
    const instance = occurrenceOf(caller, request)
    if (instance.trigger_type !== rule.trigger.type) {
      const problem = `The rule is for trigger type "${rule.trigger.type}", the trigger instance is of "${instance.trigger_type}".`
      const verdict = { ...aboutRule(rule), verdict: 'not_matched', reason: problem } as const
      return { matches: false, verdict, criteria: [], problem }
    }
    const compiled = compileRule({ ...rule, enabled: true }, triggers)
    const scope = scopesFor(instance.payload)(rule)
    const { result, outcomes } = compiled.criteria.evaluateEach({
      payload: instance.payload,
      now: request.trigger_instance_id === undefined ? nowMicros() : microsOf(instance.occurrence_time),
      scope,
    })
    const criteria = outcomes.map(({ seen, holds, reason }) => ({
      ...censoredCriterion(caller, rule, seen),
      holds,
      ...(reason === undefined ? {} : { reason }),
    }))
    const verdict = verdictOf(rule, result)
    if (!result.matches) {
      // What could never match is told beside why it does not match this time.
      const problem = findProblems(rule.criteria).find((one) => verdict.reason?.includes(one) !== true)
      return {
        matches: false,
        verdict: censored(caller, rule, verdict),
        criteria,
        ...(problem === undefined ? {} : { problem }),
      }
    }
    const isDisabled = request.rule_ref !== undefined && !rule.enabled
    return {
      matches: true,
      verdict: { ...verdict, ...(isDisabled ? { reason: 'The rule is disabled, so it would not be enforced.' } : {}) },
      criteria,
      ...tryParameters(caller, compiled, instance, scope),
    }
  }

  function tryParameters(
    caller: Caller,
    { rule, templates: found }: CompiledRule,
    instance: TriggerInstance,
    scope: TemplateScope,
  ): Pick<TestResult, 'parameters' | 'problem'> {
    const action = findAction(actions, rule.action.ref)
    const runner = action === undefined ? undefined : actions.findRunnerType(action.runner_type)
    const context = contextOf(rule, instance, traces.tagOf(instance.trace_id) ?? '')
    const concerns = { context, user: systemUser, pack: action?.pack ?? '' }
    const read: ReadSecrets = []
    const within = (base: TemplateScope): TemplateScope => scopeOfAction(base, concerns, packConfigs, read)
    let isConcealed = false
    const conceal = (): void => {
      isConcealed = true
    }
    const problemOf = (error: unknown): string => {
      const { message } = refusalIn(error)
      return isConcealed || read.length > 0 ? CONCEALED : message
    }
    try {
      const full = within(scope)
      const parameters = renderParameters(rule.action.parameters, found, full)
      const visible = visibleParameters(caller, rule, instance, parameters, within, conceal)
      const shown = (createSecretValues(read)?.maskValue(visible) ?? visible) as typeof visible // a copy of it
      if (action === undefined || runner === undefined) {
        const { ref } = rule.action
        return { parameters: service.maskedParameters({ ref, parameters: shown }), problem: actionMissing(ref) }
      }
      const result = { parameters: actions.mask(action, runner, shown) }
      const literals = new Set(Object.keys(parameters))
      try {
        const converted = actions.render(action, runner, parameters, full, literals)
        actions.check(action, runner, converted, parameters)
      } catch (error) {
        return { ...result, problem: problemOf(error) }
      }
      return result
    } catch (error) {
      return { problem: problemOf(error) }
    }
  }

  /** What is decrypted, or comes from items of the datastore that the caller may not view, is not shown. */
  function visibleParameters(
    { principal }: Caller,
    rule: Rule,
    { payload }: TriggerInstance,
    rendered: Record<string, unknown>,
    within: (base: TemplateScope) => TemplateScope,
    conceal: () => void,
  ): Record<string, unknown> {
    let own: TemplateScope | undefined
    return Object.fromEntries(
      Object.entries(rule.action.parameters).map(([name, written]) => {
        const found = findTemplates(written)
        if (found === undefined) return [name, rendered[name]]
        if (decrypts(written)) return [name, MASK]
        const { user, scopes } = principal
        own ??= within(
          joinScopes(
            { variables: { trigger: payload } },
            templates({ user: systemUser, author: user, ...(scopes === undefined ? {} : { scopes }) }),
            { variables: {}, filters: { decrypt_kv: () => MASK } },
          ),
        )
        try {
          return [name, renderParameters({ [name]: written }, found, own)[name]]
        } catch (error) {
          refusalIn(error)
          conceal()
          return [name, MASK]
        }
      }),
    )
  }

  return { instance: instanceOf, explain, test }
}

const CONCEALED =
  'The action would not be given these parameters. Why is not said here, since it could tell a value of the datastore.'

const decrypts = (written: unknown): boolean => JSON.stringify(written).includes('decrypt_kv')

/** A verdict as the caller may see it: short, and without what only others may read in the datastore. */
function censored(caller: Caller, rule: Rule, verdict: RuleVerdict): RuleVerdict {
  const { criterion } = verdict
  return criterion === undefined ? verdict : { ...verdict, criterion: censoredCriterion(caller, rule, criterion) }
}

function censoredCriterion({ principal }: Caller, rule: Rule, criterion: SeenCriterion): SeenCriterion {
  const { key } = criterion
  let { pattern, value } = criterion
  if (!principal.isAdmin) {
    if (value !== null && readsDatastore(key)) value = MASK
    const written = Object.hasOwn(rule.criteria, key) ? rule.criteria[key]?.pattern : undefined
    // Also of criteria within `search`, whose patterns are those of the criterion around them.
    const isRead = /svckv|system/.test(JSON.stringify(rule.criteria))
    if (isRead) pattern = written ?? MASK
  }
  return { ...criterion, pattern: shorten(pattern), value: shorten(value) }
}

/** Nothing that comes to a key that leads nowhere can match: then the value does not tell why. */
function withReason(verdict: RuleVerdict): RuleVerdict {
  const { criterion, reason } = verdict
  const why = criterion === undefined || reason !== undefined ? undefined : problemOfKey(criterion.key)
  return why === undefined ? verdict : { ...verdict, reason: why }
}

/** The value itself, or the beginning of its text when that is long. */
function shorten(value: unknown): unknown {
  if (typeof value === 'string') {
    return value.length <= MAX_VALUE_CHARS ? value : `${value.slice(0, MAX_VALUE_CHARS).toWellFormed()}…`
  }
  if (!isObject(value) && !Array.isArray(value)) return value ?? null
  // One more, because a text that just fits does not tell that there was more.
  const text = represent(value, MAX_VALUE_CHARS + 1)
  return text.length <= MAX_VALUE_CHARS ? value : `${text.slice(0, MAX_VALUE_CHARS).toWellFormed()}…`
}

function partOf({ id, status, execution_id, failure_reason }: RuleEnforcement) {
  return {
    id,
    status,
    ...(execution_id === undefined ? {} : { execution_id }),
    ...(failure_reason === undefined ? {} : { failure_reason }),
  }
}

function sentenceOf(
  { status, trigger }: TriggerInstance,
  rules: Explanation['rules'],
  hidden: number,
  gone: readonly RuleEnforcement[],
  hasTrigger: boolean,
): string {
  if (status === 'pending') {
    return 'The trigger instance waits to be processed; these are the verdicts of the rules as they are now.'
  }
  if (status === 'processing_failed') {
    return 'Something unexpected went wrong while the trigger instance was processed; the log of the server says what.'
  }
  const refsOf = (outcome: RuleEnforcement['status']): string[] => [
    ...rules.flatMap(({ rule, enforcement }) => (enforcement?.status === outcome ? [rule.ref] : [])),
    ...gone.flatMap(({ rule, status: its }) => (its === outcome ? [rule.ref] : [])),
  ]
  const [enforced, failed] = [refsOf('succeeded'), refsOf('failed')]
  if (enforced.length > 0) {
    const others = failed.length === 0 ? '' : ` Enforcing failed: ${namesOf(failed)}.`
    return `${countOf(enforced.length, 'rule')} started an execution: ${namesOf(enforced)}.${others}`
  }
  if (failed.length > 0) return `No execution came of it, because enforcing failed: ${namesOf(failed)}.`
  if (!hasTrigger) {
    return `Trigger "${trigger}" does not exist any more: its type, or the rules that named it, have been deleted or changed.`
  }
  if (rules.length === 0) {
    return hidden === 0
      ? `No rule is bound to trigger "${trigger}".`
      : `You may view none of the rules that are bound to trigger "${trigger}".`
  }
  const enabled = rules.filter(({ verdict }) => verdict !== 'disabled')
  if (enabled.length === 0) {
    return rules.length === 1
      ? 'The only rule of the trigger is disabled.'
      : `All ${rules.length} rules of the trigger are disabled.`
  }
  const late = enabled
    .filter(({ verdict }) => verdict === 'matched' || verdict === 'failed')
    .map(({ rule }) => rule.ref)
  if (late.length > 0) {
    return `Nothing came of it then, yet it would be enforced now, since rules or what they read have changed: ${namesOf(late)}.`
  }
  return enabled.length === 1
    ? `The only enabled rule does not match: ${namesOf([enabled[0]?.rule.ref ?? ''])}.`
    : `None of the ${enabled.length} enabled rules matches.`
}

const countOf = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

function namesOf(refs: readonly string[]): string {
  const more = refs.length - MAX_NAMED
  return refs.slice(0, MAX_NAMED).join(', ') + (more > 0 ? ` and ${more} more` : '')
}
