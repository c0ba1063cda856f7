/** The ports: whether the server answers on them, or could take them. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { basename } from 'node:path'
import { codeOf } from '../lib/process/index.ts'
import { listenerNames, ok, problem, type Check, type Result } from './check.ts'

const ANSWER_MS = 5000

export const listeners: Check = {
  name: 'listeners',
  async look({ loaded: { config }, running }) {
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

/** Whoever it is that answers: certificates have a check of their own. */
async function askListener(name: string, url: string): Promise<Result> {
  const { request } = url.startsWith('https:')
    ? process.getBuiltinModule('node:https')
    : process.getBuiltinModule('node:http')
  const status = await new Promise<number | string>((resolve) => {
    const asked = request(`${url}/healthz`, { rejectUnauthorized: false, timeout: ANSWER_MS }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    asked.once('timeout', () => asked.destroy(new Error(`no answer within ${ANSWER_MS / 1000} seconds`)))
    asked.once('error', (error) => resolve(error.message))
    asked.end()
  })
  if (status === 200) return ok(`The ${name} listener answers at ${url}.`)
  return problem(
    `The ${name} listener does not answer at ${url}: ${typeof status === 'number' ? `HTTP status ${status}` : status}.`,
    'Look whether a firewall of this machine is in between, and into the log of the server; "svc restart" starts it anew.',
  )
}

async function tryPort(name: string, host: string, port: number): Promise<Result> {
  const error = await new Promise<Error | undefined>((resolve) => {
    const server = createServer()
    server.once('error', resolve)
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })
  if (error === undefined) {
    return ok(port === 0 ? `The ${name} listener takes any free port of ${host}.` : `${name}.port: ${port} is free.`)
  }
  switch (codeOf(error)) {
    case 'EADDRINUSE':
      return problem(
        `${name}.port: ${port} is taken${describe(holderOf(port))}.`,
        `Stop that program, or choose another ${name}.port.`,
      )
    case 'EACCES':
      return problem(
        `${name}.port: this account may not listen on ${port}.`,
        `Choose a port from 1024 on, or let systemd give the capability: AmbientCapabilities=CAP_NET_BIND_SERVICE.`,
      )
    case 'EADDRNOTAVAIL':
      return problem(
        `${name}.host: ${host} is no address of this machine.`,
        `Set ${name}.host to an address that "ip addr" shows, or to 0.0.0.0.`,
      )
    default:
      return problem(`${name}.host: ${host} cannot be listened on: ${error.message}.`, `Correct ${name}.host.`)
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

/** Who listens on a port, as far as this account may know. */
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

/** As it was started: Node calls its process MainThread. */
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
