/** Temporary folders, removed by whoever made them. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface TemporaryFolder {
  path: string
  /** Writes a file: text and bytes as they are, anything else as JSON. @returns its path */
  readonly write: (name: string, content: unknown) => string
  remove(): void
}

export function makeFolder(): TemporaryFolder {
  const path = mkdtempSync(join(tmpdir(), 'svc-test-'))
  // What has just lost its server may still be writing there.
  const remove = (): void => rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
  const write = (name: string, content: unknown): string => {
    const isRaw = typeof content === 'string' || content instanceof Uint8Array
    writeFileSync(join(path, name), isRaw ? content : JSON.stringify(content))
    return join(path, name)
  }
  return { path, write, remove }
}
