/** Keeps idle connections for reuse, because a login takes many times as long as a short command. */
import { createHash } from 'node:crypto'
import type { SshConnection, SshTarget } from './connection.ts'
import { writeJson } from '../../lib/json/index.ts'

export interface Lease {
  readonly connection: SshConnection
  /** Whether the connection was opened for an earlier lease. */
  readonly isReused: boolean
  /** Returns the connection to the pool; idempotent. */
  release(): void
  /** Returns the connection and excludes it from reuse. */
  discard(): void
}

export interface ConnectionPool {
  /**
   * @param isNew always opens a new connection
   * @throws SshError
   */
  acquire(target: SshTarget, signal: AbortSignal, isNew?: boolean): Promise<Lease>
  /** Closes all connections; idempotent. */
  stop(): void
}

export const IDLE_MS = 60_000
/** Connections without a lease. */
const MAX_IDLE = 100
/** By default a server allows ten sessions per connection; a run may need two and a copy one. */
const MAX_LEASES = 3

interface Entry {
  key: string
  connection: SshConnection
  leases: number
  isDiscarded: boolean
  idleTimer: NodeJS.Timeout | undefined
  bastion: Lease | undefined
}

export type Connect = (
  target: SshTarget,
  signal: AbortSignal,
  socket: Awaited<ReturnType<SshConnection['forward']>> | undefined,
) => Promise<SshConnection>

export function createConnectionPool(connect: Connect): ConnectionPool {
  // Least recently used first.
  const entries = new Set<Entry>()
  let isStopped = false

  function drop(entry: Entry): void {
    clearTimeout(entry.idleTimer)
    entries.delete(entry)
    entry.connection.close()
    entry.bastion?.release()
  }

  function rest(entry: Entry): void {
    if (isStopped || entry.isDiscarded || entry.connection.isClosed) {
      drop(entry)
      return
    }
    entries.delete(entry)
    entries.add(entry)
    entry.idleTimer = setTimeout(() => drop(entry), IDLE_MS)
    entry.idleTimer.unref()
    const idle = [...entries].filter(({ leases }) => leases === 0)
    if (idle.length > MAX_IDLE && idle[0] !== undefined) drop(idle[0])
  }

  function lease(entry: Entry, isReused: boolean): Lease {
    let isReleased = false
    clearTimeout(entry.idleTimer)
    entry.leases += 1
    const release = (): void => {
      if (isReleased) return
      isReleased = true
      entry.leases -= 1
      if (entry.leases === 0) rest(entry)
    }
    return {
      connection: entry.connection,
      isReused,
      release,
      discard: () => {
        entry.isDiscarded = true
        release()
      },
    }
  }

  async function open(target: SshTarget, key: string, signal: AbortSignal): Promise<Entry> {
    let bastion: Lease | undefined
    let connection: SshConnection
    try {
      bastion = target.bastion === undefined ? undefined : await pool.acquire(target.bastion, signal)
      const socket = await bastion?.connection.forward(target.host, target.port)
      connection = await connect(target, signal, socket)
    } catch (error) {
      // The jump host may be the cause of the failure.
      bastion?.discard()
      throw error
    }
    const entry: Entry = { key, connection, leases: 0, isDiscarded: false, idleTimer: undefined, bastion }
    entries.add(entry)
    void connection.closed.then(() => drop(entry))
    return entry
  }

  const pool: ConnectionPool = {
    async acquire(target, signal, isNew = false) {
      const key = keyOf(target)
      if (!isNew) {
        for (const entry of entries) {
          const isFree = entry.leases < MAX_LEASES && !entry.isDiscarded && !entry.connection.isClosed
          if (isFree && entry.key === key) return lease(entry, true)
        }
      }
      const entry = await open(target, key, signal)
      const mine = lease(entry, false)
      if (isStopped) mine.discard()
      return mine
    },
    stop() {
      isStopped = true
      for (const entry of entries) drop(entry)
    },
  }
  return pool
}

/** Connections with equal keys are interchangeable. A digest, so that no password stays in memory unnecessarily. */
function keyOf(target: SshTarget): string {
  const { host, port, username, credentials, bastion, proxyCommand, hostKeyAlias } = target
  const parts = [
    host,
    port,
    username,
    credentials.password ?? null,
    credentials.privateKeys,
    proxyCommand ?? null,
    hostKeyAlias ?? null,
    bastion === undefined ? null : keyOf(bastion),
  ]
  return createHash('sha256').update(writeJson(parts)).digest('base64')
}
