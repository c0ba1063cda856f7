/**
 * The process behind `pam-process.ts`: asks PAM about one password after another, synchronously, because modules block for
 * seconds, may crash, and take no callback from another thread. Questions and answers are lines of JSON on one socket,
 * since modules may use the standard streams.
 *
 * Arguments: the PAM service, the PAM library, the pid of the server.
 */
import { readSync, writeSync } from 'node:fs'
import koffi from 'koffi'

export type PamQuestion = { kind: 'check'; user: string; password: string } | { kind: 'groups'; user: string }

/**
 * What came of a password. `unasked`: PAM was content without asking for one, so it was not checked. `renamed`: the right
 * one of an account whose name is another, or is spelled otherwise.
 */
export type PamVerdict = 'accepted' | 'refused' | 'unasked' | 'renamed'

/**
 * The first line says whether questions can be answered, and each further one answers a question. `delayMs`: how long PAM
 * wants whoever is refused to wait.
 */
export type PamReport =
  | { kind: 'ready' }
  | { kind: 'unusable'; reason: string }
  | { kind: 'verdict'; verdict: PamVerdict; delayMs: number }
  | { kind: 'groups'; groups: string[] }
  | { kind: 'failed'; reason: string }

/** The descriptor of the socket. Node closes it, as all it was started with, in programs that modules start. */
const CHANNEL = 3

const RLIMIT_CORE = 4
const PR_SET_PDEATHSIG = 1
const SIGKILL = 9
const ENOENT = 2
const ESRCH = 3
const ERANGE = 34
/** Limits that no directory service comes near to; beyond them there is a mistake. */
const MAX_RECORD_BYTES = 16 * 1024 * 1024
const MAX_GROUPS = 65_536
/** `struct passwd` and `struct group` begin alike in every C library: two pointers, the first to the name, then the numbers. */
const RECORD_BYTES = 128
const UID_AT = 16
const GID_AT = 20

const PAM_SUCCESS = 0
const PAM_BUF_ERR = 5
const PAM_CONV_ERR = 19
const PAM_USER = 2
const PAM_FAIL_DELAY = 10
/** No messages for a terminal, and accounts without a password are no accounts whose password is right. */
const AUTHENTICATE_FLAGS = 0x8001
const PROMPT_ECHO_OFF = 1
const PROMPT_ECHO_ON = 2
/** The last of the four styles; the other two are messages. */
const TEXT_INFO = 4
const MAX_MESSAGES = 32
const POINTER_BYTES = 8
/** `struct pam_response`: the text, and an unused number. */
const RESPONSE_BYTES = 16

/** Answers that say "not this user with this password"; every other one says that it could not be found out. */
const REFUSALS: ReadonlySet<number> = new Set([
  6, // PAM_PERM_DENIED
  7, // PAM_AUTH_ERR
  10, // PAM_USER_UNKNOWN
  11, // PAM_MAXTRIES
  12, // PAM_NEW_AUTHTOK_REQD
  13, // PAM_ACCT_EXPIRED
  16, // PAM_CRED_EXPIRED
  27, // PAM_AUTHTOK_EXPIRED
])

type Pointer = bigint

interface LibC {
  calloc: (count: number, bytes: number) => Pointer | null
  strdup: (text: string) => Pointer | null
  prctl: (option: number, argument: number) => number
  prlimit: (pid: number, resource: number, limits: BigUint64Array, before: null) => number
  getpwnam: (name: string, record: Buffer, text: Buffer, bytes: number, found: BigUint64Array) => number
  getgrgid: (gid: number, record: Buffer, text: Buffer, bytes: number, found: BigUint64Array) => number
  getgrouplist: (user: string, gid: number, groups: Uint32Array, count: Int32Array) => number
}

