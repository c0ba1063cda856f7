/**
 * Loads the configuration from defaults, files, environment and flags; later sources override earlier ones (contract 10, 10.1).
 *
 * A configuration with any error is rejected as a whole, and all errors are reported at once.
 */
import { closeSync, constants, existsSync, fstatSync, openSync, readSync } from 'node:fs'
import { SocketAddress, isIP } from 'node:net'
import { resolve } from 'node:path'
import { calledAsStackstorm } from '../core/compat/index.ts'
import { closestWords, parseIniBytes, shown, type IniFile } from '../lib/text/index.ts'
import { isLoopback } from '../lib/network/index.ts'
import { secretMask } from '../lib/log/index.ts'
import { codeOf, hasCode } from '../lib/process/index.ts'
import {
  describeValues,
  flagName,
  optionEntries,
  refusedUnlessOff,
  renamedOptions,
  unusedOptions,
  type Config,
  type OptionEntry,
  type ReadContext,
} from './options.ts'
export type { Config } from './options.ts'

/** The errors of the configuration. The error of an option starts with `section.option:`. */
export class ConfigProblems extends Error {
  readonly problems: readonly string[]
  constructor(problems: readonly string[]) {
    super(['The configuration is invalid:', ...problems.map((problem) => `  ${problem}`)].join('\n'))
    this.name = 'ConfigProblems'
    this.problems = problems
  }
}

export interface ConfigRequest {
  /**
   * Files in the order they are read; a later one overrides. Each must exist. Undefined looks for `SVC_CONFIG_FILE`,
   * `./svc.conf`, `/etc/svc/svc.conf`, with `compat.stackstorm` also `/etc/st2/st2.conf`, and takes the first; an empty
   * list reads none.
   */
  files?: readonly string[] | undefined
  env: Readonly<Record<string, string | undefined>>
  /** Values of flags by `section.option`; `collectFlags` makes this from the command line. */
  flags?: Readonly<Record<string, string>> | undefined
  cwd: string
  /** Path of the system-wide file. */
  systemFile?: string
  /** Path of StackStorm's, which is read if there is no other and `compat.stackstorm` is on. */
  stackstormFile?: string
}

export interface LoadedConfig {
  config: Config
  /** The source of each value, by `section.option`: `default`, `svc.conf:12`, `SVC_API__PORT`, `--api-port`. */
  sources: Readonly<Record<string, string>>
  /** The files that were read. */
  files: readonly string[]
  /** Logged at WARNING: unknown options and unsafe settings. */
  warnings: string[]
  /** The warnings about unsafe settings. */
  risks: readonly string[]
  /** Logged at INFO: known options that this release ignores, in one line. */
  notes: string[]
}

interface GivenValue {
  text: string
  source: string
}

const MAX_FILE_BYTES = 1_048_576
const MAX_WARNINGS = 50
/** StackStorm has 159 options. */
const MAX_EXPECTED = 200
/** Between two looks whether the writer of a pipe has written. */
const PIPE_PAUSE_MS = 10

