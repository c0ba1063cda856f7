/**
 * Reads the OpenSSH client configuration (`ssh_runner.use_ssh_config`), as ssh_config(5) says: the first value of a
 * directive counts, `IdentityFile` alone adds up.
 */
import { readdir, stat } from 'node:fs/promises'
import { homedir, hostname, userInfo } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { readBoundedFile } from '../../lib/files/index.ts'
import { matchesPatternList } from './pattern-list.ts'
import { expandHome } from './private-key.ts'

/** What the configuration says about one host; tokens such as `%h` are replaced. */
export interface HostSettings {
  hostName?: string
  user?: string
  port?: number
  /** Name of the host in the file of known hosts. */
  hostKeyAlias?: string
  /** Paths, in the order in which their keys are tried. */
  identityFiles: string[]
  /** `[user@]host[:port]` of each jump host, in the order of the connection. */
  proxyJump?: string[]
  /** For `/bin/sh`. */
  proxyCommand?: string
  /** Directives for this host that svc does not follow, for messages. */
  notFollowed: string[]
}

/** What the action says; it overrides the configuration. */
export interface GivenSettings {
  user: string | undefined
  port: number | undefined
  /** User without `User` in the configuration. */
  defaultUser: string
}

export interface SshConfig {
  /** @throws Error whose message is a sentence for the user */
  settingsOf(host: string, given: GivenSettings): HostSettings
}

/** Of all files together. */
const MAX_BYTES = 1024 * 1024
const MAX_FILES = 100
const MAX_DEPTH = 16
const MAX_IDENTITY_FILES = 10
const USUAL_PORT = 22
/** What a shell and a path take as it is; an action may choose the user, and some rights to do so are small. */
const HARMLESS = /^(?!-)[\p{L}\p{N}_.:@+%-]+$/u
const PLACE = 'in the OpenSSH configuration'

/** They concern the connection, and svc does not follow them; those with a value have no effect with this value. */
const NOT_FOLLOWED: Readonly<Record<string, { name: string; unless?: string }>> = Object.fromEntries(
  [
    'AddressFamily any',
    'BindAddress',
    'BindInterface',
    'CanonicalizeHostname no',
    'CertificateFile none',
    'Ciphers',
    'GSSAPIAuthentication no',
    'HostbasedAuthentication no',
    'HostKeyAlgorithms',
    'IdentityAgent none',
    'KexAlgorithms',
    'KnownHostsCommand none',
    'MACs',
    'PasswordAuthentication yes',
    'PKCS11Provider none',
    'PreferredAuthentications',
    'ProxyUseFdpass no',
    'PubkeyAuthentication yes',
    'SecurityKeyProvider none',
    'StrictHostKeyChecking',
    'UserKnownHostsFile',
  ].map((entry) => {
    const [name = '', unless] = entry.split(' ')
    return [name.toLowerCase(), unless === undefined ? { name } : { name, unless }]
  }),
)

/** `Host` and `Match` begin a block; the lines of an included file belong to the block of the `Include`. */
type Line = Directive | { files: Line[][] }

interface Directive {
  keyword: string
  words: string[]
  /** The text after the keyword. */
  rest: string
  /** Nobody but the operator can write its file. */
  isTrusted: boolean
}

/** A missing file is an empty configuration. @throws Error whose message is a sentence for the user */
export async function readSshConfig(path: string): Promise<SshConfig> {
  const main = expandHome(path)
  let bytesLeft = MAX_BYTES
  let filesLeft = MAX_FILES

  async function readFile(file: string, what: string, depth: number): Promise<Line[]> {
    if (depth > MAX_DEPTH || filesLeft-- === 0) {
      throw new Error(`Include ${PLACE} leads to more than ${MAX_FILES} files, or ${MAX_DEPTH} levels deep.`)
    }
    const found = await readBoundedFile(file, bytesLeft)
    if ('problem' in found) {
      if (found.isMissing) return []
      throw new Error(`${what} ${found.problem}.`)
    }
    bytesLeft -= found.bytes.length
    const text = found.bytes.toString('utf8')
    if (text.includes('\0')) throw new Error(`${what} is not an OpenSSH client configuration.`)
    const isTrusted = await belongsToOperator(file)
    const lines: Line[] = []
    for (const one of text.split(/\r?\n/)) {
      const [, keyword = '', rest = ''] = /^\s*([A-Za-z0-9]+)(?:\s*=\s*|\s+)(.*?)\s*$/.exec(one) ?? []
      if (keyword === '') continue
      const words = splitWords(rest)
      if (keyword.toLowerCase() !== 'include') {
        lines.push({ keyword: keyword.toLowerCase(), words, rest, isTrusted })
        continue
      }
      const files: Line[][] = []
      for (const word of words) {
        // As OpenSSH: beside the user's or the system's file.
        const pattern = word.startsWith('~/') ? expandHome(word) : resolve(dirname(main), word)
        for (const name of await matchingFiles(pattern)) {
          files.push(await readFile(name, `A file that Include ${PLACE} names`, depth + 1))
        }
      }
      lines.push({ files })
    }
    return lines
  }

  const lines = await readFile(main, 'The file of ssh_runner.ssh_config_file_path', 0)
  return { settingsOf: (host, given) => settingsOf(lines, host, given) }
}

