import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './tests/helpers/sequencer.ts'

const SERVERS = ['tests/conformance/**', 'tests/packaging/**', 'tests/web/**']
/** They take all of the machine, or measure what is taken of it. */
const ALONE = [
  'tests/stress/!(stubborn).test.ts',
  'tests/web/output-large.test.ts',
  ...['flood', 'idle-streams', 'open-files', 'statsd-gone'].map((name) => `tests/faults/${name}.test.ts`),
]
const RECOVERY = ['tests/recovery/*.test.ts', 'tests/faults/*.test.ts', 'tests/stress/stubborn.test.ts']
const CORES = Math.max(2, availableParallelism())
/** Much of the time tests wait, for what others do. */
const WAITING = Math.max(4, CORES + 1)

export default defineConfig({
  test: {
    // A process per file costs twelve times the run (docs/dependencies.md, section 2); one per worker makes it shorter than
    // threads do: what starts programs all the time copies the tables of its own memory alone, each time.
    pool: 'forks',
    isolate: false,
    maxWorkers: CORES,
    sequence: { sequencer: LongestFirst },
    reporters: ['default', './tests/helpers/closing-reporter.ts'],
    // Limits are for what hangs, not for what is slow: a machine that has other things to do takes many times as long.
    // Four groups, one after the other, so that what measures time or loads the machine does not starve its neighbours.
    projects: [
      {
        extends: true,
        test: {
          name: 'code',
          maxWorkers: WAITING,
          include: ['src/**/*.test.ts', 'web/**/*.test.ts', 'migrations/**/*.test.ts', 'tests/**/*.test.ts'],
          exclude: [...SERVERS, ...RECOVERY, ...ALONE, 'tests/bench/**'],
          setupFiles: ['./tests/helpers/leaks.ts'],
          testTimeout: 60_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'servers',
          maxWorkers: WAITING,
          include: SERVERS.map((folder) => `${folder}/*.test.ts`),
          exclude: ALONE,
          setupFiles: ['./tests/helpers/leaks.ts'],
          testTimeout: 120_000,
          hookTimeout: 180_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'recovery',
          include: RECOVERY,
          exclude: ALONE,
          maxWorkers: Math.max(3, CORES),
          setupFiles: ['./tests/helpers/leaks.ts'],
          testTimeout: 1_200_000,
          hookTimeout: 180_000,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: {
          name: 'alone',
          include: ALONE,
          setupFiles: ['./tests/helpers/leaks.ts'],
          maxWorkers: 1,
          testTimeout: 900_000,
          hookTimeout: 180_000,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
})
