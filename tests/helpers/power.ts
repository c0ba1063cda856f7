/** Servers that lose at their end what their disk has not been told to keep, as at a power cut. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ensureDebianPackage } from './apt.ts'
import type { Random } from './random.ts'

const GCC = '/usr/bin/gcc'
const SECTOR_BYTES = 512
const FILES = ['svc.db', 'svc.db-wal']

export interface LosingDisk {
  /** Environment of the server. */
  env: Record<string, string>
  /**
   * After SIGKILL: gives the base path what the disk holds. Writes that were not synced reached the disk or did not, sector
   * by sector.
   */
  cutPower(random: Random): void
  /** The names that a folder had when it was synced last; empty: never. A power cut may take the others. */
  namesIn(folder: string): string[]
  /** Before the next server starts: what is there now is on the disk. */
  settle(): void
}

/** @param folder for the library and the second copy of the files */
export async function createLosingDisk(folder: string, basePath: string): Promise<LosingDisk> {
  await ensureDebianPackage('gcc', GCC)
  const library = join(folder, 'power-cut.so')
  const source = join(import.meta.dirname, '..', 'fixtures', 'power-cut.c')
  execFileSync(GCC, ['-Wall', '-Werror', '-O1', '-shared', '-fPIC', '-o', library, source, '-ldl', '-lpthread'])
  const disk = join(folder, 'disk')
  mkdirSync(disk)
  return {
    env: { LD_PRELOAD: library, SVC_TEST_DISK: disk },
    cutPower(random) {
      rmSync(join(basePath, 'svc.db-shm'), { force: true })
      for (const name of FILES) {
        const [path, kept] = [join(basePath, name), join(disk, name)]
        const written = existsSync(path) ? readFileSync(path) : Buffer.alloc(0)
        const synced = existsSync(kept) ? readFileSync(kept) : Buffer.alloc(0)
        writeFileSync(path, mix(synced, written, random))
      }
    },
    namesIn(folder) {
      const notes = existsSync(join(disk, 'folders')) ? readFileSync(join(disk, 'folders'), 'utf8') : ''
      const synced = notes.split('\n').map((line) => line.split('\t'))
      return synced.findLast(([path]) => path === folder)?.slice(1) ?? []
    },
    settle() {
      for (const name of FILES) {
        rmSync(join(disk, name), { force: true })
        if (existsSync(join(basePath, name))) copyFileSync(join(basePath, name), join(disk, name))
      }
    },
  }
}

/** Mostly what was synced. */
function mix(synced: Buffer, written: Buffer, random: Random): Buffer {
  const mixed = Buffer.from(synced)
  const isEager = random.once(2)
  for (let at = 0; at < Math.min(synced.length, written.length); at += SECTOR_BYTES) {
    const sector = written.subarray(at, at + SECTOR_BYTES)
    if (isEager && !sector.equals(synced.subarray(at, at + SECTOR_BYTES)) && random.once(2)) sector.copy(mixed, at)
  }
  return mixed
}
