/**
 * The PAM helper process of `pam-process.ts`. It checks one password at a time, synchronously, because modules block
 * for seconds, can crash, and accept no callback from another thread. Requests and responses are lines of JSON on a
 * socket, because modules can use the standard streams.
 *
 * Arguments: the PAM service, the PAM library, the pid of the server.
 */
import { readSync, writeSync } from 'node:fs'
import koffi from 'koffi'

export type PamQuestion = { kind: 'check'; user: string; password: string } | { kind: 'groups'; user: string }

/**
 * Result of a check. `unasked`: PAM succeeded without requesting the password, so it was not checked. `renamed`: the
 * password is right, but the account has another name or spelling.
 */
export type PamVerdict = 'accepted' | 'refused' | 'unasked' | 'renamed'

/**
 * The first line reports whether the helper is ready. Each further line answers a request. `delayMs`: the delay that
 * PAM requests after a refusal.
 */
export type PamReport =
  | { kind: 'ready' }
  | { kind: 'unusable'; reason: string }
  | { kind: 'verdict'; verdict: PamVerdict; delayMs: number }
  | { kind: 'groups'; groups: string[] }
  | { kind: 'failed'; reason: string }

/** Descriptor of the socket. Programs that modules start do not inherit it. */
const CHANNEL = 3

const RLIMIT_CORE = 4
const PR_SET_PDEATHSIG = 1
const SIGKILL = 9
const ENOENT = 2
const ESRCH = 3
const ERANGE = 34
/** Limits far above real directory services. A larger record is an error. */
const MAX_RECORD_BYTES = 16 * 1024 * 1024
const MAX_GROUPS = 65_536
/** `struct passwd` and `struct group` start alike in every C library: two pointers, the first to the name, then ids. */
const RECORD_BYTES = 128
const UID_AT = 16
const GID_AT = 20

const PAM_SUCCESS = 0
const PAM_BUF_ERR = 5
const PAM_CONV_ERR = 19
const PAM_USER = 2
const PAM_FAIL_DELAY = 10
/** PAM_SILENT and PAM_DISALLOW_NULL_AUTHTOK: no terminal messages, and no success for accounts without a password. */
const AUTHENTICATE_FLAGS = 0x8001
const PROMPT_ECHO_OFF = 1
const PROMPT_ECHO_ON = 2
/** The last of the four styles; the other two are messages. */
const TEXT_INFO = 4
const MAX_MESSAGES = 32
const POINTER_BYTES = 8
/** `struct pam_response`: the text, and an unused number. */
const RESPONSE_BYTES = 16

/** Codes that refuse the user or the password. Every other code means that the check failed. */
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

/** Loads symbols from the program itself, so that it finds every C library (glibc, musl). */
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

  /** The name as the system spells it; the given name if there is no account. */
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

  /** Undefined: no group has this id, which account files can contain. */
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
    // The record points into the text, which must stay allocated until the record is read.
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
      // Otherwise the library sleeps and the helper cannot answer further requests.
      this.#library.setItem(handle, PAM_FAIL_DELAY, this.#delay)
      status = this.#library.authenticate(handle, AUTHENTICATE_FLAGS)
      if (REFUSALS.has(status)) return 'refused'
      if (status !== PAM_SUCCESS) {
        const text = this.#library.errorText(handle, status) ?? 'unknown'
        throw new Error(`the PAM service "${this.#service}" answered: ${text} (code ${status})`)
      }
      if (!this.#wasAsked) return 'unasked'
      // Modules can change the name, and an account can have several names.
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

  /** Called by modules during `pam_authenticate`. The caller frees the memory that it allocates. */
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

/** Ends the helper when the server dies, and disables core files, which could contain passwords. */
function bindToServer(libc: LibC, serverPid: number): void {
  libc.prctl(PR_SET_PDEATHSIG, SIGKILL)
  // The server can have died before.
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
    // Waits for the server to end this process, so that the server reads the reason first.
    readLine()
    return
  }
  report({ kind: 'ready' })
  for (let line = readLine(); line !== undefined; line = readLine()) {
    // A module that changed the account of this process has reset the binding.
    bindToServer(libc, serverPid)
    const question: PamQuestion = JSON.parse(line) // written by `pam-pool.ts`
    report(answer(question, accounts, pam))
  }
}

const [, , service = '', libraryName = '', serverPid = ''] = process.argv
serve(service, libraryName, Number(serverPid))
