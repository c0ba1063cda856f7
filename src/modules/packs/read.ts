/** Reading a pack folder (contract 02, 2.7 and 2.8). Nothing outside of the folder is read, nothing in it is run. */
import { basename, resolve } from 'node:path'
import { entryPointFile } from '../../core/pack-content.ts'
import { problemOfContainedFile } from '../../lib/files/index.ts'
import {
  listFiles,
  problemAt,
  readMetadataFile,
  whyUnreadable,
  type FileProblem,
  type MetadataDocument,
  shown,
} from '../../lib/text/index.ts'
import { compileSchema, isObject, type JsonSchema } from '../../lib/schema/index.ts'
const MAX_FILE_BYTES = 1_048_576
/** Metadata files of one kind. */
const MAX_FILES = 5_000
/** Of all metadata files of a pack. */
const MAX_BYTES = 33_554_432

/** Its file is relative to the pack. */
export type PackProblem = FileProblem

/** `pack.yaml`; other keys are allowed and kept. */
export interface PackManifest {
  name: string
  ref?: string
  description: string
  version: string
  author: string
  [key: string]: unknown
}

export interface MetadataFile {
  /** Relative to the pack, e.g. `actions/local.yaml`. */
  path: string
  document: MetadataDocument
}

export interface MetadataFolder {
  /** Those that can be used. */
  files: MetadataFile[]
  /** Every metadata file, broken ones included. */
  paths: ReadonlySet<string>
}

/** What packs define by files in a folder of that name; what stands before may be named by what stands behind. */
export const contentKinds = ['triggers', 'sensors', 'actions', 'rules', 'aliases', 'policies'] as const

/** Folders whose files count: destinations of notifications have no records. */
export const metadataFolders: readonly string[] = [...contentKinds, 'notifications']

export type ContentKind = (typeof contentKinds)[number]

export const manifestFile = 'pack.yaml'
export const configSchemaFile = 'config.schema.yaml'

export const isMetadataFile = (name: string): boolean => /\.(ya?ml|json)$/.test(name) && !name.startsWith('.')

export interface PackContent extends Record<ContentKind, MetadataFolder> {
  folder: string
  ref: string
  manifest: PackManifest
  /** Undefined: there is none; `broken`: it cannot be parsed. */
  configSchema: MetadataFile | 'broken' | undefined
  problems: PackProblem[]
}

const texts: JsonSchema = { type: ['array', 'null'], maxItems: 1_000, items: { type: 'string', maxLength: 1_024 } }

const manifestSchema: JsonSchema = {
  type: 'object',
  required: ['name', 'description', 'version', 'author'],
  properties: {
    name: { type: 'string', maxLength: 255 },
    ref: { type: 'string', pattern: '^[a-z0-9_]+$', maxLength: 255 },
    description: { type: 'string', maxLength: 65_536 },
    version: { type: 'string', pattern: '^(0|[1-9]\\d*)\\.(0|[1-9]\\d*)\\.(0|[1-9]\\d*)([-+][0-9A-Za-z.+-]+)?$' },
    author: { type: 'string', maxLength: 1_024 },
    email: { type: ['string', 'null'], format: 'email' },
    keywords: texts,
    svc_version: {
      type: 'string',
      pattern:
        '^\\s*((>=|>|<=|<|==|=|!=)?\\s*[0-9][0-9A-Za-z.+-]*)(\\s*,\\s*(>=|>|<=|<|==|=|!=)?\\s*[0-9][0-9A-Za-z.+-]*)*\\s*$',
    },
    python_versions: { type: 'array', items: { enum: ['2', '3'] } },
    dependencies: texts,
    contributors: texts,
    system: { type: 'object' },
    icon: { type: 'string', pattern: '^[\\p{L}\\p{N}_][\\p{L}\\p{N}_. /-]*$', maxLength: 255 },
  },
}

/**
 * Reads a pack. A broken file costs only what it defines; without a usable manifest, or with a folder that cannot be
 * read, there is no pack, and only problems come back.
 */
export async function readPack(folder: string): Promise<PackContent | { problems: PackProblem[] }> {
  const problems: PackProblem[] = []
  const allowance: Allowance = { bytes: MAX_BYTES, isTold: false }
  const manifest = await readManifest(folder, problems, allowance)
  if (manifest === undefined) return { problems }
  const folders: Partial<Record<ContentKind, MetadataFolder>> = {}
  for (const kind of contentKinds) {
    const read = await readMetadataFolder(folder, kind, problems, allowance)
    if (read === undefined) return { problems }
    folders[kind] = read
  }
  const read = folders as Record<ContentKind, MetadataFolder> // all of them were read
  for (const kind of ['sensors', 'actions'] as const)
    read[kind] = await withEntryPoints(folder, kind, read[kind], problems)
  return {
    folder,
    ...manifest,
    ...read,
    configSchema: await readConfigSchema(folder, problems, allowance),
    problems,
  }
}

/** What may still be read of a pack. */
interface Allowance {
  bytes: number
  isTold: boolean
}