export function loadConfig(request: ConfigRequest): LoadedConfig {
  const problems: string[] = []
  const unknown = new UnknownNames()
  const given = new Map<string, GivenValue[]>()
  const givenByOldName = new Map<string, GivenValue[]>()
  const give = (section: string, name: string, value: GivenValue): void => {
    const key = `${section}.${name}`
    const present = Object.hasOwn(renamedOptions, key) ? renamedOptions[key] : undefined
    if (entriesByKey.has(key)) add(given, key, value)
    else if (present !== undefined) add(givenByOldName, present, value)
    else unknown.add(section, name, value, problems)
  }

  const files = chooseFiles(request)
  const inis = files.map((file) => readConfigFile(file, request.cwd, problems))
  const isCompatible = acceptsStackstorm(request, inis)
  if (request.env[calledAsStackstorm] !== undefined) {
    give('compat', 'stackstorm', { text: 'True', source: 'the name of the program' })
  }
  unknown.areExpected = isCompatible
  for (const { label, sections } of inis) {
    for (const [section, values] of sections) {
      for (const [name, { text, line }] of values) {
        const value = isCompatible ? withoutComment(text) : text
        // StackStorm's word for an option that is not set.
        if (isCompatible && value === 'None') continue
        give(section, name, { text: value, source: `${label}:${line}` })
      }
    }
  }
  for (const [name, text] of Object.entries(request.env)) {
    const match = /^SVC_([A-Z0-9]+(?:_[A-Z0-9]+)*)__([A-Z0-9_]+)$/.exec(name)
    if (match === null || text === undefined) continue
    give((match[1] ?? '').toLowerCase(), (match[2] ?? '').toLowerCase(), { text: text.trim(), source: name })
  }
  for (const [key, text] of Object.entries(request.flags ?? {})) {
    const entry = entriesByKey.get(key)
    if (entry === undefined) problems.push(`${shown(key)}: unknown option`)
    else give(entry.section, entry.name, { text: text.trim(), source: flagName(entry) })
  }

  const context: ReadContext = { cwd: request.cwd, basePath: request.cwd }
  const config: Record<string, Record<string, unknown>> = {}
  const sources: Record<string, string> = {}
  const invalid = new Set<string>()
  // system.base_path comes first in the table, so that paths relative to it can be read after it.
  for (const entry of optionEntries) {
    const values = [...(givenByOldName.get(entry.key) ?? []), ...(given.get(entry.key) ?? [])]
    const value = readOption(entry, values, context, sources, (problem) => {
      problems.push(problem)
      invalid.add(entry.key)
    })
    const section = (config[entry.section] ??= {})
    section[entry.name] = value
    if (entry.key === 'system.base_path' && typeof value === 'string') context.basePath = value
  }

  // Each value was parsed by its own row, which the type is derived from.
  const complete = config as Config
  if (complete.system.debug) config['log'] = { ...complete.log, level: 'DEBUG' }
  checkCombinations(complete, invalid, problems)
  // A misspelt option is often the cause of the other problems.
  if (problems.length > 0) throw new ConfigProblems([...problems, ...unknown.warnings()])
  const risks = riskySettings(complete)
  return {
    config: deepFreeze(complete),
    sources: Object.freeze(sources),
    files,
    warnings: [...unknown.warnings(), ...risks],
    risks,
    notes: unknown.notes(),
  }
}

function add(values: Map<string, GivenValue[]>, key: string, value: GivenValue): void {
  values.set(key, [...(values.get(key) ?? []), value])
}

const entriesByKey: ReadonlyMap<string, OptionEntry> = new Map(optionEntries.map((entry) => [entry.key, entry]))

function readOption(
  entry: OptionEntry,
  given: readonly GivenValue[],
  context: ReadContext,
  sources: Record<string, string>,
  report: (problem: string) => void,
): unknown {
  const { option, key } = entry
  let value: unknown
  for (const { text, source } of [{ text: option.defaultText, source: 'default' }, ...given]) {
    const reading = option.read(text, context)
    if ('value' in reading) {
      value = reading.value
      sources[key] = source
    } else {
      const instead = option.secret ? '' : text === '' ? ', not empty' : `, not "${shown(withoutPasswords(text))}"`
      report(`${key}: ${reading.problem}${instead}${hint(text)} (${source})`)
    }
  }
  return value
}

/** Masks credentials in URLs: `https://user:password@host`, even if the password is not escaped. */
function withoutPasswords(text: string): string {
  return text.replace(/\/\/.*@/g, `//${secretMask}@`)
}

