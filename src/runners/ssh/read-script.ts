/** Reads the files that a remote script needs: the script, and `actions/lib` of its pack. */
import { readdir, realpath } from 'node:fs/promises'
import { basename, join, sep } from 'node:path'
import { readBoundedFile } from '../../lib/files/index.ts'
import { hasCode } from '../../lib/process/index.ts'
import type { LocalFile } from './copy.ts'

/** Held in memory during the copy. */
const MAX_BYTES = 32 * 1024 * 1024
const MAX_FILES = 1000
const SCRIPT_MODE = 0o744

/** @throws Error whose message is a sentence for the user */
export async function readScript(entryPoint: string, packFolder: string): Promise<LocalFile[]> {
  const name = basename(entryPoint)
  const script = await readBoundedFile(entryPoint, MAX_BYTES)
  if ('problem' in script) throw new Error(`The entry point "${name}" ${script.problem}.`)
  const files: LocalFile[] = [{ path: [name], bytes: script.bytes, mode: SCRIPT_MODE }]
  if (packFolder === '') return files
  const lib = join(packFolder, 'actions', 'lib')
  let left = MAX_BYTES - script.bytes.length
  const root = await realpath(packFolder).catch(() => packFolder)
  for (const path of await listFiles(lib, [])) {
    const shown = ['actions', 'lib', ...path].join('/')
    if (files.length > MAX_FILES) throw new Error(`actions/lib of the pack holds more than ${MAX_FILES} files.`)
    const file = join(lib, ...path)
    // A link may point anywhere on the server; only files of the pack are copied.
    if (!(await realpath(file).catch(() => '')).startsWith(root + sep)) {
      throw new Error(`"${shown}" of the pack is a link to a target outside the pack.`)
    }
    const found = await readBoundedFile(file, left)
    if ('problem' in found) throw new Error(`"${shown}" of the pack ${found.problem}.`)
    left -= found.bytes.length
    files.push({ path: ['lib', ...path], bytes: found.bytes, mode: found.mode & 0o700 || 0o600 })
  }
  return files
}

/** Relative paths of everything in the folder except folders. */
async function listFiles(folder: string, path: string[]): Promise<string[][]> {
  let entries
  try {
    entries = await readdir(folder, { withFileTypes: true })
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return []
    throw new Error('actions/lib of the pack cannot be read.', { cause: error })
  }
  const found: string[][] = []
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const here = [...path, entry.name]
    if (entry.isDirectory()) {
      if (here.length > 20) throw new Error('actions/lib of the pack nests folders more than 20 levels deep.')
      found.push(...(await listFiles(join(folder, entry.name), here)))
    } else {
      found.push(here)
    }
    if (found.length > MAX_FILES) throw new Error(`actions/lib of the pack holds more than ${MAX_FILES} files.`)
  }
  return found
}
