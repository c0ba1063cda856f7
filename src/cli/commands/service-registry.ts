/** `svc service-registry`: the services of the server and their processes (contract 09, 9.3; contract 10, 10.6). */
import { CliCommand } from '../command.ts'
import { recordIn, toList } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import { addCommonOptions, addWidthOption, splitAttributes, type WidthFlags } from '../options.ts'
import type { Json } from '../output/print.ts'
import { callOn, printList } from '../records.ts'
import { addAttributeOption, type AttributeFlags } from '../resources.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'

type Flags = AttributeFlags & WidthFlags
interface MemberFlags extends Flags {
  groupId?: string
}

const path = '/service_registry/groups'
const group = { name: 'Group', pluralName: 'Groups', columns: ['group_id'] }
const member = { name: 'Member', pluralName: 'Members', columns: ['group_id', 'member_id', 'capabilities'] }

export function createServiceRegistryCommand(context: CommandContext): CliCommand {
  const groups = listCommand(group.columns)
    .description('List the services that run. Administrators only.')
    .examples('svc service-registry group list')
    .action((flags: Flags) => withSession(context, flags, (session) => listGroups(session, flags)))

  const members = listCommand(member.columns)
    .description('List the processes of the services. Administrators only.')
    .option('--group-id <group>', 'only those of this service')
    .completions({ '--group-id': ['actionrunner', 'api', 'auth', 'stream'] })
    .examples('svc service-registry member list', 'svc service-registry member list --group-id actionrunner')
    .action((flags: MemberFlags) => withSession(context, flags, (session) => listMembers(session, flags)))

  return new CliCommand('service-registry')
    .addCommand(new CliCommand('group').description('List the services that run.').addCommand(groups))
    .addCommand(new CliCommand('member').description('List the processes of the services.').addCommand(members))
}

function listCommand(columns: readonly string[]): CliCommand {
  return addAttributeOption(addWidthOption(addCommonOptions(new CliCommand('list')))).completions({
    '--attr': [...columns, 'all'],
  })
}

async function readGroups(session: Session): Promise<string[]> {
  const { groups } = recordIn(await session.client.call('GET', path))
  return Array.isArray(groups) ? groups.map(String) : []
}

async function listGroups(session: Session, flags: Flags): Promise<number> {
  const records = (await readGroups(session)).map((id): Json => ({ group_id: id }))
  return print(session, records, group, flags)
}

async function listMembers(session: Session, { groupId, ...flags }: MemberFlags): Promise<number> {
  const groups = groupId === undefined ? await readGroups(session) : [groupId]
  const records: Json[] = []
  for (const id of groups) {
    const { members } = recordIn(await callOn(session, 'GET', { kind: group.name, path, id, part: '/members' }))
    records.push(...toList(members))
  }
  return print(session, records, member, flags)
}

async function print(session: Session, records: readonly Json[], kind: typeof group, flags: Flags): Promise<number> {
  await printList(session, records, { ...kind, attributes: splitAttributes(flags.attr), widths: flags.width })
  return exitCodes.ok
}
