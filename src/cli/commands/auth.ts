/** `svc auth`, `svc login`, `svc logout`, `svc whoami`: login and tokens (contract 09, 9.3). */
import { CliCommand } from '../command.ts'
import { escapeUnprintable, secretMask } from '../../lib/log/index.ts'
import { segment } from '../connection/client.ts'
import { changeConfigFile } from '../connection/config-edit.ts'
import { recordIn, textOrEmpty, toObject, type ApiResponse } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure, HttpFailure, NotLoggedIn } from '../failures.ts'
import { storeToken } from '../connection/login.ts'
import { addCommonOptions, addLoginOptions, type CommonFlags } from '../options.ts'
import { cellText, formatTime, printable, type Json } from '../output/print.ts'
import { withSecretInput } from '../input/prompt.ts'
import { printDone, printRecord } from '../records.ts'
import { openClient, withSession, type CommandContext, type Session } from '../session.ts'
import type { ConfigFile, Settings } from '../connection/settings.ts'
import { readStoredToken, removeStoredToken, type StoredToken } from '../connection/token-cache.ts'
import { revokedText, revokeTokensOf } from './token.ts'

interface LoginFlags extends CommonFlags {
  password?: string
  ttl?: number
}

interface TokenFlags extends LoginFlags {
  onlyToken?: boolean
}

interface LogoutFlags extends CommonFlags {
  all?: boolean
}

interface LoginCommandFlags extends LoginFlags {
  writePassword?: boolean
}

const withoutLogin = { withoutLogin: true }
const passwordSources =
  'Without -p, svc prompts for the password without echo. If standard input is not a terminal, svc reads the password from its first line.'

export function createAuthCommand(context: CommandContext): CliCommand {
  return addLoginOptions(new CliCommand('auth'))
    .description('Create a token and print it. svc does not store it.')
    .argument('<user>', 'name of the user')
    .option('-t, --only-token', 'print only the token')
    .notes(passwordSources)
    .examples('svc auth alice', 'export SVC_AUTH_TOKEN=$(svc auth alice -t -l 3600 < password-file)')
    .action((user: string, flags: TokenFlags) =>
      withSession(
        context,
        flags,
        async (session) => {
          const record = recordIn(await makeToken(session, user, await readPassword(session, flags), flags))
          if (flags.onlyToken === true) await session.print(`${printable(textOrEmpty(record['token']))}\n`)
          else {
            // A token that wraps cannot be copied.
            const wide = { ...session, terminalWidth: undefined }
            await printRecord(wide, record, [], session.form === 'human' ? ['user', 'token', 'expiry'] : undefined)
          }
          return exitCodes.ok
        },
        withoutLogin,
      ),
    )
}

export function createLoginCommand(context: CommandContext): CliCommand {
  return addLoginOptions(new CliCommand('login'))
    .description('Log in: later commands act as this user.')
    .argument('<user>', 'name of the user')
    .option('-w, --write-password', 'also store the password, in plain text, in the configuration file')
    .notes(
      passwordSources,
      'svc writes the user name to the configuration file (`~/.svc/config`) and removes an earlier password from it. It stores the token in a file beside it. With -w, svc logs in again automatically when the token has expired; otherwise run this command again.',
    )
    .examples('svc login alice', 'svc login alice < password-file')
    .action((user: string, flags: LoginCommandFlags) =>
      withSession(context, flags, (session) => logIn(session, user, flags), withoutLogin),
    )
}

export function createLogoutCommand(context: CommandContext): CliCommand {
  return addCommonOptions(new CliCommand('logout'))
    .description(
      'Log out: revoke and delete the stored token. svc also removes the user name and the password from the configuration file.',
    )
    .option('--all', 'revoke all tokens of the user, including those of other machines')
    .notes(
      'If the server is unreachable, svc deletes the login here and warns until when the token stays valid. With --all it then changes nothing.',
      'API keys and tokens in the environment stay valid; see "svc apikey disable" and "svc token revoke".',
    )
    .examples('svc logout', 'svc logout --all')
    .action((flags: LogoutFlags) => withSession(context, flags, (session) => logOut(session, flags.all === true)))
}

export function createWhoamiCommand(context: CommandContext): CliCommand {
  return addCommonOptions(new CliCommand('whoami'))
    .description('Show the current user, the authentication method and the roles.')
    .examples('svc whoami')
    .action((flags: CommonFlags) => withSession(context, flags, showUser))
}

async function readPassword(session: Session, { password }: LoginFlags): Promise<string> {
  return password ?? withSecretInput(session, (input) => input.ask('Password'))
}

async function makeToken(session: Session, user: string, password: string, { ttl }: LoginFlags): Promise<ApiResponse> {
  if (user === '' || password === '') throw new CliFailure('The name and the password must not be empty.')
  return session.client.createToken(user, password, ttl)
}

