/**
 * What the editor of a rule shows, as a reducer.
 *
 * Invariants, which `rule-editor-state.test.ts` checks:
 * 1. The editor shows the form while `jsonText` is undefined, and the JSON otherwise; `draft` is kept meanwhile.
 * 2. A problem goes as soon as its part is edited. What is about the whole rule goes with any edit.
 * 3. An override is offered only while the rule is what was refused: any edit withdraws it.
 * 4. `refusals` grows with each refusal and never else, so that each moves the focus to what is wrong.
 * 5. Changing the view clears all problems, and changes nothing if the other view cannot show the rule.
 */
import { ruleProblemsAfter, type Problems, type RuleDraft } from './rule-model.ts'

/** Key of the JSON in `Problems`. */
export const JSON_PLACE = 'json'

/** What saving again skips: the check whether the criteria can match, or the check for changes of others. */
export type Override = 'criteria' | 'conflict'

/** Why the rule was not saved, tested or shown. */
export interface Refusal {
  /** By part of the rule. */
  problems: Problems
  /** About no part, or about several. */
  general?: string | undefined
  override?: Override
}

export interface EditorState {
  readonly draft: RuleDraft
  readonly jsonText: string | undefined
  readonly refusal: Refusal
  readonly refusals: number
  readonly isSaving: boolean
}

export type EditorAction =
  | { type: 'draft edited'; changes: Partial<RuleDraft> }
  | { type: 'JSON edited'; text: string }
  | { type: 'check started' }
  | { type: 'refused'; refusal: Refusal }
  | { type: 'JSON shown'; text: string }
  | { type: 'form shown'; draft: RuleDraft }
  | { type: 'save started' }
  | { type: 'save ended' }

const noRefusal: Refusal = { problems: new Map() }

export function startEditor(draft: RuleDraft): EditorState {
  return { draft, jsonText: undefined, refusal: noRefusal, refusals: 0, isSaving: false }
}

export function reduceEditor(state: EditorState, action: EditorAction): EditorState {
  switch (action.type) {
    case 'draft edited':
      return {
        ...state,
        draft: { ...state.draft, ...action.changes },
        refusal: { problems: ruleProblemsAfter(state.refusal.problems, action.changes) },
      }
    case 'JSON edited':
      return { ...state, jsonText: action.text, refusal: noRefusal }
    case 'check started':
      return { ...state, refusal: noRefusal }
    case 'refused':
      return { ...state, refusal: action.refusal, refusals: state.refusals + 1 }
    case 'JSON shown':
      return { ...state, jsonText: action.text, refusal: noRefusal }
    case 'form shown':
      return { ...state, draft: action.draft, jsonText: undefined, refusal: noRefusal }
    case 'save started':
      return { ...state, isSaving: true }
    case 'save ended':
      return { ...state, isSaving: false }
  }
}

export function refusalOf(general: string, override?: Override): Refusal {
  return { problems: new Map(), general, ...(override !== undefined && { override }) }
}

export function refusalAt(place: string, problem: string, override?: Override): Refusal {
  return { problems: new Map([[place, problem]]), ...(override !== undefined && { override }) }
}
