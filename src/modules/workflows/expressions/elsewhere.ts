/** What StackStorm calls something that has another name here. */

import { ourName } from '../../../core/compat/index.ts'

/** Our name of a function; undefined: StackStorm has none of that name, or it is the same here */
export const ourFunction = (name: string): string | undefined => ourName('workflowFunction', name)

/** Our name of a variable, as `ourFunction`. */
export const ourVariable = (name: string): string | undefined => ourName('workflowVariable', name)

const unknownName = /^(?:Unknown function|The variable) "(\w+)"|^'(\w+)' is undefined$/

/** A sentence to put behind the detail of an error about an unknown name; empty if we have no other name for it. */
export function adviceOn(detail: string): string {
  const [, quoted, single] = unknownName.exec(detail) ?? []
  const name = quoted ?? single ?? ''
  const ours = ourFunction(name) ?? ourVariable(name)
  return ours === undefined ? '' : `${detail.endsWith('.') ? '' : '.'} Its name here is "${ours}".`
}
