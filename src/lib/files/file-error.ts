import { lstatSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { codeOf, hasCode } from '../process/index.ts'

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a part of the path is a file',
  EEXIST: 'a part of the path is a file',
  ENXIO: 'it is neither a file nor a device',
  ENOENT: 'it does not exist',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is exhausted',
  EROFS: 'the file system is read-only',
  ELOOP: 'the path has too many symbolic links',
  ENAMETOOLONG: 'the path is too long',
  EIO: 'the disk failed',
  EMFILE: 'the process has too many open files',
  ENFILE: 'the machine has too many open files',
}

/**
 * Why the file system refused something, without a path, for the end of a sentence: `permission denied`. The message of
 * the error where its code says nothing.
 */
export function reasonOfFileError(error: unknown): string {
  // As in `/proc`: a missing directory above would have been created.
  if (hasCode(error, 'ENOENT') && (error as NodeJS.ErrnoException).syscall === 'mkdir') {
    return 'the directory cannot be created'
  }
  return reasons[codeOf(error) ?? ''] ?? (error instanceof Error ? error.message : String(error))
}

/** The same for people who may see paths: names the file that stands where a folder should be. @param path absolute */
export function describeFileError(path: string, error: unknown): string {
  const obstacle = hasCode(error, 'EEXIST', 'ENOTDIR') ? obstacleIn(path) : undefined
  return obstacle ?? reasonOfFileError(error)
}

function obstacleIn(path: string): string | undefined {
  for (let place = path; place !== dirname(place); place = dirname(place)) {
    const subject = place === path ? 'it' : place
    try {
      const found = lstatSync(place)
      const target = found.isSymbolicLink() ? statSync(place, { throwIfNoEntry: false }) : found
      if (target === undefined) return `${subject} is a symbolic link to nothing`
      return target.isDirectory() ? undefined : `${subject} is a file, not a directory`
    } catch (error) {
      if (!hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    }
  }
  return undefined
}
