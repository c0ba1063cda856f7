import { readRunFile } from '../core/run-file.ts'
import { ConfigProblems } from './load.ts'

/** Its keys, its backups and its control socket belong to one server, even where the databases differ. @throws ConfigProblems */
export function refuseSharedFolder(basePath: string): void {
  const other = readRunFile(basePath)
  if (other === undefined) return
  throw new ConfigProblems([
    `system.base_path: ${basePath} is in use by another running server, process ${other.pid}; give each one of its own`,
  ])
}