function settingsOf(lines: readonly Line[], host: string, given: GivenSettings): HostSettings {
  const values = new Map<string, Directive>()
  const identityFiles: string[] = []
  const notFollowed = new Set<string>()
  const wordOf = (keyword: string): string | undefined => values.get(keyword)?.words[0]
  const hostName = (): string => expand(wordOf('hostname') ?? '%h', { '%%': '%', '%h': host }, 'HostName')
  const user = (): string => given.user ?? wordOf('user') ?? given.defaultUser

  /** Whether all criteria of a `Match` hold. */
  function matches(words: readonly string[]): boolean {
    const left = words.flatMap((word) => (/^!?[a-z]+=/i.test(word) ? splitOnce(word) : [word]))
    while (left.length > 0) {
      const word = left.shift() ?? ''
      const isNegated = word.startsWith('!')
      const criterion = word.slice(isNegated ? 1 : 0).toLowerCase()
      if (criterion === 'all') {
        if (isNegated) return false
        continue
      }
      if (criterion === 'canonical') {
        // svc never makes a name canonical.
        if (!isNegated) return false
        continue
      }
      const subjects: Record<string, () => string> = {
        host: hostName,
        originalhost: () => host,
        user,
        localuser: () => userInfo().username,
      }
      const subject = subjects[criterion]
      if (subject === undefined) {
        notFollowed.add(`Match ${criterion}`)
        return false
      }
      const isMatch = matchesPatternList((left.shift() ?? '').toLowerCase().split(','), subject().toLowerCase())
      if (isMatch === isNegated) return false
    }
    return true
  }

  function walk(block: readonly Line[], isOuterActive: boolean): void {
    let isActive = isOuterActive
    for (const line of block) {
      if ('files' in line) {
        for (const file of line.files) walk(file, isActive)
        continue
      }
      const { keyword, words } = line
      if (keyword === 'host') {
        const patterns = words.map((word) => word.toLowerCase())
        isActive = isOuterActive && matchesPatternList(patterns, host.toLowerCase())
      } else if (keyword === 'match') {
        isActive = isOuterActive && matches(words)
      } else if (isActive && words.length > 0) {
        if (keyword === 'identityfile') identityFiles.push(words[0] ?? '')
        // Whichever of the two comes first.
        else if (keyword === 'proxyjump' || keyword === 'proxycommand') {
          if (!values.has('proxyjump') && !values.has('proxycommand')) values.set(keyword, line)
        } else if (!values.has(keyword)) values.set(keyword, line)
      }
    }
  }
  walk(lines, true)

  const settings: HostSettings = { identityFiles: [], notFollowed: [] }
  if (values.has('hostname')) settings.hostName = hostName()
  const configuredUser = wordOf('user')
  if (configuredUser !== undefined) settings.user = configuredUser
  const port = Number(wordOf('port'))
  if (Number.isInteger(port) && port > 0 && port <= 65_535) settings.port = port
  const alias = wordOf('hostkeyalias')
  if (alias !== undefined) settings.hostKeyAlias = alias

  const tokens: Record<string, string> = {
    '%%': '%',
    '%d': homedir(),
    '%h': hostName(),
    '%i': String(process.getuid?.() ?? ''),
    '%k': alias ?? host,
    '%L': hostname().split('.')[0] ?? '',
    '%l': hostname(),
    '%n': host,
    '%p': String(given.port ?? settings.port ?? USUAL_PORT),
    '%r': user(),
    '%u': userInfo().username,
  }
  if (identityFiles.every((file) => file.toLowerCase() !== 'none')) {
    const files = identityFiles.map((file) => expandHome(expand(withVariables(file), tokens, 'IdentityFile')))
    settings.identityFiles = [...new Set(files)].slice(0, MAX_IDENTITY_FILES)
    if (files.length > MAX_IDENTITY_FILES) notFollowed.add(`IdentityFile after the first ${MAX_IDENTITY_FILES}`)
  }
  const jump = values.get('proxyjump')?.rest.replaceAll('"', '')
  if (jump !== undefined && jump.toLowerCase() !== 'none') {
    settings.proxyJump = jump.split(',').map((one) => expand(one.trim().replace(/^ssh:\/\//, ''), tokens, 'ProxyJump'))
  }
  const command = values.get('proxycommand')
  if (command !== undefined && command.rest.toLowerCase() !== 'none') {
    if (!command.isTrusted) {
      throw new Error(
        `ProxyCommand ${PLACE} is not run: its file must belong to root or to the account of the server, and others ` +
          'must not be able to write it (chmod go-w).',
      )
    }
    settings.proxyCommand = expand(command.rest, tokens, 'ProxyCommand')
  }
  for (const [keyword, { words }] of values) {
    const found = NOT_FOLLOWED[keyword]
    if (found !== undefined && words[0]?.toLowerCase() !== found.unless) notFollowed.add(found.name)
  }
  settings.notFollowed = [...notFollowed]
  return settings
}

/** Replaces tokens. @throws Error for an unknown token, and for a value that a shell or a path would misunderstand */
function expand(text: string, tokens: Readonly<Record<string, string>>, directive: string): string {
  return text.replaceAll(/%./g, (token) => {
    const value = tokens[token]
    if (value === undefined) throw new Error(`${directive} ${PLACE} has the token ${token}, which svc does not know.`)
    const isChosen = token === '%r' || token === '%h' || token === '%n'
    if (isChosen && directive !== 'HostName' && !HARMLESS.test(value)) {
      const what = token === '%r' ? 'user' : 'host'
      throw new Error(`${directive} ${PLACE} uses the name of the ${what} (${token}), which has unusual characters.`)
    }
    return value
  })
}

/** Replaces `${NAME}` by the variable of the server's environment. */
function withVariables(text: string): string {
  return text.replaceAll(/\$\{(\w+)\}/g, (_, name: string) => {
    const value = process.env[name]
    if (value === undefined) throw new Error(`IdentityFile ${PLACE} uses the variable ${name}, which is not set.`)
    return value
  })
}

/** Words with their quotes removed, up to a comment. */
function splitWords(text: string): string[] {
  const words: string[] = []
  const next = /\s*(?:(#.*)|((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\\.|[^\s"'\\])+)|(.))/gsu
  for (const [, comment, word, stray] of text.matchAll(next)) {
    if (comment !== undefined) break
    const raw = word ?? stray ?? ''
    words.push(
      raw.replaceAll(
        /\\(["'\\ ])|"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'/g,
        (_, plain?: string, double?: string, single?: string) =>
          plain ?? (double ?? single ?? '').replaceAll(/\\(["'\\])/g, '$1'),
      ),
    )
  }
  return words
}

function splitOnce(word: string): string[] {
  const at = word.indexOf('=')
  return [word.slice(0, at), word.slice(at + 1)]
}

/** The files that a pattern names, sorted; `*` and `?` stand for characters of one name. */
async function matchingFiles(pattern: string): Promise<string[]> {
  let found = ['/']
  for (const part of pattern.split('/').filter(Boolean)) {
    if (!/[*?]/.test(part)) {
      found = found.map((folder) => join(folder, part))
      continue
    }
    const next: string[] = []
    for (const folder of found) {
      const names = await readdir(folder).catch(() => [])
      for (const name of names.toSorted((a, b) => (a < b ? -1 : 1))) {
        const isHidden = name.startsWith('.') && !part.startsWith('.')
        if (!isHidden && matchesPatternList([part], name)) next.push(join(folder, name))
      }
    }
    found = next
  }
  return found
}

/** As OpenSSH asks of its files: nobody else can put a command into it. */
async function belongsToOperator(file: string): Promise<boolean> {
  try {
    const { uid, mode } = await stat(file)
    return (uid === 0 || uid === process.geteuid?.()) && (mode & 0o022) === 0
  } catch {
    return false
  }
}
