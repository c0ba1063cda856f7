/** Whether the actions of tasks exist and take the input. */
import { keysOf } from '../../../lib/json/index.ts'
import { isObject, represent } from '../../../lib/schema/index.ts'
import { shown } from '../../../lib/text/index.ts'
import type { InspectionEntry } from '../types.ts'
import type { Task } from '../definition/model.ts'
import { isWord, TASK_SCHEMA_PATH } from '../definition/schema.ts'
import type { Hints } from './hints.ts'
import { isEmpty } from './parts.ts'
import type { Texts } from './texts.ts'

/** Parameters of an action and of its runner together. */
export type ActionParameters = Readonly<Record<string, { readonly required?: boolean; readonly default?: unknown }>>

/** The registered actions, as far as the caller may see them. */
export interface ActionCatalog {
  /** The parameters of an action; `hidden`: the caller may not view it; undefined: there is none of that reference. */
  parametersOf(ref: string): ActionParameters | 'hidden' | undefined
  /** References of actions, for hints. */
  refsOfPack(pack: string): readonly string[]
}

/** Paths of a place in a definition. */
export interface Place {
  readonly spec_path: string
  readonly schema_path: string
}

/** An action that a task runs. Expressions show only at run time what they give, so they are no uses. */
export interface ActionUse {
  /** Where the reference is, and where the parameters are. */
  readonly actionPlace: Place
  readonly inputPlace: Place
  readonly ref: string
  /** Whether it has the form of a reference. */
  readonly isReference: boolean
  /** Names of the parameters; undefined: an expression gives them. */
  readonly input: readonly string[] | undefined
}

export function findActionUse(task: Task, document: unknown, texts: Texts): ActionUse | undefined {
  if (!isObject(document) || !isWord(task.name)) return undefined
  const action = task.action ?? document['action']
  if (isEmpty(action)) return undefined
  const places = {
    actionPlace: { spec_path: `tasks.${task.name}.action`, schema_path: `${TASK_SCHEMA_PATH}.properties.action` },
    inputPlace: { spec_path: `tasks.${task.name}.input`, schema_path: `${TASK_SCHEMA_PATH}.properties.input` },
  }
  if (typeof action !== 'string') return { ...places, ref: represent(action), isReference: false, input: undefined }
  const { expressions, mistakes } = texts.find(action)
  if (expressions.length > 0 || mistakes.length > 0) return undefined
  const input = isEmpty(task.input) ? [] : isObject(task.input) ? keysOf(task.input) : undefined
  return { ...places, ref: action, isReference: action.includes('.'), input }
}

/** What looks like parameters behind a reference, and is none: a text without quotes, for example. */
const parametersBehind = /^\S+\s+(\w+)\s*=/

function adviceOn(ref: string, hints: Hints): { hint?: string } {
  const [, name] = parametersBehind.exec(ref) ?? []
  return name === undefined ? {} : hints.give(`Put texts behind the reference in quotes, as in ${shown(name)}="text".`)
}

export function* inspectAction(use: ActionUse, actions: ActionCatalog, hints: Hints): Generator<InspectionEntry, void> {
  const { actionPlace, inputPlace, isReference, input } = use
  const ref = shown(use.ref)
  const entry = (message: string, place: Place): InspectionEntry => ({ type: 'content', message, ...place })
  if (!isReference) {
    yield {
      ...entry(`The action reference "${ref}" is not formatted correctly.`, actionPlace),
      ...adviceOn(use.ref, hints),
    }
    return
  }
  const parameters = actions.parametersOf(use.ref)
  if (parameters === undefined) {
    const hint = /\s/.test(use.ref)
      ? adviceOn(use.ref, hints)
      : hints.of(use.ref, () => actions.refsOfPack(use.ref.slice(0, use.ref.indexOf('.'))))
    yield { ...entry(`The action "${ref}" is not registered in the database.`, actionPlace), ...hint }
    return
  }
  if (parameters === 'hidden' || input === undefined) return
  const given = new Set(input)
  for (const name of keysOf(parameters).toSorted()) {
    const { required, default: value } = parameters[name] ?? {}
    if (required !== true || value !== undefined || given.has(name)) continue
    yield entry(`Action "${ref}" is missing required input "${shown(name)}".`, inputPlace)
  }
  for (const name of [...given].sort()) {
    if (Object.hasOwn(parameters, name)) continue
    const message = `Action "${ref}" has unexpected input "${shown(name)}".`
    const found = entry(message, {
      spec_path: `${inputPlace.spec_path}.${shown(name)}`,
      schema_path: `${inputPlace.schema_path}.patternProperties.^\\w+$`,
    })
    yield { ...found, ...hints.of(name, () => keysOf(parameters)) }
  }
}
