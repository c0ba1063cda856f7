/** What a process of the machine uses now. */
import { readdirSync, readFileSync } from 'node:fs'

const MIB = 1024 * 1024

/** Resident memory in MiB. */
export function readMemory(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
  return (Number(kib) * 1024) / MIB
}

export function countFiles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length
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
