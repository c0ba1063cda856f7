/** Copies files to a new folder on another machine, and removes that folder. */
import { posix } from 'node:path'
import type { RunContext } from '../runner.ts'
import { SshError, sshTextOf } from './connection.ts'
import { removeProgram } from './remote-program.ts'
import { openOn, runHelperSomehow, type ConnectedHost, type HostRunDeps } from './run-on-host.ts'

export interface LocalFile {
  /** Relative to the folder. */
  path: string[]
  bytes: Buffer
  mode: number
}

/** For each SFTP request. */
const ANSWER_LIMIT_MS = 60_000
const REMOVE_LIMIT_MS = 30_000
const PIECE_BYTES = 32 * 1024
const PIECES_AT_ONCE = 16

/** @throws Error when the copy is incomplete */
export async function copyFiles(
  deps: Pick<HostRunDeps, 'pool'>,
  host: ConnectedHost,
  folder: string,
  files: readonly LocalFile[],
  signal: AbortSignal,
): Promise<void> {
  const sftp = await openOn(deps, host, signal, (connection, limitMs) => connection.sftp(limitMs))
  // Requests on a closed connection never get an answer.
  const lost = Promise.withResolvers<never>()
  lost.promise.catch(() => undefined)
  sftp.on('close', () => lost.reject(new SshError('The connection was closed.')))
  sftp.on('error', (error: Error) => lost.reject(error))
  const ask = <T>(what: string, request: (answer: (error?: Error | null, value?: T) => void) => void): Promise<T> => {
    if (signal.aborted) throw new SshError('Stopped while copying.')
    let timer: NodeJS.Timeout | undefined
    const asked = new Promise<T>((resolve, reject) => {
      timer = setTimeout(() => reject(new SshError(`${what}: no answer.`)), ANSWER_LIMIT_MS)
      request((error, value) => {
        if (error === undefined || error === null)
          resolve(value as T) // requests with a result always pass one
        else reject(new SshError(`${what}: ${sshTextOf(error)}.`))
      })
    })
    return Promise.race([asked, lost.promise]).finally(() => clearTimeout(timer))
  }
  try {
    await ask<void>(`Cannot make the folder ${folder}`, (answer) => sftp.mkdir(folder, { mode: 0o700 }, answer))
    const made = new Set<string>()
    for (const { path, bytes, mode } of files) {
      for (let depth = 1; depth < path.length; depth++) {
        const inner = posix.join(folder, ...path.slice(0, depth))
        if (made.has(inner)) continue
        made.add(inner)
        await ask<void>(`Cannot make the folder ${inner}`, (answer) => sftp.mkdir(inner, { mode: 0o700 }, answer))
      }
      const name = posix.join(folder, ...path)
      const what = `Cannot write ${name}`
      const handle = await ask<Buffer>(what, (answer) => sftp.open(name, 'wx', { mode }, answer))
      for (let start = 0; start < bytes.length; start += PIECE_BYTES * PIECES_AT_ONCE) {
        const pieces: Promise<void>[] = []
        for (let at = start; at < Math.min(bytes.length, start + PIECE_BYTES * PIECES_AT_ONCE); at += PIECE_BYTES) {
          const length = Math.min(PIECE_BYTES, bytes.length - at)
          pieces.push(ask<void>(what, (answer) => sftp.write(handle, bytes, at, length, at, answer)))
        }
        await Promise.all(pieces)
      }
      // The umask of the other side must not matter.
      await ask<void>(what, (answer) => sftp.fchmod(handle, mode, answer))
      await ask<void>(what, (answer) => sftp.close(handle, answer))
    }
  } finally {
    sftp.end()
  }
}

/** Removes the folder with all files that the script made in it. A failure is a warning; the result stays as it is. */
export async function removeFolder(
  deps: HostRunDeps,
  { executionId }: Pick<RunContext, 'executionId'>,
  host: ConnectedHost,
  folder: string,
  sudo: boolean,
): Promise<void> {
  let problem: string | undefined
  try {
    const { code, text } = await runHelperSomehow(deps, host, removeProgram(folder, sudo), REMOVE_LIMIT_MS)
    if (code !== 0) problem = text
  } catch (error) {
    problem = sshTextOf(error)
  }
  if (problem === undefined) return
  const fields = { execution_id: executionId, host: host.label, folder, error: problem }
  deps.warn('Could not remove the folder of a script from another host.', fields)
}
