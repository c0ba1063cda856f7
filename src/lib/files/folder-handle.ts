/** Short names for paths of any length: the address of a Unix socket has at most 107 bytes. */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'

export interface FolderHandle {
  /** Another path of the folder, valid in this process until it is released. */
  path: string
  release(): Promise<void>
}

/** @throws errors of the file system */
export async function openFolder(path: string): Promise<FolderHandle> {
  const folder = await open(path, constants.O_RDONLY | constants.O_DIRECTORY)
  return { path: `/proc/self/fd/${folder.fd}`, release: () => folder.close() }
}
