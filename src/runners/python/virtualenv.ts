/**
 * The virtual environments of packs (contract 02, 2.8): `<base_path>/virtualenvs/<pack>`. svc creates one on demand for
 * a pack with a `requirements.txt`, and updates it when that file has changed.
 */
import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../core/clock.ts'
import { virtualenvFailure } from '../../core/virtualenv-files.ts'
import { hasCode } from '../../lib/process/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import { DIRECTORY_LIMIT_MS } from '../process/directory-check.ts'
import { SpawnError } from '../process/launcher.ts'
import type { CommandDeps } from '../process/run-command.ts'
import type { RunContext } from '../runner.ts'
import type { FindPython, Python } from './find-python.ts'
import { installedNames, requiredNames, withIncluded, type RequirementsFile } from './requirements.ts'
import { problemOfPip } from './pip-problem.ts'
import { runTool } from './tool.ts'
import { readJson, writeJson } from '../../lib/json/index.ts'

/** A caller that waits for an environment; it gets the output and can give up. */
export interface VirtualenvUser {
  signal: AbortSignal
  emit?: RunContext['emit']
  /** For an execution: its id identifies the processes after a crash. */
  executionId?: string
}

/** `problem` is a sentence for the user, with pip's messages if pip failed. */
export type VirtualenvOutcome = { program: string } | { problem: string }

export interface Virtualenvs {
  /**
   * The Python that runs the actions of a pack; creates the environment if it is missing or out of date. What could not
   * be created is tried again after minutes, later after hours, also over restarts; at once when its inputs change or
   * somebody asks for it (`ensure`, `recreate`).
   */
  interpreterFor(
    context: Pick<RunContext, 'pack' | 'packFolder' | 'signal' | 'emit' | 'executionId'>,
  ): Promise<VirtualenvOutcome>
  /**
   * Ensures that the environment matches the requirements of the pack. Concurrent callers for the same pack wait and
   * share the outcome. Without `requirements.txt` it creates nothing and returns the Python that all such packs share.
   */
  ensure(pack: string, packFolder: string, user: VirtualenvUser): Promise<VirtualenvOutcome>
  /** Creates the environment from scratch. */
  recreate(pack: string, packFolder: string, user: VirtualenvUser): Promise<VirtualenvOutcome>
  /** Removes the environment with the pack, after work in progress. */
  remove(pack: string): Promise<void>
  /** What the environment lacks, as far as names tell; without network. Undefined: the pack has no requirements. */
  examine(pack: string, packFolder: string): Promise<VirtualenvState | undefined>
}

export interface VirtualenvState {
  /** Packages of `requirements.txt` that are not installed. */
  missing: string[]
  /** Why it could not be created with these requirements. */
  problem?: string
}

export interface VirtualenvOptions {
  /** `<base_path>/virtualenvs` */
  folder: string
  findPython: FindPython
  /** The environment that programs inherit. */
  env: Readonly<Record<string, string>>
  /** `actionrunner.virtualenv_opts` */
  virtualenvOpts: readonly string[]
  /** `actionrunner.pip_opts` */
  pipOpts: readonly string[]
  /** Called before an environment changes, with its Python. */
  changed(program: string): void
  clock: Pick<Clock, 'now'>
}

/** Written last: a folder without it is incomplete. */
const RECORD = '.svc-requirements.json'
/** Written instead when programs have failed. */
const FAILURE = virtualenvFailure
const MAX_REQUIREMENTS_BYTES = 1024 * 1024
/** A network may be back, or an index repaired. Doubled with each failure. */
const RETRY_SECONDS = 300
const MAX_RETRY_SECONDS = 6 * 3600
const QUESTION_LIMIT_SECONDS = 60
const neverAborted = new AbortController().signal
/** For each of the two programs; pip may have to compile. */
const LIMIT_SECONDS = 1800
/** Characters of a program's output in the message; the output of the execution has all of it. */
const MAX_WORDS = 2000

/** The inputs of an environment. */
interface VirtualenvRecord {
  /** Path and version of the Python, and the options: a change requires a new environment. */
  made: string
  /** Digest of `requirements.txt` with the files that it includes, and of the options of pip. */
  requirements: string
}

