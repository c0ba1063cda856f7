/** Parameters of a trigger or an action: a form where their schemas are known, JSON where they are not. */
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { textOfValue, type ParameterSchemas } from '../../components/form/field.ts'
import { holdsMask, readField } from '../../components/form/form-model.ts'
import { readJsonText, mistakeText } from '../../components/form/json-text.ts'
import { useParameterForm, type ParameterFormModel } from '../../components/form/use-parameter-form.ts'
import { isObject } from '../../json.ts'

type Values = Record<string, unknown>

export interface ParametersEditor {
  readonly form: ParameterFormModel
  /** `json`: nobody knows which parameters there are. */
  readonly mode: 'form' | 'json'
  /** Of `json`. */
  readonly text: string
  readonly setText: (text: string) => void
  /** What is wrong with the text. */
  readonly problem: string | undefined
  /** What would be sent; what is wrong is in it as it was typed. Undefined: the text cannot be read, which is shown. */
  values(): Values | undefined
  /** @returns undefined when something is wrong: then it is shown */
  submit(): { value: Values; masked: readonly string[] } | undefined
  reset(values: Values): void
}

/** @param schemas undefined: nobody knows which parameters there are */
export function useParameters(
  initial: Values,
  schemas: ParameterSchemas | undefined,
  rare?: ReadonlySet<string>,
): ParametersEditor {
  const form = useParameterForm({ schemas, initial, isFolded: (name) => rare?.has(name) === true })
  const [text, setText] = useState(() => textOf(initial))
  // A text that nobody has touched stands for the very values: reading it might be stricter.
  const written = useRef({ text, values: initial })
  const [problem, setProblem] = useState<string>()
  const mode = schemas === undefined ? 'json' : 'form'

  function valuesOfForm(): Values {
    const pairs: [string, unknown][] = []
    const seen = new Set<string>()
    for (const field of form.fields) {
      seen.add(field.name)
      const input = form.state.get(field.name)
      const reading = readField(field, input)
      if (reading.kind === 'value') pairs.push([field.name, reading.value])
      else if (input?.as === 'value') pairs.push([field.name, input.value])
      else if (input !== undefined && input.text !== '') pairs.push([field.name, input.text])
    }
    for (const [name, input] of form.state) {
      if (!seen.has(name) && (input.as === 'value' || input.text !== '')) {
        pairs.push([name, input.as === 'value' ? input.value : input.text])
      }
    }
    return Object.fromEntries(pairs)
  }

  // What was typed goes along when the schemas become known, or unknown: another trigger, another action.
  const before = useRef(mode)
  const latest = useRef({ valuesOfForm, text, form })
  latest.current = { valuesOfForm, text, form }
  // Of the layout: nobody types in between.
  useLayoutEffect(() => {
    if (before.current === mode) return
    before.current = mode
    if (mode === 'json') {
      write(latest.current.valuesOfForm())
      return
    }
    // The form still has what the text was made of.
    if (latest.current.text === written.current.text) return
    const reading = readText(latest.current.text)
    if ('value' in reading) latest.current.form.reset(reading.value)
  }, [mode])

  function write(values: Values): void {
    written.current = { text: textOf(values), values }
    setText(written.current.text)
    setProblem(undefined)
  }

  function readText(given: string): { value: Values } | { problem: string } {
    if (given === written.current.text) return { value: written.current.values }
    if (given.trim() === '') return { value: {} }
    const { value, mistake } = readJsonText(given)
    if (mistake !== undefined) return { problem: mistakeText(mistake) }
    return isObject(value) ? { value } : { problem: 'Enter an object: { "name": "value" }' }
  }

  return {
    form,
    mode,
    text,
    setText(changed) {
      setText(changed)
      setProblem(undefined)
    },
    problem,
    values() {
      if (mode === 'form') return valuesOfForm()
      const reading = readText(text)
      if ('value' in reading) return reading.value
      setProblem(reading.problem)
      return undefined
    },
    submit() {
      if (mode === 'form') return form.submit()
      const reading = readText(text)
      setProblem('problem' in reading ? reading.problem : undefined)
      if ('problem' in reading) return undefined
      const masked = Object.keys(reading.value).filter((name) => holdsMask(reading.value[name]))
      return { value: reading.value, masked }
    },
    reset(values) {
      form.reset(values)
      write(values)
    },
  }
}

function textOf(values: Values): string {
  return Object.keys(values).length === 0 ? '' : textOfValue(values, 2)
}
