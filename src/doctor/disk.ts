/** Room for what the server keeps. */
import { statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { size } from '../lib/text/index.ts'
import { ok, problem, warning, type Check, type Result } from './check.ts'

const MIN_FREE_PERCENT = 5
/** A file system that does not answer is not waited for. */
const WITHIN_MS = 5000

export const disk: Check = {
  name: 'disk',
  async look({ loaded: { config } }) {
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
      results.push(...(await lookAt(name, folder, least)))
    }
    return results
  },
}

/** The folder, or the one that it will be made in. */
function existing(path: string): string {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true ? path : existing(dirname(path))
}

async function lookAt(name: string, folder: string, reserve: number): Promise<Result[]> {
  const found = await Promise.race([statfs(folder), delay(WITHIN_MS, undefined, { ref: false })])
  if (found === undefined) {
    return [
      problem(
        `The file system of ${name} (${folder}) does not answer.`,
        'Look whether its disk or its network share is there.',
      ),
    ]
  }
  const { bavail, bsize, blocks, ffree, files } = found
  const free = bavail * bsize
  const room = `${size(free)} of ${size(blocks * bsize)}`
  const makeRoom = `Make room there, or purge old records ("svc purge"); see the section garbagecollector.`
  const isShort = (left: number, total: number): boolean => total > 0 && (left * 100) / total < MIN_FREE_PERCENT
  if (free < reserve) {
    return [
      problem(
        `The file system of ${name} (${folder}) has ${room} free, less than database.reserve_bytes: no new work is taken on.`,
        makeRoom,
      ),
    ]
  }
  if (isShort(bavail, blocks)) {
    return [warning(`The file system of ${name} (${folder}) is almost full: ${room} are free.`, makeRoom)]
  }
  // File systems that make inodes as they are needed tell of none.
  if (isShort(ffree, files)) {
    return [
      warning(
        `The file system of ${name} (${folder}) has ${ffree} of ${files} inodes free.`,
        'Remove small files there; "find <folder> -xdev -type d" with "ls | wc -l" in each shows where they are.',
      ),
    ]
  }
  return [ok(`The file system of ${name} (${folder}) has ${room} free.`)]
}
