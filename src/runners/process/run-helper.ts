/** Runs short programs of the server itself, such as sendmail, that get their input at once. */
import type { Launcher } from './launcher.ts'

const MAX_ERROR_CHARS = 2000

export interface HelperRequest {
  /** Absolute path. */
  file: string
  args: string[]
  stdin: Uint8Array
  /** When it is aborted, the program and its process group are killed. */
  signal: AbortSignal
}

/**
 * Resolves when the program has ended: with its exit code, 128 after a signal, and the end of its standard error.
 *
 * @throws SpawnError; the reason of the signal when it is aborted
 */
export type RunHelper = (request: HelperRequest) => Promise<{ code: number; error: string }>

export function createRunHelper(launcher: Launcher, env: Record<string, string>): RunHelper {
  return async ({ file, args, stdin, signal }) => {
    signal.throwIfAborted()
    const child = await launcher.spawn({ file, args, env, stdin })
    let error = ''
    child.stdout.on('error', () => undefined).resume()
    child.stderr.on('error', () => undefined)
    child.stderr.on('data', (chunk: Buffer) => {
      error = (error + chunk.toString()).slice(-MAX_ERROR_CHARS)
    })
    const kill = (): void => {
      try {
        // It leads its own process group.
        process.kill(-child.identity.pid, 'SIGKILL')
      } catch {
        // It has just ended.
      }
    }
    signal.addEventListener('abort', kill, { once: true })
    try {
      const { code } = await child.exited
      signal.throwIfAborted()
      return { code: code ?? 128, error }
    } finally {
      signal.removeEventListener('abort', kill)
    }
  }
}
