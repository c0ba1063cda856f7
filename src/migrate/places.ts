/**
 * Where the parts of a StackStorm installation are below a folder: recognised by what is there, so that a copied
 * machine (`/opt/stackstorm` and `/etc/st2`), a folder of packs and a folder of exports all do.
 */
import { readdir, stat } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { describeFileError } from '../lib/files/index.ts'

/** Folders below the given one. */
const MAX_DEPTH = 8
/** Files and folders looked at, packs not opened. */
const MAX_ENTRIES = 100_000
/** Reasons kept, each for a place that is not read. */
const MAX_SKIPPED = 100

/** What a place is used as; each can be given by an option of the command too. */
export interface Places {
  /** Folders that hold packs, each with the names of the packs in it, sorted. */
  packs: { folder: string; names: string[] }[]
  /** Folders with `<pack>.yaml` of the site. */
  configs: string[]
  /** `st2.conf`, in the order in which they are read. */
  conf: string[]
  /** Key files of the datastore. */
  keyFiles: string[]
  /** Password files. */
  passwordFiles: string[]
  /** Folders with roles, assignments and mappings. */
  rbac: string[]
  /** Exports in JSON or YAML, and collections of `mongodump`. */
  exports: string[]
  /** Not read, and why. */
  skipped: { path: string; why: string }[]
  /** Places not in `skipped` for lack of room. */
  skippedMore: number
}

/** Paths given by name; a kind that is given is not looked for. */
export type GivenPlaces = Partial<Record<'packs' | 'configs' | 'conf' | 'exports' | 'keyFiles', readonly string[]>>

const leftOut: ReadonlySet<string> = new Set(['virtualenvs', 'node_modules', '__pycache__', 'logs'])
const exportName = /\.(?:json|ya?ml|bson|bson\.gz)$/i
/** What `mongodump` writes beside each collection. */
const collectionMetadata = /\.metadata\.json(?:\.gz)?$/i
const rbacFolders = ['roles', 'assignments', 'mappings']

/** @throws errors of the file system about the folder itself */
export async function findPlaces(folder: string, given: GivenPlaces = {}): Promise<Places> {
  const places: Places = {
    packs: [],
    configs: [...(given.configs ?? [])],
    conf: [...(given.conf ?? [])],
    keyFiles: [...(given.keyFiles ?? [])],
    passwordFiles: [],
    rbac: [],
    exports: [...(given.exports ?? [])],
    skipped: [],
    skippedMore: 0,
  }
  let entries = 0
  const skip = (path: string, why: string): void => {
    if (places.skipped.length < MAX_SKIPPED) places.skipped.push({ path: relative(folder, path) || '.', why })
    else places.skippedMore += 1
  }

  async function walk(path: string, depth: number): Promise<void> {
    if (depth > MAX_DEPTH) return skip(path, `it is more than ${MAX_DEPTH} folders deep`)
    let found
    try {
      found = await readdir(path, { withFileTypes: true })
    } catch (error) {
      if (depth === 0) throw error
      return skip(path, describeFileError(path, error))
    }
    entries += found.length
    if (entries > MAX_ENTRIES)
      return skip(path, `the folder has more than ${MAX_ENTRIES} files; name the parts by options`)
    const folders: string[] = []
    const files: string[] = []
    for (const entry of found.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      if (entry.isDirectory()) folders.push(entry.name)
      else if (entry.isFile()) files.push(entry.name)
      else if (entry.isSymbolicLink() && !entry.name.startsWith('.')) await lookAtLink(join(path, entry.name), folders)
    }
    if (folders.some((name) => rbacFolders.includes(name)) && basename(path) === 'rbac') {
      places.rbac.push(path)
      return
    }
    const packs: string[] = []
    for (const name of folders) {
      if (name.startsWith('.') || leftOut.has(name)) continue
      const child = join(path, name)
      if (await isPack(child)) packs.push(name)
      else if (name === 'configs') {
        if (given.configs === undefined) places.configs.push(child)
      } else await walk(child, depth + 1)
    }
    if (packs.length > 0 && given.packs === undefined) places.packs.push({ folder: path, names: packs })
    for (const name of files) place(join(path, name), name)
  }

  function place(path: string, name: string): void {
    if (name === 'st2.conf' || name === 'st2.user.conf') {
      if (given.conf === undefined) places.conf.push(path)
    } else if (name === 'htpasswd') places.passwordFiles.push(path)
    else if (/(?:^|[._-])(?:datastore|crypto|symmetric)?_?key\.json$/i.test(name)) {
      if (given.keyFiles === undefined) places.keyFiles.push(path)
    } else if (exportName.test(name) && !collectionMetadata.test(name) && !name.startsWith('.')) {
      if (given.exports === undefined) places.exports.push(path)
    }
  }

  /** Packs that are being developed are often links; all others could lead anywhere. */
  async function lookAtLink(path: string, folders: string[]): Promise<void> {
    if (await isPack(path)) folders.push(basename(path))
    else skip(path, 'it is a symbolic link; name its target by an option')
  }

  if (!(await isPack(folder))) await walk(folder, 0)
  else if (given.packs === undefined) places.packs.push(await packsIn(folder))
  for (const path of given.packs ?? []) {
    const found = await packsIn(path)
    if (found.names.length > 0) places.packs.push(found)
    else skip(path, 'there is no pack in it')
  }
  return places
}

/** The packs in a folder, or the one that it is itself. @throws errors of the file system */
async function packsIn(folder: string): Promise<Places['packs'][number]> {
  if (await isPack(folder)) return { folder: dirname(resolve(folder)), names: [basename(resolve(folder))] }
  const names: string[] = []
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.name.startsWith('.') || entry.isFile()) continue
    if (await isPack(join(folder, entry.name))) names.push(entry.name)
  }
  return { folder, names: names.toSorted() }
}

async function isPack(folder: string): Promise<boolean> {
  for (const name of ['pack.yaml', 'pack.yml']) {
    const isThere = await stat(join(folder, name)).then(
      (found) => found.isFile(),
      () => false,
    )
    if (isThere) return true
  }
  return false
}