interface FailureRecord extends VirtualenvRecord {
  problem: string
  /** ISO 8601 */
  at: string
  /** Failures with these inputs, one after the other. */
  failures: number
}

export function createVirtualenvs(deps: CommandDeps, options: VirtualenvOptions): Virtualenvs {
  const { folder, findPython } = options
  /** Work in progress per pack. */
  const busy = new Map<string, Promise<unknown>>()
  /** The last known match per pack, so that an action costs only one look at the file. */
  const known = new Map<string, VirtualenvRecord>()

  async function ensure(
    pack: string,
    packFolder: string,
    user: VirtualenvUser,
    { isAnew = false, isAsked = true }: { isAnew?: boolean; isAsked?: boolean } = {},
  ): Promise<VirtualenvOutcome> {
    const python = await findPython()
    if ('problem' in python) return python
    const requirements = await readRequirements(pack, packFolder)
    if (requirements === undefined) return { program: python.program }
    if (typeof requirements !== 'string') return requirements
    const wanted = wantedWith(python, await withIncluded(requirements, packFolder))
    const path = join(folder, pack)
    const program = join(path, 'bin', 'python')
    for (;;) {
      if (user.signal.aborted) return givenUp(pack)
      const other = busy.get(pack)
      if (other !== undefined) {
        const outcome = await Promise.race([other, aborted(user.signal)])
        // Another caller's outcome applies here too, unless it gave up, or had other requirements.
        if (isFailure(outcome, wanted) && !isAnew) return outcome.told
        continue
      }
      if (!isAnew && fits(known.get(pack), wanted)) return { program }
      const failure = isAsked ? undefined : await readFailure(path, wanted)
      if (failure !== undefined && !isDue(failure)) return { problem: remembered(pack, failure) }
      if (busy.has(pack)) continue
      const { promise, resolve } = Promise.withResolvers<unknown>()
      busy.set(pack, promise)
      let told: VirtualenvOutcome | undefined
      try {
        const found = isAnew ? undefined : await readRecord(join(path, RECORD))
        told = fits(found, wanted)
          ? { program }
          : await make({ pack, packFolder, path, program, python, user, wanted, isNew: found?.made !== wanted.made })
        if ('program' in told) known.set(pack, wanted)
        return told
      } finally {
        busy.delete(pack)
        resolve(user.signal.aborted || told === undefined ? undefined : { told, wanted })
      }
    }
  }

  function wantedWith({ program, version }: Python, requirements: readonly RequirementsFile[]): VirtualenvRecord {
    return {
      made: writeJson([program, version, options.virtualenvOpts]),
      requirements: createHash('sha256')
        // Environments of earlier releases stay as they are.
        .update(writeJson([requirements.length === 1 ? requirements[0]?.[1] : requirements, options.pipOpts]))
        .digest('hex'),
    }
  }

  async function readRequirements(pack: string, packFolder: string): Promise<string | undefined | { problem: string }> {
    const name = `The file requirements.txt of the pack "${pack}"`
    if (packFolder === '') return undefined
    if (!(await deps.directoryCheck(packFolder))) {
      return { problem: `${name} was not readable within ${DIRECTORY_LIMIT_MS / 1000} seconds.` }
    }
    try {
      const bytes = await readFile(join(packFolder, 'requirements.txt'))
      if (bytes.length > MAX_REQUIREMENTS_BYTES)
        return { problem: `${name} is larger than ${MAX_REQUIREMENTS_BYTES} bytes.` }
      return bytes.toString('utf8')
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return undefined
      return { problem: `${name} is not readable.` }
    }
  }

  async function make(job: {
    pack: string
    packFolder: string
    path: string
    program: string
    python: Python
    user: VirtualenvUser
    wanted: VirtualenvRecord
    /** Starts with an empty folder. */
    isNew: boolean
  }): Promise<VirtualenvOutcome> {
    const { pack, packFolder, path, program, python, user, wanted } = job
    options.changed(program)
    known.delete(pack)
    const failures = (await readFailure(path, wanted))?.failures ?? 0
    const failed = async (problem: RunProblem): Promise<{ problem: string }> => {
      if (problem.isLasting) await rememberFailure(path, { ...wanted, problem: problem.text, failures: failures + 1 })
      return { problem: problem.text }
    }
    // From here on it is incomplete.
    await rm(join(path, RECORD), { force: true })
    await rm(join(path, FAILURE), { force: true })
    if (job.isNew) {
      await rm(path, { recursive: true, force: true })
      const problem = await run(
        `Could not create the virtual environment of the pack "${pack}"`,
        { file: python.program, args: ['-m', 'venv', ...options.virtualenvOpts, path], cwd: '/' },
        user,
      )
      if (problem !== undefined) return await failed(problem)
    }
    const pip = ['-m', 'pip', 'install', '--disable-pip-version-check', '--no-input', ...options.pipOpts]
    const problem = await run(
      `Could not install the requirements of the pack "${pack}"`,
      { file: program, args: [...pip, '-r', 'requirements.txt'], cwd: packFolder },
      user,
    )
    if (problem !== undefined) return await failed(problem)
    await writeRecord(join(path, RECORD), wanted)
    return { program }
  }

  async function rememberFailure(path: string, failure: Omit<FailureRecord, 'at'>): Promise<void> {
    await mkdir(path, { recursive: true })
    const record: FailureRecord = { ...failure, at: timeOf(options.clock.now()) }
    await writeRecord(join(path, FAILURE), record)
  }

  function isDue(failure: FailureRecord): boolean {
    const elapsedMs = options.clock.now() / 1000 - Date.parse(failure.at)
    // Before: the clock has been set back.
    return elapsedMs < 0 || elapsedMs >= retrySeconds(failure) * 1000
  }

  /** Returns the problem, if any. */
  async function run(
    what: string,
    request: { file: string; args: string[]; cwd: string },
    user: VirtualenvUser,
  ): Promise<RunProblem | undefined> {
    const problem = (text: string, isLasting = false): RunProblem => ({ text: `${what}${text}`, isLasting })
    try {
      const { executionId, signal } = user
      const end = await runTool(
        deps,
        { ...request, env: { ...options.env } },
        {
          timeoutSeconds: LIMIT_SECONDS,
          signal,
          // Not output of the action itself.
          emit: (_, text) => user.emit?.('other', text),
          ...(executionId === undefined ? {} : { executionId }),
        },
      )
      if (end.timedOut) return problem(` within ${LIMIT_SECONDS} seconds.`, true)
      if (end.wasKilled) return problem(': svc stopped it.')
      if (end.exit.code === 0) return undefined
      // A signal came from outside.
      const said = problemOfPip(`${end.stdout.text}\n${end.stderr.text}`)
      return problem(`: ${lastWords(said)}`, end.exit.code !== null)
    } catch (error) {
      if (error instanceof SpawnError) return problem(`: ${error.message}`)
      throw error
    }
  }

  /** Folders of packages that environments share with the Python of the machine. */
  const systemFolders = rememberLast(async (program: string): Promise<string[]> => {
    const request = { file: program, args: ['-c', 'import sys; print("\\n".join(sys.path))'], env: { ...options.env } }
    try {
      const end = await runTool(deps, request, { timeoutSeconds: QUESTION_LIMIT_SECONDS, signal: neverAborted })
      return end.stdout.text.split('\n').filter((line) => line.startsWith('/'))
    } catch (error) {
      if (error instanceof SpawnError) return []
      throw error
    }
  })

  return {
    interpreterFor: ({ pack, packFolder, signal, emit, executionId }) =>
      ensure(pack, packFolder, { signal, emit, executionId }, { isAsked: false }),
    ensure: (pack, packFolder, user) => ensure(pack, packFolder, user),
    recreate: (pack, packFolder, user) => ensure(pack, packFolder, user, { isAnew: true }),
    async examine(pack, packFolder) {
      const requirements = await readRequirements(pack, packFolder)
      if (requirements === undefined) return undefined
      if (typeof requirements !== 'string') return { missing: [], problem: requirements.problem }
      const python = await findPython()
      if ('problem' in python) return { missing: [], problem: python.problem }
      const path = join(folder, pack)
      const files = await withIncluded(requirements, packFolder)
      const names = requiredNames(files, python.version)
      const installed = await installedNames(path, () => systemFolders(python.program))
      const missing = names.filter((name) => !installed.has(name))
      const failure = await readFailure(path, wantedWith(python, files))
      return { missing, ...(failure === undefined ? {} : { problem: failure.problem }) }
    },
    async remove(pack) {
      for (let other = busy.get(pack); other !== undefined; other = busy.get(pack)) await other
      const path = join(folder, pack)
      const { promise, resolve } = Promise.withResolvers<undefined>()
      busy.set(pack, promise)
      try {
        options.changed(join(path, 'bin', 'python'))
        known.delete(pack)
        await rm(join(path, RECORD), { force: true })
        await rm(path, { recursive: true, force: true })
      } finally {
        busy.delete(pack)
        resolve(undefined)
      }
    },
  }
}

