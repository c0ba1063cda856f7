/**
 * Order of the test files: those that took longest begin first, so that all workers end at about the same time.
 * `npm test -- --save-durations` measures anew and writes tests/durations.json, for the tier that it runs.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { tier, type Tier } from './tiers.ts'

/** Seconds by file, for each tier. */
export type Durations = Record<Tier, Record<string, number>>

export const DURATIONS_FILE = join(import.meta.dirname, '..', 'durations.json')

/** For files that were not measured yet. */
const UNKNOWN_SECONDS = 5

export function readDurations(): Durations {
  if (!existsSync(DURATIONS_FILE)) return { daily: {}, full: {} }
  return JSON.parse(readFileSync(DURATIONS_FILE, 'utf8')) as Durations // the closing reporter has written it
}

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const seconds = readDurations()[tier]
    const root = join(import.meta.dirname, '..', '..')
    const durationOf = ({ moduleId }: TestSpecification): number =>
      seconds[moduleId.slice(root.length + 1)] ?? UNKNOWN_SECONDS
    const sorted = await super.sort(files)
    return sorted.toSorted((a, b) => durationOf(b) - durationOf(a))
  }
}
