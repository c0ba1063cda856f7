/**
 * The thread that starts processes with `posix_spawn`, waits in `poll` for requests and exits, and reaps children.
 *
 * `posix_spawn` blocks its caller until the child has called exec, so it runs here and not on the event loop. Calls
 * into the C library are synchronous: asynchronous ones with callbacks crashed (docs/performance.md).
 */
import { closeSync, openSync, readSync } from 'node:fs'
import { constants } from 'node:os'
import { getSystemErrorName } from 'node:util'
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import koffi from 'koffi'
import { writeStartNote, type StartNote } from '../start-note.ts'
import { codeOf } from '../../lib/process/index.ts'

/** One process to start. Strings are joined into one text, each NUL-terminated as in C. */
export interface ThreadSpawn {
  id: number
  /** Program, arguments after argv[0], then `name=value` of the environment. */
  strings: string
  argumentCount: number
  environmentCount: number
  cwd: string | undefined
  mark: bigint | undefined
  note: StartNote | undefined
  stdin: Uint8Array | 'open' | undefined
  hasReply: boolean
  /** Pipes for its descriptors 0, 3 and so on; it has no output then: 1 and 2 are /dev/null, open for reading. */
  pipes: readonly number[] | undefined
}

/** The thread's `workerData`. */
export interface ThreadSettings {
  /** Whether no other thread of this process starts processes. */
  isAlone: boolean
}

export type ThreadRequest =
  | { kind: 'spawn'; requests: ThreadSpawn[] }
  /** Children of a thread that died; their exits still have to be reported. */
  | { kind: 'adopt'; id: number; pid: number }
  | { kind: 'close'; fds: number[] }
  | { kind: 'stop' }

export type ThreadReport =
  | { kind: 'ready'; wakeFd: number; ownFds: number[] }
  | { kind: 'unusable'; reason: string }
  | {
      kind: 'spawned'
      id: number
      pid: number
      startTime: string
      pidfd: number
      /** -1, like the next, with `pipes`. */
      stdout: number
      stderr: number
      /**
       * Write end for stdin content that did not fit into the pipe, or comes later; -1 when nothing is left to write.
       */
      stdin: number
      /** Read end of the child's descriptor 3; -1 without one. */
      reply: number
    }
  | { kind: 'failed'; id: number; errno: string }
  | { kind: 'adopted'; id: number; pidfd: number }
  /** Pairs of id and `waitpid` status; status -1 when it is unknown. */
  | { kind: 'exited'; exits: number[] }

/** A pipe accepts this much without blocking, even when the user's pipe memory quota is used up. */
const IMMEDIATE_STDIN_BYTES = 4096

const O_CLOEXEC = 0o2000000
const O_NONBLOCK = 0o4000
const POLLIN = 1
const POLLFD_BYTES = 8
const WNOHANG = 1
const SYS_PIDFD_OPEN = 434
/** What children get above this process, so that the kernel takes them first when memory runs out; 1000 is the most. */
const OOM_SCORE_ABOVE = 500
const MAX_OOM_SCORE = 1000
/** See `readMark`. */
const RLIMIT_RTTIME = 15
const SPAWN_SETSIGDEF = 0x04
const SPAWN_SETSIGMASK = 0x08
const SPAWN_SETSID = 0x80
/** More than any C library in use needs for its opaque spawn structures (glibc: 336 bytes). */
const OPAQUE_BYTES = 1024
const SIGSET_BYTES = 128
/** Without `stop`, an exiting process cannot interrupt `poll`; it waits for at most this long. */
const LONGEST_POLL_MS = 1000

if (parentPort === null) throw new Error('posix-spawn-thread is started by posix-spawn as a worker thread')
const port = parentPort
// `posix-spawn.ts` is the only module that starts this thread.
const { isAlone } = workerData as ThreadSettings

