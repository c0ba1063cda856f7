/** Temporary folders, removed by whoever made them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface TemporaryFolder {
  path: string
  remove(): void
}

export function makeFolder(): TemporaryFolder {
  const path = mkdtempSync(join(tmpdir(), 'svc-test-'))
  // What has just lost its server may still be writing there.
  return { path, remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }) }
}
