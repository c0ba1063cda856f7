/** Small file systems of their own, which a test fills, and whose device it breaks. For root. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, rmSync, truncateSync, writeFileSync, writeSync } from 'node:fs'
import { basename, join } from 'node:path'
import { makeFolder } from './folders.ts'

export interface TestDisk {
  /** Takes all the room there is. */
  fill(): void
  /** Takes room until so much is left. */
  fillUpTo(leftBytes: number): void
  /** Gives back what was taken. */
  free(): void
  unmount(): void
}

/** In some containers not even root can. */
export function canMount(): boolean {
  if (process.getuid?.() !== 0) return false
  const probe = makeFolder()
  try {
    mountDisk(join(probe.path, 'disk'), { megabytes: 1 }).unmount()
    return true
  } catch {
    return false
  } finally {
    probe.remove()
  }
}

/** A file system in memory, at a folder that is made. */
export function mountDisk(path: string, { megabytes }: { megabytes: number }): TestDisk {
  mkdirSync(path, { recursive: true })
  mount('-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path)
  return diskAt(path)
}

export interface BreakableDisk extends TestDisk {
  /** As after an error of the device: the kernel allows no writing any more. */
  break(): void
  /** Mounts it anew, as an operator would after a repair. Nobody may have a file of it open. */
  repair(): void
}

/** A file system in a file, which the kernel makes read-only when told of an error. */
export function mountBreakableDisk(path: string, { megabytes }: { megabytes: number }): BreakableDisk {
  const image = `${path}.image`
  writeFileSync(image, '')
  truncateSync(image, megabytes * 1_048_576)
  execFileSync('mkfs.ext4', ['-q', '-F', image], { stdio: 'ignore' })
  mkdirSync(path, { recursive: true })
  const attach = (): void => mount('-o', 'loop,errors=remount-ro', image, path)
  attach()
  return {
    ...diskAt(path),
    break() {
      const source = execFileSync('findmnt', ['-n', '-o', 'SOURCE', path], { encoding: 'utf8' }).trim()
      writeFileSync(`/sys/fs/ext4/${basename(source)}/trigger_fs_error`, '1')
    },
    repair() {
      execFileSync('umount', [path])
      // 1: it has found and repaired something.
      const { status } = spawnSync('e2fsck', ['-p', '-f', image], { stdio: 'ignore' })
      if (status !== 0 && status !== 1) throw new Error(`e2fsck ended with ${status}`)
      attach()
    },
  }
}

/** A file system that answers nothing, as that of a network whose server is gone. Whoever asks waits until it is released. */
export async function mountSilentDisk(path: string): Promise<{ release(): Promise<void> }> {
  mkdirSync(path, { recursive: true })
  const holder = spawn('python3', ['-c', SILENT, path], { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(holder, 'exit')
  await Promise.race([once(holder.stdout, 'data'), ended.then(() => Promise.reject(new Error('it cannot be mounted')))])
  return {
    async release() {
      holder.stdin.end()
      await ended
    },
  }
}

/** With the descriptor, whoever waits for an answer is let go. */
const SILENT = `
import ctypes, os, sys
libc, path, fd = ctypes.CDLL(None), sys.argv[1].encode(), os.open('/dev/fuse', os.O_RDWR)
options = f'fd={fd},rootmode=40000,user_id=0,group_id=0'.encode()
if libc.mount(b'silent', path, b'fuse', 0, options): sys.exit(1)
print('mounted', flush=True)
sys.stdin.read()
libc.umount2(path, 2)
`

function mount(...words: string[]): void {
  execFileSync('mount', words, { stdio: 'ignore' })
}

function diskAt(path: string): TestDisk {
  const filler = join(path, 'filler')
  return {
    fill() {
      const file = openSync(filler, 'a')
      try {
        for (const block of [Buffer.alloc(1_048_576), Buffer.alloc(1)]) {
          try {
            for (;;) writeSync(file, block)
          } catch (error) {
            if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
          }
        }
      } finally {
        closeSync(file)
      }
    },
    fillUpTo(leftBytes) {
      const left = Number(execFileSync('df', ['--output=avail', '-B1', path], { encoding: 'utf8' }).split('\n')[1])
      writeFileSync(filler, Buffer.alloc(Math.max(0, left - leftBytes)), { flag: 'a' })
    },
    free: () => rmSync(filler, { force: true }),
    unmount: () => void execFileSync('umount', ['--lazy', path]),
  }
}
