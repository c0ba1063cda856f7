/** Derives SSH targets from the parameters of an action. */
import type { SshTarget } from './connection.ts'
import { isKeyText } from './private-key-text.ts'
import { parseHost, type HostAddress } from './hosts.ts'
import { readPrivateKeyFile, readSystemKey, type PrivateKeys } from './private-key.ts'
import { readSshConfig, type HostSettings } from './ssh-config.ts'

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
  const config = sshConfigPath === undefined ? undefined : await readSshConfig(sshConfigPath)
  const bastion = login.bastionHost === undefined ? undefined : parseHost(login.bastionHost)
  if (login.bastionHost !== undefined && bastion === undefined) {
    throw new Error('The parameter "bastion_host" must be "host", "host:port" or "[address]:port".')
  }
  const givenKey =
    login.privateKey === undefined ? undefined : await keys.unlock(await keyText(login.privateKey), login.passphrase)
  /** Each key is read once, whatever the number of hosts. */
  const unlocked = new Map<string, Promise<KeyOf>>()

  async function keyText(given: string): Promise<string> {
    if (isKeyText(given)) return given
    if (mayNameKeyFile && !given.includes('\n')) return await readPrivateKeyFile(given, 'The parameter "private_key"')
    const what = mayNameKeyFile ? 'the text of a key or the path of its file' : 'the text of a key'
    throw new Error(`The parameter "private_key" must be ${what}.`)
  }

  /** Reads and decrypts a key once, and keeps its problem. */
  function keyOf(name: string, read: () => Promise<string | undefined>): Promise<KeyOf> {
    let key = unlocked.get(name)
    if (key === undefined) {
      key = (async () => {
        try {
          const text = await read()
          return text === undefined ? {} : { key: await keys.unlock(text, login.passphrase) }
        } catch (error) {
          return { problem: error instanceof Error ? error.message : String(error) }
        }
      })()
      unlocked.set(name, key)
    }
    return key
  }

  /** The keys for logins without key and password parameters. Of several files, those that hold a usable key. */
  async function ownKeys(files: readonly string[]): Promise<{ privateKeys: string[]; problems: string[] }> {
    const what = 'IdentityFile in the OpenSSH configuration'
    const found =
      files.length === 0
        ? [await keyOf('', () => readSystemKey(settings.keyFile, settings.systemUser))]
        : await Promise.all(files.map((file) => keyOf(file, () => readPrivateKeyFile(file, what))))
    const privateKeys = found.flatMap(({ key }) => (key === undefined ? [] : [key]))
    const problems = [...new Set(found.flatMap(({ problem }) => (problem === undefined ? [] : [problem])))]
    if (privateKeys.length === 0 && problems.length > 0) throw new Error(problems.join(' '))
    return { privateKeys, problems }
  }

  async function locate(
    address: { host: string; port: number | undefined },
    more: { user?: string; ownPort?: number | undefined; via?: { host: string; port: number | undefined } | undefined },
    depth: number,
  ): Promise<SshTarget> {
    const wantedUser = more.user ?? login.username
    const port = address.port ?? more.ownPort
    const found: HostSettings = config?.settingsOf(address.host, {
      user: wantedUser,
      port,
      defaultUser: settings.systemUser,
    }) ?? { identityFiles: [], notFollowed: [] }
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
    const own = hasOwn ? undefined : await ownKeys(found.identityFiles)
    const notes = [
      ...(own?.problems ?? []),
      ...(found.notFollowed.length === 0
        ? []
        : [`svc does not follow these directives of the OpenSSH configuration: ${found.notFollowed.join(', ')}.`]),
      ...(last?.note === undefined ? [] : [last.note]),
    ]
    return {
      host: found.hostName ?? address.host,
      port: port ?? found.port ?? USUAL_PORT,
      username,
      credentials: {
        password: login.password,
        privateKeys: own?.privateKeys ?? (givenKey === undefined ? [] : [givenKey]),
      },
      bastion: last,
      proxyCommand: last === undefined ? found.proxyCommand : undefined,
      hostKeyAlias: found.hostKeyAlias,
      note: notes.length === 0 ? undefined : notes.join(' '),
    }
  }

  return (address) => locate(address, { ownPort: login.port, via: bastion }, 0)
}

/** Neither: there is no file. */
interface KeyOf {
  key?: string
  problem?: string
}
