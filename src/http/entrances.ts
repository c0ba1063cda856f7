/** Every entrance of the server: the three listeners and the control socket. */
import { join } from 'node:path'
import type { Express } from 'express'
import type { Config } from '../config/index.ts'
import { controlSocketName } from '../core/run-file.ts'
import type { Log } from '../lib/log/index.ts'
import { createRequestAdmission } from './admission.ts'
import { listenOnControlSocket, type ControlSocket } from './control-socket.ts'
import { renewIdentity } from './identities.ts'
import { listen, type Listener } from './listeners.ts'
import { surfaces, type Surface } from './route.ts'
import { createHandshakeReport, type TlsIdentity } from './tls.ts'

export interface Entrances {
  /** By surface: reloads the certificate of its listener. */
  readonly reloads: readonly (readonly [name: Surface, reload: () => Promise<void>])[]
  /** Replaces the control socket, whose file is missing. @throws errors of the file system */
  renewControlSocket(): Promise<void>
  /**
   * Stops accepting; cuts connections that are still open after `graceMs`. @throws AggregateError with every failure
   */
  close(graceMs: number): Promise<void>
}

export interface EntrancesOptions {
  config: Config
  log: Log
  /** Of the listeners that use TLS. */
  identities: ReadonlyMap<Surface, TlsIdentity>
  /** Most open connections. */
  connections: number
  /** Receives the address of each listener, with its actual port, as soon as it listens. */
  urls: Record<Surface, string>
}

/** Time for requests over a control socket that is replaced. */
const LAST_ANSWERS_MS = 2000

/** Browsers apply the header to all ports of a host for a year, so a single plain listener would become unreachable. */
const strictTransport = { 'Strict-Transport-Security': 'max-age=31536000' }

/** Opens every entrance. When one fails, closes those already open. @throws ListenError */
export async function openEntrances(app: Express, options: EntrancesOptions): Promise<Entrances> {
  const { config, log, identities, connections, urls } = options
  const listeners: Listener[] = []
  const opened: { close(graceMs: number): Promise<void> }[] = []
  let control: ControlSocket[] = []
  const close = (graceMs: number): Promise<void> =>
    // In parallel: each waits for its own connections.
    Promise.all([...opened, ...control].map((entrance) => entrance.close(graceMs))).then(() => undefined)
  const admission = createRequestAdmission({ connections, requests: config.system.max_requests })
  const socketPath = join(config.system.base_path, controlSocketName)
  const headers = identities.size === surfaces.length ? strictTransport : {}
  try {
    for (const surface of surfaces) {
      const { host, port } = config[surface]
      const identity = identities.get(surface)
      const tls = identity && { identity, headers, handshakeFailed: createHandshakeReport(log, surface) }
      const listener = await listen(app, { surface, host, port, tls, admission })
      listeners.push(listener)
      opened.push(listener)
      urls[surface] = listener.url
    }
    control = await openControlSocket(app, socketPath, log)
  } catch (error) {
    await close(0).catch(() => undefined)
    throw error
  }
  return {
    reloads: listeners.map((listener) => [listener.surface, () => renewIdentity(listener, config, log)]),
    async renewControlSocket() {
      const before = control
      control = []
      // It first, because closing it deletes the file of the path.
      for (const socket of before) await socket.close(LAST_ANSWERS_MS)
      control = [await listenOnControlSocket(app, socketPath)]
    },
    close,
  }
}

/** One, or none: without it the server still serves its listeners. */
async function openControlSocket(app: Express, path: string, log: Log): Promise<ControlSocket[]> {
  try {
    return [await listenOnControlSocket(app, path)]
  } catch (error) {
    log.warning('control_socket.failed', 'Could not create the control socket: operators must log in', { path, error })
    return []
  }
}
