/** One authenticated connection to an SSH server whose host key was verified. */
import type { Duplex } from 'node:stream'
import type { AnyAuthMethod, Client, ClientChannel, SFTPWrapper } from 'ssh2'
import { codeOf } from '../../lib/process/index.ts'
import { onDeadline } from '../process/deadline.ts'
import type { HostKeyCheck, KnownHosts } from './known-hosts.ts'

export interface Credentials {
  password: string | undefined
  /** Unencrypted key texts, tried in this order. */
  privateKeys: readonly string[]
}

/** Host, user and jump host of a connection. */
export interface SshTarget {
  host: string
  port: number
  username: string
  credentials: Credentials
  bastion: SshTarget | undefined
  /** Program that connects to the host, for `/bin/sh`, when there is no bastion. */
  proxyCommand?: string | undefined
  /** Its name in the file of known hosts, without a port; default: host and port. */
  hostKeyAlias?: string | undefined
  /** What the configuration says about this host and svc does not follow, for the message of a failure. */
  note?: string | undefined
}

/** A connection failed; the message is for the user and names the host. */
export class SshError extends Error {
  override readonly name = 'SshError'
}

export interface StartedProgram {
  channel: ClientChannel
  /** Calls the listener in the turn of the exit; at once after it, never when the connection breaks first. */
  onExit: (listener: (exit: ProgramExit) => void) => void
}

export interface ProgramExit {
  code: number | null
  signal: string | undefined
}

export interface SshConnection {
  readonly isClosed: boolean
  /** Resolves when the connection is closed, for any reason. */
  readonly closed: Promise<void>
  /** Starts a program on the host. @throws SshError; the program has not started then */
  exec(command: string, limitMs: number): Promise<StartedProgram>
  sftp(limitMs: number): Promise<SFTPWrapper>
  /** Opens a stream to another host through this one. */
  forward(host: string, port: number): Promise<Duplex>
  /** Idempotent. */
  close(): void
}

export interface ConnectSettings {
  knownHosts: KnownHosts
  /** For connection and login together. */
  timeoutSeconds: number
}

const USUAL_PORT = 22
/** A peer that vanished silently is detected after four intervals. */
const KEEPALIVE_MS = 10_000
const KEEPALIVES_UNANSWERED = 3

