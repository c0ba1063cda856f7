/** The account that something belongs to, by its numbers. */
import { existsSync, lstatSync, readFileSync, realpathSync } from 'node:fs'
import { dirname } from 'node:path'

export interface Account {
  uid: number
  gid: number
}

/** That a process runs as; undefined for one that is gone. */
export function accountOf(pid: number): Account | undefined {
  try {
    // Not the owner of its folder, which is root where the program has capabilities.
    const text = readFileSync(`/proc/${pid}/status`, 'latin1')
    const idOf = (name: string): number => Number(new RegExp(`^${name}:\\t(\\d+)`, 'm').exec(text)?.[1])
    return { uid: idOf('Uid'), gid: idOf('Gid') }
  } catch {
    return undefined
  }
}

/**
 * Whose a path is, for root: the owner of what is there, or else of the folder that it would be made in. Undefined: root's own,
 * or who asks is not root. In a folder of another account root would follow whatever links that has made.
 */
export function otherAccountOf(path: string): Account | undefined {
  if (process.getuid?.() !== 0) return undefined
  const there = lstatSync(path, { throwIfNoEntry: false })
  if (there === undefined) return otherAccountOf(dirname(path))
  if (there.uid !== 0) return { uid: there.uid, gid: there.gid }
  return there.isSymbolicLink() && existsSync(path) ? otherAccountOf(realpathSync(path)) : undefined
}
