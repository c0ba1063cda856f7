/** Describes the outcome of a rule for a trigger instance, real or tested. */
import { clip } from '../lib/log/index.ts'
import { textOrEmpty, toObject } from './connection/responses.ts'
import { printable, type Json } from './output/print.ts'
import { toYaml } from './output/yaml.ts'

const words: Readonly<Record<string, string>> = {
  matched: 'matches',
  not_matched: 'does not match',
  failed: 'does not match: a value cannot be compared',
  disabled: 'is disabled',
  not_needed: 'is a backstop rule and did not run: a standard rule matches',
}

const MAX_DETAILS_LENGTH = 10_000

/**
 * The outcome of one rule, followed by the failed criterion with its value, the reason of a failed comparison,
 * and the started execution.
 *
 * @returns lines, the last one ended too
 */
export function describeRuleOutcome(verdict: Json): string {
  const ref = printable(textOrEmpty(toObject(verdict['rule'])['ref']))
  const said = textOrEmpty(verdict['verdict'])
  const word = Object.hasOwn(words, said) ? words[said] : printable(said)
  const { key, type, pattern, condition, value } = toObject(verdict['criterion'])
  const enforced = toObject(verdict['enforcement'])
  const { id: enforcement, execution_id: execution, failure_reason: failureReason, skip_reason: skipReason } = enforced
  const { reason, reduced, running } = verdict
  const details = {
    key,
    type,
    pattern,
    condition,
    value,
    reason,
    ...(isSaid(reason, reduced) ? {} : { reduced }),
    ...(running === undefined ? {} : { running }),
    enforcement,
    execution,
    failure_reason: failureReason,
    ...(skipReason === undefined ? {} : { skip_reason: skipReason }),
  }
  return `${ref === '' ? 'The rule' : ref} ${word}${describeDetails(details)}`
}

/** Values by their names, indented, after a colon; just the end of the line when there are none. */
export function describeDetails(details: Json): string {
  if (Object.values(details).every((value) => value === undefined)) return '\n'
  const text = clip(toYaml(details).trimEnd(), MAX_DETAILS_LENGTH)
  return `:\n${text.replaceAll(/^(?=.)/gm, '  ')}\n`
}

/** Whether one text is a part of another. */
const isSaid = (within: unknown, text: unknown): boolean =>
  typeof within === 'string' && typeof text === 'string' && within.includes(text)
