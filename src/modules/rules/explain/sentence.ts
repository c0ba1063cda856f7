/** One sentence that says which executions a trigger instance started, or why none. */
import type { Repetitions, TriggerInstance } from '../../triggers/types.ts'
import type { Explanation, RuleEnforcement } from '../types.ts'

/** Rule references in one sentence. */
const MAX_NAMED = 5

export function sentenceOf(
  { status, trigger }: TriggerInstance,
  rules: Explanation['rules'],
  hidden: number,
  gone: readonly RuleEnforcement[],
  hasTrigger: boolean,
): string {
  if (status === 'pending') {
    return 'The trigger instance is pending. The verdicts show what the current rules would do.'
  }
  if (status === 'processing_failed') {
    return 'svc could not process the trigger instance. The server log has the error.'
  }
  const refsOf = (outcome: RuleEnforcement['status']): string[] => [
    ...rules.flatMap(({ rule, enforcement }) => (enforcement?.status === outcome ? [rule.ref] : [])),
    ...gone.flatMap(({ rule, status: its }) => (its === outcome ? [rule.ref] : [])),
  ]
  const [enforced, failed, skipped] = [refsOf('succeeded'), refsOf('failed'), refsOf('skipped')]
  const others = [
    ...(failed.length === 0 ? [] : [` Failed enforcements: ${namesOf(failed)}.`]),
    ...(skipped.length === 0 ? [] : [` Skipped, because an earlier execution has not ended: ${namesOf(skipped)}.`]),
  ].join('')
  if (enforced.length > 0) {
    return `${countOf(enforced.length, 'rule')} started an execution: ${namesOf(enforced)}.${others}`
  }
  if (others !== '') return `No execution was started.${others}`
  if (!hasTrigger) {
    return `Trigger "${trigger}" no longer exists: its type, or the last rule that used it, was deleted or changed.`
  }
  if (rules.length === 0) {
    return hidden === 0
      ? `No rule is bound to trigger "${trigger}".`
      : `You do not have permission to view the rules bound to trigger "${trigger}".`
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
    return `No rule matched at the time. These match now, because rules or datastore values have changed: ${namesOf(late)}.`
  }
  return enabled.length === 1
    ? `The only enabled rule does not match: ${namesOf([enabled[0]?.rule.ref ?? ''])}.`
    : `None of the ${enabled.length} enabled rules matches.`
}

/** That the sender has repeated the delivery, and what to do if that was meant. */
export function repetitionSentence({ count, last_timestamp: last }: Repetitions): string {
  const times = count === 1 ? `once, at ${last}` : `${count} times, last at ${last}`
  return `The sender repeated the delivery ${times}; svc ignored that. Replay the trigger instance to evaluate its rules again.`
}

const countOf = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

function namesOf(refs: readonly string[]): string {
  const more = refs.length - MAX_NAMED
  return refs.slice(0, MAX_NAMED).join(', ') + (more > 0 ? ` and ${more} more` : '')
}