function hint(text: string): string {
  if (text.includes('\n')) return '; an indented line continues the value of the previous line'
  if (/^(["']).*\1$/.test(text)) return '; write the value without quotes'
  if (/\s[#;]/.test(text)) return '; write the comment on a separate line'
  return ''
}

const DEFAULT_SYSTEM_FILE = '/etc/svc/svc.conf'
const STACKSTORM_FILE = '/etc/st2/st2.conf'

/** The option decides how files are read, so it is looked for before they are. */
function acceptsStackstorm({ env, flags }: ConfigRequest, inis: readonly ReadIni[]): boolean {
  const inFiles = inis.map(({ sections }) => sections.get('compat')?.get('stackstorm')?.text)
  const given =
    flags?.['compat.stackstorm'] ??
    env['SVC_COMPAT__STACKSTORM'] ??
    inFiles.findLast(Boolean) ??
    env[calledAsStackstorm]
  return given !== undefined && /^(?:true|1|yes|on)$/i.test(given.trim())
}

/** `127.0.0.1 # of the listener`: a comment begins with a blank, the sign, and a blank. */
function withoutComment(text: string): string {
  return /^[#;](?:\s|$)/.test(text) ? '' : text.replace(/\s+[#;](?:\s[^\n]*)?$/, '')
}

/** The files that `loadConfig` reads. */
export function chooseFiles(request: ConfigRequest): readonly string[] {
  if (request.files !== undefined) return request.files
  const named = request.env['SVC_CONFIG_FILE']
  if (named !== undefined && named !== '') return [named]
  const found = ['svc.conf', request.systemFile ?? DEFAULT_SYSTEM_FILE].find((file) =>
    existsSync(resolve(request.cwd, file)),
  )
  if (found !== undefined) return [found]
  // Not without being asked: somebody may have both on one machine.
  const theirs = request.stackstormFile ?? STACKSTORM_FILE
  return acceptsStackstorm(request, []) && existsSync(resolve(request.cwd, theirs)) ? [theirs] : []
}

interface ReadIni {
  /** Of the file, for messages. */
  label: string
  sections: IniFile['sections']
}

function readConfigFile(file: string, cwd: string, problems: string[]): ReadIni {
  const label = shown(file)
  const bytes = readBounded(resolve(cwd, file))
  if (typeof bytes === 'string') {
    problems.push(`configuration file ${label} ${bytes}`)
    return { label, sections: new Map() }
  }
  const ini = parseIniBytes(bytes)
  for (const { line, message } of ini.problems) problems.push(`${label}:${line}: ${message}`)
  return { label, sections: ini.sections }
}

/** The bytes of a file or pipe, or the problem as text that follows its name. */
export function readBounded(path: string): Buffer | string {
  let descriptor: number | undefined
  try {
    // Opening a pipe to which nobody writes would wait for ever.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const stats = fstatSync(descriptor)
    if (stats.isDirectory()) return 'is a directory'
    const chunks: Buffer[] = []
    for (let total = 0; ;) {
      const chunk = Buffer.alloc(65_536)
      const count = readPatiently(descriptor, chunk)
      if (count === 0 && total === 0 && stats.isFIFO()) return 'is a pipe without data'
      if (count === 0) return Buffer.concat(chunks)
      total += count
      if (total > MAX_FILE_BYTES) return `is larger than ${MAX_FILE_BYTES} bytes`
      chunks.push(chunk.subarray(0, count))
    }
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return 'does not exist'
    if (hasCode(error, 'EACCES', 'EPERM')) return 'cannot be read: permission denied'
    return `cannot be read (${codeOf(error) ?? String(error)})`
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

/** As `readSync`, but waits for the writer of a pipe. */
function readPatiently(descriptor: number, chunk: Buffer): number {
  for (;;) {
    try {
      return readSync(descriptor, chunk)
    } catch (error) {
      if (!hasCode(error, 'EAGAIN')) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PIPE_PAUSE_MS)
    }
  }
}

/** Names that are not in the table: ignored ones share one note, unknown ones get a warning each. */
class UnknownNames {
  #unused = new Set<string>()
  #warnings: string[] = []
  #unlisted = 0
  /** The file is made for StackStorm, so that options without effect are no mistakes: they share the note. */
  areExpected = false

  add(section: string, name: string, value: GivenValue, problems: string[]): void {
    const key = `${section}.${name}`
    const refusal = Object.hasOwn(refusedUnlessOff, key) ? refusedUnlessOff[key] : undefined
    if (refusal !== undefined && !refusal.accepted(value.text)) {
      problems.push(`${key}: ${refusal.why} (${value.source})`)
    } else if (isUnused(section, name) || (this.areExpected && !key.startsWith('compat.'))) {
      this.#unused.add(key)
    } else if (this.#warnings.length < MAX_WARNINGS) {
      const meant = suggestion(section, name)
      const advice = meant === undefined ? 'see svc.conf.example for all options' : `did you mean ${meant}?`
      this.#warnings.push(`${shown(key)}: unknown option, ignored (${value.source}); ${advice}`)
    } else {
      this.#unlisted += 1
    }
  }

  warnings(): string[] {
    return this.#unlisted === 0 ? this.#warnings : [...this.#warnings, `${this.#unlisted} more unknown options ignored`]
  }

  notes(): string[] {
    if (this.#unused.size === 0) return []
    const names = [...this.#unused]
    const most = this.areExpected ? MAX_EXPECTED : MAX_WARNINGS
    const more = names.length > most ? ` and ${names.length - most} more` : ''
    const what = this.areExpected ? 'Options without effect' : 'Ignored options of other releases'
    return [`${what}: ${names.slice(0, most).map(shown).join(', ')}${more}`]
  }
}

function isUnused(section: string, name: string): boolean {
  const names = Object.hasOwn(unusedOptions, section) ? unusedOptions[section] : undefined
  if (names === '*') return true
  // Each section of a process may name a logging configuration (contract 10, 10.2).
  return names?.includes(name) === true || (name === 'logging' && entriesBySection.has(section))
}

const entriesBySection: ReadonlyMap<string, readonly OptionEntry[]> = Map.groupBy(
  optionEntries,
  (entry) => entry.section,
)

function suggestion(section: string, name: string): string | undefined {
  const siblings = entriesBySection.get(section)
  if (siblings !== undefined) {
    const sibling = closestWord(
      name,
      siblings.map((entry) => entry.name),
    )
    if (sibling !== undefined) return `${section}.${sibling}`
    const elsewhere = optionEntries.find((entry) => entry.name === name)
    if (elsewhere !== undefined) return elsewhere.key
  }
  return closestWord(`${section.toLowerCase()}.${name}`, entriesByKey.keys())
}

function closestWord(word: string, candidates: Iterable<string>): string | undefined {
  return closestWords(word, candidates, Math.max(2, Math.floor(word.length / 3)))[0]
}

const listenerSections = ['auth', 'api', 'stream'] as const

/** Checks across options; a check with an invalid option is skipped, because its result would be wrong. */
function checkCombinations(config: Config, invalid: ReadonlySet<string>, problems: string[]): void {
  const isValid = (...keys: string[]): boolean => !keys.some((key) => invalid.has(key))
  if (isValid('auth.enable', 'system.allow_open_network') && !config.auth.enable && !config.system.allow_open_network) {
    for (const section of listenerSections) {
      const { host } = config[section]
      if (isLoopback(host) || !isValid(`${section}.host`)) continue
      problems.push(
        `${section}.host: ${host} is reachable from other machines while authentication is off; ` +
          'set auth.enable = True, or system.allow_open_network = True if you trust the network',
      )
    }
  }
  if (config.rbac.enable && isValid('rbac.enable', 'auth.enable', 'rbac.backend')) {
    if (!config.auth.enable) {
      problems.push('rbac.enable: access control needs authentication; also set auth.enable = True')
    }
    if (config.rbac.backend !== 'default') {
      problems.push('rbac.backend: must be default when rbac.enable is on')
    }
  }
  if (config.auth.enable && config.auth.mode === 'proxy' && isValid('auth.enable', 'auth.mode')) {
    const { trusted_proxies: trusted } = config.auth
    if (isValid('auth.trusted_proxies')) {
      const everybody = trusted.find((network) => /\/0+$/.test(network))
      if (trusted.length === 0) {
        problems.push('auth.trusted_proxies: must not be empty with auth.mode = proxy, because nobody could log in')
      } else if (everybody !== undefined) {
        problems.push(
          `auth.trusted_proxies: with auth.mode = proxy, ${everybody} lets any client log in as any user; set the address of the web server in front`,
        )
      }
    }
    if (config.rbac.enable && config.rbac.sync_remote_groups && isValid('rbac.enable', 'rbac.sync_remote_groups')) {
      problems.push('rbac.sync_remote_groups: with auth.mode = proxy no backend provides groups; set it to False')
    }
  }
  for (const section of listenerSections) {
    if (!config[section].use_ssl || !isValid(`${section}.use_ssl`)) continue
    for (const name of ['cert', 'key'] as const) {
      if (config[section][name] !== '' || !isValid(`${section}.${name}`)) continue
      problems.push(`${section}.${name}: ${section}.use_ssl needs it; set the path of a PEM file`)
    }
  }
  if (config.api.auth_cookie_same_site === 'none' && !config.api.auth_cookie_secure) {
    if (isValid('api.auth_cookie_same_site', 'api.auth_cookie_secure')) {
      problems.push(
        'api.auth_cookie_same_site: browsers refuse none without Secure; set api.auth_cookie_secure = True, or use lax',
      )
    }
  }
  for (const [index, section] of listenerSections.entries()) {
    const { host, port } = config[section]
    for (const other of listenerSections.slice(0, index)) {
      if (port === 0 || port !== config[other].port || !hostsOverlap(host, config[other].host)) continue
      if (!isValid(`${section}.host`, `${section}.port`, `${other}.host`, `${other}.port`)) continue
      problems.push(`${section}.port: ${other}.port uses ${port} on the same address; set another port`)
    }
  }
}

function hostsOverlap(a: string, b: string): boolean {
  const [first, second] = [canonicalHost(a), canonicalHost(b)]
  if (first === second || first === '::' || second === '::') return true
  if (first === 'localhost') return isLoopback(second) || second === '0.0.0.0'
  if (second === 'localhost') return isLoopback(first) || first === '0.0.0.0'
  return (first === '0.0.0.0' && isIP(second) !== 6) || (second === '0.0.0.0' && isIP(first) !== 6)
}

function canonicalHost(host: string): string {
  return isIP(host) === 6 ? new SocketAddress({ address: host, family: 'ipv6' }).address : host.toLowerCase()
}

/** Warnings about unsafe settings at each start (contract 10, 10.8). */
function riskySettings(config: Config): string[] {
  const warnings: string[] = []
  const open = listenerSections.filter((section) => !isLoopback(config[section].host))
  if (!config.auth.enable && open.length > 0) {
    const names = open.map((section) => `${section}.host`).join(', ')
    warnings.push(
      `system.allow_open_network: authentication is off and other machines can reach ${names}; anyone there can run commands on this machine`,
    )
  } else if (!config.auth.enable) {
    warnings.push('auth.enable: authentication is off; any user of this machine can run commands through the server')
  }
  if (config.auth.enable && config.auth.mode === 'proxy') {
    warnings.push(
      `auth.mode: any process that connects from ${config.auth.trusted_proxies.join(', ')} (auth.trusted_proxies) can log in as any user`,
    )
  }
  for (const section of listenerSections) {
    const { use_ssl, cert, key } = config[section]
    if (use_ssl || (cert === '' && key === '')) continue
    warnings.push(
      `${section}.use_ssl: is off, so ${section}.cert and ${section}.key are ignored and traffic is not encrypted`,
    )
  }
  if (config.system.debug) warnings.push('system.debug: debug mode is on; do not use it in production')
  return warnings
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const inner of Object.values(value)) deepFreeze(inner)
  }
  return value
}

/** The whole configuration for logs and status, with secrets masked. */
export function describeConfig(config: Config): Record<string, Record<string, unknown>> {
  const sections: Record<string, Readonly<Record<string, unknown>>> = config
  const described: Record<string, Record<string, unknown>> = {}
  for (const { section, name, option } of optionEntries) {
    const values = (described[section] ??= {})
    values[name] = option.secret ? '********' : sections[section]?.[name]
  }
  return described
}

export interface ConfigFlag {
  /** `--api-port` */
  flag: string
  /** `section.option` */
  key: string
  description: string
}

/** One flag for each option, `--<section>-<option> <value>` with dashes for underscores: `--api-port 8101`. */
export const configFlags: readonly ConfigFlag[] = optionEntries.map((entry) => ({
  flag: flagName(entry),
  key: entry.key,
  description: `${entry.option.about} (${describeValues(entry.option)})`,
}))

/**
 * The `flags` of `loadConfig` from parsed command-line values keyed as commander does (`apiPort`). A flag without a
 * value means True; other names are left alone.
 */
export function collectFlags(values: Readonly<Record<string, unknown>>): Record<string, string> {
  const flags: Record<string, string> = {}
  for (const { flag, key } of configFlags) {
    const value = values[flag.slice(2).replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())]
    if (typeof value === 'string') flags[key] = value
    else if (value === true) flags[key] = 'True'
  }
  return flags
}
