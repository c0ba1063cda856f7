import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './tests/helpers/sequencer.ts'
import { ALONE, FULL_ONLY, tier } from './tests/helpers/tiers.ts'

const CORES = Math.max(2, availableParallelism())
/** Much of the time tests wait, for what others do. */
const WAITING = Math.max(4, CORES + 1)
const TESTS = ['src/**/*.test.ts', 'web/**/*.test.ts', 'migrations/**/*.test.ts', 'tests/**/*.test.ts']
const tests = {
  name: 'tests',
  include: TESTS,
  exclude: ['tests/bench/**', ...(tier === 'full' ? ALONE : FULL_ONLY)],
  maxWorkers: WAITING,
  sequence: { groupOrder: 0 },
}
const alone = { name: 'alone', include: ALONE, maxWorkers: 1, sequence: { groupOrder: 1 } }

export default defineConfig({
  test: {
    // A process per file costs twelve times the run (docs/dependencies.md, section 2); one per worker makes it shorter than
    // threads do: what starts programs all the time copies the tables of its own memory alone, each time.
    pool: 'forks',
    isolate: false,
    sequence: { sequencer: LongestFirst },
    reporters: ['default', './tests/helpers/closing-reporter.ts'],
    setupFiles: ['./tests/helpers/leaks.ts', './tests/helpers/built-code.ts'],
    // Limits are for what hangs, not for what is slow: a machine that has other things to do takes many times as long.
    // Tests of many minutes have limits of their own.
    testTimeout: 300_000,
    hookTimeout: 180_000,
    projects: (tier === 'full' ? [tests, alone] : [tests]).map((test) => ({ extends: true as const, test })),
  },
})
