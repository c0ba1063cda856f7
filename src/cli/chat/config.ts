/** The configuration of `svc chat`: a file in the form of the client's own, without the connection to the server. */
import { absolutePath } from '../cli-process.ts'
import { readBoundedFileSync } from '../../lib/files/index.ts'
import { parseIniBytes } from '../../lib/text/index.ts'
import { CliFailure } from '../failures.ts'
import type { MatrixSettings } from './matrix.ts'
import type { MattermostSettings } from './mattermost.ts'
import type { SlackSettings } from './slack.ts'

export interface ChatConfig {
  /** What a message begins with that is a command. */
  prefix: string
  /** Announcements on this route are posted. */
  route: string
  /** Inquiries on this route are told in the channel; undefined: none are. */
  inquiries: { route: string; channel: string } | undefined
  /** Chat user → user of svc. */
  users: ReadonlyMap<string, string>
  /** User of svc for all others; undefined: they are refused. */
  defaultUser: string | undefined
  /** Service account that may get tokens for users; undefined: everything runs with the credential of the client. */
  account: { name: string; password: string } | undefined
  /** The chat system: `matrix`, `mattermost` or `slack`, whose settings follow. */
  system: string
  matrix: MatrixSettings | undefined
  mattermost: MattermostSettings | undefined
  slack: SlackSettings | undefined
  /** The file holds credentials, and others may read it. */
  isReadableByOthers: boolean
}

const MAX_FILE_BYTES = 1024 * 1024

const known: Readonly<Record<string, readonly string[]>> = {
  chat: ['prefix', 'route', 'users', 'inquiry_route', 'inquiry_channel', 'default_user', 'username', 'password'],
  matrix: ['url', 'token'],
  mattermost: ['url', 'token'],
  slack: ['token', 'app_token', 'signing_secret', 'listen', 'url'],
}

/** @param path relative to the working directory @throws CliFailure that names the line */
export function readChatConfig(path: string, env: NodeJS.ProcessEnv): ChatConfig {
  const read = readBoundedFileSync(absolutePath(path), MAX_FILE_BYTES)
  if ('problem' in read) throw new CliFailure(`${path} cannot be read: ${read.problem}. See docs/chat.md.`)
  const { sections, problems } = parseIniBytes(read.bytes)
  const [problem] = problems
  if (problem !== undefined) throw new CliFailure(`${path}, line ${problem.line}: ${problem.message}.`)
  for (const [section, values] of sections) {
    const names = known[section]
    if (names === undefined) {
      throw new CliFailure(
        `${path}: there is no section [${section}]; there are [chat], [matrix], [mattermost] and [slack].`,
      )
    }
    for (const [name, { line }] of values) {
      if (!names.includes(name)) {
        throw new CliFailure(`${path}, line ${line}: [${section}] has no ${name}; it has ${names.join(', ')}.`)
      }
    }
  }
  const valueOf = (section: string, name: string): string | undefined => {
    const given =
      env[`SVC_CHAT_${section.toUpperCase()}_${name.toUpperCase()}`] ?? sections.get(section)?.get(name)?.text
    return given === undefined || given === '' ? undefined : given
  }
  const need = (section: string, name: string): string => {
    const value = valueOf(section, name)
    if (value === undefined) throw new CliFailure(`${path}: [${section}] needs ${name}.`)
    return value
  }
  const channel = valueOf('chat', 'inquiry_channel')
  const account = valueOf('chat', 'username')
  const has = (section: string): boolean => sections.has(section) || valueOf(section, 'token') !== undefined
  const systems = ['matrix', 'mattermost', 'slack'].filter(has)
  const [system] = systems
  if (system === undefined || systems.length !== 1) {
    throw new CliFailure(
      systems.length === 0
        ? `${path}: name a chat system: [matrix] or [mattermost] with url and token, or [slack] with token and app_token.`
        : `${path}: one bot has one chat system; give [${systems.join('] and [')}] a file each.`,
    )
  }
  const urlOf = (section: string, url: string): string => {
    if (!/^https?:\/\/\S+$/.test(url)) {
      throw new CliFailure(`${path}: [${section}] url must begin with https:// or http://.`)
    }
    return url
  }
  const accountOf = (section: string): { url: string; token: string } => ({
    url: urlOf(section, need(section, 'url')),
    token: need(section, 'token'),
  })
  const slackSettings = (): SlackSettings => {
    const appToken = valueOf('slack', 'app_token')
    const signingSecret = valueOf('slack', 'signing_secret')
    if (appToken === undefined && signingSecret === undefined) {
      throw new CliFailure(
        `${path}: [slack] needs app_token, for messages and slash commands in Socket Mode, or signing_secret and listen, for slash commands as requests.`,
      )
    }
    return {
      token: need('slack', 'token'),
      appToken,
      requests: signingSecret === undefined ? undefined : { signingSecret, ...placeIn(need('slack', 'listen'), path) },
      url: urlOf('slack', valueOf('slack', 'url') ?? 'https://slack.com/api/'),
    }
  }
  return {
    prefix: valueOf('chat', 'prefix') ?? '!',
    route: valueOf('chat', 'route') ?? 'chatops',
    inquiries: channel === undefined ? undefined : { route: valueOf('chat', 'inquiry_route') ?? 'chatops', channel },
    users: usersIn(valueOf('chat', 'users') ?? '', path),
    defaultUser: valueOf('chat', 'default_user'),
    account: account === undefined ? undefined : { name: account, password: need('chat', 'password') },
    system,
    matrix: has('matrix') ? accountOf('matrix') : undefined,
    mattermost: has('mattermost') ? accountOf('mattermost') : undefined,
    slack: has('slack') ? slackSettings() : undefined,
    isReadableByOthers: (read.mode & 0o077) !== 0,
  }
}

/** `127.0.0.1:9180`; port 0: any that is free. */
function placeIn(text: string, path: string): { host: string; port: number } {
  const [, host, port] =
    /^(?:\[([0-9a-f:]+)\]|([^\s:]+)):(\d{1,5})$/i.exec(text)?.filter((part) => part !== undefined) ?? []
  if (host === undefined || Number(port) > 65_535) {
    throw new CliFailure(`${path}: [slack] listen is "address:port", such as 127.0.0.1:9180, not "${text}".`)
  }
  return { host, port: Number(port) }
}

/** A line for each: `@ann:example.org ann`. */
function usersIn(text: string, path: string): Map<string, string> {
  const users = new Map<string, string>()
  for (const line of text.split('\n')) {
    const [chatUser = '', name, ...others] = line.trim().split(/\s+/)
    if (chatUser === '') continue
    if (name === undefined || others.length > 0) {
      throw new CliFailure(`${path}: a line of [chat] users is "chat-user svc-user", not "${line.trim()}".`)
    }
    if (users.has(chatUser)) throw new CliFailure(`${path}: [chat] users has ${chatUser} twice.`)
    users.set(chatUser, name)
  }
  return users
}
