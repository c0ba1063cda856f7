/** Arguments of the `ldap` backend (spec: Directory backend options; contract 01, 1.4). */
import { X509Certificate } from 'node:crypto'
import { isIPv6 } from 'node:net'
import { resolve } from 'node:path'
import { readBoundedFile } from '../../../../lib/files/index.ts'
import type { JsonObject } from '../../../../config/index.ts'
import { BackendProblem } from '../backend.ts'
import { readClientOptions, type ClientSettings } from './client-options.ts'
import { normaliseDn } from './dn.ts'
import { PatternProblem, compileFilter, type FilterPattern, type Placeholder } from './filters.ts'
import { readUserNames, type UserNames } from './user-names.ts'
import { shown } from '../../../../lib/text/index.ts'
import { writeJson } from '../../../../lib/json/index.ts'

export type LdapScope = 'base' | 'one' | 'sub'

export interface LdapServer {
  host: string
  port: number
}

export interface LdapOptions {
  bindDn: string
  bindPassword: string
  baseOu: string
  baseOuGroup: string
  /** Normalized DNs without duplicates. */
  groups: readonly string[]
  needsAllGroups: boolean
  /** In the order of failover. */
  servers: readonly LdapServer[]
  encryption: 'none' | 'ssl' | 'starttls'
  tls: {
    /** CA certificates; undefined: those of the platform. */
    ca: string | undefined
    isVerified: boolean
    minVersion: 'TLSv1.2' | 'TLSv1.3'
  }
  accountPattern: FilterPattern
  userNames: UserNames
  /** Whether `id_attr` and `account_pattern` are both absent. */
  isDefaultAccountPattern: boolean
  groupPattern: FilterPattern
  scope: LdapScope
  connectTimeoutMs: number
  answerTimeoutMs: number
  derefAliases: ClientSettings['derefAliases']
  isTraced: boolean
  chaseReferrals: boolean
  /** Undefined: groups are not cached. */
  cache: { ttlSeconds: number; maxUsers: number } | undefined
}

const names = [
  'bind_dn',
  'bind_password',
  'base_ou',
  'group_dns',
  'group_dns_check',
  'host',
  'port',
  'use_ssl',
  'use_tls',
  'cacert',
  'id_attr',
  'account_pattern',
  'group_pattern',
  'base_ou_group',
  'scope',
  'network_timeout',
  'debug',
  'chase_referrals',
  'client_options',
  'cache_user_groups_response',
  'cache_user_groups_ttl',
  'cache_user_groups_cache_ttl',
  'cache_user_groups_cache_max_size',
] as const

type Name = (typeof names)[number]

const scopes = { base: 'base', onelevel: 'one', subtree: 'sub' } as const
const groupChecks = { and: true, or: false } as const

const DEFAULT_GROUP_PATTERN = '(|(member={user_dn})(uniqueMember={user_dn})(memberUid={username}))'
const MAX_SERVERS = 16
const MAX_GROUP_DNS = 1000
const MAX_SECONDS = 300
const MAX_TTL_SECONDS = 86_400
const MAX_CACHED_USERS = 100_000
/** About ten times the size of the public root certificates. */
const MAX_CACERT_BYTES = 4 * 1024 * 1024

