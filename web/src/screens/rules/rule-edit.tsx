/** Makes a rule, or changes one: as a form, or as the JSON of its definition. */
import type { JSX } from 'preact'
import { useMemo, useRef } from 'preact/hooks'
import { get, getTagged } from '../../api/client.ts'
import { useLoaded } from '../../api/load.ts'
import type { RuleRecord } from '../../api/records.ts'
import { Dialog } from '../../components/dialog.tsx'
import { Failure } from '../../components/failure.tsx'
import { JsonField } from '../../components/form/json-field.tsx'
import { submitKeys } from '../../components/form/submit-keys.ts'
import { LongText } from '../../components/long-text.tsx'
import { notify } from '../../components/notices.tsx'
import { mergePaths, pathsOfSchema, templateOf, type PayloadPath } from '../../components/rules/paths.ts'
import { hrefOf, type LeaveGuard } from '../../router.ts'
import { EventPaths } from './event-paths.tsx'
import { insertText, useLastField } from './insert-text.ts'
import { JSON_PLACE } from './rule-editor-state.ts'
import { RuleForm } from './rule-form.tsx'
import { copyOfDefinition, definitionOfRecord, emptyRule } from './rule-model.ts'
import { TestPanel } from './test-panel.tsx'
import { useRecorded, type Recorded } from './use-recorded.ts'
import { useRuleEditor, type EditedRule, type RuleEditor } from './use-rule-editor.ts'

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
    if (data !== undefined) return copyOfDefinition(definitionOfRecord(data))
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

interface EditorProps extends EditedRule {
  /** Shown above the form. */
  note?: string | undefined
  query: URLSearchParams
}

function Editor({ start, stored, tag, note, query }: EditorProps): JSX.Element {
  const page = useRef<HTMLDivElement>(null)
  const editor = useRuleEditor({ start, ...(stored !== undefined && { stored }), tag }, page)
  const { recorded, paths } = useEventsFor(editor, stored, query.get('instance') ?? undefined)
  const listHref = hrefOf(stored === undefined ? ['rules'] : ['rules', stored.ref])
  const { refusal } = editor.state
  return (
    <div class="page rules rule-edit" ref={page}>
      <p class="rules-back">
        <a href={listHref}>← {stored === undefined ? 'All rules' : 'The rule'}</a>
      </p>
      <header class="page-head">
        <h1>{stored === undefined ? 'New rule' : `Edit ${stored.ref}`}</h1>
        <span class="spacer" />
        <ViewSwitch editor={editor} />
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
          void editor.save()
        }}
      >
        <div class="rules-main" onKeyDown={submitKeys(() => void editor.save())}>
          {refusal.general !== undefined && (
            <div class="failure rules-problem" role="alert" tabIndex={-1}>
              <p>
                <LongText text={refusal.general} />
              </p>
            </div>
          )}
          <Definition editor={editor} paths={paths} />
          <Buttons editor={editor} isNew={stored === undefined} cancelHref={listHref} />
        </div>
        <Test editor={editor} recorded={recorded} paths={paths} page={page} />
      </form>
      <LeaveDialog leaving={editor.leaving} />
    </div>
  )
}

/** Recorded events of the trigger, and the values that templates and criteria can read. */
function useEventsFor(
  { trigger, state: { draft } }: RuleEditor,
  stored: RuleRecord | undefined,
  instance: string | undefined,
): { recorded: Recorded; paths: readonly PayloadPath[] } {
  const storedTrigger =
    stored !== undefined && stored.trigger.type === draft.triggerType ? stored.trigger.ref : undefined
  const isMissing =
    trigger.known.data === undefined && trigger.offered.data?.some(({ ref }) => ref === draft.triggerType) === false
  const recorded = useRecorded(
    isMissing
      ? undefined
      : { type: trigger.settled, ...(storedTrigger === undefined ? {} : { trigger: storedTrigger }) },
    instance,
  )
  const payload = trigger.known.data?.payload
  const paths = useMemo(() => mergePaths(recorded.paths, pathsOfSchema(payload)), [recorded.paths, payload])
  return { recorded, paths }
}

function ViewSwitch({ editor: { state, showForm, showJson } }: { editor: RuleEditor }): JSX.Element {
  const isJson = state.jsonText !== undefined
  return (
    <div class="segmented" role="group" aria-label="View">
      <button type="button" aria-pressed={!isJson} onClick={showForm}>
        Form
      </button>
      <button type="button" aria-pressed={isJson} onClick={showJson}>
        JSON
      </button>
    </div>
  )
}

function Definition({ editor, paths }: { editor: RuleEditor; paths: readonly PayloadPath[] }): JSX.Element {
  const { draft, jsonText, refusal } = editor.state
  if (jsonText === undefined) {
    return (
      <RuleForm
        draft={draft}
        onDraft={editor.edit}
        problems={refusal.problems}
        trigger={editor.trigger}
        action={editor.action}
        paths={paths}
      />
    )
  }
  return (
    <section class="card" aria-label="As JSON">
      <JsonField
        label="Definition"
        text={jsonText}
        onText={editor.editJson}
        minRows={20}
        problem={refusal.problems.get(JSON_PLACE)}
        help="The input of svc rule create. ******** masks a secret that the rule keeps."
      />
    </section>
  )
}

interface ButtonsProps {
  editor: RuleEditor
  isNew: boolean
  cancelHref: string
}

function Buttons({ editor: { state, save }, isNew, cancelHref }: ButtonsProps): JSX.Element {
  const { isSaving } = state
  const { override } = state.refusal
  return (
    <div class="buttons rules-save">
      <button type="submit" class="primary" disabled={isSaving}>
        {isSaving ? 'Saving…' : isNew ? 'Create rule' : 'Save rule'}
      </button>
      <a class="button" href={cancelHref}>
        Cancel
      </a>
      {override !== undefined && (
        <button type="button" class="danger" disabled={isSaving} onClick={() => void save(override)}>
          {override === 'criteria' ? 'Save anyway' : 'Overwrite the other change'}
        </button>
      )}
    </div>
  )
}

interface TestProps {
  editor: RuleEditor
  recorded: Recorded
  paths: readonly PayloadPath[]
  page: Parameters<typeof useLastField>[0]
}

function Test({ editor, recorded, paths, page }: TestProps): JSX.Element {
  const lastField = useLastField(page)
  const insert = (path: string): void => {
    const field = lastField.current
    if (field === null || !field.isConnected) {
      notify('Place the cursor in a parameter or pattern first.', 'failure')
      return
    }
    insertText(field, field.list === undefined || field.list === null ? templateOf(path) : path)
  }
  return (
    <aside class="rules-side" aria-label="Test">
      <TestPanel
        recorded={recorded}
        subject={editor.subject}
        ruleOf={editor.ruleToTest}
        onRefusal={(error) => editor.showRefusal(error) ?? 'Correct the marked parts of the rule.'}
      >
        {editor.state.jsonText === undefined && paths.length > 0 && <EventPaths paths={paths} onInsert={insert} />}
      </TestPanel>
    </aside>
  )
}

function LeaveDialog({ leaving }: { leaving: LeaveGuard }): JSX.Element | null {
  if (leaving.href === undefined) return null
  return (
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
  )
}
