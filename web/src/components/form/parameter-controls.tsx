/** The controls of a parameter form, one per kind of field. */
import type { ComponentChildren, JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { choiceTitles, defaultTextOf, textOfValue, type Field } from './field.ts'
import { chosenOf, linesOf, readField, startsAsLines, textOfInput, type FieldInput } from './form-model.ts'
import { JsonInput } from './json-field.tsx'
import { SHOWN_MASK } from './mask.ts'
import { SecretInput } from './secret-input.tsx'
import { TextArea } from './text-area.tsx'
import type { ParameterFormModel } from './use-parameter-form.ts'
import { isNumber } from '../../json.ts'

const MAX_PREVIEW = 2000

const MAX_LABEL = 200

export interface ControlProps {
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

export function FieldControl(props: ControlProps): JSX.Element {
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
  const isKept = before?.as === 'value' && before.value === SHOWN_MASK
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
  if (isNumber(value)) return 'Sent as a number. Quote it to send a string.'
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
export function FixedValue({ field, id }: ControlProps): JSX.Element {
  const text = defaultTextOf(field) ?? 'nothing'
  return (
    <output id={id} class="fixed">
      {text} <span class="hint">fixed by the action</span>
    </output>
  )
}

/** Nobody has declared it: it can only go. */
export function UnknownValue({ input, id }: ControlProps): JSX.Element {
  const text = input?.as === 'value' ? textOfValue(input.value) : ''
  return (
    <output id={id} class="fixed" tabIndex={-1}>
      {text.slice(0, MAX_PREVIEW)}
    </output>
  )
}

export function LongValue({ input, id, set }: ControlProps): JSX.Element {
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
export function ValueNote({ field, input, set }: ControlProps): JSX.Element | null {
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
