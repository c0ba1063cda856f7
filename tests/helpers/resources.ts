/** What a process of the machine uses now. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

const MIB = 1024 * 1024

/** Resident memory in MiB. */
export function readMemory(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
  return (Number(kib) * 1024) / MIB
}

export function countFiles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length
}

/** Inodes of the sockets of a process. */
function socketsOf(pid: number): Set<string> {
  const found = new Set<string>()
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    try {
      const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1]
      if (inode !== undefined) found.add(inode)
    } catch {
      // Closed in between.
    }
  }
  return found
}

/** Sockets on which a process listens for TCP. */
export function countListening(pid: number): number {
  const sockets = socketsOf(pid)
  const rows = readFileSync(`/proc/${pid}/net/tcp`, 'utf8').trim().split('\n').slice(1)
  return rows.filter((row) => {
    const words = row.trim().split(/\s+/)
    return words[3] === '0A' && sockets.has(words[9] ?? '')
  }).length
}

export interface MemoryWatch {
  /** By how many MiB the resident memory has exceeded what it was at the beginning, at its worst. */
  stop(): number
}

/** Looks every 20 ms. */
export function watchMemory(pid: number): MemoryWatch {
  const before = readMemory(pid)
  let most = before
  const look = (): void => {
    most = Math.max(most, readMemory(pid))
  }
  const timer = setInterval(look, 20)
  return {
    stop() {
      clearInterval(timer)
      look()
      return most - before
    },
  }
}
