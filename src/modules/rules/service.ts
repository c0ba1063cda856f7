/** What can be done with rules: make, change, delete, read, register those of a pack. */
import { commitPlan, Conflict, merge, type Database, type Unit } from '../../db/index.ts'
import {
  contentChanged,
  contentNotFound,
  isAppError,
  nameTaken,
  permissionDenied,
  ruleActionDenied,
  ruleWebhookDenied,
  triggerTypeUnknown,
} from '../../core/errors.ts'
import { aboutCaller, type ApiRequest } from '../../http/index.ts'
import { isId, newId } from '../../core/ids.ts'
import { type Log, type LogFields, createRedactor } from '../../lib/log/index.ts'
import {
  checkPackDefinitions,
  defaultPack,
  isGone,
  type PackDefinitions,
  type Registration,
} from '../../core/pack-content.ts'
import { compileSchema, isObject, MASK } from '../../lib/schema/index.ts'
import type { Actions } from '../actions/index.ts'
import { hookOf, webhookTypeRef, type Triggers } from '../triggers/index.ts'
import type { TriggerRecord } from '../triggers/types.ts'
import { compileCriteria } from './criteria.ts'
import { fillDefinition, ruleFileSchema, type FilledRule } from './definition.ts'
import { findAction } from './enforce.ts'
import { keepSecrets } from './secrets.ts'
import type { RuleStore } from './store.ts'
import type { Rule, RuleContext, RuleDefinition, RuleEnforcement, RuleRecord } from './types.ts'
import { actionResource, ruleResource, webhookResource, type Resource } from '../../core/permissions.ts'

/** Who asks, from where, and what they may do. */
export type Caller = Pick<ApiRequest, 'principal' | 'rights' | 'requestId' | 'remoteAddress'>

export interface RuleService {
  /** By id when it looks like one, else by reference. @throws CONTENT_NOT_FOUND */
  get(refOrId: string): Rule
  /** For clients. @param unmasked with the secrets of its action parameters; those of its trigger are never shown */
  record(rule: Rule, unmasked: boolean): RuleRecord
  /** As replies show them. */
  maskedParameters(action: Rule['action']): Record<string, unknown>
  /** The rule as it would be stored, for trying it out: without id and trigger. @throws TRIGGER_TYPE_UNKNOWN, CRITERIA_INVALID */
  draft(caller: Caller, given: RuleDefinition): Rule
  /** @throws NAME_TAKEN, PERMISSION_DENIED and the 400s of contract 05, 5.5 */
  create(caller: Caller, given: RuleDefinition): Promise<Rule>
  /**
   * @param ifMatch only while the rule is what one of these entity tags names
   * @throws CONTENT_NOT_FOUND, CONTENT_CHANGED, NAME_TAKEN, PERMISSION_DENIED and the 400s of contract 05, 5.5
   */
  update(caller: Caller, refOrId: string, given: RuleDefinition, ifMatch?: string): Promise<Rule>
  /** @throws CONTENT_NOT_FOUND */
  delete(caller: Caller, refOrId: string): Promise<void>
  /** Ids stay. What is wrong with some definitions does not keep the others out. */
  register(content: PackDefinitions): Promise<Registration>
}

/** How often a change is planned anew, when others change the same triggers at the same time. */
const MAX_ATTEMPTS = 50
/** Rules of a pack that share a commit. */
const REGISTERED_TOGETHER = 32

/** Of a rule: what it is about, and whose it is. */
export const resourceOf = ({ ref, context }: Pick<Rule, 'ref' | 'context'>): Resource =>
  ruleResource({ ref, user: context.user })

/** Another one after each change (RFC 9110, 8.8.3). */
export const entityTagOf = ({ id, revision }: Pick<Rule, 'id' | 'revision'>): string => `"${id}-${revision}"`

function matches(rule: Rule, ifMatch: string): boolean {
  return ifMatch.split(',').some((tag) => tag.trim() === '*' || tag.trim() === entityTagOf(rule))
}

/** Whether isolation keeps an enforcement from the caller: its rule is of somebody else, or gone. */
export function isIsolated(
  store: Pick<RuleStore, 'find'>,
  { rule }: Pick<RuleEnforcement, 'rule'>,
  { onlyOf }: Pick<Caller['rights'], 'onlyOf'>,
): boolean {
  return onlyOf !== undefined && store.find(rule.id)?.context.user !== onlyOf
}

