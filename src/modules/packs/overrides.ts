/**
 * Overrides: which content of packs is enabled here, whatever the packs say (contract 02, 2.8). Files of the site, so that
 * they outlive new versions of the packs.
 */
import { join } from 'node:path'
import { compileSchema, fieldOf, isObject, type JsonSchema } from '../../lib/schema/index.ts'
import { problemAt, readMetadataFile } from '../../lib/text/index.ts'
import { factsOf } from './files.ts'
import { problemOfContainedFile } from '../../lib/files/index.ts'
import { type ContentKind, type MetadataFile, type PackContent, type PackProblem } from './read.ts'

const MAX_FILE_BYTES = 1_048_576
/** Below the base path. */
export const overridesFolder = 'overrides'
/** Its name is no valid reference of a pack. */
export const globalOverrides = '_global'

/** Kinds of content that can be overridden, and the attribute that names one. */
const namedBy = {
  actions: 'name',
  sensors: 'class_name',
  rules: 'name',
  aliases: 'name',
} as const satisfies Partial<Record<ContentKind, string>>
export type OverriddenKind = keyof typeof namedBy
export const overriddenKinds = Object.keys(namedBy) as OverriddenKind[]

interface Enabling {
  enabled?: boolean
}
type OverrideFile = Partial<
  Record<OverriddenKind, { defaults?: Enabling | null; exceptions?: Record<string, Enabling | null> | null } | null>
>

/** The content of a pack as it is to be registered, and the metadata files whose `enabled` was changed. */
export interface OverriddenContent {
  content: PackContent
  overridden: Readonly<Record<OverriddenKind, ReadonlySet<string>>>
}

export interface Overrides {
  /** What tells that the files that concern a pack have changed. */
  facts(ref: string): Promise<string>
  /**
   * Reads the files again. If one is invalid there are problems and no content: registering without what an
   * administrator wrote could enable what he has disabled.
   */
  apply(content: PackContent): Promise<OverriddenContent | { problems: PackProblem[] }>
}

const enabling: JsonSchema = {
  type: ['object', 'null'],
  additionalProperties: false,
  properties: { enabled: { type: 'boolean' } },
}
const ofKind: JsonSchema = {
  type: ['object', 'null'],
  additionalProperties: false,
  properties: { defaults: enabling, exceptions: { type: ['object', 'null'], additionalProperties: enabling } },
}
const fileSchema: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  properties: Object.fromEntries(overriddenKinds.map((kind) => [kind, ofKind])),
}

/** @param folder absolute; it need not exist */
export function createOverrides(folder: string): Overrides {
  return {
    facts: async (ref) =>
      (await Promise.all([globalOverrides, ref].map((name) => factsOf(join(folder, `${name}.yaml`))))).join(' '),

    async apply(content) {
      const [all, own] = [await read(folder, globalOverrides), await read(folder, content.ref)]
      if ('problem' in all || 'problem' in own) {
        return { problems: [all, own].flatMap((file) => ('problem' in file ? [file.problem] : [])) }
      }
      const changed: Partial<PackContent> = {}
      const overridden = {
        actions: new Set<string>(),
        sensors: new Set<string>(),
        rules: new Set<string>(),
        aliases: new Set<string>(),
      }
      for (const kind of overriddenKinds) {
        const files = content[kind].files.map((file) => {
          const enabled = enabledOf(kind, file, all.file, own.file)
          const { value } = file.document
          if (enabled === undefined || !isObject(value)) return file
          if ((value['enabled'] ?? true) !== enabled) overridden[kind].add(file.path)
          return { ...file, document: { ...file.document, value: { ...value, enabled } } }
        })
        changed[kind] = { ...content[kind], files }
      }
      return { content: { ...content, ...changed }, overridden }
    },
  }
}

/** The exception of the pack, else its default, else that of all packs; undefined: as the pack says. */
function enabledOf(
  kind: OverriddenKind,
  file: MetadataFile,
  all: OverrideFile,
  own: OverrideFile,
): boolean | undefined {
  const { value } = file.document
  const name = isObject(value) ? value[namedBy[kind]] : undefined
  const exceptions = own[kind]?.exceptions ?? {}
  const exception = typeof name === 'string' && Object.hasOwn(exceptions, name) ? exceptions[name] : undefined
  return exception?.enabled ?? own[kind]?.defaults?.enabled ?? all[kind]?.defaults?.enabled
}

async function read(folder: string, name: string): Promise<{ file: OverrideFile } | { problem: PackProblem }> {
  const shown = `${overridesFolder}/${name}.yaml`
  if ((await problemOfContainedFile(folder, `${name}.yml`)) !== 'missing') {
    return { problem: { file: `${overridesFolder}/${name}.yml`, message: `rename the file to ${name}.yaml` } }
  }
  if ((await problemOfContainedFile(folder, `${name}.yaml`)) === 'missing') return { file: {} }
  const file = await readMetadataFile(folder, `${name}.yaml`, MAX_FILE_BYTES)
  if ('problem' in file) return file.isEmpty ? { file: {} } : { problem: { ...file.problem, file: shown } }
  const { value, lineOf } = file.document
  const given = value ?? {}
  const problem = compileSchema(fileSchema).find(given)
  if (problem !== undefined) return { problem: problemAt(shown, fieldOf(problem), lineOf, problem.message) }
  return { file: given as OverrideFile } // has passed its schema
}
