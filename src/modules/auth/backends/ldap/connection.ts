/**
 * One connection to a directory server, limited in time and bytes.
 *
 * The library gets a single open socket. Otherwise it would reconnect without TLS after the server closes the
 * connection, and send the next password unencrypted. It would also accept data received before StartTLS, which an
 * attacker in between can inject.
 */
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { Client, ResultCodeError, type Filter } from 'ldapts'
import { secretMask } from '../../../../lib/log/index.ts'
import type { LdapOptions, LdapScope, LdapServer } from './options.ts'

/** A server failed or did not respond. */
export class DirectoryFailure extends Error {}

/** A response with an error code. */
export class DirectoryRefusal extends Error {
  /** Result code of the protocol (RFC 4511, 4.1.9). */
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

export interface Search {
  base: string
  scope: LdapScope
  filter: Filter
  /** Attribute names; `1.1` for none. */
  attributes: readonly string[]
  /** Maximum number of entries. Absent: an incomplete result is an error. */
  maxEntries?: number
}

export interface FoundEntry {
  dn: string
  /** Values of the requested attributes, without binary ones. */
  values: string[]
}

export interface LdapAnswer {
  entries: FoundEntry[]
  /** URLs of referrals. */
  referrals: string[]
}

export interface LdapConnection {
  readonly server: LdapServer
  /** @throws DirectoryRefusal, DirectoryFailure */
  bind(dn: string, password: string): Promise<void>
  /** @throws DirectoryRefusal, DirectoryFailure */
  search(search: Search): Promise<LdapAnswer>
  /** Idempotent. */
  close(): Promise<void>
  /** Closes the connection at once, also during a call. */
  abort(): void
}

export type ConnectionSettings = Pick<
  LdapOptions,
  'encryption' | 'tls' | 'connectTimeoutMs' | 'answerTimeoutMs' | 'derefAliases'
>

/** Ample for names and groups. */
const MAX_RECEIVED_BYTES = 1024 * 1024
/** The library recurses for each message in a chunk. */
const MAX_READ_BYTES = 2048
const START_TLS = '1.3.6.1.4.1.1466.20037'

/** @param onSocket called for every socket before svc waits for it @throws DirectoryFailure */
export async function openLdapConnection(
  server: LdapServer,
  settings: ConnectionSettings,
  onSocket: (socket: Socket) => void,
): Promise<LdapConnection> {
  const sockets: Socket[] = []
  const add = <S extends Socket>(socket: S): S => {
    // An error can occur after svc stops waiting for the socket.
    socket.on('error', () => undefined)
    sockets.push(socket)
    onSocket(socket)
    return socket
  }
  const abort = (): void => sockets.forEach((socket) => socket.destroy())
  try {
    const socket = await limit(open(server, settings, add), settings.connectTimeoutMs, abort)
    return new SocketConnection(server, socket, settings, abort)
  } catch (error) {
    abort()
    throw asFailure(error)
  }
}

async function open(
  server: LdapServer,
  { encryption, tls }: ConnectionSettings,
  add: <S extends Socket>(socket: S) => S,
): Promise<Socket> {
  const { host, port } = server
  const secure: ConnectionOptions = {
    host,
    rejectUnauthorized: tls.isVerified,
    minVersion: tls.minVersion,
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
    ...(isIP(host) === 0 ? { servername: host } : {}),
  }
  if (encryption === 'ssl') return waitFor(add(connectTls({ ...secure, port })), 'secureConnect')
  const socket = await waitFor(add(connect({ host, port })), 'connect')
  if (encryption === 'none') return socket
  try {
    await new Exchange(socket).run((client) => client.exop(START_TLS))
  } catch (error) {
    throw error instanceof ResultCodeError ? new DirectoryFailure(`StartTLS refused (${textOf(error)})`) : error
  }
  socket.removeAllListeners('data')
  return waitFor<TLSSocket>(add(connectTls({ ...secure, socket })), 'secureConnect')
}

function waitFor<S extends Socket>(socket: S, event: 'connect' | 'secureConnect'): Promise<S> {
  return new Promise((resolve, reject) => {
    socket.once(event, () => resolve(socket))
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('the server closed the connection')))
  })
}

/** Aborts the work and rejects after the timeout. */
function limit<T>(work: Promise<T>, timeoutMs: number, abort: () => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new DirectoryFailure(`no answer within ${timeoutMs / 1000} seconds`))
      abort()
    }, timeoutMs)
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

