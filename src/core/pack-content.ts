/**
 * What the definitions of every content kind in packs share: common attributes, validation, and the records to delete.
 */
import { posix } from 'node:path'
import { dump } from 'js-yaml'
import { createPause } from '../lib/concurrency/index.ts'
import { writeJson } from '../lib/json/index.ts'
import { canonical, isObject, type JsonSchema, type SchemaProblem } from '../lib/schema/index.ts'
import { exactDumpSchema, readYamlDocument } from '../lib/text/index.ts'

/** The pack of content that is created through the API without a pack. */
export const defaultPack = 'default'

export const MAX_NAME_CHARS = 255

/** Attributes of every definition. */
export const nameSchema: JsonSchema = {
  type: 'string',
  maxLength: MAX_NAME_CHARS,
  // Any text that can be seen and be part of a file name, without blanks at its ends.
  pattern: '^[^\\s\\p{C}./\\\\](?:[^\\p{Zl}\\p{Zp}\\p{C}/\\\\]*[^\\s\\p{C}/\\\\])?$',
}
export const packSchema: JsonSchema = { type: 'string', maxLength: MAX_NAME_CHARS, pattern: '^[a-z0-9_-]+$' }
export const descriptionSchema: JsonSchema = { type: ['string', 'null'], maxLength: 65_536 }
/**
 * Attributes that the incumbent's API adds to a record, so that files made from its answers have them. svc derives or sets
 * them itself.
 */
export const exportedSchemas: Readonly<Record<'id' | 'uid' | 'ref' | 'metadata_file', JsonSchema>> = {
  id: {},
  uid: {},
  ref: {},
  metadata_file: {},
}
export const tagsSchema: JsonSchema = {
  type: ['array', 'null'],
  maxItems: 100,
  items: {
    type: 'object',
    additionalProperties: false,
    required: ['name', 'value'],
    properties: { name: { type: 'string' }, value: { type: 'string' } },
  },
}

/**
 * The file of an entry point, relative to the folder of the pack, such as `actions/run.sh` and, of `../lib/run.sh`,
 * `lib/run.sh`. Undefined: it lies outside of the pack, or is no path.
 */
export function entryPointFile(kind: 'actions' | 'sensors', entryPoint: string): string | undefined {
  const path = posix.join(kind, entryPoint)
  const isOutside = entryPoint.startsWith('/') || path === '..' || path.startsWith('../') || entryPoint.includes('\0')
  return isOutside ? undefined : path
}

/** The definitions in one folder of a pack. */
export interface PackDefinitions {
  pack: string
  /** Absolute path of the folder that was read. Absent: the files are not considered. */
  folder?: string
  definitions: readonly { metadataFile: string; definition: unknown }[]
  /** Every metadata file in the folder. Records of a broken file stay, records of a missing file are deleted. */
  metadataFiles: ReadonlySet<string>
  /** Files with problems or warnings when they were registered last: they are checked again, also unchanged ones. */
  remarked?: ReadonlySet<string>
  /**
   * Whether a definition is enabled, whatever its file says; undefined, or absent: as the file says.
   *
   * @param registered whether its record is; undefined: there is none
   */
  enabledOf?: ((metadataFile: string, name: string, registered: boolean | undefined) => boolean | undefined) | undefined
}

export interface RegistrationProblem extends SchemaProblem {
  metadataFile: string
  /** The definition is registered all the same. */
  isWarning?: true
}

/** The outcome of a registration. */
export interface Registration {
  registered: number
  removed: number
  problems: RegistrationProblem[]
}

/** What every definition has. */
interface Named {
  pack: string
  name: string
  metadata_file?: string
}

type CheckedDefinition<D> = { definition: D; warnings?: readonly SchemaProblem[] } | { problems: SchemaProblem[] }

/**
 * The valid definitions with their files; the last of equal names counts. Others work between two definitions.
 *
 * @param kind for messages: `Action`
 * @param check validates a definition as its author wrote it
 */
