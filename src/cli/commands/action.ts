/** `svc action`: lists, shows, changes and runs actions. */
import { CliCommand } from '../command.ts'
import { segment } from '../connection/client.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure, HttpFailure, NotFound } from '../failures.ts'
import { withSecretInput } from '../input/prompt.ts'
import { addCommonOptions, type CommonFlags } from '../options.ts'
import { recordIn } from '../connection/responses.ts'
import { printable, type Json } from '../output/print.ts'
import { openFile, printFile } from '../output/raw-output.ts'
import { callOn, printDone, subjectOf } from '../records.ts'
import {
  addAttributeOption,
  createCreateCommand,
  createEachCommand,
  createGetCommand,
  createListCommand,
  createSwitchCommand,
  createUpdateCommand,
  showRecord,
  type AttributeFlags,
  type ListFlags,
  type Operand,
  type CliResource,
} from '../resources.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'
import { createActionNewCommand } from './action-new.ts'
import { actionName, createExecuteCommand } from './run.ts'

interface CloneFlags extends AttributeFlags {
  force?: boolean
}

interface DeleteFlags extends CommonFlags {
  removeFiles?: boolean
}

const action: CliResource = {
  name: actionName,
  pluralName: 'Actions',
  path: '/actions',
  columns: ['ref', 'pack', 'description'],
  order: ['id', 'uid', 'ref', 'pack', 'name', 'description', 'enabled', 'entry_point', 'runner_type', 'parameters'],
}

const actions: Operand = ['<ref...>', 'references or ids']

export function createActionCommand(context: CommandContext): CliCommand {
  const list = createListCommand(context, action, ({ pack }: ListFlags & { pack?: string }) => ({ pack }))
    .description('List actions.')
    .option('-p, --pack <pack>', 'only items of this pack')
    .examples('svc action list -p core')

  const get = createGetCommand(context, action, ...actions)
    .description('Show actions with their parameters.')
    .examples('svc action get core.local')

  const create = createCreateCommand(context, action)
    .description('Create an action. Its pack must be registered.')
    .examples('svc action create greet.yaml')
    .sample(
      'greet.yaml',
      `name: greet
pack: default
runner_type: local-shell-cmd
parameters:
  who: {type: string, required: true}
  cmd: {default: 'echo "hello $WHO"', immutable: true}
  env: {default: {WHO: '{{ who }}'}, immutable: true}`,
    )

  const update = createUpdateCommand(context, action, ['<ref>', 'reference or id'])
    .description('Replace an action. Attributes that the definition omits get their defaults.')
    .examples('svc action update default.greet greet.yaml')

  const work = async (session: Session, id: string, flags: DeleteFlags): Promise<number> => {
    const body = flags.removeFiles === true ? { remove_files: true } : {}
    await callOn(session, 'DELETE', subjectOf(action, id), { body })
    await printDone(session, `${action.name} "${id}" is deleted.`)
    return exitCodes.ok
  }
  const remove = createEachCommand(context, 'delete', actions, work)
    .description('Delete actions. Their executions stay.')
    .option('-r, --remove-files', 'also delete their metadata files and entry points')
    .examples('svc action delete default.greet')

  const enable = createSwitchCommand(context, action, 'enable', ...actions)
    .description('Enable actions.')
    .examples('svc action enable default.greet')

  const disable = createSwitchCommand(context, action, 'disable', ...actions)
    .description('Disable actions: the server refuses to run them.')
    .examples('svc action disable default.greet')

  const clone = addAttributeOption(addCommonOptions(new CliCommand('clone')))
    .description('Copy an action with its metadata file and entry point into a pack.')
    .argument('<ref>', 'reference or id')
    .argument('<pack>', 'pack of the copy; it must be registered')
    .argument('<name>', 'name of the copy')
    .option('-f, --force', 'replace an action of that name and its files')
    .examples('svc action clone examples.greet default welcome')
    .notes('At a terminal the command asks before it replaces an action.')
    .completions({ '--attr': [...action.columns, ...action.order, 'all'] })
    .action((ref: string, pack: string, name: string, flags: CloneFlags) =>
      withSession(context, flags, async (session) => {
        const wanted = { dest_pack: pack, dest_action: name }
        await showRecord(session, action, await cloneAction(session, ref, wanted, flags.force === true), flags)
        return exitCodes.ok
      }),
    )

  const entryPoint = addCommonOptions(new CliCommand('entry-point'))
    .description(
      'Print the entry point file of an action, byte for byte. On a terminal, control characters are escaped.',
    )
    .argument('<ref>', 'reference or id')
    .examples('svc action entry-point examples.greet', 'svc action entry-point examples.greet > greet.py')
    .action((ref: string, flags: CommonFlags) =>
      withSession(context, flags, (session) => printEntryPoint(session, ref)),
    )

  return new CliCommand('action')
    .addCommand(list)
    .addCommand(get)
    .addCommand(createActionNewCommand(context))
    .addCommand(create)
    .addCommand(update)
    .addCommand(remove)
    .addCommand(enable)
    .addCommand(disable)
    .addCommand(clone)
    .addCommand(entryPoint)
    .addCommand(createExecuteCommand(context))
}

async function cloneAction(session: Session, ref: string, wanted: Json, overwrite: boolean): Promise<Json> {
  const post = async (body: Json): Promise<Json> =>
    recordIn(await callOn(session, 'POST', { ...subjectOf(action, ref), part: '/clone' }, { body }))
  try {
    return await post({ ...wanted, overwrite })
  } catch (error) {
    if (!(error instanceof HttpFailure) || error.status === 401) throw error
    const refusal = new CliFailure(error.message, exitCodes.usage)
    if (error.code !== 'ACTION_EXISTS' || session.form !== 'human') throw refusal
    const { confirm } = await import('../input/questions.ts')
    const question = `Action "${printable(`${String(wanted['dest_pack'])}.${String(wanted['dest_action'])}`)}" exists. Replace it and its files?`
    const isWanted = await withSecretInput(session, (input) =>
      input.isTerminal() ? confirm({ input, note: session.note }, question, false) : Promise.reject(refusal),
    )
    if (!isWanted) throw new CliFailure('Nothing was changed.')
    return post({ ...wanted, overwrite: true })
  }
}

async function printEntryPoint(session: Session, ref: string): Promise<number> {
  if (ref === '') throw new NotFound(action.name, ref)
  const path = `/actions/views/entry_point/${segment(ref)}`
  const response = await openFile(session, path, (code, message) =>
    // The server also answers 404 when the action has no entry point; its message says so.
    code === 'ENTRY_POINT_NOT_FOUND' ? new CliFailure(message, exitCodes.usage) : new NotFound(action.name, ref),
  )
  await printFile(session, response, { ref })
  return exitCodes.ok
}
