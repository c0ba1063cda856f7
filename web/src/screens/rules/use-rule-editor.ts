/** Editing a rule: its draft, its checks, saving it and switching between form and JSON. */
import type { RefObject } from 'preact'
import { useEffect, useReducer, useRef, useState } from 'preact/hooks'
import { ApiError, change, messageOf } from '../../api/client.ts'
import type { RuleDefinition, RuleRecord, RuleTestRequest, RuleTestResult } from '../../api/records.ts'
import { notify } from '../../components/notices.tsx'
import { pathOfRefusal } from '../../components/form/refusal.tsx'
import { useOperators } from '../../components/rules/operators.ts'
import { hrefOf, navigate, useLeaveGuard, type LeaveGuard } from '../../router.ts'
import {
  JSON_PLACE,
  reduceEditor,
  refusalAt,
  refusalOf,
  startEditor,
  type EditorState,
  type Override,
  type Refusal,
} from './rule-editor-state.ts'
import {
  definitionOf,
  doubledKeys,
  draftOf,
  isSameDefinition,
  maskProblemOf,
  placeOfRefusal,
  readRule,
  type RuleDraft,
} from './rule-model.ts'
import { ifMatch } from './switch-rule.ts'
import { useAction, useActions, useTriggerType, useTriggerTypes } from './use-catalogue.ts'
import { useRuleReference, type RuleReference } from './use-rule-reference.ts'
import { writeJson } from '../../json.ts'

export interface EditedRule {
  start: RuleDefinition
  /** Undefined: it is a new rule. */
  stored?: RuleRecord
  /** Entity tag of the stored rule. */
  tag?: string | undefined
}

export interface RuleEditor {
  readonly state: EditorState
  readonly trigger: RuleReference
  readonly action: RuleReference
  readonly leaving: LeaveGuard
  readonly edit: (changes: Partial<RuleDraft>) => void
  readonly editJson: (text: string) => void
  readonly showJson: () => void
  readonly showForm: () => void
  readonly save: (override?: Override) => Promise<void>
  /** The rule to test; undefined: something is wrong, which is shown. */
  readonly ruleToTest: () => Pick<RuleTestRequest, 'rule' | 'rule_ref'> | undefined
  /** Shows the refusal at the part it is about. @returns what to show elsewhere, because it is about no part */
  readonly showRefusal: (error: unknown) => string | undefined
  /** Changes with every edit. */
  readonly subject: string
}

