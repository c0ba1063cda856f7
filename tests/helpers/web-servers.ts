/** Web servers from Debian's packages, in front of a server of ours: in the foreground, on loopback, in a folder of their own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { extractDebianProgram } from './apt.ts'
import { waitFor } from './wait.ts'

export interface WebServer {
  /** Everything on standard error so far. */
  log(): string
  stop(): Promise<void>
}

/** @param site what stands in a file of `conf.d`; it listens at `port` of 127.0.0.1 @param folder its own, empty */
export async function startNginx(folder: string, port: number, site: string): Promise<WebServer> {
  // The package would start a server of its own.
  const program = await extractDebianProgram('nginx', 'usr/sbin/nginx')
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => {
    mkdirSync(join(folder, name), { recursive: true })
    return `${name}_temp_path ${join(folder, name)};`
  })
  writeFileSync(join(folder, 'site.conf'), site)
  const account = process.getuid?.() === 0 ? 'user root;' : ''
  const main = `daemon off; ${account} worker_processes 1; pid ${join(folder, 'pid')}; error_log stderr info;
events { worker_connections 256; }
http { access_log off; ${places.join(' ')} include ${join(folder, 'site.conf')}; }
`
  writeFileSync(join(folder, 'nginx.conf'), main)
  return startProgram([program, '-c', join(folder, 'nginx.conf'), '-e', 'stderr'], port)
}

/** @param site a Caddyfile that begins with a site; it listens at `port` of 127.0.0.1 @param folder its own, empty */
export async function startCaddy(folder: string, port: number, site: string): Promise<WebServer> {
  const program = await extractDebianProgram('caddy', 'usr/bin/caddy')
  const file = join(folder, 'Caddyfile')
  writeFileSync(file, `{\n\tadmin off\n\tauto_https off\n}\n${site}`)
  const env = { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  return startProgram([program, 'run', '--config', file, '--adapter', 'caddyfile'], port, env)
}

/** @param program with its words; it listens at `port` of 127.0.0.1 */
export async function startProgram(
  [program = '', ...words]: readonly string[],
  port: number,
  env: Record<string, string> = {},
): Promise<WebServer> {
  const child = spawn(program, words, { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, ...env } })
  let log = ''
  let hasEnded = false
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log = (log + text).slice(-1_000_000)))
  const exited = once(child, 'exit').then(() => (hasEnded = true))
  const stop = async (): Promise<void> => {
    if (!hasEnded) child.kill('SIGTERM')
    await exited
  }
  try {
    await waitFor(`${program} to listen`, async () => {
      if (hasEnded) throw new Error(`${program} ended:\n${log}`)
      return isListening(port)
    })
  } catch (error) {
    await stop()
    throw error
  }
  return { log: () => log, stop }
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
