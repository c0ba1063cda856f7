/**
 * Loads native add-ons from the single executable. The dynamic linker loads files only, so they are unpacked first.
 *
 * All threads load the same file, so that the linker loads the add-on once. Two copies of SQLite in one process would
 * drop each other's file locks and could corrupt the database.
 */
import { closeSync, constants, lstatSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { getEnvironmentData, isMainThread, setEnvironmentData } from 'node:worker_threads'

const ADDONS = ['better-sqlite3', 'argon2', 'koffi'] as const

export type AddonName = (typeof ADDONS)[number]

/** Not in `node:fs`; the same on all processors that Node runs on. */
const O_TMPFILE = 0o20000000 | constants.O_DIRECTORY

const loaded = new Map<AddonName, unknown>()
let lastResort: string | undefined

/**
 * Sets the folder for add-on files, used when no other place works. Temporary folders may be mounted `noexec`, as
 * `/dev/shm` is in many containers.
 */
export function keepAddonsIn(folder: string): void {
  lastResort = folder
}

/** Returns what `require` of the add-on would. @throws Error that lists the folders it tried */
export function loadAddon(name: AddonName): unknown {
  const known = loaded.get(name)
  if (known !== undefined) return known
  const addon = load(name)
  loaded.set(name, addon)
  return addon
}

/** Call before a thread starts: a thread can only open files that the process has placed. */
export function placeAddons(): void {
  for (const name of ADDONS) loadAddon(name)
}

function load(name: AddonName): unknown {
  const key = `svc.addon.${name}`
  const placed = getEnvironmentData(key)
  if (typeof placed === 'string') return link(placed)
  if (!isMainThread) throw new Error(`The native add-on ${name} was not placed before this thread started.`)
  const bytes = new Uint8Array(process.getBuiltinModule('node:sea').getRawAsset(`native/${name}.node`))
  const chosen = process.env['SVC_NATIVE_DIR'] ?? ''
  const problems: string[] = []
  const attempt = (folder: string, place: () => Placed): unknown => {
    let file: Placed | undefined
    try {
      file = place()
      const addon = link(file.path)
      setEnvironmentData(key, file.path)
      return addon
    } catch (error) {
      file?.discard?.()
      problems.push(`${folder}: ${error instanceof Error ? error.message : String(error)}`)
      return undefined
    }
  }
  // A file without a name, where possible: nothing stays on disk, and no other account can replace it.
  for (const folder of [chosen, '/dev/shm', tmpdir()]) {
    const addon = folder === '' ? undefined : attempt(folder, () => writeNameless(folder, bytes, folder === chosen))
    if (addon !== undefined) return addon
  }
  for (const folder of [chosen, lastResort ?? '', cacheOfAccount()]) {
    const addon = folder === '' ? undefined : attempt(folder, () => writeNamed(folder, name, bytes))
    if (addon !== undefined) return addon
  }
  throw new Error(
    `The native add-on ${name} cannot be loaded from any folder. Set SVC_NATIVE_DIR to a folder that this account can write to and that is not mounted noexec. Tried: ${problems.join('; ')}`,
  )
}

interface Placed {
  path: string
  discard?(): void
}

/** The descriptor stays open for threads that start later. */
function writeNameless(folder: string, bytes: Uint8Array, mayMake: boolean): Placed {
  if (mayMake) mkdirSync(folder, { recursive: true, mode: 0o700 })
  const file = openSync(folder, O_TMPFILE | constants.O_RDWR | constants.O_EXCL, 0o700)
  try {
    writeAll(file, bytes)
  } catch (error) {
    closeSync(file)
    throw error
  }
  return { path: `/proc/self/fd/${file}`, discard: () => closeSync(file) }
}

function writeNamed(folder: string, name: AddonName, bytes: Uint8Array): Placed {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const { uid, mode } = lstatSync(folder)
  if (uid !== process.getuid?.() || (mode & 0o22) !== 0) {
    throw new Error('it must belong to this account, and other accounts must not have write permission')
  }
  const { createHash } = process.getBuiltinModule('node:crypto')
  const path = join(folder, `${name}-${createHash('sha256').update(bytes).digest('hex').slice(0, 16)}.node`)
  if (!holds(path, bytes)) {
    const staged = `${path}.${process.pid}`
    const file = openSync(staged, 'w', 0o700)
    try {
      writeAll(file, bytes)
    } finally {
      closeSync(file)
    }
    renameSync(staged, path)
  }
  return { path }
}

function holds(path: string, bytes: Uint8Array): boolean {
  try {
    return readFileSync(path).equals(bytes)
  } catch {
    return false
  }
}

function writeAll(file: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at)
}

function cacheOfAccount(): string {
  try {
    return join(process.env['XDG_CACHE_HOME'] || join(process.env['HOME'] || userInfo().homedir, '.cache'), 'svc')
  } catch {
    return ''
  }
}

function link(path: string): unknown {
  const module = { exports: {} }
  process.dlopen(module, path)
  return module.exports
}
