/** What StackStorm calls something that has another name here. */

const functions: ReadonlyMap<string, string> = new Map([['st2kv', 'svckv']])
const variables: ReadonlyMap<string, string> = new Map([['st2', 'svc']])

/** Our name of a function; undefined: StackStorm has none of that name, or it is the same here */
export const ourFunction = (name: string): string | undefined => functions.get(name)

/** Our name of a variable, as `ourFunction`. */
export const ourVariable = (name: string): string | undefined => variables.get(name)

const unknownName = /^(?:Unknown function|The variable) "(\w+)"|^'(\w+)' is undefined$/

/** A sentence to put behind the detail of an error about an unknown name; empty if we have no other name for it. */
export function adviceOn(detail: string): string {
  const [, quoted, single] = unknownName.exec(detail) ?? []
  const name = quoted ?? single ?? ''
  const ours = ourFunction(name) ?? ourVariable(name)
  return ours === undefined ? '' : `${detail.endsWith('.') ? '' : '.'} Its name here is "${ours}".`
}
