/** `svc chat`: a bot that carries out commands from a chat. */
import { absolutePath, cliProcess } from '../cli-process.ts'
import { CliCommand } from '../command.ts'
import { createClient, type Client, type Nickname } from '../connection/client.ts'
import { recordIn, textOrEmpty, type ApiResponse } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure, HttpFailure } from '../failures.ts'
import { addCommonOptions, type CommonFlags } from '../options.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'
import type { ChatAdapter, ChatPosition } from '../chat/adapter.ts'
import type { ChatConfig } from '../chat/config.ts'
import type { ChatState } from '../chat/state.ts'

interface ChatFlags extends CommonFlags {
  state?: string
}

/** A token is renewed before it ends. */
const RENEW_MS = 60_000
/** A change of nicknames is known this late at most. */
const NICKNAME_MS = 60_000
const MAX_NICKNAMES = 10_000

export function createChatCommand(context: CommandContext): CliCommand {
  return addCommonOptions(new CliCommand('chat'))
    .argument('<file>', 'configuration of the bot')
    .option('--state <path>', 'file in which the bot keeps what it still owes; default: <file>.state')
    .description('Run a bot that carries out commands from a chat.')
    .notes(
      'The bot needs an address and a credential of the server as every command does, best an API key in SVC_API_KEY. It runs until it is stopped; started again, it posts the results that have come meanwhile. docs/chat.md describes the file.',
    )
    .examples('svc chat chat.conf')
    .sample(
      'chat.conf',
      `[chat]
users =
  @ann:example.org ann
  @bob:example.org bob
[matrix]
url = https://matrix.example.org
token = syt_...`,
    )
    .action((file: string, flags: ChatFlags) =>
      withSession(context, flags, (session) => run(session, file, flags.state ?? `${file}.state`)),
    )
}

async function run(session: Session, file: string, statePath: string): Promise<number> {
  const { readChatConfig } = await import('../chat/config.ts')
  const { openChatState } = await import('../chat/state.ts')
  const { runBot } = await import('../chat/bot.ts')
  const config = readChatConfig(file, cliProcess().env)
  if (config.isReadableByOthers) {
    session.warn(`Others may read ${file}, which holds credentials: chmod 600 ${file}`)
  }
  const log = (text: string): void => session.note(`${text}\n`)
  const lock = await lockState(statePath)
  try {
    const state = openChatState(absolutePath(statePath))
    const users = createUsers(session, config)
    const adapter = await createAdapter(config, state, users.userOfNickname, log)
    // A wrong address or credential ends the bot now, and not with the first command.
    await session.client.call('GET', '/user')
    log(`svc chat follows ${session.client.apiUrl}`)
    const { client, interrupted: signal } = session
    await runBot({ adapter, config, state, client, ...users, log, signal })
    return exitCodes.ok
  } finally {
    lock.release()
  }
}

/** Two bots with one state would each post what the other owes. @throws CliFailure */
async function lockState(path: string): Promise<{ release(): void }> {
  const { holdLockFile } = await import('../../db/sqlite/lock.ts')
  const file = absolutePath(`${path}-lock`)
  let lock: { release(): void } | undefined
  try {
    lock = holdLockFile(file)
  } catch (error) {
    throw new CliFailure(`${file} cannot be locked: ${error instanceof Error ? error.message : String(error)}`)
  }
  if (lock !== undefined) return lock
  throw new CliFailure(`${path} is in use by another svc chat. Give each bot a configuration and a state of its own.`)
}

async function createAdapter(
  { matrix, mattermost, slack, users }: ChatConfig,
  state: ChatState,
  userOfNickname: (chatUser: string) => Promise<string | undefined>,
  log: (text: string) => void,
): Promise<ChatAdapter> {
  if (slack !== undefined) {
    const { createSlack } = await import('../chat/slack.ts')
    return createSlack({ settings: slack, log })
  }
  const positionOf = (name: string): ChatPosition => ({
    read: () => state.position(name),
    write: (position) => state.setPosition(name, position),
  })
  if (mattermost !== undefined) {
    const { createMattermost } = await import('../chat/mattermost.ts')
    return createMattermost({ settings: mattermost, position: positionOf('mattermost'), log })
  }
  if (matrix === undefined) throw new Error('The configuration of the bot has no chat system.')
  const { createMatrix } = await import('../chat/matrix.ts')
  return createMatrix({
    settings: matrix,
    position: positionOf('matrix'),
    async knows(user) {
      if (users.has(user)) return true
      try {
        return (await userOfNickname(user)) !== undefined
      } catch (error) {
        log(`svc: ${error instanceof Error ? error.message : String(error)}`)
        return false
      }
    },
    log,
  })
}

interface Users {
  /** With a token of that user if the bot may have one, else with its own credential. @throws as `Client.call` */
  readonly callAs: (user: string, ...call: Parameters<Client['call']>) => Promise<ApiResponse>
  readonly userOfNickname: (chatUser: string) => Promise<string | undefined>
}

function createUsers(session: Session, { account, system }: Pick<ChatConfig, 'account' | 'system'>): Users {
  const clients = new Map<string, { client: Client; until: number }>()
  /** Chat user → user of svc. */
  const nicknames = new Map<string, { user: string | undefined; until: number }>()

  async function login(
    of: string | Nickname,
    { name, password }: NonNullable<typeof account>,
  ): Promise<{ user: string; client: Client }> {
    const { user: owner, token, expiry } = recordIn(await session.client.createToken(name, password, undefined, of))
    const user = typeof of === 'string' ? of : textOrEmpty(owner)
    const credential = { header: 'X-Auth-Token', value: textOrEmpty(token) } as const
    const client = createClient({
      settings: { ...session.settings, credential },
      interrupted: session.interrupted,
      warn: session.warn,
      debug: (text) => session.note(`${text}\n`),
      env: cliProcess().env,
    })
    // The client before it may still have requests under way.
    clients.set(user, { client, until: Date.parse(textOrEmpty(expiry)) - RENEW_MS })
    return { user, client }
  }

  async function clientOf(user: string, of: NonNullable<typeof account>): Promise<Client> {
    const known = clients.get(user)
    if (known !== undefined && known.until > Date.now()) return known.client
    return (await login(user, of)).client
  }

  return {
    async callAs(user, ...call) {
      if (account === undefined) return session.client.call(...call)
      const client = await clientOf(user, account)
      try {
        return await client.call(...call)
      } catch (error) {
        if (!(error instanceof HttpFailure) || error.status !== 401) throw error
        // The token is revoked. Another request may have replaced it already.
        if (clients.get(user)?.client === client) clients.delete(user)
        return (await clientOf(user, account)).call(...call)
      }
    },
    async userOfNickname(nickname) {
      if (account === undefined) return undefined
      const known = nicknames.get(nickname)
      if (known !== undefined && known.until > Date.now()) return known.user
      let user: string | undefined
      try {
        user = (await login({ nickname, origin: system }, account)).user
      } catch (error) {
        if (!(error instanceof HttpFailure) || error.code !== 'USER_NOT_LOCATED') throw error
      }
      if (nicknames.size >= MAX_NICKNAMES) nicknames.clear()
      nicknames.set(nickname, { user, until: Date.now() + NICKNAME_MS })
      return user
    },
  }
}
