/**
 * The launcher that works everywhere: `node:child_process`, which forks on the event loop (trap A).
 *
 * Its pipes are sockets, because Node offers no others: stdout, stderr, an open stdin and the reply. A command that
 * opens `/dev/stdout` by name fails under this launcher. A child that a real-time signal ends appears to exit with code
 * 0.
 */
import { spawn } from 'node:child_process'
import { constants as fsConstants, readFileSync } from 'node:fs'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { codeOf } from '../../lib/process/index.ts'
import { type Child, type Exit, type Launcher, SpawnError, type SpawnRequest } from './launcher.ts'
import { writeStartNote } from '../start-note.ts'
import { checkRequest, spawnFailure } from './spawn-request.ts'

export function createChildProcessLauncher(): Launcher {
  return new ChildProcessLauncher()
}

class ChildProcessLauncher implements Launcher {
  readonly name = 'child-process'
  #stopped = false

  async spawn(request: SpawnRequest): Promise<Child> {
    checkRequest(request)
    if (!(request.stdin instanceof Uint8Array)) return await this.#spawn(request, undefined)
    let content: FileHandle
    try {
      content = await fileHolding(request.stdin)
    } catch (error) {
      throw new SpawnError(codeOf(error) ?? 'EUNKNOWN', 'Could not write the content for stdin to a temporary file.')
    }
    try {
      return await this.#spawn(request, content)
    } finally {
      // Not awaited: Node discards the output of a child that ends before a listener is attached.
      content.close().catch(() => undefined)
    }
  }

  stop(): Promise<void> {
    this.#stopped = true
    return Promise.resolve()
  }

  #spawn(request: SpawnRequest, stdin: FileHandle | undefined): Promise<Child> {
    return new Promise((resolve, reject) => {
      if (this.#stopped) throw new SpawnError('ECANCELED', 'The launcher is stopped.')
      try {
        writeStartNote(request.note)
        const child = spawn(request.file, request.args, {
          detached: true,
          env: request.env,
          stdio: [
            request.stdin === 'open' ? 'pipe' : stdin === undefined ? 'ignore' : stdin.fd,
            'pipe',
            'pipe',
            ...(request.hasReply === true ? ['pipe' as const] : []),
          ],
          ...(request.cwd === undefined ? {} : { cwd: request.cwd }),
        })
        const exited = new Promise<Exit>((ended) => {
          child.on('exit', (code, signal) => ended({ code, signal }))
        })
        // Reports a failure to start; the handler stays, since `exit` reports everything later.
        child.on('error', (error) => reject(spawnFailure(codeOf(error) ?? 'EUNKNOWN', request)))
        const { pid, stdout, stderr } = child
        if (pid === undefined || stdout === null || stderr === null) return
        // EPIPE: the child need not read its stdin.
        child.stdin?.on('error', () => child.stdin?.destroy())
        const reply = child.stdio[3]
        resolve({
          identity: { pid, startTime: startTimeOf(pid) },
          stdout,
          stderr,
          exited,
          ...(child.stdin === null ? {} : { stdin: child.stdin }),
          ...(reply instanceof Readable ? { reply } : {}),
        })
      } catch (error) {
        reject(spawnFailure(codeOf(error) ?? 'EUNKNOWN', request))
      }
    })
  }
}

/** The process exists until Node reaps it, which happens in a later turn. */
function startTimeOf(pid: number): string {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  return text.slice(text.lastIndexOf(')') + 2).split(' ', 20)[19] ?? ''
}

/**
 * An unnamed file, open for reading from its start.
 *
 * A pipe of `child_process` is a socket (trap B). Memory is preferred to disk, since the content may be a password.
 */
async function fileHolding(bytes: Uint8Array): Promise<FileHandle> {
  let failure: unknown
  for (const folder of ['/dev/shm', tmpdir()]) {
    const path = join(folder, `svc-stdin-${randomUUID()}`)
    try {
      const writer = await open(path, 'wx', 0o600)
      try {
        const reader = await open(path, fsConstants.O_RDONLY)
        await unlink(path)
        await writer.writeFile(bytes)
        return reader
      } finally {
        await writer.close()
      }
    } catch (error) {
      failure = error
    }
  }
  throw failure
}
