/** `svc user`: users on a server or in a password file (contract 01, 1.6). */
import { InvalidArgumentError } from 'commander'
import { cliProcess } from '../cli-process.ts'
import { CliCommand } from '../command.ts'
import { removeUser, PasswordFileProblem, setPassword, userNames } from '../../core/password-file.ts'
import { recordIn, textOrEmpty, toObject } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure, NotFound } from '../failures.ts'
import { addCommonOptions, addPasswordOption, type CommonFlags } from '../options.ts'
import { printable, type Json } from '../output/print.ts'
import { withSecretInput, type SecretInput } from '../input/prompt.ts'
import { callOn, createRecord, forEachId, printDone, subjectOf } from '../records.ts'
import {
  createEachCommand,
  createGetCommand,
  createListCommand,
  showRecord,
  type ListFlags,
  type CliResource,
} from '../resources.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'

const user: CliResource = {
  name: 'User',
  pluralName: 'Users',
  path: '/users',
  columns: ['name', 'is_service', 'is_disabled', 'has_password', 'created_at'],
  order: ['name', 'is_service', 'is_disabled', 'has_password', 'nicknames', 'created_at'],
}
const passwordHelp =
  'Without -p, svc prompts for the password without echo. If standard input is not a terminal, svc reads the password from its next line.'

const fileNote =
  'With --file, svc changes that file and contacts no server. Use it for a lost administrator password and for scripted ' +
  'installation. All other lines of the file stay unchanged. The change takes effect at the next login.'

interface UserListFlags extends ListFlags {
  service?: boolean
  disabled?: boolean
}

interface AccountFlags extends CommonFlags {
  service?: boolean
  nickname?: Record<string, string>
}

interface PasswordFlags extends CommonFlags {
  password?: string
  file?: string
}

interface AddFlags extends AccountFlags {
  /** False: the user gets no password. */
  password?: string | false
  file?: string
}

export function createUserCommand(context: CommandContext): CliCommand {
  const queryOf = ({ service, disabled }: UserListFlags) => ({ is_service: service, is_disabled: disabled })
  const list = createListCommand(context, user, queryOf)
    .description('List users. Administrators only.')
    .option('--service', 'only service accounts')
    .option('--disabled', 'only disabled users')
    .examples('svc user list --disabled')

  const get = createGetCommand(context, user, '<name...>', 'names')
    .description('Show users.')
    .examples('svc user get alice')

  const add = addFileOption(addPasswordOption(addAccountOptions(addUserOptions('add'))))
    .description('Add a user.')
    .argument('<name>', 'name of the user')
    .completions({ name: [] })
    .option('--no-password', 'add a user without a password, for another authentication backend or for API keys only')
    .option('--service', 'a service account, which can create tokens for other users')
    .notes(passwordHelp, fileNote)
    .examples(
      'svc user add alice --nickname chat=al',
      'svc user add alice --file /var/lib/svc/htpasswd < password-file',
    )
    .action((name: string, flags: AddFlags) =>
      flags.file === undefined
        ? withSession(context, flags, (session) => addUser(session, name, flags))
        : withFile(context, (io) => addToFile(io, flags.file ?? '', name, flags)),
    )

  const passwd = addFileOption(addPasswordOption(addUserOptions('passwd')))
    .description('Change a password: your own, or as an administrator that of any user.')
    .argument('[name]', 'name of the user (default: yourself)')
    .notes(`${passwordHelp} For your own password, svc first prompts for the current one.`, fileNote)
    .examples('svc user passwd', 'svc user passwd admin --file /var/lib/svc/htpasswd')
    .action((name: string | undefined, flags: PasswordFlags) =>
      flags.file === undefined
        ? withSession(context, flags, (session) => changePassword(session, name, flags))
        : withFile(context, (io) => changeInFile(io, flags.file ?? '', name, flags)),
    )

  const update = addAccountOptions(addUserOptions('update'))
    .description('Change the attributes of a user.')
    .argument('<name>', 'name of the user')
    .option('--service', 'make it a service account, which can create tokens for other users')
    .option('--no-service', 'make it an ordinary user')
    .notes('An empty name, such as chat=, removes the nickname.')
    .examples('svc user update alice --nickname chat=al --no-service')
    .action((name: string, flags: AccountFlags) =>
      withSession(context, flags, (session) => updateUser(session, name, flags)),
    )

  const enable = createSwitchCommand(context, 'enable', false)
    .description('Enable disabled users.')
    .examples('svc user enable alice')

  const disable = createSwitchCommand(context, 'disable', true)
    .description('Disable users. The server refuses their passwords, tokens and API keys at once.')
    .examples('svc user disable alice')

  const remove = addFileOption(addUserOptions('delete'))
    .description('Delete users with their tokens, API keys and datastore items.')
    .notes(fileNote)
    .argument('<name...>', 'names of users')
    .examples('svc user delete alice')
    .action((names: string[], flags: PasswordFlags) => {
      const { file } = flags
      if (file !== undefined) return withFile(context, (io) => deleteFromFile(io, file, names))
      return withSession(context, flags, (session) => forEachId(session, names, (name) => deleteUser(session, name)))
    })

  return new CliCommand('user')
    .addCommand(list)
    .addCommand(get)
    .addCommand(add)
    .addCommand(passwd)
    .addCommand(update)
    .addCommand(enable)
    .addCommand(disable)
    .addCommand(remove)
}

function addUserOptions(name: string): CliCommand {
  return addCommonOptions(new CliCommand(name))
}

function addFileOption(command: CliCommand): CliCommand {
  return command.option('--file <htpasswd>', 'change this password file; contacts no server')
}

