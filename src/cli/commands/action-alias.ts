/** `svc action-alias`: chat commands that run actions (contract 09, 9.3; contract 02, 2.13). */
import { CliCommand } from '../command.ts'
import { createGetCommand, createListCommand, type ListFlags, type CliResource } from '../resources.ts'
import type { CommandContext } from '../session.ts'

const alias: CliResource = {
  name: 'Action Alias',
  pluralName: 'Action Aliases',
  path: '/actionalias',
  columns: ['ref', 'pack', 'description', 'enabled'],
  order: ['id', 'uid', 'ref', 'pack', 'name', 'description', 'enabled', 'action_ref', 'formats', 'ack', 'result'],
}

export function createActionAliasCommand(context: CommandContext): CliCommand {
  const list = createListCommand(context, alias, ({ pack }: ListFlags & { pack?: string }) => ({ pack }))
    .description('List action aliases.')
    .option('-p, --pack <pack>', 'only items of this pack')
    .examples('svc action-alias list -p examples')

  const get = createGetCommand(context, alias, '<ref...>', 'references or ids')
    .description('Show action aliases with their formats.')
    .examples('svc action-alias get examples.greet')

  return new CliCommand('action-alias').addCommand(list).addCommand(get)
}
