/**
 * The control socket: a Unix socket for operators on the server's own machine. Only the server's account and root can
 * open it, and both can read the database and the keys. A request over it therefore needs no credential and has every
 * permission.
 */
import type { SurfaceTag } from './admission.ts'
import { once } from 'node:events'
import { chmod, mkdtemp, rename, rm } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { dirname, join } from 'node:path'
import type { Express } from 'express'
import { openFolder } from '../lib/files/index.ts'
import { allRights, type AccessControl } from './authenticate.ts'
import type { Principal } from './route.ts'

const { createServer } = process.getBuiltinModule('node:http')

export interface ControlSocket {
  /**
   * Stops accepting and closes idle connections. Resolves when every connection has closed; cuts the others after
   * `graceMs`.
   */
  close(graceMs: number): Promise<void>
}

/** Requests that came over the control socket. */
const ofOperators = new WeakSet<IncomingMessage>()

/**
 * Creates the socket with mode 0600 and replaces one that an earlier server left at the path. The lock of the database
 * and the run file ensure that only one server does so at a time.
 *
 * @param path absolute, of any length
 * @throws errors of the file system
 */
export async function listenOnControlSocket(app: Express, path: string): Promise<ControlSocket> {
  const handler = app as unknown as (request: IncomingMessage, response: ServerResponse) => void // an Express app is one
  const server = createServer({ requireHostHeader: false }, (request, response) => {
    const tagged: IncomingMessage & Partial<SurfaceTag> = request
    tagged.surface = 'api'
    ofOperators.add(request)
    handler(request, response)
  })
  const parent = await openFolder(dirname(path))
  try {
    // No other account can open the socket in this folder before its mode is 0600.
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

/** Whether a request came over the control socket, which has no addresses. */
export const isOfOperator = (request: IncomingMessage): boolean => ofOperators.has(request)

/** Gives requests over the control socket every permission, as this user; all others authenticate as before. */
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
