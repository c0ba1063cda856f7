/** The sub-commands that kinds of records share: `list`, `get`, `create` and the others (contract 09, 9.2 and 9.3). */
import { CliCommand } from './command.ts'
import type { Query } from './connection/client.ts'
import { recordIn } from './connection/responses.ts'
import { exitCodes } from './exit-codes.ts'
import { CliFailure, HttpFailure } from './failures.ts'
import { addCommonOptions, addListOptions, splitAttributes, type CommonFlags, type WidthFlags } from './options.ts'
import { attributeOf, type Json } from './output/print.ts'
import {
  callOn,
  createRecord,
  forEachId,
  getRecord,
  listRecords,
  printDone,
  printList,
  printRecord,
  subjectOf,
  type CliRecordKind,
  type Subject,
} from './records.ts'
import { withSession, type CommandContext, type Session } from './session.ts'

export interface CliResource extends CliRecordKind {
  pluralName: string
  /** Of a list. */
  columns: readonly string[]
  /** Attributes that come first when one record is shown. */
  order: readonly string[]
  /** Attributes printed for one record by default; default: all. */
  shown?: readonly string[]
  /** Those of `shown` that records without them do not show as empty. */
  sometimes?: readonly string[]
  /** The server lists newest first; the client prints the newest last, next to the prompt. Default false. */
  isNewestFirst?: boolean
  /** Records may be large: the client asks the server for the printed attributes only. Default false. */
  isSelective?: boolean
  /** Adds computed attributes; machine output of whole records omits them. */
  extend?: (record: Json) => Json
  /**
   * Adds the columns of a list that are computed: one record shows what they are made of. `-a` names them too.
   *
   * @param timezone of the viewer
   */
  addColumns?: (record: Json, timezone: string) => Json
  /** What a person is warned of who lists the record. */
  warningOf?: (record: Json) => string | undefined
  /** Called with the body before it is sent, to mask its secrets in the output of `--debug`. */
  beforeSending?: (session: Session, body: Json) => Promise<void>
}

/** How often a change is tried that others get ahead of. */
const MAX_ATTEMPTS = 20

/** The operand of a command, such as `<ref...>`, with its description. */
export type Operand = readonly [argument: string, description: string]

/** Those of `addListOptions`. */
export interface ListFlags extends CommonFlags, WidthFlags {
  last?: number
  attr?: string[]
}

export interface AttributeFlags extends CommonFlags {
  attr?: string[]
}

export interface ListCommandOptions<F> {
  /** Columns in place of those of the resource. */
  columns?: (flags: F) => readonly string[] | undefined
}

/** `list`, without a description and an example. @param query what the further options of the command ask for */
export function createListCommand<F extends ListFlags>(
  context: CommandContext,
  resource: CliResource,
  query: (flags: F) => Query = () => ({}),
  { columns = () => undefined }: ListCommandOptions<F> = {},
): CliCommand {
  const command = new CliCommand('list').completions({ '--attr': attributesOf(resource) })
  return addListOptions(addCommonOptions(command)).action((flags: F) =>
    withSession(context, flags, (session) =>
      showList(session, { ...resource, columns: columns(flags) ?? resource.columns }, query(flags), flags),
    ),
  )
}

/** The attributes that completion offers for `-a`. */
function attributesOf({ columns, order }: CliResource): string[] {
  return [...new Set([...columns, ...order, 'all'])]
}

