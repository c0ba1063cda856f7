/** Finds the Python that runs actions without a virtual environment and creates the virtual environments. */
import { access, constants } from 'node:fs/promises'
import { join } from 'node:path'
import { SpawnError } from '../process/launcher.ts'
import type { CommandDeps } from '../process/run-command.ts'
import { runTool } from './tool.ts'

export interface Python {
  /** Absolute path. */
  program: string
  /** `3.11.7` */
  version: string
}

/** Stable once found, until the server stops; `problem` is a sentence for the result of an execution. */
export type FindPython = () => Promise<Python | { problem: string }>

/** The oldest version that the action library supports. */
const LEAST_VERSION = [3, 8] as const
/** `python3` may be a slow wrapper that locates the real program. */
const LIMIT_SECONDS = 60
const QUESTION = 'import sys; print(sys.executable or ""); print("%d.%d.%d" % sys.version_info[:3])'

/**
 * @param binary `actionrunner.python_binary`; empty: `python3` in the PATH
 * @param env what children inherit
 */
export function createFindPython(
  deps: CommandDeps,
  { binary, env }: { binary: string; env: Readonly<Record<string, string>> },
): FindPython {
  let asking: ReturnType<FindPython> | undefined
  return () => {
    asking ??= find().then((found) => {
      // It may get installed later.
      if ('problem' in found) asking = undefined
      return found
    })
    return asking
  }

  async function find(): Promise<Python | { problem: string }> {
    const program = binary === '' ? await inPath(env['PATH'] ?? '') : binary
    if (program === undefined) {
      return {
        problem:
          'The server finds no python3 in its PATH. Install Python 3, or set ' +
          'python_binary in the section [actionrunner] of the configuration.',
      }
    }
    const cannot = (why: string): { problem: string } => ({
      problem:
        `The Python for actions, "${program}", is unusable: ${why}. Set python_binary in the section ` +
        '[actionrunner] of the configuration to a Python 3.',
    })
    try {
      const request = { file: program, args: ['-c', QUESTION], env: { ...env } }
      const end = await runTool(deps, request, { timeoutSeconds: LIMIT_SECONDS, signal: neverAborted })
      const [executable = '', version = ''] = end.stdout.text.split(/\r?\n/)
      if (end.exit.code !== 0 || !/^\d+\.\d+\.\d+$/.test(version)) return cannot('it does not behave like Python')
      const [major = 0, minor = 0] = version.split('.').map(Number)
      if (major !== LEAST_VERSION[0] || minor < LEAST_VERSION[1]) {
        return cannot(`it is Python ${version}, older than the required ${LEAST_VERSION.join('.')}`)
      }
      // `python3` may be a wrapper that locates the real program on each start, slowly.
      return { program: binary === '' && executable.startsWith('/') ? executable : program, version }
    } catch (error) {
      if (error instanceof SpawnError) return cannot(error.message.replace(/\.$/, ''))
      throw error
    }
  }
}

const neverAborted = new AbortController().signal

async function inPath(path: string): Promise<string | undefined> {
  for (const folder of path.split(':')) {
    if (!folder.startsWith('/')) continue
    const program = join(folder, 'python3')
    const isThere = await access(program, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isThere) return program
  }
  return undefined
}
