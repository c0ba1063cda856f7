/** Directory servers: failover, and searches that follow referrals. */
import type { Socket } from 'node:net'
import type { Log } from '../../../../lib/log/index.ts'
import {
  DirectoryFailure,
  DirectoryRefusal,
  openLdapConnection,
  type LdapConnection,
  type FoundEntry,
  type Search,
} from './connection.ts'
import { normaliseDn } from './dn.ts'
import type { LdapOptions, LdapServer } from './options.ts'

/** An entry with the servers that can check its password. */
export interface LocatedEntry extends FoundEntry {
  servers: readonly LdapServer[]
}

export interface Directory {
  /**
   * Searches as the service account, then closes every connection.
   *
   * @throws DirectoryFailure, DirectoryRefusal
   */
  ask<T>(work: (search: (search: Search) => Promise<LocatedEntry[]>) => Promise<T>): Promise<T>
  /**
   * Binds on a separate connection to the first server that responds.
   *
   * @throws DirectoryRefusal if the server refuses the bind; DirectoryFailure
   */
  tryBind(dn: string, password: string, servers?: readonly LdapServer[]): Promise<void>
  /** Ends all connections. Idempotent. */
  stop(): void
}

/** Time during which a server that did not respond is tried last, so that not every login waits for it. */
const AVOIDED_MS = 30_000
const MAX_REFERRAL_DEPTH = 3
const MAX_REFERRALS = 16
/** Codes that make svc try the next server: busy, unavailable (RFC 4511, appendix A). */
const unavailableCodes: ReadonlySet<number> = new Set([51, 52])
const scopesOfUrls = { base: 'base', one: 'one', sub: 'sub' } as const

/** @param now milliseconds of a clock that is never set back */
export function createDirectory(options: LdapOptions, log: Log, now: () => number): Directory {
  return new LdapDirectory(options, log, now)
}

class LdapDirectory implements Directory {
  readonly #options: LdapOptions
  readonly #log: Log
  readonly #now: () => number
  readonly #sockets = new Set<Socket>()
  readonly #avoidedUntil = new Map<LdapServer, number>()
  #isStopped = false

  constructor(options: LdapOptions, log: Log, now: () => number) {
    this.#options = options
    this.#log = log
    this.#now = now
  }

  async ask<T>(work: (search: (search: Search) => Promise<LocatedEntry[]>) => Promise<T>): Promise<T> {
    const { bindDn, bindPassword, servers } = this.#options
    const connection = await this.#connect(this.#inOrder(servers), bindDn, bindPassword)
    try {
      return await work((search) => this.#search(connection, search))
    } finally {
      await connection.close()
    }
  }

  async tryBind(dn: string, password: string, servers = this.#inOrder(this.#options.servers)): Promise<void> {
    const connection = await this.#connect(servers, dn, password)
    await connection.close()
  }

  stop(): void {
    this.#isStopped = true
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Servers in the configured order, those that recently did not respond last. */
  #inOrder(servers: readonly LdapServer[]): LdapServer[] {
    const isAvoided = (server: LdapServer): boolean => (this.#avoidedUntil.get(server) ?? -Infinity) > this.#now()
    return [...servers.filter((server) => !isAvoided(server)), ...servers.filter(isAvoided)]
  }

  /** A bound connection to the first server that responds. */
  async #connect(servers: readonly LdapServer[], dn: string, password: string): Promise<LdapConnection> {
    let last: Error | undefined
    for (const server of servers) {
      if (this.#isStopped) throw new DirectoryFailure('the backend is stopped')
      try {
        const connection = await this.#bindAt(server, dn, password)
        this.#avoidedUntil.delete(server)
        return connection
      } catch (error) {
        if (!(error instanceof DirectoryFailure) && !isUnavailable(error)) throw error
        this.#avoidedUntil.set(server, this.#now() + AVOIDED_MS)
        last = new DirectoryFailure(`${nameOf(server)}: ${error.message}`, { cause: error })
        const message = 'A directory server failed.'
        this.#log.warning('auth.directory_server_failed', message, { server: nameOf(server), reason: error.message })
      }
    }
    throw last ?? new DirectoryFailure('no server is available')
  }

  async #bindAt(server: LdapServer, dn: string, password: string): Promise<LdapConnection> {
    const connection = await this.#traced('connect', { server: nameOf(server) }, () =>
      openLdapConnection(server, this.#options, (socket) => this.#watch(socket)),
    )
    try {
      await this.#traced('bind', { server: nameOf(server), dn }, () => connection.bind(dn, password))
      return connection
    } catch (error) {
      if (error instanceof DirectoryRefusal) await connection.close()
      else connection.abort()
      throw error
    }
  }

  #watch(socket: Socket): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    if (this.#isStopped) socket.destroy()
  }