/** Keeps the last answer, for calls with the same argument. */
function rememberLast<T>(ask: (key: string) => Promise<T>): (key: string) => Promise<T> {
  let last: { key: string; answer: Promise<T> } | undefined
  return (key) => {
    if (last?.key !== key) last = { key, answer: ask(key) }
    return last.answer
  }
}

function fits(found: VirtualenvRecord | undefined, wanted: VirtualenvRecord): boolean {
  return found !== undefined && found.made === wanted.made && found.requirements === wanted.requirements
}

interface RunProblem {
  text: string
  /** The same inputs would fail again. */
  isLasting: boolean
}

async function writeRecord(path: string, record: VirtualenvRecord): Promise<void> {
  await writeFile(`${path}.new`, writeJson(record))
  await rename(`${path}.new`, path)
}

/** Undefined: missing, incomplete or damaged. */
async function readObject(path: string): Promise<Record<string, unknown> | undefined> {
  try {
    const found: unknown = readJson(await readFile(path, 'utf8'))
    return isObject(found) ? found : undefined
  } catch {
    return undefined
  }
}

async function readRecord(path: string): Promise<VirtualenvRecord | undefined> {
  const { made, requirements } = (await readObject(path)) ?? {}
  return typeof made === 'string' && typeof requirements === 'string' ? { made, requirements } : undefined
}

