/** The sub-commands that all kinds of records share: `list` and `get` (contract 09, 9.2). */
import { Command } from 'commander'
import type { Query } from './client.ts'
import { exitCodes } from './exit-codes.ts'
import { addCommonOptions, addListOptions, createCommand, splitAttributes, type CommonFlags } from './options.ts'
import type { Json } from './print.ts'
import { forEachId, getRecord, listRecords, printList, printRecord } from './records.ts'
import { withSession, type CommandContext, type Session } from './session.ts'

export interface Resource {
  /** Display name, such as `Action`. */
  name: string
  pluralName: string
  /** Below the address of the API, such as `/actions`. */
  path: string
  /** Of a list. */
  columns: readonly string[]
  /** Attributes that come first when one record is shown. */
  order: readonly string[]
}

export interface ListFlags extends CommonFlags {
  last: number
  attr?: string[]
  width?: number[]
}

export interface AttributeFlags extends CommonFlags {
  attr?: string[]
}

/** `list`, without a description and an example. @param query what the further options of the command ask for */
export function createListCommand<F extends ListFlags>(
  context: CommandContext,
  resource: Resource,
  query: (flags: F) => Query = () => ({}),
): Command {
  return addListOptions(addCommonOptions(createCommand(new Command('list')))).action((flags: F) =>
    withSession(context, flags, (session) => showList(session, resource, query(flags), flags)),
  )
}

/** Prints a list, and a note when it is only the beginning of one. @returns the exit code */
export async function showList(
  session: Session,
  { name, pluralName, path, columns }: Resource,
  query: Query,
  flags: ListFlags,
): Promise<number> {
  const { records, isTruncated } = await listRecords(session, path, query, flags.last)
  const attributes = splitAttributes(flags.attr)
  await printList(session, records, { columns, attributes, widths: flags.width, name, pluralName, isTruncated })
  return exitCodes.ok
}

/** `get`, without a description and an example. @param argument what names one, such as `<ref...>` */
export function createGetCommand(
  context: CommandContext,
  resource: Resource,
  argument: string,
  argumentDescription: string,
): Command {
  const { name, path } = resource
  return addCommonOptions(createCommand(new Command('get')))
    .argument(argument, argumentDescription)
    .option('-a, --attr <name...>', 'attributes to print')
    .action((ids: string[], flags: AttributeFlags) =>
      withSession(context, flags, (session) =>
        forEachId(session, ids, async (id) =>
          showRecord(session, resource, await getRecord(session, name, path, id), flags),
        ),
      ),
    )
}

/** Prints one record. @returns the exit code */
export async function showRecord(
  session: Session,
  { order }: Pick<Resource, 'order'>,
  record: Json,
  { attr }: AttributeFlags,
): Promise<number> {
  await printRecord(session, record, order, splitAttributes(attr))
  return exitCodes.ok
}
