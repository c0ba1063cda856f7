/** Makes a rule, or changes one: as a form, or as the JSON of its definition. */
import type { JSX } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ApiError, change, get, getTagged, messageOf } from '../../api/client.ts'
import { useLoaded } from '../../api/load.ts'
import type { RuleDefinition, RuleRecord, RuleTestRequest, RuleTestResult } from '../../api/records.ts'
import { Dialog } from '../../components/dialog.tsx'
import { Failure } from '../../components/failure.tsx'
import { JsonField } from '../../components/form/json-field.tsx'
import { submitKeys } from '../../components/form/submit-keys.ts'
import { LongText } from '../../components/long-text.tsx'
import { notify } from '../../components/notices.tsx'
import { useOperators } from '../../components/rules/operators.ts'
import { mergePaths, pathsOfSchema, templateOf } from '../../components/rules/paths.ts'
import { hrefOf, navigate, useLeaving } from '../../router.ts'
import { EventPaths } from './event-paths.tsx'
import { insertText, useLastField } from './insert-text.ts'
import { RuleForm } from './rule-form.tsx'
import {
  copyOf,
  definitionOf,
  definitionOfRecord,
  doubledKeys,
  draftOf,
  emptyRule,
  isSameDefinition,
  maskProblemOf,
  placeOfRefusal,
  problemsAfter,
  readRule,
  type Problems,
  type RuleDraft,
} from './rule-model.ts'
import { ifMatch } from './switch-rule.ts'
import { TestPanel } from './test-panel.tsx'
import { useAction, useActions, useTriggerType, useTriggerTypes } from './use-catalogue.ts'
import { useChosen } from './use-chosen.ts'
import { useRecorded } from './use-recorded.ts'

export function NewRule({ query }: { query: URLSearchParams }): JSX.Element {
  const copied = query.get('copy') ?? ''
  const { data, error, reload } = useLoaded(
    async (signal) =>
      copied === '' ? undefined : get<RuleRecord>(`rules/${encodeURIComponent(copied)}`, undefined, signal),
    [copied],
  )
  const trigger = query.get('trigger') ?? ''
  const action = query.get('action') ?? ''
  const start = useMemo(() => {
    if (data !== undefined) return copyOf(definitionOfRecord(data))
    return {
      definition: {
        ...emptyRule,
        trigger: { ...emptyRule.trigger, type: trigger },
        action: { ...emptyRule.action, ref: action },
      },
      left: [],
    }
  }, [data])
  if (copied !== '' && data === undefined) {
    return (
      <div class="page">
        {error === undefined ? <p class="loading">Loading…</p> : <Failure error={error} onRetry={reload} />}
      </div>
    )
  }
  return (
    <Editor
      start={start.definition}
      note={
        start.left.length === 0
          ? undefined
          : `Secrets are not copied. Enter these where they are needed: ${start.left.join(', ')}.`
      }
      query={query}
    />
  )
}

export function EditRule({ ruleRef, query }: { ruleRef: string; query: URLSearchParams }): JSX.Element {
  const { data, error, reload } = useLoaded(
    (signal) => getTagged<RuleRecord>(`rules/${encodeURIComponent(ruleRef)}`, signal),
    [ruleRef],
  )
  if (data === undefined) {
    return (
      <div class="page">
        {error === undefined ? <p class="loading">Loading…</p> : <Failure error={error} onRetry={reload} />}
      </div>
    )
  }
  return <Editor stored={data.record} tag={data.tag} start={definitionOfRecord(data.record)} query={query} />
}

interface EditorProps {
  start: RuleDefinition
  /** The rule that is changed. */
  stored?: RuleRecord
  /** The state of it that is changed. */
  tag?: string | undefined
  /** What is to be known at first. */
  note?: string | undefined
  query: URLSearchParams
}

/** What may be saved all the same. */
type Doubt = 'criteria' | 'changed'

/** What is wrong with the rule as it is. */
interface Complaint {
  problems: Problems
  /** What is about no part of it, or about several. */
  above?: string | undefined
  doubt?: Doubt
}

