/**
 * Fields for parameters by their schemas. It stands inside of a `<form>` of whoever uses it, which says what Enter does (`submitKeys`):
 *
 * ```tsx
 * const form = useParameterForm({ schemas: action.parameters, initial: rule.action.parameters })
 * <ParameterForm form={form} />
 * // in save():
 * const reading = form.submit()
 * if (reading === undefined) return
 * try { await send(reading.value) } catch (error) { setProblem(form.refuse(error)) }
 * ```
 */
import type { ComponentChildren, JSX } from 'preact'
import { useLayoutEffect, useMemo, useState } from 'preact/hooks'
import { LongText } from '../long-text.tsx'
import {
  choiceTitles,
  chosenOf,
  defaultTextOf,
  linesOf,
  readField,
  startsAsLines,
  textOfInput,
  textOfValue,
  type Field,
  type FieldInput,
} from './form-model.ts'
import { JsonInput } from './json-field.tsx'
import { MASK } from './mask.ts'
import { SecretInput } from './secret-input.tsx'
import { TextArea } from './text-area.tsx'
import { controlIdOf, useFocusOnProblem, type ParameterFormModel } from './use-parameter-form.ts'
import './form.css'

/** Longer values are not put into a control, only replaced as a whole. */
const MAX_EDITED = 100_000
const MAX_PREVIEW = 2000
const MAX_LABEL = 200

export interface ParameterFormProps {
  form: ParameterFormModel
  /** Of what is folded. Default: "More parameters". */
  foldedTitle?: string
  /** When there are none. Default: "There are no parameters." */
  emptyText?: string
}

export function ParameterForm({ form, foldedTitle, emptyText }: ParameterFormProps): JSX.Element {
  useFocusOnProblem(form)
  const shown = form.fields.filter(({ isFolded }) => !isFolded)
  const folded = form.fields.filter(({ isFolded }) => isFolded)
  const isNeeded = folded.some(({ name }) => form.problems.has(name) || form.state.has(name))
  const [isOpen, setIsOpen] = useState(isNeeded)
  // It does not close when what was wrong is right.
  useLayoutEffect(() => {
    if (isNeeded) setIsOpen(true)
  }, [isNeeded, form.attempts])
  const draw = (field: Field): JSX.Element => <ParameterField key={field.name} field={field} form={form} />
  return (
    <div class="form parameter-form">
      {form.fields.length === 0 && <p class="hint">{emptyText ?? 'No parameters.'}</p>}
      {shown.map(draw)}
      {folded.length > 0 && (
        <details class="folded" open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
          <summary>
            {foldedTitle ?? 'More parameters'} <span class="count">{folded.length}</span>
          </summary>
          <div class="form">{folded.map(draw)}</div>
        </details>
      )}
    </div>
  )
}

interface ControlProps {
  field: Field
  form: ParameterFormModel
  input: FieldInput | undefined
  id: string
  problem: string | undefined
  describedBy: string
  placeholder: string | undefined
  set: (input: FieldInput | undefined) => void
  leave: () => void
}

function ParameterField({ field, form }: { field: Field; form: ParameterFormModel }): JSX.Element {
  const { name, typeTitle, description, hints, isSecret, isImmutable, isUnknown, mustBeGiven } = field
  const id = controlIdOf(form.id, name)
  const input = form.state.get(name)
  const problem = form.problems.get(name)
  const defaultText = defaultTextOf(field)
  const isLong = useMemo(() => input?.as === 'value' && textOfValue(input.value).length > MAX_EDITED, [input])
  const control: ControlProps = {
    field,
    form,
    input,
    id,
    problem,
    describedBy: `${id}-help ${id}-problem`,
    placeholder: placeholderOf(field, input, form.initial.get(name)),
    set: (changed) => form.setInput(name, changed),
    leave: () => form.leave(name),
  }
  // While the field is empty it shows the default itself.
  const facts = [
    ...hints,
    ...(defaultText !== undefined && !isImmutable && !isSecret && input !== undefined && !isLong
      ? [`default: ${defaultText}`]
      : []),
  ]
  return (
    <div class="field parameter">
      <div class="field-head">
        <label for={id}>{name}</label>
        {mustBeGiven && <span class="required">required</span>}
        {!isUnknown && (
          <span class="type">
            {typeTitle}
            {isSecret && ', secret'}
          </span>
        )}
      </div>
      {isImmutable ? (
        <Fixed {...control} />
      ) : isUnknown ? (
        <Foreign {...control} />
      ) : isLong ? (
        <Long {...control} />
      ) : (
        <ControlOf {...control} />
      )}
      {problem !== undefined && !showsOwnProblem(field, isLong) && (
        <p class="problem" id={`${id}-problem`}>
          {problem}
        </p>
      )}
      <div class="hint" id={`${id}-help`}>
        {description !== '' && <LongText text={description} />}
        {facts.length > 0 && <span class="facts-inline">{facts.join(' · ')}</span>}
      </div>
      <Special {...control} />
    </div>
  )
}

