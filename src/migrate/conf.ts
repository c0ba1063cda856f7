/** What becomes of the options of `st2.conf`: taken over, without effect, or for the operator to decide. */
import { optionEntries, unusedOptions, type OptionEntry } from '../config/index.ts'
import { readBoundedFile } from '../lib/files/index.ts'
import { secretMask } from '../lib/log/index.ts'
import { parseIniBytes, shown } from '../lib/text/index.ts'

const MAX_FILE_BYTES = 1_048_576

/**
 * `taken`: in the proposed file as it is. `default`: svc does the same without it. `ignored`: it concerns a part that svc
 * does not have. `decide`: it needs a value of the operator.
 */
export type OptionOutcome = 'taken' | 'default' | 'ignored' | 'decide'

export interface ConfOption {
  /** `section.option` */
  option: string
  /** Masked where it can be a secret. */
  value: string
  outcome: OptionOutcome
  /** Why, and what to do; empty for what is taken. */
  why: string
  /** As it would be written; undefined unless `taken`. Not for display. */
  written: string | undefined
}

export interface ConfReading {
  options: ConfOption[]
  problems: string[]
}

const entries: ReadonlyMap<string, OptionEntry> = new Map(optionEntries.map((entry) => [entry.key, entry]))

/** Options whose old value must not be taken over as it is, although svc has one of that name. */
const decisions: Readonly<Record<string, string>> = {
  'system.base_path': 'svc keeps its data in a folder of its own: the import copies packs and configurations there',
  'keyvalue.encryption_key_path':
    'this file has another format: the import decrypts keys with it, and svc encrypts them with a key file of its own',
  'content.system_packs_base_path': 'packs are copied to packs/ in the base path of svc',
  'content.packs_base_paths': 'name the folders here if their packs are to stay where they are',
  'auth.backend_kwargs':
    'take over what the backend needs; the import copies the password file to htpasswd in the base path',
}

/** Sections that concern parts of StackStorm which svc does not have. */
const partsWithout: Readonly<Record<string, string>> = {
  messaging: 'svc has no message broker',
  coordination: 'svc is one process and needs no coordination service',
  database: 'svc keeps its data in one file (database.path) and uses no MongoDB',
  mongo: 'svc keeps its data in one file (database.path) and uses no MongoDB',
  mistral: 'svc runs Orquesta workflows and action chains; Mistral is not supported',
  exporter: 'svc has no exporter',
  syslog: 'svc writes to files and to standard error; see log.file',
  results_tracker: 'svc follows executions itself',
  resultstracker: 'svc follows executions itself',
}

const secretName = /pass(?:word|phrase)?$|secret|kwargs$/i
const urlName = /(?:^|_)urls?$/i

/** URLs of parts that svc does not know may have credentials anywhere. */
function maskedValue(name: string, text: string, entry: OptionEntry | undefined): string {
  const isUrl = urlName.test(name)
  const isSecret = entry?.option.secret === true || secretName.test(name) || (isUrl && entry === undefined)
  if (isSecret && text !== '') return secretMask
  return shown(isUrl ? withoutCredentials(text) : text)
}

const withoutCredentials = (url: string): string =>
  url.replaceAll(/\/\/[^/\s]*@/g, `//${secretMask}@`).replaceAll(/([?&][^=&\s]*=)[^&\s]*/g, `$1${secretMask}`)

/** Reads `st2.conf` files; later ones override earlier ones. Never throws for what is in them. */
export async function readConf(files: readonly string[]): Promise<ConfReading> {
  const problems: string[] = []
  const found = new Map<string, string>()
  for (const path of files) {
    const file = await readBoundedFile(path, MAX_FILE_BYTES)
    if ('problem' in file) {
      problems.push(`${shown(path)} ${file.problem}`)
      continue
    }
    const ini = parseIniBytes(file.bytes)
    problems.push(...ini.problems.map(({ line, message }) => `${shown(path)}:${line}: ${message}`))
    for (const [section, values] of ini.sections) {
      for (const [name, { text }] of values) found.set(`${section}.${name}`, withoutComment(text))
    }
  }
  return { options: [...found].map(([option, text]) => judge(option, text)), problems }
}

/** The sample file of the incumbent has comments behind values, which its parser takes for part of them. */
function withoutComment(text: string): string {
  return text.replace(/\s+[#;].*$/s, '').trim()
}

function judge(option: string, text: string): ConfOption {
  const [section, name] = split(option)
  const entry = entries.get(option)
  const value = maskedValue(name, text, entry)
  const row = (outcome: OptionOutcome, why: string, written?: string): ConfOption => ({
    option,
    value,
    outcome,
    why,
    written,
  })
  if (text === '' || text === 'None') return row('default', 'it has no value')
  const decision = decisions[option]
  if (decision !== undefined) return row('decide', decision)
  const part = partsWithout[section]
  if (entry === undefined && part !== undefined) return row('ignored', part)
  if (name === 'debug' && section !== 'system') return row('ignored', 'see system.debug')
  if (name === 'logging') return row('ignored', 'svc has one log; see the options of the section log')
  if (entry === undefined) {
    const unused = unusedOptions[section]
    const isKnown = unused === '*' || unused?.includes(name) === true
    return row('ignored', isKnown ? 'svc does without it' : 'svc has no option of this name')
  }
  const reading = entry.option.read(text, { cwd: '/', basePath: '/' })
  if ('problem' in reading) return row('decide', `svc cannot use this value: it ${reading.problem}`)
  if (/\/opt\/stackstorm|\/etc\/st2|\/var\/log\/st2/.test(text)) {
    return row('decide', 'the path belongs to the old installation; move the file, and give its new path')
  }
  const standard = entry.option.read(entry.option.defaultText, { cwd: '/', basePath: '/' })
  if ('value' in standard && isSame(standard.value, reading.value)) return row('default', 'it is the default of svc')
  if (option === 'auth.backend' && !['flat_file', 'ldap', 'pam'].includes(text)) {
    return row('decide', 'svc has the backends flat_file, ldap and pam')
  }
  return row('taken', '', text)
}

function split(option: string): [string, string] {
  const at = option.indexOf('.')
  return [option.slice(0, at), option.slice(at + 1)]
}

function isSame(a: unknown, b: unknown): boolean {
  return (
    a === b || (Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, i) => item === b[i]))
  )
}

/** The text of a configuration file for svc: what is taken, and the rest as comments with the reason. */
export function proposeConf(options: readonly ConfOption[], hasOldNames: boolean): string {
  const sections = new Map<string, string[]>()
  const add = (section: string, ...lines: string[]): void => {
    sections.set(section, [...(sections.get(section) ?? []), ...lines])
  }
  if (hasOldNames) add('compat', '# Packs use names of StackStorm, such as core.st2.webhook.', 'stackstorm = True')
  for (const { option, value, outcome, why, written } of options) {
    const [section, name] = split(option)
    if (outcome === 'taken') add(section, `${name} = ${(written ?? '').replaceAll('\n', '\n  ')}`)
    else if (outcome === 'decide') add(section, `# Decide: ${why}`, `# ${name} = ${value}`)
    else if (outcome === 'ignored') add(section, `# No effect: ${name} = ${value}: ${why}`)
  }
  const head =
    '# Proposed by svc migrate from st2.conf. Secrets are taken over: keep this file to the account of the server.\n'
  return head + [...sections].map(([section, lines]) => `\n[${section}]\n${lines.join('\n')}\n`).join('')
}
