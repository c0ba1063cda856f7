/** What the server takes of the machine over time, and whether that stays as it is. */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { pssBytes, treeOf } from '../bench/server.ts'
import { countFiles, readMemory } from '../helpers/resources.ts'

export interface Sample {
  /** Seconds since the beginning. */
  at: number
  rssMib: number
  pssMib: number
  fileMib: number
  walMib: number
  openFiles: number
  /** How many there are now. */
  executions: number
}

const MIB = 1024 * 1024

export function takeSample(pid: number, basePath: string, at: number, executions: number): Sample {
  const size = (name: string): number => (statSync(join(basePath, name), { throwIfNoEntry: false })?.size ?? 0) / MIB
  let pss = 0
  for (const each of treeOf(pid)) {
    try {
      pss += pssBytes(each)
    } catch {
      // A child has ended meanwhile.
    }
  }
  return {
    at,
    rssMib: readMemory(pid),
    pssMib: pss / MIB,
    fileMib: size('svc.db'),
    walMib: size('svc.db-wal'),
    openFiles: countFiles(pid),
    executions,
  }
}

export function sampleLine(sample: Sample, more: string): string {
  const { at, rssMib, pssMib, fileMib, walMib, openFiles, executions } = sample
  const cells = [
    `${String(Math.round(at)).padStart(5)} s`,
    `RSS ${rssMib.toFixed(0).padStart(4)} MiB`,
    `tree ${pssMib.toFixed(0).padStart(4)} MiB`,
    `file ${fileMib.toFixed(1).padStart(6)} MiB`,
    `WAL ${walMib.toFixed(1).padStart(5)} MiB`,
    `${String(openFiles).padStart(4)} files`,
    `${String(executions).padStart(6)} executions`,
  ]
  return `${cells.join('  ')}  ${more}`
}

export interface Trend {
  name: string
  early: number
  late: number
  isFlat: boolean
}

/** How much more than before is still the same; and, so that little things do not count, how many of its unit. */
const rows = [
  { name: 'RSS, MiB', read: (sample: Sample) => sample.rssMib, ratio: 1.15, slack: 15 },
  { name: 'tree, MiB', read: (sample: Sample) => sample.pssMib, ratio: 1.25, slack: 25 },
  { name: 'file, MiB', read: (sample: Sample) => sample.fileMib, ratio: 1.15, slack: 10 },
  { name: 'WAL, MiB', read: (sample: Sample) => sample.walMib, ratio: 1.15, slack: 20 },
  { name: 'open files', read: (sample: Sample) => sample.openFiles, ratio: 1.15, slack: 25 },
]

/** Compares the middle third of a series with its last one, median with median. */
export function trendsOf(samples: readonly Sample[]): Trend[] {
  const third = Math.floor(samples.length / 3)
  const middle = samples.slice(third, 2 * third)
  const end = samples.slice(2 * third)
  return rows.map(({ name, read, ratio, slack }) => {
    const early = median(middle.map(read))
    const late = median(end.map(read))
    return { name, early, late, isFlat: samples.length >= 9 && late <= early * ratio + slack }
  })
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}
