/**
 * Shared by the scripts: installing, finding the pinned Node, running programs. Built-in modules only, and nothing newer
 * than Node 20, because a fresh clone has nothing else.
 */
import { spawn, spawnSync } from 'node:child_process'
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { basename, delimiter, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))

const FLOOR = '22.14'
const EXIT_CONFIG = 78
const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2']
/** Exit codes of a program that a signal stopped. */
const INTERRUPTIONS = ['SIGINT', 'SIGTERM', 'SIGHUP'].map((signal) => 128 + constants.signals[signal])
/** Repeating any other signal repeats its effect. */
const FROM_TERMINAL = ['SIGINT', 'SIGTERM']
const SAME_SIGNAL_MILLISECONDS = 500
const LOCK_STALE_MILLISECONDS = 15 * 60_000
/** Required native add-ons, with code that loads each; the process launcher works without koffi. */
const ADD_ONS = {
  'better-sqlite3': `new (require('better-sqlite3'))(':memory:').close()`,
  argon2: `require('argon2')`,
}

/** An error that the user can fix: printed without a stack trace; the script exits with `exitCode`. */
export class ScriptError extends Error {
  constructor(message, exitCode = 1) {
    super(message)
    this.name = 'ScriptError'
    this.exitCode = exitCode
  }
}

/** Runs a script's main function; sets the exit code to what it resolves to. */
export async function main(body) {
  try {
    process.exitCode = (await body()) ?? 0
  } catch (error) {
    const message = error instanceof ScriptError ? error.message : describeDiskError(error)
    if (message === undefined) throw error
    process.stderr.write(`${message}\n`)
    process.exitCode = error.exitCode ?? 1
  }
}

function describeDiskError(error) {
  const mend = {
    EACCES: 'Give this account write permission there, or run the command as an account that has it.',
    EPERM: 'Give this account write permission there, or run the command as an account that has it.',
    EROFS: 'The file system is read-only. Use a copy of the project on another file system.',
    ENOSPC: 'Free disk space and run the same command again.',
    EDQUOT: 'Free disk space and run the same command again.',
  }
  return Object.hasOwn(mend, error?.code ?? '') ? `${error.message}\n${mend[error.code]}` : undefined
}

function reachesFloor(version) {
  const [major, minor] = version.split('.').map(Number)
  const [floorMajor, floorMinor] = FLOOR.split('.').map(Number)
  return major > floorMajor || (major === floorMajor && minor >= floorMinor)
}

/** The Node that runs the product: the one npm installed here, else the running one if it is new enough. */
export function findNode() {
  const installed = join(root, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node')
  if (existsSync(installed)) return installed
  if (reachesFloor(process.versions.node)) return process.execPath
  throw new ScriptError(
    `svc needs Node.js ${FLOOR} or newer; this is ${process.versions.node}, and npm has no prebuilt one for ` +
      `${process.platform} on ${process.arch}. Install a newer Node.js and try again.`,
    EXIT_CONFIG,
  )
}

/** Environment in which `node` and the installed tools come first. */
function childEnvironment(extra) {
  const path = [join(root, 'node_modules', '.bin'), process.env.PATH].filter(Boolean).join(delimiter)
  return { ...process.env, PATH: path, ...extra }
}

/**
 * Runs a program in the foreground, hands signals on to it, and resolves to its exit code (128 + n after a signal).
 * The child stays in this process group, so that killing the group leaves nothing behind.
 */
export function run(file, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { cwd: root, stdio: 'inherit', ...options, env: childEnvironment(options.env) })
    const lastSeen = new Map()
    // A key press arrives from the terminal and once more from npm.
    const forward = (signal) => {
      const now = performance.now()
      const before = lastSeen.get(signal)
      lastSeen.set(signal, now)
      const isRepeated = before !== undefined && now - before <= SAME_SIGNAL_MILLISECONDS
      if (!isRepeated || !FROM_TERMINAL.includes(signal)) child.kill(signal)
    }
    for (const signal of FORWARDED) process.on(signal, forward)
    const settle = (act) => {
      for (const signal of FORWARDED) process.off(signal, forward)
      act()
    }
    child.once('error', (error) => settle(() => reject(new ScriptError(`Cannot start ${file}: ${error.message}`))))
    child.once('exit', (code, signal) => settle(() => resolve(code ?? 128 + constants.signals[signal])))
  })
}

