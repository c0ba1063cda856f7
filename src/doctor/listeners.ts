/** The ports: whether the server answers on them, or whether they are free. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { basename } from 'node:path'
import { codeOf } from '../lib/process/index.ts'
import { listenerNames, ok, failedCheck, type HealthCheck, type Result } from './check.ts'

const TIMEOUT_MS = 5000

export const listeners: HealthCheck = {
  name: 'listeners',
  async run({ loaded: { config }, running }) {
    const results = await Promise.all(
      listenerNames.map((name) =>
        running === undefined
          ? tryPort(name, config[name].host, config[name].port)
          : askListener(name, running.urls[name]),
      ),
    )
    return results
  },
}

/** Accepts any certificate: another check covers certificates. */
async function askListener(name: string, url: string): Promise<Result> {
  const { request } = url.startsWith('https:')
    ? process.getBuiltinModule('node:https')
    : process.getBuiltinModule('node:http')
  const status = await new Promise<number | string>((resolve) => {
    const asked = request(`${url}/healthz`, { rejectUnauthorized: false, timeout: TIMEOUT_MS }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    asked.once('timeout', () => asked.destroy(new Error(`no answer within ${TIMEOUT_MS / 1000} seconds`)))
    asked.once('error', (error) => resolve(error.message))
    asked.end()
  })
  if (status === 200) return ok(`The ${name} listener answers at ${url}.`)
  return failedCheck(
    `The ${name} listener does not answer at ${url}: ${typeof status === 'number' ? `HTTP status ${status}` : status}.`,
    'Check the firewall of this machine and the log of the server, or restart it with "svc restart".',
  )
}

async function tryPort(name: string, host: string, port: number): Promise<Result> {
  const error = await new Promise<Error | undefined>((resolve) => {
    const server = createServer()
    server.once('error', resolve)
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })
  if (error === undefined) {
    return ok(port === 0 ? `The ${name} listener will use any free port of ${host}.` : `${name}.port: ${port} is free.`)
  }
  switch (codeOf(error)) {
    case 'EADDRINUSE':
      return failedCheck(
        `${name}.port: ${port} is in use${describe(holderOf(port))}.`,
        `Stop that program, or set another ${name}.port.`,
      )
    case 'EACCES':
      return failedCheck(
        `${name}.port: no permission to listen on ${port}.`,
        `Set a port of 1024 or above, or grant the capability in the systemd unit: AmbientCapabilities=CAP_NET_BIND_SERVICE.`,
      )
    case 'EADDRNOTAVAIL':
      return failedCheck(
        `${name}.host: ${host} is not an address of this machine.`,
        `Set ${name}.host to an address that "ip addr" shows, or to 0.0.0.0.`,
      )
    default:
      return failedCheck(`${name}.host: cannot listen on ${host}: ${error.message}.`, `Correct ${name}.host.`)
  }
}

interface Holder {
  pid: number
  name: string
}

function describe(holder: Holder | undefined): string {
  return holder === undefined ? ' by a program of another account' : ` by process ${holder.pid} (${holder.name})`
}

const LISTENING = '0A'

/** The process that listens on a port, if this account can see it. */
function holderOf(port: number): Holder | undefined {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const sockets = new Set(
    ['tcp', 'tcp6'].flatMap((table) =>
      readText(`/proc/net/${table}`)
        .split('\n')
        .map((line) => line.trim().split(/\s+/))
        .filter(([, local, , state]) => local?.endsWith(suffix) === true && state === LISTENING)
        .map((fields) => `socket:[${fields[9]}]`),
    ),
  )
  const pid = readdirSync('/proc').find((name) => /^\d+$/.test(name) && holdsOne(name, sockets))
  return pid === undefined ? undefined : { pid: Number(pid), name: nameOf(pid) }
}

/** The name from the command line: Node calls its process MainThread. */
function nameOf(pid: string): string {
  const [program = ''] = readText(`/proc/${pid}/cmdline`).split('\0')
  return basename(program) || readText(`/proc/${pid}/comm`).trim()
}

function holdsOne(pid: string, sockets: ReadonlySet<string>): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => sockets.has(linkOf(`/proc/${pid}/fd/${fd}`)))
  } catch {
    return false
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