/** Of the environment at `path`, with these inputs. */
async function readFailure(path: string, wanted: VirtualenvRecord): Promise<FailureRecord | undefined> {
  const file = join(path, FAILURE)
  if (!fits(await readRecord(file), wanted)) return undefined
  const { problem, at, failures = 1 } = (await readObject(file)) ?? {}
  if (typeof problem !== 'string' || typeof at !== 'string' || typeof failures !== 'number') return undefined
  return { ...wanted, problem, at, failures }
}

const retrySeconds = ({ failures }: Pick<FailureRecord, 'failures'>): number =>
  Math.min(MAX_RETRY_SECONDS, RETRY_SECONDS * 2 ** (failures - 1))

const timeOf = (micros: number): string => new Date(Math.floor(micros / 1000)).toISOString()

function isFailure(
  outcome: unknown,
  wanted: VirtualenvRecord,
): outcome is { told: { problem: string }; wanted: VirtualenvRecord } {
  if (typeof outcome !== 'object' || outcome === null) return false
  const { told, wanted: others } = outcome as { told: VirtualenvOutcome; wanted: VirtualenvRecord } // resolved above
  return 'problem' in told && fits(others, wanted)
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
}

function remembered(pack: string, failure: FailureRecord): string {
  const next = timeOf((Date.parse(failure.at) + retrySeconds(failure) * 1000) * 1000)
  return (
    `${failure.problem}\nThat was at ${failure.at}. svc tries again after ${next}; at once when requirements.txt or the ` +
    `Python changes, or on "svc run packs.setup_virtualenv packs=${pack}".`
  )
}

function givenUp(pack: string): { problem: string } {
  return { problem: `Stopped waiting for the virtual environment of the pack "${pack}".` }
}

/** The end of the output, where such programs report errors. */
function lastWords(text: string): string {
  const trimmed = text.trim()
  return trimmed.length <= MAX_WORDS ? trimmed : `…${trimmed.slice(-MAX_WORDS)}`
}
