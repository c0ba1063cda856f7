/** What files a pack folder has, and whether they are the same as before: names, sizes and times, without reading them. */
import { createHash } from 'node:crypto'
import { readdirSync, statSync, type Dirent, type Stats } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Ignore } from 'ignore'
import { readContainedFile } from '../../lib/files/index.ts'
import { version } from '../../core/version.ts'
import { configSchemaFile, isMetadataFile, manifestFile, metadataFolders } from './read.ts'
import { writeJson } from '../../lib/json/index.ts'

/** Count it up when svc reads the same files in another way: then it reads all packs again. */
const READING_RULES = 2

const MAX_LISTED = 10_000
const MAX_DEPTH = 20
const MAX_IGNORE_BYTES = 65_536
const MAX_IGNORE_LINES = 500
/** Matching is backtracking: each star in a pattern multiplies the time by the length of the name. */
const MAX_STARS = 2

export interface PackFiles {
  /** Relative to the pack, sorted; without hidden, generated and ignored (`.gitignore`) files. */
  files: string[]
  /** The pack has more files, or deeper ones, than are listed. */
  isCut: boolean
  /** Changes when a file comes or goes, or metadata changes; also with the version of the program and its rules. */
  fingerprint: string
}

/** Whether a path relative to the pack is not to be listed or shown. */
export type IsHidden = (path: string, isFolder: boolean) => boolean

const folderNames: ReadonlySet<string> = new Set(metadataFolders)

/** Of no interest in any pack. */
export function isGenerated(name: string): boolean {
  return name.startsWith('.') || name === '__pycache__' || name === 'node_modules' || name.endsWith('.pyc')
}

/**
 * @param atOnce asks the file system on this thread, which takes a sixth of the time: for when nobody else is served yet
 * @throws Error when the folder cannot be read
 */
export async function scanPack(folder: string, atOnce = false): Promise<PackFiles> {
  const list = (below: string): Dirent[] | Promise<Dirent[]> => {
    const path = join(folder, below)
    return atOnce ? readdirSync(path, { withFileTypes: true }) : readdir(path, { withFileTypes: true })
  }
  const top = await list('')
  const isHidden = top.some(({ name }) => name === '.gitignore') ? await createFilter(folder) : () => false
  const files: string[] = []
  const facts: string[] = [version, String(READING_RULES)]
  let isCut = false

  async function walk(below: string, entries: readonly Dirent[], depth: number): Promise<void> {
    const folders: string[] = []
    const counting: Promise<void>[] = []
    const inMetadataFolder = folderNames.has(below)
    for (const entry of entries) {
      const { name } = entry
      const path = below === '' ? name : `${below}/${name}`
      if (entry.isDirectory()) {
        if (folderNames.has(path) || !(isGenerated(name) || isHidden(path, true))) folders.push(path)
        continue
      }
      const isMetadata =
        path === manifestFile || path === configSchemaFile || (inMetadataFolder && isMetadataFile(name))
      if (isMetadata || path === '.gitignore') {
        const absolute = join(folder, path)
        if (atOnce) facts.push(`${path} ${factsNow(absolute)}`)
        else counting.push(factsOf(absolute).then((found) => void facts.push(`${path} ${found}`)))
      }
      if (isGenerated(name) || isHidden(path, false)) continue
      if (files.length >= MAX_LISTED) isCut = true
      else files.push(path)
    }
    await Promise.all(counting)
    for (const path of folders) {
      if (depth >= MAX_DEPTH || files.length >= MAX_LISTED) isCut = true
      else await walk(path, await list(path), depth + 1)
    }
  }

  await walk('', top, 0)
  files.sort()
  facts.sort()
  const fingerprint = createHash('sha256')
    .update(writeJson([folder, facts, files]))
    .digest('base64url')
  return { files, isCut, fingerprint }
}

/** What tells that a file has changed. The time of the last change of any kind as well: copying can give a new file an old time. */
export async function factsOf(path: string): Promise<string> {
  return stat(path).then(describeStats, () => 'missing')
}

function factsNow(path: string): string {
  try {
    return describeStats(statSync(path))
  } catch {
    return 'missing'
  }
}

const describeStats = ({ size, mtimeMs, ctimeMs, ino }: Stats): string => [size, mtimeMs, ctimeMs, ino].join(':')

/** Reads the `.gitignore` of a pack. */
export async function createFilter(folder: string): Promise<IsHidden> {
  const file = await readContainedFile(folder, '.gitignore', MAX_IGNORE_BYTES)
  if ('problem' in file) return () => false
  const lines = file.text
    .split('\n')
    .slice(0, MAX_IGNORE_LINES)
    .filter((line) => line.split('/').every((segment) => (segment.match(/\*+/g) ?? []).length <= MAX_STARS))
  if (lines.every((line) => line.trim() === '' || line.startsWith('#'))) return () => false
  const { default: createIgnore } = await import('ignore')
  const patterns: Ignore = createIgnore().add(lines)
  return (path, isFolder) => patterns.ignores(isFolder ? `${path}/` : path)
}
