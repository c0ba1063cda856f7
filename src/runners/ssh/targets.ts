/** Derives SSH targets from the parameters of an action. */
import type { SshTarget } from './connection.ts'
import { isKeyText } from './private-key-text.ts'
import { parseHost, type HostAddress } from './hosts.ts'
import { readPrivateKeyFile, readSystemKey, type PrivateKeys } from './private-key.ts'
import { readHostSettings, type HostSettings } from './ssh-config.ts'

export interface TargetSettings {
  systemUser: string
  /** `system_user.ssh_key_file` */
  keyFile: string
  /** `ssh_runner.ssh_config_file_path`; undefined disables it. */
  sshConfigPath: string | undefined
}

export interface SshLogin {
  username: string | undefined
  password: string | undefined
  /** Key text, or a path where paths are allowed. */
  privateKey: string | undefined
  passphrase: string | undefined
  /** For hosts without a port; undefined: port 22, or the port from the OpenSSH configuration. */
  port: number | undefined
  bastionHost: string | undefined
}

export type Locate = (address: HostAddress) => Promise<SshTarget>

const USUAL_PORT = 22
/** Jump hosts per connection. */
const MAX_JUMPS = 5

/**
 * Reads the settings that all hosts of an execution share, once.
 *
 * @throws Error whose message is a sentence for the user; the returned function throws the same way
 */
export async function createLocate(
  settings: TargetSettings,
  keys: PrivateKeys,
  login: SshLogin,
  mayNameKeyFile: boolean,
): Promise<Locate> {
  const { sshConfigPath } = settings
  const bastion = login.bastionHost === undefined ? undefined : parseHost(login.bastionHost)
  if (login.bastionHost !== undefined && bastion === undefined) {
    throw new Error('The parameter "bastion_host" must be "host", "host:port" or "[address]:port".')
  }
  const givenKey =
    login.privateKey === undefined ? undefined : await keys.unlock(await keyText(login.privateKey), login.passphrase)
  /** Each key is read once, whatever the number of hosts. */
  const unlocked = new Map<string, Promise<string | undefined>>()

  async function keyText(given: string): Promise<string> {
    if (isKeyText(given)) return given
    if (mayNameKeyFile && !given.includes('\n')) return await readPrivateKeyFile(given, 'The parameter "private_key"')
    const what = mayNameKeyFile ? 'the text of a key or the path of its file' : 'the text of a key'
    throw new Error(`The parameter "private_key" must be ${what}.`)
  }

  /** The key for logins without key and password parameters. */
  function ownKey(identityFile: string | undefined): Promise<string | undefined> {
    const name = identityFile ?? ''
    let key = unlocked.get(name)
    if (key === undefined) {
      key = (async () => {
        const text =
          identityFile === undefined
            ? await readSystemKey(settings.keyFile, settings.systemUser)
            : await readPrivateKeyFile(identityFile, 'IdentityFile in the OpenSSH configuration')
        return text === undefined ? undefined : await keys.unlock(text, login.passphrase)
      })()
      unlocked.set(name, key)
    }
    return key
  }

  async function locate(
    address: { host: string; port: number | undefined },
    more: { user?: string; ownPort?: number | undefined; via?: { host: string; port: number | undefined } | undefined },
    depth: number,
  ): Promise<SshTarget> {
    const wantedUser = more.user ?? login.username
    const found: HostSettings =
      sshConfigPath === undefined ? {} : await readHostSettings(sshConfigPath, address.host, wantedUser)
    const username = wantedUser ?? found.user ?? settings.systemUser
    const hasOwn = givenKey !== undefined || login.password !== undefined
    const jumps = more.via === undefined ? (found.proxyJump ?? []) : []
    if (depth + jumps.length > MAX_JUMPS) throw new Error(`A connection uses more than ${MAX_JUMPS} jump hosts.`)
    let last: SshTarget | undefined
    if (more.via !== undefined) last = await locate(more.via, {}, depth + 1)
    for (const jump of jumps) {
      const at = jump.lastIndexOf('@')
      const hop = parseHost(jump.slice(at + 1))
      if (hop === undefined) throw new Error('ProxyJump in the OpenSSH configuration does not name a valid host.')
      const next = await locate(hop, at > 0 ? { user: jump.slice(0, at) } : {}, depth + 1)
      last = last === undefined ? next : { ...next, bastion: last }
    }
    return {
      host: found.hostName ?? address.host,
      port: address.port ?? more.ownPort ?? found.port ?? USUAL_PORT,
      username,
      credentials: {
        password: login.password,
        privateKey: hasOwn ? givenKey : await ownKey(found.identityFile),
      },
      bastion: last,
    }
  }

  return (address) => locate(address, { ownPort: login.port, via: bastion }, 0)
}
