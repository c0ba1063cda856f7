/** `svc action`: what can be run. */
import { Command } from 'commander'
import { exitCodes } from '../exit-codes.ts'
import { addCommonOptions, addListOptions, createCommand, splitAttributes, type CommonFlags } from '../options.ts'
import { forEachId, getRecord, listRecords, printList, printRecord } from '../records.ts'
import { withSession, type CommandContext } from '../session.ts'
import { actionName, createExecuteCommand } from './run.ts'

const columns = ['ref', 'pack', 'description']
const order = ['id', 'uid', 'ref', 'pack', 'name', 'description', 'enabled', 'entry_point', 'runner_type', 'parameters']

interface ListFlags extends CommonFlags {
  last: number
  attr?: string[]
  width?: number[]
  pack?: string
}

export function createActionCommand(context: CommandContext): Command {
  const list = addListOptions(addCommonOptions(createCommand(new Command('list'))))
    .description('List actions.')
    .option('-p, --pack <pack>', 'only those of this pack')
    .addHelpText('after', '\nExample:\n  svc action list -p core')
    .action((flags: ListFlags) =>
      withSession(context, flags, async (session) => {
        const attributes = splitAttributes(flags.attr)
        const query = { pack: flags.pack }
        const { records, isTruncated } = await listRecords(session, '/actions', query, flags.last)
        await printList(session, records, {
          columns,
          attributes,
          widths: flags.width,
          name: actionName,
          pluralName: 'Actions',
          isTruncated,
        })
        return exitCodes.ok
      }),
    )

  const get = addCommonOptions(createCommand(new Command('get')))
    .description('Show actions with their parameters.')
    .argument('<ref...>', 'references or ids')
    .option('-a, --attr <name...>', 'attributes to print')
    .addHelpText('after', '\nExample:\n  svc action get core.local')
    .action((refs: string[], flags: CommonFlags & { attr?: string[] }) =>
      withSession(context, flags, (session) =>
        forEachId(session, refs, async (ref) => {
          const record = await getRecord(session, actionName, '/actions', ref)
          await printRecord(session, record, order, splitAttributes(flags.attr))
          return exitCodes.ok
        }),
      ),
    )

  return createCommand(new Command('action'))
    .description('List, show and run actions.')
    .addCommand(list)
    .addCommand(get)
    .addCommand(createExecuteCommand(context))
}
