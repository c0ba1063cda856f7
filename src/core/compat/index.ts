/** Compatibility with StackStorm: its names beside ours (docs/compatibility.md). */
import { asItIs, withOurExpressions, type OurDefinition } from './expressions.ts'
import { pathHere } from './paths.ts'
import { actionVariables, ourName, type NameKind } from './names.ts'

/** Whose names a request uses, and so its answer. */
export type Dialect = 'svc' | 'stackstorm'

/** The names that the server accepts. */
export interface Compat {
  /** `[compat] stackstorm` */
  readonly isOn: boolean
  /** Our name; a name that is ours or nobody's as it is, and every name while the option is off. */
  readonly ours: (kind: NameKind, name: string) => string
  /** Variables of an action, with those that StackStorm's actions read. */
  readonly environment: (own: Readonly<Record<string, string>>) => Record<string, string>
  /** A path of StackStorm's folders below our base path; another one, and every one while the option is off, as it is. */
  readonly path: (basePath: string, path: string) => string
  /** The definition of a workflow or action chain with our names in its expressions. */
  readonly definition: (text: string) => OurDefinition
}

export const createCompat = (isOn: boolean): Compat => ({
  isOn,
  ours: (kind, name) => (isOn ? ourName(kind, name) : undefined) ?? name,
  path: (basePath, path) => (isOn ? pathHere(basePath, path) : undefined) ?? path,
  definition: (text) => (isOn ? withOurExpressions(text) : asItIs(text)),
  environment(own) {
    if (!isOn) return { ...own }
    const copies = actionVariables.flatMap(([old, name]) => {
      const value = own[name]
      return value === undefined ? [] : [[old, value] as const]
    })
    return { ...own, ...Object.fromEntries(copies) }
  },
})

/**
 * Variable of the environment that says that the program was called by a name of StackStorm, to what it starts. A
 * configuration that says something else wins.
 */
export const calledAsStackstorm = 'SVC_CALLED_AS_STACKSTORM'

/** While `[compat] stackstorm` is off. */
export const noCompat: Compat = createCompat(false)

export {
  adviceOnName,
  builtinTriggerNames,
  clientVariables,
  isTheirEventPattern,
  nameHere,
  namesOf,
  ourEvent,
  ourEventPattern,
  ourName,
  theirEvent,
  theirName,
  type NameKind,
} from './names.ts'
export { entryPointHere, isTheirPython, pathHere } from './paths.ts'
export type { OurDefinition } from './expressions.ts'
export { adviceOnQueryValue, jsonWithTheirNames, ourText, withOurNames, withTheirNames } from './records.ts'
