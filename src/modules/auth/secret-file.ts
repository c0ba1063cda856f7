/** Files that only the server's own account may read. They appear whole or not at all. */
import { randomBytes } from 'node:crypto'
import { link, mkdir, open, rename, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Mode 0600; folders that are missing get 0700. @returns false, and nothing is changed, if the file exists */
export async function createSecretFile(path: string, content: string): Promise<boolean> {
  return withTemporaryFile(path, content, async (temporary) => {
    try {
      await link(temporary, path)
      return true
    } catch (error) {
      if (hasCode(error, 'EEXIST')) return false
      throw error
    } finally {
      await unlink(temporary)
    }
  })
}

/** As `createSecretFile`, in place of whatever is there. */
export async function replaceSecretFile(path: string, content: string): Promise<void> {
  await withTemporaryFile(path, content, (temporary) => rename(temporary, path))
}

async function withTemporaryFile<T>(path: string, content: string, use: (temporary: string) => Promise<T>): Promise<T> {
  const folder = dirname(path)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const temporary = join(folder, `.${randomBytes(9).toString('base64url')}.tmp`)
  const file = await open(temporary, 'wx', 0o600)
  try {
    await file.writeFile(content)
    await file.sync()
  } catch (error) {
    await unlink(temporary)
    throw error
  } finally {
    await file.close()
  }
  return use(temporary)
}

/** Whether a failure of the file system has this code, such as `ENOENT`. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
