/** Holds what a rule expects against its trigger. */
import type { SchemaProblem } from '../../lib/schema/index.ts'
import { isTimerType, type Triggers } from '../triggers/index.ts'
import type { FilledRule } from './definition.ts'
import { problemOfExpectation } from './expectation.ts'

/** @returns path from the root of the rule */
export function checkExpectation(
  { expect, trigger }: Pick<FilledRule, 'expect' | 'trigger'>,
  triggers: Pick<Triggers, 'findType'>,
): SchemaProblem | undefined {
  const type = triggers.findType(trigger.type)?.ref
  // Of an unknown type another error tells.
  return problemOfExpectation(expect, type === undefined || isTimerType(type))
}