export async function checkPackDefinitions<D extends Named>(
  { pack, definitions }: PackDefinitions,
  kind: string,
  check: (given: unknown, metadataFile: string) => CheckedDefinition<D> | Promise<CheckedDefinition<D>>,
): Promise<{ definitions: D[]; problems: RegistrationProblem[] }> {
  const pause = createPause()
  const good = new Map<string, D>()
  const problems: RegistrationProblem[] = []
  for (const { metadataFile, definition: given } of definitions) {
    await pause()
    const checked = await check(withoutEmptyPack(given), metadataFile)
    if ('problems' in checked) {
      problems.push(...checked.problems.map((problem) => ({ ...problem, metadataFile })))
      continue
    }
    const definition = { ...checked.definition, metadata_file: metadataFile }
    const same = good.get(definition.name)
    if (definition.pack !== pack) {
      const message = `The ${kind.toLowerCase()} says pack "${definition.pack}" but belongs to pack "${pack}".`
      problems.push({ metadataFile, path: ['pack'], message })
      continue
    }
    for (const warning of checked.warnings ?? []) problems.push({ ...warning, metadataFile, isWarning: true })
    if (same !== undefined && writeJson({ ...same, metadata_file: metadataFile }) !== writeJson(definition)) {
      const message = `${kind} "${pack}.${definition.name}" is defined in ${same.metadata_file ?? 'another file'} as well; this file counts.`
      problems.push({ metadataFile, path: ['name'], message, isWarning: true })
    }
    good.delete(definition.name)
    good.set(definition.name, definition)
  }
  return { definitions: [...good.values()], problems }
}

/** An empty one says nothing. */
export function withoutEmptyPack(given: unknown): unknown {
  if (!isObject(given) || given['pack'] !== '') return given
  const { pack: _, ...others } = given
  return others
}

/** A definition as it is registered: enabled as `enabledOf` says. @param before its record */
export function asEnabled<D extends Named & { enabled: boolean }>(
  { enabledOf }: PackDefinitions,
  definition: D,
  before: { enabled: boolean } | undefined,
): D {
  const enabled = enabledOf?.(definition.metadata_file ?? '', definition.name, before?.enabled)
  return enabled === undefined ? definition : { ...definition, enabled }
}

/** Whether the record's file is missing or now defines another name. */
export function isGone(
  { name, metadata_file: file }: Pick<Named, 'name' | 'metadata_file'>,
  { metadataFiles }: PackDefinitions,
  definitions: readonly Pick<Named, 'name' | 'metadata_file'>[],
): boolean {
  if (file === undefined || definitions.some((definition) => definition.name === name)) return false
  return !metadataFiles.has(file) || definitions.some(({ metadata_file }) => metadata_file === file)
}

export interface PackConfig {
  values: Record<string, unknown>
  /** Why the file of the configuration is not used. Undefined: it is, or there is none. */
  problem?: string
  /** A sentence: why the file is not used, and that the values are those of before. */
  remark?: string
  /** Secret values at any depth, to be masked. */
  secrets: readonly unknown[]
  /** A copy of the values with what `replace` gives in the place of each secret. @param replace gets its path */
  withoutSecrets(replace: (path: readonly string[]) => unknown): Record<string, unknown>
}

/**
 * YAML that registration reads as the same value.
 *
 * @returns undefined when registration would not read it, because its text is longer or it has too many parts
 */
export function yamlTextOf(value: Readonly<Record<string, unknown>>, maxBytes: number): string | undefined {
  return [dump(value, { schema: exactDumpSchema, noRefs: true, lineWidth: -1 }), `${writeJson(value, 2)}\n`].find(
    (text) => {
      if (Buffer.byteLength(text) > maxBytes) return false
      const read = readYamlDocument(text)
      return 'value' in read && canonical(read.value) === canonical(value)
    },
  )
}
