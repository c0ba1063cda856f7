/** A real directory: Debian's slapd on loopback, with a database of the test's own. */
import { spawn, spawnSync } from 'node:child_process'
import { randomInt, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { Client } from 'ldapts'
import { ensureDebianPackage } from './apt.ts'
import type { Certificate } from './certificates.ts'
import { makeFolder } from './folders.ts'
import { waitFor } from './wait.ts'

const SLAPD = '/usr/sbin/slapd'
const POLICY = '/usr/sbin/policy-rc.d'

export const suffix = 'dc=example,dc=org'
const administrator = { dn: `cn=admin,${suffix}`, password: 'administrator of the directory' }

export interface SlapdOptions {
  /** Entries below `dc=example,dc=org`, which is there already. */
  ldif: string
  /** Serves `ldaps:` and StartTLS too. */
  certificate?: Certificate
  /** Default 127.0.0.1. */
  host?: string
  /** Free ones unless given. */
  port?: number
  /** More lines for the database of slapd.conf. */
  config?: string
}

export interface Slapd {
  readonly host: string
  readonly port: number
  /** Of `ldaps:`; 0 without a certificate. */
  readonly tlsPort: number
  /** One line per connection, bind and search so far. */
  log(): string
  /** Waits until every connection is closed, and returns what the log has got since the last call. */
  settle(): Promise<string[]>
  /** Does something as the administrator of the directory. */
  change(work: (client: Client) => Promise<unknown>): Promise<void>
  /** Such as SIGSTOP, so that connections are taken by the system and never answered, and SIGCONT. */
  signal(signal: NodeJS.Signals): void
  stop(): Promise<void>
}

/** Makes sure that slapd is there, without a service of it running. */
async function installSlapd(): Promise<void> {
  if (existsSync(SLAPD)) return
  const isOurs = !existsSync(POLICY) && process.getuid?.() === 0
  // Debian's packages start their services unless this file forbids it.
  if (isOurs) writeFileSync(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  try {
    await ensureDebianPackage('slapd', SLAPD)
  } finally {
    if (isOurs) rmSync(POLICY)
  }
}

/** Outside of where the system picks ports, so that nobody gets it before slapd does. */
export async function findPort(host = '127.0.0.1'): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 30_000)
    const server = createServer().listen(port, host)
    try {
      await once(server, 'listening')
    } catch {
      continue
    }
    server.close()
    await once(server, 'close')
    return port
  }
}

export async function startSlapd(options: SlapdOptions): Promise<Slapd> {
  await installSlapd()
  const folder = makeFolder()
  try {
    return await start(folder.path, options, () => folder.remove())
  } catch (error) {
    folder.remove()
    throw error
  }
}

async function start(folder: string, options: SlapdOptions, onStop: () => void): Promise<Slapd> {
  const { certificate, host = '127.0.0.1' } = options
  const config = writeConfig(folder, options)
  load(folder, config, options.ldif)
  const port = options.port ?? (await findPort(host))
  const tlsPort = certificate === undefined ? 0 : await findPort(host)
  const urls = [`ldap://${host}:${port}/`, ...(tlsPort === 0 ? [] : [`ldaps://${host}:${tlsPort}/`])]
  // With -d it stays in the foreground and writes its log to standard error.
  const child = spawn(SLAPD, ['-f', config, '-h', urls.join(' '), '-d', 'stats'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let log = ''
  let told = 0
  let hasEnded = false
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text))
  const exited = once(child, 'exit').then(() => (hasEnded = true))
  try {
    // It says that it starts a moment before it listens.
    for (const one of tlsPort === 0 ? [port] : [port, tlsPort]) {
      await waitFor('slapd to listen', () => {
        if (hasEnded) throw new Error(`slapd ended:\n${log}`)
        return log.includes('slapd starting') && accepts(host, one)
      })
    }
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
  async function settle(): Promise<string[]> {
    const marker = randomUUID()
    await change((client) => client.search(suffix, { scope: 'base', filter: `(cn=${marker})` }))
    // What was answered before the marker is in the log before it; connections may end later.
    const own = await waitFor('the log of slapd', () => new RegExp(`(conn=\\d+) .*${marker}`).exec(log)?.[1])
    await waitFor('every connection to be closed', () => count(log, / ACCEPT from /g) === count(log, / fd=\d+ closed/g))
    const lines = log.slice(told).split('\n')
    told = log.length
    return lines.filter((line) => line.includes('conn=') && !line.includes(`${own} `))
  }

  async function change(work: (client: Client) => Promise<unknown>): Promise<void> {
    const client = new Client({ url: `ldap://${host}:${port}`, timeout: 30_000, connectTimeout: 30_000 })
    try {
      await client.bind(administrator.dn, administrator.password)
      await work(client)
    } finally {
      await client.unbind()
    }
  }

  return {
    host,
    port,
    tlsPort,
    log: () => log,
    settle,
    change,
    signal: (signal) => void child.kill(signal),
    async stop() {
      if (!hasEnded) child.kill('SIGTERM')
      await exited
      onStop()
    },
  }
}

async function accepts(host: string, port: number): Promise<boolean> {
  const socket = connect(port, host)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

function count(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0
}

function writeConfig(folder: string, { certificate, config = '' }: SlapdOptions): string {
  const data = join(folder, 'data')
  mkdirSync(data)
  const schemas = ['core', 'cosine', 'inetorgperson', 'nis'].map((name) => `include /etc/ldap/schema/${name}.schema`)
  const tls = certificate && [
    `TLSCertificateFile ${certificate.certFile}`,
    `TLSCertificateKeyFile ${certificate.keyFile}`,
  ]
  const lines = [
    ...schemas,
    'modulepath /usr/lib/ldap',
    'moduleload back_mdb',
    `pidfile ${join(folder, 'slapd.pid')}`,
    `argsfile ${join(folder, 'slapd.args')}`,
    ...(tls ?? []),
    'database mdb',
    'maxsize 67108864',
    'dbnosync',
    `suffix "${suffix}"`,
    `rootdn "${administrator.dn}"`,
    `rootpw "${administrator.password}"`,
    `directory ${data}`,
    'access to attrs=userPassword by anonymous auth by * none',
    'access to * by users read by * none',
    config,
  ]
  const file = join(folder, 'slapd.conf')
  writeFileSync(file, `${lines.join('\n')}\n`)
  return file
}

function load(folder: string, config: string, ldif: string): void {
  const file = join(folder, 'data.ldif')
  const top = `dn: ${suffix}\nobjectClass: domain\ndc: example\n`
  writeFileSync(file, `${top}\n${ldif.trim()}\n`)
  const { status, stderr } = spawnSync('/usr/sbin/slapadd', ['-q', '-f', config, '-l', file], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`slapadd failed: ${stderr}`)
}
