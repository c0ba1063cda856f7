/**
 * A file that appends lines. It copes with other processes that rename, delete or fill it, and can rotate when it is
 * large.
 *
 * Appending never blocks and never throws. Lines of the same moment share a write. Lines that cannot be written wait,
 * up to a limit.
 */
import {
  close,
  constants,
  fstat,
  fstatSync,
  ftruncate,
  mkdir,
  mkdirSync,
  open,
  openSync,
  read,
  readdir,
  rename,
  stat,
  unlink,
  write,
  type Stats,
} from 'node:fs'
import { basename, dirname } from 'node:path'
import { promisify } from 'node:util'
import { hasCode } from '../process/index.ts'

export interface LineFile {
  /** @param line without line break */
  append(line: string): void
  /**
   * Continues in the file that now has the path, and creates it if it is missing. Every line is in exactly one of the
   * files. Resolves when that is done or has failed; failures are reported.
   */
  reopen(): Promise<void>
  /** Resolves when every line is written, at the latest after two seconds. Later lines are dropped. */
  close(): Promise<void>
}

export interface LineFileReport {
  /** Called once per period of failures. */
  failed(error: unknown): void
  /** Writing works again. */
  resumed(lostLines: number): void
  /** The file was closed before these lines were written. */
  lost(lines: number): void
  /** The file is too large, but it cannot be renamed and keeps growing. */
  notRotated(error: unknown): void
}

export interface Rotation {
  /** A line that would exceed this size starts a new file; 0: never rotate. */
  maxBytes: number
  /** Number of old files that are kept, as `<path>.1` (the newest), `<path>.2` and so on; at least 1. */
  backupCount: number
  /** Older files that were written to within this time stay too, whatever their number. Default: 0. */
  keptSeconds?: number
}

const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK
const maximumWaitingLength = 8 * 1024 * 1024
/** Of one write. */
const maximumBatchLength = 1024 * 1024
const retryMs = 1000
/** Interval of the check whether the file has been deleted or moved. */
const lookMs = 1000
const closeMs = 2000
const rotateAgainMs = 60_000

const openFile = promisify(open)
const makeDirectory = promisify(mkdir)
const statFile = promisify(fstat)
const statPath = promisify(stat)
const readFolder: (path: string) => Promise<string[]> = promisify(readdir)
const removeFile = promisify(unlink)
const renameFile = promisify(rename)
const truncateFile = promisify(ftruncate)
const readFile = promisify(read)
const writeFile = promisify(write)

