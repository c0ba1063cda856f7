/** Reads, creates, changes and deletes rules. */
import type { Unit } from '../../db/index.ts'
import {
  bodyInvalid,
  contentChanged,
  contentNotFound,
  permissionDenied,
  ruleActionDenied,
  ruleTriggerDenied,
  ruleWebhookDenied,
  triggerTypeUnknown,
} from '../../core/errors.ts'
import { aboutCaller, isTagged, type ApiRequest } from '../../http/index.ts'
import { isId } from '../../core/ids.ts'
import { type Log, createRedactor } from '../../lib/log/index.ts'
import { defaultPack } from '../../core/pack-content.ts'
import { isObject, MASK } from '../../lib/schema/index.ts'
import type { Actions } from '../actions/index.ts'
import { hookOf, subjectOf, webhookTypeRef, type Triggers } from '../triggers/index.ts'
import { checkCriteria, compileCriteria } from './criteria/criteria.ts'
import { fillRuleDefinition, type FilledRule } from './definition.ts'
import { findRuleAction } from './enforcement/enforce.ts'
import { problemOfRunning } from './running.ts'
import { checkExpectation } from './check-expectation.ts'
import { keepSecrets } from './secrets.ts'
import { whyStartsItself } from './self-starting.ts'
import type { RuleStore } from './store.ts'
import type { Rule, RuleContext, RuleDefinition, RuleEnforcement, RuleRecord } from './types.ts'
import {
  actionResource,
  ruleResource,
  triggerResource,
  webhookResource,
  type Resource,
} from '../../core/permissions.ts'
import { isSame, logFieldsOf, toRule, type RuleChanges } from './changes.ts'

/** The caller, its address and its permissions. */
export type RuleCaller = Pick<ApiRequest, 'principal' | 'rights' | 'requestId' | 'remoteAddress'>

export interface RuleService {
  /** Finds by id or reference. @throws CONTENT_NOT_FOUND */
  get(refOrId: string): Rule
  /** The record for clients. @param unmasked shows secret action parameters; secrets of the trigger stay masked */
  record(rule: Rule, unmasked: boolean): RuleRecord
  /** Action parameters as responses show them. */
  maskedParameters(action: Rule['action']): Record<string, unknown>
  /** The rule without id and trigger, for a rule test. @throws TRIGGER_TYPE_UNKNOWN, CRITERIA_INVALID */
  draft(caller: RuleCaller, given: RuleDefinition): Rule
  /** @throws NAME_TAKEN, PERMISSION_DENIED and the 400s of contract 05, 5.5 */
  create(caller: RuleCaller, given: RuleDefinition): Promise<Rule>
  /**
   * @param ifMatch entity tags; fails unless one of them is that of the current rule
   * @throws CONTENT_NOT_FOUND, CONTENT_CHANGED, NAME_TAKEN, PERMISSION_DENIED and the 400s of contract 05, 5.5
   */
  update(caller: RuleCaller, refOrId: string, given: RuleDefinition, ifMatch?: string): Promise<Rule>
  /** @throws CONTENT_NOT_FOUND */
  delete(caller: RuleCaller, refOrId: string): Promise<void>
}

/** The rule as a resource of permission checks. */
export const resourceOf = ({ ref, context }: Pick<Rule, 'ref' | 'context'>): Resource =>
  ruleResource({ ref, user: context.user })

/** Differs after each change (RFC 9110, 8.8.3). */
export const entityTagOf = ({ id, revision }: Pick<Rule, 'id' | 'revision'>): string => `"${id}-${revision}"`

/** Whether isolation denies access to an enforcement: its rule has another owner or is deleted. */
export function isIsolated(
  store: Pick<RuleStore, 'find'>,
  { rule }: Pick<RuleEnforcement, 'rule'>,
  { onlyOf }: Pick<RuleCaller['rights'], 'onlyOf'>,
): boolean {
  return onlyOf !== undefined && store.find(rule.id)?.context.user !== onlyOf
}