export function createRuleService(deps: {
  database: Database
  store: RuleStore
  actions: Actions
  triggers: Triggers
  log: Log
  /** `api.mask_secrets` and `log.mask_secrets` */
  maskSecrets: boolean
  /** Writes the rules of packs. */
  systemUser: string
}): RuleService {
  const { database, store, actions, triggers, log, systemUser } = deps
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
    const action = findAction(actions, ref)
    const runner = action === undefined ? undefined : actions.findRunnerType(action.runner_type)
    if (action !== undefined && runner !== undefined) return actions.mask(action, runner, parameters)
    // Without the action nobody knows what is secret, so names have to tell.
    return Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, isSecret(name) ? MASK : value]))
  }

  /** @throws PERMISSION_DENIED */
  function authorize({ principal, rights }: Caller, { action, trigger }: FilledRule): void {
    // It may be named by its id.
    if (triggers.findType(trigger.type)?.ref === webhookTypeRef) {
      const { url } = trigger.parameters
      const hook = typeof url === 'string' ? hookOf(url) : ''
      if (!rights.may('webhook_create', webhookResource(hook))) {
        throw ruleWebhookDenied(principal.user, webhookTypeRef, hook)
      }
    }
    if (!rights.may('action_execute', actionResource(action.ref))) throw ruleActionDenied(principal.user, action.ref)
  }

  const commit = <T>(what: string, plan: () => { result: T; unit: Unit }): Promise<T> =>
    commitPlan(database, plan, what, MAX_ATTEMPTS)

  /** @throws TRIGGER_TYPE_UNKNOWN, PARAMETERS_INVALID, NAME_TAKEN */
  function planWrite(before: Rule | undefined, filled: FilledRule, more: WrittenBy): { result: Rule; unit: Unit } {
    const ref = `${filled.pack}.${filled.name}`
    const same = before?.ref === ref ? undefined : store.findByRef(ref)
    if (same !== undefined) throw nameTaken(`Rule "${ref}"`, same.id)

    const old = before === undefined ? undefined : triggers.find(before.trigger.id)
    const { trigger, unit: use } = triggers.planUse(
      filled.trigger.type,
      filled.trigger.parameters,
      old !== undefined && old.type === triggers.findType(filled.trigger.type)?.ref ? old.parameters : undefined,
      more.context,
    )
    const rule = toRule(before, filled, trigger, more)
    const moves = before?.trigger.id !== trigger.id
    const change = before === undefined ? 'created' : 'updated'
    return {
      result: rule,
      unit: merge(
        moves ? use : undefined,
        { steps: [before === undefined ? store.insert(rule) : store.update(rule, before.revision)], facts: [] },
        before !== undefined && moves ? planRelease(before.trigger.id) : undefined,
        changed(rule, change, before === undefined || !moves ? [trigger.id] : [before.trigger.id, trigger.id]),
      ),
    }
  }

  /** A trigger that has been deleted counts nobody. */
  function planRelease(triggerId: string): Unit | undefined {
    try {
      return triggers.planRelease(triggerId)
    } catch (error) {
      if (error instanceof Conflict) return undefined
      throw error
    }
  }

  function planDelete(rule: Rule): Unit {
    return merge(
      { steps: [store.delete(rule)], facts: [] },
      planRelease(rule.trigger.id),
      changed(rule, 'deleted', [rule.trigger.id]),
    )
  }

  /**
   * Puts the stored secrets where masks are sent back. Who may not see them can leave them where they are, but not beside
   * values of one's own: a template could print them, and another command would get them.
   *
   * @throws PERMISSION_DENIED
   */
  function keepStoredSecrets(
    { principal }: Caller,
    before: Rule,
    filled: FilledRule,
  ): { action: Rule['action']; secretOwners: string[] | undefined } {
    const { action } = filled
    const stored = before.action
    if (action.ref !== stored.ref) return { action, secretOwners: undefined }
    const { value, kept } = keepSecrets(action.parameters, stored.parameters, maskedParameters(stored))
    if (!kept || !isObject(value)) return { action, secretOwners: undefined }
    const owners = before.secret_owners ?? [before.context.user]
    // Whoever holds a key with scopes is not told all that its user knows.
    const foreign = principal.scopes === undefined ? owners.filter((owner) => owner !== principal.user) : owners
    const triggerType = triggers.findType(filled.trigger.type)?.ref
    const isUnchanged = isSame(value, stored.parameters) && triggerType === before.trigger.type
    if (!principal.isAdmin && foreign.length > 0 && !isUnchanged) {
      throw permissionDenied(
        `The rule has secret action parameters of "${foreign.join('" and "')}". Give other values for these too, or leave the action parameters and the trigger type as they are.`,
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
      const { id, ref, type, description } = rule.trigger
      const trigger = triggers.find(id)
      return {
        ...shown,
        trigger: {
          type,
          ref: trigger?.ref ?? ref,
          parameters: trigger === undefined ? {} : triggers.record(trigger).parameters,
          ...(description === undefined ? {} : { description }),
        },
        action: unmasked ? rule.action : { ...rule.action, parameters: maskedParameters(rule.action) },
      }
    },

    draft(caller, given) {
      const filled = fillDefinition(given, defaultPack)
      const type = triggers.findType(filled.trigger.type)
      if (type === undefined) throw triggerTypeUnknown(filled.trigger.type)
      compileCriteria(filled.criteria)
      return toRule(undefined, filled, { id: '', ref: '', type: type.ref }, { context: authorOf(caller) })
    },

    async create(caller, given) {
      const filled = fillDefinition(given, defaultPack)
      authorize(caller, filled)
      compileCriteria(filled.criteria)
      const rule = await commit('The trigger of the rule', () =>
        planWrite(undefined, filled, { context: authorOf(caller) }),
      )
      log.audit('rule.created', `Rule created. Rule.id=${rule.id}`, { ...aboutRule(rule), ...aboutCaller(caller) })
      return rule
    },

    async update(caller, refOrId, given, ifMatch) {
      const { id } = get(refOrId)
      const plan = (): { result: Rule; unit: Unit } => {
        const before = get(id)
        caller.rights.require('rule_modify', resourceOf(before))
        if (ifMatch !== undefined && !matches(before, ifMatch)) {
          throw contentChanged(`Rule "${before.ref}"`, before.context.user)
        }
        const filled = fillDefinition(given, before.pack)
        const ref = `${filled.pack}.${filled.name}`
        const context = authorOf(caller)
        if (ref !== before.ref) caller.rights.require('rule_create', resourceOf({ ref, context }))
        authorize(caller, filled)
        compileCriteria(filled.criteria)
        const { action, secretOwners } = keepStoredSecrets(caller, before, filled)
        return planWrite(
          before,
          { ...filled, action },
          {
            context,
            ...(before.metadata_file === undefined ? {} : { metadata_file: before.metadata_file }),
            ...(secretOwners === undefined ? {} : { secret_owners: secretOwners }),
          },
        )
      }
      const rule = await commit(`Rule "${refOrId}"`, plan)
      log.audit('rule.updated', `Rule updated. Rule.id=${rule.id}`, { ...aboutRule(rule), ...aboutCaller(caller) })
      return rule
    },

    async delete(caller, refOrId) {
      const { id } = get(refOrId)
      const rule = await commit(`Rule "${refOrId}"`, () => {
        const seen = get(id)
        caller.rights.require('rule_delete', resourceOf(seen))
        return { result: seen, unit: planDelete(seen) }
      })
      log.audit('rule.deleted', `Rule deleted. Rule.id=${rule.id}`, { ...aboutRule(rule), ...aboutCaller(caller) })
    },

    async register(content) {
      const existing = new Map(store.ofPack(content.pack).map((rule) => [rule.name, rule]))
      const { definitions, problems } = checkPackDefinitions(content, 'Rule', (given) => {
        // Compiled for the first rule that there is: at each start it would cost time.
        const problem = compileSchema(ruleFileSchema).find(given)
        if (problem !== undefined) return { problems: [problem] }
        return { definition: fillDefinition(given as RuleDefinition, content.pack) } // has passed its schema
      })
      const by = { user: systemUser }
      const registerOne = async ({ metadata_file: metadataFile = '', ...filled }: FilledRule): Promise<boolean> => {
        const before = existing.get(filled.name)
        if (before !== undefined && isStored(before, filled, metadataFile)) return true
        const ref = `${filled.pack}.${filled.name}`
        try {
          compileCriteria(filled.criteria)
          const rule = await commit(`Rule "${ref}"`, () =>
            planWrite(store.findByRef(ref), filled, { context: { user: systemUser }, metadata_file: metadataFile }),
          )
          const what = before === undefined ? 'created' : 'updated'
          log.audit(`rule.${what}`, `Rule ${what}. Rule.id=${rule.id}`, { ...aboutRule(rule), ...by })
          return true
        } catch (error) {
          if (!isAppError(error) || error.kind !== 'invalid') throw error
          const path = error.code === 'CRITERIA_INVALID' ? 'criteria' : 'trigger'
          problems.push({ metadataFile, path: [path], message: error.message })
          return false
        }
      }
      let registered = 0
      for (let start = 0; start < definitions.length; start += REGISTERED_TOGETHER) {
        const some = await Promise.all(definitions.slice(start, start + REGISTERED_TOGETHER).map(registerOne))
        registered += some.filter(Boolean).length
      }
      let removed = 0
      for (const rule of existing.values()) {
        if (!isGone(rule, content, definitions)) continue
        await commit(`Rule "${rule.ref}"`, () => {
          const seen = store.find(rule.id)
          return { result: undefined, unit: seen === undefined ? merge() : planDelete(seen) }
        })
        log.audit('rule.deleted', `Rule deleted. Rule.id=${rule.id}`, { ...aboutRule(rule), ...by })
        removed += 1
      }
      return { registered, removed, problems }
    },
  }

  function isStored(rule: Rule, filled: FilledRule, metadataFile: string): boolean {
    const { trigger, ...said } = filled
    const { type, description } = rule.trigger
    const parameters = triggers.find(rule.trigger.id)?.parameters
    const stored: Record<string, unknown> = { ...rule, trigger: undefined }
    return (
      rule.metadata_file === metadataFile &&
      rule.context.user === systemUser &&
      Object.entries(said).every(([name, value]) => isSame(stored[name], value)) &&
      isSame([type, description, parameters], [trigger.type, trigger.description, trigger.parameters])
    )
  }
}

