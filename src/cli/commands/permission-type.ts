/** `svc permission-type`: the permission types of roles and API keys (contract 11, 11.7). */
import { CliCommand } from '../command.ts'
import { recordIn, toObject } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import { addCommonOptions, addWidthOption, splitAttributes, type WidthFlags } from '../options.ts'
import type { Json } from '../output/print.ts'
import { printList } from '../records.ts'
import { createGetCommand, type AttributeFlags, type CliResource } from '../resources.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'

/** The server groups permission types by resource type; `get` takes a resource type. */
const resourceType: CliResource = {
  name: 'Resource Type',
  pluralName: 'Resource Types',
  path: '/rbac/permission_types',
  columns: ['resource_type', 'permission_type', 'description'],
  order: [],
}

type TypeListFlags = AttributeFlags & WidthFlags

export function createPermissionTypeCommand(context: CommandContext): CliCommand {
  const list = addWidthOption(addCommonOptions(new CliCommand('list')))
    .description('List the permission types for roles and API keys. Administrators only.')
    .option('-a, --attr <name...>', 'attributes to print, such as permission_type; all: every attribute')
    .examples('svc permission-type list', 'svc permission-type list -a permission_type -w 40')
    .action((flags: TypeListFlags) => withSession(context, flags, (session) => listTypes(session, flags)))

  const get = createGetCommand(context, resourceType, '<resource-type...>', 'resource types')
    .description('Show the permission types of a resource type, such as action.')
    .examples('svc permission-type get action')

  return new CliCommand('permission-type').addCommand(list).addCommand(get)
}

async function listTypes(session: Session, flags: TypeListFlags): Promise<number> {
  const types = recordIn(await session.client.call('GET', resourceType.path))
  const records = Object.entries(types).flatMap(([resource, permissions]) =>
    Object.entries(toObject(permissions)).map(([permission, description]): Json => ({
      resource_type: resource,
      permission_type: permission,
      description,
    })),
  )
  const { columns } = resourceType
  await printList(session, records, {
    columns,
    attributes: splitAttributes(flags.attr),
    widths: flags.width,
    name: 'Permission Type',
    pluralName: 'Permission Types',
  })
  return exitCodes.ok
}
