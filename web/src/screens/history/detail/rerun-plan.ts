/**
 * What is sent to run something again: values that were changed, and names of those that stay as they were. These are not sent
 * back, because what is shown of them may have masks in the place of secrets, and what were templates once is data by now.
 */
import type { FormReading, FormState } from '../../../components/form/form-model.ts'
import { SHOWN_MASK } from '../../../components/form/mask.ts'

export interface RerunPlan {
  /** Body of `POST /executions/<id>/re_run?no_merge=true`. */
  body: { parameters: Record<string, unknown>; keep: string[] }
  isUnchanged: boolean
  /** Changed ones that still have a mask somewhere inside: the server cannot know what belongs there. */
  masked: string[]
}

/**
 * @param before what the form began with: the parameters of the execution
 * @param reading of the form, masks included
 */
export function planRerun(before: FormState, now: FormState, { value }: Pick<FormReading, 'value'>): RerunPlan {
  const keep = [...before].filter(([name, input]) => now.get(name) === input).map(([name]) => name)
  const kept = new Set(keep)
  const changed = Object.entries(value).filter(([name]) => !kept.has(name))
  return {
    body: { parameters: Object.fromEntries(changed), keep },
    isUnchanged: changed.length === 0 && keep.length === before.size,
    masked: changed.filter(([, one]) => containsMask(one)).map(([name]) => name),
  }
}

/** Also within a text: a command that a template has put a secret into is shown with the mask. */
export function containsMask(value: unknown): boolean {
  if (typeof value === 'string') return value.includes(SHOWN_MASK)
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([name, part]) => name.includes(SHOWN_MASK) || containsMask(part))
}
