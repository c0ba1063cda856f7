/** The Python that runs actions without a virtual environment, and makes the virtual environments. */
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

/** The same as long as the server runs, once it was found; `problem` is a sentence for the result of an execution. */
export type FindPython = () => Promise<Python | { problem: string }>

/** What the library for actions is written for. */
const LEAST_VERSION = [3, 8] as const
/** Where `python3` is a program that looks for the real one, that may take long. */
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
      // It may be installed meanwhile.
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
          'Python 3 is not installed where the server looks for it: there is no python3 in its PATH. Install it, or set ' +
          'python_binary in the section [actionrunner] of the configuration.',
      }
    }
    const cannot = (why: string): { problem: string } => ({
      problem:
        `The Python for actions, "${program}", cannot be used: ${why}. Set python_binary in the section ` +
        '[actionrunner] of the configuration to a Python 3.',
    })
    try {
      const request = { file: program, args: ['-c', QUESTION], env: { ...env } }
      const end = await runTool(deps, request, { timeoutSeconds: LIMIT_SECONDS, signal: neverAborted })
      const [executable = '', version = ''] = end.stdout.text.split(/\r?\n/)
      if (end.exit.code !== 0 || !/^\d+\.\d+\.\d+$/.test(version)) return cannot('it does not answer as Python does')
      const [major = 0, minor = 0] = version.split('.').map(Number)
      if (major !== LEAST_VERSION[0] || minor < LEAST_VERSION[1]) {
        return cannot(`it is Python ${version}, and ${LEAST_VERSION.join('.')} is the least that is needed`)
      }
      // One that was looked for may be a program that finds the real one anew each time, slowly.
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
