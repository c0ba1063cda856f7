/** A real SSH server: Debian's sshd in the foreground on loopback, with throwaway keys. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { ensureDebianPackage } from './apt.ts'
import { makeFolder } from './folders.ts'
import { findPort } from './slapd.ts'
import { waitFor } from './wait.ts'

const SSHD = '/usr/sbin/sshd'
const KEYGEN = '/usr/bin/ssh-keygen'
const POLICY = '/usr/sbin/policy-rc.d'
/** sshd insists on this folder, which the service would make. */
const PRIVILEGES = '/run/sshd'

export interface SshdOptions {
  /** Default 127.0.0.1. */
  host?: string
  /** A free one unless given. */
  port?: number
  /** Kinds of its own keys; default ed25519 and rsa. */
  hostKeys?: ('ed25519' | 'rsa' | 'ecdsa')[]
  /** Whether files can be copied to it; default yes. */
  hasSftp?: boolean
  /** Further lines of sshd_config, before the others, which they win over. */
  config?: string
}

export interface Sshd {
  readonly host: string
  readonly port: number
  /** `host:port`, as `hosts` has it. */
  readonly address: string
  /** Public key of the kind, as in files of known hosts: type and base64. */
  hostKey(kind: 'ed25519' | 'rsa' | 'ecdsa'): string
  /** Everything logged so far. */
  log(): string
  /** How often somebody has logged in. */
  logins(): number
  /** Pids of the processes that carry connections of people who are logged in. */
  sessions(): number[]
  stop(): Promise<void>
}

/** A throwaway key, its public half allowed to log in on every server of this file. */
export interface ClientKey {
  path: string
  text: string
  publicKey: string
}

export interface SshSite {
  readonly folder: string
  /** Account that the tests log in to: their own, because only root could let others in. */
  readonly user: string
  makeKey(
    name: string,
    options?: { type?: 'ed25519' | 'rsa' | 'ecdsa'; passphrase?: string; isAllowed?: boolean },
  ): ClientKey
  start(options?: SshdOptions): Promise<Sshd>
  /** Stops all servers. */
  stop(): Promise<void>
}

async function installSshd(): Promise<void> {
  if (existsSync(SSHD)) return
  const isOurs = !existsSync(POLICY) && process.getuid?.() === 0
  // Debian's packages start their services unless this file forbids it.
  if (isOurs) writeFileSync(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  try {
    await ensureDebianPackage('openssh-server', SSHD)
  } finally {
    if (isOurs) rmSync(POLICY)
  }
}

export async function makeSshSite(): Promise<SshSite> {
  await installSshd()
  if (process.getuid?.() === 0) mkdirSync(PRIVILEGES, { recursive: true, mode: 0o755 })
  const folder = makeFolder()
  const authorized = join(folder.path, 'authorized_keys')
  writeFileSync(authorized, '', { mode: 0o600 })
  const running: Sshd[] = []
  let number = 0

  function generate(path: string, type: string, passphrase = ''): void {
    const size = type === 'rsa' ? ['-b', '2048'] : []
    execFileSync(KEYGEN, ['-q', '-t', type, ...size, '-N', passphrase, '-C', 'test', '-f', path])
  }

  return {
    folder: folder.path,
    user: userInfo().username,
    makeKey(name, { type = 'ed25519', passphrase = '', isAllowed = true } = {}) {
      const path = join(folder.path, name)
      generate(path, type, passphrase)
      const publicKey = readFileSync(`${path}.pub`, 'utf8').trim()
      if (isAllowed) writeFileSync(authorized, `${publicKey}\n`, { flag: 'a' })
      return { path, text: readFileSync(path, 'utf8'), publicKey }
    },
    async start({ host = '127.0.0.1', port: given, hostKeys = ['ed25519', 'rsa'], hasSftp = true, config = '' } = {}) {
      const own = join(folder.path, `sshd-${++number}`)
      mkdirSync(own)
      for (const type of hostKeys) generate(join(own, `host_${type}`), type)
      const port = given ?? (await findPort(host))
      const file = join(own, 'sshd_config')
      const lines = [
        config,
        `ListenAddress ${host}:${port}`,
        ...hostKeys.map((type) => `HostKey ${join(own, `host_${type}`)}`),
        `AuthorizedKeysFile ${authorized}`,
        // The folders above belong to whoever runs the tests, with the modes of temporary folders.
        'StrictModes no',
        'PidFile none',
        'UsePAM no',
        'PermitRootLogin yes',
        'PasswordAuthentication no',
        'KbdInteractiveAuthentication no',
        'LogLevel VERBOSE',
        // Otherwise bash reads what the account starts with, which is not the subject, and may print something.
        'SetEnv SHLVL=1',
        'MaxStartups 200',
        ...(hasSftp ? ['Subsystem sftp internal-sftp'] : []),
      ]
      writeFileSync(file, `${lines.join('\n')}\n`)
      const child = spawn(SSHD, ['-D', '-e', '-f', file], { stdio: ['ignore', 'ignore', 'pipe'] })
      let log = ''
      let hasEnded = false
      child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text))
      const exited = once(child, 'exit').then(() => (hasEnded = true))
      const sessions = (): number[] => {
        const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')
        return children.split(' ').filter(Boolean).map(Number)
      }
      const sshd: Sshd = {
        host,
        port,
        address: `${host}:${port}`,
        hostKey: (kind) =>
          readFileSync(join(own, `host_${kind}.pub`), 'utf8')
            .split(' ')
            .slice(0, 2)
            .join(' '),
        log: () => log,
        logins: () => log.match(/^Accepted \S+ for /gm)?.length ?? 0,
        sessions,
        async stop() {
          // Connections outlive the server that has accepted them.
          const left = hasEnded ? [] : sessions()
          if (!hasEnded) child.kill('SIGTERM')
          await exited
          for (const pid of left) {
            try {
              process.kill(pid, 'SIGKILL')
            } catch {
              // It has ended.
            }
          }
        },
      }
      running.push(sshd)
      await waitFor('sshd to listen', () => {
        if (hasEnded) throw new Error(`sshd ended:\n${log}`)
        return log.includes('Server listening on')
      })
      return sshd
    },
    async stop() {
      await Promise.all(running.map((sshd) => sshd.stop()))
      folder.remove()
    },
  }
}
