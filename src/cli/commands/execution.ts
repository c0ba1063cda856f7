/** `svc execution`: lists, shows, follows, re-runs and cancels executions (contract 09, 9.5). */
import { Option } from 'commander'
import { CliCommand } from '../command.ts'
import { recordIn, textOrEmpty } from '../connection/responses.ts'
import { segment } from '../connection/client.ts'
import { cancelExecution, executionName, getExecution } from '../executions/calls.ts'
import { markWorkflows, printExecution, withStatusText } from '../executions/details.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure, NotFound } from '../failures.ts'
import { executionStatuses } from '../../core/execution-status.ts'
import { executionsIn } from '../names.ts'
import {
  addCommonOptions,
  addListOptions,
  addTimeOptions,
  splitAttributes,
  type CommonFlags,
  type TimeFlags,
} from '../options.ts'
import { attributeOf, type Json } from '../output/print.ts'
import { callOn, forEachId, listRecords, printDone, printList } from '../records.ts'
import { createEachCommand, type ListFlags } from '../resources.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'
import { tailExecution } from '../executions/tail.ts'
import {
  ActionCommand,
  addDisplayOptions,
  addRunOptions,
  create,
  printActionHelp,
  printKey,
  readParameters,
  showProgress,
  type DisplayFlags,
  type RerunFlags,
} from './run.ts'
import { createExecutionGrepCommand } from './execution-grep.ts'
import { createWorkflowExplainCommand } from './workflow-explain.ts'

const columns = ['id', 'action.ref', 'context.user', 'status', 'start_timestamp', 'end_timestamp']
/** Attributes that are not columns but show which executions are workflows. */
const hiddenColumns = ['action.runner_type', 'liveaction.action_is_workflow']

interface ExecutionListFlags extends ListFlags, TimeFlags {
  action?: string
  status?: string
  user?: string
  trigger_instance?: string
  sort: 'asc' | 'desc'
  showall?: boolean
  parent?: string
}

interface GetFlags extends CommonFlags, DisplayFlags {
  excludeResult?: boolean
  tail?: boolean
}

interface TailFlags extends CommonFlags {
  type?: 'stdout' | 'stderr' | 'other'
  includeMetadata?: boolean
  nested?: boolean
}

