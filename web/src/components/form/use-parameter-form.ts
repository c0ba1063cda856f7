/** Inputs of a parameter form, their problems, and when a problem is shown. */
import { useEffect, useId, useMemo, useRef, useState } from 'preact/hooks'
import { messageOf } from '../../api/client.ts'
import { fieldsOf, type Field, type ParameterSchemas } from './field.ts'
import { readForm, formStateOf, type FieldInput, type FormReading, type FormState } from './form-model.ts'
import { pathOfRefusal, refusalBy, type Refusal } from './refusal.tsx'

export interface ParameterFormOptions {
  /** Undefined while they are loaded: there are no fields then. What was typed stays for the names that come. */
  schemas: ParameterSchemas | undefined
  /** What there is before anybody types: `parameters` of a record, or inputs. Taken once; later ones by `reset`. */
  initial?: InitialValues
  /** Optional parameters that are rarely needed, such as those of the runner. */
  isFolded?: (name: string) => boolean
  /**
   * A masked secret that nobody has changed is left out of what is sent, for requests that keep what they do not name
   * (running again). Default: the mask is sent, for which the server puts the secret that it has (rules, configurations).
   */
  omitsMasks?: boolean
}

export type InitialValues = Readonly<Record<string, unknown>> | FormState

export interface ParameterFormModel {
  readonly id: string
  readonly fields: readonly Field[]
  readonly state: FormState
  /** What there was at first. */
  readonly initial: FormState
  /** What would be sent now; wrong fields are left out of it. */
  readonly reading: FormReading
  /** Field → its problem, once the user left the field or tried to send. */
  readonly problems: ReadonlyMap<string, string>
  /** Whether anything differs from what was there at first. */
  readonly isChanged: boolean
  /** Undefined: not given any more. */
  setInput(name: string, input: FieldInput | undefined): void
  /** The field has lost the focus. */
  leave(name: string): void
  /** @returns undefined when something is wrong: then it is shown, and the first such field has the focus */
  submit(): FormReading | undefined
  /**
   * Shows a refusal of the server at the field that it is about, which gets the focus.
   *
   * @param root path of the parameters in the body of the request
   * @param others names of further fields of the form, as of `refusalBy`
   * @returns for the banner
   */
  refuse(error: unknown, root: readonly string[], others?: readonly string[]): Refusal
  /** Shows what is wrong with a field, and gives it the focus. @returns whether there is such a field */
  mark(name: string, problem: string): boolean
  /** Starts again with these values; default: none. */
  reset(values?: InitialValues): void
  /** Counts the times the first wrong field is to get the focus. */
  readonly attempts: number
}

const nothing: Readonly<Record<string, unknown>> = {}
const noSchemas: ParameterSchemas = {}

export function useParameterForm(options: ParameterFormOptions): ParameterFormModel {
  const { schemas = noSchemas, initial = nothing, omitsMasks = false } = options
  const id = useId()
  const [first, setFirst] = useState(() => initialState(initial))
  const [state, setState] = useState(first)
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set())
  const [hasTried, setHasTried] = useState(false)
  const [refused, setRefused] = useState<ReadonlyMap<string, string>>(new Map())
  const [attempts, setAttempts] = useState(0)

  const { isFolded } = options
  // Nothing but the names of what came with the values makes further fields.
  const foreign = [...state].filter(([name, { as }]) => as === 'value' && !Object.hasOwn(schemas, name))
  const foreignNames = foreign.map(([name]) => name).join()
  const fields = useMemo(
    () =>
      fieldsOf(schemas, {
        ...(isFolded && { isFolded }),
        values: schemas === noSchemas ? nothing : Object.fromEntries(foreign),
      }),
    [schemas, foreignNames],
  )
  const reading = useMemo(() => readForm(fields, state, { omitsMasks }), [fields, state, omitsMasks])

  const problems = new Map<string, string>()
  for (const { name, isUnknown } of fields) {
    // An empty field is no mistake before somebody tries to send.
    const isTold = hasTried || isUnknown || (left.has(name) && !isEmpty(state.get(name)))
    const shown = refused.get(name) ?? (isTold ? reading.problems.get(name) : undefined)
    if (shown !== undefined) problems.set(name, shown)
  }

  // Those who call have what was drawn last; what is typed in between counts, too.
  const latest = useRef({ reading, fields })
  latest.current = { reading, fields }

  function mark(name: string, problem: string): boolean {
    if (!latest.current.fields.some((field) => field.name === name)) return false
    setRefused(new Map([[name, problem]]))
    setAttempts((n) => n + 1)
    return true
  }

  return {
    id,
    fields,
    state,
    initial: first,
    reading,
    problems,
    isChanged: state !== first,
    attempts,
    setInput(name, input) {
      setState((earlier) => {
        const changed = new Map(earlier)
        if (input === undefined) changed.delete(name)
        else changed.set(name, input)
        return changed
      })
      setRefused((earlier) => (earlier.has(name) ? new Map([...earlier].filter(([other]) => other !== name)) : earlier))
    },
    leave(name) {
      setLeft((earlier) => (earlier.has(name) ? earlier : new Set([...earlier, name])))
    },
    submit() {
      const { reading: read } = latest.current
      setHasTried(true)
      setRefused(new Map())
      if (read.problems.size === 0) return read
      setAttempts((n) => n + 1)
      return undefined
    },
    refuse(error, root, others) {
      const path = pathOfRefusal(error)
      const name = root.every((part, i) => path[i] === part) ? path[root.length] : undefined
      if (name === undefined || !mark(name, messageOf(error))) return refusalBy(error, others)
      return { text: `The server refused ${path.slice(root.length).join('.')}. Correct the marked field.` }
    },
    mark,
    reset(values = nothing) {
      const begun = initialState(values)
      setFirst(begun)
      setState(begun)
      setLeft(new Set())
      setHasTried(false)
      setRefused(new Map())
    },
  }
}

function initialState(values: InitialValues): FormState {
  return values instanceof Map ? values : formStateOf(values as Readonly<Record<string, unknown>>) // no other map is read-only
}

function isEmpty(input: FieldInput | undefined): boolean {
  return input === undefined || (input.as !== 'value' && input.text === '')
}

/** Gives the first wrong field the focus, whenever that is asked for. */
export function useFocusOnProblem({ attempts, fields, problems, id }: ParameterFormModel): void {
  useEffect(() => {
    if (attempts === 0) return
    const first = fields.find(({ name }) => problems.has(name))
    if (first === undefined) return
    const control = document.getElementById(controlIdOf(id, first.name))
    control?.focus()
    control?.scrollIntoView({ block: 'nearest' })
    // Not as often as what is wrong changes.
  }, [attempts])
}

export function controlIdOf(formId: string, name: string): string {
  return `${formId}-${name}`
}