/** Prints a list, and a note when it is only the beginning of one. @returns the exit code */
export async function showList(
  session: Session,
  resource: CliResource,
  query: Query,
  flags: ListFlags,
): Promise<number> {
  const { name, pluralName, path, columns, isNewestFirst = false, isSelective = false } = resource
  const attributes = splitAttributes(flags.attr)
  const printed = attributes ?? (session.form === 'human' ? columns : ['all'])
  const selection = isSelective && !printed.includes('all') ? { include_attributes: printed.join(',') } : {}
  const { records, isTruncated } = await listRecords(session, path, { ...query, ...selection }, flags.last)
  const inOrder = isNewestFirst ? records.toReversed() : records
  if (attributes !== undefined)
    await refuseUnknown(
      session,
      resource,
      attributes,
      records.map((record) => extend(session, resource, record)),
    )
  const extended = isWhole(session, attributes) ? inOrder : inOrder.map((record) => extend(session, resource, record))
  await printList(session, extended, { columns, attributes, widths: flags.width, name, pluralName, isTruncated })
  if (session.form === 'human') {
    for (const text of inOrder.flatMap((record) => resource.warningOf?.(record) ?? [])) session.warn(text)
  }
  return exitCodes.ok
}

/**
 * An attribute that no record has may be one that all of them leave out: the server knows those of lists whose attributes
 * can be selected.
 *
 * @throws CliFailure
 */
async function refuseUnknown(
  session: Session,
  { name, path, columns, order }: CliResource,
  attributes: readonly string[],
  records: readonly Json[],
): Promise<void> {
  const known = new Set(['all', ...columns, ...order])
  const isKnown = (attribute: string): boolean =>
    known.has(attribute) ||
    records.some(
      (record) =>
        attributeOf(record, attribute) !== undefined ||
        attributeOf(record, attribute.split('.')[0] ?? '') !== undefined,
    )
  const unknown = attributes.filter((attribute) => !isKnown(attribute))
  if (records.length === 0 || unknown.length === 0) return
  // Refuses those that do not exist.
  const query = { include_attributes: unknown.join(','), limit: 1 }
  const { headers } = await session.client.call('GET', path, { query })
  if (headers['warning']?.includes('include_attributes') !== true) return
  throw new CliFailure(
    `${name} has no attribute "${unknown.join('", "')}". Attributes: ${[...new Set(records.flatMap((record) => Object.keys(record)))].toSorted().join(', ')}.`,
  )
}

/** Whether machine output of the records as they are is wanted. */
function isWhole(session: Session, attributes: readonly string[] | undefined): boolean {
  return session.form !== 'human' && (attributes === undefined || attributes.includes('all'))
}

function extend(
  { settings }: Session,
  { extend: withMore, addColumns }: Pick<CliResource, 'extend' | 'addColumns'>,
  record: Json,
  hasColumns = true,
): Json {
  const more = withMore === undefined ? record : withMore(record)
  return hasColumns && addColumns !== undefined ? addColumns(more, settings.timezone) : more
}

/** A command about each of several records, without a description and an example. @param work resolves with the exit code */
export function createEachCommand<F extends CommonFlags>(
  context: CommandContext,
  name: string,
  operand: Operand,
  work: (session: Session, id: string, flags: F) => Promise<number>,
): CliCommand {
  return addCommonOptions(new CliCommand(name))
    .argument(...operand)
    .action((ids: string[], flags: F) =>
      withSession(context, flags, (session) => forEachId(session, ids, (id) => work(session, id, flags))),
    )
}

/** `get`, without a description and an example. */
export function createGetCommand(context: CommandContext, resource: CliResource, ...operand: Operand): CliCommand {
  const work = async (session: Session, id: string, flags: AttributeFlags): Promise<number> =>
    showRecord(session, resource, await getRecord(session, resource, id), flags)
  return addAttributeOption(createEachCommand(context, 'get', operand, work)).completions({
    '--attr': attributesOf(resource),
  })
}

export function addAttributeOption(command: CliCommand): CliCommand {
  return command.option('-a, --attr <name...>', 'attributes to print')
}

/**
 * `create <file>`, without a description and an example.
 *
 * @param afterwards prints notes about the new record in human output
 */
export function createCreateCommand(
  context: CommandContext,
  resource: CliResource,
  afterwards: (session: Session, created: Json) => void = () => undefined,
): CliCommand {
  return addAttributeOption(addCommonOptions(new CliCommand('create')))
    .argument(...fileOperand)
    .action((file: string, flags: AttributeFlags) =>
      withSession(context, flags, async (session) => {
        const created = await createRecord(session, resource.path, await readBody(session, resource, file))
        await showRecord(session, resource, created, flags)
        if (session.form === 'human') afterwards(session, created)
        return exitCodes.ok
      }),
    )
}