type Int = number
interface LibC {
  open: (path: string, flags: Int) => Int
  pipe2: (fds: Int32Array, flags: Int) => Int
  close: (fd: Int) => Int
  write: (fd: Int, bytes: Uint8Array, length: Int) => Int
  read: (fd: Int, bytes: Uint8Array, length: Int) => Int
  fcntl: (fd: Int, command: Int, argument: Int) => Int
  poll: (fds: Uint8Array, count: Int, timeoutMs: Int) => Int
  waitpid: (pid: Int, status: Int32Array, options: Int) => Int
  kill: (pid: Int, signal: Int) => Int
  prlimit: (pid: Int, resource: Int, limits: BigUint64Array | null, before: BigUint64Array | null) => Int
  syscall: (number: Int, a: Int, b: Int) => Int
  posixSpawn: (
    pid: Int32Array,
    file: Uint8Array,
    actions: Uint8Array,
    attributes: Uint8Array,
    argv: Uint32Array,
    envp: bigint,
  ) => Int
  actionsInit: (actions: Uint8Array) => Int
  actionsDestroy: (actions: Uint8Array) => Int
  addDup2: (actions: Uint8Array, fd: Int, as: Int) => Int
  addChdir: (actions: Uint8Array, path: string) => Int
  /** Closes descriptors without close-on-exec; absent before glibc 2.34. */
  addCloseFrom: ((actions: Uint8Array, fd: Int) => Int) | undefined
}

function loadLibC(): { libc: LibC; attributes: Uint8Array } {
  // The symbols of the program itself, whatever its C library is called (glibc, musl).
  const program = koffi.load(null)
  const libc: LibC = {
    open: program.func('int open(const char *path, int flags)'),
    pipe2: program.func('int pipe2(void *fds, int flags)'),
    close: program.func('int close(int fd)'),
    write: program.func('long write(int fd, void *bytes, size_t length)'),
    read: program.func('long read(int fd, void *bytes, size_t length)'),
    fcntl: program.func('int fcntl(int fd, int command, long argument)'),
    poll: program.func('int poll(void *fds, unsigned long count, int timeout)'),
    waitpid: program.func('int waitpid(int pid, void *status, int options)'),
    kill: program.func('int kill(int pid, int signal)'),
    prlimit: program.func('int prlimit(int pid, int resource, void *limits, void *before)'),
    syscall: program.func('long syscall(long number, long a, long b)'),
    posixSpawn: program.func(
      'int posix_spawn(void *pid, void *file, void *actions, void *attributes, void *argv, uintptr_t envp)',
    ),
    actionsInit: program.func('int posix_spawn_file_actions_init(void *actions)'),
    actionsDestroy: program.func('int posix_spawn_file_actions_destroy(void *actions)'),
    addDup2: program.func('int posix_spawn_file_actions_adddup2(void *actions, int fd, int as)'),
    addChdir: program.func('int posix_spawn_file_actions_addchdir_np(void *actions, const char *path)'),
    addCloseFrom: undefined,
  }
  try {
    libc.addCloseFrom = program.func('int posix_spawn_file_actions_addclosefrom_np(void *actions, int fd)')
  } catch {
    // Without it, close-on-exec has to do; all our descriptors have it.
  }

  const attributes = Buffer.allocUnsafeSlow(OPAQUE_BYTES).fill(0)
  const signals = Buffer.allocUnsafeSlow(SIGSET_BYTES).fill(0)
  const call = (definition: string, ...more: unknown[]): void => {
    const failed: unknown = program.func(definition)(...more)
    if (failed !== 0) throw new Error(`${definition} failed`)
  }
  call('int posix_spawnattr_init(void *attributes)', attributes)
  call(
    'int posix_spawnattr_setflags(void *attributes, short flags)',
    attributes,
    SPAWN_SETSID | SPAWN_SETSIGMASK | SPAWN_SETSIGDEF,
  )
  // Node ignores SIGPIPE and its threads block signals; exec would pass both on to the child.
  call('int posix_spawnattr_setsigmask(void *attributes, void *signals)', attributes, signals)
  call('int sigfillset(void *signals)', signals)
  call('int posix_spawnattr_setsigdefault(void *attributes, void *signals)', attributes, signals)
  return { libc, attributes }
}

