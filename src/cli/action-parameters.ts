/** Parameters of an action, as those who run it see them. */
import { nearestNumber } from '../lib/json/index.ts'
import { toObject } from './connection/responses.ts'

export interface ActionParameter {
  name: string
  schema: Readonly<Record<string, unknown>>
}

/**
 * The parameters that can be given: first those that must be, then the others; each by position, then by name (contract
 * 09, 9.4).
 *
 * @param view what the server answers about them, with `parameters`
 */
export function parametersOf(view: Readonly<Record<string, unknown>>): ActionParameter[] {
  return Object.entries(toObject(view['parameters']))
    .map(([name, schema]) => ({ name, schema: toObject(schema) }))
    .filter(({ schema }) => schema['immutable'] !== true)
    .toSorted(compare)
}

/** Whether the action cannot be run without this parameter. */
export function mustBeGiven({ schema }: ActionParameter): boolean {
  return schema['required'] === true && (schema['default'] === undefined || schema['default'] === null)
}

function compare(a: ActionParameter, b: ActionParameter): number {
  if (mustBeGiven(a) !== mustBeGiven(b)) return mustBeGiven(a) ? -1 : 1
  const [first, second] = [positionOf(a), positionOf(b)]
  if (first !== second) return first - second
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0
}

function positionOf({ schema }: ActionParameter): number {
  const position = nearestNumber(schema['position'])
  return typeof position === 'number' ? position : Number.POSITIVE_INFINITY
}