/** Creates the folder with mode 0700 and the file with 0600. @throws errors of the file system */
export function openLineFile(
  path: string,
  report: LineFileReport,
  { maxBytes, backupCount, keptSeconds = 0 }: Rotation = { maxBytes: 0, backupCount: 1 },
): LineFile {
  for (const folder of foldersOf(path)) {
    try {
      mkdirSync(folder, 0o700)
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) throw error
    }
  }
  let file = openSync(path, flags, 0o600)
  /** Only regular files have a size and rotate. */
  let isFile: boolean
  let size: number
  try {
    const stats = fstatSync(file)
    isFile = requireFile(stats)
    size = stats.size
  } catch (error) {
    close(file, () => undefined)
    throw error
  }

  /** Complete lines that a partial write has left over. */
  let rest: Buffer = Buffer.alloc(0)
  let waiting: string[] = []
  let waitingLength = 0
  let lost = 0
  let trouble: 'write' | 'open' | undefined
  /** Whether the file ends in half a line; undefined: not checked yet. */
  let isTorn: boolean | undefined
  let reopenWanted = false
  let pumping: Promise<void> | undefined
  let retry: NodeJS.Timeout | undefined
  let lookedAt = performance.now()
  let rotateAt = 0
  let isClosed = false

  function fail(kindOfTrouble: 'write' | 'open', error: unknown): void {
    const isNews = trouble === undefined
    trouble = kindOfTrouble
    if (isNews) report.failed(error)
    if (isClosed) return
    retry ??= setTimeout(() => {
      retry = undefined
      reopenWanted = true
      void pump()
    }, retryMs).unref()
  }

  function succeed(kindOfTrouble: 'write' | 'open'): void {
    if (trouble !== kindOfTrouble) return
    trouble = undefined
    const lines = lost
    lost = 0
    report.resumed(lines)
  }

  async function openAgain(): Promise<void> {
    reopenWanted = false
    let next: number | undefined
    try {
      await makeOwnFolder(dirname(path))
      next = await openFile(path, flags, 0o600)
      const stats = await statFile(next)
      isFile = requireFile(stats)
      size = stats.size
    } catch (error) {
      if (next !== undefined) close(next, () => undefined)
      fail('open', error)
      return
    }
    close(file, () => undefined)
    file = next
    isTorn = undefined
    succeed('open')
  }

  /** A deleted or moved file still accepts lines, but nobody looks for them there. */
  async function lookForFile(): Promise<void> {
    if (performance.now() - lookedAt < lookMs) return
    lookedAt = performance.now()
    const stats = await statFile(file)
    // Another process may have truncated it.
    size = stats.size
    if (stats.nlink === 0 || (await isElsewhere(stats))) await openAgain()
  }

  /** Whether the path leads to no file or to another one. A path that cannot be looked at proves nothing. */
  async function isElsewhere({ dev, ino }: Stats): Promise<boolean> {
    try {
      const found = await statPath(path)
      return found.dev !== dev || found.ino !== ino
    } catch (error) {
      return hasCode(error, 'ENOENT', 'ENOTDIR')
    }
  }

  function isFull(): boolean {
    if (maxBytes === 0 || !isFile || size === 0 || performance.now() < rotateAt) return false
    return size + (rest.length > 0 ? rest.length : bytesOf(waiting[0])) > maxBytes
  }

  async function rotate(): Promise<void> {
    try {
      // Throws if the path is gone: another process has rotated the file.
      await statPath(path)
      const backups = keptSeconds === 0 ? numbersTo(backupCount - 1) : await backupNumbers()
      for (const n of backups) await renameIfThere(`${path}.${n}`, `${path}.${n + 1}`)
      await renameIfThere(path, `${path}.1`)
      if (keptSeconds > 0) await removeOld(backups.map((n) => n + 1))
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) {
        rotateAt = performance.now() + rotateAgainMs
        report.notRotated(error)
        return
      }
    }
    await openAgain()
  }

  /** Numbers of the rotated files, the greatest first. */
  async function backupNumbers(): Promise<number[]> {
    const start = `${basename(path)}.`
    return (await readFolder(dirname(path)))
      .flatMap((name) => {
        const number = name.startsWith(start) ? name.slice(start.length) : ''
        return /^[1-9]\d{0,8}$/.test(number) ? [Number(number)] : []
      })
      .sort((a, b) => b - a)
  }

  async function removeOld(backups: readonly number[]): Promise<void> {
    const since = Date.now() - keptSeconds * 1000
    for (const n of backups.filter((one) => one > backupCount)) {
      const name = `${path}.${n}`
      try {
        if ((await statPath(name)).mtimeMs < since) await removeFile(name)
      } catch {
        // It is gone, or the next rotation tries again.
      }
    }
  }

  function takeBatch(): Buffer {
    if (rest.length > 0) return rest
    const room = maxBytes === 0 || !isFile ? maximumBatchLength : Math.min(maximumBatchLength, maxBytes - size)
    let count = 0
    let length = 0
    let bytes = 0
    for (const line of waiting) {
      bytes += bytesOf(line)
      if (count > 0 && bytes > room) break
      count += 1
      length += line.length
    }
    const lines = waiting.splice(0, count)
    waitingLength -= length
    return Buffer.from(`${lines.join('\n')}\n`)
  }

  async function writeBatch(): Promise<void> {
    const batch = takeBatch()
    let written = 0
    try {
      isTorn ??= isFile && (await endsInHalfALine())
      if (isTorn) await writeFile(file, Buffer.from('\n'))
      isTorn = false
      while (written < batch.length) {
        const { bytesWritten } = await writeFile(file, batch, written, batch.length - written, null)
        written += bytesWritten
        size += bytesWritten
      }
      rest = Buffer.alloc(0)
    } catch (error) {
      const whole = batch.lastIndexOf('\n', written - 1) + 1
      const wholeLength = written === 0 ? 0 : whole
      rest = batch.subarray(wholeLength)
      await takeBack(written - wholeLength)
      throw error
    }
  }

  /** A process killed during a write leaves half a line. */
  async function endsInHalfALine(): Promise<boolean> {
    let same: number | undefined
    try {
      const { size } = await statFile(file)
      if (size === 0) return false
      // Opens the same file for reading, whichever file has the path now.
      same = await openFile(`/proc/self/fd/${file}`, constants.O_RDONLY)
      const { buffer } = await readFile(same, Buffer.alloc(1), 0, 1, size - 1)
      return buffer.toString('latin1') !== '\n'
    } catch {
      // The file permits writing only.
      return false
    } finally {
      if (same !== undefined) close(same, () => undefined)
    }
  }

  /** Truncates the half line that a full disk has left, so that readers find complete lines only. */
  async function takeBack(bytes: number): Promise<void> {
    if (bytes === 0) return
    isTorn = true
    if (!isFile) return
    try {
      const stats = await statFile(file)
      await truncateFile(file, stats.size - bytes)
      size = stats.size - bytes
      isTorn = false
    } catch {
      // The next line then follows the torn one.
    }
  }

  async function run(): Promise<void> {
    // Lines of this turn of the event loop share a write.
    await new Promise((resolve) => setImmediate(resolve))
    for (;;) {
      if (reopenWanted) await openAgain()
      if (rest.length === 0 && waiting.length === 0) return
      try {
        await lookForFile()
        if (isFull()) await rotate()
        await writeBatch()
      } catch (error) {
        fail('write', error)
        return
      }
      succeed('write')
    }
  }

  function pump(): Promise<void> {
    pumping ??= run().finally(() => {
      pumping = undefined
    })
    return pumping
  }

  return {
    append(line) {
      if (isClosed) return
      if (waitingLength + rest.length > maximumWaitingLength) {
        lost += 1
        fail('write', new Error('the disk writes lines too slowly'))
        return
      }
      waiting.push(line)
      waitingLength += line.length
      if (trouble !== 'write') void pump()
    },
    async reopen() {
      if (isClosed) return
      reopenWanted = true
      await pumping
      if (reopenWanted) await pump()
    },
    async close() {
      if (isClosed) return
      isClosed = true
      clearTimeout(retry)
      let timer: NodeJS.Timeout | undefined
      const late = new Promise((resolve) => {
        timer = setTimeout(resolve, closeMs)
      })
      await Promise.race([Promise.resolve(pumping).then(pump), late])
      clearTimeout(timer)
      const left = lost + waiting.length + countLines(rest)
      if (left > 0) report.lost(left)
      // A write that is still running closes the file itself.
      if (pumping === undefined) close(file, () => undefined)
    },
  }
}

/** Not those above it: where they are moved away, new ones would stand in the way of their return. */
async function makeOwnFolder(path: string): Promise<void> {
  try {
    await makeDirectory(path, 0o700)
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  }
}

/** Outermost first. Node's recursive mode never ends where the file system refuses folders, as in `/proc`. */
function foldersOf(path: string): string[] {
  const folder = dirname(path)
  return folder === dirname(folder) ? [] : [...foldersOf(folder), folder]
}

/** Including its line break. */
const bytesOf = (line: string | undefined): number => Buffer.byteLength(line ?? '') + 1

/** From the greatest down to 1. */
const numbersTo = (greatest: number): number[] => Array.from({ length: greatest }, (_, index) => greatest - index)

async function renameIfThere(from: string, to: string): Promise<void> {
  try {
    await renameFile(from, to)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
}

/**
 * Whether it is a regular file. @throws for anything that is not a device either, such as a pipe whose reader may
 * disappear
 */
function requireFile(stats: Stats): boolean {
  if (!stats.isFile() && !stats.isCharacterDevice()) throw new Error('it is neither a file nor a device')
  return stats.isFile()
}

function countLines(bytes: Buffer): number {
  let count = 0
  for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1)) count += 1
  return count
}
