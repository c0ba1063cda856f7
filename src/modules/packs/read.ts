/** Reading a pack folder (contract 02, 2.7 and 2.8). Nothing outside of the folder is read, nothing in it is run. */
import { readdir } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { readContainedFile } from '../../contained-file.ts'
import { shown } from '../../errors.ts'
import { compileSchema, isObject, type JsonSchema } from '../../schema.ts'
import { readJson, readYaml, type MetadataDocument } from './yaml.ts'

const MAX_FILE_BYTES = 1_048_576
const MAX_FILES = 5_000

/** What is wrong, where: with these an author finds the place. */
export interface PackProblem {
  /** Relative to the pack. */
  file: string
  line?: number
  /** Dotted path of the key. */
  key?: string
  message: string
}

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

export interface PackContent {
  folder: string
  ref: string
  manifest: PackManifest
  actions: MetadataFile[]
  /** Every metadata file of `actions`, broken ones included. */
  actionPaths: ReadonlySet<string>
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
  const actions = await readMetadataFolder(folder, 'actions', problems)
  if (actions === undefined) return { problems }
  return {
    folder,
    ref: manifest.ref,
    manifest: manifest.manifest,
    actions: actions.files,
    actionPaths: actions.paths,
    problems,
  }
}

async function readManifest(
  folder: string,
  problems: PackProblem[],
): Promise<{ ref: string; manifest: PackManifest } | undefined> {
  const file = await readMetadataFile(folder, 'pack.yaml', problems)
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
  name: string,
  problems: PackProblem[],
): Promise<{ files: MetadataFile[]; paths: Set<string> } | undefined> {
  const listed = await listNames(folder, name, problems)
  if (listed === undefined) return undefined
  const names = listed.filter(isMetadataName).sort()
  if (names.length > MAX_FILES) {
    problems.push({ file: name, message: `the folder has more than ${MAX_FILES} metadata files; the rest is left out` })
  }
  const files: MetadataFile[] = []
  for (const fileName of names.slice(0, MAX_FILES)) {
    const file = await readMetadataFile(folder, `${name}/${fileName}`, problems)
    if (file !== undefined) files.push(file)
  }
  return { files, paths: new Set(names.map((fileName) => `${name}/${fileName}`)) }
}

function isMetadataName(name: string): boolean {
  return !name.startsWith('.') && /\.(yaml|json)$/.test(name)
}

async function listNames(folder: string, name: string, problems: PackProblem[]): Promise<string[] | undefined> {
  try {
    const entries = await readdir(resolve(folder, name), { withFileTypes: true })
    return entries.filter((entry) => !entry.isDirectory()).map((entry) => entry.name)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    problems.push({ file: name, message: 'the folder cannot be read' })
    return undefined
  }
}

async function readMetadataFile(
  folder: string,
  path: string,
  problems: PackProblem[],
): Promise<MetadataFile | undefined> {
  const file = await readContainedFile(folder, path, MAX_FILE_BYTES)
  if ('problem' in file) {
    problems.push({ file: path, message: fileProblems[file.problem] })
    return undefined
  }
  const document = path.endsWith('.json') ? readJson(file.text) : readYaml(file.text)
  if ('problem' in document) {
    problems.push({ file: path, ...document.problem })
    return undefined
  }
  return { path, document }
}

const fileProblems = {
  missing: 'the file is missing',
  outside: 'the file lies outside of the pack; links may not lead out of it',
  unreadable: 'the file cannot be read',
  'not a file': 'this is not a regular file',
  'too large': `the file is larger than ${MAX_FILE_BYTES} bytes`,
  'not UTF-8': 'the file is not valid UTF-8',
} as const

/** @param path keys on the way to the value the message is about */
export function problemAt(
  file: string,
  path: readonly string[],
  lineOf: MetadataDocument['lineOf'],
  message: string,
): PackProblem {
  const line = lineOf(path)
  return {
    file,
    ...(line === undefined ? {} : { line }),
    ...(path.length === 0 ? {} : { key: shown(path.join('.')) }),
    message,
  }
}

/** `actions/local.yaml:12 (parameters.cmd): <message>` */
export function describeProblem({ file, line, key, message }: PackProblem): string {
  return `${file}${line === undefined ? '' : `:${line}`}${key === undefined ? '' : ` (${key})`}: ${message}`
}