interface LibPam {
  start: (service: string, user: string, conversation: Pointer, handle: BigUint64Array) => number
  authenticate: (handle: Pointer, flags: number) => number
  setItem: (handle: Pointer, item: number, value: Pointer) => number
  getItem: (handle: Pointer, item: number, value: BigUint64Array) => number
  end: (handle: Pointer, status: number) => number
  errorText: (handle: Pointer, code: number) => string | null
}

/** Of the program itself: its C library is found whatever that is called (glibc, musl). */
function loadLibC(): LibC {
  const program = koffi.load(null)
  return {
    calloc: program.func('void *calloc(size_t count, size_t bytes)'),
    strdup: program.func('void *strdup(const char *text)'),
    prctl: program.func('int prctl(int option, unsigned long argument)'),
    prlimit: program.func('int prlimit(int pid, int resource, void *limits, void *before)'),
    getpwnam: program.func('int getpwnam_r(const char *name, void *record, void *text, size_t bytes, void *found)'),
    getgrgid: program.func('int getgrgid_r(uint32_t gid, void *record, void *text, size_t bytes, void *found)'),
    getgrouplist: program.func('int getgrouplist(const char *user, uint32_t gid, void *groups, void *count)'),
  }
}

function loadLibPam(name: string): LibPam {
  const library = koffi.load(name)
  return {
    start: library.func('int pam_start(const char *service, const char *user, void *conversation, void *handle)'),
    authenticate: library.func('int pam_authenticate(void *handle, int flags)'),
    setItem: library.func('int pam_set_item(void *handle, int item, void *value)'),
    getItem: library.func('int pam_get_item(void *handle, int item, void *value)'),
    end: library.func('int pam_end(void *handle, int status)'),
    errorText: library.func('const char *pam_strerror(void *handle, int code)'),
  }
}

class Accounts {
  readonly #libc: LibC

  constructor(libc: LibC) {
    this.#libc = libc
  }

  isRoot(name: string): boolean {
    return this.#find(name)?.uid === 0
  }

  /** As the system spells it; without an account the name itself. */
  nameOf(name: string): string {
    return this.#find(name)?.name ?? name
  }

  /** Names of all groups of the account, its own one first; empty if there is no such account. */
  groupsOf(name: string): string[] {
    const account = this.#find(name)
    if (account === undefined) return []
    let groups = new Uint32Array(64)
    const count = new Int32Array([groups.length])
    while (this.#libc.getgrouplist(name, account.gid, groups, count) < 0) {
      if (groups.length >= MAX_GROUPS) throw new Error(`the account has more than ${MAX_GROUPS} groups`)
      groups = new Uint32Array(Math.min(MAX_GROUPS, Math.max(count[0] ?? 0, groups.length * 2)))
      count[0] = groups.length
    }
    const names = [...groups.subarray(0, count[0])].flatMap((gid) => this.#groupName(gid) ?? [])
    return [...new Set(names)]
  }

  #find(name: string): { name: string; uid: number; gid: number } | undefined {
    return readRecord(
      `the account "${name}"`,
      (record, text, found) => this.#libc.getpwnam(name, record, text, text.length, found),
      (record) => ({
        name: textAt(record.readBigUInt64LE(0)),
        uid: record.readUInt32LE(UID_AT),
        gid: record.readUInt32LE(GID_AT),
      }),
    )
  }

  /** Undefined for a number that stands for no group, which a file of accounts may hold. */
  #groupName(gid: number): string | undefined {
    return readRecord(
      `the group ${gid}`,
      (record, text, found) => this.#libc.getgrgid(gid, record, text, text.length, found),
      (record) => textAt(record.readBigUInt64LE(0)),
    )
  }
}

/** @throws if the lookup fails */
function readRecord<T>(
  what: string,
  look: (record: Buffer, text: Buffer, found: BigUint64Array) => number,
  read: (record: Buffer) => T,
): T | undefined {
  const record = Buffer.alloc(RECORD_BYTES)
  const found = new BigUint64Array(1)
  for (let bytes = 16 * 1024; ; bytes *= 4) {
    // The record points into the text, which has to be there until the record was read.
    const text = Buffer.allocUnsafeSlow(bytes)
    const errno = look(record, text, found)
    if (errno === ERANGE && bytes < MAX_RECORD_BYTES) continue
    if (errno === 0) return found[0] === 0n ? undefined : read(record)
    if (errno === ENOENT || errno === ESRCH) return undefined
    throw new Error(`${what} could not be looked up (errno ${errno})`)
  }
}

