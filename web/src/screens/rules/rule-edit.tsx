/** Makes a rule, or changes one: as a form, or as the JSON of its definition. */
import type { JSX } from 'preact'
import { useEffect, useId, useMemo, useRef, useState } from 'preact/hooks'
import { ApiError, change, get, getTagged, messageOf } from '../../api/client.ts'
import { useLoaded } from '../../api/load.ts'
import type { RuleDefinition, RuleRecord, RuleTestRequest, RuleTestResult } from '../../api/records.ts'
import { Dialog } from '../../components/dialog.tsx'
import { Failure } from '../../components/failure.tsx'
import { holdsMask } from '../../components/form/form-model.ts'
import { JsonField } from '../../components/form/json-field.tsx'
import { readJsonText, sentenceOf } from '../../components/form/json-text.ts'
import { ParameterForm } from '../../components/form/parameter-form.tsx'
import { LongText } from '../../components/long-text.tsx'
import { notify } from '../../components/notices.tsx'
import { useOperators } from '../../components/rules/operators.ts'
import { mergePaths, pathsOfSchema, templateOf, type PayloadPath } from '../../components/rules/paths.ts'
import { hrefOf, navigate, useLeaving } from '../../router.ts'
import { CriteriaEditor } from './criteria-editor.tsx'
import { insertText, useLastField } from './insert-text.ts'
import {
  definitionOf,
  definitionOfRecord,
  draftOf,
  emptyRule,
  isSameDefinition,
  placeOfRefusal,
  type Problems,
  type RuleDraft,
} from './rule-model.ts'
import { ifMatch } from './switch-rule.ts'
import { TestPanel } from './test-panel.tsx'
import { useAction, useActions, useTriggerType, useTriggerTypes, type Known } from './use-catalogue.ts'
import { useParameters, type ParametersEditor } from './use-parameters.ts'
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
          : `Secrets are not copied. Give these anew, where they are needed: ${start.left.join(', ')}.`
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