/** Runs the program of an installed package, by its name in `node_modules/.bin`, on the pinned Node. */
export function runTool(name, args, options) {
  return run(findNode(), [realpathSync(join(root, 'node_modules', '.bin', name)), ...args], options)
}

/** Runs a program quietly; resolves to its exit code and everything it printed. */
export async function capture(file, args, options = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-'))
  const log = openSync(join(folder, 'output'), 'w')
  try {
    const code = await run(file, args, { ...options, stdio: ['ignore', log, log] })
    if (INTERRUPTIONS.includes(code)) throw new ScriptError('Interrupted.', code)
    return { code, output: readFileSync(join(folder, 'output'), 'utf8') }
  } finally {
    closeSync(log)
    rmSync(folder, { recursive: true })
  }
}

function isRunning(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

function isStale(lockPath) {
  try {
    const pid = Number(readFileSync(lockPath, 'utf8'))
    const age = Date.now() - statSync(lockPath).mtimeMs
    // Between being created and being filled in, the file is empty for a moment.
    if (pid === 0) return age > 5000
    // In a container, process ids restart at every start: the previous process may have had this id.
    if (pid === process.pid) return true
    return !isRunning(pid) || age > LOCK_STALE_MILLISECONDS
  } catch (error) {
    if (error.code === 'ENOENT') return false
    throw error
  }
}

/** Runs `body` while no other script of this folder is inside the same lock. */
export async function withLock(name, body) {
  const lockPath = join(root, `.${name}.lock`)
  for (;;) {
    try {
      const lock = openSync(lockPath, 'wx')
      writeSync(lock, String(process.pid))
      closeSync(lock)
      break
    } catch (error) {
      if (error.code !== 'EEXIST') throw error
      if (isStale(lockPath)) rmSync(lockPath, { force: true })
      else await delay(100)
    }
  }
  // A signal that ends this process leaves the lock to be found stale.
  try {
    return await body()
  } finally {
    rmSync(lockPath, { force: true })
  }
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    if (error.code === 'ENOENT') return undefined
    throw new ScriptError(`Cannot read ${path}: ${error.message}`)
  }
}

/** Optional dependencies that are required on their platform. */
function listNeeded() {
  const place = `${process.platform}-${process.arch}`
  return [`@esbuild/${place}`, ...(reachesFloor(process.versions.node) ? [] : [`node-${place}`])]
}

/** npm's own record of what it installed, compared with the lock file entry by entry. */
function findInstallReason() {
  const wanted = readJson(join(root, 'package-lock.json'))
  if (wanted === undefined) throw new ScriptError('package-lock.json is missing. Use a complete copy of the project.')
  const installed = readJson(join(root, 'node_modules', '.package-lock.json'))
  if (installed === undefined) return 'first start only'
  const isMissing = (name) => {
    const path = `node_modules/${name}`
    return wanted.packages[path] !== undefined && installed.packages[path] === undefined
  }
  const missing = listNeeded().filter(isMissing)
  if (missing.length > 0) return `${missing.join(' and ')} missing, as with npm's option omit=optional`
  for (const [path, entry] of Object.entries(wanted.packages)) {
    if (path === '') continue
    const present = installed.packages[path]
    if (present === undefined ? entry.optional !== true : present.integrity !== entry.integrity) {
      return 'package-lock.json has changed'
    }
  }
  return undefined
}

/** npm as a program and its first arguments: the npm that started us, else the one in PATH. */
function findNpm() {
  const cli = process.env.npm_execpath
  if (cli !== undefined && basename(cli) === 'npm-cli.js' && existsSync(cli)) {
    // The node in PATH may be the pinned one, which the installation is about to remove.
    const node = process.env.npm_node_execpath
    return { file: node !== undefined && existsSync(node) ? node : process.execPath, args: [cli] }
  }
  return { file: 'npm', args: [] }
}

async function runNpm(args, options) {
  const npm = findNpm()
  try {
    return await capture(npm.file, [...npm.args, ...args], options)
  } catch (error) {
    if (npm.file !== 'npm') throw error
    throw new ScriptError('npm was not found. It is part of Node.js; some systems have it in a separate package "npm".')
  }
}

/** Between two drawings of a line that changes. */
const DRAW_MS = 250

/**
 * Says what is being done. At a terminal it is one line with the time, and with what `detail` returns, and at the end how
 * long it took; elsewhere a plain line.
 *
 * @param {() => string} detail
 */
