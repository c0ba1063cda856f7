/** What a check of a StackStorm installation finds. */
import type { FileProblem } from '../lib/text/index.ts'
import type { ConfOption } from './conf.ts'
import type { PackKind, PackScan } from './pack-scan.ts'

/** `included`: svc has a pack of this name of its own, which is used. */
export type PackState = 'ready' | 'partly' | 'refused' | 'included'

/** How many there are, and how many of those svc takes. */
export interface Share {
  total: number
  usable: number
}

export interface PackReport {
  pack: string
  folder: string
  state: PackState
  /** By kind; without kinds that the pack has none of. */
  content: Partial<Record<PackKind | 'workflows' | 'configs', Share>>
  /** `none`: there is no configuration. */
  /** `unchecked`: used, but its schema is refused. */
  config: 'valid' | 'unchecked' | 'refused' | 'none'
  problems: FileProblem[]
  /** Problems that the server found beyond those it named. */
  problems_not_listed: number
  /** What is to be known of it and keeps nothing from running. */
  warnings: FileProblem[]
  warnings_not_listed: number
  old_names: PackScan['oldNames']
  requirements: string[]
}

/** A record of an export that svc refuses. */
export interface RefusedRecord {
  kind: string
  name: string
  why: string
  source: string
}

export interface CheckReport {
  folder: string
  packs: PackReport[]
  /** Outcomes of the records of exports, by kind. */
  records: Record<string, Partial<Record<string, number>>>
  refused_records: RefusedRecord[]
  refused_records_not_listed: number
  /** Records that are not taken over, by kind. */
  left: Record<string, number>
  /** Records of the history, by kind. */
  history: Record<string, number>
  options: Omit<ConfOption, 'written'>[]
  /** Sums over all packs, and over the records of exports. */
  content: Partial<Record<PackKind | 'workflows' | 'configs' | 'records', Share>>
  /** Of all content that is counted, in percent; 100 when there is none. */
  usable_percent: number
  /** Needs `[compat] stackstorm = True`. */
  needs_old_names: boolean
  /** Files and folders that were not read, and why. */
  skipped: { path: string; why: string }[]
  skipped_not_listed: number
  problems: string[]
}

/** Adds what a pack has to the sums. */
export function addContent(sums: CheckReport['content'], more: CheckReport['content']): void {
  for (const [kind, { total, usable }] of Object.entries(more)) {
    const key = kind as keyof typeof more // its own keys
    const sum = (sums[key] ??= { total: 0, usable: 0 })
    sum.total += total
    sum.usable += usable
  }
}

/** Rounded down to a tenth, so that 100 means all. */
export function percentOf({ total, usable }: Share): number {
  return total === 0 ? 100 : Math.floor((usable / total) * 1000) / 10
}

export function sumOf(content: CheckReport['content']): Share {
  const sum = { total: 0, usable: 0 }
  for (const share of Object.values(content)) {
    sum.total += share.total
    sum.usable += share.usable
  }
  return sum
}