  /** Entries of the server and, if svc follows referrals, of the referred servers. */
  async #search(connection: LdapConnection, search: Search): Promise<LocatedEntry[]> {
    const found = new Map<string, LocatedEntry>()
    const seen = new Set<string>()
    const { servers } = this.#options
    const others = servers.filter((server) => server !== connection.server)
    await this.#searchAt(connection, search, [connection.server, ...others], found, seen, 0)
    return [...found.values()]
  }

  async #searchAt(
    connection: LdapConnection,
    search: Search,
    servers: readonly LdapServer[],
    found: Map<string, LocatedEntry>,
    seen: Set<string>,
    depth: number,
  ): Promise<void> {
    const { base, scope } = search
    const fields = { server: nameOf(connection.server), base, scope, filter: search.filter.toString() }
    const answer = await this.#traced(
      'search',
      fields,
      () => connection.search(search),
      ({ entries, referrals }) => ({ entries: entries.map(({ dn }) => dn), referrals }),
    )
    for (const entry of answer.entries) {
      const name = normaliseDn(entry.dn)
      if (name !== undefined && !found.has(name)) found.set(name, { ...entry, servers })
    }
    if (!this.#options.chaseReferrals) return
    for (const url of answer.referrals) {
      const target = this.#readReferral(url, search)
      if (target === undefined) {
        const message = 'A referral was ignored: its server is not in the option host.'
        this.#log.warning('auth.directory_referral_ignored', message, { referral: url })
        continue
      }
      const key = `${nameOf(target.server)} ${target.search.scope} ${normaliseDn(target.search.base) ?? ''}`
      if (seen.has(key)) continue
      if (depth >= MAX_REFERRAL_DEPTH || seen.size >= MAX_REFERRALS) {
        throw new DirectoryFailure('too many referrals to other servers')
      }
      seen.add(key)
      const { bindDn, bindPassword } = this.#options
      const next = await this.#connect([target.server], bindDn, bindPassword)
      try {
        await this.#searchAt(next, target.search, [target.server], found, seen, depth + 1)
      } finally {
        await next.close()
      }
    }
  }

  /**
   * Target of the referral; undefined unless it is a configured server with the configured encryption.
   *
   * Otherwise a user who can write a referral into the directory could direct the password of the service account to
   * another server, and log in as any user that this server returns.
   */
  #readReferral(text: string, search: Search): { server: LdapServer; search: Search } | undefined {
    const { servers, encryption } = this.#options
    const url = URL.parse(text)
    if (url?.protocol !== (encryption === 'ssl' ? 'ldaps:' : 'ldap:')) return undefined
    const port = url.port === '' ? (encryption === 'ssl' ? 636 : 389) : Number(url.port)
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1').toLowerCase()
    const server = servers.find((one) => one.host.toLowerCase() === host && one.port === port)
    if (server === undefined) return undefined
    const [, scopeText = ''] = url.search.slice(1).split('?')
    const scope = Object.entries(scopesOfUrls).find(([name]) => name === scopeText)?.[1] ?? search.scope
    try {
      const base = decodeURIComponent(url.pathname.slice(1))
      return { server, search: { ...search, base: base === '' ? search.base : base, scope } }
    } catch {
      return undefined
    }
  }

  /** Runs a call and logs it with its result at DEBUG. */
  async #traced<T>(
    call: string,
    fields: Readonly<Record<string, unknown>>,
    work: () => Promise<T>,
    describe: (result: T) => object = () => ({}),
  ): Promise<T> {
    const { isTraced } = this.#options
    if (isTraced) this.#log.debug('auth.directory_call', `Directory call: ${call}.`, fields)
    try {
      const result = await work()
      if (isTraced) {
        this.#log.debug('auth.directory_result', `Directory call succeeded: ${call}.`, {
          ...fields,
          ...describe(result),
        })
      }
      return result
    } catch (error) {
      if (isTraced) {
        const reason = error instanceof Error ? error.message : String(error)
        this.#log.debug('auth.directory_result', `Directory call failed: ${call}.`, { ...fields, reason })
      }
      throw error
    }
  }
}

function isUnavailable(error: unknown): error is DirectoryRefusal {
  return error instanceof DirectoryRefusal && unavailableCodes.has(error.code)
}

function nameOf({ host, port }: LdapServer): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
