/** Reaches a host through a program (`ProxyCommand` of the OpenSSH configuration), which the server's account runs. */
import { spawn } from 'node:child_process'
import { homedir } from 'node:os'
import { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'

export interface Proxy {
  /** Standard input and output of the program. Destroying it stops the program. */
  socket: Duplex
  /** What became of the program, as a sentence; call after the connection failed. */
  describe(): Promise<string>
}

/** Kept of its standard error, for messages. */
const MAX_ERROR_CHARACTERS = 500
/** Time a program has to exit when its connection has ended, before it is killed. */
const GRACE_MS = 2000
/** Time a program has to report the reason of a failure. */
const REASON_MS = 1000
/** Variables that connecting programs need; others of the server are its own. */
const VARIABLES = ['PATH', 'USER', 'LOGNAME', 'LANG', 'LC_ALL', 'SSH_AUTH_SOCK']

/** @param command for `/bin/sh`; it must come from the operator */
export function startProxyCommand(command: string): Proxy {
  const known = VARIABLES.flatMap((name) => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value]]
  })
  const child = spawn('/bin/sh', ['-c', `exec ${command}`], {
    cwd: '/',
    env: { ...Object.fromEntries(known), HOME: homedir() },
    stdio: ['pipe', 'pipe', 'pipe'],
    // A group of its own, so that what it starts is stopped with it.
    detached: true,
  })
  let errors = ''
  let end: string | undefined
  const ended = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      end = `could not start (${error.message})`
      resolve()
    })
    child.once('exit', (code, signal) => {
      end = code === null ? `was ended by ${signal ?? 'a signal'}` : `ended with exit code ${code}`
    })
    child.once('close', () => resolve())
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-MAX_ERROR_CHARACTERS)
  })
  child.stderr.on('error', () => undefined)
  const signalGroup = (signal: 'SIGTERM' | 'SIGKILL'): void => {
    if (child.pid === undefined) return
    try {
      process.kill(-child.pid, signal)
    } catch {
      // It has ended.
    }
  }
  const socket = Duplex.from({ writable: child.stdin, readable: child.stdout })
  // The connection reports the failure.
  socket.on('error', () => undefined)
  socket.once('close', () => {
    if (end !== undefined) return
    signalGroup('SIGTERM')
    const late = setTimeout(() => signalGroup('SIGKILL'), GRACE_MS)
    void ended.then(() => clearTimeout(late))
  })
  return {
    socket,
    async describe() {
      const late = new AbortController()
      await Promise.race([ended, delay(REASON_MS, undefined, late).catch(() => undefined)])
      late.abort()
      const last = errors.trim().replaceAll(/\s+/g, ' ')
      return `ProxyCommand ${end ?? 'is running'}${last === '' ? '' : `: ${last}`}`
    },
  }
}