/** A JSON control tells what is wrong itself, with a way to the place. */
function showsOwnProblem({ control, isSecret, isImmutable, isUnknown }: Field, isLong: boolean): boolean {
  return (control === 'json' || control === 'any') && !isSecret && !isImmutable && !isUnknown && !isLong
}

function ControlOf(props: ControlProps): JSX.Element {
  const { field } = props
  if (field.control === 'boolean' || field.control === 'choice') return <Choice {...props} />
  if (field.isSecret) return <Secret {...props} />
  switch (field.control) {
    case 'text':
      return <Text {...props} />
    case 'integer':
    case 'number':
      return <Numeric {...props} />
    case 'json':
    case 'any':
      return field.hasLines ? <List {...props} /> : <Json {...props} />
  }
}

function Text({ field, input, id, problem, describedBy, placeholder, set, leave }: ControlProps): JSX.Element {
  return (
    <TextArea
      id={id}
      text={textOfInput(field, input)}
      onText={(text) => set(typed(text))}
      onLeave={leave}
      placeholder={placeholder}
      isInvalid={problem !== undefined}
      isRequired={field.mustBeGiven}
      describedBy={describedBy}
    />
  )
}

function Numeric({ field, input, id, problem, describedBy, placeholder, set, leave }: ControlProps): JSX.Element {
  return (
    <input
      id={id}
      // That of type "number" would hide what is no number, such as a template.
      inputMode={field.control === 'integer' ? 'numeric' : 'decimal'}
      value={textOfInput(field, input)}
      placeholder={placeholder}
      aria-required={field.mustBeGiven}
      aria-invalid={problem !== undefined}
      aria-describedby={describedBy}
      autocomplete="off"
      onInput={(event) => set(typed(event.currentTarget.value))}
      onBlur={leave}
    />
  )
}

function Secret({ field, form, input, id, problem, describedBy, placeholder, set, leave }: ControlProps): JSX.Element {
  const before = form.initial.get(field.name)
  const isKept = before?.as === 'value' && before.value === MASK
  return (
    <>
      <SecretInput
        name={field.name}
        id={id}
        text={textOfInput(field, input)}
        onText={(text) => set(text === '' && isKept ? before : typed(text))}
        onLeave={leave}
        placeholder={placeholder}
        isInvalid={problem !== undefined}
        isRequired={field.mustBeGiven}
        describedBy={describedBy}
      />
      {isKept && (
        <p class="special">
          {input === before && 'The server stores this secret. Leave the field empty to keep it.'}
          {input === undefined ? (
            <>
              You removed the secret.{' '}
              <button type="button" class="quiet small" onClick={() => set(before)}>
                Keep
              </button>
            </>
          ) : (
            <button type="button" class="quiet small" onClick={() => set(undefined)}>
              Remove secret
            </button>
          )}
        </p>
      )}
    </>
  )
}

const TEMPLATE = 'template'
const UNSET = ''

