/**
 * Process start: the launcher thread beside `child_process.spawn`, at several numbers at once, with little and with much
 * live memory. Prints a table; `node tests/bench/launcher.ts [seconds per cell]`.
 *
 * The two take turns within each row, because absolute values drift. Each process is `sh -c 'echo hi'` with the
 * environment of this one, both streams read to their end.
 */
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import type { Readable } from 'node:stream'
import { parseArgs } from 'node:util'
import { createLauncher, type LauncherKind } from '../../src/runners/process/create-launcher.ts'
import type { Launcher } from '../../src/runners/process/launcher.ts'

interface Cell {
  perSecond: number
  p50Ms: number
  p99Ms: number
  /** Time the main loop was busy, per process. */
  busyMs: number
  longestStallMs: number
}

const { positionals } = parseArgs({ allowPositionals: true })
const secondsPerCell = Number(positionals[0] ?? 2)
const TURNS = 2
const MEGABYTE = 1024 * 1024
const env: Record<string, string> = {}
for (const [name, value] of Object.entries(process.env)) if (value !== undefined) env[name] = value

function readToEnd(stream: Readable): Promise<number> {
  return new Promise((resolve, reject) => {
    let bytes = 0
    stream.on('data', (chunk: Buffer) => (bytes += chunk.length))
    stream.on('end', () => resolve(bytes))
    stream.on('error', reject)
  })
}

async function runOnce(launcher: Launcher): Promise<void> {
  const child = await launcher.spawn({ file: '/bin/sh', args: ['-c', 'echo hi'], env })
  const [bytes, , exit] = await Promise.all([readToEnd(child.stdout), readToEnd(child.stderr), child.exited])
  if (bytes !== 3 || exit.code !== 0) throw new Error(`A process gave ${bytes} bytes and ended with ${exit.code}`)
}

async function measure(launcher: Launcher, atOnce: number, seconds: number): Promise<Cell> {
  for (let index = 0; index < atOnce; index++) await runOnce(launcher)
  const times: number[] = []
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  const before = performance.eventLoopUtilization()
  const start = performance.now()
  const end = start + seconds * 1000
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (performance.now() < end) {
        const began = performance.now()
        await runOnce(launcher)
        times.push(performance.now() - began)
      }
    }),
  )
  const elapsed = performance.now() - start
  const { active } = performance.eventLoopUtilization(before)
  delay.disable()
  times.sort((a, b) => a - b)
  const at = (share: number): number => times[Math.floor((times.length - 1) * share)] ?? 0
  return {
    perSecond: (times.length / elapsed) * 1000,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    busyMs: active / times.length,
    longestStallMs: delay.max / 1e6,
  }
}

/** The mean of turns, but the longest stall of all. */
function combine(cells: Cell[]): Cell {
  const mean = (key: keyof Cell): number => cells.reduce((sum, cell) => sum + cell[key], 0) / cells.length
  return {
    perSecond: mean('perSecond'),
    p50Ms: mean('p50Ms'),
    p99Ms: mean('p99Ms'),
    busyMs: mean('busyMs'),
    longestStallMs: Math.max(...cells.map((cell) => cell.longestStallMs)),
  }
}

const kinds: LauncherKind[] = ['posix-spawn-thread', 'child-process']
const launchers = await Promise.all(kinds.map(async (kind) => (await createLauncher(kind)).launcher))
const ballast: Buffer[] = []

process.stdout.write(`sh -c 'echo hi', ${Object.keys(env).length} variables, ${TURNS} turns of ${secondsPerCell} s, `)
process.stdout.write(`Node ${process.version}, ${process.arch}\n\n`)
process.stdout.write(
  `| At once | RSS MB | launcher | rate/s | p50 ms | p99 ms | main loop busy ms each | longest stall ms |\n`,
)
process.stdout.write(`|---|---|---|---|---|---|---|---|\n`)
for (const liveMegabytes of [0, 500]) {
  // Filled, because memory that was never touched costs a fork nothing.
  while (ballast.length < liveMegabytes) ballast.push(Buffer.alloc(MEGABYTE, 1))
  for (const atOnce of [1, 8, 16]) {
    const cells = new Map<string, Cell[]>()
    for (let turn = 0; turn < TURNS; turn++) {
      for (const launcher of launchers) {
        const measured = cells.get(launcher.name) ?? []
        measured.push(await measure(launcher, atOnce, secondsPerCell))
        cells.set(launcher.name, measured)
      }
    }
    const rss = Math.round(process.memoryUsage.rss() / MEGABYTE)
    for (const [name, turns] of cells) {
      const { perSecond, p50Ms, p99Ms, busyMs, longestStallMs } = combine(turns)
      const numbers = [p50Ms, p99Ms, busyMs].map((value) => value.toFixed(2))
      process.stdout.write(
        `| ${atOnce} | ${rss} | ${name} | ${Math.round(perSecond)} | ${numbers.join(' | ')} | ${longestStallMs.toFixed(1)} |\n`,
      )
    }
  }
}
await Promise.all(launchers.map((launcher) => launcher.stop()))
