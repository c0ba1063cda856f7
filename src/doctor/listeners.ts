/** The ports: whether the server answers on them, or whether they are free. */
import { createServer } from 'node:net'
import { describeHolder } from '../core/port-holder.ts'
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
        `${name}.port: ${port} is in use by ${describeHolder(port)}.`,
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