function addAccountOptions(command: CliCommand): CliCommand {
  return command.option('--nickname <origin=name>', 'chat name of the user; repeatable', collectNickname)
}

function collectNickname(text: string, before: Record<string, string> | undefined): Record<string, string> {
  const [, origin, name] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  if (origin === undefined || name === undefined) throw new InvalidArgumentError('It must have the form origin=name.')
  return Object.fromEntries([...Object.entries(before ?? {}), [origin, name]])
}

function createSwitchCommand(context: CommandContext, name: string, isDisabled: boolean): CliCommand {
  return createEachCommand(context, name, ['<name...>', 'names of users'], async (session, each) => {
    const changed = await callOn(session, 'PUT', subjectOf(user, each), { body: { is_disabled: isDisabled } })
    return showRecord(session, user, recordIn(changed), {})
  })
}

async function addUser(session: Session, name: string, flags: AddFlags): Promise<number> {
  const { password, service, nickname } = flags
  const secret =
    password === false
      ? undefined
      : (password ?? (await withSecretInput(session, (input) => input.askTwice(`Password of ${printable(name)}`))))
  const body = {
    name,
    ...(secret === undefined ? {} : { password: secret }),
    ...(service === undefined ? {} : { is_service: service }),
    ...(nickname === undefined ? {} : { nicknames: nickname }),
  }
  return showRecord(session, user, await createRecord(session, user.path, body), {})
}

async function changePassword(session: Session, name: string | undefined, flags: PasswordFlags): Promise<number> {
  const own = textOrEmpty(recordIn(await session.client.call('GET', '/user'))['username'])
  const target = name ?? own
  const body = await withSecretInput(session, async (input) => {
    const current = target === own ? { current_password: await input.ask('Current password') } : {}
    return { ...current, password: flags.password ?? (await input.askTwice(`New password of ${printable(target)}`)) }
  })
  await callOn(session, 'PUT', subjectOf(user, target), { body })
  await printDone(session, `The password of "${target}" is changed.`)
  const { account } = session.settings
  if (account?.username === target && account.password !== undefined) {
    session.note('Note: The configuration file still holds the old password. To update it: svc login -w <user>\n')
  }
  return exitCodes.ok
}

async function updateUser(session: Session, name: string, { service, nickname }: AccountFlags): Promise<number> {
  if (service === undefined && nickname === undefined) {
    throw new CliFailure('Nothing to change. Add --service, --no-service or --nickname.', exitCodes.usage)
  }
  const body: Json = service === undefined ? {} : { is_service: service }
  if (nickname !== undefined) {
    const before = toObject(recordIn(await callOn(session, 'GET', subjectOf(user, name)))['nicknames'])
    body['nicknames'] = Object.fromEntries(Object.entries({ ...before, ...nickname }).filter(([, nick]) => nick !== ''))
  }
  return showRecord(session, user, recordIn(await callOn(session, 'PUT', subjectOf(user, name), { body })), {})
}

async function deleteUser(session: Session, name: string): Promise<number> {
  await callOn(session, 'DELETE', subjectOf(user, name))
  await printDone(session, `User "${name}" is deleted.`)
  return exitCodes.ok
}

interface FileIo {
  input: SecretInput
  print: Session['print']
}

/**
 * Runs the action of a command that changes a password file, without a server or a configuration.
 *
 * @param work resolves with the exit code
 */
async function withFile(context: CommandContext, work: (io: FileIo) => Promise<number>): Promise<void> {
  const note = (text: string): void => void cliProcess().stderr.write(text)
  const print = (text: string): Promise<void> => Promise.resolve(void cliProcess().stdout.write(text))
  const interrupted = new AbortController().signal
  try {
    context.setExitCode(await withSecretInput({ interrupted, note }, (input) => work({ input, print })))
  } catch (error) {
    if (error instanceof PasswordFileProblem) throw new CliFailure(error.message, exitCodes.usage)
    throw error
  }
}

async function addToFile({ input, print }: FileIo, file: string, name: string, flags: AddFlags): Promise<number> {
  if (flags.service !== undefined || flags.nickname !== undefined || flags.password === false) {
    throw new CliFailure(
      'A password file holds names and passwords only. Remove --service, --nickname and --no-password.',
      exitCodes.usage,
    )
  }
  if ((await userNames(file)).includes(name)) {
    throw new CliFailure(
      `User "${printable(name)}" already exists in ${file}. To change the password, use "svc user passwd".`,
      exitCodes.usage,
    )
  }
  await setPassword(file, name, flags.password ?? (await input.askTwice(`Password of ${printable(name)}`)))
  await print(`User "${printable(name)}" was added to ${printable(file)}.\n`)
  return exitCodes.ok
}

async function changeInFile(
  { input, print }: FileIo,
  file: string,
  name: string | undefined,
  { password }: PasswordFlags,
): Promise<number> {
  if (name === undefined) throw new CliFailure('--file needs the name of the user.', exitCodes.usage)
  const names = await userNames(file)
  if (names.length === 0) {
    throw new CliFailure(`No users found in ${printable(file)}. Check that it is the password file.`, exitCodes.usage)
  }
  if (!names.includes(name)) throw new NotFound(user.name, name)
  await setPassword(file, name, password ?? (await input.askTwice(`New password of ${printable(name)}`)))
  await print(`The password of "${printable(name)}" is changed in ${printable(file)}.\n`)
  return exitCodes.ok
}

function deleteFromFile({ print }: FileIo, file: string, names: readonly string[]): Promise<number> {
  return forEachId({ print }, names, async (name) => {
    if (!(await removeUser(file, name))) throw new NotFound(user.name, name)
    await print(`User "${printable(name)}" is deleted from ${printable(file)}.\n`)
    return exitCodes.ok
  })
}
