/**
 * A file survives a power cut when it was synced; its name, when its folder was. Whoever promises that a new or renamed
 * file stays syncs both.
 */
import { closeSync, fsyncSync, openSync } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../process/index.ts'

/** Files of a tree. */
const SIDE_BY_SIDE = 4

/** Makes new and renamed names in the folder survive a power cut. @throws errors of the file system */
export async function syncFolder(path: string): Promise<void> {
  try {
    const folder = await open(path)
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  } catch (error) {
    throwUnlessImpossible(error)
  }
}

/** The synchronous form of `syncFolder`. */
export function syncFolderSync(path: string): void {
  try {
    const folder = openSync(path, 'r')
    try {
      fsyncSync(folder)
    } finally {
      closeSync(folder)
    }
  } catch (error) {
    throwUnlessImpossible(error)
  }
}

/** All files and folders below a folder, and the folder; links are names in their folder. */
export async function syncTree(path: string): Promise<void> {
  const entries = await readdir(path, { withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  for (let start = 0; start < files.length; start += SIDE_BY_SIDE) {
    await Promise.all(files.slice(start, start + SIDE_BY_SIDE).map(({ name }) => syncFolder(join(path, name))))
  }
  for (const entry of entries) if (entry.isDirectory()) await syncTree(join(path, entry.name))
  await syncFolder(path)
}

/** Some network file systems sync no folders, and a folder may permit writing only: nothing more can be done then. */
function throwUnlessImpossible(error: unknown): void {
  if (!hasCode(error, 'EINVAL', 'ENOTSUP', 'EACCES', 'EPERM')) throw error
}