/** @param socket a stream to the host, when it is reached through another one */
export async function connect(
  { knownHosts, timeoutSeconds }: ConnectSettings,
  target: SshTarget,
  signal: AbortSignal,
  socket?: Duplex,
): Promise<SshConnection> {
  const { default: ssh2 } = await import('ssh2')
  let check: HostKeyCheck
  try {
    check = await (target.hostKeyAlias === undefined
      ? knownHosts.checkFor(target.host, target.port)
      : knownHosts.checkFor(target.hostKeyAlias, USUAL_PORT))
  } catch (error) {
    socket?.destroy()
    throw new SshError(`Cannot check the key of ${target.host}: ${sshTextOf(error)}.`)
  }
  const client = new ssh2.Client()
  let hostKey: Buffer | undefined
  let refusal: string | undefined
  let isClosed = false
  // The interrupted operation reports the error; an `error` event without a listener would crash the server.
  client.on('error', () => undefined)
  const closed = new Promise<void>((resolve) => {
    client.once('close', () => {
      isClosed = true
      resolve()
    })
  })
  const close = (): void => {
    if (isClosed) return
    // Not `end`, which waits for the peer.
    client.destroy()
  }
  try {
    await new Promise<void>((resolve, reject) => {
      const fail = (message: string): void => reject(new SshError(message))
      const clearDeadline = onDeadline(timeoutSeconds * 1000, () =>
        fail(`${target.host} did not log us in within ${timeoutSeconds} seconds (ssh_runner.ssh_connect_timeout).`),
      )
      const onAbort = (): void => fail('Stopped while connecting.')
      signal.addEventListener('abort', onAbort)
      const settle = (): void => {
        clearDeadline()
        signal.removeEventListener('abort', onAbort)
      }
      client.once('ready', () => {
        settle()
        resolve()
      })
      client.once('error', (error) => {
        settle()
        fail(refusal === undefined ? connectProblem(target, error) : `${sentence(refusal)}.`)
      })
      client.once('close', () => {
        settle()
        fail(`${target.host} closed the connection before the login.`)
      })
      if (signal.aborted) return onAbort()
      const { username } = target
      const { password, privateKeys } = target.credentials
      const authHandler: AnyAuthMethod[] = privateKeys.map((key) => ({ type: 'publickey', username, key }))
      if (password !== undefined) {
        authHandler.push(
          { type: 'password', username, password },
          {
            type: 'keyboard-interactive',
            username,
            prompt: (_name, _instructions, _language, prompts, finish) => finish(prompts.map(() => password)),
          },
        )
      }
      // Without credentials only a host that requires none accepts the login.
      if (authHandler.length === 0) authHandler.push({ type: 'none', username })
      try {
        client.connect({
          host: target.host,
          port: target.port,
          username,
          ...(socket === undefined ? {} : { sock: socket }),
          authHandler,
          algorithms: { serverHostKey: check.algorithms as 'ssh-ed25519'[] }, // a name that the types know
          hostVerifier: (key: Buffer) => {
            // Called again on every rekeying.
            refusal = check.verify(key)
            hostKey = key
            return refusal === undefined
          },
          keepaliveInterval: KEEPALIVE_MS,
          keepaliveCountMax: KEEPALIVES_UNANSWERED,
          readyTimeout: 0,
        })
        // Otherwise each small packet waits for the delayed acknowledgement of the last: 40 ms, several times a command.
        client.setNoDelay(true)
      } catch (error) {
        settle()
        fail(`Cannot connect to ${target.host}: ${sshTextOf(error)}.`)
      }
    })
    // Only now has the host proved that it owns the key.
    if (hostKey !== undefined) {
      await check.accept(hostKey).catch((error: unknown) => {
        throw new SshError(`Cannot store the key of ${target.host}: ${sshTextOf(error)}.`)
      })
    }
  } catch (error) {
    close()
    socket?.destroy()
    throw error
  }

  /** Limits the wait: a vanished peer or one that violates the protocol may never answer. */
  function within<T>(
    limitMs: number,
    ask: (answer: (error: Error | undefined, value: T) => void) => void,
    drop: (value: T) => void,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      let isLate = false
      const timer = setTimeout(() => {
        isLate = true
        reject(new SshError(`${target.host} did not answer within ${Math.round(limitMs / 1000)} seconds.`))
      }, limitMs)
      const fail = (error: unknown): void => {
        clearTimeout(timer)
        reject(new SshError(openProblem(target.host, sshTextOf(error))))
      }
      try {
        ask((error, value) => {
          clearTimeout(timer)
          if (error !== undefined) fail(error)
          else if (isLate) drop(value)
          else resolve(value)
        })
      } catch (error) {
        fail(error)
      }
    })
  }

  return {
    get isClosed() {
      return isClosed
    },
    closed,
    exec: (command, limitMs) =>
      within<StartedProgram>(
        limitMs,
        (answer) =>
          client.exec(command, (error, channel) => {
            answer(error ?? undefined, watchExit(channel))
          }),
        ({ channel }) => channel.close(),
      ),
    sftp: (limitMs) =>
      within<SFTPWrapper>(
        limitMs,
        (answer) => client.sftp((error, sftp) => answer(error ?? undefined, sftp)),
        (sftp) => sftp.end(),
      ),
    forward: (host, port) =>
      within<Duplex>(
        timeoutSeconds * 1000,
        (answer) =>
          client.forwardOut('127.0.0.1', 0, host, port, (error, channel) => answer(error ?? undefined, channel)),
        (channel) => channel.destroy(),
      ),
    close,
  }
}

/** Before anything is awaited: the exit of a short program may be in the packet that reports its start. */
function watchExit(channel: ClientChannel | undefined): StartedProgram {
  let exit: ProgramExit | undefined
  let listen: ((exit: ProgramExit) => void) | undefined
  channel?.once('exit', (code: number | null, signal?: string) => {
    exit = { code, signal }
    listen?.(exit)
  })
  return {
    channel: channel as ClientChannel, // missing only beside an error
    onExit(listener) {
      listen = listener
      if (exit !== undefined) listener(exit)
    },
  }
}

export function sshTextOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return text.replace(/\.$/, '')
}

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

function openProblem(host: string, why: string): string {
  if (why.startsWith('Packet length')) {
    return (
      `${host} prints text where SFTP must answer; let the startup files of the account, such as .bashrc, print ` +
      'nothing when the shell is not interactive.'
    )
  }
  return `${host} refused: ${why}.`
}

function connectProblem(target: SshTarget, error: Error & Partial<Pick<ClientErrorLevel, 'level'>>): string {
  const { host, port, username, credentials } = target
  if (error.level === 'client-authentication') {
    const tried = [
      ...(credentials.privateKeys.length === 0 ? [] : [credentials.privateKeys.length === 1 ? 'key' : 'keys']),
      ...(credentials.password === undefined ? [] : ['password']),
    ]
    const why = tried.length === 0 ? 'svc has neither a key nor a password for it' : `wrong ${tried.join(' or ')}`
    return `${host} refused the login of user "${username}": ${why}.`
  }
  switch (codeOf(error)) {
    case 'ECONNREFUSED':
      return `${host} refused the connection on port ${port}.`
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `Cannot resolve the host name "${host}".`
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return `${host} cannot be reached on port ${port}.`
    default:
      return `Cannot connect to ${host}: ${sshTextOf(error)}.`
  }
}

type ClientErrorLevel = { level: string } & Pick<Client, never>
