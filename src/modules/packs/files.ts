/** What files a pack folder has, and whether they are the same as before: names, sizes and times, without reading them. */
import { createHash } from 'node:crypto'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Ignore } from 'ignore'
import { readContainedFile } from '../../contained-file.ts'
import { version } from '../../version.ts'
import { configSchemaFile, contentKinds, isMetadataFile, manifestFile } from './read.ts'

const MAX_LISTED = 10_000
const MAX_DEPTH = 20
const MAX_IGNORE_BYTES = 65_536
const MAX_IGNORE_LINES = 500
/** Matching is backtracking: each star in a pattern multiplies the time by the length of the name. */
const MAX_STARS = 2

export interface PackFiles {
  /** Relative to the pack, sorted; without hidden files, what is generated, and what `.gitignore` names. */
  files: string[]
  /** The pack has more files, or deeper ones, than are listed. */
  isCut: boolean
  /** Changes when a file comes or goes, or metadata changes; also with the version of the program. */
  fingerprint: string
}

/** Whether a path relative to the pack is not to be listed or shown. */
export type IsHidden = (path: string, isFolder: boolean) => boolean

const folderNames: ReadonlySet<string> = new Set(contentKinds)

/** Of no interest in any pack. */
export function isGenerated(name: string): boolean {
  return name.startsWith('.') || name === '__pycache__' || name === 'node_modules' || name.endsWith('.pyc')
}

/** @throws Error when the folder cannot be read */
export async function scanPack(folder: string): Promise<PackFiles> {
  const isHidden = await createFilter(folder)
  const files: string[] = []
  const facts: string[] = [version]
  let isCut = false

  async function walk(below: string, depth: number): Promise<void> {
    const entries = await readdir(join(folder, below), { withFileTypes: true })
    const folders: string[] = []
    const inMetadataFolder = folderNames.has(below)
    await Promise.all(
      entries.map(async (entry) => {
        const { name } = entry
        const path = below === '' ? name : `${below}/${name}`
        if (entry.isDirectory()) {
          if (folderNames.has(path) || !(isGenerated(name) || isHidden(path, true))) folders.push(path)
          return
        }
        const isMetadata =
          path === manifestFile || path === configSchemaFile || (inMetadataFolder && isMetadataFile(name))
        if (isMetadata || path === '.gitignore') facts.push(`${path} ${await factsOf(join(folder, path))}`)
        if (isGenerated(name) || isHidden(path, false)) return
        if (files.length >= MAX_LISTED) isCut = true
        else files.push(path)
      }),
    )
    for (const path of folders) {
      if (depth >= MAX_DEPTH || files.length >= MAX_LISTED) isCut = true
      else await walk(path, depth + 1)
    }
  }

  await walk('', 0)
  files.sort()
  facts.sort()
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([folder, facts, files]))
    .digest('base64url')
  return { files, isCut, fingerprint }
}

/** What tells that a file has changed. The time of the last change of any kind as well: copying can give a new file an old time. */
export async function factsOf(path: string): Promise<string> {
  try {
    const { size, mtimeMs, ctimeMs, ino } = await stat(path)
    return [size, mtimeMs, ctimeMs, ino].join(' ')
  } catch {
    return 'missing'
  }
}

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
