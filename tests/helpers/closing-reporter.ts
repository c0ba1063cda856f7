/**
 * Ends a test run with one line that a program can read: `N passed, N failed`, and `, N skipped` where there are any.
 *
 * Files that could not be loaded and errors outside of tests count as failed, so `0 failed` means that the run is good.
 * With `CI=true` a skipped test fails the run. `SVC_TEST_SUMMARY` names a file that gets the same counts as JSON.
 * With `SVC_TEST_SAVE_DURATIONS=true` the seconds of each file go to tests/durations.json.
 */
import { existsSync, writeFileSync } from 'node:fs'
import type { Reporter, TestModule } from 'vitest/node'
import { tier } from './tiers.ts'
import { DURATIONS_FILE, readDurations } from './sequencer.ts'

export default class ClosingReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 }
    const skippedNames: string[] = []
    for (const module of modules) {
      counts.failed += module.errors().length
      for (const suite of module.children.allSuites()) counts.failed += suite.errors().length
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        if (state === 'passed') counts.passed += 1
        else if (state === 'failed') counts.failed += 1
        else {
          counts.skipped += 1
          skippedNames.push(`${module.relativeModuleId} > ${test.fullName}`)
        }
      }
    }
    if (process.env['CI'] === 'true' && counts.skipped > 0) {
      process.exitCode = 1
      process.stdout.write(
        `With CI=true a skipped test is a failure:\n${skippedNames.map((name) => `  ${name}\n`).join('')}`,
      )
    }
    const summaryPath = process.env['SVC_TEST_SUMMARY']
    if (summaryPath !== undefined) writeFileSync(summaryPath, JSON.stringify(counts))
    if (process.env['SVC_TEST_SAVE_DURATIONS'] === 'true') saveDurations(modules)
    const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''
    process.stdout.write(`${counts.passed} passed, ${counts.failed} failed${skipped}\n`)
  }
}

/** Files that were not run keep what was measured earlier; those that are gone go. */
function saveDurations(modules: readonly TestModule[]): void {
  const durations = readDurations()
  for (const module of modules) {
    durations[tier][module.relativeModuleId] = Math.round(module.diagnostic().duration / 100) / 10
  }
  for (const known of ['daily', 'full'] as const) {
    const files = Object.entries(durations[known]).filter(([file]) => existsSync(file))
    durations[known] = Object.fromEntries(files.toSorted(([a], [b]) => (a < b ? -1 : 1)))
  }
  writeFileSync(DURATIONS_FILE, `${JSON.stringify(durations, null, 2)}\n`)
}
