/** `npm run check`: runs all checks, even if one fails, and prints a table of the results. */
import { join } from 'node:path'
import { ensureInstalled, findNode, main, root, run, runTool } from './lib.mjs'

const FOLDERS = ['src', 'tests', 'migrations', 'scripts', 'web']

const STEPS = [
  { name: 'types', run: () => runTool('tsc', []) },
  { name: 'types of the web client', run: () => runTool('tsc', ['-p', 'web']) },
  { name: 'lint', run: () => runTool('oxlint', ['--type-aware', ...FOLDERS]) },
  {
    name: 'format',
    run: () => runTool('prettier', ['--log-level', 'warn', '--check', ...FOLDERS, 'vitest.config.ts']),
  },
  { name: 'generated files', run: () => run(findNode(), [join(root, 'scripts', 'generate.mjs'), '--check']) },
  { name: 'boundaries and tests', run: () => run(findNode(), [join(root, 'scripts', 'run-tests.mjs')]) },
]

function formatRow({ name, code, seconds }) {
  return `  ${name.padEnd(22)}${(code === 0 ? 'ok' : `failed (${code})`).padEnd(14)}${seconds.toFixed(1).padStart(6)} s`
}

await main(async () => {
  await ensureInstalled()
  const rows = []
  for (const step of STEPS) {
    process.stdout.write(`\n${step.name}\n`)
    const started = performance.now()
    const code = await step.run()
    rows.push({ name: step.name, code, seconds: (performance.now() - started) / 1000 })
    // A signal is meant for the whole run.
    if (code > 128) return code
  }
  process.stdout.write(`\n${rows.map(formatRow).join('\n')}\n`)
  return rows.some(({ code }) => code !== 0) ? 1 : 0
})