/** `update <ref> <file>`, without a description and an example. */
export function createUpdateCommand(
  context: CommandContext,
  resource: CliResource,
  operand: Operand,
  afterwards: (session: Session, updated: Json) => void = () => undefined,
): CliCommand {
  return addAttributeOption(addCommonOptions(new CliCommand('update')))
    .argument(...operand)
    .argument(...fileOperand)
    .action((id: string, file: string, flags: AttributeFlags) =>
      withSession(context, flags, async (session) => {
        const body = await readBody(session, resource, file)
        const updated = recordIn(await callOn(session, 'PUT', subjectOf(resource, id), { body }))
        await showRecord(session, resource, updated, flags)
        if (session.form === 'human') afterwards(session, updated)
        return exitCodes.ok
      }),
    )
}

const fileOperand: Operand = ['<file>', 'definition file, .yaml or .json; errors name the line']

/** Reads a definition file. @throws CliFailure (2) */
export async function readDefinition(path: string): Promise<Json> {
  // Loaded here only: reading YAML takes time that most commands do not need.
  const { readRecordFile } = await import('./input/record-file.ts')
  return readRecordFile(path)
}

async function readBody(session: Session, { beforeSending }: CliResource, file: string): Promise<Json> {
  const body = await readDefinition(file)
  await beforeSending?.(session, body)
  return body
}

/** `enable` or `disable` of a resource with the attribute `enabled`, without a description and an example. */
export function createSwitchCommand(
  context: CommandContext,
  resource: CliResource,
  name: 'enable' | 'disable',
  ...operand: Operand
): CliCommand {
  const work = async (session: Session, id: string, flags: AttributeFlags): Promise<number> =>
    showRecord(session, resource, await setEnabled(session, subjectOf(resource, id), name === 'enable'), flags)
  return addAttributeOption(createEachCommand(context, name, operand, work))
}

/**
 * Changes one attribute and nothing else: when somebody changes the record meanwhile, both changes count.
 *
 * @returns the record as it is then
 */
async function setEnabled(session: Session, subject: Subject, enabled: boolean): Promise<Json> {
  for (let attempt = 1; ; attempt++) {
    const answer = await callOn(session, 'GET', subject)
    const { etag } = answer.headers
    const request = {
      body: { ...recordIn(answer), enabled },
      // Older servers have no entity tags, and take the record as it was read.
      ...(etag === undefined ? {} : { headers: { 'If-Match': etag } }),
    }
    try {
      return recordIn(await callOn(session, 'PUT', subject, request))
    } catch (error) {
      if (!(error instanceof HttpFailure && error.status === 412) || attempt === MAX_ATTEMPTS) throw error
    }
  }
}

/** `delete`, without a description and an example. */
export function createDeleteCommand(context: CommandContext, resource: CliResource, ...operand: Operand): CliCommand {
  return createEachCommand(context, 'delete', operand, async (session, id) => {
    await callOn(session, 'DELETE', subjectOf(resource, id))
    await printDone(session, `${resource.name} "${id}" is deleted.`)
    return exitCodes.ok
  })
}

/** Prints one record. @returns the exit code */
export async function showRecord(
  session: Session,
  resource: Pick<CliResource, 'order' | 'shown' | 'sometimes' | 'extend' | 'addColumns'>,
  record: Json,
  { attr }: AttributeFlags,
): Promise<number> {
  const { shown, sometimes = [] } = resource
  const present = shown?.filter((name) => !sometimes.includes(name) || record[name] !== undefined)
  const attributes = splitAttributes(attr) ?? (session.form === 'human' ? present : undefined)
  const extended = isWhole(session, attributes) ? record : extend(session, resource, record, attributes !== undefined)
  await printRecord(session, extended, resource.order, attributes)
  return exitCodes.ok
}
