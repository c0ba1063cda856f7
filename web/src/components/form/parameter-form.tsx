/**
 * Fields for parameters by their schemas. It stands inside of a `<form>` of whoever uses it, which says what Enter does (`submitKeys`):
 *
 * ```tsx
 * const form = useParameterForm({ schemas: action.parameters, initial: rule.action.parameters })
 * <ParameterForm form={form} />
 * // in save():
 * const reading = form.submit()
 * if (reading === undefined) return
 * try { await send(reading.value) } catch (error) { setRefusal(form.refuse(error, ['parameters'])) }
 * ```
 */
import type { JSX } from 'preact'
import { useLayoutEffect, useMemo, useState } from 'preact/hooks'
import { LongText } from '../long-text.tsx'
import { defaultTextOf, textOfValue, type Field } from './field.ts'
import type { FieldInput } from './form-model.ts'
import { SHOWN_MASK } from './mask.ts'
import {
  FieldControl,
  FixedValue,
  LongValue,
  UnknownValue,
  ValueNote,
  type ControlProps,
} from './parameter-controls.tsx'
import { controlIdOf, useFocusOnProblem, type ParameterFormModel } from './use-parameter-form.ts'
import './form.css'

/** Longer values are not put into a control, only replaced as a whole. */
const MAX_EDITED = 100_000

export interface ParameterFormProps {
  form: ParameterFormModel
  /** Of what is folded. Default: "More parameters". */
  foldedTitle?: string
  /** When there are none. Default: "No parameters." */
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
        <FixedValue {...control} />
      ) : isUnknown ? (
        <UnknownValue {...control} />
      ) : isLong ? (
        <LongValue {...control} />
      ) : (
        <FieldControl {...control} />
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
      <ValueNote {...control} />
    </div>
  )
}

/** A JSON control tells what is wrong itself, with a way to the place. */
function showsOwnProblem({ control, isSecret, isImmutable, isUnknown }: Field, isLong: boolean): boolean {
  return (control === 'json' || control === 'any') && !isSecret && !isImmutable && !isUnknown && !isLong
}

function placeholderOf(
  field: Field,
  input: FieldInput | undefined,
  before: FieldInput | undefined,
): string | undefined {
  if (input?.as === 'value' && input.value === '') return '(empty string)'
  if (field.isSecret && before?.as === 'value' && before.value === SHOWN_MASK && input !== undefined) return 'unchanged'
  const text = defaultTextOf(field)
  if (text === undefined || text === '' || text === '[]' || text === '{}') return undefined
  return field.isSecret ? 'default: a secret' : text
}
