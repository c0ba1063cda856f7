/** The configuration and its unsafe settings. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config/index.ts'
import { isLoopback } from '../lib/network/index.ts'
import { openPasswordFile, parsePasswordLine, readPasswordFile, type PasswordLine } from '../core/password-file.ts'
import { listenerNames, ok, failedCheck, warning, type HealthCheck, type Result } from './check.ts'

export const configuration: HealthCheck = {
  name: 'configuration',
  run({ loaded: { files, warnings, risks, notes } }) {
    const unknown = warnings.filter((text) => !risks.includes(text))
    const ignored = notes.map((text) => ok(`${text}.`))
    if (unknown.length > 0) {
      const remedy = 'Correct the name or remove the line; the server ignores it.'
      return [...unknown.map((text) => warning(text, remedy)), ...ignored]
    }
    return [
      ok(
        files.length === 0
          ? 'No configuration file; all options have their defaults.'
          : `${files.join(', ')}: all options are known.`,
      ),
      ...ignored,
    ]
  },
}

export const settings: HealthCheck = {
  name: 'settings',
  async run({ loaded: { config, risks } }) {
    const found = [
      ...risks.map((text) => warning(`${text}.`, remedyOf(text))),
      ...plainListeners(config),
      ...unsafeSettings(config),
      ...(await checkPasswords(config)),
    ]
    return found.length === 0 ? [ok('No unsafe settings.')] : found
  },
}

const remedies: Readonly<Record<string, string>> = {
  'auth.enable': 'Set auth.enable = True and add users with "svc user add".',
  'system.allow_open_network': 'Set auth.enable = True, or set the hosts of the listeners to 127.0.0.1.',
  'auth.mode': 'Set auth.trusted_proxies to the web server in front only, and restrict logins on that machine.',
  'system.debug': 'Set system.debug = False.',
}

function remedyOf(risk: string): string {
  const [key = ''] = risk.split(':', 1)
  if (key.endsWith('.use_ssl')) return `Set ${key} = True, or remove cert and key.`
  return remedies[key] ?? `Change ${key}; see svc.conf.example.`
}

function plainListeners(config: Config): Result[] {
  return listenerNames
    .filter((name) => !isLoopback(config[name].host) && !config[name].use_ssl)
    .map((name) =>
      warning(
        `${name}.host: ${config[name].host} accepts unencrypted connections from other machines: the network can read passwords and tokens.`,
        `Set ${name}.use_ssl = True with cert and key, or ${name}.host = 127.0.0.1 behind a web server with TLS.`,
      ),
    )
}

const isEverywhere = (network: string): boolean => /\/0+$/.test(network)

function unsafeSettings({ api, auth, log, ssh_runner: ssh, http_runner: http }: Config): Result[] {
  const rows: [isUnsafe: boolean, message: string, remedy: string][] = [
    [
      !api.mask_secrets,
      'api.mask_secrets: is off, so everyone with permission to view an execution sees its secrets.',
      'Set api.mask_secrets = True.',
    ],
    [!log.mask_secrets, 'log.mask_secrets: is off, so the log contains secrets.', 'Set log.mask_secrets = True.'],
    [
      api.allow_origin.includes('*'),
      'api.allow_origin: any web page can call the API from the browser of a user.',
      'Set the origins of your own pages.',
    ],
    [
      !auth.enable && api.allowed_hosts.includes('*'),
      'api.allowed_hosts: any web page can reach the server under a name of its own, without a login.',
      'Set the names under which you use the server.',
    ],
    [
      auth.trusted_proxies.some(isEverywhere),
      'auth.trusted_proxies: any client can forge its address.',
      'Set only the address of the web server in front.',
    ],
    [
      ssh.host_key_checking === 'off',
      'ssh_runner.host_key_checking: is off, so connections are open to interception.',
      'Set ssh_runner.host_key_checking = accept-new or strict.',
    ],
    [
      http.allowed_private_networks.some(isEverywhere),
      'http_runner.allowed_private_networks: actions can reach every private address, including this machine.',
      'Set only the networks that actions need.',
    ],
  ]
  return rows.flatMap(([isUnsafe, message, remedy]) => (isUnsafe ? [warning(message, remedy)] : []))
}

/** Password hashes are slow to check by design. */
const MAX_USERS = 20
/** Passwords of documents and examples, and those that attackers try first. */
const commonPasswords = ['Ch@ngeMe', 'password', 'admin', 'changeme']

async function checkPasswords({ auth, system }: Config): Promise<Result[]> {
  if (!auth.enable || auth.mode !== 'standalone' || auth.backend !== 'flat_file') return []
  const initial = join(system.base_path, 'initial-admin-password')
  const given = auth.backend_kwargs['file_path']
  const path = typeof given === 'string' ? given : join(system.base_path, 'htpasswd')
  const remedy = (user: string): string => `Change it: svc user passwd ${user}`
  const known = existsSync(path) ? await usersWithCommonPassword(path) : []
  return [
    ...(existsSync(initial)
      ? [warning(`The user "admin" still has its initial password, which is in ${initial}.`, remedy('admin'))]
      : []),
    ...known.map((user) => failedCheck(`The password of the user "${user}" is easy to guess.`, remedy(user))),
  ]
}

async function usersWithCommonPassword(path: string): Promise<string[]> {
  const file = await openPasswordFile(path)
  let text: string
  try {
    text = (await readPasswordFile(file)).toString('utf8')
  } finally {
    await file.close()
  }
  const lines = text.split('\n').flatMap((line) => parsePasswordLine(line) ?? [])
  const found: string[] = []
  for (const line of lines.slice(0, MAX_USERS)) if (await hasCommonPassword(line)) found.push(line.user)
  return found
}

async function hasCommonPassword({ user, hash }: PasswordLine): Promise<boolean> {
  for (const password of new Set([user, ...commonPasswords])) if (await matches(hash, password)) return true
  return false
}

/** Supports the common hash formats only. */
async function matches(hash: string, password: string): Promise<boolean> {
  try {
    if (hash.startsWith('$argon2')) return await (await import('argon2')).default.verify(hash, password)
    if (/^\$2[aby]\$/.test(hash)) return await (await import('bcryptjs')).default.compare(password, hash)
  } catch {
    return false
  }
  return hash === `{SHA}${createHash('sha1').update(password).digest('base64')}`
}
