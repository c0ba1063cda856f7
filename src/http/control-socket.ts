/**
 * The control socket: the way in for whoever operates the server on its own machine. It is a Unix socket that only the
 * server's own account and root can open, as they can its database and its keys; so whoever comes by it needs no
 * credential and may do everything.
 */
import type { SurfaceTag } from './admission.ts'
import { once } from 'node:events'
import { chmod, mkdtemp, rename, rm } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { dirname, join } from 'node:path'
import type { Express } from 'express'
import { holdFolder } from '../lib/files/index.ts'
import { allRights, type AccessControl } from './authenticate.ts'
import type { Principal } from './route.ts'

const { createServer } = process.getBuiltinModule('node:http')

export interface ControlSocket {
  /** Stops accepting, closes idle connections. Resolves when every connection is gone; cuts what is left after `graceMs`. */
  close(graceMs: number): Promise<void>
}

/** Requests that came by the control socket. */
const ofOperators = new WeakSet<IncomingMessage>()

/**
 * Makes the socket with mode 0600 in place of whatever an earlier server has left at the path. Only one server at a time may
 * do so, which the lock of the database and the run file see to.
 *
 * @param path absolute, of any length
 * @throws what the file system says
 */
export async function listenOnControlSocket(app: Express, path: string): Promise<ControlSocket> {
  const handler = app as unknown as (request: IncomingMessage, response: ServerResponse) => void // an Express app is one
  const server = createServer({ requireHostHeader: false }, (request, response) => {
    const tagged: IncomingMessage & Partial<SurfaceTag> = request
    tagged.surface = 'api'
    ofOperators.add(request)
    handler(request, response)
  })
  const parent = await holdFolder(dirname(path))
  try {
    // Made where nobody else can reach it before its mode is right.
    const folder = await mkdtemp(join(parent.path, '.svc-sock-'))
    try {
      const made = join(folder, 's')
      server.listen(made)
      await once(server, 'listening')
      await chmod(made, 0o600)
      await rename(made, path)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  } catch (error) {
    server.close()
    throw error
  } finally {
    await parent.release()
  }
  server.on('error', () => undefined)
  return {
    async close(graceMs) {
      await new Promise<void>((resolve) => {
        const cut = setTimeout(() => server.closeAllConnections(), graceMs)
        server.close(() => {
          clearTimeout(cut)
          resolve()
        })
        server.closeIdleConnections()
      })
      await rm(path, { force: true })
    },
  }
}

/** Whether a request came by the control socket, which has no addresses. */
export const isOfOperator = (request: IncomingMessage): boolean => ofOperators.has(request)

/** Whoever comes by the control socket may do everything, as this user; all others are asked as before. */
export function admitOperators(access: AccessControl, user: string): AccessControl {
  const operator: Principal = { user, isAdmin: true, method: 'control_socket' }
  const isOperator = (principal: Principal): boolean => principal === operator
  return {
    ...access,
    authenticate: (request, response) => (isOfOperator(request) ? operator : access.authenticate(request, response)),
    hasCredential: (request) => isOfOperator(request) || access.hasCredential(request),
    rightsOf: (principal) => (isOperator(principal) ? allRights : access.rightsOf(principal)),
    isCurrent: (principal) => isOperator(principal) || access.isCurrent(principal),
    watch: (principal, answer) => (isOperator(principal) ? () => undefined : access.watch(principal, answer)),
  }
}
