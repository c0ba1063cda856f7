/** What can be done with policies: make, change, delete, read, register those of a pack. */
import { commitPlan, merge, type Database, type Unit } from '../../db/index.ts'
import { nameTaken, parametersInvalid, policyTypeUnknown } from '../../core/errors.ts'
import { contentAt, createContentChanges, type ContentChanges } from '../../http/index.ts'
import { newId } from '../../core/ids.ts'
import type { Log, LogFields } from '../../lib/log/index.ts'
import {
  asEnabled,
  checkPackDefinitions,
  isGone,
  type PackDefinitions,
  type Registration,
} from '../../core/pack-content.ts'
import { fieldOf, compileSchema } from '../../lib/schema/index.ts'
import type { Actions } from '../actions/index.ts'
import { fillPolicyDefinition, policyProblemOf, type FilledPolicy } from './definition.ts'
import type { PolicyStore } from './store.ts'
import { policyDefinitionSchema, type Policy, type PolicyDefinition, type PolicyRecord } from './types.ts'
import { policyResource } from '../../core/permissions.ts'
import { writeJson } from '../../lib/json/index.ts'

export interface PolicyService extends ContentChanges<Policy, PolicyDefinition> {
  /** By id when it looks like one, else by reference. @throws CONTENT_NOT_FOUND */
  get(refOrId: string): Policy
  /** For clients. */
  record(policy: Policy): PolicyRecord
  /** Ids stay. What is wrong with some definitions does not keep the others out. */
  register(content: PackDefinitions): Promise<Registration>
}

export function createPolicyService(deps: {
  database: Database
  store: PolicyStore
  actions: Pick<Actions, 'find' | 'parametersOf'>
  log: Log
  /** Writes the policies of packs. */
  systemUser: string
}): PolicyService {
  const { database, store, actions, log, systemUser } = deps

  const get = (refOrId: string): Policy => contentAt(store, refOrId)

  function problemIn(filled: FilledPolicy): ReturnType<typeof policyProblemOf> {
    const action = actions.find(filled.resource_ref)
    return policyProblemOf(filled, action === undefined ? undefined : actions.parametersOf(action))
  }

  /** @throws POLICY_TYPE_UNKNOWN, PARAMETERS_INVALID */
  function fill(given: PolicyDefinition, pack: string): FilledPolicy {
    const filled = fillPolicyDefinition(given, pack)
    const problem = problemIn(filled)
    if (problem === undefined) return filled
    throw problem.path[0] === 'policy_type'
      ? policyTypeUnknown(problem.message)
      : parametersInvalid(problem.message, { path: fieldOf(problem) })
  }

  function auditChange(what: 'created' | 'updated' | 'deleted', policy: Policy, by: LogFields): void {
    log.audit(`policy.${what}`, `Policy ${what}. Policy.id=${policy.id}`, { ...aboutPolicy(policy), ...by })
  }

  /** @throws NAME_TAKEN */
  function planWrite(before: Policy | undefined, filled: FilledPolicy): { result: Policy; unit: Unit } {
    const ref = `${filled.pack}.${filled.name}`
    const same = before?.ref === ref ? undefined : store.findByRef(ref)
    if (same !== undefined) throw nameTaken(`Policy "${ref}"`, same.id)
    const policy: Policy = {
      id: before?.id ?? newId(),
      revision: (before?.revision ?? 0) + 1,
      uid: `policy:${filled.pack}:${filled.name}`,
      ref,
      ...filled,
    }
    const step = before === undefined ? store.insert(policy) : store.update(policy, before.revision)
    const about = before === undefined ? [policy] : [before, policy]
    return {
      result: policy,
      unit: merge(
        { steps: [step], facts: [], subject: policy.id },
        changed(policy, before === undefined ? 'created' : 'updated', about),
      ),
    }
  }

  function planDelete(policy: Policy): Unit {
    return merge({ steps: [store.delete(policy)], facts: [] }, changed(policy, 'deleted', [policy]))
  }

  return {
    get,
    record(policy) {
      const { revision: _r, ...record } = policy
      return record
    },

    ...createContentChanges<Policy, FilledPolicy, PolicyDefinition>({
      kind: 'Policy',
      permissions: { modify: 'policy_modify', delete: 'policy_delete', create: 'policy_create' },
      database,
      get,
      fill,
      resourceOf: (ref, permission) => (permission === 'policy_create' ? undefined : policyResource(ref)),
      planWrite,
      planDelete,
      audit: auditChange,
    }),

    async register(content) {
      const existing = new Map(store.ofPack(content.pack).map((policy) => [policy.name, policy]))
      const { definitions, problems } = await checkPackDefinitions(content, 'Policy', (given) => {
        const problem = compileSchema(policyDefinitionSchema).find(given)
        if (problem !== undefined) return { problems: [problem] }
        const definition: FilledPolicy = fillPolicyDefinition(given as PolicyDefinition, content.pack) // has passed its schema
        const wrong = policyProblemOf(definition, undefined)
        if (wrong !== undefined) return { problems: [wrong] }
        // The action may come later, or in another form.
        const lacking = problemIn(definition)
        if (lacking === undefined) return { definition }
        const message = `${lacking.message}; it counts as missing in every execution`
        return { definition, warnings: [{ ...lacking, message }] }
      })
      const by = { user: systemUser }
      for (const definition of definitions) {
        const known = existing.get(definition.name)
        const filled = asEnabled(content, definition, known)
        const ref = `${filled.pack}.${filled.name}`
        if (known !== undefined && isStored(known, filled)) continue
        const policy = await commitPlan(database, () => planWrite(store.findByRef(ref), filled), `Policy "${ref}"`)
        auditChange(known === undefined ? 'created' : 'updated', policy, by)
      }
      let removed = 0
      for (const policy of existing.values()) {
        if (!isGone(policy, content, definitions)) continue
        const plan = (): { result: undefined; unit: Unit } => {
          const seen = store.find(policy.id)
          return { result: undefined, unit: seen === undefined ? merge() : planDelete(seen) }
        }
        await commitPlan(database, plan, `Policy "${policy.ref}"`)
        auditChange('deleted', policy, by)
        removed += 1
      }
      return { registered: definitions.length, removed, problems }
    },
  }
}

/** The order of attributes counts, because it is shown. */
function isStored(policy: Policy, filled: FilledPolicy): boolean {
  const stored: Record<string, unknown> = { ...policy }
  return Object.entries(filled).every(([name, value]) => writeJson(stored[name]) === writeJson(value))
}

function changed(policy: Policy, change: 'created' | 'updated' | 'deleted', about: readonly Policy[]): Unit {
  const actionRefs = [...new Set(about.map(({ resource_ref: ref }) => ref))]
  return {
    steps: [],
    facts: [{ name: 'policy.changed', payload: { id: policy.id, ref: policy.ref, change, action_refs: actionRefs } }],
  }
}

function aboutPolicy({ id, ref, resource_ref: action, policy_type: type, enabled }: Policy): LogFields {
  return { policy_id: id, policy: ref, action, policy_type: type, enabled }
}