export function createExecutionCommand(context: CommandContext): CliCommand {
  const list = addTimeOptions(addListOptions(addCommonOptions(new CliCommand('list'))), 'executions started')
    .description('List executions, newest last.')
    .option('--action <ref>', 'only executions of this action')
    .option('--status <status>', `only executions in this status: ${executionStatuses.join(', ')}`)
    .completions({ '--status': executionStatuses })
    .option('--user <name>', 'only executions of this user')
    .option('--trigger_instance <id>', 'only executions that this trigger instance caused')
    .addOption(
      new Option('-s, --sort <order>', 'which end of the list to print: asc = oldest, desc = newest')
        .choices(['asc', 'desc'])
        .default('desc'),
    )
    .option('-l, --showall', 'include child executions')
    .option('--parent <id>', 'only child executions of this execution')
    .examples('svc execution list -n 10 --status failed', 'svc execution list -tg 2030-01-01T00:00:00Z --user alice')
    .action((flags: ExecutionListFlags) => withSession(context, flags, (session) => listExecutions(session, flags)))

  const get = addDisplayOptions(addCommonOptions(new CliCommand('get')), '-a, --attr')
    .description('Show executions with their results.')
    .argument('<id...>', 'ids, or last: the newest execution that you have permission to view')
    .option('-x, --exclude-result', 'leave out the results')
    .option('--tail', 'print the output live first')
    // Without effect here, and accepted by the client of StackStorm.
    .addOption(new Option('--auto-dict').hideHelp())
    .addOption(new Option('--delay <milliseconds>').hideHelp())
    .examples('svc execution get last')
    .action((ids: string[], flags: GetFlags) =>
      withSession(context, flags, (session) => forEachId(session, ids, (id) => showExecution(session, id, flags))),
    )

  const cancel = createEachCommand(context, 'cancel', ['<id...>', 'ids'], cancelOne)
    .description('Cancel executions and their child executions.')
    .completions({ id: executionsIn('running', 'pending', 'delayed', 'scheduled', 'paused') })
    .notes(
      'The server kills a process that ignores the request a few seconds later. `svc execution tail <id>` waits until everything has ended.',
    )
    .examples('svc execution cancel 6000000000000000000000aa')

  const createChange = (name: string, from: string, to: string): CliCommand => {
    const work = (session: Session, id: string, flags: CommonFlags & DisplayFlags): Promise<number> =>
      change(session, id, to, flags)
    return addDisplayOptions(createEachCommand(context, name, ['<id...>', 'ids'], work), '-a, --attr').completions({
      id: executionsIn(from),
    })
  }
  const pause = createChange('pause', 'running', 'pausing')
    .description('Pause workflows: they start no further tasks until resumed. Running tasks continue.')
    .examples('svc execution pause 6000000000000000000000aa')
  const resume = createChange('resume', 'paused', 'resuming')
    .description('Resume paused workflows.')
    .examples('svc execution resume 6000000000000000000000aa')

  const rerun = addRunOptions(new ActionCommand('re-run'))
    .description('Re-run an execution with the same or changed parameters.')
    .argument('<id>', 'id, or last')
    .argument('[parameters...]', 'changed parameters, as name=value')
    .completions({ parameters: 're-run parameters' })
    .option('--tasks <name...>', 'workflow tasks to re-run')
    .option('--no-reset <name...>', 'tasks among --tasks that keep the results of their items')
    .notes('`svc execution re-run <id> -h` lists the parameters of its action.')
    .examples(
      'svc execution re-run last timeout=120',
      "svc execution list --status failed -n -1 -j | jq -r '.[].id' | xargs -n 1 svc execution re-run --async",
    )
    .action((id: string, words: string[], flags: RerunFlags) =>
      withSession(context, flags, (session) => rerunExecution(session, id, words, flags)),
    )

  const tail = addCommonOptions(new CliCommand('tail'))
    .description('Print the output of an execution live.')
    .argument('[id]', 'id, or last', 'last')
    .addOption(new Option('--type <type>', 'only output of this type').choices(['stdout', 'stderr', 'other']))
    .option('--include-metadata', 'print time and type before each chunk, and the id of child executions')
    .option('--nested', 'include the output of child executions of any depth, in whole lines')
    .notes(
      'The command prints the earlier output first, then new output until the execution ends; with --nested, until all child executions end. Of a workflow it prints what happens in it (lines of the type `other`) and the output of its tasks; with --nested also those of nested workflows. The exit code is 0 whatever the outcome. After a lost connection it continues where it stopped: no output is lost or repeated. Without the permission `stream_view` it prints the whole output at the end.',
      'Output is printed unchanged, except that invalid UTF-8 becomes U+FFFD. On a terminal, standard error is red unless NO_COLOR is set.',
      'With `-j` each chunk is one line of JSON with `data`, `execution_id`, `output_type` and `timestamp`; with `-y` it is a YAML document. The messages about start and end then go to standard error.',
    )
    .examples(
      'svc execution tail last',
      'svc execution tail last --type stderr',
      'svc execution tail 6000000000000000000000aa --nested',
      'svc execution tail -j last | jq -j .data',
    )
    .action((id: string, flags: TailFlags) => withSession(context, flags, (session) => tailOne(session, id, flags)))

  return new CliCommand('execution')
    .addCommand(list)
    .addCommand(get)
    .addCommand(cancel)
    .addCommand(pause)
    .addCommand(resume)
    .addCommand(rerun)
    .addCommand(tail)
    .addCommand(createExecutionGrepCommand(context))
    .addCommand(createWorkflowExplainCommand(context, 'execution'))
}

