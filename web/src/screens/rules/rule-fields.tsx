/** Fields of the form of a rule. */
import type { JSX } from 'preact'
import { useId } from 'preact/hooks'
import { messageOf } from '../../api/client.ts'
import { Failure } from '../../components/failure.tsx'
import { JsonField } from '../../components/form/json-field.tsx'
import { ParameterForm } from '../../components/form/parameter-form.tsx'
import { LongText } from '../../components/long-text.tsx'
import type { KnownParameters } from './use-catalogue.ts'
import type { RuleReference } from './use-rule-reference.ts'

/** The browser filters suggestions as somebody types; the first of more are enough. */
const MAX_OPTIONS = 1000
const MAX_DESCRIPTION = 100

interface TextFieldProps {
  label: string
  value: string
  onText: (text: string) => void
  problem: string | undefined
  isRequired?: boolean
  /** Given where the text is a reference. */
  reference?: { of: RuleReference; placeholder: string }
}

/** One line of text. */
export function TextField({
  label,
  value,
  onText,
  problem,
  isRequired = false,
  reference,
}: TextFieldProps): JSX.Element {
  const id = useId()
  return (
    <div class="field">
      <div class="rules-label">
        <label for={id}>{label}</label> {isRequired && <span class="required">required</span>}
      </div>
      <input
        id={id}
        type="text"
        value={value}
        autocomplete="off"
        aria-required={isRequired}
        aria-invalid={problem !== undefined}
        aria-describedby={`${id}-problem`}
        onInput={(event) => onText(event.currentTarget.value)}
        {...(reference !== undefined && {
          class: 'code',
          list: `${id}-options`,
          placeholder: reference.placeholder,
          autocapitalize: 'none',
          spellcheck: false,
          onBlur: reference.of.settle,
        })}
      />
      {reference !== undefined && <Suggestions id={`${id}-options`} offered={reference.of.offered} />}
      {problem !== undefined && (
        <p class="problem" role="alert" id={`${id}-problem`}>
          {problem}
        </p>
      )}
    </div>
  )
}

function Suggestions({ id, offered: { data, error } }: { id: string; offered: RuleReference['offered'] }): JSX.Element {
  return (
    <>
      <datalist id={id}>
        {data?.slice(0, MAX_OPTIONS).map(({ ref, description }) => (
          <option key={ref} value={ref}>
            {description.slice(0, MAX_DESCRIPTION)}
          </option>
        ))}
      </datalist>
      {error !== undefined && <p class="hint">No suggestions: {messageOf(error)}</p>}
    </>
  )
}

/** Of a trigger or an action. */
export function ParameterFields({
  of: { value, known, parameters: editor },
  what,
  problem,
  emptyText,
}: {
  of: RuleReference
  /** `trigger type` */
  what: string
  problem: string | undefined
  emptyText: string
}): JSX.Element | null {
  const { data, error, isLoading, reload } = known
  if (value === '' && editor.text === '') return null
  return (
    <>
      {data !== undefined && data.description !== '' && (
        <p class="hint">
          <LongText text={data.description} maxLength={300} />
        </p>
      )}
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {editor.mode === 'form' ? (
        <ParameterForm form={editor.form} emptyText={emptyText} foldedTitle="More parameters" />
      ) : isLoading ? (
        <p class="hint">Loading parameters…</p>
      ) : (
        <JsonField
          label="Parameters"
          text={editor.text}
          onText={editor.setText}
          problem={editor.problem ?? problem}
          allowsTemplates={false}
          help={jsonHelp(data, what)}
        />
      )}
    </>
  )
}

function jsonHelp(data: KnownParameters | undefined, what: string): string {
  return data === undefined
    ? `Unknown ${what}, or one you may not see. Enter its parameters as JSON: { "name": "value" }`
    : `The ${what} declares no parameters. Enter them as JSON: { "name": "value" }`
}
