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
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}
