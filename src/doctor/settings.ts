/** The configuration, and what in it is not safe. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config/index.ts'
import { isLoopback } from '../lib/network/index.ts'
import { openPasswordFile, parsePasswordLine, readPasswordFile, type PasswordLine } from '../core/password-file.ts'
import { listenerNames, ok, problem, warning, type Check, type Result } from './check.ts'

export const configuration: Check = {
  name: 'configuration',
  look({ loaded: { files, warnings, risks } }) {
    const unknown = warnings.filter((text) => !risks.includes(text))
    if (unknown.length > 0) {
      return unknown.map((text) => warning(text, 'Correct the name or remove the line; what it says is not used.'))
    }
    return [
      ok(
        files.length === 0
          ? 'No file is used; all options have their defaults.'
          : `${files.join(', ')}: every option is known.`,
      ),
    ]
  },
}

export const settings: Check = {
  name: 'settings',
  async look({ loaded: { config, risks } }) {
    const found = [
      ...risks.map((text) => warning(`${text}.`, remedyOf(text))),
      ...plainListeners(config),
      ...openSettings(config),
      ...(await knownPasswords(config)),
    ]
    return found.length === 0 ? [ok('No setting is unsafe.')] : found
  },
}

const remedies: Readonly<Record<string, string>> = {
  'auth.enable': 'Set auth.enable = True and give users passwords with "svc user add".',
  'system.allow_open_network': 'Set auth.enable = True, or hosts of listeners to 127.0.0.1.',
  'auth.mode': 'Name in auth.trusted_proxies only the web server in front, and let only its account log in there.',
  'system.debug': 'Set system.debug = False.',
}

function remedyOf(risk: string): string {
  const [key = ''] = risk.split(':', 1)
  if (key.endsWith('.use_ssl')) return `Set ${key} = True, or remove cert and key.`
  return remedies[key] ?? `Change ${key}; svc.conf.example tells about it.`
}

function plainListeners(config: Config): Result[] {
  return listenerNames
    .filter((name) => !isLoopback(config[name].host) && !config[name].use_ssl)
    .map((name) =>
      warning(
        `${name}.host: ${config[name].host} can be reached from other machines, and nothing is encrypted: passwords and tokens can be read on the way.`,
        `Set ${name}.use_ssl = True with cert and key, or ${name}.host = 127.0.0.1 behind a web server that speaks TLS.`,
      ),
    )
}

const isEverywhere = (network: string): boolean => /\/0+$/.test(network)

function openSettings({ api, auth, log, ssh_runner: ssh, http_runner: http }: Config): Result[] {
  const rows: [isUnsafe: boolean, message: string, remedy: string][] = [
    [
      !api.mask_secrets,
      'api.mask_secrets: it is off, so whoever may read an execution reads its secrets.',
      'Set api.mask_secrets = True.',
    ],
    [!log.mask_secrets, 'log.mask_secrets: it is off, so secrets are in the log.', 'Set log.mask_secrets = True.'],
    [
      api.allow_origin.includes('*'),
      'api.allow_origin: every web page may call the API with what a browser knows.',
      'Name the origins of your own pages.',
    ],
    [
      auth.trusted_proxies.some(isEverywhere),
      'auth.trusted_proxies: every client is believed about its own address.',
      'Name the web server in front, and nobody else.',
    ],
    [
      ssh.host_key_checking === 'off',
      'ssh_runner.host_key_checking: it is off, so nobody notices who sits between this machine and others.',
      'Set ssh_runner.host_key_checking = accept-new or strict.',
    ],
    [
      http.allowed_private_networks.some(isEverywhere),
      'http_runner.allowed_private_networks: actions may reach every private address, those of this machine included.',
      'Name only the networks that actions need.',
    ],
  ]
  return rows.flatMap(([isUnsafe, message, remedy]) => (isUnsafe ? [warning(message, remedy)] : []))
}

/** Checking passwords takes time by intention. */
const MAX_USERS = 20
/** Those that documents and examples have spread, and what is tried first. */
const knownWords = ['Ch@ngeMe', 'password', 'admin', 'changeme']

async function knownPasswords({ auth, system }: Config): Promise<Result[]> {
  if (!auth.enable || auth.mode !== 'standalone' || auth.backend !== 'flat_file') return []
  const initial = join(system.base_path, 'initial-admin-password')
  const given = auth.backend_kwargs['file_path']
  const path = typeof given === 'string' ? given : join(system.base_path, 'htpasswd')
  const remedy = (user: string): string => `Change it: svc user passwd ${user}`
  const known = existsSync(path) ? await usersWithKnownPassword(path) : []
  return [
    ...(existsSync(initial)
      ? [warning(`The user "admin" still has its first password, which is in ${initial}.`, remedy('admin'))]
      : []),
    ...known.map((user) => problem(`The password of the user "${user}" can be guessed at once.`, remedy(user))),
  ]
}

async function usersWithKnownPassword(path: string): Promise<string[]> {
  const file = await openPasswordFile(path)
  let text: string
  try {
    text = (await readPasswordFile(file)).toString('utf8')
  } finally {
    await file.close()
  }
  const lines = text.split('\n').flatMap((line) => parsePasswordLine(line) ?? [])
  const found: string[] = []
  for (const line of lines.slice(0, MAX_USERS)) if (await isKnown(line)) found.push(line.user)
  return found
}

async function isKnown({ user, hash }: PasswordLine): Promise<boolean> {
  for (const password of new Set([user, ...knownWords])) if (await matches(hash, password)) return true
  return false
}

/** Of the forms that are common; others are not tried. */
async function matches(hash: string, password: string): Promise<boolean> {
  try {
    if (hash.startsWith('$argon2')) return await (await import('argon2')).default.verify(hash, password)
    if (/^\$2[aby]\$/.test(hash)) return await (await import('bcryptjs')).default.compare(password, hash)
  } catch {
    return false
  }
  return hash === `{SHA}${createHash('sha1').update(password).digest('base64')}`
}
