import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { syncFolderSync } from '../../lib/files/index.ts'

/**
 * Creates a folder and its parents. Node's recursive mode never ends where a folder refuses new ones with ENOENT, as
 * `/proc` does.
 */
export function makeDatabaseFolder(path: string): void {
  if (isFolder(path)) return
  const parent = dirname(path)
  if (parent !== path) makeDatabaseFolder(parent)
  try {
    mkdirSync(path, { mode: 0o700 })
    syncFolderSync(parent)
  } catch (error) {
    // Another server that starts at the same time may have created it.
    if (!isFolder(path)) throw error
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}