function Choice(props: ControlProps): JSX.Element {
  const { field, input, id, problem, describedBy, set, leave } = props
  const { choices } = field
  const titles = useMemo(() => choiceTitles(choices), [choices])
  const text = textOfInput(field, input)
  const chosen = chosenOf(field, input)
  const isOther = input !== undefined && chosen === -1 && !(input.as === 'value' && input.value === null)
  const defaultText = defaultTextOf(field)
  const unset = defaultText !== undefined ? `Default: ${defaultText}` : field.mustBeGiven ? 'Choose…' : 'Not set'
  return (
    <div class="choice">
      <select
        id={isOther ? `${id}-choice` : id}
        aria-label={isOther ? field.name : undefined}
        aria-required={field.mustBeGiven}
        aria-invalid={problem !== undefined}
        aria-describedby={describedBy}
        value={isOther ? TEMPLATE : chosen === -1 ? UNSET : String(chosen)}
        onChange={(event) => {
          const { value } = event.currentTarget
          if (value === UNSET) set(undefined)
          else if (value === TEMPLATE) set({ as: 'text', text: '' })
          else set({ as: 'value', value: choices[Number(value)] })
        }}
        onBlur={leave}
      >
        <option value={UNSET}>{unset}</option>
        {titles.map((title, i) => (
          <option key={i} value={String(i)}>
            {title.length > MAX_LABEL ? `${title.slice(0, MAX_LABEL)}…` : title}
          </option>
        ))}
        <option value={TEMPLATE}>Other value: {'{{ … }}'}</option>
      </select>
      {isOther && (
        <input
          id={id}
          value={text}
          placeholder={'{{ … }}'}
          aria-invalid={problem !== undefined}
          aria-describedby={describedBy}
          spellcheck={false}
          autocomplete="off"
          onInput={(event) => set({ as: 'text', text: event.currentTarget.value })}
          onBlur={leave}
        />
      )}
    </div>
  )
}

function Json({ field, input, id, problem, describedBy, placeholder, set, leave }: ControlProps): JSX.Element {
  const text = textOfInput(field, input)
  const reading = readField(field, input)
  const mistake = reading.kind === 'problem' ? reading.mistake : undefined
  const { control, types } = field
  const sentAs =
    control === 'any' && reading.kind === 'value' && text !== '' ? sentAsTitle(reading.value, types.length) : undefined
  return (
    <>
      <JsonInput
        id={id}
        text={text}
        onText={(changed) => set(typed(changed))}
        onLeave={leave}
        mistake={mistake}
        problem={problem}
        placeholder={placeholder}
        minRows={control === 'json' ? 2 : 1}
        isRequired={field.mustBeGiven}
        describedBy={describedBy}
      />
      {sentAs !== undefined && <p class="special">{sentAs}</p>}
    </>
  )
}

function sentAsTitle(value: unknown, count: number): string | undefined {
  if (typeof value === 'string') return count === 1 ? undefined : 'Sent as a string.'
  if (value === null) return 'Sent as null. Quote it to send a string.'
  if (typeof value === 'number') return 'Sent as a number. Quote it to send a string.'
  if (typeof value === 'boolean') return `Sent as ${value}. Quote it to send a string.`
  return Array.isArray(value) ? 'Sent as a list.' : 'Sent as an object.'
}

/** A list: one item per line, or JSON. */
function List(props: ControlProps): JSX.Element {
  const { field, input, id, problem, describedBy, placeholder, set, leave } = props
  const [isLines, setIsLines] = useState(() => startsAsLines(field, input))
  const reading = readField(field, input)
  const value = reading.kind === 'value' ? reading.value : undefined
  // What is there cannot be written as lines: a reset may bring other values.
  const fits = input === undefined || input.as === 'lines' || linesOf(value) !== undefined
  const showsLines = isLines && fits && input?.as !== 'text'
  const text = input?.as === 'lines' ? input.text : (linesOf(value) ?? '')
  return (
    <>
      {showsLines ? (
        <>
          <TextArea
            id={id}
            text={text}
            onText={(changed) => set(changed === '' ? undefined : { as: 'lines', text: changed })}
            onLeave={leave}
            placeholder={placeholder ?? 'one item per line'}
            minRows={2}
            isInvalid={problem !== undefined}
            isRequired={field.mustBeGiven}
            describedBy={describedBy}
          />
          {problem !== undefined && (
            <p class="problem" id={`${id}-problem`}>
              {problem}
            </p>
          )}
        </>
      ) : (
        <Json {...props} />
      )}
      <p class="special">
        {showsLines ? (
          <>
            {typeof value === 'string' ? 'The template is sent as the whole list. ' : 'One item per line. '}
            <button
              type="button"
              class="quiet small"
              onClick={() => {
                setIsLines(false)
                if (input !== undefined) set({ as: 'text', text: value === undefined ? '' : textOfValue(value, 2) })
              }}
            >
              Edit as JSON
            </button>
          </>
        ) : (
          (input === undefined || linesOf(value) !== undefined) && (
            <button
              type="button"
              class="quiet small"
              onClick={() => {
                setIsLines(true)
                const lines = linesOf(value)
                if (lines !== undefined) set({ as: 'lines', text: lines })
              }}
            >
              Edit as lines
            </button>
          )
        )}
      </p>
    </>
  )
}