function asFailure(error: unknown): Error {
  if (error instanceof DirectoryFailure || error instanceof DirectoryRefusal) return error
  if (error instanceof ResultCodeError) return new DirectoryRefusal(error.code, textOf(error))
  return new DirectoryFailure(error instanceof Error ? error.message : String(error), { cause: error })
}

/** Name and number of the result code with the diagnostic message. */
function textOf({ name, code, message }: ResultCodeError): string {
  // The library has no name for referrals and does not return their target.
  const words = code === 10 ? 'served elsewhere' : name.replace(/Error$/, '').replace(/([a-z])([A-Z])/g, '$1 $2')
  const remark = message.replace(/ ?Code: 0x[0-9a-f]+$/, '')
  return `${words.toLowerCase()} (${code})${remark === '' ? '' : `: ${remark}`}`
}

/** The library client on an open socket. */
class Exchange {
  readonly #socket: Socket
  readonly #client: Client
  #isReading = false
  #received = 0
  #problem: Error | undefined

  constructor(socket: Socket) {
    this.#socket = socket
    let isGiven = false
    this.#client = new Client({
      url: 'ldap://directory', // never looked up: the socket is open
      createConnection: () => {
        if (isGiven) throw new DirectoryFailure('the server closed the connection')
        isGiven = true
        return socket
      },
    })
  }

  async run<T>(work: (client: Client) => Promise<T>): Promise<T> {
    if (this.#socket.destroyed) throw this.#problem ?? new DirectoryFailure('the server closed the connection')
    const result = work(this.#client)
    if (!this.#isReading) this.#read()
    try {
      return await result
    } catch (error) {
      if (error instanceof ResultCodeError) throw error
      // The error of the library describes its own messages only.
      throw this.#problem ?? (this.#socket.destroyed ? new Error('the server closed the connection') : error)
    }
  }

  /** Passes received data to the library, after the library has added its listeners. */
  #read(): void {
    this.#isReading = true
    // Added here, because the library has removed all earlier listeners.
    this.#socket.on('error', (error) => (this.#problem ??= error))
    const readers = this.#socket.listeners('data')
    this.#socket.removeAllListeners('data')
    this.#socket.on('data', (chunk: Buffer) => {
      this.#received += chunk.length
      if (this.#received > MAX_RECEIVED_BYTES) {
        this.#socket.destroy(new DirectoryFailure(`the response has more than ${MAX_RECEIVED_BYTES} bytes`))
      }
      for (let i = 0; i < chunk.length && !this.#socket.destroyed; i += MAX_READ_BYTES) {
        try {
          for (const reader of readers) reader.call(this.#socket, chunk.subarray(i, i + MAX_READ_BYTES))
        } catch (error) {
          this.#socket.destroy(new DirectoryFailure('the response is invalid', { cause: error }))
        }
      }
    })
  }
}

class SocketConnection implements LdapConnection {
  readonly server: LdapServer
  readonly abort: () => void
  readonly #settings: ConnectionSettings
  readonly #exchange: Exchange
  #isClosed = false
  #password = ''

  constructor(server: LdapServer, socket: Socket, settings: ConnectionSettings, abort: () => void) {
    this.server = server
    this.abort = abort
    this.#settings = settings
    this.#exchange = new Exchange(socket)
  }

  async bind(dn: string, password: string): Promise<void> {
    this.#password = password
    await this.#run((client) => client.bind(dn, password))
  }

  async search({ base, scope, filter, attributes, maxEntries = 0 }: Search): Promise<LdapAnswer> {
    const { derefAliases, answerTimeoutMs } = this.#settings
    const { searchEntries, searchReferences } = await this.#run((client) =>
      client.search(base, {
        scope,
        filter,
        attributes: [...attributes],
        sizeLimit: maxEntries,
        timeLimit: Math.ceil(answerTimeoutMs / 1000),
        derefAliases,
      }),
    )
    const entries = searchEntries.map(({ dn, ...values }) => ({
      dn,
      values: Object.values(values)
        .flat()
        .filter((value) => typeof value === 'string'),
    }))
    return { entries, referrals: searchReferences }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    // Without an unbind some servers log an error. It has the timeout of a call.
    await this.#run((client) => client.unbind()).catch(() => undefined)
    this.abort()
  }

  async #run<T>(work: (client: Client) => Promise<T>): Promise<T> {
    try {
      return await limit(this.#exchange.run(work), this.#settings.answerTimeoutMs, this.abort)
    } catch (error) {
      const failure = asFailure(error)
      // A server can repeat the password in its message.
      if (this.#password !== '') failure.message = failure.message.replaceAll(this.#password, secretMask)
      throw failure
    }
  }
}
