/** Request checks and error messages that both launchers share. */
import { statSync } from 'node:fs'
import { constants } from 'node:os'
import { codeOf } from '../../lib/process/index.ts'
import { type Exit, MAX_STDIN_BYTES, SpawnError, type SpawnRequest } from './launcher.ts'

/** Rejects requests that the system would misread instead of refusing. @throws SpawnError */
export function checkRequest(request: SpawnRequest): void {
  if (!request.file.startsWith('/')) throw invalid('the path of the program is not absolute')
  if (request.file.includes('\0')) throw invalid('the path of the program contains a NUL character')
  for (const argument of request.args) {
    if (argument.includes('\0')) throw invalid('an argument contains a NUL character')
  }
  for (const name in request.env) {
    if (name === '' || name.includes('=') || name.includes('\0')) {
      throw invalid(`"${name.replaceAll('\0', '\\0')}" is not a valid name of an environment variable`)
    }
    if (request.env[name]?.includes('\0') === true) {
      throw invalid(`the environment variable "${name}" contains a NUL character`)
    }
  }
  if (request.cwd?.includes('\0') === true) throw invalid('the working directory contains a NUL character')
  if (request.cwd?.startsWith('/') === false) throw invalid('the working directory is not an absolute path')
  if (request.stdin instanceof Uint8Array && request.stdin.length > MAX_STDIN_BYTES) {
    throw new SpawnError('E2BIG', `The content for stdin is larger than ${MAX_STDIN_BYTES} bytes.`)
  }
}

function invalid(why: string): SpawnError {
  return new SpawnError('EINVAL', `Cannot start the process: ${why}.`)
}

const reasons: Record<string, string> = {
  ENOENT: 'it does not exist',
  EACCES: 'permission denied',
  ENOTDIR: 'a part of its path is not a directory',
  ENOEXEC: 'it is not a program that this machine can run',
  E2BIG: 'its arguments and environment are too large together, or one of them exceeds 128 KiB',
  EMFILE: 'the server has too many open files',
  ENFILE: 'the machine has too many open files',
  EAGAIN: 'the process limit is reached',
  ENOMEM: 'out of memory',
}

/** The system reports a bad working directory and a bad program alike; this distinguishes them. */
export function spawnFailure(errno: string, request: SpawnRequest): SpawnError {
  const why = reasons[errno] ?? 'the system refused'
  if (request.cwd !== undefined && (errno === 'ENOENT' || errno === 'EACCES' || errno === 'ENOTDIR')) {
    const problem = cwdProblem(request.cwd)
    if (problem !== undefined) {
      return new SpawnError(
        problem,
        `Cannot use the working directory "${request.cwd}": ${reasons[problem] ?? why} (${problem}).`,
      )
    }
  }
  return new SpawnError(errno, `Cannot start "${request.file}": ${why} (${errno}).`, request.file)
}

function cwdProblem(cwd: string): string | undefined {
  try {
    // The trailing dot requires permission to search the directory, as chdir does.
    return statSync(`${cwd}/.`).isDirectory() ? undefined : 'ENOTDIR'
  } catch (error) {
    return codeOf(error)
  }
}

const signalNames = new Map<number, NodeJS.Signals>()
for (const name of ['SIGABRT', 'SIGIO'] as const) signalNames.set(constants.signals[name], name)
for (const [name, number] of Object.entries(constants.signals)) {
  // Keys of `constants.signals` are signal names; `Object.entries` only loses the type.
  if (!signalNames.has(number)) signalNames.set(number, name as NodeJS.Signals)
}

/** The `waitpid` status as an exit. */
export function exitOf(waitStatus: number): Exit {
  if (waitStatus === -1) return { code: null, signal: null }
  const signalNumber = waitStatus & 0x7f
  if (signalNumber === 0) return { code: (waitStatus >> 8) & 0xff, signal: null }
  const signal = signalNames.get(signalNumber)
  return signal === undefined ? { code: 128 + signalNumber, signal: null } : { code: null, signal }
}
