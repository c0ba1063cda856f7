/** `svc trace`: an event and everything it caused (contract 07; contract 09, 9.6). */
import { Option } from 'commander'
import { CliCommand } from '../command.ts'
import { causeChainOf, componentKinds, listOf, withoutNoopTriggers, type ComponentKind } from '../cause-chain.ts'
import { textOrEmpty, toList } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import { NotFound } from '../failures.ts'
import type { NameSource } from '../names.ts'
import { addCommonOptions, addListOptions, splitAttributes } from '../options.ts'
import { cellText, formatTime, printable, renderTable, truncationNote, type Json } from '../output/print.ts'
import { getRecord, listRecords, printList } from '../records.ts'
import {
  addAttributeOption,
  createEachCommand,
  showRecord,
  type AttributeFlags,
  type ListFlags,
  type CliResource,
} from '../resources.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'
import { toYaml } from '../output/yaml.ts'

const trace: CliResource = {
  name: 'Trace',
  pluralName: 'Traces',
  path: '/traces',
  columns: ['id', 'uid', 'trace_tag', 'start_timestamp'],
  order: ['id', 'uid', 'trace_tag', 'start_timestamp', 'trigger_instances', 'rules', 'action_executions'],
}

const ruleIds: NameSource = { path: '/rules', name: 'id', about: ['ref'] }

interface MemberFlags {
  execution?: string
  rule?: string
  triggerInstance?: string
}

interface TraceListFlags extends ListFlags, MemberFlags {
  traceTag?: string
  sort: 'asc' | 'desc'
}

interface GetFlags extends AttributeFlags, MemberFlags {
  showExecutions?: boolean
  showRules?: boolean
  showTriggerInstances?: boolean
  hideNoopTriggers?: boolean
}

export function createTraceCommand(context: CommandContext): CliCommand {
  const list = addListOptions(addCommonOptions(new CliCommand('list')))
    .description('List traces, newest last. A single result is printed in full.')
    .addOption(
      new Option('-c, --trace-tag <tag>', 'only traces with this tag').conflicts([
        'execution',
        'rule',
        'triggerInstance',
      ]),
    )
    .addOption(
      createMemberOption('-e, --execution <id>', 'only traces with this execution', ['rule', 'triggerInstance']),
    )
    .addOption(createMemberOption('-r, --rule <id>', 'only traces in which this rule matched', ['triggerInstance']))
    .addOption(createMemberOption('-g, --trigger-instance <id>', 'only traces with this trigger instance', []))
    .addOption(
      new Option('-s, --sort <order>', 'which end of the list to print: asc = oldest, desc = newest')
        .choices(['asc', 'desc'])
        .default('desc'),
    )
    .examples('svc trace list -c order-17')
    .action((flags: TraceListFlags) => withSession(context, flags, (session) => listTraces(session, flags)))

  const work = async (session: Session, id: string, flags: GetFlags): Promise<number> => {
    const record = await getRecord(session, trace, id)
    return showTrace(session, narrow(record, flags), flags)
  }
  const get = addAttributeOption(createEachCommand(context, 'get', ['<id...>', 'ids'], work))
    .description('Show traces: trigger instances, matching rules and executions.')
    .addOption(
      createMemberOption('-e, --execution <id>', 'only the chain of causes of this execution', [
        'rule',
        'triggerInstance',
      ]),
    )
    .addOption(
      createMemberOption(
        '-r, --rule <id>',
        'only the chain of causes of this rule; <id>:<trigger instance id>: of one match',
        ['triggerInstance'],
      ),
    )
    .addOption(
      createMemberOption('-g, --trigger-instance <id>', 'only the chain of causes of this trigger instance', []),
    )
    .option('--show-executions', 'show executions; combinable with the other --show options')
    .option('--show-rules', 'show rules; combinable with the other --show options')
    .option('--show-trigger-instances', 'show trigger instances; combinable with the other --show options')
    .option('-n, --hide-noop-triggers', 'hide trigger instances that no rule matched')
    .notes(
      '-e, -r and -g print only the chain of causes, back to the first event. A rule that matched several times is printed with all its matches.',
    )
    .examples(
      'svc trace get 6000000000000000000000aa',
      'svc trace get 6000000000000000000000aa -e 6000000000000000000000bb',
    )

  return new CliCommand('trace').completions({ '--rule': ruleIds }).addCommand(list).addCommand(get)
}

