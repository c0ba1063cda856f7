/** `svc token`: revokes and validates tokens (contract 01, 1.5 and 1.7). `svc auth` creates them. */
import { isId } from '../../core/ids.ts'
import { CliCommand } from '../command.ts'
import { recordIn } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { addCommonOptions, type CommonFlags } from '../options.ts'
import { printable } from '../output/print.ts'
import { withSecretInput } from '../input/prompt.ts'
import { callOn, printDone } from '../records.ts'
import { forEachSecret, subjectOfSecret } from '../input/secret-ids.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'

const token = { name: 'Token', path: '/tokens' }
const processNote =
  'A token on the command line is visible to other users of this machine in the process list. With - svc reads it from standard input, or prompts for it at a terminal.'

interface RevokeFlags extends CommonFlags {
  user?: string
}

export function createTokenCommand(context: CommandContext): CliCommand {
  const revoke = addCommonOptions(new CliCommand('revoke'))
    .description('Revoke tokens at once: your own, or as an administrator those of any user.')
    .argument('[token-or-id...]', 'tokens or token ids, or - to read a token from standard input')
    .option('--user <name>', 'revoke all tokens of this user')
    .notes(processNote, '"svc logout" revokes and deletes the token that "svc login" stored.')
    .examples('svc token revoke - < token-file', 'svc token revoke --user alice')
    .action((words: string[], flags: RevokeFlags) => {
      const { user } = flags
      if ((user === undefined) === (words.length === 0)) {
        throw new CliFailure('Name either the tokens to revoke or the user with --user.', exitCodes.usage)
      }
      return withSession(context, flags, (session) =>
        user === undefined ? revokeTokens(session, words) : revokeAll(session, user),
      )
    })

  const validate = addCommonOptions(new CliCommand('validate'))
    .description('Check whether a token is valid. The exit code is 0 when it is, and 1 when it is not.')
    .argument('<token>', 'token, or - to read it from standard input')
    .notes(processNote, 'You need a login or another credential (-t, --api-key).')
    .examples('svc token validate - < token-file')
    .action((word: string, flags: CommonFlags) =>
      withSession(context, flags, (session) => validateToken(session, word)),
    )

  return new CliCommand('token').addCommand(revoke).addCommand(validate)
}

function revokeTokens(session: Session, words: readonly string[]): Promise<number> {
  return forEachSecret(session, words, 'Token', async (word) => {
    await callOn(session, 'DELETE', subjectOfSecret(token, word), { isForAuth: true })
    await printDone(session, `${token.name} ${isId(word) ? `"${word}" ` : ''}is revoked.`)
    return exitCodes.ok
  })
}

async function revokeAll(session: Session, user: string): Promise<number> {
  const revoked = await revokeTokensOf(session, user)
  if (session.form === 'human') await session.print(revokedText(revoked, user))
  else await session.printMachine({ user, revoked })
  return exitCodes.ok
}

/** @returns how many there were */
export async function revokeTokensOf({ client }: Session, user: string): Promise<number> {
  return Number(recordIn(await client.call('DELETE', '/tokens', { query: { user }, isForAuth: true }))['revoked'])
}

export function revokedText(count: number, user: string): string {
  const what = count === 1 ? '1 token' : `${count === 0 ? 'No' : count} tokens`
  return `${what} of "${printable(user)}" ${count === 1 ? 'was' : 'were'} revoked.\n`
}

async function validateToken(session: Session, word: string): Promise<number> {
  const value = word === '-' ? await withSecretInput(session, (input) => input.ask('Token')) : word
  const request = { body: { token: value }, isForAuth: true }
  const answer = recordIn(await session.client.call('POST', '/tokens/validate', request))
  const isValid = answer['valid'] === true
  if (session.form === 'human') await session.print(`The token is ${isValid ? '' : 'not '}valid.\n`)
  else await session.printMachine(answer)
  return isValid ? exitCodes.ok : exitCodes.failed
}