async function readManifest(
  folder: string,
  problems: PackProblem[],
  allowance: Allowance,
): Promise<{ ref: string; manifest: PackManifest } | undefined> {
  if (await problemOfOtherName(folder, manifestFile, problems)) return undefined
  const file = await readMetadata(folder, manifestFile, problems, allowance)
  if (file === undefined) return undefined
  const { value, lineOf } = file.document
  // Generated manifests leave something out in this way.
  const given = isObject(value) ? withoutEmpty(value) : value
  const problem = compileSchema(manifestSchema).find(given)
  if (problem !== undefined) {
    problems.push(problemAt(file.path, problem.path, lineOf, problem.message))
    return undefined
  }
  const manifest = given as PackManifest // has passed its schema
  const directory = basename(resolve(folder))
  if (manifest.ref === undefined && !/^[a-z0-9_]+$/.test(directory)) {
    problems.push({
      file: file.path,
      key: 'ref',
      message: `ref is needed, because the name of the folder, "${shown(directory)}", cannot be one: use lower case letters, digits and "_"`,
    })
    return undefined
  }
  const ref = manifest.ref ?? directory
  if (ref === RESERVED_REF) {
    problems.push({
      file: file.path,
      key: 'ref',
      message: `"${RESERVED_REF}" is reserved for the overrides of all packs`,
    })
    return undefined
  }
  return { ref, manifest }
}

/** Of `overrides/_global.yaml`. */
const RESERVED_REF = '_global'

function withoutEmpty(manifest: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(manifest).filter(
      ([key, value]) => !(['email', 'ref'].includes(key) && (value === '' || value === null)),
    ),
  )
}

async function readConfigSchema(
  folder: string,
  problems: PackProblem[],
  allowance: Allowance,
): Promise<PackContent['configSchema']> {
  if (await problemOfOtherName(folder, configSchemaFile, problems)) return 'broken'
  if ((await problemOfContainedFile(folder, configSchemaFile)) === 'missing') return undefined
  return (await readMetadata(folder, configSchemaFile, problems, allowance)) ?? 'broken'
}

/**
 * These files have one name, which ends in `.yaml`: one that ends in `.yml` would be ignored.
 *
 * @returns whether there is one, which is now among the problems
 */
async function problemOfOtherName(folder: string, name: string, problems: PackProblem[]): Promise<boolean> {
  const other = name.replace(/yaml$/, 'yml')
  if ((await problemOfContainedFile(folder, other)) === 'missing') return false
  const isBoth = (await problemOfContainedFile(folder, name)) !== 'missing'
  const message = isBoth ? `${name} and ${other} are both there: delete ${other}` : `rename the file to ${name}`
  problems.push({ file: other, message })
  return true
}

/**
 * All metadata files directly in a folder of the pack, in the order of their names. A missing folder is an empty one;
 * undefined when nobody can say what is in it.
 */
async function readMetadataFolder(
  folder: string,
  name: ContentKind,
  problems: PackProblem[],
  allowance: Allowance,
): Promise<MetadataFolder | undefined> {
  const listed = await listFiles(folder, name, problems)
  if (listed === undefined) return undefined
  const names = listed.filter(isMetadataFile)
  if (names.length > MAX_FILES) {
    problems.push({ file: name, message: `the folder has more than ${MAX_FILES} metadata files; the rest is left out` })
  }
  const files: MetadataFile[] = []
  for (const fileName of names.slice(0, MAX_FILES)) {
    const file = await readMetadata(folder, `${name}/${fileName}`, problems, allowance)
    if (file !== undefined) files.push(file)
  }
  return { files, paths: new Set(names.map((fileName) => `${name}/${fileName}`)) }
}

async function readMetadata(
  folder: string,
  path: string,
  problems: PackProblem[],
  allowance: Allowance,
): Promise<MetadataFile | undefined> {
  if (allowance.bytes <= 0) {
    if (!allowance.isTold) {
      problems.push({
        file: path,
        message: `the metadata files of the pack are larger than ${MAX_BYTES} bytes together`,
      })
    }
    allowance.isTold = true
    return undefined
  }
  const file = await readMetadataFile(folder, path, MAX_FILE_BYTES)
  if ('document' in file) {
    allowance.bytes -= file.bytes
    for (const { message, effect, line } of file.document.warnings)
      problems.push({ file: path, line, message: `${message}; ${effect}`, isWarning: true })
    return { path, document: file.document }
  }
  problems.push(file.problem)
  return undefined
}

/** Without those that name a file outside. What names a file that is not there fails when it runs, and is warned of now. */
async function withEntryPoints(
  folder: string,
  kind: 'actions' | 'sensors',
  { files, paths }: MetadataFolder,
  problems: PackProblem[],
): Promise<MetadataFolder> {
  const good: MetadataFile[] = []
  for (const file of files) {
    const { value, lineOf } = file.document
    const entryPoint = isObject(value) ? value['entry_point'] : undefined
    // What is no text, or no path in the pack, is told by whoever checks the definition.
    const path = typeof entryPoint === 'string' && entryPoint !== '' ? entryPointFile(kind, entryPoint) : undefined
    const problem = path === undefined ? undefined : await problemOfContainedFile(folder, path)
    if (problem !== 'outside') good.push(file)
    if (problem === undefined) continue
    const why = `entry_point: "${shown(entryPoint)}" below ${kind}/: ${whyUnreadable(problem)}`
    const tell = (message: string): PackProblem => problemAt(file.path, ['entry_point'], lineOf, message)
    const what = kind === 'actions' ? 'the action' : 'the sensor'
    problems.push(
      problem === 'outside' ? tell(why) : { ...tell(`${why}; ${what} fails when it runs`), isWarning: true },
    )
  }
  return { files: good, paths }
}