/** What is not sent whatever is typed. */
function Fixed({ field, id }: ControlProps): JSX.Element {
  const text = defaultTextOf(field) ?? 'nothing'
  return (
    <output id={id} class="fixed">
      {text} <span class="hint">fixed by the action</span>
    </output>
  )
}

/** Nobody has declared it: it can only go. */
function Foreign({ input, id }: ControlProps): JSX.Element {
  const text = input?.as === 'value' ? textOfValue(input.value) : ''
  return (
    <output id={id} class="fixed" tabIndex={-1}>
      {text.slice(0, MAX_PREVIEW)}
    </output>
  )
}

function Long({ input, id, set }: ControlProps): JSX.Element {
  const text = input?.as === 'value' ? textOfValue(input.value) : ''
  return (
    <div class="long-value">
      <pre id={id} tabIndex={0}>
        {text.slice(0, MAX_PREVIEW)}…
      </pre>
      <p class="special">
        The value has {text.length.toLocaleString()} characters, too many to edit here. It is sent unchanged.{' '}
        <button type="button" class="quiet small" onClick={() => set(undefined)}>
          Replace
        </button>
      </p>
    </div>
  )
}

/** What cannot be typed: an empty text, an empty list, null; and the way to leave out what came with the values. */
function Special({ field, input, set }: ControlProps): JSX.Element | null {
  const { control, types, defaultValue, mustBeGiven, isImmutable, isUnknown, isSecret } = field
  if (isImmutable) return null
  const buttons: [title: string, value: unknown][] = []
  const isBare = input === undefined || (input.as !== 'value' && input.text === '')
  const matters = (defaultValue !== undefined && defaultValue !== '') || mustBeGiven
  if (isUnknown) {
    return (
      <Note>
        <button type="button" class="quiet small" onClick={() => set(undefined)}>
          Remove
        </button>
      </Note>
    )
  }
  if (isBare && matters && control === 'text' && !isSecret) buttons.push(['Send empty string', ''])
  if (isBare && matters && field.hasLines) buttons.push(['Send empty list', []])
  if (isBare && types.includes('null') && types.length > 1) buttons.push(['Send null', null])
  if (buttons.length > 0) {
    return (
      <Note isOffer>
        {buttons.map(([title, value]) => (
          <button key={title} type="button" class="quiet small" onClick={() => set({ as: 'value', value })}>
            {title}
          </button>
        ))}
      </Note>
    )
  }
  if (input?.as !== 'value' || (control === 'any' && input.value !== '')) return null
  const { value } = input
  const sent =
    value === '' && control !== 'choice'
      ? 'An empty string is sent.'
      : value === null && control !== 'json'
        ? 'null is sent.'
        : undefined
  if (sent === undefined) return null
  return (
    <Note>
      {sent}{' '}
      <button type="button" class="quiet small" onClick={() => set(undefined)}>
        {defaultValue === undefined ? 'Omit' : 'Use default'}
      </button>
    </Note>
  )
}

/** `isOffer`: of no use to most, so it is there only for who is in the field. */
function Note({ children, isOffer = false }: { children: ComponentChildren; isOffer?: boolean }): JSX.Element {
  return <p class={isOffer ? 'special offer' : 'special'}>{children}</p>
}

function typed(text: string): FieldInput | undefined {
  return text === '' ? undefined : { as: 'text', text }
}

function placeholderOf(
  field: Field,
  input: FieldInput | undefined,
  before: FieldInput | undefined,
): string | undefined {
  if (input?.as === 'value' && input.value === '') return '(empty string)'
  if (field.isSecret && before?.as === 'value' && before.value === MASK && input !== undefined) return 'unchanged'
  const text = defaultTextOf(field)
  if (text === undefined || text === '' || text === '[]' || text === '{}') return undefined
  return field.isSecret ? 'default: a secret' : text
}
