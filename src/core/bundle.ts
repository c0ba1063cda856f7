/**
 * Locates the parts of the program apart from its modules: threads, helper programs, folders, files. In the source tree
 * they lie beside their users, in `dist/` beside the bundle, and in the single executable inside it (docs/install.md).
 * Only this file knows the difference.
 */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker, type WorkerOptions } from 'node:worker_threads'
import { placeAddons } from './native-addon.ts'

/** Prefix of addresses inside the executable; its build sets `import.meta.url` to them. */
const INSIDE = 'sea:'
/** Prefix of the first argument that runs the executable as one of its helper programs: `__send-mail`. */
const HELPER_PREFIX = '__'
/**
 * Lists the files that the executable must write to a folder before other programs can read them; its build makes it.
 */
const UNPACKED = 'unpacked.json'

interface Unpacked {
  /** Of paths, modes and content. */
  hash: string
  /** Path → permission bits. */
  files: Record<string, number>
}

/**
 * @param source relative to the importing file
 * @param built relative to `dist/`
 * @param from `import.meta.url` of the importing file
 */
export function locatePart(source: string, built: string, from: string): URL {
  return new URL(from.endsWith('.ts') ? source : built, from)
}

let builtCode: URL | undefined

/** For tests: threads and helper programs of the source tree run from this build, where they load in less time. */
export function useBuiltCode(folder: URL): void {
  builtCode = folder
}

/** A thread or helper program, for which `build.mjs` has an entry. @param name without an ending: `./crypt-thread` */
export function locateCode(name: string, from: string): URL {
  const built = `${basename(name)}.js`
  return builtCode === undefined ? locatePart(`${name}.ts`, built, from) : new URL(built, builtCode)
}

export function startWorker(code: URL, options: WorkerOptions): Worker {
  if (code.protocol !== INSIDE) return new Worker(code, options)
  placeAddons()
  return new Worker(readText(nameOf(code)), { ...options, eval: true })
}

export interface HelperCommand {
  file: string
  /** Arguments of Node, none in the single executable. SIGUSR1 opens no debugger, through which passwords could be read. */
  flags: readonly string[]
  /** The argument before all others. */
  program: string
}

/** The command that runs a helper program. */
export function commandOf(code: URL): HelperCommand {
  if (code.protocol !== INSIDE) {
    return { file: process.execPath, flags: ['--disable-sigusr1'], program: fileURLToPath(code) }
  }
  return { file: process.execPath, flags: [], program: HELPER_PREFIX + nameOf(code).replace(/\.js$/, '') }
}

/** The source of the helper program that an argument of the single executable names. */
export function findHelper(argument: string | undefined): string | undefined {
  if (argument?.startsWith(HELPER_PREFIX) !== true) return undefined
  const name = `${argument.slice(HELPER_PREFIX.length)}.js`
  return sea().getAssetKeys().includes(name) ? readText(name) : undefined
}

export async function readPart(file: URL): Promise<Buffer> {
  return file.protocol === INSIDE ? Buffer.from(sea().getRawAsset(nameOf(file))) : readFile(file)
}

/**
 * A path that other programs can open. Parts inside the executable are first written to their own folder, unless an
 * unchanged copy exists. Folders of other versions are removed.
 *
 * @param cacheFolder belongs to one running server. @throws errors of the file system
 */
export function pathOnDisk(part: URL, cacheFolder: string): string {
  return part.protocol === INSIDE ? join(unpack(cacheFolder), nameOf(part)) : fileURLToPath(part)
}

const unpackedFolders = new Map<string, string>()

function unpack(cacheFolder: string): string {
  const known = unpackedFolders.get(cacheFolder)
  if (known !== undefined) return known
  const { hash, files }: Unpacked = JSON.parse(readText(UNPACKED)) // written by `build-binary.mjs`
  const name = `program-${hash}`
  const folder = join(cacheFolder, name)
  mkdirSync(cacheFolder, { recursive: true, mode: 0o700 })
  if (!Object.keys(files).every((file) => isUnchanged(join(folder, file), file))) {
    // The prefix makes a later start remove this folder if it stays incomplete.
    const staged = mkdtempSync(join(cacheFolder, 'program-'))
    for (const [file, mode] of Object.entries(files)) {
      const path = join(staged, file)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, new Uint8Array(sea().getRawAsset(file)))
      chmodSync(path, mode)
    }
    // Read-only for others: commands of another account may have to read it.
    chmodSync(staged, 0o755)
    rmSync(folder, { recursive: true, force: true })
    renameSync(staged, folder)
  }
  for (const other of readdirSync(cacheFolder)) {
    if (other.startsWith('program-') && other !== name)
      rmSync(join(cacheFolder, other), { recursive: true, force: true })
  }
  unpackedFolders.set(cacheFolder, folder)
  return folder
}

function isUnchanged(path: string, file: string): boolean {
  try {
    return readFileSync(path).equals(new Uint8Array(sea().getRawAsset(file)))
  } catch {
    return false
  }
}

function nameOf(part: URL): string {
  return decodeURIComponent(part.pathname).slice(1)
}

function readText(name: string): string {
  return sea().getAsset(name, 'utf8')
}

export function isSingleExecutable(): boolean {
  return sea().isSea()
}

function sea(): typeof import('node:sea') {
  return process.getBuiltinModule('node:sea')
}
