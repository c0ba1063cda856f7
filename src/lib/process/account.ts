/** The numeric user and group of processes and files. */
import { existsSync, lstatSync, readFileSync, realpathSync } from 'node:fs'
import { dirname } from 'node:path'

export interface Account {
  uid: number
  gid: number
}

/** The account of a process; undefined if it has ended. */
export function accountOf(pid: number): Account | undefined {
  try {
    // Not the owner of the `/proc` folder, which is root for a program with capabilities.
    const text = readFileSync(`/proc/${pid}/status`, 'latin1')
    const idOf = (name: string): number => Number(new RegExp(`^${name}:\\t(\\d+)`, 'm').exec(text)?.[1])
    return { uid: idOf('Uid'), gid: idOf('Gid') }
  } catch {
    return undefined
  }
}

/**
 * For root: the account that owns the path, or the folder it would be created in. Undefined: root owns it, or the
 * caller is not root. Root must not follow the links in a folder of another account.
 */
export function otherAccountOf(path: string): Account | undefined {
  if (process.getuid?.() !== 0) return undefined
  const there = lstatSync(path, { throwIfNoEntry: false })
  if (there === undefined) return otherAccountOf(dirname(path))
  if (there.uid !== 0) return { uid: there.uid, gid: there.gid }
  return there.isSymbolicLink() && existsSync(path) ? otherAccountOf(realpathSync(path)) : undefined
}