const report = (message: ThreadReport): void => port.postMessage(message)

class SpawnThread {
  readonly #libc: LibC
  readonly #attributes: Uint8Array
  readonly #actions = Buffer.allocUnsafeSlow(OPAQUE_BYTES)
  readonly #nullFd: number
  readonly #wakeReadFd: number
  readonly #wakeWriteFd: number
  readonly #pair = new Int32Array(2)
  readonly #status = new Int32Array(1)
  /** Soft and hard limit of this process. */
  readonly #ownLimits = new BigUint64Array(2)
  /** A child's mark as soft limit; the system refuses it if the hard limit is lower. */
  readonly #marked = new BigUint64Array(2)
  /** Open `oom_score_adj` of this process; -1 where it cannot be set. */
  #oomFd = -1
  #ownOomScore = Buffer.from('0')
  #childOomScore = Buffer.from(String(OOM_SCORE_ABOVE))
  readonly #scratch = Buffer.allocUnsafeSlow(4096)
  #text = Buffer.allocUnsafeSlow(64 * 1024)
  #textAddress = Number(koffi.address(this.#text))
  #pointers = new Uint32Array(2048)
  #pollTable = Buffer.allocUnsafeSlow(256 * POLLFD_BYTES)
  /** Parallel lists; entry 0 of the poll table is the wake-up pipe, entry n + 1 belongs to child n. */
  readonly #ids: number[] = []
  readonly #pids: number[] = []
  readonly #waiting: ThreadSpawn[] = []
  #stopping = false