/** @param basePath relative paths start there; @throws BackendProblem */
export async function readLdapOptions(kwargs: JsonObject, basePath: string): Promise<LdapOptions> {
  const other = Object.keys(kwargs).find((name) => !names.some((known) => known === name))
  if (other !== undefined) {
    throw ldapProblem(`ldap has no argument ${writeJson(shown(other))}; valid arguments: ${names.join(', ')}`)
  }
  const given = new Arguments(kwargs)
  const bindDn = given.requiredText('bind_dn')
  // The library interprets these as mechanisms.
  if (/^(?:EXTERNAL|PLAIN|DIGEST-MD5|SCRAM-SHA-1)$/.test(bindDn)) {
    throw ldapProblem('bind_dn must be a distinguished name such as "cn=reader,dc=example,dc=org"')
  }
  const bindPassword = given.requiredText('bind_password')
  const baseOu = readDn('base_ou', given.requiredText('base_ou'))
  const groups = readGroups(given.value('group_dns'))
  const useSsl = given.flag('use_ssl', false)
  const useTls = given.flag('use_tls', false)
  if (useSsl && useTls) throw ldapProblem('use_ssl and use_tls are both set; set only one')
  const port = given.port() ?? (useSsl ? 636 : 389)
  const settings = readClientOptions(given.value('client_options'))
  const idAttribute = given.text('id_attr') ?? 'uid'
  if (!/^[A-Za-z][A-Za-z0-9-]*$/.test(idAttribute)) {
    throw ldapProblem('id_attr must be the name of an attribute such as "uid"')
  }
  const givenAccountPattern = given.text('account_pattern')
  const accountPattern = readPattern('account_pattern', givenAccountPattern ?? `${idAttribute}={username}`, [
    'username',
  ])
  const networkSeconds = given.number('network_timeout', { above: 0, max: MAX_SECONDS }) ?? 10
  return {
    bindDn,
    bindPassword,
    baseOu,
    baseOuGroup: readDn('base_ou_group', given.text('base_ou_group') ?? baseOu),
    groups,
    needsAllGroups: given.choice('group_dns_check', groupChecks) ?? true,
    servers: readHosts(given.requiredText('host')).map((host) => ({ host, port })),
    encryption: useSsl ? 'ssl' : useTls ? 'starttls' : 'none',
    tls: await readTls(given.text('cacert'), settings, basePath),
    accountPattern,
    userNames: inOption('account_pattern', () => readUserNames(accountPattern)),
    isDefaultAccountPattern: givenAccountPattern === undefined && given.value('id_attr') === undefined,
    groupPattern: readPattern('group_pattern', given.text('group_pattern') ?? DEFAULT_GROUP_PATTERN, [
      'user_dn',
      'username',
    ]),
    scope: given.choice('scope', scopes) ?? 'sub',
    connectTimeoutMs: (settings.networkTimeoutSeconds ?? networkSeconds) * 1000,
    answerTimeoutMs: (settings.timeoutSeconds ?? networkSeconds) * 1000,
    derefAliases: settings.derefAliases,
    isTraced: given.flag('debug', false),
    chaseReferrals: readChasing(given, settings),
    cache: readCache(given),
  }
}

export function ldapProblem(text: string): BackendProblem {
  return new BackendProblem(`auth.backend_kwargs: ${text}`)
}

/** Reads arguments. Null counts as absent, as in existing configurations. */
class Arguments {
  readonly #kwargs: JsonObject

  constructor(kwargs: JsonObject) {
    this.#kwargs = kwargs
  }

  value(name: Name): unknown {
    return this.#kwargs[name] ?? undefined
  }

  text(name: Name): string | undefined {
    const value = this.value(name)
    if (value === undefined) return undefined
    if (typeof value !== 'string' || value === '' || value.includes('\0'))
      throw ldapProblem(`${name} must be a non-empty string`)
    return value
  }

  requiredText(name: Name): string {
    const value = this.value(name)
    if (value === undefined || value === '') throw ldapProblem(`${name} is required`)
    return this.text(name) ?? ''
  }

  flag(name: Name, absent: boolean): boolean {
    const value = this.value(name) ?? absent
    if (typeof value !== 'boolean') throw ldapProblem(`${name} must be true or false`)
    return value
  }

  number(name: Name, range: { above?: number; min?: number; max: number; isWhole?: boolean }): number | undefined {
    const value = this.value(name)
    if (value === undefined) return undefined
    const { above = -Infinity, min = -Infinity, max, isWhole = false } = range
    const isFine = typeof value === 'number' && value > above && value >= min && value <= max
    if (isFine && (!isWhole || Number.isInteger(value))) return value
    const from = range.min === undefined ? `above ${above}` : `from ${min}`
    throw ldapProblem(`${name} must be a ${isWhole ? 'whole ' : ''}number ${from}, at most ${max}`)
  }

  /** An empty text is the default port (contract 01, 1.4). */
  port(): number | undefined {
    return this.value('port') === '' ? undefined : this.number('port', { min: 1, max: 65_535, isWhole: true })
  }

  choice<T>(name: Name, choices: Readonly<Record<string, T>>): T | undefined {
    const value = this.value(name)
    if (value === undefined) return undefined
    const entry = Object.entries(choices).find(([choice]) => choice === value)
    if (entry === undefined) {
      const list = Object.keys(choices).map((choice) => writeJson(choice))
      throw ldapProblem(`${name} must be ${list.slice(0, -1).join(', ')} or ${list.at(-1) ?? ''}`)
    }
    return entry[1]
  }
}