type WrittenBy = Pick<Rule, 'context'> & Partial<Pick<Rule, 'metadata_file' | 'secret_owners'>>

function toRule(
  before: Rule | undefined,
  { name, pack, ...filled }: FilledRule,
  trigger: Pick<TriggerRecord, 'id' | 'ref' | 'type'>,
  { context, secret_owners: secretOwners, metadata_file: metadataFile }: WrittenBy,
): Rule {
  const { description } = filled.trigger
  const { id, ref, type } = trigger
  return {
    id: before?.id ?? newId(),
    revision: (before?.revision ?? 0) + 1,
    uid: `rule:${pack}:${name}`,
    ref: `${pack}.${name}`,
    name,
    pack,
    description: filled.description,
    enabled: filled.enabled,
    type: filled.type,
    trigger: { id, ref, type, ...(description === undefined ? {} : { description }) },
    criteria: filled.criteria,
    action: filled.action,
    context,
    tags: filled.tags,
    ...(metadataFile === undefined ? {} : { metadata_file: metadataFile }),
    ...(secretOwners === undefined ? {} : { secret_owners: secretOwners }),
  }
}

function changed(rule: Rule, change: 'created' | 'updated' | 'deleted', triggerIds: string[]): Unit {
  const payload = { id: rule.id, ref: rule.ref, change, trigger_ids: triggerIds }
  return { steps: [], facts: [{ name: 'rule.changed', payload }] }
}

function authorOf({ principal: { user, scopes } }: Caller): RuleContext {
  return { user, ...(scopes === undefined ? {} : { scopes }) }
}

function aboutRule({ id, ref, action, trigger, enabled }: Rule): LogFields {
  return { rule_id: id, rule: ref, action: action.ref, trigger: trigger.ref, enabled }
}

/** The order of attributes counts, because it is shown. */
function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
