/** Registers the rules of a pack. */
import { merge } from '../../db/index.ts'
import { isAppError } from '../../core/errors.ts'
import type { Log } from '../../lib/log/index.ts'
import {
  asEnabled,
  checkPackDefinitions,
  isGone,
  type PackDefinitions,
  type Registration,
} from '../../core/pack-content.ts'
import { compileSchema } from '../../lib/schema/index.ts'
import type { Triggers } from '../triggers/index.ts'
import { checkCriteria } from './criteria/criteria.ts'
import { fillRuleDefinition, type FilledRule } from './definition.ts'
import { problemOfRunning } from './running.ts'
import { checkExpectation } from './check-expectation.ts'
import { whyStartsItself } from './self-starting.ts'
import type { RuleStore } from './store.ts'
import { RuleDefinition, type Rule } from './types.ts'
import { isSame, logFieldsOf, type RuleChanges } from './changes.ts'

/** Those that a definition without them has not. */
const optionalAttributes = ['expect', 'keep', 'notify']

/** Rules of a pack per commit. */
const REGISTERED_TOGETHER = 32

/** Ids stay. An invalid definition does not affect the others. */
export type RegisterRules = (content: PackDefinitions) => Promise<Registration>

export function createRegistration(deps: {
  store: RuleStore
  changes: RuleChanges
  triggers: Triggers
  log: Log
  /** Owner of the rules of packs. */
  systemUser: string
}): RegisterRules {
  const { store, changes, triggers, log, systemUser } = deps

  function isStored(rule: Rule, filled: FilledRule, metadataFile: string): boolean {
    const { trigger, ...said } = filled
    const { type } = rule.trigger
    const parameters = triggers.find(rule.trigger.id)?.parameters
    const stored: Record<string, unknown> = { ...rule, trigger: undefined }
    return (
      rule.metadata_file === metadataFile &&
      rule.context.user === systemUser &&
      Object.entries(said).every(([name, value]) => isSame(stored[name], value)) &&
      optionalAttributes.every((name) => name in said || !(name in stored)) &&
      isSame([type, parameters], [trigger.type, trigger.parameters])
    )
  }

  return async (content) => {
    const existing = new Map(store.ofPack(content.pack).map((rule) => [rule.name, rule]))
    const { definitions, problems } = await checkPackDefinitions(content, 'Rule', (given) => {
      // Compiled for the first rule, to save time at start.
      const problem = compileSchema(RuleDefinition).find(given)
      if (problem !== undefined) return { problems: [problem] }
      const definition = fillRuleDefinition(given as RuleDefinition, content.pack) // has passed its schema
      const wrong = problemOfRunning(definition.action) ?? checkExpectation(definition, triggers)
      return wrong === undefined ? { definition } : { problems: [wrong] }
    })
    const by = { user: systemUser }
    const registerOne = async (definition: FilledRule): Promise<boolean> => {
      const before = existing.get(definition.name)
      const { metadata_file: metadataFile = '', ...filled } = asEnabled(content, definition, before)
      if (before !== undefined && isStored(before, filled, metadataFile)) return true
      const ref = `${filled.pack}.${filled.name}`
      try {
        checkCriteria(filled.criteria)
        const again = whyStartsItself(filled, triggers.findType(filled.trigger.type)?.ref ?? '', systemUser)
        if (again !== undefined) problems.push({ metadataFile, path: ['criteria'], message: again, isWarning: true })
        const rule = await changes.commit(`Rule "${ref}"`, () =>
          changes.planWrite(store.findByRef(ref), filled, {
            context: { user: systemUser },
            metadata_file: metadataFile,
          }),
        )
        const what = before === undefined ? 'created' : 'updated'
        log.audit(`rule.${what}`, `Rule ${what}. Rule.id=${rule.id}`, { ...logFieldsOf(rule), ...by })
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
      await changes.commit(`Rule "${rule.ref}"`, () => {
        const seen = store.find(rule.id)
        return { result: undefined, unit: seen === undefined ? merge() : changes.planDelete(seen) }
      })
      log.audit('rule.deleted', `Rule deleted. Rule.id=${rule.id}`, { ...logFieldsOf(rule), ...by })
      removed += 1
    }
    return { registered, removed, problems }
  }
}