function readDn(name: Name, dn: string): string {
  if (normaliseDn(dn) !== undefined) return dn
  throw ldapProblem(`${name} ${writeJson(shown(dn))} is not a distinguished name such as "ou=people,dc=example,dc=org"`)
}

function readGroups(value: unknown): string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value ?? '']
  if (list.length === 0 || (list.length === 1 && list[0] === '')) throw ldapProblem('group_dns is required')
  if (list.length > MAX_GROUP_DNS) throw ldapProblem(`group_dns has more than ${MAX_GROUP_DNS} groups`)
  const groups = list.map((dn) => {
    if (typeof dn !== 'string') throw ldapProblem('group_dns must be a distinguished name or a list of them')
    return normaliseDn(readDn('group_dns', dn)) ?? ''
  })
  return [...new Set(groups)]
}

function readHosts(text: string): string[] {
  const hosts = text.split(',').map((host) => host.trim().replace(/^\[(.*)\]$/, '$1'))
  if (hosts.length > MAX_SERVERS) throw ldapProblem(`host has more than ${MAX_SERVERS} servers`)
  for (const host of hosts) {
    if (host === '') throw ldapProblem('host has an empty entry between its commas')
    if (isIPv6(host) || /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\.?$/.test(host)) continue
    throw ldapProblem(
      `host ${writeJson(shown(host))} is not a host name or address. Set the port in port, and use_ssl for ldaps://`,
    )
  }
  return [...new Set(hosts)]
}

function inOption<T>(name: Name, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof PatternProblem) throw ldapProblem(`${name} ${shown(error.message)}`)
    throw error
  }
}

function readPattern(name: Name, pattern: string, placeholders: readonly Placeholder[]): FilterPattern {
  return inOption(name, () => compileFilter(pattern, placeholders))
}

async function readTls(
  cacert: string | undefined,
  settings: ClientSettings,
  basePath: string,
): Promise<LdapOptions['tls']> {
  const { caFile, minVersion } = settings
  if (cacert !== undefined && caFile !== undefined && cacert !== caFile) {
    throw ldapProblem('cacert and client_options 24578 are different files; remove client_options 24578')
  }
  const [name, path] = cacert === undefined ? ['client_options 24578', caFile] : ['cacert', cacert]
  const ca = path === undefined ? undefined : await readCertificates(name, resolve(basePath, path))
  const { isVerified } = settings
  if (isVerified === false && ca !== undefined) {
    throw ldapProblem('client_options 24582 disables the certificate check that cacert is for; remove one of them')
  }
  return { ca, isVerified: isVerified ?? ca !== undefined, minVersion }
}

async function readCertificates(name: string, path: string): Promise<string> {
  const file = await readBoundedFile(path, MAX_CACERT_BYTES)
  if ('problem' in file) throw ldapProblem(`${name} ${shown(path)} ${file.problem}`)
  const text = file.bytes.toString('utf8')
  try {
    void new X509Certificate(text)
  } catch {
    throw ldapProblem(`${name} ${shown(path)} contains no certificate in PEM format`)
  }
  return text
}

function readChasing(given: Arguments, { referrals }: ClientSettings): boolean {
  const isChosen = given.value('chase_referrals') !== undefined
  const chase = given.flag('chase_referrals', false)
  if (isChosen && referrals !== undefined && referrals !== chase) {
    throw ldapProblem('chase_referrals and client_options 8 contradict each other; remove client_options 8')
  }
  return isChosen ? chase : (referrals ?? false)
}

function readCache(given: Arguments): LdapOptions['cache'] {
  const isKept = given.flag('cache_user_groups_response', true)
  const range = { min: 0, max: MAX_TTL_SECONDS }
  const short = given.number('cache_user_groups_ttl', range)
  const long = given.number('cache_user_groups_cache_ttl', range)
  if (short !== undefined && long !== undefined && short !== long) {
    throw ldapProblem('cache_user_groups_ttl and cache_user_groups_cache_ttl are the same option; set only one')
  }
  const ttlSeconds = short ?? long ?? 120
  const sizes = { min: 1, max: MAX_CACHED_USERS, isWhole: true }
  const maxUsers = given.number('cache_user_groups_cache_max_size', sizes) ?? 100
  return isKept && ttlSeconds > 0 ? { ttlSeconds, maxUsers } : undefined
}
