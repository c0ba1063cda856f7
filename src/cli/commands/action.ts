/** `svc action`: what can be run. */
import { Command } from 'commander'
import { createCommand } from '../options.ts'
import { createGetCommand, createListCommand, type ListFlags, type Resource } from '../resources.ts'
import type { CommandContext } from '../session.ts'
import { actionName, createExecuteCommand } from './run.ts'

const action: Resource = {
  name: actionName,
  pluralName: 'Actions',
  path: '/actions',
  columns: ['ref', 'pack', 'description'],
  order: ['id', 'uid', 'ref', 'pack', 'name', 'description', 'enabled', 'entry_point', 'runner_type', 'parameters'],
}

export function createActionCommand(context: CommandContext): Command {
  const list = createListCommand(context, action, ({ pack }: ListFlags & { pack?: string }) => ({ pack }))
    .description('List actions.')
    .option('-p, --pack <pack>', 'only those of this pack')
    .addHelpText('after', '\nExample:\n  svc action list -p core')

  const get = createGetCommand(context, action, '<ref...>', 'references or ids')
    .description('Show actions with their parameters.')
    .addHelpText('after', '\nExample:\n  svc action get core.local')

  return createCommand(new Command('action'))
    .description('List, show and run actions.')
    .addCommand(list)
    .addCommand(get)
    .addCommand(createExecuteCommand(context))
}