export async function withProgress(text, body, detail = () => '') {
  const { stderr, env } = process
  if (stderr.isTTY !== true || env.TERM === 'dumb') {
    stderr.write(`${text}…\n`)
    return body()
  }
  const began = performance.now()
  const seconds = () => `${Math.round((performance.now() - began) / 1000)} s`
  const draw = (end) => {
    // Some terminals wrap in the last column.
    const columns = (stderr.columns > 0 ? stderr.columns : 80) - 1
    stderr.write(`\r\x1b[K${`${text}… ${end}`.slice(0, columns)}`)
  }
  const drawNow = () => draw([seconds(), detail()].filter(Boolean).join(', '))
  drawNow()
  const timer = setInterval(drawNow, DRAW_MS)
  let outcome = 'failed after'
  try {
    const result = await body()
    outcome = 'done in'
    return result
  } finally {
    clearInterval(timer)
    draw(`${outcome} ${seconds()}`)
    stderr.write('\n')
  }
}

/** How many packages are there, of those that are wanted. */
function countPackages() {
  const wanted = readJson(join(root, 'package-lock.json')).packages
  const top = Object.entries(wanted).filter(([path, { os, cpu }]) => {
    const isHere =
      (os ?? [process.platform]).includes(process.platform) && (cpu ?? [process.arch]).includes(process.arch)
    return isHere && /^node_modules\/(@[^/]+\/)?[^/]+$/.test(path)
  })
  const present = top.filter(([path]) => existsSync(join(root, path, 'package.json')))
  return `${present.length} of ${top.length} packages`
}

function lastLines(text, count) {
  return text.trimEnd().split('\n').slice(-count).join('\n')
}

/** The lines that name the errors, without the stacks around them. */
function errorLines(text) {
  const lines = text.split('\n').filter((line) => /^\S*Error\b/.test(line))
  return lines.length > 0 ? lines.join('\n') : lastLines(text, 5)
}

function findMissingBuildTools() {
  const tools = { make: ['make'], 'a C++ compiler': ['c++', 'g++', 'clang++'], python3: ['python3', 'python'] }
  return Object.entries(tools)
    .filter(([, names]) => names.every((name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status !== 0))
    .map(([name]) => name)
}

/** Loads an add-on in a separate process, because an incompatible one may crash it silently. */
function load(name) {
  return capture(findNode(), ['-e', ADD_ONS[name]])
}

/** Builds an add-on without a working binary, or reports the missing build tools. */
async function buildAddOn(name, failure) {
  const place = `${process.platform}-${process.arch}`
  const missing = findMissingBuildTools()
  if (missing.length > 0) {
    throw new ScriptError(
      `The package ${name} has no prebuilt binary that works on ${place}, and building it needs ${missing.join(', ')}, ` +
        `which is missing. Install it and try again.\n${errorLines(failure.output)}`,
    )
  }
  process.stderr.write(`Building ${name}, which has no prebuilt binary for ${place}…\n`)
  const cwd = join(root, 'node_modules', name)
  const built = await runNpm(['exec', '--yes', '--package=node-gyp', '--', 'node-gyp', 'rebuild', '--release'], { cwd })
  const result = built.code === 0 ? await load(name) : built
  if (result.code !== 0)
    throw new ScriptError(`${lastLines(result.output, 20)}\n\nCould not build ${name} (see above).`)
}

async function installPackages() {
  // NODE_ENV=production must not drop the tools, nor a user's setting the pinned Node.
  const result = await runNpm([
    'ci',
    '--ignore-scripts',
    '--include=dev',
    '--include=optional',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ])
  if (result.code !== 0) {
    throw new ScriptError(
      `${lastLines(result.output, 20)}\n\nCould not install the dependencies (see above). npm needs access to its ` +
        'registry and write permission here. Fix this and run the same command again.',
    )
  }
}

/** Installs the dependencies if they are absent or differ from the lock file, and tries the native add-ons once. */
export async function ensureInstalled() {
  if (findInstallReason() === undefined) return
  await withLock('install', async () => {
    const reason = findInstallReason()
    if (reason === undefined) return
    await withProgress(`Installing dependencies (${reason})`, installPackages, countPackages)
    try {
      for (const name of Object.keys(ADD_ONS)) {
        const failure = await load(name)
        if (failure.code !== 0) await buildAddOn(name, failure)
      }
    } catch (error) {
      // Without npm's record the next start comes here again instead of failing in the middle of the product.
      rmSync(join(root, 'node_modules', '.package-lock.json'), { force: true })
      throw error
    }
  })
}
