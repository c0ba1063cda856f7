/** The sentence that answers why a trigger instance caused what it did. */
import type { TriggerInstance } from '../../triggers/types.ts'
import type { Explanation, RuleEnforcement } from '../types.ts'

/** Refs that one sentence names. */
const MAX_NAMED = 5

export function sentenceOf(
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
