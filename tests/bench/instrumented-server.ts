/**
 * The built server with what a benchmark needs around it: live data to carry (`BENCH_BALLAST_MB`), and a gauge of the event
 * loop that is printed and reset on SIGWINCH.
 */
import { enableCompileCache } from 'node:module'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { join } from 'node:path'

const RESOLUTION_MS = 2

const ballast = Array.from({ length: Number(process.env['BENCH_BALLAST_MB'] ?? 0) }, (_, i) =>
  Buffer.alloc(1_000_000, i + 1),
)

const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
delay.enable()
process.on('SIGWINCH', () => {
  // The gauge counts its own sampling pause as delay.
  const beyond = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS)
  const measured = { p99: beyond(delay.percentile(99)), max: beyond(delay.max), ballast: ballast.length }
  delay.reset()
  process.stdout.write(`BENCH ${JSON.stringify(measured)}\n`)
})

process.argv = [
  process.argv[0] ?? '',
  join(import.meta.dirname, '..', '..', 'dist', 'cli.js'),
  'serve',
  ...process.argv.slice(2),
]
// As `cli.ts` does.
enableCompileCache(join(import.meta.dirname, '..', '..', 'dist', '.compile-cache'))
await import(join(import.meta.dirname, '..', '..', 'dist', 'main.js'))
