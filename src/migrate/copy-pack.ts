/** Copies the folder of a pack: complete or not at all, within bounds, and nothing from outside of it. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { chmod, copyFile, lstat, mkdir, readdir, readlink, realpath, rename, rm, symlink } from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'
import { syncFolder, syncTree } from '../lib/files/index.ts'

const MAX_FILES = 100_000
const MAX_BYTES = 1024 * 1024 * 1024
const MAX_DEPTH = 32

/** Made by programs from what is copied. */
const isMade = (name: string): boolean => name === '__pycache__' || name.endsWith('.pyc')

interface Entry {
  path: string
  kind: 'folder' | 'file' | 'link'
  mode: number
  target?: string
}

/** A pack that is not copied, and why: the end of a sentence. */
export class PackRefused extends Error {}

export interface PackTree {
  folder: string
  entries: Entry[]
  /** Of everything that is copied, `.git` aside. */
  digest: string
}

/** @throws PackRefused, errors of the file system */
export async function readTree(folder: string): Promise<PackTree> {
  const root = await realpath(folder)
  const entries: Entry[] = []
  const hash = createHash('sha256')
  let bytes = 0

  async function walk(path: string, depth: number): Promise<void> {
    if (depth > MAX_DEPTH) throw new PackRefused(`it has folders more than ${MAX_DEPTH} levels deep`)
    const names = (await readdir(join(root, path))).toSorted()
    for (const name of names) {
      if (isMade(name)) continue
      const at = path === '' ? name : `${path}/${name}`
      const status = await lstat(join(root, at))
      if (entries.length >= MAX_FILES) throw new PackRefused(`it has more than ${MAX_FILES} files`)
      const isHashed = at !== '.git' && !at.startsWith('.git/')
      if (status.isDirectory()) {
        entries.push({ path: at, kind: 'folder', mode: status.mode })
        await walk(at, depth + 1)
      } else if (status.isFile()) {
        bytes += status.size
        if (bytes > MAX_BYTES) throw new PackRefused(`it is larger than ${MAX_BYTES} bytes`)
        entries.push({ path: at, kind: 'file', mode: status.mode })
        if (isHashed) {
          hash.update(`file\0${at}\0${status.mode & 0o111}\0${status.size}\0`)
          for await (const chunk of createReadStream(join(root, at)) as AsyncIterable<Buffer>) hash.update(chunk)
        }
      } else if (status.isSymbolicLink()) {
        const target = await readlink(join(root, at))
        const leads = resolve(root, dirname(at), target)
        if (target.startsWith('/') || !(leads + sep).startsWith(root + sep)) {
          throw new PackRefused(`${at} is a link that leads out of it`)
        }
        entries.push({ path: at, kind: 'link', mode: 0, target })
        if (isHashed) hash.update(`link\0${at}\0${target}\0`)
      } else throw new PackRefused(`${at} is neither a file nor a folder`)
    }
  }

  await walk('', 0)
  return { folder: root, entries, digest: hash.digest('hex') }
}

const newName = (name: string): string => `.migrate-new-${name}`
const oldName = (name: string): string => `.migrate-old-${name}`

/**
 * Puts a pack into its place, in which another version of it may be.
 *
 * @throws errors of the file system; the earlier version is there then
 */
export async function placePack({ folder, entries }: PackTree, packs: string, name: string): Promise<void> {
  const [place, fresh, before] = [name, newName(name), oldName(name)].map((each) => join(packs, each)) as [
    string,
    string,
    string,
  ]
  await rm(fresh, { recursive: true, force: true })
  await mkdir(fresh, { mode: 0o755 })
  for (const { path, kind, mode, target } of entries) {
    const to = join(fresh, path)
    if (kind === 'folder') await mkdir(to)
    else if (kind === 'link') await symlink(target ?? '', to)
    else await copyFile(join(folder, path), to)
    // Neither setuid nor writable for others.
    if (kind !== 'link') await chmod(to, (mode & 0o755) | (kind === 'folder' ? 0o700 : 0o600))
  }
  await syncTree(fresh)
  const isThere = await lstat(place).then(
    () => true,
    () => false,
  )
  if (isThere) await rename(place, before)
  await rename(fresh, place)
  await syncFolder(packs)
  await rm(before, { recursive: true, force: true })
}

/** Ends what an import has begun that was killed: an earlier version without a new one goes back to its place. */
export async function recoverPacks(packs: string): Promise<void> {
  for (const name of await readdir(packs).catch(() => [])) {
    if (name.startsWith('.migrate-new-')) await rm(join(packs, name), { recursive: true, force: true })
    if (!name.startsWith('.migrate-old-')) continue
    const place = join(packs, name.slice('.migrate-old-'.length))
    const isThere = await lstat(place).then(
      () => true,
      () => false,
    )
    if (isThere) await rm(join(packs, name), { recursive: true, force: true })
    else await rename(join(packs, name), place)
  }
}
