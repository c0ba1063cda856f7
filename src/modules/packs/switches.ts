/** Which content of a pack is enabled: as its files say, or as somebody has switched it since (docs/decisions.md). */
import { isObject } from '../../lib/schema/index.ts'
import type { PackDefinitions } from '../../core/pack-content.ts'
import type { ContentKind, PackContent } from './read.ts'
import type { PackSwitches } from './types.ts'

/** Kinds of content that can be enabled and disabled. */
export const switchedKinds = ['actions', 'sensors', 'rules', 'aliases', 'policies'] as const
export type SwitchedKind = (typeof switchedKinds)[number]

export interface Switching {
  /** What is registered stays as it is, unless its file says something else than when it was registered last. */
  keeps: boolean
  /** By kind and reference, whatever the files say. */
  given: PackSwitches
}

export const asFilesSay: Switching = { keeps: false, given: {} }
export const asSwitched: Switching = { keeps: true, given: {} }

export const isSwitched = (kind: ContentKind): kind is SwitchedKind =>
  (switchedKinds as readonly string[]).includes(kind)

/** Metadata files that disable what they define, of some kinds; unreadable ones are as they were. */
export function disabledFilesOf(
  content: PackContent,
  kinds: ReadonlySet<string>,
  before: ReadonlySet<string> | undefined,
): string[] {
  const disabled = switchedKinds.flatMap((kind) => {
    const { files, paths } = content[kind]
    if (!kinds.has(kind)) return [...(before ?? [])].filter((path) => paths.has(path))
    const readable = new Map(files.map(({ path, document }) => [path, document.value]))
    return [...paths].filter((path) =>
      readable.has(path) ? isDisabledIn(kind, readable.get(path)) : before?.has(path) === true,
    )
  })
  return [...new Set(disabled)].toSorted()
}

/** Rules are disabled unless they say otherwise. */
function isDisabledIn(kind: SwitchedKind, value: unknown): boolean {
  const said = isObject(value) ? value['enabled'] : undefined
  return !(typeof said === 'boolean' ? said : kind !== 'rules')
}

/** @param before files that disabled what they define when the pack was registered last; undefined: not known */
export function switchesOf(
  content: PackContent,
  kind: ContentKind,
  { keeps, given }: Switching,
  before: ReadonlySet<string> | undefined,
): PackDefinitions['enabledOf'] {
  if (!isSwitched(kind)) return undefined
  const values = new Map(content[kind].files.map(({ path, document }) => [path, document.value]))
  const ofKind = given[kind] ?? {}
  return (path, name, registered) => {
    const ref = `${content.ref}.${name}`
    if (Object.hasOwn(ofKind, ref)) return ofKind[ref]
    if (!keeps || registered === undefined) return undefined
    const isSame = before === undefined || before.has(path) === isDisabledIn(kind, values.get(path))
    return isSame ? registered : undefined
  }
}