async function listExecutions(session: Session, flags: ExecutionListFlags): Promise<number> {
  const attributes = splitAttributes(flags.attr)
  const isWhole = session.form === 'human' ? attributes?.includes('all') === true : attributes === undefined
  const wanted = [...(attributes ?? columns), ...hiddenColumns, 'id', 'status', 'start_timestamp', 'end_timestamp']
  const query = {
    action: flags.action,
    status: flags.status,
    user: flags.user,
    trigger_instance: flags.trigger_instance,
    timestamp_gt: flags.timestampGt,
    timestamp_lt: flags.timestampLt,
    parent: flags.parent ?? (flags.showall === true ? undefined : 'null'),
    ...(flags.sort === 'asc' ? { sort_asc: 'true' } : { sort_desc: 'true' }),
    include_attributes: isWhole || attributes?.includes('all') === true ? undefined : [...new Set(wanted)].join(','),
  }
  // The server accepts any text and returns an empty list.
  if (flags.status !== undefined && !executionStatuses.some((status) => status === flags.status)) {
    session.warn(`"${flags.status}" is not an execution status. Statuses: ${executionStatuses.join(', ')}.`)
  }
  const page = await listRecords(session, '/executions', query, flags.last)
  // The newest belong next to the prompt.
  const records = flags.sort === 'asc' ? page.records : page.records.toReversed()
  const nowMs = Date.now()
  const shown =
    session.form === 'human' ? markWorkflows(records).map((record) => withStatusText(record, nowMs)) : records
  await printList(session, shown, {
    columns,
    attributes,
    widths: flags.width,
    name: executionName,
    pluralName: 'Action Executions',
    isTruncated: page.isTruncated,
  })
  return exitCodes.ok
}

async function showExecution(session: Session, id: string, flags: GetFlags): Promise<number> {
  if (flags.tail === true) await tailOne(session, id, {})
  const query = flags.excludeResult === true ? { exclude_attributes: 'result' } : {}
  const record = await getExecution(session, id, query)
  if (flags.key !== undefined) await printKey(session, record, flags.key)
  else await printExecution(session, record, { ...flags, attributes: splitAttributes(flags.attr), showLog: true })
  return exitCodes.ok
}

async function cancelOne(session: Session, id: string): Promise<number> {
  const { refusal, hadEnded } = await cancelExecution(session, id)
  const what = `action execution with id ${id}`
  const done = hadEnded ? `${what} had ended: its background processes are stopped.` : `${what} canceled.`
  await printDone(session, refusal === undefined ? done : `${what} not canceled: ${refusal}`)
  return refusal === undefined ? exitCodes.ok : exitCodes.failed
}

/** Changes the status of a workflow. */
async function change(session: Session, id: string, status: string, flags: DisplayFlags): Promise<number> {
  const record = recordIn(
    await callOn(session, 'PUT', { kind: executionName, path: '/executions', id }, { body: { status } }),
  )
  if (flags.key !== undefined) await printKey(session, record, flags.key)
  else
    await printExecution(session, record, {
      ...flags,
      attributes: splitAttributes(flags.attr),
      raw: flags.showTasks !== true,
    })
  return exitCodes.ok
}

async function rerunExecution(session: Session, id: string, words: string[], flags: RerunFlags): Promise<number> {
  const original = await getExecution(session, id, { include_attributes: 'id,action.ref' })
  const ref = textOrEmpty(attributeOf(original, 'action.ref'))
  if (flags.actionHelp === true) return printActionHelp(session, ref)
  const parameters =
    words.length === 0 && flags.inheritEnv !== true ? {} : await readParameters(session, ref, words, flags)
  const { tasks } = flags
  const kept = Array.isArray(flags.reset) ? flags.reset : []
  const foreign = kept.filter((name) => tasks?.includes(name) !== true)
  if (foreign.length > 0) {
    throw new CliFailure(`--no-reset names ${foreign.join(', ')}, which --tasks does not name. Add it to --tasks.`)
  }
  const body = {
    ...(Object.keys(parameters).length === 0 ? {} : { parameters }),
    ...(tasks === undefined ? {} : { tasks, reset: tasks.filter((name) => !kept.includes(name)) }),
    ...(flags.user === undefined ? {} : { user: flags.user }),
    ...(flags.delay === undefined ? {} : { delay: flags.delay }),
  }
  const created = await create(session, `/executions/${segment(textOrEmpty(original['id']))}/re_run`, body)
  return showProgress(session, created, flags)
}

async function tailOne(session: Session, id: string, flags: TailFlags): Promise<number> {
  let record: Json
  try {
    record = await getExecution(session, id, { include_attributes: 'id,status,liveaction.action_is_workflow' })
  } catch (error) {
    if (!(error instanceof NotFound) || id !== 'last') throw error
    await session.print('No executions found in db.\n')
    return exitCodes.usage
  }
  const { type, includeMetadata = false, nested: isNested = false } = flags
  await tailExecution(session, record, { type, includeMetadata, isNested })
  return exitCodes.ok
}
