/** The trigger type, or the action, that a rule names, and the parameters that it gives it. */
import { useState } from 'preact/hooks'
import type { Loaded } from '../../api/load.ts'
import type { KnownParameters } from './use-catalogue.ts'
import { useParameters, type ParametersEditor } from './use-parameters.ts'

export interface RuleReference {
  /** The reference as it is written. */
  value: string
  /** What was asked for last: not at each letter, but when it is one that there is, or when its field is left. */
  settled: string
  readonly settle: () => void
  /** Those that there are. */
  offered: Loaded<{ ref: string; description: string }[]>
  known: Loaded<KnownParameters | undefined>
  parameters: ParametersEditor
}

/** @param useKnown always the same */
export function useRuleReference(
  value: string,
  offered: RuleReference['offered'],
  useKnown: (ref: string) => RuleReference['known'],
  initial: Record<string, unknown>,
): RuleReference {
  const [left, setLeft] = useState(value)
  const isKnown = offered.data?.some(({ ref }) => ref === value) === true
  const settled = isKnown ? value : left
  const known = useKnown(settled)
  const parameters = useParameters(initial, known.data?.parameters, known.data?.rare)
  return { value, settled, settle: () => setLeft(value), offered, known, parameters }
}