async function logIn(session: Session, user: string, flags: LoginCommandFlags): Promise<number> {
  const { settings } = session
  const { folder, authUrl } = settings
  const configFile = configFileOf(settings)
  const password = await readPassword(session, flags)
  const answer = await makeToken(session, user, password, flags)
  const record = recordIn(answer)
  const isWritten = flags.writePassword === true
  const changes = { username: user, password: isWritten ? password : undefined }
  try {
    await changeConfigFile(configFile, folder, 'credentials', changes)
  } catch (error) {
    // The token was not printed, so it is revoked. A server that reports no expiry has none to revoke.
    const expireTimestamp = Date.parse(textOrEmpty(record['expiry'])) / 1000 || 0
    await revokeStored(session, { token: textOrEmpty(record['token']), expireTimestamp, authUrl })
    throw error
  }
  const isKept = settings.cachesToken && (await storeToken({ folder, user, authUrl }, answer, session.warn))
  await printDone(session, `Logged in as ${user}`)
  if (!isWritten) {
    const end = formatTime(record['expiry'], settings.timezone)
    session.note(
      isKept
        ? `\nNote: The password was not saved; log in again when the token expires, on ${end}.\n` +
            `-w/--write-password stores it in plain text in ${configFile.path}.\n`
        : `\nNote: Neither the password nor the token was saved${settings.cachesToken ? '' : ' ([cli] cache_token)'}, so later commands are not logged in.\n`,
    )
  }
  if (settings.credential !== undefined) {
    session.note('\nNote: A token or API key in the environment or the configuration file overrides this login.\n')
  }
  return exitCodes.ok
}

/** @throws CliFailure when no configuration file is read */
function configFileOf({ configFile, folder }: Settings): ConfigFile {
  if (configFile !== undefined) return configFile
  throw new CliFailure(
    folder === ''
      ? 'Cannot store a login without a home directory. Set HOME, or use "svc auth".'
      : 'Cannot store a login with --skip-config. Omit it, or use "svc auth".',
  )
}

async function logOut(session: Session, isAll: boolean): Promise<number> {
  const { settings, form } = session
  const { account, folder } = settings
  const configFile = configFileOf(settings)
  let revoked = 0
  if (account === undefined) {
    if (form === 'human') await session.print('Not logged in.\n')
  } else {
    const { username } = account
    // First, because this needs the login that is deleted below.
    if (isAll) revoked = await revokeTokensOf(session, username)
    const kept = readStoredToken({ folder, user: username }, session.warn)
    if (!isAll && kept !== undefined) revoked = await revokeStored(session, kept)
    await changeConfigFile(configFile, folder, 'credentials', { username: undefined, password: undefined })
    await removeToken({ folder, user: username })
    if (form === 'human') {
      if (isAll) await session.print(revokedText(revoked, username))
      await session.print(`Logged out ${escapeUnprintable(username)}\n`)
      if (!isAll && kept === undefined) session.note('\nNote: No token was stored.\n')
    }
  }
  if (form !== 'human') await session.printMachine({ user: account?.username ?? null, revoked })
  if (settings.credential !== undefined) {
    session.note(
      '\nNote: Another token or API key is set in the environment, in the configuration file or on the command line. It is still valid.\n',
    )
  }
  return exitCodes.ok
}

/**
 * Revokes a token at the server that created it. A token that this server refuses is invalid already.
 *
 * @returns how many were revoked
 */
async function revokeStored(session: Session, kept: StoredToken | 'damaged'): Promise<number> {
  const { settings, interrupted, warn } = session
  if (kept === 'damaged') {
    warn('The stored token file was damaged; it is deleted, but the token is not revoked.')
    return 0
  }
  const { token, expireTimestamp, authUrl } = kept
  if (expireTimestamp <= Date.now() / 1000) return 0
  const isHere = authUrl === '' || authUrl === settings.authUrl
  const client = await openClient(
    {
      ...settings,
      ...(isHere ? {} : { authUrl, basicAuth: undefined }),
      credential: { header: 'X-Auth-Token', value: token },
    },
    { interrupted, warn, debug: (text) => session.note(`${text}\n`) },
  )
  try {
    await client.call('DELETE', `/tokens/${segment(token)}`, { shownPath: `/tokens/${secretMask}`, isForAuth: true })
    return 1
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error
    if (error instanceof HttpFailure && [401, 404].includes(error.status)) return 0
    const end = formatTime(new Date(expireTimestamp * 1000).toISOString(), settings.timezone)
    warn(`Could not revoke the token, which stays valid until ${end}: ${error.message}`)
    return 0
  } finally {
    client.close()
  }
}

async function removeToken(place: { folder: string; user: string }): Promise<void> {
  try {
    await removeStoredToken(place)
  } catch (error) {
    throw new CliFailure(`Cannot delete the stored token: ${error instanceof Error ? error.message : String(error)}`)
  }
}

async function showUser(session: Session): Promise<number> {
  let record: Json
  try {
    record = recordIn(await session.client.call('GET', '/user'))
  } catch (error) {
    if (!(error instanceof NotLoggedIn) && !(error instanceof HttpFailure && error.status === 401)) throw error
    await session.print('Not authenticated\n')
    session.note(`${error.message}\n`)
    return exitCodes.failed
  }
  if (session.form !== 'human') {
    await session.printMachine(record)
    return exitCodes.ok
  }
  const authentication = toObject(record['authentication'])
  const rbac = toObject(record['rbac'])
  const method = textOrEmpty(authentication['method'])
  const expiry = authentication['token_expire']
  const roles = Array.isArray(rbac['roles']) ? rbac['roles'].map(cellText) : []
  const lines = [
    `Currently logged in as "${escapeUnprintable(textOrEmpty(record['username']))}".`,
    '',
    `Authentication method: ${method === '' ? 'none (authentication is off)' : method}`,
    ...(expiry === undefined
      ? []
      : [`Authentication token expire time: ${formatTime(expiry, session.settings.timezone)}`]),
    '',
    'RBAC:',
    ` - Enabled: ${rbac['enabled'] === true ? 'True' : 'False'}`,
    ` - Roles: ${roles.join(', ')}`,
  ]
  await session.print(`${printable(lines.join('\n'))}\n`)
  return exitCodes.ok
}
