/** Reading a pack folder (contract 02, 2.7 and 2.8). Nothing outside of the folder is read, nothing in it is run. */
import { basename, resolve } from 'node:path'
import { shown } from '../../errors.ts'
import { listFiles, problemAt, readMetadataFile, type FileProblem, type MetadataDocument } from '../../metadata.ts'
import { compileSchema, isObject, type JsonSchema } from '../../schema.ts'

const MAX_FILE_BYTES = 1_048_576
const MAX_FILES = 5_000

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
export const contentKinds = ['triggers', 'actions', 'rules'] as const

export type ContentKind = (typeof contentKinds)[number]

export interface PackContent extends Record<ContentKind, MetadataFolder> {
  folder: string
  ref: string
  manifest: PackManifest
  problems: PackProblem[]
}

const manifestSchema: JsonSchema = {
  type: 'object',
  required: ['name', 'description', 'version', 'author'],
  properties: {
    name: { type: 'string', minLength: 1, maxLength: 255 },
    ref: { type: 'string', pattern: '^[a-z0-9_]+$', maxLength: 255 },
    description: { type: 'string' },
    version: { type: 'string', pattern: '^(0|[1-9]\\d*)\\.(0|[1-9]\\d*)\\.(0|[1-9]\\d*)([-+][0-9A-Za-z.+-]+)?$' },
    author: { type: 'string' },
    email: { type: ['string', 'null'], format: 'email' },
    keywords: { type: 'array', items: { type: 'string' } },
    svc_version: {
      type: 'string',
      pattern:
        '^\\s*((>=|>|<=|<|==|=|!=)?\\s*[0-9][0-9A-Za-z.+-]*)(\\s*,\\s*(>=|>|<=|<|==|=|!=)?\\s*[0-9][0-9A-Za-z.+-]*)*\\s*$',
    },
    python_versions: { type: 'array', items: { enum: ['2', '3'] } },
    dependencies: { type: 'array', items: { type: 'string' } },
    contributors: { type: 'array', items: { type: 'string' } },
    system: { type: 'object' },
  },
}

/**
 * Reads a pack. A broken file costs only what it defines; without a usable manifest, or with a folder that cannot be
 * read, there is no pack, and only problems come back.
 */
export async function readPack(folder: string): Promise<PackContent | { problems: PackProblem[] }> {
  const problems: PackProblem[] = []
  const manifest = await readManifest(folder, problems)
  if (manifest === undefined) return { problems }
  const triggers = await readMetadataFolder(folder, 'triggers', problems)
  const actions = await readMetadataFolder(folder, 'actions', problems)
  const rules = await readMetadataFolder(folder, 'rules', problems)
  if (triggers === undefined || actions === undefined || rules === undefined) return { problems }
  return { folder, ref: manifest.ref, manifest: manifest.manifest, triggers, actions, rules, problems }
}

async function readManifest(
  folder: string,
  problems: PackProblem[],
): Promise<{ ref: string; manifest: PackManifest } | undefined> {
  const file = await readMetadata(folder, 'pack.yaml', problems)
  if (file === undefined) return undefined
  const { value, lineOf } = file.document
  // An empty address is how generated manifests leave it out.
  const given = isObject(value) && value['email'] === '' ? { ...value, email: null } : value
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
  return { ref: manifest.ref ?? directory, manifest }
}

/**
 * All metadata files directly in a folder of the pack, in the order of their names. A missing folder is an empty one;
 * undefined when nobody can say what is in it.
 */
async function readMetadataFolder(
  folder: string,
  name: ContentKind,
  problems: PackProblem[],
): Promise<MetadataFolder | undefined> {
  const listed = await listFiles(folder, name, problems)
  if (listed === undefined) return undefined
  const names = listed.filter((file) => /\.(yaml|json)$/.test(file))
  if (names.length > MAX_FILES) {
    problems.push({ file: name, message: `the folder has more than ${MAX_FILES} metadata files; the rest is left out` })
  }
  const files: MetadataFile[] = []
  for (const fileName of names.slice(0, MAX_FILES)) {
    const file = await readMetadata(folder, `${name}/${fileName}`, problems)
    if (file !== undefined) files.push(file)
  }
  return { files, paths: new Set(names.map((fileName) => `${name}/${fileName}`)) }
}

async function readMetadata(folder: string, path: string, problems: PackProblem[]): Promise<MetadataFile | undefined> {
  const file = await readMetadataFile(folder, path, MAX_FILE_BYTES)
  if ('document' in file) return { path, document: file.document }
  problems.push(file.problem)
  return undefined
}
