/** Free disk space. */
import { statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { size } from '../lib/text/index.ts'
import { ok, failedCheck, warning, type HealthCheck, type Result } from './check.ts'

const MIN_FREE_PERCENT = 5
/** How long to wait for a file system. */
const TIMEOUT_MS = 5000

export const disk: HealthCheck = {
  name: 'disk',
  async run({ loaded: { config } }) {
    const { log } = config
    const reserve = config.database.reserve_bytes
    const places: [name: string, path: string, reserve: number][] = [
      ['the database', dirname(config.database.path), reserve],
      ['the base path', config.system.base_path, 0],
      ['the backups', config.backup.directory, 0],
      ...[log.file, log.audit_file].flatMap((path): typeof places =>
        path === '' ? [] : [['the log', dirname(path), 0]],
      ),
    ]
    const seen = new Set<number>()
    const results: Result[] = []
    for (const [name, path, least] of places) {
      const folder = existing(path)
      const { dev } = statSync(folder)
      if (seen.has(dev)) continue
      seen.add(dev)
      results.push(...(await checkFileSystem(name, folder, least)))
    }
    return results
  },
}

/** The directory, or its nearest existing parent. */
function existing(path: string): string {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true ? path : existing(dirname(path))
}

async function checkFileSystem(name: string, folder: string, reserve: number): Promise<Result[]> {
  const found = await Promise.race([statfs(folder), delay(TIMEOUT_MS, undefined, { ref: false })])
  if (found === undefined) {
    return [
      failedCheck(
        `The file system of ${name} (${folder}) does not answer.`,
        'Check that its disk or network share is available.',
      ),
    ]
  }
  const { bavail, bsize, blocks, ffree, files } = found
  const free = bavail * bsize
  const room = `${size(free)} of ${size(blocks * bsize)}`
  const makeRoom = `Free space there, or purge old records ("svc purge"); see the section garbagecollector.`
  const isShort = (left: number, total: number): boolean => total > 0 && (left * 100) / total < MIN_FREE_PERCENT
  if (free < reserve) {
    return [
      failedCheck(
        `The file system of ${name} (${folder}) has ${room} free, less than database.reserve_bytes: the server refuses new work.`,
        makeRoom,
      ),
    ]
  }
  if (isShort(bavail, blocks)) {
    return [warning(`The file system of ${name} (${folder}) is almost full: ${room} free.`, makeRoom)]
  }
  // File systems that create inodes on demand report none.
  if (isShort(ffree, files)) {
    return [
      warning(
        `The file system of ${name} (${folder}) has ${ffree} of ${files} inodes free.`,
        'Delete small files there; "du --inodes -x <directory>" shows where they are.',
      ),
    ]
  }
  return [ok(`The file system of ${name} (${folder}) has ${room} free.`)]
}