function textAt(pointer: Pointer): string {
  // `char` with -1 is how koffi reads up to the NUL.
  return String(koffi.decode(pointer, 'char', -1))
}

class Pam {
  readonly #libc: LibC
  readonly #library: LibPam
  readonly #accounts: Accounts
  readonly #service: string
  readonly #conversation: Pointer
  readonly #delay: Pointer
  #user = ''
  #password = ''
  #wasAsked = false
  #delayMs = 0

  constructor(libc: LibC, library: LibPam, accounts: Accounts, service: string) {
    this.#libc = libc
    this.#library = library
    this.#accounts = accounts
    this.#service = service
    const converse = koffi.proto('int converse(int count, void *messages, void *answers, void *data)')
    // `struct pam_conv`: the function, and data that it is given; it lives as long as the process.
    this.#conversation = this.#allocate(2, POINTER_BYTES)
    const pointer = koffi.register(this.#converse, koffi.pointer(converse))
    koffi.encode(this.#conversation, 'void *', pointer)
    const delay = koffi.proto('void delay(int status, unsigned int microseconds, void *data)')
    this.#delay = koffi.register((status: number, microseconds: number) => {
      if (status !== PAM_SUCCESS) this.#delayMs = Math.ceil(microseconds / 1000)
    }, koffi.pointer(delay))
  }

  /** @throws if PAM fails */
  check(user: string, password: string): { verdict: PamVerdict; delayMs: number } {
    if (this.#accounts.isRoot(user)) return { verdict: 'refused', delayMs: 0 }
    this.#user = user
    this.#password = password
    this.#wasAsked = false
    this.#delayMs = 0
    try {
      return { verdict: this.#authenticate(), delayMs: this.#delayMs }
    } finally {
      this.#password = ''
    }
  }

  #authenticate(): PamVerdict {
    const started = new BigUint64Array(1)
    const code = this.#library.start(this.#service, this.#user, this.#conversation, started)
    const [handle = 0n] = started
    if (code !== PAM_SUCCESS) throw new Error(`the PAM service "${this.#service}" cannot be used (code ${code})`)
    let status: number | undefined
    try {
      // Otherwise the library itself would sleep, and this process could answer nobody else.
      this.#library.setItem(handle, PAM_FAIL_DELAY, this.#delay)
      status = this.#library.authenticate(handle, AUTHENTICATE_FLAGS)
      if (REFUSALS.has(status)) return 'refused'
      if (status !== PAM_SUCCESS) {
        const text = this.#library.errorText(handle, status) ?? 'unknown'
        throw new Error(`the PAM service "${this.#service}" answered: ${text} (code ${status})`)
      }
      if (!this.#wasAsked) return 'unasked'
      // Modules may go on with another name, and the system may know an account by several.
      const name = this.#finalUser(handle)
      return name === this.#user && this.#accounts.nameOf(name) === name ? 'accepted' : 'renamed'
    } finally {
      this.#library.end(handle, status ?? PAM_BUF_ERR)
    }
  }

  #finalUser(handle: Pointer): string {
    const value = new BigUint64Array(1)
    const code = this.#library.getItem(handle, PAM_USER, value)
    const [pointer = 0n] = value
    if (code !== PAM_SUCCESS || pointer === 0n) throw new Error(`PAM did not return the user name (code ${code})`)
    return textAt(pointer)
  }

  /** Called by modules while `pam_authenticate` runs. What it allocates is freed by the one who called. */
  readonly #converse = (count: number, messages: Pointer, answers: Pointer): number => {
    try {
      if (count < 1 || count > MAX_MESSAGES) return PAM_CONV_ERR
      const styles: number[] = []
      for (let i = 0; i < count; i++) {
        const message: Pointer = koffi.decode(messages, i * POINTER_BYTES, 'void *')
        styles.push(koffi.decode(message, 'int'))
      }
      if (styles.some((style) => style < PROMPT_ECHO_OFF || style > TEXT_INFO)) return PAM_CONV_ERR
      const responses = this.#allocate(count, RESPONSE_BYTES)
      for (const [i, style] of styles.entries()) {
        koffi.encode(responses, i * RESPONSE_BYTES, 'void *', this.#libc.strdup(this.#answerTo(style)))
      }
      koffi.encode(answers, 'void *', responses)
      if (styles.includes(PROMPT_ECHO_OFF)) this.#wasAsked = true
      return PAM_SUCCESS
    } catch {
      return PAM_CONV_ERR
    }
  }

  #answerTo(style: number): string {
    if (style === PROMPT_ECHO_OFF) return this.#password
    return style === PROMPT_ECHO_ON ? this.#user : ''
  }

