import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** With its parents. Node's own way of doing so never ends where a folder refuses new ones with ENOENT, as `/proc` does. */
export function makeFolder(path: string): void {
  if (isFolder(path)) return
  const parent = dirname(path)
  if (parent !== path) makeFolder(parent)
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    // Another server that starts at the same time may have been faster.
    if (!isFolder(path)) throw error
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}
