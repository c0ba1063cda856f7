/** Shared by the SSH runners: keys, known hosts and the connection pool. */
import { connect, SshError, sshTextOf } from './connection.ts'
import { createKnownHosts, type HostKeyChecking } from './known-hosts.ts'
import { createConnectionPool } from './pool.ts'
import { createPrivateKeys } from './private-key.ts'
import { startProxyCommand } from './proxy-command.ts'
import type { RemoteDeps } from './run-on-hosts.ts'

/** `ssh_runner.*` and `system_user.ssh_key_file`. */
export interface SshSettings {
  knownHostsFile: string
  hostKeyChecking: HostKeyChecking
  keyFile: string
  /** Undefined disables it. */
  configPath: string | undefined
  connectTimeoutSeconds: number
  /** Time a login shell has to start our shell. */
  startLimitSeconds: number
  remoteDir: string
  allowPartialFailure: boolean
  maxParallel: number
}

export interface Ssh extends RemoteDeps {
  /** After the last run has ended; idempotent. */
  stop(): Promise<void>
}

export function createSsh(
  settings: SshSettings,
  shared: Pick<RemoteDeps, 'maxResultBytes' | 'warn' | 'background'> & { systemUser: string },
): Ssh {
  const knownHosts = createKnownHosts(settings.knownHostsFile, settings.hostKeyChecking)
  const keys = createPrivateKeys()
  const { connectTimeoutSeconds: timeoutSeconds } = settings
  const pool = createConnectionPool(async (target, signal, socket) => {
    const { proxyCommand } = target
    if (socket !== undefined || proxyCommand === undefined) {
      return await connect({ knownHosts, timeoutSeconds }, target, signal, socket)
    }
    const proxy = startProxyCommand(proxyCommand)
    try {
      return await connect({ knownHosts, timeoutSeconds }, target, signal, proxy.socket)
    } catch (error) {
      throw new SshError(`${sshTextOf(error)}. ${await proxy.describe()}.`)
    }
  })
  return {
    pool,
    keys,
    startLimitMs: settings.startLimitSeconds * 1000,
    maxResultBytes: shared.maxResultBytes,
    warn: shared.warn,
    background: shared.background,
    settings: {
      systemUser: shared.systemUser,
      keyFile: settings.keyFile,
      sshConfigPath: settings.configPath,
      remoteDir: settings.remoteDir,
      allowPartialFailure: settings.allowPartialFailure,
      maxParallel: settings.maxParallel,
    },
    stop: async () => {
      pool.stop()
      await keys.stop()
    },
  }
}