  /** Zeroed memory of the C library. */
  #allocate(count: number, bytes: number): Pointer {
    const pointer = this.#libc.calloc(count, bytes)
    if (pointer === null) throw new Error('out of memory')
    return pointer
  }
}

/** So that nothing of it stays behind when the server is killed, and no password in a core file. */
function bindToServer(libc: LibC, serverPid: number): void {
  libc.prctl(PR_SET_PDEATHSIG, SIGKILL)
  // It may have died before.
  if (process.ppid !== serverPid) process.exit(1)
}

const chunk = Buffer.allocUnsafeSlow(16 * 1024)
let received: Buffer = Buffer.alloc(0)

/** The next line; undefined when the server has closed the socket. */
function readLine(): string | undefined {
  for (;;) {
    const end = received.indexOf(0x0a)
    if (end !== -1) {
      const line = received.toString('utf8', 0, end)
      received = received.subarray(end + 1)
      return line
    }
    let length: number
    try {
      length = readSync(CHANNEL, chunk)
    } catch {
      return undefined
    }
    if (length === 0) return undefined
    received = Buffer.concat([received, chunk.subarray(0, length)])
  }
}

function report(message: PamReport): void {
  const bytes = Buffer.from(`${JSON.stringify(message)}\n`)
  for (let sent = 0; sent < bytes.length;) sent += writeSync(CHANNEL, bytes, sent)
}

function answer(question: PamQuestion, accounts: Accounts, pam: Pam): PamReport {
  try {
    if (question.kind === 'groups') return { kind: 'groups', groups: accounts.groupsOf(question.user) }
    return { kind: 'verdict', ...pam.check(question.user, question.password) }
  } catch (error) {
    return { kind: 'failed', reason: error instanceof Error ? error.message : String(error) }
  }
}

function serve(service: string, libraryName: string, serverPid: number): void {
  const libc = loadLibC()
  bindToServer(libc, serverPid)
  libc.prlimit(0, RLIMIT_CORE, new BigUint64Array(2), null)
  const accounts = new Accounts(libc)
  let pam: Pam
  try {
    pam = new Pam(libc, loadLibPam(libraryName), accounts, service)
  } catch (error) {
    report({ kind: 'unusable', reason: error instanceof Error ? error.message : String(error) })
    // It is the server that ends this process, so that it has read the reason before.
    readLine()
    return
  }
  report({ kind: 'ready' })
  for (let line = readLine(); line !== undefined; line = readLine()) {
    // A module that changed the account of this process has undone it.
    bindToServer(libc, serverPid)
    const question: PamQuestion = JSON.parse(line) // written by `pam-pool.ts`
    report(answer(question, accounts, pam))
  }
}

const [, , service = '', libraryName = '', serverPid = ''] = process.argv
serve(service, libraryName, Number(serverPid))