function createMemberOption(flags: string, description: string, others: string[]): Option {
  return new Option(flags, description).conflicts(others)
}

async function listTraces(session: Session, flags: TraceListFlags): Promise<number> {
  const attributes = splitAttributes(flags.attr)
  const isMachine = session.form !== 'human'
  const isWhole = attributes?.includes('all') === true || (attributes === undefined && isMachine)
  const query = {
    trace_tag: flags.traceTag,
    execution: flags.execution,
    rule: flags.rule,
    trigger_instance: flags.triggerInstance,
    ...(flags.sort === 'asc' ? { sort_asc: 'True' } : { sort_desc: 'True' }),
    // A trace can have very many components, and a list shows none of them.
    include_attributes: isWhole ? undefined : (attributes ?? trace.columns).join(','),
  }
  const { records, isTruncated } = await listRecords(session, trace.path, query, flags.last)
  const [only] = records
  if (only !== undefined && records.length === 1 && !isMachine && attributes === undefined) {
    await showTrace(session, await getRecord(session, trace, textOrEmpty(only['id'])), {})
    if (isTruncated) session.note(truncationNote(1, trace.pluralName, trace.name))
    return exitCodes.ok
  }
  await printList(session, flags.sort === 'asc' ? records : records.toReversed(), {
    ...trace,
    attributes,
    widths: flags.width,
    isTruncated,
  })
  return exitCodes.ok
}

/** @throws NotFound when it is not in the trace */
function narrow(record: Json, flags: GetFlags): Json {
  const { execution, rule, triggerInstance } = flags
  const wanted = { action_execution: execution, rule, trigger_instance: triggerInstance }
  let narrowed = record
  for (const kind of componentKinds) {
    const id = wanted[kind]
    if (id === undefined) continue
    const chain = causeChainOf(record, kind, id)
    if (chain === undefined) throw new NotFound(`${names[kind]} of trace ${textOrEmpty(record['id'])}`, id)
    narrowed = chain
  }
  if (flags.hideNoopTriggers === true) narrowed = withoutNoopTriggers(narrowed, record)
  const shown = {
    action_execution: flags.showExecutions,
    rule: flags.showRules,
    trigger_instance: flags.showTriggerInstances,
  }
  if (!componentKinds.some((kind) => shown[kind] === true)) return narrowed
  const hidden = componentKinds.filter((kind) => shown[kind] !== true)
  return { ...narrowed, ...Object.fromEntries(hidden.map((kind) => [listOf(kind), []])) }
}

const names: Readonly<Record<ComponentKind, string>> = {
  action_execution: 'Action Execution',
  rule: 'Rule',
  trigger_instance: 'Trigger Instance',
}

const types: Readonly<Record<ComponentKind, string>> = {
  action_execution: 'execution',
  rule: 'rule',
  trigger_instance: 'trigger-instance',
}

async function showTrace(session: Session, record: Json, flags: AttributeFlags): Promise<number> {
  if (session.form !== 'human' || flags.attr !== undefined) return showRecord(session, trace, record, flags)
  const { timezone } = session.settings
  const members = componentKinds
    .flatMap((kind) => toList(record[listOf(kind)]).map((component) => ({ kind, component })))
    .map(({ kind, component }) => ({ kind, component, at: textOrEmpty(component['updated_at']) }))
    // Components with the same time stay in causal order.
    .toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
  const rows = members.map(({ kind, component, at }) => [
    cellText(component['object_id']),
    types[kind],
    cellText(component['ref']),
    formatTime(at, timezone),
  ])
  const header = [
    `id: ${cellText(record['id'])}\n`,
    // Tags are free text: a tag of several lines must not look like part of the header.
    toYaml({ trace_tag: printable(textOrEmpty(record['trace_tag'])) }),
    `start_timestamp: ${formatTime(record['start_timestamp'], timezone)}\n`,
  ]
  await session.print(header.join(''))
  if (rows.length > 0) {
    const { terminalWidth } = session
    await session.print(renderTable(['id', 'type', 'ref', 'updated_at'], rows, { terminalWidth }))
  }
  return exitCodes.ok
}
