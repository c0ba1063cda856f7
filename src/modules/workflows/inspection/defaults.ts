import { entriesOf } from '../../../lib/json/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import { shown } from '../../../lib/text/index.ts'
import type { InspectionEntry } from '../types.ts'

/** An input variable with a default. */
export interface InputDefault {
  readonly name: string
  /** In the list of inputs. */
  readonly index: number
}

export function findInputDefaults({ input }: Readonly<Record<string, unknown>>): InputDefault[] {
  if (!Array.isArray(input)) return []
  return (input as unknown[]).flatMap((item, index) =>
    isObject(item) ? entriesOf(item).flatMap(([name, value]) => (value === null ? [] : [{ name, index }])) : [],
  )
}

/** A parameter of the action has a value, if only null, and it takes the place of the default. */
export function* inspectDefaults(
  defaults: readonly InputDefault[],
  action: { readonly ref: string; readonly parameters: Readonly<Record<string, unknown>> },
): Generator<InspectionEntry, void> {
  for (const { name, index } of defaults) {
    if (!Object.hasOwn(action.parameters, name)) continue
    yield {
      type: 'warning',
      message: `The default of "${shown(name)}" has no effect, because it is a parameter of the action "${action.ref}". Set the default there.`,
      spec_path: `input[${index}]`,
      schema_path: 'properties.input',
    }
  }
}
