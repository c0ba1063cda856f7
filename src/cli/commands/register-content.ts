/** `svc-register-content`, and `svcctl reload` (contract 02, 2.8; contract 10, 10.6): registration for existing scripts. */
import { Option } from 'commander'
import { CliCommand } from '../command.ts'
import { listIn, recordIn, textOrEmpty } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { addOperatorOptions, withOperatorSession, type OperatorFlags } from '../operator-session.ts'
import type { CommandContext, Session } from '../session.ts'
import { followPackExecution, registerPacks } from './pack-install.ts'

/** Name in the flags → name on the server. */
const typeOf = {
  runners: 'runner',
  actions: 'action',
  aliases: 'alias',
  sensors: 'sensor',
  triggers: 'trigger',
  configs: 'config',
  rules: 'rule',
  policies: 'policy',
} as const

type Kind = keyof typeof typeOf

const kinds = Object.keys(typeOf) as Kind[] // its own keys

type KindFlags = { [K in `register${Capitalize<Kind>}`]?: boolean }

export interface RegisterContentFlags extends OperatorFlags, KindFlags {
  registerAll?: boolean
  registerPack?: string
  registerSetupVirtualenvs?: boolean
  registerRecreateVirtualenvs?: boolean
  registerNoFailOnFailure?: boolean
}

export function createRegisterContent(context: CommandContext): CliCommand {
  return addRegisterOptions(new CliCommand('svc-register-content'))
    .description('Register the content of packs, and print the count of each kind.')
    .notes('`svc pack register` does the same with a login.')
    .examples('svc-register-content --register-all', 'svc-register-content --register-actions --register-pack ./web')
    .action((flags: RegisterContentFlags) =>
      withOperatorSession(context, flags, (session) => registerContentCommand(session, flags, [])),
    )
}

export function addRegisterOptions(command: CliCommand): CliCommand {
  for (const kind of kinds) command.option(`--register-${kind}`, `register ${kind}`)
  return addOperatorOptions(
    command
      .option('--register-all', 'register all kinds')
      .option('--register-pack <dir>', 'only this pack: its directory or reference')
      .option('--register-setup-virtualenvs', 'create or update the Python environments of the packs')
      .option('--register-recreate-virtualenvs', 'recreate the Python environments of the packs')
      .option('--register-no-fail-on-failure', 'exit with 0 even if some content is invalid')
      // As it is in any case.
      .addOption(new Option('--register-fail-on-failure').hideHelp())
      // Runners come with the program.
      .addOption(new Option('--register-runner-dir <dir>').hideHelp())
      .addOption(new Option('--verbose').hideHelp()),
  )
}

/** @param usual kinds to register when no flag names any @returns the exit code @throws CliFailure when there are none */
export async function registerContentCommand(
  session: Session,
  flags: RegisterContentFlags,
  usual: readonly Kind[],
): Promise<number> {
  const { registerAll = false, registerPack: pack, registerRecreateVirtualenvs: recreates = false } = flags
  const failOnFailure = flags.registerNoFailOnFailure !== true
  const given = kinds.filter((kind) => flags[flagOf(kind)] === true)
  const setsUp = recreates || flags.registerSetupVirtualenvs === true
  const isSaid = given.length > 0 || setsUp
  const chosen = isSaid ? given : usual
  const registersAll = registerAll || (!isSaid && pack !== undefined)
  if (!registersAll && chosen.length === 0 && !setsUp) {
    throw new CliFailure('Nothing to register. Add --register-all, or --register-actions, --register-rules, …')
  }
  if (registersAll || chosen.length > 0) {
    const types = registersAll ? {} : { types: chosen.map((kind) => typeOf[kind]) }
    const code = await registerPacks(session, pack === undefined ? [] : [pack], { ...types, failOnFailure })
    if (code !== exitCodes.ok) return code
  }
  return setsUp ? setUp(session, pack, recreates) : exitCodes.ok
}

function flagOf(kind: Kind): keyof KindFlags {
  return `register${kind[0]?.toUpperCase()}${kind.slice(1)}` as keyof KindFlags // as commander does
}

async function setUp(session: Session, pack: string | undefined, recreates: boolean): Promise<number> {
  const packs = listIn(await session.client.call('GET', '/packs?limit=-1'))
    .filter(({ ref, path }) => pack === undefined || [ref, path].includes(pack))
    .map(({ ref }) => textOrEmpty(ref))
  if (packs.length === 0) throw new CliFailure(`No registered pack has the reference or directory ${pack ?? ''}.`)
  const body = { action: 'packs.setup_virtualenv', parameters: { packs, update: recreates } }
  const { id } = recordIn(await session.client.call('POST', '/executions', { body }))
  return followPackExecution(session, { execution_id: id }, 'Creating Python environments', () =>
    Promise.resolve(false),
  )
}
