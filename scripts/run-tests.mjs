/**
 * Second half of `npm test` (the daily run) and of `npm run test:full` (`--full`), for a Node that understands it. Other
 * arguments are those of `vitest run`; `--save-durations` also measures the order of the files (tests/durations.json).
 *
 * With `CI=true` a skipped test is a failure, and so is a run that ends without having counted its tests.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from './build.mjs'
import { ensureInstalled, main, runTool, ScriptError } from './lib.mjs'

function readSummary(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new ScriptError(`The test run ended without a summary: ${error.message}`)
  }
}

await main(async () => {
  await ensureInstalled()
  await build()
  const folder = mkdtempSync(join(tmpdir(), 'svc-test-'))
  const summaryPath = join(folder, 'summary.json')
  try {
    const ours = ['--full', '--save-durations']
    const given = process.argv.slice(2)
    const env = {
      SVC_TEST_SUMMARY: summaryPath,
      SVC_TEST_TIER: given.includes('--full') ? 'full' : 'daily',
      ...(given.includes('--save-durations') && { SVC_TEST_SAVE_DURATIONS: 'true' }),
    }
    const code = await runTool('vitest', ['run', ...given.filter((arg) => !ours.includes(arg))], { env })
    if (code !== 0) return code
    const { failed, skipped } = readSummary(summaryPath)
    return failed > 0 || (process.env.CI === 'true' && skipped > 0) ? 1 : 0
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
