/**
 * The virtual environments of packs (contract 02, 2.8): `<base_path>/virtualenvs/<pack>`. svc creates one on demand for
 * a pack with a `requirements.txt`, and updates it when that file has changed.
 */
import { createHash } from 'node:crypto'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../lib/process/index.ts'
import { DIRECTORY_LIMIT_MS } from '../process/directory-check.ts'
import { SpawnError } from '../process/launcher.ts'
import type { CommandDeps } from '../process/run-command.ts'
import type { RunContext } from '../runner.ts'
import type { FindPython, Python } from './find-python.ts'
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
  /** The Python that runs the actions of a pack; creates the environment if it is missing or out of date. */
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
}

/** Written last: a folder without it is incomplete. */
const RECORD = '.svc-requirements.json'
const MAX_REQUIREMENTS_BYTES = 1024 * 1024
/** For each of the two programs; pip may have to compile. */
const LIMIT_SECONDS = 1800
/** Characters of a program's output in the message; the output of the execution has all of it. */
const MAX_WORDS = 2000

/** The inputs of an environment. */
interface VirtualenvRecord {
  /** Path and version of the Python, and the options: a change requires a new environment. */
  made: string
  /** Digest of `requirements.txt` and of the options of pip. */
  requirements: string
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
    isAnew = false,
  ): Promise<VirtualenvOutcome> {
    const python = await findPython()
    if ('problem' in python) return python
    const requirements = await readRequirements(pack, packFolder)
    if (requirements === undefined) return { program: python.program }
    if (typeof requirements !== 'string') return requirements
    const wanted: VirtualenvRecord = {
      made: writeJson([python.program, python.version, options.virtualenvOpts]),
      requirements: createHash('sha256')
        .update(writeJson([requirements, options.pipOpts]))
        .digest('hex'),
    }
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
      const { promise, resolve } = Promise.withResolvers<unknown>()
      busy.set(pack, promise)
      let told: VirtualenvOutcome | undefined
      try {
        const found = isAnew ? undefined : await readRecord(path)
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
    // From here on it is incomplete.
    await rm(join(path, RECORD), { force: true })
    if (job.isNew) {
      await rm(path, { recursive: true, force: true })
      const problem = await run(
        `Could not create the virtual environment of the pack "${pack}"`,
        { file: python.program, args: ['-m', 'venv', ...options.virtualenvOpts, path], cwd: '/' },
        user,
      )
      if (problem !== undefined) return { problem }
    }
    const pip = ['-m', 'pip', 'install', '--disable-pip-version-check', '--no-input', ...options.pipOpts]
    const problem = await run(
      `Could not install the requirements of the pack "${pack}"`,
      { file: program, args: [...pip, '-r', 'requirements.txt'], cwd: packFolder },
      user,
    )
    if (problem !== undefined) return { problem }
    const draft = join(path, `${RECORD}.new`)
    await writeFile(draft, writeJson(wanted))
    await rename(draft, join(path, RECORD))
    return { program }
  }

  /** Returns the problem, if any. */
  async function run(
    what: string,
    request: { file: string; args: string[]; cwd: string },
    user: VirtualenvUser,
  ): Promise<string | undefined> {
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
      if (end.timedOut) return `${what} within ${LIMIT_SECONDS} seconds.`
      if (end.wasKilled) return `${what}: svc stopped it.`
      if (end.exit.code === 0) return undefined
      return `${what}: ${lastWords(`${end.stdout.text}\n${end.stderr.text}`)}`
    } catch (error) {
      if (error instanceof SpawnError) return `${what}: ${error.message}`
      throw error
    }
  }

  return {
    interpreterFor: ({ pack, packFolder, signal, emit, executionId }) =>
      ensure(pack, packFolder, { signal, emit, executionId }),
    ensure: (pack, packFolder, user) => ensure(pack, packFolder, user),
    recreate: (pack, packFolder, user) => ensure(pack, packFolder, user, true),
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

function fits(found: VirtualenvRecord | undefined, wanted: VirtualenvRecord): boolean {
  return found !== undefined && found.made === wanted.made && found.requirements === wanted.requirements
}

async function readRecord(path: string): Promise<VirtualenvRecord | undefined> {
  try {
    const found: unknown = readJson(await readFile(join(path, RECORD), 'utf8'))
    if (typeof found !== 'object' || found === null) return undefined
    const { made, requirements } = found as Record<string, unknown> // an object
    return typeof made === 'string' && typeof requirements === 'string' ? { made, requirements } : undefined
  } catch {
    // Missing, incomplete or damaged: create it again.
    return undefined
  }
}

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

function givenUp(pack: string): { problem: string } {
  return { problem: `Stopped waiting for the virtual environment of the pack "${pack}".` }
}

/** The end of the output, where such programs report errors. */
function lastWords(text: string): string {
  const trimmed = text.trim()
  return trimmed.length <= MAX_WORDS ? trimmed : `…${trimmed.slice(-MAX_WORDS)}`
}
