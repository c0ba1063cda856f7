#!/usr/bin/env node
/**
 * Entry of the executable: makes sure that a Node which can load the native add-ons runs the program.
 *
 * Until that is known nothing but `node:` modules may be imported: on an older Node the add-ons do not fail with an error,
 * they crash the process (docs/dependencies.md, section 1). Exit code 78 (EX_CONFIG) when no fitting Node can be started.
 */
import type { spawn as Spawn } from 'node:child_process'
import type Inspector from 'node:inspector'
import module from 'node:module'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const FLOOR = '22.14'
const EXIT_CONFIG = 78
const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const
/**
 * For the server: without them the engine keeps a young generation of 130 MB after output has streamed through it, and
 * lets the old one double before it looks for garbage. They count only when the process begins (docs/performance.md,
 * trap G).
 */
const SERVER_FLAGS = ['--max-semi-space-size=8', '--heap-growing-percent=30']
/** Pid of the process that started this one only to run it on another Node. */
const WRAPPER_PID = 'SVC_WRAPPER_PID'
const WRAPPER_LOOK_MILLISECONDS = 1000
/** The others ask for something to be done again, and each of them has its own reason. */
const FROM_TERMINAL: ReadonlySet<NodeJS.Signals> = new Set(['SIGINT', 'SIGTERM'])
/** One key press reaches this process from the terminal, and once more from npm. */
const SAME_SIGNAL_MILLISECONDS = 500

function reachesFloor(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [floorMajor = 0, floorMinor = 0] = FLOOR.split('.').map(Number)
  return major > floorMajor || (major === floorMajor && minor >= floorMinor)
}

/** The Node that npm installed beside the program, or undefined. */
function pinnedNode(): string | undefined {
  const require = module.createRequire(import.meta.url)
  try {
    const manifestPath = require.resolve(`node-${process.platform}-${process.arch}/package.json`)
    const manifest: { version?: unknown } = require(manifestPath)
    // An older one would only lead back here, again and again.
    if (typeof manifest.version !== 'string' || !reachesFloor(manifest.version)) return undefined
    return join(dirname(manifestPath), 'bin', 'node')
  } catch {
    return undefined
  }
}

function refuse(reason: string): never {
  process.stderr.write(`svc: needs Node.js ${FLOOR} or newer; this is ${process.versions.node}, and ${reason}\n`)
  process.exit(EXIT_CONFIG)
}

/** Only flags and their values can stand before the command. */
function isServer(): boolean {
  const words = process.argv.slice(2)
  const leading = words.slice(0, words.indexOf('serve') + 1)
  return (
    leading.length > 0 &&
    leading.slice(0, -1).every((word, index) => word.startsWith('-') || leading[index - 1]?.startsWith('-') === true)
  )
}

/** Arguments of Node itself for this command. */
function flags(): string[] {
  const isGiven = (flag: string): boolean =>
    process.execArgv.some((given) => given.split('=', 1)[0] === flag.split('=', 1)[0])
  const missing = isServer() ? SERVER_FLAGS.filter((flag) => !isGiven(flag)) : []
  return missing.length > 0 ? [...missing, ...process.execArgv] : process.execArgv
}

/** Runs the same command line under `node` and ends as it ends. */
function runUnder(node: string): void {
  // Loading it takes as long as all of this file, and on a fitting Node nobody needs it.
  const { spawn }: { spawn: typeof Spawn } = module.createRequire(import.meta.url)('node:child_process')
  const lastSeen = new Map<NodeJS.Signals, number>()
  const forward = (signal: NodeJS.Signals): void => {
    const now = performance.now()
    const before = lastSeen.get(signal)
    lastSeen.set(signal, now)
    const isRepeated = before !== undefined && now - before <= SAME_SIGNAL_MILLISECONDS
    if (!isRepeated || !FROM_TERMINAL.has(signal)) child.kill(signal)
  }
  // First: the program may be ready, and somebody stop it, before this process goes on.
  for (const signal of FORWARDED) process.on(signal, forward)
  const child = spawn(node, [...flags(), ...process.argv.slice(1)], {
    stdio: 'inherit',
    env: { ...process.env, [WRAPPER_PID]: String(process.pid) },
  })
  child.once('error', (error) => refuse(`the one installed beside it cannot be started here: ${error.message}`))
  child.once('exit', (code, signal) => {
    for (const forwarded of FORWARDED) process.off(forwarded, forward)
    if (signal === null) process.exit(code ?? 1)
    process.kill(process.pid, signal)
    // The first process of a container survives its own signals.
    setTimeout(() => process.exit(128 + constants.signals[signal]), 100)
  })
}

/**
 * Ends this process, as TERM does, within seconds after the end of its wrapper. KILL gives the wrapper no time to forward
 * it. The pid of a parent stays the same when this process executes another program.
 */
function endWithWrapper(): void {
  const wrapper = process.env[WRAPPER_PID]
  delete process.env[WRAPPER_PID]
  if (wrapper === undefined) return
  const timer = setInterval(() => {
    if (String(process.ppid) === wrapper) return
    clearInterval(timer)
    process.kill(process.pid, 'SIGTERM')
  }, WRAPPER_LOOK_MILLISECONDS).unref()
}

/** Node opens its debugger at SIGUSR1 unless somebody listens. `--disable-sigusr1` would keep the signal from listeners. */
function closeDebugger(): void {
  if (process.execArgv.some((flag) => flag.startsWith('--inspect'))) return
  const inspector: typeof Inspector = module.createRequire(import.meta.url)('node:inspector')
  inspector.close()
}

process.on('SIGUSR1', () => undefined)
// A signal may have come before this line. Nobody signals other commands.
if (isServer()) {
  closeDebugger()
  setImmediate(closeDebugger)
}
if (reachesFloor(process.versions.node)) {
  // In place of this process, so that there is one to watch and to signal. Node has it since 22.15.
  if (flags() !== process.execArgv && typeof process.execve === 'function') {
    process.execve(process.execPath, [process.execPath, ...flags(), ...process.argv.slice(1)], process.env)
  }
  const here = dirname(fileURLToPath(import.meta.url))
  // Beside the program, not in the shared temporary folder: whoever can write the cache decides what code runs.
  if (import.meta.url.endsWith('.js')) module.enableCompileCache(join(here, '.compile-cache'))
  endWithWrapper()
  await import('./cli/main.ts')
} else {
  const node = pinnedNode()
  if (node === undefined) {
    const name = `node-${process.platform}-${process.arch}`
    const supported = process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch)
    refuse(
      supported
        ? `the package ${name}, which brings one, is not installed. Run "npm ci" in the program's folder, or use a newer Node.js.`
        : `there is no package that brings one for ${process.platform} on ${process.arch}. Install a newer Node.js and try again.`,
    )
  } else {
    runUnder(node)
  }
}