/** A mask would be taken for the value itself, because the new rule has no secret that it could stand for. */
function copyOf(definition: RuleDefinition): { definition: RuleDefinition; left: string[] } {
  const left: string[] = []
  const without = (parameters: RuleDefinition['action']['parameters']): Record<string, unknown> =>
    Object.fromEntries(
      Object.entries(parameters ?? {}).filter(([name, value]) => {
        if (!holdsMask(value)) return true
        left.push(name)
        return false
      }),
    )
  const { trigger, action, name } = definition
  return {
    definition: {
      ...definition,
      name: `${name}_copy`,
      enabled: false,
      trigger: { ...trigger, parameters: without(trigger.parameters) },
      action: { ...action, parameters: without(action.parameters) },
    },
    left,
  }
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

const JSON_PLACE = 'json'

function Editor({ start, stored, tag, note, query }: EditorProps): JSX.Element {
  const id = useId()
  const [first] = useState(() => draftOf(start))
  if ('problem' in first) throw new Error(`The rule cannot be shown: ${first.problem}`)
  const [draft, setDraft] = useState<RuleDraft>(first.draft)
  const [jsonText, setJsonText] = useState<string>()
  const [problems, setProblems] = useState<Problems>(new Map())
  const [problem, setProblem] = useState<string>()
  /** What may be saved all the same. */
  const [doubt, setDoubt] = useState<'criteria' | 'changed'>()
  const [isBusy, setIsBusy] = useState(false)
  const [attempts, setAttempts] = useState(0)
  const isDone = useRef(false)
  const operators = useOperators().byName
  const page = useRef<HTMLDivElement>(null)

  const types = useTriggerTypes()
  const actions = useActions()
  const typeRef = useSettled(draft.triggerType, types.data)
  const actionRef = useSettled(draft.actionRef, actions.data)
  const type = useTriggerType(typeRef.settled)
  const action = useAction(actionRef.settled)
  const triggerParameters = useParameters(first.triggerParameters, type.data?.parameters)
  const actionParameters = useParameters(first.actionParameters, action.data?.parameters, action.data?.rare)

  const storedTrigger =
    stored !== undefined && stored.trigger.type === draft.triggerType ? stored.trigger.ref : undefined
  const recorded = useRecorded(
    type.data === undefined && types.data !== undefined && !types.data.some(({ ref }) => ref === draft.triggerType)
      ? undefined
      : { type: typeRef.settled, ...(storedTrigger === undefined ? {} : { trigger: storedTrigger }) },
    query.get('instance') ?? undefined,
  )
  const paths = useMemo(
    () => mergePaths(recorded.paths, pathsOfSchema(type.data?.payload)),
    [recorded.paths, type.data],
  )
  const lastField = useLastField(page)

  /** As it is now; undefined: something in it cannot be read, and says so. */
  function current(lenient: boolean): ReturnType<typeof definitionOf> | undefined {
    if (jsonText !== undefined) {
      const { value, mistake } = readJsonText(jsonText)
      if (mistake !== undefined) return undefined
      return { definition: value as RuleDefinition, problems: new Map() } // the server says whether it is one
    }
    const [ofTrigger, ofAction] = [triggerParameters.values(), actionParameters.values()]
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
    setProblem(undefined)
    setDoubt(undefined)
    setProblems((earlier) => {
      const places = Object.keys(changed).map((name) => placeOf[name] ?? name)
      const isAbout = (place: string): boolean =>
        places.includes(place) || ('criteria' in changed && place.startsWith('row-'))
      return [...earlier.keys()].some(isAbout) ? new Map([...earlier].filter(([place]) => !isAbout(place))) : earlier
    })
  }

  function show(found: Problems, above?: string): void {
    setProblems(found)
    setProblem(above)
    setAttempts((n) => n + 1)
  }

  /** Checks all that can be checked here, and marks what is wrong. */
  function checked(): RuleDefinition | undefined {
    setProblem(undefined)
    setProblems(new Map())
    if (jsonText !== undefined) {
      const { value, mistake } = readJsonText(jsonText)
      if (mistake === undefined) {
        const given = value as RuleDefinition // as above
        const hidden = maskProblem(given)
        if (hidden === undefined) return given
        show(new Map(), hidden)
        return undefined
      }
      show(new Map([[JSON_PLACE, sentenceOf(mistake)]]))
      return undefined
    }
    const [ofTrigger, ofAction] = [triggerParameters.submit(), actionParameters.submit()]
    const { definition, problems: found } = definitionOf(
      { draft, triggerParameters: ofTrigger?.value ?? {}, actionParameters: ofAction?.value ?? {} },
      { operators },
    )
    const hidden = ofTrigger === undefined || ofAction === undefined ? undefined : maskProblem(definition)
    if (found.size === 0 && ofTrigger !== undefined && ofAction !== undefined && hidden === undefined) return definition
    const count =
      found.size + triggerParameters.form.reading.problems.size + actionParameters.form.reading.problems.size
    show(found, hidden ?? (count > 1 ? 'Some parts are not right yet; they are marked.' : undefined))
    return undefined
  }

  /** A mask stands for a secret that the stored rule has in this place, and for nothing anywhere else. */
  function maskProblem({ trigger, action: ran }: RuleDefinition): string | undefined {
    const mayKeepTrigger = stored !== undefined && stored.trigger.type === trigger?.type
    const mayKeepAction = stored !== undefined && stored.action.ref === ran?.ref
    const names = [
      ...(mayKeepTrigger ? [] : maskedIn(trigger?.parameters)),
      ...(mayKeepAction ? [] : maskedIn(ran?.parameters)),
    ]
    if (names.length === 0) return undefined
    return `The secret of ${names.join(', ')} is not known here: ******** only stands for what the rule had before. Write the secret itself, or remove it.`
  }

  /** Marks the part that a refusal is about. @returns what is to be shown above, because no part is */
  function refuse(error: unknown): string | undefined {
    const message = messageOf(error)
    if (jsonText !== undefined) {
      setAttempts((n) => n + 1)
      return message
    }
    const { code, details } = error instanceof ApiError ? error : { code: '', details: {} }
    const place = placeOfRefusal(message, { code, details }, draft)
    if (place !== undefined) {
      show(new Map([[place, message]]))
      return undefined
    }
    // Only parameters of triggers are checked before a rule fires.
    const rest =
      code === 'PARAMETERS_INVALID' && triggerParameters.mode === 'form'
        ? triggerParameters.form.refuse(error)
        : message
    if (rest !== undefined) {
      if (code === 'PARAMETERS_INVALID') {
        show(new Map([['triggerParameters', rest]]))
        return undefined
      }
      setAttempts((n) => n + 1)
    }
    return rest
  }

  /** @returns whether it may be saved */
  async function isAccepted(rule: RuleDefinition): Promise<boolean> {
    try {
      const body: RuleTestRequest = { rule, trigger_instance: { trigger: rule.trigger?.type ?? '', payload: {} } }
      const { matches, problem: found } = await change<RuleTestResult>('POST', 'rules/test', body)
      if (matches || found === undefined) return true
      const place = jsonText === undefined ? placeOfRefusal(found, {}, draft) : undefined
      const said = `${found} It could never match.`
      show(place === undefined ? new Map() : new Map([[place, said]]), place === undefined ? said : undefined)
      setDoubt('criteria')
      return false
    } catch (error) {
      // Who may change this rule need not be allowed to make others; saving says what is not allowed.
      if (error instanceof ApiError && error.status === 403) return true
      throw error
    }
  }

  async function save(accepted?: 'criteria' | 'changed'): Promise<void> {
    if (isBusy) return
    setDoubt(undefined)
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
      notify(
        `Rule ${saved.ref} is saved${saved.enabled ? ': it reacts from now on.' : '. It is disabled, and reacts to nothing.'}`,
      )
      navigate(hrefOf(['rules', saved.ref]))
    } catch (error) {
      if (error instanceof ApiError && error.code === 'CONTENT_CHANGED') {
        // What was accepted before is not forgotten: nothing but this is asked about.
        show(
          new Map(),
          `${error.message} What you have written is still here. Open the rule in another tab to compare.`,
        )
        setDoubt('changed')
      } else setProblem(refuse(error))
    } finally {
      setIsBusy(false)
    }
  }

  function toJson(): void {
    const now = current(true)
    const keys = duplicates(draft)
    if (now === undefined || keys.length > 0) {
      show(
        new Map(),
        keys.length > 0
          ? `Two criteria have the key "${keys[0]}", which JSON cannot hold: change one of them first.`
          : 'The JSON of the parameters cannot be read: correct it first.',
      )
      return
    }
    setJsonText(JSON.stringify(now.definition, null, 2))
    setProblems(new Map())
    setProblem(undefined)
    setDoubt(undefined)
  }

  function toForm(): void {
    const { value, mistake } = readJsonText(jsonText ?? '')
    if (mistake !== undefined) {
      show(new Map([[JSON_PLACE, sentenceOf(mistake)]]))
      return
    }
    const shown = draftOf(value)
    if ('problem' in shown) {
      show(new Map([[JSON_PLACE, shown.problem]]))
      return
    }
    setDraft(shown.draft)
    triggerParameters.reset(shown.triggerParameters)
    actionParameters.reset(shown.actionParameters)
    setJsonText(undefined)
    setProblems(new Map())
    setProblem(undefined)
    setDoubt(undefined)
  }

  const title = stored === undefined ? 'New rule' : `Edit ${stored.ref}`
  const subject = JSON.stringify([
    draft,
    jsonText,
    triggerParameters.form.reading.value,
    actionParameters.form.reading.value,
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
        <div class="segmented" role="group" aria-label="Show as">
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
          The rule comes with the pack {stored.pack}. Registering the pack again brings back what its file says.
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
        <div class="rules-main">
          {problem !== undefined && (
            <div class="failure rules-problem" role="alert" tabIndex={-1}>
              <p>
                <LongText text={problem} />
              </p>
            </div>
          )}
          {jsonText === undefined ? (
            <>
              <section class="card form" aria-label="Rule">
                <div class="rules-names">
                  <Text
                    label="Name"
                    value={draft.name}
                    onText={(name) => edit({ name })}
                    problem={problems.get('name')}
                    isRequired
                  />
                  <Text
                    label="Pack"
                    value={draft.pack}
                    onText={(pack) => edit({ pack })}
                    problem={problems.get('pack')}
                  />
                </div>
                <Text
                  label="Description"
                  value={draft.description}
                  onText={(description) => edit({ description })}
                  problem={problems.get('description')}
                />
                <div class="rules-names">
                  <div class="field">
                    <label for={`${id}-kind`}>Kind</label>
                    <select
                      id={`${id}-kind`}
                      value={draft.type}
                      onChange={(event) => edit({ type: event.currentTarget.value })}
                    >
                      <option value="standard">standard: fires whenever it matches</option>
                      <option value="backstop">backstop: fires when no standard rule matches</option>
                      {!['standard', 'backstop'].includes(draft.type) && (
                        <option value={draft.type}>{draft.type}</option>
                      )}
                    </select>
                    {problems.has('type') && <p class="problem">{problems.get('type')}</p>}
                  </div>
                  <div class="field rules-enabled">
                    <label>
                      <input
                        type="checkbox"
                        checked={draft.enabled}
                        onChange={(event) => edit({ enabled: event.currentTarget.checked })}
                      />{' '}
                      Enabled
                    </label>
                  </div>
                </div>
              </section>
              <section class="card form" aria-label="When">
                <h2>When</h2>
                <Choice
                  label="Trigger type"
                  value={draft.triggerType}
                  onText={(triggerType) => edit({ triggerType })}
                  onLeave={typeRef.settle}
                  options={types.data}
                  failure={types.error}
                  placeholder="core.svc.webhook"
                  problem={problems.get('trigger')}
                />
                <Parameters
                  editor={triggerParameters}
                  known={type}
                  isChosen={draft.triggerType !== ''}
                  what="trigger type"
                  problem={problems.get('triggerParameters')}
                  emptyText="This trigger takes no parameters."
                  onSubmit={() => void save()}
                />
              </section>
              <section class="card form" aria-label="If">
                <h2>If all of this holds</h2>
                <datalist id={`${id}-paths`}>
                  {paths.map(({ path, preview }) => (
                    <option key={path} value={path}>
                      {preview}
                    </option>
                  ))}
                </datalist>
                <CriteriaEditor
                  rows={draft.criteria}
                  onRows={(criteria) => edit({ criteria })}
                  problems={problems}
                  pathsId={`${id}-paths`}
                />
              </section>
              <section class="card form" aria-label="Then">
                <h2>Then run</h2>
                <Choice
                  label="Action"
                  value={draft.actionRef}
                  onText={(ref) => edit({ actionRef: ref })}
                  onLeave={actionRef.settle}
                  options={actions.data}
                  failure={actions.error}
                  placeholder="core.local"
                  problem={problems.get('action')}
                />
                <Parameters
                  editor={actionParameters}
                  known={action}
                  isChosen={draft.actionRef !== ''}
                  what="action"
                  problem={problems.get('actionParameters')}
                  emptyText="This action takes no parameters."
                  onSubmit={() => void save()}
                />
              </section>
            </>
          ) : (
            <section class="card" aria-label="As JSON">
              <JsonField
                label="Definition"
                text={jsonText}
                onText={(text) => {
                  setJsonText(text)
                  setProblem(undefined)
                  setProblems(new Map())
                  setDoubt(undefined)
                }}
                minRows={20}
                problem={problems.get(JSON_PLACE)}
                help="As svc rule create reads it. ******** stands for a secret that the rule has, and keeps."
              />
            </section>
          )}
          <div class="buttons rules-save">
            <button type="submit" class="primary" disabled={isBusy}>
              {isBusy ? 'Saving…' : stored === undefined ? 'Create the rule' : 'Save the rule'}
            </button>
            <a class="button" href={hrefOf(stored === undefined ? ['rules'] : ['rules', stored.ref])}>
              Cancel
            </a>
            {doubt !== undefined && (
              <button type="button" class="danger" disabled={isBusy} onClick={() => void save(doubt)}>
                {doubt === 'criteria' ? 'Save it all the same' : 'Replace what the other has saved'}
              </button>
            )}
          </div>
        </div>
        <aside class="rules-side" aria-label="Try it">
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
            onRefusal={(error) => refuse(error) ?? 'See what is marked in the rule.'}
          >
            {jsonText === undefined && paths.length > 0 && (
              <Paths
                paths={paths}
                onInsert={(path) => {
                  const field = lastField.current
                  if (field === null || !field.isConnected) {
                    notify('Put the cursor into a parameter or a pattern first.', 'failure')
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
          <p>What you have changed in the rule is lost then.</p>
          <div class="buttons">
            <button type="button" onClick={leaving.stay}>
              Go on editing
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

/** Attribute of the draft → what its problems are called. */
const placeOf: Readonly<Record<string, string>> = { triggerType: 'trigger', actionRef: 'action' }

function maskedIn(parameters: unknown): string[] {
  if (typeof parameters !== 'object' || parameters === null) return []
  return Object.entries(parameters)
    .filter(([, value]) => holdsMask(value))
    .map(([name]) => name)
}

function duplicates({ criteria }: RuleDraft): string[] {
  const found: string[] = []
  const look = (rows: RuleDraft['criteria']): void => {
    const keys = rows.map(({ key }) => key)
    found.push(...keys.filter((key, i) => keys.indexOf(key) !== i))
    for (const { items } of rows) look(items)
  }
  look(criteria)
  return found
}

/** A reference is asked for when it is one that there is, or when its field is left: not at each letter. */
function useSettled(
  value: string,
  known: readonly { ref: string }[] | undefined,
): { settled: string; settle: () => void } {
  const [left, setLeft] = useState(value)
  const isKnown = known?.some(({ ref }) => ref === value) === true
  return { settled: isKnown ? value : left, settle: () => setLeft(value) }
}

function Text({
  label,
  value,
  onText,
  problem,
  isRequired = false,
}: {
  label: string
  value: string
  onText: (text: string) => void
  problem: string | undefined
  isRequired?: boolean
}): JSX.Element {
  const id = useId()
  return (
    <div class="field">
      <div class="rules-label">
        <label for={id}>{label}</label> {isRequired && <span class="required">required</span>}
      </div>
      <input
        id={id}
        value={value}
        autocomplete="off"
        aria-required={isRequired}
        aria-invalid={problem !== undefined}
        aria-describedby={problem === undefined ? undefined : `${id}-problem`}
        onInput={(event) => onText(event.currentTarget.value)}
      />
      {problem !== undefined && (
        <p class="problem" role="alert" id={`${id}-problem`}>
          {problem}
        </p>
      )}
    </div>
  )
}

/** The browser filters suggestions as somebody types; the first of more are enough. */
const MAX_OPTIONS = 1000
const MAX_DESCRIPTION = 100

function Choice({
  label,
  value,
  onText,
  onLeave,
  options,
  failure,
  placeholder,
  problem,
}: {
  label: string
  value: string
  onText: (text: string) => void
  onLeave: () => void
  options: readonly { ref: string; description: string }[] | undefined
  failure: unknown
  placeholder: string
  problem: string | undefined
}): JSX.Element {
  const id = useId()
  return (
    <div class="field">
      <div class="rules-label">
        <label for={id}>{label}</label> <span class="required">required</span>
      </div>
      <input
        id={id}
        class="code"
        list={`${id}-options`}
        value={value}
        placeholder={placeholder}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        aria-required
        aria-invalid={problem !== undefined}
        aria-describedby={`${id}-problem`}
        onInput={(event) => onText(event.currentTarget.value)}
        onBlur={onLeave}
      />
      <datalist id={`${id}-options`}>
        {options?.slice(0, MAX_OPTIONS).map(({ ref, description }) => (
          <option key={ref} value={ref}>
            {description.slice(0, MAX_DESCRIPTION)}
          </option>
        ))}
      </datalist>
      {failure !== undefined && <p class="hint">There are no suggestions: {messageOf(failure)}</p>}
      {problem !== undefined && (
        <p class="problem" role="alert" id={`${id}-problem`}>
          {problem}
        </p>
      )}
    </div>
  )
}

function Parameters({
  editor,
  known,
  isChosen,
  what,
  problem,
  emptyText,
  onSubmit,
}: {
  editor: ParametersEditor
  known: ReturnType<typeof useAction>
  isChosen: boolean
  what: string
  problem: string | undefined
  emptyText: string
  onSubmit: () => void
}): JSX.Element | null {
  const { data, error, isLoading, reload } = known
  if (!isChosen && editor.text === '') return null
  return (
    <>
      {data !== undefined && data.description !== '' && (
        <p class="hint">
          <LongText text={data.description} maxLength={300} />
        </p>
      )}
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {editor.mode === 'form' ? (
        <ParameterForm form={editor.form} onSubmit={onSubmit} emptyText={emptyText} foldedTitle="More parameters" />
      ) : isLoading ? (
        <p class="hint">Loading what parameters there are…</p>
      ) : (
        <JsonField
          label="Parameters"
          text={editor.text}
          onText={editor.setText}
          problem={editor.problem}
          allowsTemplates={false}
          help={jsonHelp(data, what)}
        />
      )}
      {problem !== undefined && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
    </>
  )
}

function jsonHelp(data: Known | undefined, what: string): string {
  return data === undefined
    ? `There is no such ${what} that you may see, so its parameters are written as JSON: { "name": "value" }`
    : `The ${what} does not say which parameters there are: write them as JSON, { "name": "value" }`
}

function Paths({ paths, onInsert }: { paths: readonly PayloadPath[]; onInsert: (path: string) => void }): JSX.Element {
  return (
    <details class="rules-paths">
      <summary>Insert a value of the event</summary>
      <p class="hint">At the cursor: as a template into parameters and patterns, as a path into keys.</p>
      <ul class="list">
        {paths.map(({ path, preview }) => (
          <li key={path}>
            <button type="button" class="quiet" onClick={() => onInsert(path)}>
              <code>{path}</code> <span class="hint">{preview}</span>
            </button>
          </li>
        ))}
      </ul>
    </details>
  )
}
