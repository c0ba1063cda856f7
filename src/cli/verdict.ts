/** The server's verdict on a rule, in words: what came of it, or what would. */
import { clip } from '../lib/log/index.ts'
import { textOf, toObject } from './connection/answers.ts'
import { printable, type Json } from './output/print.ts'
import { toYaml } from './output/yaml.ts'

const words: Readonly<Record<string, string>> = {
  matched: 'matches',
  not_matched: 'does not match',
  failed: 'does not match, since something cannot be compared',
  disabled: 'is disabled',
  not_needed: 'is a backstop rule, and a standard rule matches',
}

const MAX_DETAILS_LENGTH = 10_000

/**
 * What became of one rule; below it, the criterion that did not hold with the value it saw, why it could not be compared,
 * and what the rule has started.
 *
 * @returns lines, the last one ended too
 */
export function describeVerdict(verdict: Json): string {
  const ref = printable(textOf(toObject(verdict['rule'])['ref']))
  const said = textOf(verdict['verdict'])
  const word = Object.hasOwn(words, said) ? words[said] : printable(said)
  const { key, type, pattern, condition, value } = toObject(verdict['criterion'])
  const { id: enforcement, execution_id: execution, failure_reason: failureReason } = toObject(verdict['enforcement'])
  const { reason } = verdict
  const details = {
    key,
    type,
    pattern,
    condition,
    value,
    reason,
    enforcement,
    execution,
    failure_reason: failureReason,
  }
  return `${ref === '' ? 'The rule' : ref} ${word}${describeDetails(details)}`
}

/** Values by their names, indented, after a colon; just the end of the line when there are none. */
export function describeDetails(details: Json): string {
  if (Object.values(details).every((value) => value === undefined)) return '\n'
  const text = clip(toYaml(details).trimEnd(), MAX_DETAILS_LENGTH)
  return `:\n${text.replaceAll(/^(?=.)/gm, '  ')}\n`
}
