/** The launcher that calls `posix_spawn` on its own thread; `posix-spawn-thread.ts` is the other half. */
import { writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { isMainThread, type Worker } from 'node:worker_threads'
import { locateCode, startWorker } from '../../core/bundle.ts'
import { hasCode } from '../../lib/process/index.ts'
import { type Child, type Exit, type Launcher, SpawnError, type SpawnRequest } from './launcher.ts'
import type { ThreadReport, ThreadRequest, ThreadSettings, ThreadSpawn } from './posix-spawn-thread.ts'
import { checkRequest, exitOf, spawnFailure } from './spawn-request.ts'

const THREAD_URL = locateCode('./posix-spawn-thread', import.meta.url)
/** Attempts to start a thread that fails to start; further attempts follow on demand. */
const MAX_FAILED_STARTS = 3

export interface PosixSpawnOptions {
  /** Tests use a thread that dies on demand. */
  threadUrl?: URL
}

type Spawned = Extract<ThreadReport, { kind: 'spawned' }>

interface PendingSpawn {
  request: SpawnRequest
  message: ThreadSpawn
  /** Returns the writer of the child's stdin, if it has one. */
  started(report: Spawned, exited: Promise<Exit>): Socket | undefined
  reject(error: SpawnError): void
}

interface RunningChild {
  pid: number
  /** The thread's descriptor; undefined between two threads. */
  pidfd: number | undefined
  stdin: Socket | undefined
  /** A process that discards output; it does not keep this process alive. */
  isHelper: boolean
  ended(exit: Exit): void
}

/** Opens the pipes again: the flags of the descriptors that it inherits are those of this process. */
const discardScripts: readonly string[] = [
  'exec cat /proc/self/fd/0 > /dev/null',
  'exec > /dev/null; cat /proc/self/fd/3 & exec cat /proc/self/fd/0',
]

/** Starts the thread. Rejects when the machine lacks a requirement; the message names it. */
export async function createPosixSpawnLauncher(options: PosixSpawnOptions = {}): Promise<Launcher> {
  const launcher = new PosixSpawnLauncher(options.threadUrl ?? THREAD_URL)
  await launcher.start()
  return launcher
}

class PosixSpawnLauncher implements Launcher {
  readonly name = 'posix-spawn-thread'
  readonly #threadUrl: URL
  readonly #pending = new Map<number, PendingSpawn>()
  readonly #running = new Map<number, RunningChild>()
  #queued: ThreadSpawn[] = []
  #nextId = 1
  #worker: Worker | undefined
  #wakeFd = -1
  #ownFds: number[] = []
  #orphanedFds: number[] = []
  #everReady = false
  #failedStarts = 0
  #stopped: Promise<void> | undefined
  #keepsProcess = true
  #helpers = 0

  constructor(threadUrl: URL) {
    this.#threadUrl = threadUrl
  }

  async start(): Promise<void> {
    await this.#startThread()
    process.on('exit', this.#release)
  }

  spawn(request: SpawnRequest): Promise<Child> {
    return new Promise((resolve, reject) => {
      this.#request(
        request,
        undefined,
        (report, exited) => {
          const { child, stdin } = makeChild(report, exited, request.stdin)
          resolve(child)
          return stdin
        },
        reject,
      )
    })
  }

  discard(fds: readonly number[]): Promise<{ ended: Promise<unknown> }> {
    return new Promise((resolve, reject) => {
      const script = discardScripts[fds.length - 1]
      if (script === undefined) throw new RangeError('discard takes one or two descriptors')
      const request = { file: '/bin/sh', args: ['-c', script], env: { PATH: '/usr/local/bin:/usr/bin:/bin' } }
      this.#request(
        request,
        fds,
        (_, ended) => {
          resolve({ ended })
          return undefined
        },
        reject,
      )
    })
  }

  #request(
    request: SpawnRequest,
    pipes: readonly number[] | undefined,
    started: PendingSpawn['started'],
    reject: PendingSpawn['reject'],
  ): void {
    if (this.#stopped !== undefined) throw new SpawnError('ECANCELED', 'The launcher is stopped.')
    checkRequest(request)
    const id = this.#nextId++
    const message = encode(id, request, pipes)
    this.#pending.set(id, { request, message, started, reject })
    this.#holdProcess()
    if (this.#worker === undefined) this.#startThread().catch(() => undefined)
    this.#queued.push(message)
    // One wake-up for all requests of the same turn.
    if (this.#queued.length === 1) queueMicrotask(this.#flush)
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    process.off('exit', this.#release)
    const worker = this.#worker
    if (worker !== undefined) {
      const ended = new Promise<void>((resolve) => {
        worker.once('exit', () => resolve())
      })
      worker.ref()
      this.#release()
      await ended
    }
    this.#failPending('The launcher was stopped before the process was started.')
    this.#abandonRunning()
  }

  /** A thread blocked in `poll` would keep a process that exits without `stop` alive. */
  readonly #release = (): void => {
    this.#send({ kind: 'stop' })
    // The thread closes it, and its number may belong to another file at the next write.
    this.#wakeFd = -1
  }

  readonly #flush = (): void => {
    if (this.#queued.length === 0 || this.#wakeFd === -1) return
    const requests = this.#queued
    this.#queued = []
    this.#send({ kind: 'spawn', requests })
  }

  #send(request: ThreadRequest): void {
    if (this.#worker === undefined || this.#wakeFd === -1) return
    this.#worker.postMessage(request)
    try {
      writeSync(this.#wakeFd, '.')
    } catch (error) {
      // A full pipe holds enough wake-ups.
      if (!hasCode(error, 'EAGAIN')) throw error
    }
  }

  #startThread(): Promise<void> {
    return new Promise((resolve, reject) => {
      // Its environment is empty because each request carries the child's.
      const worker = startWorker(this.#threadUrl, {
        name: 'posix-spawn',
        env: {},
        execArgv: [],
        workerData: { isAlone: isMainThread } satisfies ThreadSettings,
      })
      let failure = 'the thread ended'
      this.#worker = worker
      this.#keepsProcess = true
      worker.on('message', (report: ThreadReport) => {
        if (report.kind === 'ready') {
          this.#wakeFd = report.wakeFd
          this.#ownFds = report.ownFds
          this.#everReady = true
          this.#failedStarts = 0
          if (this.#stopped !== undefined) this.#release()
          if (this.#orphanedFds.length > 0) this.#send({ kind: 'close', fds: this.#orphanedFds })
          this.#orphanedFds = []
          for (const [id, { pid }] of this.#running) this.#send({ kind: 'adopt', id, pid })
          this.#flush()
          this.#holdProcess()
          resolve()
        } else if (report.kind === 'unusable') failure = report.reason
        else this.#receive(report)
      })
      worker.on('error', (error) => {
        failure = error instanceof Error ? error.message : String(error)
      })
      worker.on('exit', () => {
        const wasReady = this.#wakeFd !== -1
        this.#worker = undefined
        this.#wakeFd = -1
        if (!wasReady) reject(new Error(failure))
        if (this.#stopped === undefined) this.#recover(wasReady, failure)
      })
    })
  }

  #recover(wasReady: boolean, failure: string): void {
    this.#queued = []
    this.#failPending(`The thread that starts processes ended unexpectedly (${failure}); try again.`)
    // The thread could not close these; the next one does.
    if (wasReady) {
      this.#orphanedFds.push(...this.#ownFds)
      for (const child of this.#running.values()) {
        if (child.pidfd !== undefined) this.#orphanedFds.push(child.pidfd)
        child.pidfd = undefined
      }
    } else this.#failedStarts += 1
    // `createPosixSpawnLauncher` reports a failed first start; that launcher has no users.
    if (!this.#everReady) return
    if (this.#failedStarts < MAX_FAILED_STARTS) this.#startThread().catch(() => undefined)
    else this.#abandonRunning()
  }

  #receive(report: Exclude<ThreadReport, { kind: 'ready' | 'unusable' }>): void {
    if (report.kind === 'exited') {
      for (let index = 0; index < report.exits.length; index += 2) {
        this.#exited(report.exits[index] ?? -1, report.exits[index + 1] ?? -1)
      }
    } else if (report.kind === 'adopted') {
      const child = this.#running.get(report.id)
      if (child !== undefined) child.pidfd = report.pidfd
    } else {
      const pending = this.#pending.get(report.id)
      if (pending === undefined) return
      this.#pending.delete(report.id)
      if (report.kind === 'failed') pending.reject(spawnFailure(report.errno, pending.request))
      else {
        let ended: (exit: Exit) => void = () => undefined
        const exited = new Promise<Exit>((resolve) => {
          ended = resolve
        })
        const isHelper = pending.message.pipes !== undefined
        if (isHelper) this.#helpers += 1
        const stdin = pending.started(report, exited)
        this.#running.set(report.id, { pid: report.pid, pidfd: report.pidfd, stdin, isHelper, ended })
      }
    }
    this.#holdProcess()
  }

  #exited(id: number, waitStatus: number): void {
    const child = this.#running.get(id)
    if (child === undefined) return
    this.#running.delete(id)
    if (child.isHelper) this.#helpers -= 1
    // A process that inherited the other end must not keep the remaining content in memory.
    child.stdin?.destroy()
    child.ended(exitOf(waitStatus))
  }

  #failPending(why: string): void {
    const error = new SpawnError('ECANCELED', why)
    for (const pending of this.#pending.values()) pending.reject(error)
    this.#pending.clear()
  }

  #abandonRunning(): void {
    for (const id of this.#running.keys()) this.#exited(id, -1)
  }

  /** Only a busy launcher keeps the process alive. */
  #holdProcess(): void {
    const busy = this.#pending.size > 0 || this.#running.size > this.#helpers
    if (busy === this.#keepsProcess) return
    this.#keepsProcess = busy
    if (busy) this.#worker?.ref()
    else this.#worker?.unref()
  }
}

function encode(id: number, request: SpawnRequest, pipes: readonly number[] | undefined): ThreadSpawn {
  let strings = `${request.file}\0`
  for (const argument of request.args) strings += `${argument}\0`
  let environmentCount = 0
  for (const name in request.env) {
    strings += `${name}=${request.env[name]}\0`
    environmentCount += 1
  }
  return {
    id,
    strings,
    argumentCount: request.args.length + 1,
    environmentCount,
    cwd: request.cwd,
    mark: request.mark,
    note: request.note,
    stdin: request.stdin instanceof Uint8Array ? Uint8Array.from(request.stdin) : request.stdin,
    hasReply: request.hasReply === true,
    pipes,
  }
}

function makeChild(
  report: Spawned,
  exited: Promise<Exit>,
  wanted: SpawnRequest['stdin'],
): { child: Child; stdin: Socket | undefined } {
  const { stdout, stderr } = report
  const stdin = report.stdin === -1 ? undefined : writeInto(report.stdin)
  if (wanted !== 'open') stdin?.end(wanted ?? '')
  const child: Child = {
    identity: { pid: report.pid, startTime: report.startTime },
    descriptors: { stdout, stderr },
    stdout: new Socket({ fd: stdout, readable: true, writable: false }),
    stderr: new Socket({ fd: stderr, readable: true, writable: false }),
    exited,
    ...(wanted === 'open' && stdin !== undefined ? { stdin } : {}),
    ...(report.reply === -1 ? {} : { reply: new Socket({ fd: report.reply, readable: true, writable: false }) }),
  }
  return { child, stdin }
}

/** Writes without blocking and stops when the reader closes. */
function writeInto(fd: number): Socket {
  const socket = new Socket({ fd, readable: false, writable: true })
  // EPIPE: the child need not read its stdin.
  socket.on('error', () => socket.destroy())
  return socket
}