const noComplaint: Complaint = { problems: new Map() }
const above = (said: string): Complaint => ({ problems: new Map(), above: said })
const at = (place: string, said: string): Complaint => ({ problems: new Map([[place, said]]) })

/** The name of the text in problems. */
const JSON_PLACE = 'json'

function Editor({ start, stored, tag, note, query }: EditorProps): JSX.Element {
  const [first] = useState(() => draftOf(start))
  if ('problem' in first) throw new Error(`Could not show the rule: ${first.problem}`)
  const [draft, setDraft] = useState<RuleDraft>(first.draft)
  const [jsonText, setJsonText] = useState<string>()
  const [complaint, setComplaint] = useState<Complaint>(noComplaint)
  const [isBusy, setIsBusy] = useState(false)
  const [attempts, setAttempts] = useState(0)
  const isDone = useRef(false)
  const operators = useOperators().byName
  const page = useRef<HTMLDivElement>(null)

  const trigger = useChosen(draft.triggerType, useTriggerTypes(), useTriggerType, first.triggerParameters)
  const action = useChosen(draft.actionRef, useActions(), useAction, first.actionParameters)

  const storedTrigger =
    stored !== undefined && stored.trigger.type === draft.triggerType ? stored.trigger.ref : undefined
  const isMissing =
    trigger.known.data === undefined && trigger.offered.data?.some(({ ref }) => ref === draft.triggerType) === false
  const recorded = useRecorded(
    isMissing
      ? undefined
      : { type: trigger.settled, ...(storedTrigger === undefined ? {} : { trigger: storedTrigger }) },
    query.get('instance') ?? undefined,
  )
  const payload = trigger.known.data?.payload
  const paths = useMemo(() => mergePaths(recorded.paths, pathsOfSchema(payload)), [recorded.paths, payload])
  const lastField = useLastField(page)

  /** As it is now; undefined: something in it cannot be read, and says so. */
  function current(lenient: boolean): ReturnType<typeof definitionOf> | undefined {
    if (jsonText !== undefined) {
      const read = readRule(jsonText)
      return 'problem' in read ? undefined : { ...read, problems: new Map() }
    }
    const [ofTrigger, ofAction] = [trigger.parameters.values(), action.parameters.values()]
    if (ofTrigger === undefined || ofAction === undefined) return undefined
    return definitionOf({ draft, triggerParameters: ofTrigger, actionParameters: ofAction }, { lenient, operators })
  }

  const [before] = useState(() => definitionOf(first, { lenient: true }).definition)
  const latest = useRef(current)
  latest.current = current
  const leaving = useLeaving(() => {
    if (isDone.current) return false
    const now = latest.current(true)
    return now === undefined || !isSameDefinition(now.definition, before)
  })

  // What is wrong gets the focus, so that nobody has to look for it.
  useEffect(() => {
    if (attempts === 0) return
    const wrong = page.current?.querySelector<HTMLElement>('[aria-invalid="true"]')
    ;(wrong ?? page.current?.querySelector<HTMLElement>('.rules-problem'))?.focus()
  }, [attempts])

  function edit(changed: Partial<RuleDraft>): void {
    setDraft((earlier) => ({ ...earlier, ...changed }))
    setComplaint(({ problems }) => ({ problems: problemsAfter(problems, changed) }))
  }

  function complain(about: Complaint): void {
    setComplaint(about)
    setAttempts((n) => n + 1)
  }

  /** Checks all that can be checked here, and marks what is wrong. */
  function checked(): RuleDefinition | undefined {
    setComplaint(noComplaint)
    if (jsonText !== undefined) {
      const read = readRule(jsonText)
      const hidden = 'problem' in read ? undefined : maskProblemOf(read.definition, stored)
      if ('definition' in read && hidden === undefined) return read.definition
      complain('problem' in read ? at(JSON_PLACE, read.problem) : { ...noComplaint, above: hidden })
      return undefined
    }
    const [ofTrigger, ofAction] = [trigger.parameters.submit(), action.parameters.submit()]
    const { definition, problems } = definitionOf(
      { draft, triggerParameters: ofTrigger?.value ?? {}, actionParameters: ofAction?.value ?? {} },
      { operators },
    )
    const isRead = ofTrigger !== undefined && ofAction !== undefined
    const hidden = isRead ? maskProblemOf(definition, stored) : undefined
    if (problems.size === 0 && isRead && hidden === undefined) return definition
    const count =
      problems.size + trigger.parameters.form.reading.problems.size + action.parameters.form.reading.problems.size
    complain({
      problems,
      above: hidden ?? (count > 1 ? 'Correct the marked parts, then save again.' : undefined),
    })
    return undefined
  }

  /** Marks the part that a refusal is about. @returns what is to be shown elsewhere, because no part is */
  function refuse(error: unknown): string | undefined {
    const message = messageOf(error)
    if (jsonText !== undefined) return message
    const { code, details } = error instanceof ApiError ? error : { code: '', details: {} }
    const place = placeOfRefusal(message, { code, details }, draft)
    if (place !== undefined) {
      complain(at(place, message))
      return undefined
    }
    if (code !== 'PARAMETERS_INVALID') return message
    // Only parameters of triggers are checked before a rule fires.
    const { mode, form } = trigger.parameters
    const rest = mode === 'form' ? form.refuse(error) : message
    if (rest !== undefined) complain(at('triggerParameters', rest))
    return undefined
  }

  /** @returns whether it may be saved */
  async function isAccepted(rule: RuleDefinition): Promise<boolean> {
    try {
      const body: RuleTestRequest = { rule, trigger_instance: { trigger: rule.trigger?.type ?? '', payload: {} } }
      const { matches, problem: found } = await change<RuleTestResult>('POST', 'rules/test', body)
      if (matches || found === undefined) return true
      const place = jsonText === undefined ? placeOfRefusal(found, {}, draft) : undefined
      const said = `${found} The rule can never match.`
      complain({ ...(place === undefined ? above(said) : at(place, said)), doubt: 'criteria' })
      return false
    } catch (error) {
      // Who may change this rule need not be allowed to make others; saving says what is not allowed.
      if (error instanceof ApiError && error.status === 403) return true
      throw error
    }
  }

  async function save(accepted?: Doubt): Promise<void> {
    if (isBusy) return
    const definition = checked()
    if (definition === undefined) return
    setIsBusy(true)
    try {
      if (accepted === undefined && !(await isAccepted(definition))) return
      const saved =
        stored === undefined
          ? await change<RuleRecord>('POST', 'rules', definition)
          : await change<RuleRecord>(
              'PUT',
              `rules/${stored.id}`,
              definition,
              undefined,
              accepted === 'changed' ? undefined : ifMatch(tag),
            )
      isDone.current = true
      notify(`Rule ${saved.ref} saved. It is ${saved.enabled ? 'enabled.' : 'disabled and does not fire.'}`)
      navigate(hrefOf(['rules', saved.ref]))
    } catch (error) {
      if (error instanceof ApiError && error.code === 'CONTENT_CHANGED') {
        // What was accepted before is not forgotten: nothing but this is asked about.
        const said = `${error.message} Your changes are still here. Open the rule in another tab to compare.`
        complain({ ...above(said), doubt: 'changed' })
      } else {
        const rest = refuse(error)
        if (rest !== undefined) complain(above(rest))
      }
    } finally {
      setIsBusy(false)
    }
  }

  function toJson(): void {
    const [doubled] = doubledKeys(draft)
    if (doubled !== undefined) {
      complain(above(`Two criteria have the key "${doubled}", which JSON does not allow. Change one of them.`))
      return
    }
    const now = current(true)
    if (now === undefined) {
      complain(above('The parameters are not valid JSON. Correct them first.'))
      return
    }
    setJsonText(JSON.stringify(now.definition, null, 2))
    setComplaint(noComplaint)
  }

  function toForm(): void {
    const read = readRule(jsonText ?? '')
    const shown = 'problem' in read ? read : draftOf(read.definition)
    if ('problem' in shown) {
      complain(at(JSON_PLACE, shown.problem))
      return
    }
    setDraft(shown.draft)
    trigger.parameters.reset(shown.triggerParameters)
    action.parameters.reset(shown.actionParameters)
    setJsonText(undefined)
    setComplaint(noComplaint)
  }

  const { problems, doubt } = complaint
  const title = stored === undefined ? 'New rule' : `Edit ${stored.ref}`
  const subject = JSON.stringify([
    draft,
    jsonText,
    trigger.parameters.form.reading.value,
    action.parameters.form.reading.value,
  ])
  return (
    <div class="page rules rule-edit" ref={page}>
      <p class="rules-back">
        <a href={hrefOf(stored === undefined ? ['rules'] : ['rules', stored.ref])}>
          ← {stored === undefined ? 'All rules' : 'The rule'}
        </a>
      </p>
      <header class="page-head">
        <h1>{title}</h1>
        <span class="spacer" />
        <div class="segmented" role="group" aria-label="View">
          <button
            type="button"
            aria-pressed={jsonText === undefined}
            onClick={() => jsonText !== undefined && toForm()}
          >
            Form
          </button>
          <button
            type="button"
            aria-pressed={jsonText !== undefined}
            onClick={() => jsonText === undefined && toJson()}
          >
            JSON
          </button>
        </div>
      </header>
      {note !== undefined && <p class="rules-note">{note}</p>}
      {stored?.metadata_file !== undefined && (
        <p class="rules-note">
          The rule comes with the pack {stored.pack}. Registering the pack again restores the rule of its file.
        </p>
      )}
      <form
        class="rules-columns"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          void save()
        }}
      >
        <div class="rules-main" onKeyDown={submitKeys(() => void save())}>
          {complaint.above !== undefined && (
            <div class="failure rules-problem" role="alert" tabIndex={-1}>
              <p>
                <LongText text={complaint.above} />
              </p>
            </div>
          )}
          {jsonText === undefined ? (
            <RuleForm
              draft={draft}
              onDraft={edit}
              problems={problems}
              trigger={trigger}
              action={action}
              paths={paths}
            />
          ) : (
            <section class="card" aria-label="As JSON">
              <JsonField
                label="Definition"
                text={jsonText}
                onText={(text) => {
                  setJsonText(text)
                  setComplaint(noComplaint)
                }}
                minRows={20}
                problem={problems.get(JSON_PLACE)}
                help="The input of svc rule create. ******** masks a secret that the rule keeps."
              />
            </section>
          )}
          <div class="buttons rules-save">
            <button type="submit" class="primary" disabled={isBusy}>
              {isBusy ? 'Saving…' : stored === undefined ? 'Create rule' : 'Save rule'}
            </button>
            <a class="button" href={hrefOf(stored === undefined ? ['rules'] : ['rules', stored.ref])}>
              Cancel
            </a>
            {doubt !== undefined && (
              <button type="button" class="danger" disabled={isBusy} onClick={() => void save(doubt)}>
                {doubt === 'criteria' ? 'Save anyway' : 'Overwrite the other change'}
              </button>
            )}
          </div>
        </div>
        <aside class="rules-side" aria-label="Test">
          <TestPanel
            recorded={recorded}
            subject={subject}
            ruleOf={() => {
              const now = current(true)
              if (stored !== undefined && now !== undefined && isSameDefinition(now.definition, before)) {
                return { rule_ref: stored.id }
              }
              const rule = checked()
              return rule === undefined ? undefined : { rule }
            }}
            onRefusal={(error) => refuse(error) ?? 'Correct the marked parts of the rule.'}
          >
            {jsonText === undefined && paths.length > 0 && (
              <EventPaths
                paths={paths}
                onInsert={(path) => {
                  const field = lastField.current
                  if (field === null || !field.isConnected) {
                    notify('Place the cursor in a parameter or pattern first.', 'failure')
                    return
                  }
                  insertText(field, field.list === undefined || field.list === null ? templateOf(path) : path)
                }}
              />
            )}
          </TestPanel>
        </aside>
      </form>
      {leaving.href !== undefined && (
        <Dialog title="Leave without saving?" onClose={leaving.stay}>
          <p>Your changes to the rule are lost.</p>
          <div class="buttons">
            <button type="button" onClick={leaving.stay}>
              Continue editing
            </button>
            <button type="button" class="danger" onClick={leaving.leave}>
              Leave without saving
            </button>
          </div>
        </Dialog>
      )}
    </div>
  )
}