export function createRuleService(deps: {
  changes: RuleChanges
  store: RuleStore
  actions: Actions
  triggers: Triggers
  log: Log
  /** `api.mask_secrets` and `log.mask_secrets` */
  maskSecrets: boolean
  /** Runs the actions of rules. */
  systemUser: string
}): RuleService {
  const { changes, store, actions, triggers, log } = deps
  const { isSecret } = createRedactor(true)

  const find = (refOrId: string): Rule | undefined =>
    (isId(refOrId) ? store.find(refOrId) : undefined) ?? store.findByRef(refOrId)

  function get(refOrId: string): Rule {
    const rule = find(refOrId)
    if (rule === undefined) throw contentNotFound(refOrId)
    return rule
  }

  function maskedParameters({ ref, parameters }: Rule['action']): Record<string, unknown> {
    if (!deps.maskSecrets) return parameters
    const action = findRuleAction(actions, ref)
    const runner = action === undefined ? undefined : actions.findRunnerType(action.runner_type)
    if (action !== undefined && runner !== undefined) return actions.mask(action, runner, parameters)
    // Without the action, only their names tell which parameters are secret.
    return Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, isSecret(name) ? MASK : value]))
  }

  /** @throws PERMISSION_DENIED */
  function authorize({ principal, rights }: RuleCaller, { action, trigger }: FilledRule): void {
    // The type can be given by id.
    const type = triggers.findType(trigger.type)?.ref ?? ''
    if (subjectOf(type) !== undefined) {
      const resource = triggerResource(type)
      if (!rights.may('trigger_view', resource)) throw ruleTriggerDenied(principal.user, type, resource.uid)
    }
    if (type === webhookTypeRef) {
      const { url } = trigger.parameters
      const hook = typeof url === 'string' ? hookOf(url) : ''
      if (!rights.may('webhook_create', webhookResource(hook))) {
        throw ruleWebhookDenied(principal.user, webhookTypeRef, hook)
      }
    }
    if (!rights.may('action_execute', actionResource(action.ref))) throw ruleActionDenied(principal.user, action.ref)
  }

  /** @throws BODY_INVALID */
  function refuseExpectation(filled: FilledRule): void {
    const problem = checkExpectation(filled, triggers)
    if (problem !== undefined) throw bodyInvalid(problem.message, { path: problem.path })
  }

  /** Refuses rules that start themselves in any case, and warns of those that do by their criteria. @throws CRITERIA_INVALID */
  function checkChain(filled: FilledRule): void {
    const again = whyStartsItself(filled, triggers.findType(filled.trigger.type)?.ref ?? '', deps.systemUser)
    if (again !== undefined) log.warning('rules.starts_itself', again, { rule: `${filled.pack}.${filled.name}` })
  }

  /**
   * Replaces masks with the stored secrets. A caller who cannot read the secrets cannot change other parameters of the
   * action: a template could print the secrets, or another command could receive them.
   *
   * @throws PERMISSION_DENIED
   */
  function keepStoredSecrets(
    { principal }: RuleCaller,
    before: Rule,
    filled: FilledRule,
  ): { action: Rule['action']; secretOwners: string[] | undefined } {
    const { action } = filled
    const stored = before.action
    if (action.ref !== stored.ref) return { action, secretOwners: undefined }
    const { value, kept } = keepSecrets(action.parameters, stored.parameters, maskedParameters(stored))
    if (!kept || !isObject(value)) return { action, secretOwners: undefined }
    const owners = before.secret_owners ?? [before.context.user]
    // A key with scopes does not give access to all secrets of its user.
    const foreign = principal.scopes === undefined ? owners.filter((owner) => owner !== principal.user) : owners
    const triggerType = triggers.findType(filled.trigger.type)?.ref
    const isUnchanged = isSame(value, stored.parameters) && triggerType === before.trigger.type
    if (!principal.isAdmin && foreign.length > 0 && !isUnchanged) {
      throw permissionDenied(
        `The rule has secret action parameters of "${foreign.join('" and "')}". Replace these secrets too, or leave the action parameters and the trigger type unchanged.`,
      )
    }
    return {
      action: { ...action, parameters: value },
      secretOwners: foreign.length === 0 ? undefined : [...new Set([...owners, principal.user])],
    }
  }

  return {
    get,
    maskedParameters,
    record(rule, unmasked) {
      const { revision: _r, secret_owners: _s, ...shown } = rule
      const { id, ref, type } = rule.trigger
      const trigger = triggers.find(id)
      return {
        ...shown,
        trigger: {
          type,
          ref: trigger?.ref ?? ref,
          parameters: trigger === undefined ? {} : triggers.record(trigger).parameters,
        },
        action: unmasked ? rule.action : { ...rule.action, parameters: maskedParameters(rule.action) },
      }
    },

    draft(caller, given) {
      const filled = fillRuleDefinition(given, defaultPack)
      const type = triggers.findType(filled.trigger.type)
      if (type === undefined) throw triggerTypeUnknown(filled.trigger.type, ['trigger', 'type'])
      checkRunning(filled)
      refuseExpectation(filled)
      compileCriteria(filled.criteria)
      return toRule(undefined, filled, { id: '', ref: '', type: type.ref }, { context: authorOf(caller) })
    },

    async create(caller, given) {
      const filled = fillRuleDefinition(given, defaultPack)
      authorize(caller, filled)
      checkRunning(filled)
      refuseExpectation(filled)
      checkCriteria(filled.criteria)
      checkChain(filled)
      const rule = await changes.commit('The trigger of the rule', () =>
        changes.planWrite(undefined, filled, { context: authorOf(caller) }),
      )
      log.audit('rule.created', `Rule created. Rule.id=${rule.id}`, { ...logFieldsOf(rule), ...aboutCaller(caller) })
      return rule
    },

    async update(caller, refOrId, given, ifMatch) {
      const { id } = get(refOrId)
      const plan = (): { result: Rule; unit: Unit } => {
        const before = get(id)
        caller.rights.require('rule_modify', resourceOf(before))
        if (ifMatch !== undefined && !isTagged(ifMatch, entityTagOf(before))) {
          throw contentChanged(`Rule "${before.ref}"`, before.context.user)
        }
        const filled = fillRuleDefinition(given, before.pack)
        const ref = `${filled.pack}.${filled.name}`
        const context = authorOf(caller)
        if (ref !== before.ref) caller.rights.require('rule_create', resourceOf({ ref, context }))
        authorize(caller, filled)
        checkRunning(filled)
        refuseExpectation(filled)
        // An older version may have accepted them; the rule can still be disabled.
        if (!isSame(filled.criteria, before.criteria)) checkCriteria(filled.criteria)
        if (!before.enabled || !isSame(filled.criteria, before.criteria)) checkChain(filled)
        const { action, secretOwners } = keepStoredSecrets(caller, before, filled)
        return changes.planWrite(
          before,
          { ...filled, action },
          {
            context,
            ...(before.metadata_file === undefined ? {} : { metadata_file: before.metadata_file }),
            ...(secretOwners === undefined ? {} : { secret_owners: secretOwners }),
          },
        )
      }
      const rule = await changes.commit(`Rule "${refOrId}"`, plan)
      log.audit('rule.updated', `Rule updated. Rule.id=${rule.id}`, { ...logFieldsOf(rule), ...aboutCaller(caller) })
      return rule
    },

    async delete(caller, refOrId) {
      const { id } = get(refOrId)
      const rule = await changes.commit(`Rule "${refOrId}"`, () => {
        const seen = get(id)
        caller.rights.require('rule_delete', resourceOf(seen))
        return { result: seen, unit: changes.planDelete(seen) }
      })
      log.audit('rule.deleted', `Rule deleted. Rule.id=${rule.id}`, { ...logFieldsOf(rule), ...aboutCaller(caller) })
    },
  }
}

/** @throws BODY_INVALID */
function checkRunning({ action }: FilledRule): void {
  const problem = problemOfRunning(action)
  if (problem !== undefined) throw bodyInvalid(problem.message, { path: problem.path })
}

function authorOf({ principal: { user, scopes } }: RuleCaller): RuleContext {
  return { user, ...(scopes === undefined ? {} : { scopes }) }
}
