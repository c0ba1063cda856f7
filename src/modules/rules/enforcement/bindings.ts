/**
 * Enabled rules by trigger. svc reads the rules of a trigger at its first event and compiles a rule at its first
 * evaluation, so the cost of an event depends on its own trigger alone.
 */
import { createHash } from 'node:crypto'
import { writeJson } from '../../../lib/json/index.ts'
import type { Bus } from '../../../bus/index.ts'
import { isAppError } from '../../../core/errors.ts'
import { findTemplates, type Templates } from '../../../core/template-values.ts'
import type { ExecutionOrigin } from '../../executions/types.ts'
import type { Triggers } from '../../triggers/index.ts'
import { compileCriteria, type CompiledCriteria } from '../criteria/criteria.ts'
import { compileRunning, type CompiledRunning } from '../running.ts'
import { readRule, type RuleStore } from '../store.ts'
import type { Rule } from '../types.ts'

export interface CompiledRule {
  readonly rule: Rule
  readonly criteria: CompiledCriteria
  /** Templates in the action parameters. */
  readonly templates: Templates | undefined
  /** Absent: it has none. */
  readonly running: CompiledRunning | undefined
  /** The same object as long as rule, trigger and trigger type are the same. */
  origin(): ExecutionOrigin
}

export interface Bindings {
  /** Whether an enabled rule is bound to the trigger. */
  has(triggerId: string): boolean
  /** Enabled rules of the trigger, oldest first. A snapshot: later changes do not affect it. */
  of(triggerId: string): readonly (() => CompiledRule)[]
  /** A digest that differs after each change of the enabled rules of the trigger. */
  versionOf(triggerId: string): string
}

export function createBindings(deps: { store: RuleStore; bus: Bus; triggers: Triggers }): Bindings {
  const { store, bus, triggers } = deps
  const byTrigger = new Map<string, Bound>()

  bus.subscribe('rule.changed', ({ id, trigger_ids: triggerIds }) => {
    for (const triggerId of triggerIds) {
      const bound = byTrigger.get(triggerId)
      if (bound === undefined) continue
      const text = store.enabledText(id)
      if (text !== undefined && readRule(text).trigger.id === triggerId) {
        bound.rules.set(id, compileLater(text, triggers))
      } else {
        bound.rules.delete(id)
      }
      bound.list = undefined
      bound.version = undefined
    }
  })
  bus.subscribe('trigger.deleted', ({ id }) => void byTrigger.delete(id))

  function boundTo(triggerId: string): Bound {
    let bound = byTrigger.get(triggerId)
    if (bound === undefined) {
      const rules = new Map<string, () => CompiledRule>()
      for (const { id, record } of store.enabledOf(triggerId)) {
        rules.set(id, compileLater(record, triggers))
      }
      bound = { rules, list: undefined, version: undefined }
      byTrigger.set(triggerId, bound)
    }
    return bound
  }

  return {
    has: (triggerId) => boundTo(triggerId).rules.size > 0,
    of(triggerId) {
      const bound = boundTo(triggerId)
      bound.list ??= [...bound.rules].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, compiled]) => compiled)
      return bound.list
    },
    versionOf(triggerId) {
      const bound = boundTo(triggerId)
      bound.version ??= createHash('sha256')
        .update(writeJson(store.revisionsOf(triggerId)))
        .digest('hex')
      return bound.version
    },
  }
}

interface Bound {
  rules: Map<string, () => CompiledRule>
  list: readonly (() => CompiledRule)[] | undefined
  version: string | undefined
}

/** Compiles the rule at the first call. @param text see `readRule` */
export function compileLater(text: string, triggers: Triggers): () => CompiledRule {
  let compiled: CompiledRule | undefined
  return () => (compiled ??= compileRule(readRule(text), triggers))
}

export function compileRule(rule: Rule, triggers: Triggers): CompiledRule {
  let known: { origin: ExecutionOrigin; trigger: object | undefined; type: object | undefined } | undefined
  return {
    rule,
    criteria: compileStored(rule),
    templates: findTemplates(rule.action.parameters),
    running: compileRunning(rule.action),
    origin() {
      const trigger = triggers.find(rule.trigger.id)
      const type = triggers.findType(rule.trigger.type)
      if (known === undefined || known.trigger !== trigger || known.type !== type) {
        known = { origin: originOf(rule, trigger, type), trigger, type }
      }
      return known.origin
    },
  }
}

/** A later version can reject stored criteria. Such a rule fails with the reason at each evaluation. */
function compileStored({ criteria }: Rule): CompiledCriteria {
  try {
    return compileCriteria(criteria)
  } catch (error) {
    if (!isAppError(error)) throw error
    const [[key, criterion] = ['', undefined]] = Object.entries(criteria)
    const failed = { key, type: criterion?.type ?? '', pattern: criterion?.pattern, value: null }
    const result = { matches: false, failed, reason: error.message } as const
    return { evaluate: () => result, evaluateEach: () => ({ result, outcomes: [] }) }
  }
}

function originOf(
  rule: Rule,
  trigger: ReturnType<Triggers['find']>,
  type: ReturnType<Triggers['findType']>,
): ExecutionOrigin {
  const { id, uid, ref, name, pack, description } = rule
  const [triggerPack, triggerName] = splitRef(rule.trigger.ref)
  const [typePack, typeName] = splitRef(rule.trigger.type)
  return {
    rule: { id, uid, ref, name, pack, description },
    trigger: {
      id: rule.trigger.id,
      uid: trigger?.uid ?? '',
      ref: trigger?.ref ?? rule.trigger.ref,
      name: trigger?.name ?? triggerName,
      pack: trigger?.pack ?? triggerPack,
      type: rule.trigger.type,
    },
    trigger_type: {
      id: type?.id ?? '',
      uid: type?.uid ?? '',
      ref: rule.trigger.type,
      name: type?.name ?? typeName,
      pack: type?.pack ?? typePack,
      description: type?.description ?? '',
    },
  }
}

function splitRef(ref: string): [pack: string, name: string] {
  const dot = ref.indexOf('.')
  return [ref.slice(0, Math.max(dot, 0)), ref.slice(dot + 1)]
}