  constructor() {
    const loaded = loadLibC()
    this.#libc = loaded.libc
    this.#attributes = loaded.attributes
    // First, so that a kernel without it leaves nothing open.
    const probe = this.#openPidfd(process.pid)
    this.#libc.close(probe)
    // Not `openSync`: Node closes its files when a thread ends, at a time of its own choosing.
    this.#nullFd = this.#libc.open('/dev/null', O_CLOEXEC)
    if (this.#nullFd < 0) throw lastError()
    this.#libc.prlimit(0, RLIMIT_RTTIME, null, this.#ownLimits)
    this.#marked.set(this.#ownLimits)
    if (isAlone) this.#openOomScore()
    ;[this.#wakeReadFd, this.#wakeWriteFd] = this.#pipe()
    for (const fd of [this.#wakeReadFd, this.#wakeWriteFd]) this.#setNonBlocking(fd)
    this.#setPollEntry(0, this.#wakeReadFd)
  }

  run(): void {
    report({
      kind: 'ready',
      wakeFd: this.#wakeWriteFd,
      ownFds: [this.#nullFd, this.#wakeReadFd, this.#wakeWriteFd, ...(this.#oomFd < 0 ? [] : [this.#oomFd])],
    })
    while (!this.#stopping) {
      const next = this.#waiting.shift()
      if (next !== undefined) this.#start(next)
      this.#poll(this.#waiting.length > 0 ? 0 : LONGEST_POLL_MS)
    }
    for (let index = 0; index < this.#ids.length; index++) this.#libc.close(this.#pidfdOf(index))
    this.#libc.close(this.#nullFd)
    if (this.#oomFd >= 0) this.#libc.close(this.#oomFd)
    this.#libc.close(this.#wakeReadFd)
    this.#libc.close(this.#wakeWriteFd)
  }

  #poll(timeoutMs: number): void {
    const count = this.#ids.length + 1
    if (this.#libc.poll(this.#pollTable, count, timeoutMs) <= 0) return
    // From the end, because the last child replaces a removed one.
    const exits: number[] = []
    const ended: number[] = []
    for (let entry = count - 1; entry > 0; entry--) {
      if (this.#pollTable.readInt16LE(entry * POLLFD_BYTES + 6) !== 0) this.#reap(entry - 1, exits, ended)
    }
    if (exits.length > 0) report({ kind: 'exited', exits })
    // After the report: the main thread considers every pidfd open until it is told of the exit.
    for (const pidfd of ended) this.#libc.close(pidfd)
    if (this.#pollTable.readInt16LE(6) !== 0) this.#receive()
  }

  #receive(): void {
    // Emptied before the messages are read, so that a byte written later wakes the next poll.
    let emptied = false
    while (!emptied) {
      emptied = this.#libc.read(this.#wakeReadFd, this.#scratch, this.#scratch.length) < this.#scratch.length
    }
    for (;;) {
      const received: { message: ThreadRequest } | undefined = receiveMessageOnPort(port)
      if (received === undefined) return
      const request = received.message
      if (request.kind === 'spawn') this.#waiting.push(...request.requests)
      else if (request.kind === 'adopt') this.#adopt(request.id, request.pid)
      else if (request.kind === 'close') for (const fd of request.fds) this.#libc.close(fd)
      else this.#stopping = true
    }
  }

  #reap(index: number, exits: number[], ended: number[]): void {
    const id = this.#ids[index]
    const pid = this.#pids[index]
    if (id === undefined || pid === undefined) return
    const waited = this.#libc.waitpid(pid, this.#status, WNOHANG)
    if (waited === 0) return
    exits.push(id, waited === pid ? (this.#status[0] ?? -1) : -1)
    ended.push(this.#pidfdOf(index))

    const last = this.#ids.length - 1
    const lastPidfd = this.#pidfdOf(last)
    const lastId = this.#ids.pop()
    const lastPid = this.#pids.pop()
    if (index === last || lastId === undefined || lastPid === undefined) return
    this.#ids[index] = lastId
    this.#pids[index] = lastPid
    this.#setPollEntry(index + 1, lastPidfd)
  }

  #adopt(id: number, pid: number): void {
    try {
      const pidfd = this.#openPidfd(pid)
      this.#watch(id, pid, pidfd)
      report({ kind: 'adopted', id, pidfd })
    } catch {
      report({ kind: 'exited', exits: [id, -1] })
    }
  }

  #start(request: ThreadSpawn): void {
    const opened: number[] = []
    try {
      if (request.pipes !== undefined) {
        const [first = this.#nullFd, ...more] = request.pipes
        const pid = this.#spawn(request, [first, this.#nullFd, this.#nullFd, ...more])
        this.#announce(request.id, pid, { stdout: -1, stderr: -1, stdin: -1, reply: -1 })
        return
      }
      const [outRead, outWrite] = this.#pipe(opened)
      const [errRead, errWrite] = this.#pipe(opened)
      const [inRead, inWrite] = request.stdin === undefined ? [this.#nullFd, -1] : this.#pipe(opened)
      const stdinLeft = request.stdin === undefined ? -1 : this.#writeStdin(request.stdin, inWrite)
      const [replyRead, replyWrite] = request.hasReply ? this.#pipe(opened) : [-1, -1]

      const pid = this.#spawnMarked(request, [inRead, outWrite, errWrite, ...(request.hasReply ? [replyWrite] : [])])
      for (const fd of [outWrite, errWrite]) this.#close(fd, opened)
      if (replyWrite !== -1) this.#close(replyWrite, opened)
      if (inRead !== this.#nullFd) this.#close(inRead, opened)
      if (inWrite !== -1 && stdinLeft === -1) this.#close(inWrite, opened)

      // The two descriptors closed above leave room for the two that it opens, even at the limit of open files.
      this.#announce(request.id, pid, { stdout: outRead, stderr: errRead, stdin: stdinLeft, reply: replyRead })
    } catch (error) {
      for (const fd of opened) this.#libc.close(fd)
      report({ kind: 'failed', id: request.id, errno: errnoNameOf(error) })
    }
  }

  /** Watches and reports a new child; kills it when that is impossible. */
  #announce(id: number, pid: number, ends: { stdout: number; stderr: number; stdin: number; reply: number }): void {
    let pidfd = -1
    let startTime: string
    try {
      pidfd = this.#openPidfd(pid)
      startTime = this.#startTimeOf(pid)
    } catch (error) {
      if (pidfd !== -1) this.#libc.close(pidfd)
      this.#libc.kill(-pid, constants.signals.SIGKILL)
      this.#libc.waitpid(pid, this.#status, 0)
      throw error
    }
    this.#watch(id, pid, pidfd)
    report({ kind: 'spawned', id, pid, startTime, pidfd, ...ends })
  }

  /** Children inherit the value; set afterwards, it would not reach programs of other accounts such as sudo. */
  #openOomScore(): void {
    const O_RDWR = 2
    const fd = this.#libc.open('/proc/self/oom_score_adj', O_RDWR | O_CLOEXEC)
    if (fd < 0) return
    const length = this.#libc.read(fd, this.#scratch, this.#scratch.length)
    const own = Number.parseInt(this.#scratch.toString('latin1', 0, Math.max(length, 0)), 10)
    if (!Number.isInteger(own)) {
      this.#libc.close(fd)
      return
    }
    this.#ownOomScore = Buffer.from(String(own))
    this.#childOomScore = Buffer.from(String(Math.min(own + OOM_SCORE_ABOVE, MAX_OOM_SCORE)))
    this.#oomFd = fd
  }

  #setOomScore(score: Buffer): void {
    if (this.#oomFd >= 0) this.#libc.write(this.#oomFd, score, score.length)
  }

  /** @param fds the child's descriptors 0, 1 and so on */
  #spawnMarked(request: ThreadSpawn, fds: readonly number[]): number {
    writeStartNote(request.note)
    if (request.mark === undefined) return this.#spawn(request, fds)
    this.#marked[0] = request.mark
    if (!isAlone) {
      const pid = this.#spawn(request, fds)
      this.#libc.prlimit(pid, RLIMIT_RTTIME, this.#marked, null)
      return pid
    }
    // Inherited, the mark is there from the start. It is a limit of the whole process, so no other thread may start
    // some now.
    this.#libc.prlimit(0, RLIMIT_RTTIME, this.#marked, null)
    this.#setOomScore(this.#childOomScore)
    try {
      return this.#spawn(request, fds)
    } finally {
      this.#setOomScore(this.#ownOomScore)
      this.#libc.prlimit(0, RLIMIT_RTTIME, this.#ownLimits, null)
    }
  }

  #spawn(request: ThreadSpawn, fds: readonly number[]): number {
    const bytes = Buffer.byteLength(request.strings)
    if (bytes > this.#text.length) {
      this.#text = Buffer.allocUnsafeSlow(bytes * 2)
      this.#textAddress = Number(koffi.address(this.#text))
    }
    this.#text.write(request.strings, 'utf8')
    const { argumentCount, environmentCount } = request
    const envpIndex = argumentCount + 1
    const needed = (envpIndex + environmentCount + 1) * 2
    if (needed > this.#pointers.length) this.#pointers = new Uint32Array(needed * 2)
    let offset = 0
    let slot = 0
    const setPointer = (address: number): void => {
      // Two halves instead of a BigInt per string: this runs for every variable of every environment.
      this.#pointers[slot] = address
      this.#pointers[slot + 1] = Math.floor(address / 0x100000000)
      slot += 2
    }
    for (let index = 0; index < argumentCount + environmentCount; index++) {
      if (index === argumentCount) setPointer(0)
      setPointer(this.#textAddress + offset)
      offset = this.#text.indexOf(0, offset) + 1
    }
    if (environmentCount === 0) setPointer(0)
    setPointer(0)

    check(this.#libc.actionsInit(this.#actions))
    try {
      for (const [as, fd] of fds.entries()) check(this.#libc.addDup2(this.#actions, fd, as))
      if (this.#libc.addCloseFrom !== undefined) check(this.#libc.addCloseFrom(this.#actions, fds.length))
      if (request.cwd !== undefined) check(this.#libc.addChdir(this.#actions, request.cwd))
      const envp = koffi.address(this.#pointers) + BigInt(envpIndex * 8)
      check(this.#libc.posixSpawn(this.#pair, this.#text, this.#actions, this.#attributes, this.#pointers, envp))
    } finally {
      this.#libc.actionsDestroy(this.#actions)
    }
    return this.#pair[0] ?? -1
  }

  /** Fills the pipe without blocking. Returns the write end when the main thread has to continue. */
  #writeStdin(bytes: Uint8Array | 'open', fd: number): number {
    if (bytes === 'open' || bytes.length > IMMEDIATE_STDIN_BYTES) return fd
    if (bytes.length > 0 && this.#libc.write(fd, bytes, bytes.length) !== bytes.length) throw lastError()
    return -1
  }

  #watch(id: number, pid: number, pidfd: number): void {
    this.#ids.push(id)
    this.#pids.push(pid)
    this.#setPollEntry(this.#ids.length, pidfd)
  }

  #setPollEntry(entry: number, fd: number): void {
    const at = entry * POLLFD_BYTES
    if (at + POLLFD_BYTES > this.#pollTable.length) {
      const larger = Buffer.allocUnsafeSlow(this.#pollTable.length * 2)
      this.#pollTable.copy(larger)
      this.#pollTable = larger
    }
    this.#pollTable.writeInt32LE(fd, at)
    this.#pollTable.writeInt16LE(POLLIN, at + 4)
    this.#pollTable.writeInt16LE(0, at + 6)
  }

  #pidfdOf(index: number): number {
    return this.#pollTable.readInt32LE((index + 1) * POLLFD_BYTES)
  }

  #pipe(opened: number[] = []): [number, number] {
    if (this.#libc.pipe2(this.#pair, O_CLOEXEC) !== 0) throw lastError()
    const ends: [number, number] = [this.#pair[0] ?? -1, this.#pair[1] ?? -1]
    opened.push(...ends)
    return ends
  }

  #close(fd: number, opened: number[]): void {
    this.#libc.close(fd)
    opened.splice(opened.indexOf(fd), 1)
  }

  #setNonBlocking(fd: number): void {
    const F_SETFL = 4
    if (this.#libc.fcntl(fd, F_SETFL, O_NONBLOCK) !== 0) throw lastError()
  }

  #openPidfd(pid: number): number {
    const fd = this.#libc.syscall(SYS_PIDFD_OPEN, pid, 0)
    if (fd < 0) throw lastError()
    return fd
  }

  /** Field 22 of `/proc/<pid>/stat`; the command in field 2 may contain spaces and parentheses. */
  #startTimeOf(pid: number): string {
    const fd = openSync(`/proc/${pid}/stat`, 'r')
    try {
      const text = this.#scratch.toString('latin1', 0, readSync(fd, this.#scratch))
      return text.slice(text.lastIndexOf(')') + 2).split(' ', 20)[19] ?? ''
    } finally {
      closeSync(fd)
    }
  }
}

class ErrnoError extends Error {
  readonly number: number
  constructor(number: number) {
    super(`errno ${number}`)
    this.number = number
  }
}

function lastError(): ErrnoError {
  return new ErrnoError(koffi.errno())
}

function check(errorNumber: number): void {
  if (errorNumber !== 0) throw new ErrnoError(errorNumber)
}

function errnoNameOf(error: unknown): string {
  if (error instanceof ErrnoError) return getSystemErrorName(-error.number)
  const code = codeOf(error)
  if (code === undefined) throw error
  return code
}

let thread: SpawnThread | undefined
try {
  thread = new SpawnThread()
} catch (error) {
  report({ kind: 'unusable', reason: error instanceof Error ? error.message : String(error) })
}
thread?.run()