/** @param page element whose wrong parts get the focus */
export function useRuleEditor({ start, stored, tag }: EditedRule, page: RefObject<HTMLElement | null>): RuleEditor {
  const [first] = useState(() => draftOf(start))
  if ('problem' in first) throw new Error(`Could not show the rule: ${first.problem}`)
  const [state, dispatch] = useReducer(reduceEditor, first.draft, startEditor)
  const { draft, jsonText, refusals } = state
  const operators = useOperators().byName
  const trigger = useRuleReference(draft.triggerType, useTriggerTypes(), useTriggerType, first.triggerParameters)
  const action = useRuleReference(draft.actionRef, useActions(), useAction, first.actionParameters)
  const isSaved = useRef(false)

  /** The rule as it is now, which may have problems; undefined: a part cannot be read, and says so. */
  function currentDefinition(): RuleDefinition | undefined {
    if (jsonText !== undefined) {
      const read = readRule(jsonText)
      return 'problem' in read ? undefined : read.definition
    }
    const [triggerParameters, actionParameters] = [trigger.parameters.values(), action.parameters.values()]
    if (triggerParameters === undefined || actionParameters === undefined) return undefined
    return definitionOf({ draft, triggerParameters, actionParameters }, { lenient: true, operators }).definition
  }

  const [before] = useState(() => definitionOf(first, { lenient: true }).definition)
  const latest = useRef(currentDefinition)
  latest.current = currentDefinition
  const leaving = useLeaveGuard(() => {
    if (isSaved.current) return false
    const now = latest.current()
    return now === undefined || !isSameDefinition(now, before)
  })

  // After a refusal the focus goes to what is wrong.
  useEffect(() => {
    if (refusals === 0) return
    const wrong = page.current?.querySelector<HTMLElement>('[aria-invalid="true"]')
    ;(wrong ?? page.current?.querySelector<HTMLElement>('.rules-problem'))?.focus()
  }, [refusals])

  function refuse(refusal: Refusal): void {
    dispatch({ type: 'refused', refusal })
  }

  /** Checks everything that needs no server. @returns undefined: something is wrong, which is shown */
  function check(): RuleDefinition | undefined {
    dispatch({ type: 'check started' })
    return jsonText === undefined ? checkForm() : checkJson(jsonText)
  }

  function checkJson(text: string): RuleDefinition | undefined {
    const read = readRule(text)
    if ('problem' in read) {
      refuse(refusalAt(JSON_PLACE, read.problem))
      return undefined
    }
    const maskProblem = maskProblemOf(read.definition, stored)
    if (maskProblem === undefined) return read.definition
    refuse(refusalOf(maskProblem))
    return undefined
  }

  function checkForm(): RuleDefinition | undefined {
    const [ofTrigger, ofAction] = [trigger.parameters.submit(), action.parameters.submit()]
    const { definition, problems } = definitionOf(
      { draft, triggerParameters: ofTrigger?.value ?? {}, actionParameters: ofAction?.value ?? {} },
      { operators },
    )
    const isRead = ofTrigger !== undefined && ofAction !== undefined
    const maskProblem = isRead ? maskProblemOf(definition, stored) : undefined
    if (problems.size === 0 && isRead && maskProblem === undefined) return definition
    const count = [trigger, action].reduce(
      (sum, { parameters }) => sum + parameters.form.reading.problems.size,
      problems.size,
    )
    refuse({
      problems,
      general: maskProblem ?? (count > 1 ? 'Correct the marked parts, then save again.' : undefined),
    })
    return undefined
  }

  function showRefusal(error: unknown): string | undefined {
    const message = messageOf(error)
    if (jsonText !== undefined) return message
    const named = pathOfRefusal(error)
    // The test of a rule has the rule as a part of its body.
    const path = named[0] === 'rule' ? named.slice(1) : named
    const place = placeOfRefusal(path, draft)
    if (place === undefined) return message
    const general = `The server refused ${path.join('.')}. Correct the marked field.`
    const editor = { triggerParameters: trigger, actionParameters: action }[place]?.parameters
    if (editor?.mode !== 'form') refuse({ ...refusalAt(place, message), general })
    else if (editor.form.mark(path[2] ?? '', message)) refuse(refusalOf(general))
    else refuse(refusalOf(message))
    return undefined
  }

  /** @returns false: the criteria can never match, which is shown */
  async function canMatch(rule: RuleDefinition): Promise<boolean> {
    try {
      const body: RuleTestRequest = { rule, trigger_instance: { trigger: rule.trigger?.type ?? '', payload: {} } }
      const { matches, problem, problem_path: path = [] } = await change<RuleTestResult>('POST', 'rules/test', body)
      if (matches || problem === undefined) return true
      const place = jsonText === undefined ? placeOfRefusal(path, draft) : undefined
      const text = `${problem} The rule can never match.`
      refuse(place === undefined ? refusalOf(text, 'criteria') : refusalAt(place, text, 'criteria'))
      return false
    } catch (error) {
      // The permission to change this rule does not include the one to test rules.
      if (error instanceof ApiError && error.status === 403) return true
      throw error
    }
  }

  function store(definition: RuleDefinition, override: Override | undefined): Promise<RuleRecord> {
    if (stored === undefined) return change<RuleRecord>('POST', 'rules', definition)
    const headers = override === 'conflict' ? undefined : ifMatch(tag)
    return change<RuleRecord>('PUT', `rules/${stored.id}`, definition, undefined, headers)
  }

  async function save(override?: Override): Promise<void> {
    if (state.isSaving) return
    const definition = check()
    if (definition === undefined) return
    dispatch({ type: 'save started' })
    try {
      // An override was offered after this check: it is not made twice.
      if (override === undefined && !(await canMatch(definition))) return
      const saved = await store(definition, override)
      isSaved.current = true
      notify(`Rule ${saved.ref} saved. It is ${saved.enabled ? 'enabled.' : 'disabled and does not fire.'}`)
      navigate(hrefOf(['rules', saved.ref]))
    } catch (error) {
      if (error instanceof ApiError && error.code === 'CONTENT_CHANGED') {
        const text = `${error.message} Your changes are still here. Open the rule in another tab to compare.`
        refuse(refusalOf(text, 'conflict'))
      } else {
        const rest = showRefusal(error)
        if (rest !== undefined) refuse(refusalOf(rest))
      }
    } finally {
      dispatch({ type: 'save ended' })
    }
  }

  function showJson(): void {
    if (jsonText !== undefined) return
    const [doubled] = doubledKeys(draft)
    if (doubled !== undefined) {
      refuse(refusalOf(`Two criteria have the key "${doubled}", which JSON does not allow. Change one of them.`))
      return
    }
    const now = currentDefinition()
    if (now === undefined) refuse(refusalOf('The parameters are not valid JSON. Correct them first.'))
    else dispatch({ type: 'JSON shown', text: writeJson(now, 2) })
  }

  function showForm(): void {
    if (jsonText === undefined) return
    const read = readRule(jsonText)
    const shown = 'problem' in read ? read : draftOf(read.definition)
    if ('problem' in shown) {
      refuse(refusalAt(JSON_PLACE, shown.problem))
      return
    }
    dispatch({ type: 'form shown', draft: shown.draft })
    trigger.parameters.reset(shown.triggerParameters)
    action.parameters.reset(shown.actionParameters)
  }

  return {
    state,
    trigger,
    action,
    leaving,
    edit: (changes) => dispatch({ type: 'draft edited', changes }),
    editJson: (text) => dispatch({ type: 'JSON edited', text }),
    showJson,
    showForm,
    save,
    ruleToTest() {
      const now = currentDefinition()
      if (stored !== undefined && now !== undefined && isSameDefinition(now, before)) return { rule_ref: stored.id }
      const rule = check()
      return rule === undefined ? undefined : { rule }
    },
    showRefusal,
    subject: writeJson([draft, jsonText, trigger.parameters.form.reading.value, action.parameters.form.reading.value]),
  }
}
